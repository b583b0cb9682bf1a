"""Whatever was tried since a savepoint: an undone World decides and shows the same as one that never saw it."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduling.devices.claims.claim_reading import read_claim_spec, read_class, read_pools
from scheduling.devices.claims.objects import DeviceObjects
from scheduling.devices.search.namespace_quota import NamespaceQuota
from scheduling.model.admission_check import AdmissionCheck, AdmissionCheckRule
from scheduling.model.configuration import AdmissionFairSharing, Configuration, FairSharing, WaitForPodsReady
from scheduling.model.limit_range import LimitRange, LimitRangeItem
from scheduling.model.local_queue import LocalQueue
from scheduling.model.node import Node
from scheduling.model.pod_defaults import RuntimeClass
from scheduling.model.resource_flavor import ResourceFlavor
from scheduling.model.selectors import HOSTNAME_LABEL, LabelSelector, Taint, TaintEffect
from scheduling.model.topology import Topology
from scheduling.model.vendor import NVIDIA
from scheduling.model.vocabulary import AdmissionMode, PlacementScope, StopPolicy
from scheduling.reservations.reservation import Admittance, Reservation
from scheduling.run_until_idle import run_until_idle
from scheduling.world import World
from tests.claim_objects import DRIVER, claim_template, driver_class, request, resource_slice
from tests.scheduling.device_worlds import GPU, MEMORY, RACK, gpus, rack_node
from tests.scheduling.world_helpers import NAMESPACE, Builder, pod_set, preemption, workload

NOW = 1000.0
NODES = ("n0", "n1", "n2", "n3")
QUEUES = ("research", "production", "racks")
CONFIGURATIONS = (
    Configuration(),
    Configuration(fair_sharing=FairSharing()),
    Configuration(admission_fair_sharing=AdmissionFairSharing(60.0, 10.0)),
    Configuration(wait_for_pods_ready=WaitForPodsReady(block_admission=True), placement=PlacementScope.ALL),
    Configuration(balanced_placement=True, exclude_resource_prefixes=("cpu",)),
)
"""What the cluster's configuration may become."""
Step = tuple[int, int, int]
"""An operation, and two numbers that choose its object and its value."""


def node(name: str, size: int, *, ready: bool = True) -> Node:
    return rack_node(name, f"r{int(name[1:]) // 2}", 1 + size % 3, ready=ready)


def quotas(size: int) -> dict[str, dict[str, Any]]:
    return {
        "one": {GPU: 10 * size, MEMORY: 16_000 * size, "cpu": (size, size % 4, None)},
        "two": {GPU: 10, MEMORY: 16_000, "cpu": size % 3},
    }


def set_queue(builder: Builder, name: str, size: int) -> None:
    """A ClusterQueue of that size; the policies follow from it, too."""
    fields: dict[str, Any] = {"preemption": preemption("LowerPriority", "Any" if size % 2 else "Never")}
    fields["strict"] = size % 5 == 4
    if size % 7 == 6:
        fields["stop_policy"] = StopPolicy.HOLD_AND_DRAIN
    if size % 4 == 3:
        fields["admission_mode"] = AdmissionMode.USAGE_BASED_ADMISSION_FAIR_SHARING
    if size % 6 == 5:
        fields["admission_checks"] = (AdmissionCheckRule("quality"),)
    if size % 8 == 7:
        fields["namespace_selector"] = LabelSelector({"team": "other"})
    found: Any = {"tas": {GPU: 10 * size, MEMORY: 16_000 * size, "cpu": size}} if name == "racks" else quotas(size)
    builder.queue(name, found, ("company", "other", "")[size % 3], **fields)


def submit(builder: Builder, number: int, value: int) -> None:
    """One of the workloads w0-w9: of cpu, of devices, in racks, or of claims."""
    queue = QUEUES[number % 3]
    fields: dict[str, Any] = {"priority": value % 3, "at": float(number)}
    if number == 9:
        spec = {"resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "gpu"}]}
        pods = [pod_set({"cpu": 1}, spec={**pod_set({"cpu": 1}).template.manifest["spec"], **spec})]
    elif queue == "racks":
        pods = [gpus(1, 4000 * (1 + value % 4), pods=1 + value % 3, topology={"required": RACK})]
    elif value % 2:
        pods = [gpus(1, 4000 * (1 + value % 4), pods=1 + value % 2)]
    else:
        pods = [pod_set({"cpu": 1 + value % 3}, count=1 + value % 2)]
    builder.world.set_workload(workload(f"w{number}", queue, pods, **fields), NOW)


def claimable(name: str, value: int) -> DeviceObjects:
    """A class, some devices on one node, and a template for one of them, with or without a selector."""
    asked = request(1, f'device.attributes["{DRIVER}"].model == "A100"') if value % 2 else request(1)
    return DeviceObjects(
        {DRIVER: read_class(driver_class())},
        read_pools([resource_slice(name, 1 + value % 3)]),
        {f"{NAMESPACE}/gpu": read_claim_spec(claim_template("gpu", asked)["spec"]["spec"])},
    )


def build(sizes: list[int]) -> Builder:
    builder = Builder()
    world = builder.world
    world.set_topology(Topology("racks", (RACK, HOSTNAME_LABEL)))
    builder.flavor("tas", topology_name="racks").flavor("one", node_labels={RACK: "r0"}).flavor("two")
    builder.cohort("company", quotas={"one": {"cpu": 2}}).cohort("other", "company")
    world.set_admission_check(AdmissionCheck("quality", "example.com/check", active=True))
    world.set_device_objects(claimable("n0", 2))
    for name, size in zip(NODES, sizes, strict=False):
        world.set_node(node(name, size))
    for name, size in zip(QUEUES, sizes, strict=False):
        set_queue(builder, name, size)
    for number in range(7):
        submit(builder, number, sizes[number % len(sizes)] + number)
    return builder


def change(builder: Builder, step: Step) -> None:
    """One change of the World, or some cycles."""
    world = builder.world
    kind, which, value = step
    operations: list[Callable[[], object]] = [
        lambda: run(world, value % 4),
        lambda: set_queue(builder, QUEUES[which % 3], value),
        lambda: world.delete_cluster_queue(QUEUES[which % 3]),
        lambda: builder.cohort("company", "" if value % 2 else "root", {"one": {"cpu": value}}),
        lambda: world.delete_cohort(("company", "other")[which % 2]),
        lambda: builder.cohort("other", ("", "company")[which % 2]),
        lambda: world.set_node(node(NODES[which % 4], value, ready=value % 5 != 4)),
        lambda: world.delete_node(NODES[which % 4]),
        lambda: submit(builder, which % 10, value),
        lambda: world.delete_workload(f"{NAMESPACE}/w{which % 10}"),
        lambda: world.scale_down(f"{NAMESPACE}/w{which % 10}", NOW, pods_may_run=False),
        lambda: world.set_configuration(CONFIGURATIONS[which % len(CONFIGURATIONS)]),
        lambda: world.set_resource_flavor(
            ResourceFlavor(
                ("one", "two", "tas")[which % 3],
                {RACK: f"r{value % 2}"} if value % 3 else {},
                (Taint("dedicated", "ml", TaintEffect.NO_SCHEDULE),) if value % 4 == 3 else (),
                topology_name="racks" if which % 3 == 2 or value % 5 == 4 else None,
            )
        ),
        lambda: world.delete_resource_flavor(("one", "two", "tas")[which % 3]),
        lambda: world.set_topology(Topology("racks", ((RACK,), (RACK, HOSTNAME_LABEL))[value % 2])),
        lambda: world.delete_topology("racks"),
        lambda: world.set_local_queue(
            LocalQueue(
                NAMESPACE,
                QUEUES[which % 3],
                QUEUES[value % 3],
                StopPolicy.HOLD if value % 4 == 3 else StopPolicy.NONE,
                fair_weight=1.0 + value,
            )
        ),
        lambda: world.delete_local_queue(f"{NAMESPACE}/{QUEUES[which % 3]}"),
        lambda: world.set_admission_check(AdmissionCheck("quality", "example.com/check", active=bool(value % 2))),
        lambda: world.delete_admission_check("quality"),
        lambda: world.set_namespace(NAMESPACE, {"team": "other"} if value % 2 else {}),
        lambda: world.delete_namespace(NAMESPACE),
        lambda: world.set_resource_quota(NamespaceQuota(NAMESPACE, "gpus", {f"limits.{MEMORY}": 4000 * value})),
        lambda: world.delete_resource_quota(f"{NAMESPACE}/gpus"),
        lambda: world.set_limit_range(
            LimitRange(
                NAMESPACE,
                "defaults",
                (
                    LimitRangeItem.from_manifest(
                        {"type": "Container", "defaultRequest": {"cpu": "1"}, "max": {"cpu": str(value + 1)}}
                    ),
                ),
            )
        ),
        lambda: world.delete_limit_range(f"{NAMESPACE}/defaults"),
        lambda: world.set_runtime_class(RuntimeClass("kata", {"cpu": str(value)})),
        lambda: world.delete_runtime_class("kata"),
        lambda: world.set_vendors((NVIDIA,) if value % 2 else ()),
        lambda: world.set_placement_policies(("binpack", "spread", "fgd")[value % 3], ("spread", "binpack")[which % 2]),
        lambda: world.set_device_objects(claimable(NODES[which % 4], value)),
        lambda: world.sample_usage(NOW + value),
        lambda: world.set_reservation(
            Reservation(
                f"r{which % 2}",
                NOW + 30.0 * (value % 3),
                NOW + 100.0,
                frozenset({NODES[value % 4]}),
                {RACK: "r1"} if value % 4 == 3 else {},
                allowed=Admittance(cluster_queues=frozenset({QUEUES[which % 3]}) if value % 2 else frozenset()),
            )
        ),
        lambda: world.delete_reservation(f"r{which % 2}"),
    ]
    operations[kind % len(operations)]()


OPERATIONS = 34
STEPS = st.lists(st.tuples(st.integers(0, OPERATIONS - 1), st.integers(0, 11), st.integers(0, 11)), max_size=8)


def run(world: World, cycles: int) -> None:
    """Some cycles; preempted and evicted workloads stop after each."""
    for _ in range(cycles):
        result = world.run_cycle(NOW)
        for key in [*(each.workload for each in result.preemptions), *(each.workload for each in result.evictions)]:
            world.release_workload(key, NOW)


def shown(world: World) -> dict[str, object]:
    """All that can be seen of a World."""
    world.has_active()
    keys = [f"{NAMESPACE}/w{number}" for number in range(10)]
    known = [key for key in keys if world.workload(key) is not None]
    return {
        "queues": [world.cluster_queue_status(name) for name in world.cluster_queue_names()],
        "cohorts": [world.cohort_status(name) for name in world.cohort_names()],
        "problems": world.queue_problems(),
        "pending": [world.pending(name) for name in world.cluster_queue_names()],
        "counts": [world.pending_counts(name) for name in world.cluster_queue_names()],
        "workloads": {key: (world.workload(key), world.queue_state(key)) for key in known},
        "explanations": [world.explain(key) for key in known],
        "fragmentation": world.fragmentation(),
        "devices": [world.device_usage(name, f"{name}-0") for name in NODES],
        "holders": sorted(world.device_holders()),
        "shares": world.fair_sharing_usage(),
        "drained": world.drained_workloads(),
        "typical": world.typical_pods(),
        "skips": world.preemption_skips(),
        "configuration": world.configuration,
        "reservations": {name: world.objects.reserved_nodes(name) for name in world.objects.reservations},
        "windows": {key: world.evicting_window(key, NOW) for key in known},
    }


def decided(world: World) -> list[object]:
    """The decisions until nothing more happens, with reasons and messages."""
    found: list[object] = []
    for result in run_until_idle(world, NOW + 60.0):
        found.append(
            (
                result.admissions,
                result.preemptions,
                result.evictions,
                result.replacements,
                sorted(map(repr, result.outcomes)),
            )
        )
        for key in [*(each.workload for each in result.preemptions), *(each.workload for each in result.evictions)]:
            world.release_workload(key, NOW + 60.0)
    return found


def assert_same(world: World, reference: World) -> None:
    """Both show the same, and decide the same from here."""
    assert shown(world) == shown(reference)
    assert decided(world) == decided(reference)
    assert shown(world) == shown(reference)


SIZES = st.lists(st.integers(0, 11), min_size=4, max_size=4)


@given(SIZES, STEPS, STEPS, st.integers(0, 3))
@settings(max_examples=60)
def test_an_undone_world_is_one_that_never_saw_the_changes(
    sizes: list[int], before: list[Step], tried: list[Step], cycles: int
) -> None:
    builder, reference = build(sizes), build(sizes)
    for each in (builder, reference):
        for step in before:
            change(each, step)
        run(each.world, cycles)
    point = builder.world.savepoint()
    for step in tried:
        change(builder, step)
    builder.world.undo(point)
    reference.world.commit(reference.world.savepoint())
    assert_same(builder.world, reference.world)


@given(SIZES, STEPS, STEPS)
@settings(max_examples=30)
def test_trials_one_after_the_other_leave_nothing_behind(
    sizes: list[int], first: list[Step], second: list[Step]
) -> None:
    builder, reference = build(sizes), build(sizes)
    for steps in (first, second, first):
        point = builder.world.savepoint()
        for step in (*steps, (0, 0, 3)):
            change(builder, step)
        builder.world.undo(point)
    assert_same(builder.world, reference.world)


def test_a_batch_without_a_change_of_configuration_copies_no_structure() -> None:
    """Undo that covers configuration must not cost the batches that change workloads only: a fixed number of steps at
    the savepoint, and one more for a changed quota."""
    builder = build([6, 6, 6, 6])
    journal = builder.world._state.journal  # how many steps were noted is shown nowhere else
    point = builder.world.savepoint()
    at_the_savepoint = journal.step_count
    builder.world.set_node(node("n0", 1))
    of_a_node = journal.step_count - at_the_savepoint
    builder.world.undo(point)
    point = builder.world.savepoint()
    assert journal.step_count == at_the_savepoint <= 8
    builder.cohort("company", quotas={"one": {"cpu": 3}})
    builder.cohort("company", quotas={"one": {"cpu": 4}})
    assert journal.step_count == at_the_savepoint + 1
    builder.world.undo(point)
    assert of_a_node == 1


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, pickle.dumps])
def test_a_world_refuses_to_be_copied_and_says_what_to_do_instead(copied: Callable[[World], object]) -> None:
    with pytest.raises(TypeError, match=r"cannot be copied: try changes between savepoint\(\) and undo\(\)"):
        copied(Builder().world)


def test_the_values_of_a_world_are_copied_as_ever() -> None:
    builder = build([4, 4, 4, 4])
    found = builder.world.workload(f"{NAMESPACE}/w0")
    assert found is not None
    assert copy.deepcopy(found) == replace(found)
