"""Topology that waits for admission checks: the first pass reserves quota, the second one places the pods."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from scheduling.lifecycle.conditions import evict, sync_admitted
from scheduling.model.admission_check import AdmissionCheck, AdmissionCheckRule, AdmissionCheckState, PodSetUpdate
from scheduling.model.cohort import UserLimit
from scheduling.model.configuration import WaitForPodsReady
from scheduling.model.node import Node
from scheduling.model.selectors import Taint
from scheduling.model.topology import Topology
from scheduling.model.vocabulary import AdmissionCheckStatus, ConditionType, EvictionReason
from scheduling.model.workload import Workload
from scheduling.state.second_pass import MULTIKUEUE, PROVISIONING
from tests.scheduling.device_worlds import PLENTY, gpu_node, gpus
from tests.scheduling.topology_helpers import domains
from tests.scheduling.world_helpers import Builder, admissions, cycle, pod_set, preemption, preemptions

HOST = "kubernetes.io/hostname"
NEEDS_HOST = {"required": HOST}


def node(name: str, cpu: int = 4, **fields: Any) -> Node:
    return Node(name, {HOST: name, "pool": "tas"}, allocatable={"cpu": cpu * 1000, "pods": 110}, **fields)


def queue(controller: str = PROVISIONING, on_flavors: tuple[str, ...] = (), **fields: Any) -> Builder:
    """A ClusterQueue over a flavor `tas` with a topology of hosts, and one check."""
    configuration = fields.pop("configuration", {})
    builder = Builder(**configuration).flavor("tas", topology_name="hosts", node_labels={"pool": "tas"})
    builder.world.set_topology(Topology("hosts", (HOST,)))
    builder.world.set_admission_check(AdmissionCheck("check", controller))
    rules = (AdmissionCheckRule("check", on_flavors),)
    return builder.queue("q", fields.pop("quotas", {"tas": 20}), admission_checks=rules, **fields)


def current(builder: Builder, name: str) -> Workload:
    found = builder.world.workload(f"team/{name}")
    assert found is not None
    return found


def answer(builder: Builder, name: str, now: float, *updates: PodSetUpdate) -> None:
    """The check is Ready, as the engine tells the World."""
    state = AdmissionCheckState("check", AdmissionCheckStatus.READY, pod_set_updates=updates)
    told = sync_admitted(replace(current(builder, name), admission_checks=(state,)), now)
    builder.world.set_workload(told, now)


def delayed(builder: Builder, name: str) -> str:
    admission = current(builder, name).admission
    assert admission is not None
    return admission.pod_set_assignments[0].delayed_topology_request


def places(builder: Builder, name: str) -> dict[str, int]:
    admission = current(builder, name).admission
    assert admission is not None
    topology = admission.pod_set_assignments[0].topology_assignment
    return domains(topology) if topology is not None else {}


@pytest.mark.parametrize("controller", [PROVISIONING, MULTIKUEUE])
def test_quota_first_and_the_topology_once_the_checks_are_ready(controller: str) -> None:
    builder = queue(controller).pending("w", "q", 1, count=3, topology=NEEDS_HOST)
    (first,) = cycle(builder.world).admissions
    assert (first.admitted, first.second_pass) == (False, False)
    assert (delayed(builder, "w"), places(builder, "w")) == ("Pending", {})
    assert not builder.world.has_active()
    builder.world.set_node(node("n1"))
    answer(builder, "w", 1010.0)
    assert current(builder, "w").conditions[ConditionType.ADMITTED].reason == "PendingDelayedTopologyRequests"
    builder.world.advance(1010.5)
    assert not builder.world.has_active(), "the first attempt comes a second later"
    builder.world.advance(1011.0)
    assert builder.world.has_active()
    (second,) = cycle(builder.world, 1011.0).admissions
    assert (second.admitted, second.second_pass) == (True, True)
    assert (delayed(builder, "w"), places(builder, "w")) == ("Ready", {"n1": 3})
    assert current(builder, "w").is_true(ConditionType.ADMITTED)
    assert not builder.world.has_active()
    assert builder.world.cluster_queue_status("q").usage[0].used == 3000, "its quota was charged once"


@pytest.mark.parametrize(
    ("controller", "on_flavors", "waits"),
    [
        ("example.com/billing", (), False),
        (PROVISIONING, ("other",), False),
        (PROVISIONING, ("tas",), True),
        (MULTIKUEUE, (), True),
    ],
)
def test_which_checks_delay(controller: str, on_flavors: tuple[str, ...], waits: bool) -> None:
    builder = queue(controller, on_flavors, quotas={"tas": 20, "other": 20})
    builder.world.set_node(node("n1"))
    cycle(builder.pending("w", "q", 1, topology=NEEDS_HOST).world)
    assert (delayed(builder, "w"), places(builder, "w")) == (("Pending", {}) if waits else ("", {"n1": 1}))


def test_a_pod_set_that_no_check_delays_is_placed_at_once_and_stays() -> None:
    builder = queue(on_flavors=("tas",))
    builder.flavor("other", topology_name="hosts", node_labels={"pool": "other"})
    rules = (AdmissionCheckRule("check", ("tas",)),)
    builder.queue("q", {"tas": 20, "other": 20}, admission_checks=rules)
    for name in ("o1", "o2"):
        builder.world.set_node(replace(node(name), labels={HOST: name, "pool": "other"}))
    pod_sets = [
        pod_set(1, count=3, name=name, topology=NEEDS_HOST, spec={"nodeSelector": {"pool": pool}})
        for name, pool in (("late", "tas"), ("early", "other"))
    ]
    cycle(builder.pending("w", "q", pod_sets).world)
    admission = current(builder, "w").admission
    assert admission is not None
    late, early = admission.pod_set_assignments
    assert (late.delayed_topology_request, late.topology_assignment) == ("Pending", None)
    assert (early.delayed_topology_request, early.topology_assignment is not None) == ("", True)
    builder.world.set_node(node("n1"))
    answer(builder, "w", 1000.0)
    (second,) = cycle(builder.world, 1001.0).admissions
    assert second.pod_sets[1] == early, "it stays where it is"
    assert places(builder, "w") == {"n1": 3}
    builder.world.finish_workload("team/w", 1002.0)
    cycle(builder.pending("next", "q", [replace(pod_sets[1], count=4)]).world, 1003.0)
    cycle(builder.pending("last", "q", [replace(pod_sets[1], count=4)]).world, 1004.0)
    assert {next(iter(places(builder, name))) for name in ("next", "last")} == {"o1", "o2"}, "all is free again"


def test_it_is_tried_again_after_two_four_up_to_thirty_seconds() -> None:
    builder = queue().pending("w", "q", 1, count=3, topology=NEEDS_HOST)
    cycle(builder.world)
    answer(builder, "w", 1000.0)
    tried, now, told = [], 1000.0, 0
    while now < 1130.0:
        now += 0.5
        builder.world.advance(now)
        if builder.world.has_active():
            result = cycle(builder.world, now)
            assert not result.admissions
            told += len(result.second_pass_failures)
            tried.append(now - 1000.0)
    assert tried == [1, 3, 7, 15, 31, 61, 91, 121]
    assert told == 1, "the same reason is said once"
    condition = current(builder, "w").conditions[ConditionType.ADMITTED]
    assert condition.message.startswith("There are pending delayed topology requests: pod set main: topology")
    assert sync_admitted(current(builder, "w"), now) is current(builder, "w"), "what was said stays"
    builder.world.set_node(node("n1"))
    assert admissions(cycle(builder.world, 1151.0)) == ["w"]


def test_others_take_no_quota_meanwhile_and_no_room_afterwards() -> None:
    builder = queue(quotas={"tas": 6}).pending("w", "q", 1, count=4, topology=NEEDS_HOST)
    builder.world.set_node(node("n1"))
    cycle(builder.world)
    answer(builder, "w", 1000.0)
    cycle(builder.pending("other", "q", 1, count=4, topology=NEEDS_HOST, at=1.0).world, 1001.0)
    assert places(builder, "w") == {"n1": 4}
    assert current(builder, "other").admission is None


def test_two_second_passes_of_one_cycle_do_not_take_the_same_room() -> None:
    builder = queue()
    for name in ("n1", "n2"):
        builder.world.set_node(node(name))
    for number, name in enumerate(("a", "b", "c")):
        cycle(builder.pending(name, "q", 1, count=3, topology=NEEDS_HOST, at=float(number)).world)
    for name in ("a", "b", "c"):
        answer(builder, name, 1000.0)
    result = cycle(builder.world, 1001.0)
    assert admissions(result) == ["a", "b"]
    assert {**places(builder, "a"), **places(builder, "b")} == {"n1": 3, "n2": 3}
    assert [failure.workload for failure in result.second_pass_failures] == ["team/c"]


def test_it_preempts_for_its_room() -> None:
    builder = queue(preemption=preemption(within="LowerPriority"))
    builder.world.set_node(node("n1"))
    cycle(builder.pending("low", "q", 1, count=3, topology=NEEDS_HOST).world)
    answer(builder, "low", 1000.0)
    cycle(builder.world, 1001.0)
    cycle(builder.pending("high", "q", 1, count=3, topology=NEEDS_HOST, priority=9).world, 1002.0)
    answer(builder, "high", 1002.0)
    assert preemptions(cycle(builder.world, 1003.0)) == {"low": "InClusterQueue"}
    builder.world.release_workload("team/low", 1004.0)
    builder.world.delete_workload("team/low")
    assert admissions(cycle(builder.world, 1005.0)) == ["high"]


def test_block_admission_exempts_it() -> None:
    configuration = {"wait_for_pods_ready": WaitForPodsReady(block_admission=True)}
    builder = queue(configuration=configuration).pending("w", "q", 1, topology=NEEDS_HOST)
    builder.world.set_node(node("n1"))
    cycle(builder.world)
    answer(builder, "w", 1000.0)
    cycle(builder.pending("next", "q", 1, topology=NEEDS_HOST).world, 1000.5)
    assert current(builder, "next").admission is None
    builder.world.advance(1001.0)
    assert builder.world.has_active()
    assert admissions(cycle(builder.world, 1001.0)) == ["w"]


def test_a_slice_that_grows_comes_after_the_one_that_is_placed() -> None:
    builder = queue().pending("w", "q", 1, count=2, topology=NEEDS_HOST)
    cycle(builder.world)
    builder.world.set_node(node("n1"))
    answer(builder, "w", 1010.0)
    builder.pending("larger", "q", 1, count=3, topology=NEEDS_HOST, replaces="team/w")
    assert admissions(cycle(builder.world, 1011.0)) == ["w"], "one decision on each in a cycle"
    assert current(builder, "w").is_true(ConditionType.ADMITTED)
    (grown,) = cycle(builder.world, 1011.0).admissions
    assert (grown.workload, grown.replaces) == ("team/larger", "team/w")


def test_a_pass_is_over_for_one_that_an_earlier_pass_preempts() -> None:
    builder = queue(quotas={"tas": 8}, preemption=preemption("LowerPriority"))
    for name, priority in (("low", 0), ("high", 10)):
        builder.pending(name, "q", 1, count=4, topology=NEEDS_HOST, priority=priority)
        cycle(builder.world)
    builder.world.set_node(node("n1"))
    for name in ("low", "high"):
        answer(builder, name, 1010.0)
    assert admissions(cycle(builder.world, 1011.0)) == ["high"]
    assert not current(builder, "low").is_true(ConditionType.ADMITTED)


def test_an_eviction_ends_it() -> None:
    builder = queue().pending("w", "q", 1, topology=NEEDS_HOST)
    cycle(builder.world)
    answer(builder, "w", 1000.0)
    stopped = evict(current(builder, "w"), EvictionReason.ADMISSION_CHECK, "", 1000.5)
    builder.world.set_workload(stopped, 1000.5)
    builder.world.advance(1002.0)
    assert not builder.world.has_active()


def test_it_is_not_tried_while_it_is_preempted() -> None:
    builder = queue(quotas={"tas": 4}, preemption=preemption(within="LowerPriority"))
    cycle(builder.pending("low", "q", 1, count=3, topology=NEEDS_HOST).world)
    answer(builder, "low", 1000.0)
    assert preemptions(cycle(builder.pending("high", "q", 1, count=3, topology=NEEDS_HOST, priority=9).world)) == {
        "low": "InClusterQueue"
    }
    builder.world.set_node(node("n1"))
    builder.world.advance(1002.0)
    assert admissions(cycle(builder.world, 1002.0)) == []
    assert places(builder, "low") == {}


def test_it_can_be_undone() -> None:
    builder = queue().pending("w", "q", 1, count=3, topology=NEEDS_HOST)
    builder.world.set_node(node("n1"))
    cycle(builder.world)
    answer(builder, "w", 1000.0)
    point = builder.world.savepoint()
    assert admissions(cycle(builder.world, 1001.0)) == ["w"]
    builder.world.undo(point)
    assert places(builder, "w") == {}
    point = builder.world.savepoint()
    builder.world.commit(point)
    assert admissions(cycle(builder.world, 1001.0)) == ["w"]
    cycle(builder.pending("other", "q", 1, count=2, topology=NEEDS_HOST).world, 1002.0)
    answer(builder, "other", 1002.0)
    assert len(cycle(builder.world, 1003.0).second_pass_failures) == 1, "one cpu is left"


def test_node_selectors_and_tolerations_of_a_check_count() -> None:
    builder = queue().pending("w", "q", 1, topology=NEEDS_HOST)
    builder.world.set_node(node("n1"))
    provisioned = node("n2", taints=(Taint("provisioned", "yes"),))
    builder.world.set_node(replace(provisioned, labels={**provisioned.labels, "request": "w-1"}))
    cycle(builder.world)
    toleration = {"key": "provisioned", "operator": "Exists"}
    answer(builder, "w", 1000.0, PodSetUpdate("main", node_selector={"request": "w-1"}, tolerations=(toleration,)))
    assert admissions(cycle(builder.world, 1001.0)) == ["w"]
    assert places(builder, "w") == {"n2": 1}


def host_with_devices(name: str) -> Node:
    return replace(gpu_node(name), labels={HOST: name})


class TestDevices:
    """Where devices are registered, they are placed in the second pass as well."""

    def gpu_queue(self, *, topology: bool) -> Builder:
        builder = Builder()
        if topology:
            builder.flavor("gpu", topology_name="hosts")
            builder.world.set_topology(Topology("hosts", (HOST,)))
        builder.world.set_admission_check(AdmissionCheck("check", PROVISIONING))
        builder.queue("q", {"gpu": PLENTY}, admission_checks=(AdmissionCheckRule("check"),))
        builder.world.set_node(replace(host_with_devices("full"), unschedulable=True))
        return builder

    @pytest.mark.parametrize("topology", [True, False])
    def test_on_the_nodes_that_were_provisioned(self, topology: bool) -> None:
        builder = self.gpu_queue(topology=topology)
        (first,) = cycle(builder.pending("w", "q", [gpus(pods=2)]).world).admissions
        assert (first.placement, delayed(builder, "w")) == (None, "Pending")
        answer(builder, "w", 1000.0)
        result = cycle(builder.world, 1001.0)
        assert len(result.second_pass_failures) == 1
        builder.world.set_node(host_with_devices("new"))
        (second,) = cycle(builder.world, 1003.0).admissions
        assert second.placement is not None
        assert [pod.node for pod in second.placement.pods] == ["new", "new"]
        assert builder.world.device_usage("new", "new-gpu0")[0] == 2
        assert (current(builder, "w").placement, delayed(builder, "w")) == (second.placement, "Ready")
        builder.world.finish_workload("team/w", 1004.0)
        assert builder.world.device_usage("new", "new-gpu0")[0] == 0


def test_checks_that_were_ready_before_the_reservation_have_a_second_pass_too() -> None:
    """A stopped queue takes quota back and leaves the checks' answers."""
    builder = queue().pending("w", "q", 1, count=3, topology=NEEDS_HOST)
    ready = AdmissionCheckState("check", AdmissionCheckStatus.READY)
    builder.world.set_workload(replace(current(builder, "w"), admission_checks=(ready,)), 1000.0)
    builder.world.set_node(node("n1"))
    (first,) = cycle(builder.world, 1000.0).admissions
    assert (first.admitted, delayed(builder, "w")) == (False, "Pending")
    builder.world.advance(1001.0)
    assert builder.world.has_active()
    (second,) = cycle(builder.world, 1001.0).admissions
    assert (second.admitted, places(builder, "w")) == (True, {"n1": 3})


def test_a_second_pass_that_preempts_counts_for_its_user_once() -> None:
    """Its workload holds quota already, whether or not its user's sums are known before the cycle."""
    two = (UserLimit(users=("*",), workloads=2),)
    builder = queue(preemption=preemption(within="LowerPriority"), user_limits=two)
    builder.world.set_node(node("n1"))
    for name, user, priority in (("low", "bob", 0), ("high", "ada", 9)):
        builder.pending(name, "q", 1, count=3, topology=NEEDS_HOST, priority=priority, submitted_by=user)
        cycle(builder.world, 1001.0)
        answer(builder, name, 1001.0)
        if user == "bob":
            cycle(builder.world, 1002.0)
    builder.cohort("unrelated")  # sums of users are computed again after an edit
    builder.pending("ada1", "q", 1, submitted_by="ada", at=5.0)
    result = cycle(builder.world, 1003.0)
    assert preemptions(result) == {"low": "InClusterQueue"}
    assert admissions(result) == ["ada1"]
    builder.pending("ada2", "q", 1, submitted_by="ada", at=6.0)
    assert [admissions(cycle(builder.world, 1004.0 + step)) for step in range(3)] == [[], [], []]
