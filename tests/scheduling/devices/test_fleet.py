"""The fleet: gangs, candidates, what-if, reservations that undo exactly, and refusals in words."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduling.devices.search.fleet import Fleet
from scheduling.devices.search.namespace_quota import NamespaceQuota
from scheduling.devices.table import CORES, MEMORY_MIB, SLOTS
from scheduling.model.device import Device
from scheduling.model.node import Node
from scheduling.model.placement import Placement, PlacementRefusal, PodSetToPlace
from scheduling.model.selectors import (
    NodeSelectorRequirement,
    NodeSelectorTerm,
    RequiredNodeAffinity,
    SelectionOperator,
    Taint,
    Toleration,
    TolerationOperator,
)
from tests.scheduling.fleet_helpers import (
    ask,
    device,
    devices_of,
    fleet,
    node,
    pod,
    pod_set,
    reason_of,
    try_place,
)

GIB = 2**30


def plain(name: str, **fields: Any) -> Node:
    """A node with one device named after it."""
    return node(name, [device(f"{name}-g")], **fields)


class TestGangs:
    def test_all_pods_of_all_pod_sets_or_none(self) -> None:
        nodes = fleet(plain("n1"), plain("n2"))
        launcher = PodSetToPlace("launcher", 1, devices=pod(ask(1, 10_000)))
        workers = PodSetToPlace("workers", 1, devices=pod(ask(1, 10_000)))
        both = nodes.place([launcher, workers])
        assert isinstance(both, Placement)
        assert [(placed.pod_set, placed.replica, placed.node) for placed in both.pods] == [
            ("launcher", 0, "n1"),
            ("workers", 0, "n2"),
        ]
        three = nodes.place([launcher, PodSetToPlace("workers", 2, devices=pod(ask(1, 10_000)))])
        assert isinstance(three, PlacementRefusal)
        assert (three.pod_set, three.replica, three.placed, three.wanted) == ("workers", 1, 2, 3)
        assert isinstance(nodes.place([launcher, workers]), Placement), "a refused gang leaves nothing behind"

    def test_replicas_share_a_device_like_other_pods(self) -> None:
        nodes = fleet(plain("n1"), device_policy="binpack")
        placement = nodes.place([pod_set(pod(ask(1, 2500)), count=4, first_replica=3)])
        assert isinstance(placement, Placement)
        assert [placed.replica for placed in placement.pods_of("main")] == [3, 4, 5, 6]
        nodes.reserve("gang", placement)
        assert nodes.decided_usage("n1", "n1-g") == (4, 10_000, 0)

    def test_a_pod_set_without_devices_gets_nodes_too(self) -> None:
        nodes = fleet(plain("n1", allocatable={"cpu": 4000}), plain("n2", allocatable={"cpu": 4000}))
        placement = nodes.place([PodSetToPlace("main", 2, {"cpu": 3000})])
        assert isinstance(placement, Placement)
        assert [placed.node for placed in placement.pods] == ["n1", "n2"]
        assert all(not placed.slices for placed in placement.pods)


class TestCandidates:
    def test_the_flavor_s_labels_and_the_pod_s_selector(self) -> None:
        nodes = fleet(plain("n1", labels={"gpu": "v100"}), plain("n2", labels={"gpu": "a100", "zone": "b"}))
        asked = pod(ask(1, 1000))
        assert devices_of(nodes.place([pod_set(asked, flavor_labels={"gpu": "a100"})])) == "n2: n2-g"
        assert devices_of(nodes.place([pod_set(asked, node_selector={"zone": "b"})])) == "n2: n2-g"
        assert devices_of(nodes.place([pod_set(asked, node_selector={"kubernetes.io/hostname": "n2"})])) == "n2: n2-g"
        nowhere = nodes.place([pod_set(asked, flavor_labels={"gpu": "h100"})])
        assert isinstance(nowhere, PlacementRefusal)
        assert (nowhere.reasons, nowhere.nearest_node, nowhere.nearest_reason) == ({}, None, "")
        assert "No node is a candidate" in nowhere.message

    def test_affinity(self) -> None:
        nodes = fleet(plain("n1", labels={"gpu": "v100"}), plain("n2", labels={"gpu": "a100"}))
        requirement = NodeSelectorRequirement("gpu", SelectionOperator.NOT_IN, ("v100",))
        affinity = RequiredNodeAffinity((NodeSelectorTerm((requirement,)),))
        assert devices_of(nodes.place([pod_set(pod(ask(1, 1000)), affinity=affinity)])) == "n2: n2-g"

    def test_the_topology_domain(self) -> None:
        nodes = fleet(plain("n1"), plain("n2"))
        asked = pod_set(pod(ask(1, 1000)), allowed_nodes=frozenset({"n2"}))
        assert devices_of(nodes.place([asked])) == "n2: n2-g"

    def test_taints_are_tolerated_by_the_pod_or_its_flavor(self) -> None:
        nodes = fleet(plain("n1", taints=(Taint("gpu", "true"),)))
        asked = pod(ask(1, 1000))
        assert reason_of(nodes.place([pod_set(asked)])) == "NodeTainted"
        toleration = Toleration("gpu", TolerationOperator.EXISTS)
        assert isinstance(nodes.place([pod_set(asked, tolerations=(toleration,))]), Placement)
        assert isinstance(nodes.place([pod_set(asked, flavor_tolerations=(toleration,))]), Placement)

    @pytest.mark.parametrize(
        ("fields", "reason"),
        [
            ({"ready": False}, "NodeNotReady"),
            ({"unschedulable": True}, "NodeUnschedulable"),
            ({"unhealthy_vendors": frozenset({"NVIDIA"})}, "1/1 CardNotHealth"),
            ({"allocatable": {"cpu": 999}}, "Insufficient cpu"),
            ({"allocatable": {"memory": GIB - 1}}, "Insufficient memory"),
            ({"allocatable": {"pods": 1}, "foreign_usage": {"pods": 1}}, "Insufficient pods"),
            ({"allocatable": {"cpu": 1500}, "foreign_usage": {"cpu": 501}}, "Insufficient cpu"),
        ],
    )
    def test_a_node_that_can_t_take_the_pod_now(self, fields: dict[str, Any], reason: str) -> None:
        asked = pod_set(pod(ask(1, 1000)), requests={"cpu": 1000, "memory": GIB, "nvidia.com/gpu": 1})
        nodes = fleet(plain("n1", **fields))
        assert reason_of(nodes.place([asked])) == reason
        nodes.set_node(plain("n1"))
        assert isinstance(nodes.place([asked]), Placement), "a node change is seen"

    def test_a_resource_that_no_node_has(self) -> None:
        asked = pod_set(pod(ask(1, 1000)), requests={"example.com/fpga": 1})
        nodes = fleet(plain("n1"), plain("n2", allocatable={"example.com/fpga": 2}))
        assert devices_of(nodes.place([asked])) == "n2: n2-g"
        assert reason_of(fleet(plain("n1")).place([asked])) == "Insufficient example.com/fpga"

    def test_amounts_that_no_array_holds(self) -> None:
        """Kubernetes takes `cpu: 9e18` of anyone."""
        nodes = fleet(plain("n1", allocatable={"cpu": 10**22}), plain("n2", allocatable={"cpu": 4000}))
        assert devices_of(nodes.place([pod_set(pod(ask(1, 1000)), requests={"cpu": 3000})])) == "n1: n1-g"
        nodes.set_node(plain("n1", allocatable={"cpu": 4000}, foreign_usage={"cpu": 10**22}))
        assert devices_of(nodes.place([pod_set(pod(ask(1, 1000)), requests={"cpu": 3000})])) == "n2: n2-g"
        assert "Insufficient cpu" in reason_of(nodes.place([pod_set(pod(ask(1, 1000)), requests={"cpu": 10**22})]))

    def test_our_own_pods_use_up_the_node(self) -> None:
        nodes = fleet(plain("n1", allocatable={"cpu": 4000, "pods": 10}))
        asked = pod_set(pod(ask(1, 100)), requests={"cpu": 3000})
        placement = nodes.place([asked])
        assert isinstance(placement, Placement)
        nodes.reserve("first", placement)
        assert reason_of(nodes.place([asked])) == "Insufficient cpu"
        nodes.release("first")
        assert isinstance(nodes.place([asked]), Placement)


class TestRefusals:
    def test_the_nearest_node_and_a_sentence(self) -> None:
        nodes = fleet(
            node(
                "n1", [device(f"a{n}") for n in range(4)], {"a0": (1, 9500, 0), "a1": (1, 9500, 0), "a2": (1, 7000, 0)}
            ),
            node("n2", [device(f"b{n}", cordoned=n > 0) for n in range(2)], {"b0": (1, 9000, 0)}),
            node("n3", []),
            plain("n4", ready=False),
        )
        refused = nodes.place([pod_set(pod(ask(2, 4000)))])
        assert isinstance(refused, PlacementRefusal)
        assert refused.reasons == {
            "n1": "1/4 AllocatedCardsInsufficientRequest, 3/4 CardInsufficientMemory",
            "n2": "1/2 CardCordoned, 1/2 CardInsufficientMemory",
            "n3": "node unregistered",
            "n4": "NodeNotReady",
        }
        assert refused.nearest_node == "n1"
        assert refused.message == (
            "None of 4 nodes takes pod 0 of pod set main, which requests 2 NVIDIA devices with 4000 MiB each; "
            "nearest is n1: of 4 devices 3 are short of memory (at most 3000 MiB free on one of them), 1 is free "
            "(1/4 AllocatedCardsInsufficientRequest, 3/4 CardInsufficientMemory)."
        )

    @given(st.data())
    def test_the_scan_counts_what_the_walk_counts(self, data: st.DataObject) -> None:
        drawn = data.draw(st.lists(DEVICES, min_size=1, max_size=5))
        devices = [device(f"g{number}", **fields) for number, (fields, _) in enumerate(drawn)]
        used = {f"g{number}": usage for number, (_, usage) in enumerate(drawn)}
        asked = data.draw(REQUESTS)
        nodes = fleet(node("n1", devices, used))
        alone = nodes.place([pod_set(asked)])
        quota = NamespaceQuota("", "gpus", {"limits.nvidia.com/gpumem": 10**9})  # it makes every node be walked
        nodes.quotas.set_quota(quota)
        walked = nodes.place([pod_set(asked)])
        assert alone == walked


DEVICES = st.tuples(
    st.fixed_dictionaries(
        {
            "health": st.booleans(),
            "cordoned": st.booleans(),
            "type": st.sampled_from(["NVIDIA A100", "NVIDIA T4"]),
            "cores_percent": st.sampled_from([0, 100, 150]),
            "slots": st.integers(0, 3),
        }
    ),
    st.tuples(st.integers(0, 3), st.sampled_from([0, 5000, 9000, 12_000]), st.sampled_from([0, 50, 100])),
)
REQUESTS = st.builds(
    lambda count, memory, percentage, cores, types, policy: pod(
        ask(count, memory, cores, percentage), use_types=types, device_policy=policy
    ),
    st.integers(1, 3),
    st.sampled_from([0, 1000, 6000]),
    st.sampled_from([50, 100]),
    st.sampled_from([0, 30, 100, 120]),
    st.sampled_from([(), ("a100",)]),
    st.sampled_from(["binpack", "spread", "mutex", "numa,binpack"]),
)


class TestReservations:
    def test_what_would_preempting_give(self) -> None:
        nodes = fleet(plain("n1", allocatable={"cpu": 1000}))
        asked = pod_set(pod(ask(1, 8000)), requests={"cpu": 600})
        placement = nodes.place([asked])
        assert isinstance(placement, Placement)
        nodes.reserve("low", placement)
        assert isinstance(nodes.place([asked]), PlacementRefusal)
        assert devices_of(nodes.place([asked], without=["low", "unknown", "low"])) == "n1: n1-g"
        assert isinstance(nodes.place([asked]), PlacementRefusal), "the question changed nothing"

    def test_a_key_is_reserved_once_and_released_once(self) -> None:
        nodes = fleet(plain("n1"))
        placement = nodes.place([pod_set(pod(ask(1, 100)))])
        assert isinstance(placement, Placement)
        nodes.reserve("job", placement)
        with pytest.raises(ValueError, match="job already holds"):
            nodes.reserve("job", placement)
        assert nodes.release("job") == placement
        with pytest.raises(KeyError):
            nodes.release("job")

    def test_reservations_outlive_their_node(self) -> None:
        nodes = fleet(plain("n1"), plain("n2"))
        try_place(nodes, pod(ask(1, 10_000)), key="job")
        nodes.delete_node("n1")
        assert devices_of(try_place(nodes, pod(ask(1, 10_000)))) == "n2: n2-g"
        assert nodes.decided_usage("n1", "n1-g") == (1, 10_000, 0)
        nodes.set_node(plain("n1"))
        assert devices_of(try_place(nodes, pod(ask(1, 10_000)))) == "n2: n2-g"
        nodes.release("job")
        assert devices_of(try_place(nodes, pod(ask(1, 10_000)))) == "n1: n1-g"

    def test_found_slices_count_and_may_exceed_the_device(self) -> None:
        nodes = fleet(node("n1", [device("g0")], {"g0": (12, 30_000, 0)}))
        assert reason_of(try_place(nodes, pod(ask(1, 100)))) == "1/1 CardTimeSlicingExhausted"
        assert nodes.decided_usage("n1", "g0") == (0, 0, 0)
        nodes.set_node(node("n1", [device("g0")]))
        assert devices_of(try_place(nodes, pod(ask(1, 100)))) == "n1: g0"

    def test_a_smaller_device_after_all(self) -> None:
        nodes = fleet(plain("n1"))
        try_place(nodes, pod(ask(1, 10_000)), key="job")
        nodes.set_node(node("n1", [device("n1-g", memory_mib=5000)]))
        assert reason_of(try_place(nodes, pod(ask(1, 100)))) == "1/1 CardInsufficientMemory"
        nodes.release("job")
        assert devices_of(try_place(nodes, pod(ask(1, 100)))) == "n1: n1-g"


SHAPES = [
    pod(ask(1, 3000)),
    pod(ask(2, 2500, 30)),
    pod(ask(1, 0, 100, 100)),
    pod(ask(1, 0, 20, 25), ask(1, 1000)),
    pod(ask(1, 1000), init=[ask(2, 6000)]),
    pod(ask(1, 500, 60), node_policy="spread", device_policy="binpack"),
    pod(ask(1, 1500), device_policy="mutex"),
]


@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("place"), st.integers(0, 30), st.sampled_from(SHAPES), st.integers(1, 3)),
            st.tuples(st.just("release"), st.integers(0, 30)),
            st.tuples(st.just("node"), st.integers(1, 3), st.booleans()),
        ),
        max_size=40,
    )
)
def test_slices_never_exceed_a_device_and_release_undoes_reserve(steps: list[tuple[Any, ...]]) -> None:
    def a_node(number: int, ready: bool) -> Node:
        devices = [device(f"n{number}-g{n}", slots=3, numa=n % 2) for n in range(number)]
        return node(f"n{number}", devices, ready=ready, allocatable={"cpu": 4000})

    nodes = fleet(*(a_node(number, True) for number in (1, 2, 3)))
    empty = state(nodes)
    for step in steps:
        key = str(step[1])
        if step[0] == "place" and key not in nodes.reservations:
            outcome = nodes.place([pod_set(step[2], count=step[3], requests={"cpu": 500})])
            if isinstance(outcome, Placement):
                before = state(nodes)
                nodes.reserve(key, outcome)
                nodes.release(key)
                assert state(nodes) == before
                nodes.reserve(key, outcome)
        elif step[0] == "release" and key in nodes.reservations:
            nodes.release(key)
        elif step[0] == "node":
            nodes.set_node(a_node(step[1], step[2]))
        assert (nodes.table.used <= nodes.table.totals).all()
        assert (nodes.table.free_cpu >= 0).all()
        assert rebuilt(nodes) == state(nodes)
    for key in list(nodes.reservations):
        nodes.release(key)
    for number in (1, 2, 3):
        nodes.set_node(a_node(number, True))
    assert state(nodes) == empty


def state(nodes: Fleet) -> tuple[Any, ...]:
    """All that decides the next placement."""
    table = nodes.table
    return (
        table.used.tolist(),
        table.free.tolist(),
        [round(float(score), 4) for score in table.base_scores],
        {uuid: found for uuid, found in table.mig.items() if found},
    )


def rebuilt(nodes: Fleet) -> tuple[Any, ...]:
    """The state of a fleet that is told everything at once."""
    other = Fleet()
    for key, placement in nodes.reservations.items():
        other.reserve(key, placement)
    for each in nodes.nodes.values():
        other.set_node(each)
    return state(other)


def test_the_order_of_nodes_does_not_matter() -> None:
    made = [plain(f"n{number}") for number in range(5)]
    one, other = fleet(*made), fleet(*reversed(made))
    for number in range(8):
        asked = pod(ask(1, 4000 + 100 * number))
        assert try_place(one, asked, key=str(number)) == try_place(other, asked, key=str(number))


def test_totals_and_usage_are_slots_cores_and_memory() -> None:
    device = Device("g", 0, "NVIDIA", "A", slots=7, memory_mib=9000, cores_percent=120)
    nodes = fleet(Node("n1", devices=(device,)))
    try_place(nodes, pod(ask(1, 5, 6)), key="job")
    assert nodes.table.totals[[SLOTS, CORES, MEMORY_MIB], 0, 0].tolist() == [7, 120, 9000]
    assert nodes.table.used[[SLOTS, CORES, MEMORY_MIB], 0, 0].tolist() == [1, 6, 5]
    assert np.isclose(nodes.table.base_scores[0], 10 * (1 / 7 + 6 / 120 + 5 / 9000))
