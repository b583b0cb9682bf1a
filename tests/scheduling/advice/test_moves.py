"""Advice from a whole world: reports per flavor, and moves over the flavors that a workload may get."""

from __future__ import annotations

from typing import Any

import pytest

from scheduling.devices.search.namespace_quota import NamespaceQuota
from scheduling.model.device import Device
from scheduling.model.node import Node
from scheduling.model.selectors import LabelSelector
from scheduling.model.workload import PodSet
from scheduling.reservations.reservation import Reservation
from tests.scheduling.world_helpers import Builder, pod_set, reason_of, settled

GPU, MEMORY = "nvidia.com/gpu", "nvidia.com/gpumem"
PLENTY = {GPU: 100, MEMORY: 10_000_000}


def a_node(name: str, **labels: str) -> Node:
    device = Device(f"{name}-0", 0, "NVIDIA", "NVIDIA A100", 10, 16_000, 100)
    return Node(name, labels, devices=(device,))


def gpus(memory: int, **fields: Any) -> PodSet:
    container = {"name": "c", "resources": {"limits": {GPU: "1", MEMORY: str(memory)}}}
    return pod_set({}, spec={"containers": [container]}, **fields)


def two_flavors() -> Builder:
    """Flavor a reaches node a1, flavor b nodes b1 and b2; the queue tries a first."""
    builder = Builder().flavor("a", node_labels={"pool": "a"}).flavor("b", node_labels={"pool": "b"})
    builder.queue("q", {"a": PLENTY, "b": PLENTY})
    builder.world.set_placement_policies("spread", "spread")
    for name in ("a1", "b1", "b2"):
        builder.world.set_node(a_node(name, pool=name[0]))
    return builder


def admit(builder: Builder, name: str, memory: int, at: float) -> None:
    builder.pending(name, "q", [gpus(memory)], at=at)
    settled(builder.world)
    assert reason_of(builder.world, name) == ""


def test_reports_per_flavor_and_node() -> None:
    builder = two_flavors()
    admit(builder, "one", 8000, 1.0)
    found = builder.world.fragmentation()
    assert {name: report.idle_milli for name, report in found.flavors.items()} == {"a": 500.0, "b": 2000.0}
    assert {name: report.unused_devices for name, report in found.nodes.items()} == {"a1": 0, "b1": 1, "b2": 1}
    assert found.cluster.devices == 3
    assert found.cluster.fragmented_milli == 0.0, "all that is known asks for half a device"


def test_moves_within_the_flavor_that_needs_the_fewest() -> None:
    builder = two_flavors()
    admit(builder, "a-large", 14_000, 1.0)
    admit(builder, "b-middle", 10_000, 2.0)
    admit(builder, "b-small", 4000, 3.0)
    builder.pending("wide", "q", [gpus(13_000)], at=4.0)
    settled(builder.world)
    assert reason_of(builder.world, "wide") == "WaitingForDevices"
    advice = builder.world.advise_moves("team/wide")
    assert advice.outcome == "Moves"
    plan = advice.plan
    assert plan is not None
    (move,) = plan.moves
    assert (move.workload_key, move.source.node, move.target.node) == ("team/b-small", "b2", "b1")
    assert plan.placement.pods[0].node == "b2"
    assert builder.world.device_usage("b2", "b2-0") == (1, 4000, 0), "advice changes nothing"


def outcome(builder: Builder, name: str) -> str:
    return builder.world.advise_moves(f"team/{name}").outcome


def test_no_pod_moves_onto_a_reserved_node() -> None:
    for nodes, found in (((), "Moves"), (("b1",), "NoPlan")):
        builder = two_flavors()
        admit(builder, "a-large", 14_000, 1.0)
        admit(builder, "b-middle", 10_000, 2.0)
        admit(builder, "b-small", 4000, 3.0)
        builder.pending("wide", "q", [gpus(13_000)], at=4.0)
        if nodes:
            builder.world.set_reservation(Reservation("r", 2000.0, 3000.0, frozenset(nodes)))
        settled(builder.world)
        assert outcome(builder, "wide") == found


def test_a_workload_that_fits_gets_no_moves() -> None:
    builder = two_flavors()
    admit(builder, "runs", 14_000, 1.0)
    builder.pending("cpu", "q", [pod_set({"cpu": 1})], at=2.0)
    builder.pending("next", "q", [gpus(4000)], at=3.0)
    assert [outcome(builder, name) for name in ("runs", "cpu", "next")] == [
        "HoldsQuota",
        "NoDevicesRequested",
        "FitsNow",
    ]
    with pytest.raises(KeyError):
        builder.world.advise_moves("team/unknown")


def test_a_workload_without_a_queue_or_flavor_gets_no_plan() -> None:
    builder = two_flavors()
    builder.pending("held", "q", [gpus(4000)], active=False)
    builder.pending("lost", "nowhere", [gpus(4000)])
    builder.pending("near", "q", [gpus(4000, topology={"required": "rack"})])
    builder.pending("other", "q", [gpus(4000)], allowed_flavors=("c",))
    assert [outcome(builder, name) for name in ("held", "lost", "near", "other")] == [
        "NotQueued",
        "NotQueued",
        "NoQuota",
        "NoQuota",
    ]


def test_an_inadmissible_workload_gets_the_reason() -> None:
    builder = two_flavors()
    builder.queue("picky", {"b": PLENTY}, namespace_selector=LabelSelector({"tier": "gold"}))
    builder.pending("w", "picky", [gpus(4000)])
    advice = builder.world.advise_moves("team/w")
    assert advice.outcome == "NotAdmissible"
    assert advice.message == (
        "The workload cannot be admitted, whatever is free: workload namespace doesn't match ClusterQueue selector."
    )
    builder.queue("broken", {"gone": PLENTY})
    builder.world.delete_resource_flavor("gone")
    builder.pending("x", "broken", [gpus(4000)])
    assert "flavors not found: gone" in builder.world.advise_moves("team/x").message


def test_only_flavors_that_the_workload_may_use_are_planned_for() -> None:
    builder = two_flavors()
    admit(builder, "a-large", 14_000, 1.0)
    admit(builder, "b-middle", 10_000, 2.0)
    admit(builder, "b-small", 4000, 3.0)
    builder.pending("wide", "q", [gpus(13_000)], at=4.0, allowed_flavors=("a",))
    settled(builder.world)
    assert outcome(builder, "wide") == "NoPlan"


def test_no_plan_where_no_move_helps() -> None:
    builder = two_flavors()
    for number, name in enumerate(("a-large", "b-large", "b-other")):
        admit(builder, name, 14_000, float(number))
    builder.pending("wide", "q", [gpus(13_000)], at=4.0)
    settled(builder.world)
    assert outcome(builder, "wide") == "NoPlan"


def crowded(**fields: Any) -> Builder:
    """A queue with quota for 30,000 MiB and a wide workload that one move would let in."""
    builder = Builder().queue("q", {"default": {GPU: 10, MEMORY: fields.pop("memory", 30_000)}})
    builder.world.set_placement_policies("spread", "spread")
    for name in ("n1", "n2"):
        builder.world.set_node(a_node(name))
    builder.pending("middle", "q", [gpus(10_000)], at=1.0, **fields)
    settled(builder.world)
    builder.pending("small", "q", [gpus(4000)], at=2.0, **fields)
    settled(builder.world)
    builder.pending("wide", "q", [gpus(12_500)], at=3.0)
    settled(builder.world)
    return builder


def test_without_quota_moves_do_not_help() -> None:
    assert outcome(crowded(), "wide") == "Moves"
    assert outcome(crowded(memory=20_000), "wide") == "NoQuota"


def test_a_workload_that_is_never_reclaimed_is_not_moved() -> None:
    assert outcome(crowded(never_reclaimed=True), "wide") == "NoPlan"


def test_no_moves_where_the_namespace_may_have_no_more() -> None:
    builder = two_flavors()
    admit(builder, "runs", 8000, 1.0)
    builder.world.set_resource_quota(NamespaceQuota("team", "gpus", {"limits.nvidia.com/gpumem": 10_000}))
    builder.pending("next", "q", [gpus(8000)], at=2.0)
    settled(builder.world)
    advice = builder.world.advise_moves("team/next")
    assert advice.outcome == "NotAdmissible"
    assert "ResourceQuota team/gpus allows its namespace 10000" in advice.message
