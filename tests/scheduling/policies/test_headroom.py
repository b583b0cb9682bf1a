"""Headroom of queues and users: worked examples and laws, beyond the recorded states."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from scheduling.model.cohort import UserLimit
from scheduling.policies.headroom import (
    Excess,
    Holding,
    QueueLevel,
    first_exceeded,
    group_of,
    queue_headroom,
    user_headroom,
    user_may_start,
)


def test_the_narrowest_queue_of_a_path_decides_for_each_resource() -> None:
    leaf = QueueLevel("leaf", {"vcore": 4}, {"vcore": 1})
    parent = QueueLevel("parent", {"memory": 10}, {"memory": 9, "vcore": 3})
    root = QueueLevel("root", {"vcore": 20, "memory": 64}, {"vcore": 18, "memory": 9})
    assert queue_headroom([leaf, parent, root]) == {"vcore": 2, "memory": 1}


def test_a_wildcard_is_for_users_without_an_entry_in_that_queue() -> None:
    limits = (UserLimit(users=("ada",), workloads=1), UserLimit(users=("*",), resources={"vcore": 5}))
    path = [QueueLevel("leaf", limits=limits, users={"bob": Holding({"vcore": 2})})]
    assert user_headroom(path, "ada") is None
    assert user_headroom(path, "bob") == {"vcore": 3}
    assert user_headroom(path, "eve") == {"vcore": 5}


def test_one_group_counts_the_nearest_to_the_leaf() -> None:
    leaf = QueueLevel("leaf", limits=(UserLimit(groups=("b",)),))
    root = QueueLevel("root", limits=(UserLimit(groups=("a",), resources={"vcore": 1}), UserLimit(groups=("*",))))
    assert group_of([leaf, root], ["a", "b"]) == "b"
    assert group_of([leaf, root], ["c"]) == "*"
    assert group_of([leaf], ["c"]) == ""
    assert user_headroom([leaf, root], "ada", ["a", "b"]) is None
    assert user_headroom([root], "ada", ["a", "b"]) == {"vcore": 1}


def test_a_user_with_as_many_workloads_as_allowed_may_not_start_one_more() -> None:
    limits = (UserLimit(users=("*",), workloads=2),)
    path = [QueueLevel("leaf", limits=limits, users={"ada": Holding(workloads=2), "bob": Holding(workloads=1)})]
    assert not user_may_start(path, "ada", "")
    assert user_may_start(path, "bob", "")


def test_the_limit_nearest_to_the_leaf_is_named() -> None:
    leaf = QueueLevel(
        "leaf", limits=(UserLimit(users=("ada",), resources={"gpu": 4}),), users={"ada": Holding({"gpu": 3})}
    )
    root = QueueLevel("root", limits=(UserLimit(users=("*",), workloads=1),), users={"ada": Holding(workloads=1)})
    assert first_exceeded([leaf, root], "ada", {"gpu": 2}) == Excess("leaf", "gpu", 4, 3, 2)
    assert first_exceeded([leaf, root], "ada", {"gpu": 1}) == Excess("root", "", 1, 1, 1)
    assert first_exceeded([leaf, root], "bob", {"gpu": 9}) is None


AMOUNTS = st.dictionaries(st.sampled_from(["vcore", "memory", "gpu"]), st.integers(0, 50))


@given(st.lists(st.tuples(AMOUNTS, AMOUNTS), min_size=1, max_size=4))
def test_one_more_queue_never_widens_a_headroom(levels: list[tuple[dict[str, int], dict[str, int]]]) -> None:
    path = [QueueLevel(str(number), dict(maximum), dict(held)) for number, (maximum, held) in enumerate(levels)]
    whole, leaf = queue_headroom(path), queue_headroom(path[:1])
    assert leaf.keys() <= whole.keys()
    assert all(whole[name] <= leaf[name] for name in leaf)
