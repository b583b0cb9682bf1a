"""The numbering of domains and how they nest."""

from hypothesis import given
from hypothesis import strategies as st

from scheduling.topology.tree import TopologyTree


def tree(*leaves: tuple[str, ...]) -> TopologyTree:
    return TopologyTree({values: values for values in leaves}, len(leaves[0]))


def test_domains_are_numbered_by_their_values_and_children_are_consecutive() -> None:
    small = tree(("b1", "r2"), ("b0", "r1"), ("b1", "r0"), ("b0", "r0"))
    assert small.values == [[("b0",), ("b1",)], [("b0", "r0"), ("b0", "r1"), ("b1", "r0"), ("b1", "r2")]]
    assert small.children == [[range(2), range(2, 4)]]
    assert small.parents[1] == [0, 0, 1, 1]
    assert small.leaf_numbers[("b1", "r2")] == 3


def test_equal_values_under_different_parents_are_different_domains() -> None:
    same_names = tree(("b0", "r0"), ("b1", "r0"))
    assert same_names.leaves_with_prefix(("b1",)) == range(1, 2)
    assert same_names.leaves_with_prefix(("b1", "r0")) == range(1, 2)
    assert same_names.leaves_with_prefix(("b2",)) == range(0)


def test_a_tree_without_leaves_has_no_domains() -> None:
    empty = TopologyTree({}, 3)
    assert empty.values == [[], [], []]
    assert empty.leaves_with_prefix(("b0",)) == range(0)


names = st.sampled_from(["a", "b", "c"])


@given(st.sets(st.tuples(names, names, names), min_size=1))
def test_leaves_below_and_with_prefix_agree(leaves: set[tuple[str, ...]]) -> None:
    any_tree = tree(*leaves)
    for level in range(3):
        for domain, values in enumerate(any_tree.values[level]):
            inside = any_tree.leaves_below(level, domain)
            assert [any_tree.values[2][leaf][: level + 1] == values for leaf in inside] == [True] * len(inside)
            assert inside == any_tree.leaves_with_prefix(values)
        assert sum(len(any_tree.leaves_below(level, d)) for d in range(len(any_tree.values[level]))) == len(leaves)
