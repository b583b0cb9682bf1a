"""Balanced placement: even shares for a preferred group, best fit where that has nothing to add."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduling.model.topology import SliceConstraint, TopologyRequest
from tests.scheduling.topology_helpers import (
    BLOCK,
    HOST,
    RACK,
    RACKS,
    RACKS_AND_HOSTS,
    flavor,
    node,
    place,
    pods,
    racks,
)

PREFERRED_RACK = TopologyRequest(preferred=RACK)


def test_pods_are_spread_evenly_over_the_fewest_racks() -> None:
    nodes = racks({"r0": [5], "r1": [5], "r2": [5]})
    assert place(flavor(RACKS, nodes), pods(8, PREFERRED_RACK)) == {"main": {"r0": 5, "r1": 3}}
    assert place(flavor(RACKS, nodes, balanced=True), pods(8, PREFERRED_RACK)) == {"main": {"r0": 4, "r1": 4}}


def test_what_is_left_over_goes_to_the_first_racks() -> None:
    made = flavor(RACKS, racks({"r0": [5], "r1": [5], "r2": [5]}), balanced=True)
    assert place(made, pods(11, PREFERRED_RACK)) == {"main": {"r0": 5, "r1": 3, "r2": 3}}


def test_racks_that_would_lower_the_smallest_share_are_left_alone() -> None:
    made = flavor(RACKS, racks({"r0": [1], "r1": [5], "r2": [4]}), balanced=True)
    assert place(made, pods(8, PREFERRED_RACK)) == {"main": {"r1": 4, "r2": 4}}


def test_the_set_with_the_least_room_left_over_is_taken() -> None:
    made = flavor(RACKS, racks({"r0": [9], "r1": [5], "r2": [5], "r3": [7]}), balanced=True)
    assert place(made, pods(10, PREFERRED_RACK)) == {"main": {"r1": 5, "r2": 5}}


def test_the_block_with_the_larger_smallest_share_is_taken() -> None:
    nodes = [*racks({"r0": [7], "r1": [2]}, block="b0"), *racks({"r2": [4], "r3": [4]}, block="b1")]
    assert place(flavor(RACKS, nodes, balanced=True), pods(8, PREFERRED_RACK)) == {"main": {"r2": 4, "r3": 4}}


def test_t76_the_hosts_of_the_preferred_rack_are_balanced() -> None:
    """One rack holds all 23 pods; it is its hosts that get even shares."""
    made = flavor(RACKS_AND_HOSTS, racks({"r0": [15, 13, 10]}), balanced=True)
    assert place(made, pods(23, PREFERRED_RACK)) == {"main": {"r0-n0": 12, "r0-n1": 11}}


def test_t76_hosts_below_the_threshold_are_left_alone() -> None:
    """Two hosts of 4 share 6 pods evenly, and the rack of two hosts of 2 is as good as empty."""
    made = flavor(RACKS_AND_HOSTS, racks({"r0": [4, 0], "r1": [4, 0], "r2": [2, 2]}), balanced=True)
    assert place(made, pods(6, PREFERRED_RACK)) == {"main": {"r0-n0": 3, "r1-n0": 3}}


def test_t76_the_threshold_leaves_room_for_the_leader() -> None:
    """With 5 on each host no rack would seat the leader; with 4 there is room for it."""
    group = TopologyRequest(preferred=RACK, group="g")
    made = flavor(RACKS_AND_HOSTS, racks({"r0": [5, 5]}), balanced=True)
    placed = place(made, pods(1, group, name="leader"), pods(9, group, name="workers"))
    assert placed == {"leader": {"r0-n0": 1}, "workers": {"r0-n0": 4, "r0-n1": 5}}


def test_evenly_free_racks_go_first_where_all_else_is_equal() -> None:
    nodes = racks({"r0": [4], "r1": [4], "r2": [2, 2], "r3": [2, 2]})
    made = flavor(RACKS_AND_HOSTS, nodes, balanced=True)
    shares = {"r0-n0": 4, "r2-n0": 2, "r2-n1": 2, "r3-n0": 2}
    assert place(made, pods(10, PREFERRED_RACK)) == {"main": shares}


def test_slices_are_balanced_as_wholes() -> None:
    made = flavor(RACKS_AND_HOSTS, racks({"r0": [4, 3], "r1": [4, 2]}), balanced=True)
    by_two = TopologyRequest(preferred=RACK, slices=(SliceConstraint(HOST, 2),))
    assert place(made, pods(8, by_two)) == {"main": {"r0-n0": 4, "r1-n0": 4}}


def test_a_leader_counts_in_its_racks_share() -> None:
    made = flavor(RACKS, racks({"r0": [4], "r1": [4], "r2": [4]}), balanced=True)
    group = TopologyRequest(preferred=RACK, group="g")
    placed = place(made, pods(1, group, name="leader"), pods(6, group, name="workers"))
    assert placed == {"leader": {"r0": 1}, "workers": {"r0": 3, "r1": 3}}


@pytest.mark.parametrize(
    "request_",
    [
        TopologyRequest(unconstrained=True),
        TopologyRequest(required=BLOCK),
        None,
    ],
)
def test_other_requests_are_not_balanced(request_: TopologyRequest | None) -> None:
    nodes = racks({"r0": [5], "r1": [6]})
    assert place(flavor(RACKS, nodes, balanced=True), pods(8, request_)) == place(
        flavor(RACKS, nodes), pods(8, request_)
    )


def test_one_rack_is_better_than_two() -> None:
    made = flavor(RACKS, racks({"r0": [4], "r1": [4], "r2": [9]}), balanced=True)
    assert place(made, pods(8, PREFERRED_RACK)) == {"main": {"r2": 8}}


def test_without_siblings_that_hold_all_best_fit_decides() -> None:
    nodes = [*racks({"r0": [3], "r1": [2]}, block="b0"), *racks({"r2": [4]}, block="b1")]
    assert place(flavor(RACKS, nodes, balanced=True), pods(8, PREFERRED_RACK)) == {"main": {"r0": 3, "r1": 1, "r2": 4}}


@given(st.lists(st.integers(0, 8), min_size=2, max_size=7), st.integers(2, 30))
@settings(deadline=None)
def test_no_smaller_share_than_best_fit_gives(rooms: list[int], count: int) -> None:
    nodes = [node(f"n{i}", room, rack=f"r{i}") for i, room in enumerate(rooms)]
    even = place(flavor(RACKS, nodes, balanced=True), pods(count, PREFERRED_RACK))
    tight = place(flavor(RACKS, nodes), pods(count, PREFERRED_RACK))
    assert isinstance(even, str) == isinstance(tight, str)
    if isinstance(even, dict) and isinstance(tight, dict):
        assert sum(even["main"].values()) == count
        assert len(even["main"]) == len(tight["main"])
        assert min(even["main"].values()) >= min(tight["main"].values())
