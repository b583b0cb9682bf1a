"""Where all pods are placed nothing is admitted that no node takes, whether or not it asks for devices."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from scheduling.model.device import MIG_MODE, Device, MigPlacement, MigProfile
from scheduling.model.node import Node
from scheduling.model.selectors import HOSTNAME_LABEL, Taint, TaintEffect
from scheduling.model.topology import Topology
from scheduling.model.vocabulary import PlacementScope
from scheduling.world import World
from tests.scheduling.device_worlds import GPU, MEMORY, gpu_node, gpus
from tests.scheduling.topology_helpers import domains
from tests.scheduling.world_helpers import (
    Builder,
    Cell,
    admissions,
    cycle,
    messages,
    outcomes,
    pod_set,
    preemption,
    preemptions,
    settled,
)

QUOTA: dict[str, Cell] = {"cpu": 100_000, "memory": "1000Gi", "example.com/fpga": 10, GPU: 100, MEMORY: 1_000_000}


def node(name: str, cpu: int = 4, **fields: Any) -> Node:
    """A node of so many CPUs."""
    fields.setdefault("allocatable", {"cpu": cpu * 1000, "memory": 2**34, "pods": 110})
    return Node(name, **fields)


def places_all(*nodes: Node, **fields: Any) -> Builder:
    """One ClusterQueue with plenty of quota over these nodes, where all pods are placed."""
    builder = Builder(placement=PlacementScope.ALL).queue("q", {"default": QUOTA}, **fields)
    for each in nodes:
        builder.world.set_node(each)
    return builder


def nodes_of(world: World, name: str) -> list[str]:
    """Where the pods were placed."""
    found = world.workload(f"team/{name}")
    assert found is not None
    return [pod.node for pod in found.placement.pods] if found.placement is not None else []


@pytest.mark.parametrize(
    ("asked", "spec", "message"),
    [
        ({"cpu": 500}, {}, "2 have too little cpu (500 requested, 4 on the largest)"),
        ({"cpu": 1, "example.com/fpga": 1}, {}, "2 have no example.com/fpga"),
        (
            {"cpu": 1},
            {"nodeSelector": {"disk": "none"}},
            "2 are not selected by its flavor, node selector and affinity",
        ),
    ],
    ids=["larger than any node", "a resource that no node offers", "a selector that no node has"],
)
def test_what_no_node_takes_waits_and_says_what_each_node_lacks(
    asked: dict[str, Any], spec: dict[str, Any], message: str
) -> None:
    requests = {name: str(amount) for name, amount in asked.items()}
    containers = [{"name": "c", "resources": {"requests": requests}}]
    builder = places_all(node("n1"), node("n2"))
    result = cycle(builder.pending("w", "q", [pod_set({}, spec={"containers": containers, **spec})]).world)
    assert outcomes(result) == {"w": "WaitingForNodes"}
    assert messages(result)["w"] == f"None of 2 nodes takes pod 0 of pod set main: {message}"


@pytest.mark.parametrize(
    ("profile", "said"),
    [
        ("3g.20gb", "2 have no {} (HAMi makes 3g.20gb when it is needed: request nvidia.com/gpu with 19968 gpumem)"),
        ("9g.90gb", "2 have no {} (and no device's MIG geometry has 9g.90gb: 3g.20gb)"),
    ],
)
def test_j2_a_mig_resource_that_no_node_states(profile: str, said: str) -> None:
    """HAMi cuts the device when the instance is needed, and states no resource for it."""
    geometry = (MigProfile("3g.20gb", 19_968, 43, 4, (MigPlacement(0, 4), MigPlacement(4, 4))),)
    device = Device("g0", 0, "NVIDIA", "NVIDIA A100", 7, 40_960, 100, mode=MIG_MODE, mig_profiles=geometry)
    resource = f"nvidia.com/mig-{profile}"
    builder = Builder(placement=PlacementScope.ALL).queue("q", {"default": {resource: 10}})
    for each in (node("n1"), node("n2", devices=(device,))):
        builder.world.set_node(each)
    containers = [{"name": "c", "resources": {"limits": {resource: "1"}}}]
    result = cycle(builder.pending("w", "q", [pod_set({}, spec={"containers": containers})]).world)
    assert outcomes(result) == {"w": "WaitingForNodes"}
    assert messages(result)["w"].endswith(said.format(resource))


def test_each_filter_is_counted() -> None:
    tainted = (Taint("only", "us", TaintEffect.NO_SCHEDULE),)
    builder = places_all(
        node("n1"), node("n2", ready=False), node("n3", unschedulable=True), node("n4", taints=tainted)
    )
    builder.pending("first", "q", 3)
    cycle(builder.world)
    result = cycle(builder.pending("w", "q", 2).world)
    assert messages(result)["w"] == (
        "None of 4 nodes takes pod 0 of pod set main: 1 has too little cpu (2 requested, at most 1 free on a node), "
        "1 is not ready, 1 has a taint that the pod does not tolerate, 1 is cordoned"
    )


@pytest.mark.parametrize(
    ("scope", "in_rack", "anywhere"),
    [
        (PlacementScope.DEVICES, None, None),
        (PlacementScope.TOPOLOGY, "WaitingForNodes", None),
        (PlacementScope.ALL, "WaitingForNodes", "WaitingForNodes"),
    ],
)
def test_a_pod_that_no_node_takes_waits_where_the_cluster_places_it(
    scope: PlacementScope, in_rack: str | None, anywhere: str | None
) -> None:
    """The rack has 8 cpu, each of its two nodes 4: Kueue's topology counts the rack alone."""
    builder = Builder(placement=scope).flavor("racks", node_labels={"in": "rack"}, topology_name="t")
    builder.world.set_topology(Topology("t", ("rack",)))
    builder.queue("plain", {"default": QUOTA}).queue("racked", {"racks": QUOTA})
    for name in ("n1", "n2"):
        builder.world.set_node(node(name, labels={"in": "rack", "rack": "r1"}))
    result = cycle(builder.pending("anywhere", "plain", 500).pending("in-rack", "racked", 5).world)
    refused = {name: str(reason) for name, reason in (("in-rack", in_rack), ("anywhere", anywhere)) if reason}
    assert outcomes(result) == refused
    assert set(admissions(result)) == {"in-rack", "anywhere"} - set(refused)
    assert nodes_of(builder.world, "in-rack") == nodes_of(builder.world, "anywhere") == []


@pytest.mark.parametrize("scope", PlacementScope)
def test_a_workload_that_asks_for_devices_is_placed_whole_however_far_pods_are_placed(scope: PlacementScope) -> None:
    builder = Builder(placement=scope).queue("q", {"default": QUOTA})
    builder.world.set_node(gpu_node("g1"))
    worker = pod_set({GPU: 1, MEMORY: 1000}, name="worker")
    builder.pending("w", "q", [pod_set({}, name="launcher"), worker])
    assert admissions(cycle(builder.world)) == ["w"]
    assert nodes_of(builder.world, "w") == ["g1", "g1"]


def test_quota_alone_decides_without_the_setting_without_nodes_and_in_flavors_that_say_so() -> None:
    off = Builder().queue("q", {"default": QUOTA})
    off.world.set_node(node("n1"))
    unknown = places_all()
    left_alone = places_all(node("n1"))
    left_alone.flavor("default", quota_only=True)
    for builder in (off, unknown, left_alone):
        assert admissions(cycle(builder.pending("w", "q", 500).world)) == ["w"]
        assert nodes_of(builder.world, "w") == []


def test_a_node_is_held_until_the_workload_is_gone() -> None:
    builder = places_all(node("n1"))
    assert admissions(cycle(builder.pending("first", "q", 3).world)) == ["first"]
    assert outcomes(cycle(builder.pending("second", "q", 3).world)) == {"second": "WaitingForNodes"}
    builder.world.finish_workload("team/first", 1001.0)
    assert admissions(cycle(builder.world, 1002.0)) == ["second"]


def test_room_that_others_take_is_not_there_and_is_waited_for() -> None:
    builder = places_all(node("n1", foreign_usage={"cpu": 3000, "pods": 1}))
    assert outcomes(cycle(builder.pending("w", "q", 2).world)) == {"w": "WaitingForNodes"}
    builder.world.set_node(node("n1"))
    assert admissions(cycle(builder.world, 1001.0)) == ["w"]


def test_pods_without_devices_and_pods_with_devices_share_a_nodes_cpu() -> None:
    small = gpu_node("g")
    builder = places_all(replace(small, allocatable={"cpu": 4000, "memory": 2**34, "pods": 110}))
    with_card = gpus()
    builder.pending("card", "q", [with_card])
    cycle(builder.world)
    assert nodes_of(builder.world, "card") == ["g"]
    builder.pending("cpu", "q", 4)
    cycle(builder.world)
    assert nodes_of(builder.world, "cpu") == ["g"]
    assert outcomes(cycle(builder.pending("next", "q", 1).world)) == {"next": "WaitingForNodes"}


def test_nodes_without_cards_come_first() -> None:
    builder = places_all(gpu_node("a"), node("b"))
    for name in ("one", "two"):
        builder.pending(name, "q", 3)
    settled(builder.world)
    assert nodes_of(builder.world, "one") == ["b"]
    assert nodes_of(builder.world, "two") == ["a"]


def test_a_gang_takes_as_few_nodes_as_can_be_and_the_tightest_for_the_rest() -> None:
    builder = places_all(node("a", 2), node("b", 8), node("c", 3))
    builder.pending("gang", "q", 1, count=10)
    cycle(builder.world)
    assert sorted(nodes_of(builder.world, "gang")) == ["a"] * 2 + ["b"] * 8
    assert admissions(cycle(builder.pending("rest", "q", 1, count=4).world)) == []


def test_spread_takes_the_emptiest_node_for_each_pod() -> None:
    builder = places_all(node("a", 4), node("b", 6))
    builder.world.set_placement_policies("spread", "spread")
    builder.pending("gang", "q", 1, count=4)
    cycle(builder.world)
    assert sorted(nodes_of(builder.world, "gang")) == ["a", "b", "b", "b"]


def test_two_heads_of_one_cycle_do_not_get_the_same_room() -> None:
    builder = places_all(node("n1")).queue("other", {"default": QUOTA})
    builder.pending("first", "q", 3).pending("second", "other", 3, at=1.0)
    results = settled(builder.world)
    assert [name for result in results for name in admissions(result)] == ["first"]


def test_a_pod_whose_rules_are_not_all_read_must_find_a_place_and_holds_none() -> None:
    rule = {"topologyKey": HOSTNAME_LABEL, "labelSelector": {"matchLabels": {"app": "web"}}}
    affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [rule]}}
    builder = places_all(node("n1"))
    assert admissions(cycle(builder.pending("w", "q", 3, spec={"affinity": affinity} | spec(3)).world)) == ["w"]
    assert nodes_of(builder.world, "w") == []
    result = cycle(builder.pending("large", "q", 9, spec={"affinity": affinity} | spec(9)).world)
    assert outcomes(result) == {"large": "WaitingForNodes"}


def spec(cpu: int) -> dict[str, Any]:
    """The containers of a pod that asks for so much."""
    return {"containers": [{"name": "c", "resources": {"requests": {"cpu": str(cpu)}}}]}


def test_the_next_flavor_is_tried_when_the_nodes_of_the_first_are_full() -> None:
    builder = Builder(placement=PlacementScope.ALL)
    for name in ("old", "new"):
        builder.flavor(name, node_labels={"kind": name})
        builder.world.set_node(node(f"{name}-node", labels={"kind": name}))
    builder.queue("q", {"old": 100, "new": 100})
    for name in ("one", "two"):
        builder.pending(name, "q", 3)
    settled(builder.world)
    assert nodes_of(builder.world, "one") == ["old-node"]
    assert nodes_of(builder.world, "two") == ["new-node"]


def test_leaves_of_a_topology_are_chosen_where_the_nodes_have_room_for_others_too() -> None:
    """A topology counts its own pods: those of a flavor without one on the same nodes are known to the fleet alone."""
    builder = Builder(placement=PlacementScope.ALL).flavor("racks", node_labels={"all": "x"}, topology_name="racks")
    builder.world.set_topology(Topology("racks", ("rack", HOSTNAME_LABEL)))
    builder.queue("plain", {"default": 100}).queue("q", {"racks": 100})
    for name in ("a", "b"):
        builder.world.set_node(node(name, labels={"all": "x", "rack": f"r-{name}", HOSTNAME_LABEL: name}))
    builder.pending("first", "plain", 3)
    cycle(builder.world)
    assert nodes_of(builder.world, "first") == ["a"]
    builder.pending("second", "q", 3, topology={"preferred": HOSTNAME_LABEL})
    cycle(builder.world)
    found = builder.world.workload("team/second")
    assert found is not None
    assert found.admission is not None
    topology = found.admission.pod_set_assignments[0].topology_assignment
    assert topology is not None
    assert domains(topology) == {"b": 1}
    assert nodes_of(builder.world, "second") == ["b"]


def test_full_nodes_preempt_only_where_the_queue_says_so() -> None:
    for preempts in (False, True):
        fields: dict[str, Any] = {"preemption": preemption(within="LowerPriority"), "preempt_for_devices": preempts}
        builder = places_all(node("n1"), **fields)
        builder.pending("low", "q", 3)
        cycle(builder.world)
        result = cycle(builder.pending("high", "q", 3, priority=10).world)
        assert (list(preemptions(result)) == ["low"]) is preempts
        if not preempts:
            assert outcomes(result) == {"high": "WaitingForNodes"}
