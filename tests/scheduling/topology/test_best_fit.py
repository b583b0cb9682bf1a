"""Where pods go: the rules of Kueue's topology-aware scheduling on clusters small enough to check by hand."""

import pytest

from scheduling.model.topology import SliceConstraint, TopologyRequest
from tests.scheduling.topology_helpers import (
    BLOCK,
    HOST,
    HOSTS,
    RACK,
    RACKS,
    RACKS_AND_HOSTS,
    flavor,
    node,
    occupy,
    place,
    pods,
    racks,
)

REQUIRED_RACK = TopologyRequest(required=RACK)
PREFERRED_RACK = TopologyRequest(preferred=RACK)
UNCONSTRAINED = TopologyRequest(unconstrained=True)


class TestLevels:
    """T66: racks with room 3, 2, 2, 2 in one block and four pods."""

    nodes = racks({"r0": [3], "r1": [2], "r2": [2], "r3": [2]})

    def test_required_level_must_hold_all_pods(self) -> None:
        message = place(flavor(RACKS, self.nodes), pods(4, REQUIRED_RACK))
        assert message == 'topology "racks" has room for 3 of 4 pods in one domain of "rack"'

    def test_preferred_level_climbs_and_comes_down_over_as_few_domains_as_possible(self) -> None:
        assert place(flavor(RACKS, self.nodes), pods(4, PREFERRED_RACK)) == {"main": {"r0": 3, "r1": 1}}

    def test_tightest_domain_wins(self) -> None:
        assert place(flavor(RACKS, self.nodes), pods(2, REQUIRED_RACK)) == {"main": {"r1": 2}}

    def test_too_much_for_the_widest_level(self) -> None:
        message = place(flavor(RACKS, self.nodes), pods(10, PREFERRED_RACK))
        assert message == 'topology "racks" has room for 9 of 10 pods'

    def test_preferred_combines_blocks_and_pools_their_racks(self) -> None:
        two_blocks = [*racks({"r0": [3]}, block="b0"), *racks({"r1": [2], "r2": [2]}, block="b1")]
        assert place(flavor(RACKS, two_blocks), pods(5, PREFERRED_RACK)) == {"main": {"r0": 3, "r1": 2}}


class TestBestFitAndLeastFreeCapacity:
    """T67: one level of hosts with room 5, 3 and 2."""

    made = flavor(HOSTS, [node("five", 5), node("three", 3), node("two", 2)])

    @pytest.mark.parametrize(
        ("count", "expected"),
        [(6, {"five": 5, "two": 1}), (2, {"two": 2}), (3, {"three": 3}), (4, {"five": 4})],
    )
    def test_preferred_fills_the_largest_and_ends_in_the_tightest(self, count: int, expected: dict[str, int]) -> None:
        assert place(self.made, pods(count, TopologyRequest(preferred=HOST))) == {"main": expected}

    @pytest.mark.parametrize(
        ("count", "expected"),
        [(6, {"five": 1, "three": 3, "two": 2}), (2, {"two": 2}), (3, {"three": 3}), (4, {"five": 4})],
    )
    @pytest.mark.parametrize("request_", [UNCONSTRAINED, None])
    def test_unconstrained_and_implied_fill_the_smallest_first(
        self, count: int, expected: dict[str, int], request_: TopologyRequest | None
    ) -> None:
        assert place(self.made, pods(count, request_)) == {"main": expected}

    def test_full_domains_are_passed_over(self) -> None:
        made = flavor(HOSTS, [node("empty", 0), node("one", 1), node("two", 2)])
        assert place(made, pods(3)) == {"main": {"one": 1, "two": 2}}


class TestFragmentation:
    """T68: four hosts of two cpus, each half used."""

    def test_a_pod_of_two_fits_only_without_the_others(self) -> None:
        made = flavor(HOSTS, [node(f"n{number}", 2) for number in range(4)])
        for number in range(4):
            spread = flavor(HOSTS, [node(f"n{number}", 1)])
            found = spread.find_topology_assignments([pods(1)])
            assert isinstance(found, dict)
            made.add_usage(pods(1).usage(found["main"]))
        assert place(made, pods(1, cpu=2)) == 'topology "hosts" has room for 0 of 1 pods'
        assert isinstance(made.find_topology_assignments([pods(1, cpu=2)], simulate_empty=True), dict)
        assert not isinstance(made.find_topology_assignments([pods(1, cpu=3)], simulate_empty=True), dict)


class TestSeveralPodSets:
    def test_later_pod_sets_see_what_earlier_ones_took(self) -> None:
        made = flavor(HOSTS, [node("a", 2), node("b", 2)])
        assert place(made, pods(2, name="first"), pods(2, name="second")) == {"first": {"a": 2}, "second": {"b": 2}}

    def test_first_failure_fails_all(self) -> None:
        made = flavor(HOSTS, [node("a", 2)])
        assert place(made, pods(2, name="first"), pods(1, name="second")) == 'topology "hosts" has room for 0 of 1 pods'

    def test_pod_sets_without_pods_are_left_out(self) -> None:
        assert place(flavor(HOSTS, [node("a", 2)]), pods(0, name="none"), pods(1)) == {"main": {"a": 1}}

    def test_simulation_of_an_empty_cluster_still_counts_the_workload_itself(self) -> None:
        made = flavor(HOSTS, [node("a", 2)])
        both = [pods(2, name="first"), pods(1, name="second")]
        assert not isinstance(made.find_topology_assignments(both, simulate_empty=True), dict)


class TestSlices:
    def test_a_slice_stays_in_its_domain(self) -> None:
        made = flavor(RACKS_AND_HOSTS, racks({"r0": [3, 3], "r1": [3, 3]}))
        by_two = TopologyRequest(preferred=RACK, slices=(SliceConstraint(HOST, 2),))
        assert place(made, pods(6, by_two)) == {"main": {"r0-n0": 2, "r0-n1": 2, "r1-n0": 2}}

    def test_below_the_slice_level_the_smaller_children_come_first(self) -> None:
        made = flavor(RACKS_AND_HOSTS, racks({"r0": [4, 1, 2]}))
        by_rack = TopologyRequest(required=BLOCK, slices=(SliceConstraint(RACK, 6),))
        assert place(made, pods(6, by_rack)) == {"main": {"r0-n0": 3, "r0-n1": 1, "r0-n2": 2}}

    @pytest.mark.parametrize("unconstrained", [False, True])
    def test_slices_alone_start_at_the_widest_level_and_fill_the_smallest(self, unconstrained: bool) -> None:
        made = flavor(RACKS_AND_HOSTS, racks({"r0": [4], "r1": [2, 2]}))
        only_slices = TopologyRequest(unconstrained=unconstrained, slices=(SliceConstraint(RACK, 2),))
        assert place(made, pods(4, only_slices)) == {"main": {"r0-n0": 4}}

    def test_slice_level_above_the_main_level_is_refused(self) -> None:
        made = flavor(RACKS_AND_HOSTS, racks({"r0": [4]}))
        wide = TopologyRequest(required=HOST, slices=(SliceConstraint(RACK, 2),))
        assert place(made, pods(4, wide)) == f'the slice level "rack" is wider than the level "{HOST}"'

    def test_unknown_level_is_refused(self) -> None:
        made = flavor(HOSTS, [node("a", 1)])
        assert place(made, pods(1, REQUIRED_RACK)) == 'topology "hosts" has no level "rack"'
        assert made.level_problem(REQUIRED_RACK) == 'topology "hosts" has no level "rack"'
        assert made.level_problem(None) is None

    def test_pods_beyond_the_last_whole_slice_are_dropped(self) -> None:
        made = flavor(RACKS_AND_HOSTS, racks({"r0": [9]}))
        by_two = TopologyRequest(required=RACK, slices=(SliceConstraint(HOST, 2),))
        assert place(made, pods(5, by_two)) == {"main": {"r0-n0": 4}}

    def test_inner_layers_keep_their_slices_whole_inside_outer_ones(self) -> None:
        layers = (SliceConstraint(RACK, 4), SliceConstraint(HOST, 2))
        made = flavor(RACKS_AND_HOSTS, racks({"r0": [3, 3, 1], "r1": [5, 5]}))
        request = TopologyRequest(required=BLOCK, slices=layers)
        assert place(made, pods(12, request)) == {"main": {"r0-n0": 2, "r0-n1": 2, "r1-n0": 4, "r1-n1": 4}}

    def test_inner_layers_sort_by_all_pods_that_fit_and_give_whole_slices(self) -> None:
        layers = (SliceConstraint(RACK, 2), SliceConstraint(HOST, 2))
        made = flavor(RACKS_AND_HOSTS, racks({"r0": [3, 2]}))
        assert place(made, pods(2, TopologyRequest(required=RACK, slices=layers))) == {"main": {"r0-n1": 2}}
        assert place(made, pods(4, TopologyRequest(required=RACK, slices=layers))) == {"main": {"r0-n0": 2, "r0-n1": 2}}

    @pytest.mark.parametrize(
        ("layers", "message"),
        [
            ((SliceConstraint(RACK, 4), SliceConstraint(HOST, 3)), "slices of 4 pods cannot be made of slices of 3"),
            ((SliceConstraint(HOST, 4), SliceConstraint(RACK, 2)), f'the slice level "rack" is not below "{HOST}"'),
        ],
    )
    def test_layers_must_nest(self, layers: tuple[SliceConstraint, ...], message: str) -> None:
        made = flavor(RACKS_AND_HOSTS, racks({"r0": [9]}))
        assert place(made, pods(4, TopologyRequest(required=BLOCK, slices=layers))) == message


class TestLeaderAndWorkers:
    group = TopologyRequest(required=RACK, group="g")

    def test_leader_and_workers_share_the_domain(self) -> None:
        made = flavor(RACKS_AND_HOSTS, racks({"r0": [2, 2], "r1": [2, 2, 1]}))
        placed = place(made, pods(1, self.group, name="leader"), pods(4, self.group, name="workers"))
        assert placed == {"leader": {"r1-n0": 1}, "workers": {"r1-n0": 1, "r1-n1": 2, "r1-n2": 1}}

    def test_each_alone_fits_but_not_together(self) -> None:
        made = flavor(RACKS_AND_HOSTS, racks({"r0": [2, 2], "r1": [2, 2]}))
        message = place(made, pods(1, self.group, name="leader"), pods(4, self.group, name="workers"))
        assert message == 'topology "default" has room for 3 of 4 pods in one domain of "rack"'

    def test_the_smaller_pod_set_leads_whatever_the_order(self) -> None:
        made = flavor(RACKS_AND_HOSTS, racks({"r0": [3]}))
        placed = place(made, pods(2, self.group, name="workers"), pods(1, self.group, name="leader"))
        assert placed == {"leader": {"r0-n0": 1}, "workers": {"r0-n0": 2}}

    def test_a_large_leader_takes_the_only_seat(self) -> None:
        made = flavor(RACKS_AND_HOSTS, racks({"r0": [4, 1, 1]}))
        placed = place(made, pods(1, self.group, cpu=3, name="leader"), pods(3, self.group, name="workers"))
        assert placed == {"leader": {"r0-n0": 1}, "workers": {"r0-n0": 1, "r0-n1": 1, "r0-n2": 1}}

    def test_other_groups_are_refused(self) -> None:
        made = flavor(RACKS_AND_HOSTS, racks({"r0": [9]}))
        two_leaders = place(made, pods(2, self.group, name="leader"), pods(3, self.group, name="workers"))
        assert two_leaders == "a pod set group is one leader and its workers, not leader of 2, workers of 3"
        three = [pods(1, self.group, name=name) for name in "abc"]
        assert place(made, *three) == "a pod set group is one leader and its workers, not a of 1, b of 1, c of 1"


class TestLeaves:
    def test_a_node_limits_pods_by_number_too(self) -> None:
        made = flavor(HOSTS, [node("a", 8, pods=3), node("b", 8, pods=2)])
        assert place(made, pods(4, TopologyRequest(preferred=HOST))) == {"main": {"a": 3, "b": 1}}

    def test_overused_leaves_have_no_room(self) -> None:
        made = flavor(HOSTS, [node("a", 2), node("b", 1)])
        occupy(made, pods(2, TopologyRequest(required=HOST)))
        made.leaves.set_node(node("a", 1))
        assert place(made, pods(2)) == 'topology "hosts" has room for 1 of 2 pods'

    def test_a_flavor_without_nodes_has_no_room(self) -> None:
        assert place(flavor(HOSTS, []), pods(1)) == 'topology "hosts" has no nodes'
