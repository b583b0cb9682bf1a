"""Quota and topology in one cycle: what a placement that fails, or that only preemption makes possible, leads to."""

from collections import Counter
from dataclasses import replace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from scheduling.model.cluster_queue import ClusterQueue
from scheduling.model.cohort import FlavorQuotas, ResourceGroup, ResourceQuota
from scheduling.model.local_queue import LocalQueue
from scheduling.model.resource_flavor import ResourceFlavor
from scheduling.model.selectors import LabelSelector, Taint, Toleration, TolerationOperator
from scheduling.model.topology import SliceConstraint, TopologyRequest
from scheduling.model.vocabulary import ConditionType, PendingReason
from scheduling.world import World
from tests.scheduling.topology_helpers import HOST, HOSTS, RACK, RACKS, node, racks
from tests.scheduling.topology_worlds import NOW, admit, current, places, workload, world


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
        found = made.explain("team/large")
        (verdict,) = found.flavors
        assert (found.rule, verdict.rule) == ("Topology", "Topology")
        assert 'topology "hosts" has room for 0 of 1 pods' in verdict.message
        assert (verdict.domains, verdict.domains_refused) == (4, {"resource cpu": 4})

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

    def test_preempted_workloads_count_as_gone_for_other_cohorts_too(self) -> None:
        made = world([node("n0", 8)], topology=HOSTS, preemption=True)
        quotas = (FlavorQuotas("tas", {"cpu": ResourceQuota(100_000)}),)
        made.set_cluster_queue(
            ClusterQueue(
                "other", resource_groups=(ResourceGroup(("cpu",), quotas),), namespace_selector=LabelSelector()
            )
        )
        made.set_local_queue(LocalQueue("team", "other", "other"))
        admit(made, workload("victim", 1, cpu=6))
        made.set_workload(workload("preemptor", 1, cpu=5, priority=9, created_at=1.0), NOW)
        made.set_workload(replace(workload("beside", 1, cpu=2, created_at=2.0), queue_name="other"), NOW)
        result = made.run_cycle(NOW)
        assert [preemption.workload for preemption in result.preemptions] == ["team/victim"]
        assert [admission.workload for admission in result.admissions] == ["team/beside"]

    def test_a_new_node_wakes_workloads_that_wait_for_it(self) -> None:
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


def test_flavors_are_placed_in_the_order_of_their_names_not_of_the_pod_sets() -> None:
    made = world([node("n0", 2), node("n1", 4)], topology=HOSTS)
    taint = Taint("reserved")
    made.set_resource_flavor(ResourceFlavor("alpha", {"pool": "tas"}, (taint,), topology_name="hosts"))
    made.set_resource_flavor(ResourceFlavor("beta", {"pool": "tas"}, topology_name="hosts"))
    quotas = tuple(FlavorQuotas(name, {"cpu": ResourceQuota(100_000)}) for name in ("alpha", "beta"))
    made.set_cluster_queue(
        ClusterQueue("cq", resource_groups=(ResourceGroup(("cpu",), quotas),), namespace_selector=LabelSelector())
    )
    first, second = workload("both", 2, 2).pod_sets
    tolerating = replace(second.template, tolerations=(Toleration("reserved", TolerationOperator.EXISTS),))
    admit(made, replace(workload("both"), pod_sets=(first, replace(second, template=tolerating))))
    assert places(made, "team/both") == {"set-0": {"n1": 2}, "set-1": {"n0": 2}}


def test_implied_topology_where_every_flavor_has_one() -> None:
    made = world([node("a", 2)], topology=HOSTS)
    admit(made, workload("plain", 2, request=None))
    assert places(made, "team/plain") == {"set-0": {"a": 2}}


requests = st.sampled_from(
    [
        None,
        TopologyRequest(required=HOST),
        TopologyRequest(required=RACK),
        TopologyRequest(preferred=RACK),
        TopologyRequest(preferred=RACK, slices=(SliceConstraint(HOST, 2),)),
    ]
)
submissions = st.tuples(
    st.just("submit"), st.integers(1, 6), st.integers(1, 2), st.integers(0, 2), requests, st.booleans()
)
steps = st.lists(st.one_of(submissions, st.just(("finish",)), st.just(("cycle",))), max_size=25)


def used_by_admissions(made: World, names: list[str]) -> dict[str, dict[str, int]]:
    """Host -> amounts, from what the workloads that hold quota were told."""
    used: dict[str, Counter[str]] = {}
    for name in names:
        found = made.workload(f"team/{name}")
        if found is None or not found.holds_quota:
            continue
        for pod_set, hosts in places(made, found.key).items():
            (template,) = (ps.template for ps in found.pod_sets if ps.name == pod_set)
            cpu = template.containers[0].requests["cpu"] // 10**6
            for host, count in hosts.items():
                used.setdefault(host, Counter()).update({"cpu": cpu * count, "pods": count})
    return {host: dict(amounts) for host, amounts in used.items()}


def run(made: World, script: list[Any], names: list[str]) -> None:
    for step in script:
        if step[0] == "submit":
            _, count, cpu, priority, request, two = step
            counts = (count, 1) if two and not (request and request.slices) else (count + count % 2,)
            names.append(f"w{len(names)}")
            created_at = float(len(names))
            submitted = workload(names[-1], *counts, request=request, cpu=cpu, priority=priority, created_at=created_at)
            made.set_workload(submitted, NOW)
        elif step[0] == "finish":
            holding = [n for n in names if (w := made.workload(f"team/{n}")) is not None and w.holds_quota]
            if holding:
                made.finish_workload(f"team/{holding[0]}", NOW)
        else:
            for preemption in made.run_cycle(NOW).preemptions:
                made.release_workload(preemption.workload, NOW)


@given(st.lists(st.tuples(st.sampled_from(["r0", "r1"]), st.integers(1, 5)), min_size=1, max_size=5), steps, steps)
@settings(deadline=None)
def test_leaves_are_charged_with_what_admissions_say_after_a_restart_too_and_an_undo_takes_it_back(
    hosts: list[tuple[str, int]], before: list[Any], after: list[Any]
) -> None:
    nodes = [node(f"n{i}", cpu, rack=rack) for i, (rack, cpu) in enumerate(hosts)]
    made = world(nodes, preemption=True)
    names: list[str] = []

    def charged(one: World = made) -> dict[str, dict[str, int]]:
        usage = one._state.topology_flavors["tas"].usage
        return {leaf[0]: dict(amounts) for leaf, amounts in usage.items() if amounts}

    run(made, before, names)
    assert charged() == used_by_admissions(made, names)
    kept, known = charged(), list(names)
    point = made.savepoint()
    run(made, after, names)
    assert charged() == used_by_admissions(made, names)
    restarted = world(nodes, preemption=True)
    for name in names:
        found = made.workload(f"team/{name}")
        if found is not None:
            restarted.set_workload(found, NOW)
    assert charged(restarted) == charged()
    for host, amounts in charged().items():
        assert amounts["cpu"] <= hosts[int(host[1:])][1] * 1000
    made.undo(point)
    assert charged() == kept
    assert used_by_admissions(made, known) == kept
