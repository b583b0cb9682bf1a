"""Traps of topology-aware scheduling that no recording of whole runs tells apart (T74 and following)."""

from __future__ import annotations

from typing import Any

import pytest

from scheduling.model.decisions import CycleResult
from scheduling.model.topology import Topology
from scheduling.model.workload import PodSet
from scheduling.world import World
from tests.scheduling.topology_helpers import HOST, HOSTS, RACK, RACKS_AND_HOSTS, domains, racks
from tests.scheduling.world_helpers import (
    NAMESPACE,
    Builder,
    admissions,
    cycle,
    outcomes,
    pod_set,
    preemption,
    workload,
)

GROUP = {"podSetGroupName": "g"}


def in_topologies(builder: Builder, *flavors: str, topology: Topology = HOSTS) -> World:
    """These flavors have the topology, and their nodes are two hosts of eight cpus in one rack."""
    builder.world.set_topology(topology)
    for name in flavors:
        builder.flavor(name, node_labels={"pool": "tas"}, topology_name=topology.name)
    for each in racks({"r0": [8, 8]}):
        builder.world.set_node(each)
    return builder.world


class TestT74PodSetsWithoutRequests:
    """A pod set that is to be placed needs exactly one flavor with a topology."""

    def test_one_that_asks_for_a_topology_and_for_nothing_else_waits(self) -> None:
        builder = Builder()
        world = in_topologies(builder, "tas")
        builder.queue("q", {"tas": 9})
        builder.pending("w", "q", [pod_set({}, topology={"unconstrained": True})])
        result = cycle(world)
        assert (admissions(result), outcomes(result)) == ([], {"w": "NoMatchingFlavor"})
        message = world.explain(f"{NAMESPACE}/w").message
        assert message == "Pod set main needs one flavor with a topology, and it got none."

    def test_so_does_one_that_asks_for_nothing_where_all_flavors_have_topologies(self) -> None:
        builder = Builder()
        world = in_topologies(builder, "tas")
        builder.queue("q", {"tas": 9})
        builder.pending("w", "q", [pod_set(1, name="workers"), pod_set({}, name="leader")])
        assert outcomes(cycle(world)) == {"w": "NoMatchingFlavor"}

    def test_not_where_a_flavor_has_none(self) -> None:
        builder = Builder()
        world = in_topologies(builder, "tas")
        builder.queue("q", {"tas": 9, "plain": 9})
        builder.pending("w", "q", [pod_set({})])
        assert admissions(cycle(world)) == ["w"]

    def test_a_request_of_zero_is_a_request(self) -> None:
        builder = Builder()
        world = in_topologies(builder, "tas")
        builder.queue("q", {"tas": 9})
        builder.pending("w", "q", [pod_set(0, topology={"required": HOST})])
        assert admissions(cycle(world)) == ["w"]

    def test_without_pods_it_needs_no_flavor(self) -> None:
        builder = Builder()
        world = in_topologies(builder, "tas")
        builder.queue("q", {"tas": 9})
        builder.pending("w", "q", [pod_set(1, name="workers"), pod_set({}, count=0, name="leader")])
        assert admissions(cycle(world)) == ["w"]

    def test_a_leader_goes_where_its_group_goes(self) -> None:
        builder = Builder()
        world = in_topologies(builder, "tas", topology=RACKS_AND_HOSTS)
        builder.queue("q", {"tas": 20})
        asked = {"required": RACK, **GROUP}
        builder.pending(
            "w", "q", [pod_set({}, name="leader", topology=asked), pod_set(4, 4, "workers", topology=asked)]
        )
        (admission,) = cycle(world).admissions
        leader = admission.pod_sets[0]
        assert (dict(leader.flavors), dict(leader.resource_usage)) == ({"cpu": "tas"}, {"cpu": 0})
        assert leader.topology_assignment is not None
        assert leader.topology_assignment.count == 1

    @pytest.mark.parametrize("flavors", [("tas-a", "tas-b"), ()])
    def test_not_with_two_topologies_or_none_in_its_group(self, flavors: tuple[str, ...]) -> None:
        builder = Builder()
        world = in_topologies(builder, *flavors)
        names = flavors or ("plain-a", "plain-b")
        quotas: list[Any] = [{name: {resource: 9}} for name, resource in zip(names, ("cpu", "memory"), strict=True)]
        builder.queue("q", quotas)
        workers = [pod_set({"cpu": 1}, name="a", topology=GROUP), pod_set({"memory": 1}, name="b", topology=GROUP)]
        leader = pod_set({}, name="leader", topology={"unconstrained": True, **GROUP})
        builder.pending("w", "q", [*workers, leader])
        result = cycle(world)
        assert (admissions(result), outcomes(result)) == ([], {"w": "NoMatchingFlavor"})


class TestT75WhatTheTopologyCanNeverHold:
    """Then that is the reason, whatever else is short."""

    def test_quota_is_in_use_too(self) -> None:
        builder = Builder()
        world = in_topologies(builder, "tas")
        builder.queue("q", {"tas": 20}, preemption=preemption(within="LowerPriority"))
        builder.running("busy", "q", 12, flavor="tas")
        builder.pending("w", "q", 9, priority=1)
        assert outcomes(cycle(world)) == {"w": "TopologyPlacementFailed"}

    def test_another_flavor_is_too_small(self) -> None:
        builder = Builder()
        world = in_topologies(builder, "small", "tas")
        builder.queue("q", {"small": 1, "tas": 20}, preemption=preemption(within="LowerPriority"))
        builder.pending("w", "q", 9)
        assert outcomes(cycle(world)) == {"w": "TopologyPlacementFailed"}


def test_a_flavor_is_as_bad_as_its_worst_resource() -> None:
    """Of two flavors the milder one gives the reason, and each is as bad as the worst of its resources."""
    builder = Builder()
    builder.queue("q", {"one": {"cpu": 4, "memory": 4}})
    builder.running("busy", "q", {"cpu": 4}, flavor="one")
    builder.pending("w", "q", {"cpu": 1, "memory": 5})
    assert outcomes(cycle(builder.world)) == {"w": "ExceedsMaxQuota"}
    builder = Builder()
    builder.queue("q", {"one": {"cpu": 4, "memory": 4}, "two": {"cpu": 4, "memory": 9}})
    for name in ("one", "two"):
        builder.running(f"busy-{name}", "q", {"cpu": 4}, flavor=name)
    builder.pending("w", "q", {"cpu": 1, "memory": 5})
    assert outcomes(cycle(builder.world)) == {"w": "WaitingForQuota"}


class TestT77AnElasticJobShrinks:
    """The first pods in stored order stay, and those that are to go are still there while others are placed."""

    def grown(self, *after: PodSet) -> tuple[World, CycleResult]:
        """A slice with 2 pods of `a` and 5 of `b`, whose hosts have room for one pod more, and one that replaces it."""
        builder = Builder()
        world = in_topologies(builder, "tas")
        builder.queue("q", {"tas": 40})
        first = workload("first", "q", [pod_set(2, 2, "a"), pod_set(2, 5, "b")])
        world.set_workload(first, 0.0)
        assert admissions(cycle(world)) == ["first"]
        assert self.places(world, "first") == {"a": {"r0-n0": 2}, "b": {"r0-n0": 2, "r0-n1": 3}}
        second = workload("second", "q", list(after), replaces=f"{NAMESPACE}/first")
        world.set_workload(second, 1001.0)
        return world, cycle(world, 1001.0)

    def places(self, world: World, name: str) -> dict[str, dict[str, int]]:
        found = world.workload(f"{NAMESPACE}/{name}")
        assert found is not None
        assert found.admission is not None
        return {
            assigned.name: domains(assigned.topology_assignment)
            for assigned in found.admission.pod_set_assignments
            if assigned.topology_assignment is not None
        }

    def test_domains_are_cut_from_the_end(self) -> None:
        world, result = self.grown(pod_set(2, 2, "a"), pod_set(2, 1, "b"))
        assert admissions(result) == ["second"]
        assert self.places(world, "second") == {"a": {"r0-n0": 2}, "b": {"r0-n0": 1}}

    def test_what_another_pod_set_gains_does_not_go_where_pods_still_run(self) -> None:
        world, _ = self.grown(pod_set(2, 3, "a"), pod_set(2, 1, "b"))
        assert self.places(world, "second") == {"a": {"r0-n0": 2, "r0-n1": 1}, "b": {"r0-n0": 1}}

    def test_their_room_is_free_for_others_afterwards(self) -> None:
        world, _ = self.grown(pod_set(2, 2, "a"), pod_set(2, 1, "b"))
        world.set_workload(workload("large", "q", 8, topology={"required": HOST}), 1002.0)
        assert admissions(cycle(world, 1002.0)) == ["large"]


def test_t78_slices_without_their_size_are_placed_nowhere() -> None:
    """The size has no default."""
    builder = Builder()
    world = in_topologies(builder, "tas")
    builder.queue("q", {"tas": 40})
    asked = {"required": HOST, "podSetSliceRequiredTopology": HOST}
    builder.pending("without", "q", 1, topology=asked)
    builder.pending("with", "q", 1, topology={**asked, "podSetSliceSize": 1}, at=1.0)
    assert outcomes(cycle(world)) == {"without": "TopologyPlacementFailed"}
    assert "need a size" in world.explain(f"{NAMESPACE}/without").message
    assert admissions(cycle(world)) == ["with"]
