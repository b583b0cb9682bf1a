"""Quota and topology in one cycle: what a placement that fails, or that only preemption makes possible, leads to."""

from scheduler.core.decisions import ConditionType, PendingReason
from scheduler.core.topology import TopologyRequest
from scheduler.core.world import World
from tests.scheduler.core.topology_helpers import HOST, HOSTS, RACK, RACKS, node, racks
from tests.scheduler.core.topology_worlds import NOW, admit, current, places, workload, world

REQUIRED_HOST = TopologyRequest(required=HOST)


def fragmented(*, preemption: bool = False) -> World:
    """Four hosts of two cpus, each half used by a workload (T68)."""
    made = world([node(f"n{number}", 2) for number in range(4)], topology=HOSTS, preemption=preemption)
    for number in range(4):
        others = [f"n{other}" for other in range(4) if other != number]
        for other in others:
            made.delete_node(other)
        admit(made, workload(f"small-{number}", 1, created_at=float(number)))
        for other in others:
            made.set_node(node(other, 2))
    return made


def reason(made: World, key: str) -> str:
    reserved = current(made, key).condition(ConditionType.QUOTA_RESERVED)
    return "" if reserved is None else reserved.reason


class TestFragmentation:
    def test_quota_is_free_but_no_host_is(self) -> None:
        made = fragmented()
        made.set_workload(workload("large", 1, cpu=2, created_at=9.0), NOW)
        result = made.run_cycle(NOW)
        assert not result.decided
        assert reason(made, "team/large") == PendingReason.WAITING_FOR_QUOTA
        assert 'topology "hosts" has room for 0 of 1 pods' in made.why_pending("team/large")

    def test_what_no_empty_host_holds_never_fits(self) -> None:
        made = fragmented(preemption=True)
        made.set_workload(workload("huge", 1, cpu=3, priority=9, created_at=9.0), NOW)
        assert not made.run_cycle(NOW).decided
        assert reason(made, "team/huge") == PendingReason.TOPOLOGY_PLACEMENT_FAILED

    def test_preemption_makes_room_on_one_host(self) -> None:
        made = fragmented(preemption=True)
        made.set_workload(workload("large", 1, cpu=2, priority=9, created_at=9.0), NOW)
        (preemption,) = made.run_cycle(NOW).preemptions
        (host,) = places(made, preemption.workload)["set-0"]
        made.release_workload(preemption.workload, NOW)
        made.run_cycle(NOW)
        assert places(made, "team/large") == {"set-0": {host: 1}}

    def test_a_node_that_comes_wakes_who_waits_for_it(self) -> None:
        made = fragmented()
        made.set_workload(workload("large", 1, cpu=2, created_at=9.0), NOW)
        made.run_cycle(NOW)
        assert not made.has_active()
        made.set_node(node("n9", 2))
        assert made.has_active()
        made.run_cycle(NOW)
        assert places(made, "team/large") == {"set-0": {"n9": 1}}


def test_pod_sets_of_one_workload_count_against_each_other_on_empty_nodes_too() -> None:
    made = world(racks({"r0": [4]}), topology=RACKS)
    made.set_workload(workload("both", 4, 2, request=TopologyRequest(required=RACK)), NOW)
    made.run_cycle(NOW)
    assert reason(made, "team/both") == PendingReason.TOPOLOGY_PLACEMENT_FAILED


def test_implied_topology_where_every_flavor_has_one() -> None:
    made = world([node("a", 2)], topology=HOSTS)
    admit(made, workload("plain", 2, request=None))
    assert places(made, "team/plain") == {"set-0": {"a": 2}}
