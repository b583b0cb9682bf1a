"""Moves that respect topologies, and that have been tried: with them made, the scheduler lets the workload in."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduling.devices.search.moves import MovePlan
from scheduling.model.placement import Placement
from scheduling.model.selectors import HOSTNAME_LABEL
from scheduling.model.topology import TopologyAssignment, TopologyDomain
from scheduling.model.workload import PodSet, Workload
from scheduling.world import World
from tests.scheduling.device_worlds import GPU, MEMORY, RACK, gpu_racks, gpus, rack_node
from tests.scheduling.world_helpers import Builder, pod_set, settled

REQUIRED_RACK = {"required": RACK}
SLICES = {"podSetSliceRequiredTopology": RACK, "podSetSliceSize": 2}


def current(builder: Builder, name: str) -> Workload:
    found = builder.world.workload(f"team/{name}")
    assert found is not None
    return found


def nodes_of(builder: Builder, name: str) -> list[str]:
    placement = current(builder, name).placement
    assert placement is not None
    return sorted(pod.node for pod in placement.pods)


def make(builder: Builder, plan: MovePlan) -> None:
    """The pods are where the plan says."""
    for move in plan.moves:
        before = builder.world.workload(move.workload_key)
        assert before is not None
        assert before.placement is not None
        pods = tuple(move.target if pod == move.source else pod for pod in before.placement.pods)
        assert pods != before.placement.pods
        builder.world.delete_workload(move.workload_key)
        builder.world.set_workload(_placed(before, Placement(pods)), 1000.0)


def _placed(workload: Workload, placement: Placement) -> Workload:
    admission = workload.admission
    assert admission is not None
    assignments = tuple(
        replace(found, topology_assignment=_domains(found.topology_assignment, placement, found.name))
        for found in admission.pod_set_assignments
    )
    return replace(workload, placement=placement, admission=replace(admission, pod_set_assignments=assignments))


def _domains(before: TopologyAssignment | None, placement: Placement, pod_set: str) -> TopologyAssignment | None:
    if before is None:
        return None
    counts = Counter(pod.node for pod in placement.pods_of(pod_set))
    return replace(before, domains=tuple(TopologyDomain((node,), counts[node]) for node in sorted(counts)))


def plan_for(builder: Builder, name: str) -> MovePlan:
    advice = builder.world.advise_moves(f"team/{name}")
    assert advice.outcome == "Moves", advice.message
    assert advice.plan is not None
    return advice.plan


class Racks:
    """Two racks of hosts with one device of 16,000 MiB each; who runs is put where the test wants it."""

    def __init__(self, hosts: int = 2, **fields: Any) -> None:
        self.nodes = [rack_node(f"r{rack}-n{host}", f"r{rack}") for rack in (0, 1) for host in range(hosts)]
        self.builder = gpu_racks(*self.nodes, **fields)
        self.builder.world.set_placement_policies("spread", "spread")
        self.clock = 0.0

    def submit(self, name: str, *pod_sets: PodSet, **fields: Any) -> bool:
        """Whether it was admitted."""
        self.clock += 1
        self.builder.pending(name, "q", list(pod_sets), at=self.clock, **fields)
        settled(self.builder.world)
        return current(self.builder, name).admission is not None

    def put(self, name: str, nodes: set[str], *pod_sets: PodSet, **fields: Any) -> None:
        """Let it run on these nodes."""
        for node in self.nodes:
            self.builder.world.set_node(replace(node, unschedulable=node.name not in nodes))
        assert self.submit(name, *pod_sets, **fields)
        for node in self.nodes:
            self.builder.world.set_node(node)


def test_a_rack_is_emptied_for_a_gang_that_must_be_in_one() -> None:
    made = Racks()
    made.put("a", {"r0-n0"}, gpus(memory_mib=10_000))
    made.put("b", {"r1-n0"}, gpus(memory_mib=10_000))
    assert not made.submit("gang", gpus(memory_mib=16_000, pods=2, topology=REQUIRED_RACK))
    plan = plan_for(made.builder, "gang")
    assert len(plan.moves) == 1
    make(made.builder, plan)
    settled(made.builder.world)
    assert len({node[:2] for node in nodes_of(made.builder, "gang")}) == 1


@pytest.mark.parametrize(("topology", "outcome"), [(REQUIRED_RACK, "NoPlan"), ({"preferred": RACK}, "Moves")])
def test_a_pod_bound_to_its_rack_is_not_moved_out_of_it(topology: dict[str, Any], outcome: str) -> None:
    made = Racks()
    made.put("pair", {"r0-n0", "r0-n1"}, gpus(memory_mib=9_000, pods=2, topology=topology))
    made.put("full", {"r1-n0"}, gpus(memory_mib=16_000), never_reclaimed=True)
    wanted = gpus(memory_mib=16_000)
    assert not made.submit("wide", replace(wanted, template=replace(wanted.template, node_selector={RACK: "r0"})))
    advice = made.builder.world.advise_moves("team/wide")
    assert advice.outcome == outcome
    if advice.plan is not None:
        assert [move.target.node for move in advice.plan.moves] == ["r1-n1"]


def test_pods_with_a_topology_take_their_usage_along() -> None:
    made = Racks()
    made.put("mover", {"r0-n0"}, gpus(memory_mib=9_000, topology={"preferred": HOSTNAME_LABEL}))
    made.put("small", {"r0-n1"}, gpus(memory_mib=4_000))
    made.put("other", {"r1-n0"}, gpus(memory_mib=9_000))
    made.put("last", {"r1-n1"}, gpus(memory_mib=9_000))
    assert not made.submit("gang", gpus(memory_mib=14_000, pods=1, topology=REQUIRED_RACK))
    plan = plan_for(made.builder, "gang")
    make(made.builder, plan)
    settled(made.builder.world)
    assert current(made.builder, "gang").admission is not None


def test_each_slice_finds_its_own_rack() -> None:
    made = Racks()
    made.put("a", {"r0-n0"}, gpus(memory_mib=4_000))
    made.put("b", {"r1-n0"}, gpus(memory_mib=4_000))
    assert not made.submit("slices", gpus(memory_mib=14_000, pods=4, topology=SLICES))
    assert made.builder.world.advise_moves("team/slices").outcome == "NoPlan"
    for node in (rack_node("r2-n0", "r2"), rack_node("r2-n1", "r2")):
        made.builder.world.set_node(node)
    made.builder.world.delete_workload("team/slices")
    assert not made.submit("slices", gpus(memory_mib=14_000, pods=6, topology=SLICES))
    made.builder.world.delete_workload("team/slices")
    made.put("c", {"r0-n1"}, gpus(memory_mib=4_000))
    made.nodes += [rack_node("r2-n0", "r2"), rack_node("r2-n1", "r2")]
    assert made.submit("fits", gpus(memory_mib=14_000, pods=2, topology=SLICES))
    assert not made.submit("slices", gpus(memory_mib=14_000, pods=2, topology=SLICES))
    plan = plan_for(made.builder, "slices")
    make(made.builder, plan)
    settled(made.builder.world)
    assert len({node[:2] for node in nodes_of(made.builder, "slices")}) == 1


@pytest.mark.parametrize(("cpus", "outcome"), [(64, "NoPlan"), (63, "Moves")])
def test_a_plan_that_only_devices_would_allow_is_not_given(cpus: int, outcome: str) -> None:
    """Pods without devices get no node from us: what they use is known to the topology alone."""
    made = Racks(quotas={GPU: 100, MEMORY: 1_000_000, "cpu": 200})
    made.put("a", {"r0-n0"}, gpus(memory_mib=10_000))
    made.put("full", {"r0-n1", "r1-n0"}, gpus(memory_mib=16_000, pods=2), never_reclaimed=True)
    made.put("some", {"r1-n1"}, gpus(memory_mib=4_000), never_reclaimed=True)
    made.put("cpus", {"r0-n0"}, pod_set(cpus))
    resources = {"limits": {GPU: "1", MEMORY: "16000"}, "requests": {"cpu": "1"}}
    wanted = pod_set({}, spec={"containers": [{"name": "c", "resources": resources}]})
    assert not made.submit("wide", wanted)
    assert made.builder.world.advise_moves("team/wide").outcome == outcome


TOPOLOGIES: list[dict[str, Any] | None] = [
    None,
    REQUIRED_RACK,
    {"required": HOSTNAME_LABEL},
    {"preferred": RACK},
    {"unconstrained": True},
    SLICES,
]


class Ask(NamedTuple):
    """A workload of so many pods."""

    memory: int
    pods: int
    topology: int
    never_reclaimed: bool = False

    def pod_set(self) -> PodSet:
        topology = TOPOLOGIES[self.topology]
        pods = self.pods + self.pods % 2 if topology is SLICES else self.pods
        return gpus(memory_mib=self.memory * 1_000, pods=pods, topology=topology)


def asks(memory: st.SearchStrategy[int]) -> st.SearchStrategy[Ask]:
    """Workloads whose pods ask for so many thousand MiB."""
    topology = st.integers(0, len(TOPOLOGIES) - 1)
    return st.builds(Ask, memory, st.integers(1, 2), topology, st.just(False) | st.booleans())


@st.composite
def crowds(draw: st.DrawFn) -> tuple[int, list[Ask], set[int], Ask]:
    """Hosts per rack, who came, who of them has ended since, and who waits."""
    came = draw(st.lists(asks(st.integers(3, 8)), min_size=5, max_size=9))
    ended = draw(st.sets(st.integers(0, len(came) - 1), max_size=3))
    return draw(st.integers(2, 3)), came, ended, draw(asks(st.integers(9, 13)))


@given(crowds())
def test_a_plan_that_is_made_lets_the_workload_in(crowd: tuple[int, list[Ask], set[int], Ask]) -> None:
    hosts, came, ended, wanted = crowd
    made = Racks(hosts)
    for number, ask in enumerate(came):
        if not made.submit(f"w{number}", ask.pod_set(), never_reclaimed=ask.never_reclaimed):
            made.builder.world.delete_workload(f"team/w{number}")
    for number in ended:
        made.builder.world.delete_workload(f"team/w{number}")
    admitted = made.submit("wanted", wanted.pod_set())
    world = made.builder.world
    before = {node.name: world.device_usage(node.name, f"{node.name}-0") for node in made.nodes}
    advice = world.advise_moves("team/wanted")
    assert {node.name: world.device_usage(node.name, f"{node.name}-0") for node in made.nodes} == before
    assert world.advise_moves("team/wanted") == advice, "asking changes nothing"
    if admitted:
        assert advice.outcome == "HoldsQuota"
        return
    assert advice.outcome in ("Moves", "NoPlan")
    if advice.plan is None:
        return
    assert 1 <= len(advice.plan.moves) <= 3
    assert not any(world_workload(world, move.workload_key).never_reclaimed for move in advice.plan.moves)
    make(made.builder, advice.plan)
    settled(world)
    assert current(made.builder, "wanted").placement == advice.plan.placement


def world_workload(world: World, key: str) -> Workload:
    found = world.workload(key)
    assert found is not None
    return found
