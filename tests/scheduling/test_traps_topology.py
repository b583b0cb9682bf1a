"""Traps of topology-aware scheduling that no recording of whole runs tells apart (T74 and following)."""

from __future__ import annotations

from typing import Any

import pytest

from scheduling.model.topology import Topology
from scheduling.world import World
from tests.scheduling.topology_helpers import HOST, HOSTS, RACK, RACKS_AND_HOSTS, racks
from tests.scheduling.world_helpers import NAMESPACE, Builder, admissions, cycle, outcomes, pod_set, preemption

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
    """K2: a pod set that is to be placed needs exactly one flavor with a topology."""

    def test_one_that_asks_for_a_topology_and_for_nothing_else_waits(self) -> None:
        builder = Builder()
        world = in_topologies(builder, "tas")
        builder.queue("q", {"tas": 9})
        builder.pending("w", "q", [pod_set({}, topology={"unconstrained": True})])
        result = cycle(world)
        assert (admissions(result), outcomes(result)) == ([], {"w": "NoMatchingFlavor"})
        assert (
            "od set main needs one flavor with a topology, and it got none" in world.explain(f"{NAMESPACE}/w").message
        )

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
    """K7: then that is the reason, whatever else is short."""

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
