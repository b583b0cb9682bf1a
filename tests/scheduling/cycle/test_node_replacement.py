"""The second pass: admitted workloads that lost a node of their topology assignment."""

from dataclasses import replace

from scheduling.lifecycle.conditions import evict, release
from scheduling.model.decisions import CycleResult
from scheduling.model.topology import TopologyRequest
from scheduling.model.vocabulary import ConditionType, DecisionKind, EvictionReason
from scheduling.world import World
from tests.scheduling.topology_helpers import HOST, RACK, RACKS_AND_HOSTS, racks
from tests.scheduling.topology_worlds import NOW, admit, current, places, workload, world


def fail(made: World, key: str, *hosts: str) -> CycleResult:
    """The nodes are gone, the workload is told, and a cycle runs."""
    for host in hosts:
        made.delete_node(host)
    made.set_workload(replace(current(made, key), unhealthy_nodes=hosts), NOW)
    assert made.has_active()
    return made.run_cycle(NOW)


REQUIRED_RACK = TopologyRequest(required=RACK)


def test_the_pods_of_a_failed_node_move() -> None:
    made = world(racks({"r0": [2, 2, 3]}))
    admit(made, workload("job", 4, request=TopologyRequest(preferred=HOST)))
    assert places(made, "team/job") == {"set-0": {"r0-n0": 1, "r0-n2": 3}}
    result = fail(made, "team/job", "r0-n2")
    (replacement,) = result.replacements
    assert (replacement.workload, replacement.node, replacement.kind) == (
        "team/job",
        "r0-n2",
        DecisionKind.REPLACE_NODE,
    )
    assert result.decided
    assert result.progressed
    assert places(made, "team/job") == {"set-0": {"r0-n0": 2, "r0-n1": 2}}
    assert current(made, "team/job").unhealthy_nodes == ()
    assert current(made, "team/job").is_true(ConditionType.ADMITTED)
    assert not made.has_active()


def test_what_moved_is_charged_where_it_is_now() -> None:
    made = world(racks({"r0": [2, 2], "r1": [2]}))
    admit(made, workload("job", 2, request=REQUIRED_RACK))
    (host,) = places(made, "team/job")["set-0"]
    assert host == "r1-n0"
    fail(made, "team/job", host)
    assert places(made, "team/job") == {"set-0": {"r0-n0": 2}}
    admit(made, workload("second", 2))
    assert places(made, "team/second") == {"set-0": {"r0-n1": 2}}
    made.finish_workload("team/job", NOW)
    admit(made, workload("third", 2))
    assert places(made, "team/third") == {"set-0": {"r0-n0": 2}}


def test_pod_sets_do_not_move_into_each_other() -> None:
    made = world(racks({"r0": [4, 2, 2]}))
    admit(made, workload("job", 2, 2, request=REQUIRED_RACK))
    assert places(made, "team/job") == {"set-0": {"r0-n1": 2}, "set-1": {"r0-n2": 2}}
    both_on_one = world(racks({"r0": [4]}))
    admit(both_on_one, workload("job", 2, 2))
    for each in racks({"r1": [2, 2]}):
        both_on_one.set_node(each)
    fail(both_on_one, "team/job", "r0-n0")
    assert places(both_on_one, "team/job") == {"set-0": {"r1-n0": 2}, "set-1": {"r1-n1": 2}}


def test_a_slice_that_grows_comes_after_the_move() -> None:
    made = world(racks({"r0": [2, 2, 4]}))
    admit(made, workload("job", 2))
    (host,) = places(made, "team/job")["set-0"]
    made.set_workload(replace(workload("larger", 3), replaces="team/job"), NOW)
    result = fail(made, "team/job", host)
    assert [moved.workload for moved in result.replacements] == ["team/job"]
    assert result.admissions == (), "one decision on each in a cycle"
    assert [grown.replaces for grown in made.run_cycle(NOW).admissions] == ["team/job"]


def test_without_another_place_the_workload_is_evicted() -> None:
    made = world(racks({"r0": [2], "r1": [1]}))
    admit(made, workload("job", 2, request=REQUIRED_RACK))
    result = fail(made, "team/job", "r0-n0")
    (eviction,) = result.evictions
    assert (eviction.workload, eviction.reason) == ("team/job", EvictionReason.NODE_FAILURES)
    assert eviction.message == (
        'no replacement for the failed node r0-n0: topology "default" has room for 1 of 2 pods in one domain of "rack"'
    )
    assert result.replacements == ()
    evicted = current(made, "team/job")
    assert evicted.condition(ConditionType.EVICTED) is not None
    assert evicted.is_true(ConditionType.EVICTED)
    assert evicted.is_true(ConditionType.QUOTA_RESERVED)
    assert evicted.unhealthy_nodes == ()


def test_a_second_failed_node_evicts() -> None:
    """T69, although there would be room for all pods."""
    made = world(racks({"r0": [2, 2], "r1": [9]}))
    admit(made, workload("job", 4, request=TopologyRequest(unconstrained=True)))
    assert places(made, "team/job") == {"set-0": {"r1-n0": 4}}
    spread = world(racks({"r0": [2, 2]}))
    admit(spread, workload("job", 4))
    for each in racks({"r1": [9]}):
        spread.set_node(each)
    result = fail(spread, "team/job", "r0-n0", "r0-n1")
    assert [(eviction.reason, eviction.message) for eviction in result.evictions] == [
        (EvictionReason.NODE_FAILURES, "the nodes r0-n0, r0-n1 failed")
    ]


def test_a_failed_node_that_the_workload_does_not_use_changes_nothing() -> None:
    made = world(racks({"r0": [2, 9]}))
    admit(made, workload("job", 2))
    result = fail(made, "team/job", "r0-n1")
    assert not result.decided
    assert places(made, "team/job") == {"set-0": {"r0-n0": 2}}


def test_a_replacement_can_be_undone() -> None:
    made = world(racks({"r0": [2, 2, 2]}))
    admit(made, workload("job", 2))
    made.delete_node("r0-n0")
    point = made.savepoint()
    made.set_workload(replace(current(made, "team/job"), unhealthy_nodes=("r0-n0",)), NOW)
    assert made.run_cycle(NOW).replacements
    made.undo(point)
    assert places(made, "team/job") == {"set-0": {"r0-n0": 2}}
    assert not made.has_active()
    admit(made, workload("second", 4))
    assert places(made, "team/second") == {"set-0": {"r0-n1": 2, "r0-n2": 2}}


def test_room_that_the_pods_moved_to_is_not_given_away_in_the_same_cycle() -> None:
    made = world(racks({"r0": [2, 2]}))
    admit(made, workload("job", 2))
    made.delete_node("r0-n0")
    made.set_workload(workload("waiting", 2, created_at=1.0), NOW)
    made.set_workload(replace(current(made, "team/job"), unhealthy_nodes=("r0-n0",)), NOW)
    result = made.run_cycle(NOW)
    assert [replacement.workload for replacement in result.replacements] == ["team/job"]
    assert result.admissions == ()
    assert places(made, "team/job") == {"set-0": {"r0-n1": 2}}


def test_t73_the_room_of_a_node_that_was_just_reported_is_not_given_away_in_the_same_cycle() -> None:
    """Until the cycle ends, the pods are charged where they were and where they go."""
    made = world(racks({"r0": [2, 2, 2]}))
    admit(made, workload("job", 2))
    (host,) = places(made, "team/job")["set-0"]
    assert host == "r0-n0"
    for name in ("first", "second"):
        made.set_workload(workload(name, 2, created_at=1.0), NOW)
    made.set_workload(replace(current(made, "team/job"), unhealthy_nodes=(host,)), NOW)
    result = made.run_cycle(NOW)
    assert [replacement.workload for replacement in result.replacements] == ["team/job"]
    assert places(made, "team/job") == {"set-0": {"r0-n1": 2}}
    assert places(made, "team/first") == {"set-0": {"r0-n2": 2}}
    assert [admission.workload for admission in made.run_cycle(NOW).admissions] == ["team/second"], "and now it is"
    assert places(made, "team/second") == {"set-0": {"r0-n0": 2}}


def test_t72_pods_stay_on_a_node_that_is_ready_again() -> None:
    made = world(racks({"r0": [4]}))
    admit(made, workload("job", 2, request=REQUIRED_RACK))
    made.set_workload(replace(current(made, "team/job"), unhealthy_nodes=("r0-n0",)), NOW)
    result = made.run_cycle(NOW)
    (kept,) = result.replacements
    assert kept.message == "node r0-n0 is ready again; its pods stay"
    assert places(made, "team/job") == {"set-0": {"r0-n0": 2}}
    assert current(made, "team/job").unhealthy_nodes == ()


def test_a_topology_that_comes_back_finds_its_usage() -> None:
    made = world(racks({"r0": [2, 2]}))
    admit(made, workload("job", 2))
    made.delete_topology(RACKS_AND_HOSTS.name)
    made.set_topology(RACKS_AND_HOSTS)
    admit(made, workload("second", 2))
    assert places(made, "team/second") == {"set-0": {"r0-n1": 2}}
    made.delete_topology(RACKS_AND_HOSTS.name)
    made.finish_workload("team/job", NOW)
    made.set_topology(RACKS_AND_HOSTS)
    admit(made, workload("third", 2))
    assert places(made, "team/third") == {"set-0": {"r0-n0": 2}}


def test_a_pod_without_a_controller_keeps_its_place() -> None:
    made = world(racks({"r0": [2, 2]}))
    admit(made, replace(workload("pod", 1), single_pod=True))
    before = places(made, "team/pod")
    ((_, hosts),) = before.items()
    made.set_workload(replace(current(made, "team/pod"), unhealthy_nodes=tuple(hosts)), NOW)
    assert not made.has_active()
    assert places(made, "team/pod") == before
    stopped = release(evict(current(made, "team/pod"), EvictionReason.PREEMPTED, "", NOW), NOW)
    assert stopped.is_false(ConditionType.REQUEUED)
