"""The stored form of assignments."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduling.model.topology import TopologyAssignment, TopologyDomain
from scheduling.model.topology_encoding import decode, encode


def hosts(*named: tuple[str, int]) -> TopologyAssignment:
    return TopologyAssignment(("hostname",), tuple(TopologyDomain((name,), count) for name, count in named))


def test_what_is_common_is_written_once() -> None:
    assert encode(hosts(("node-1.example", 2), ("node-2.example", 2))) == {
        "levels": ["hostname"],
        "slices": [
            {
                "domainCount": 2,
                "valuesPerLevel": [{"individual": {"prefix": "node-", "suffix": ".example", "roots": ["1", "2"]}}],
                "podCounts": {"universal": 2},
            }
        ],
    }


def test_one_domain_is_all_universal() -> None:
    one = TopologyAssignment(("block", "rack"), (TopologyDomain(("b0", "r1"), 4),))
    assert encode(one)["slices"] == [
        {
            "domainCount": 1,
            "valuesPerLevel": [{"universal": "b0"}, {"universal": "r1"}],
            "podCounts": {"universal": 4},
        }
    ]


@pytest.mark.parametrize(
    ("names", "written"),
    [
        (("aa", "aaa"), {"suffix": "aa", "roots": ["", "a"]}),
        (("abacacada", "abacada"), {"prefix": "ab", "suffix": "acada", "roots": ["ac", ""]}),
        (("ababa", "aba"), {"suffix": "aba", "roots": ["ab", ""]}),
        (("aba", "ababa"), {"suffix": "aba", "roots": ["", "ab"]}),
    ],
)
def test_t79_the_common_end_comes_before_the_common_start(names: tuple[str, str], written: dict[str, object]) -> None:
    """Where both overlap, Kueue takes the longest common end, and the common start of what is left."""
    assignment = hosts(*((name, 1) for name in names))
    encoded = encode(assignment)
    assert encoded["slices"][0]["valuesPerLevel"] == [{"individual": written}]
    assert decode(encoded) == assignment


def test_runs_of_different_names_are_split_where_that_is_shorter() -> None:
    names = [f"{pool}-with-a-rather-long-name-{number:03}" for pool in ("a", "b") for number in range(50)]
    encoded = encode(hosts(*((name, 1) for name in names)))
    assert [part["domainCount"] for part in encoded["slices"]] == [50, 50]
    assert decode(encoded) == hosts(*((name, 1) for name in names))


def test_the_older_form_is_read() -> None:
    assert decode({"levels": ["hostname"], "domains": [{"values": ["a"], "count": 2}]}) == hosts(("a", 2))


@pytest.mark.parametrize(
    ("part", "message"),
    [
        ({"valuesPerLevel": []}, "a slice has values for 0 levels where the assignment has 1"),
        ({"podCounts": {"individual": [1]}}, "a slice of 2 domains has 1 pod counts"),
        ({"valuesPerLevel": [{"individual": {"roots": ["a"]}}]}, "a slice of 2 domains has 1 values on a level"),
    ],
)
def test_lengths_that_disagree_are_refused(part: dict[str, object], message: str) -> None:
    whole = {"domainCount": 2, "valuesPerLevel": [{"universal": "a"}], "podCounts": {"universal": 1}}
    with pytest.raises(ValueError, match=message):
        decode({"levels": ["hostname"], "slices": [{**whole, **part}]})


values = st.text(st.sampled_from("ab-1٣"), max_size=6)


@given(st.integers(1, 3).flatmap(lambda n: st.lists(st.tuples(st.tuples(*[values] * n), st.integers(1, 9)))))
def test_round_trip(domains: list[tuple[tuple[str, ...], int]]) -> None:
    depth = len(domains[0][0]) if domains else 1
    assignment = TopologyAssignment(
        tuple(f"level-{number}" for number in range(depth)), tuple(TopologyDomain(v, count) for v, count in domains)
    )
    assert decode(encode(assignment)) == assignment
