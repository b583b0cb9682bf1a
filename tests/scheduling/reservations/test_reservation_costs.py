"""The costs of reservations, as counts: of cycles, of fleets that are emptied, and of nodes that are compared."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from scheduling.cycle.reservation_refusals import is_held_back
from scheduling.devices.search.fleet import Fleet
from scheduling.model.node import Node
from scheduling.model.placement import PodSetToPlace
from scheduling.model.vendor import NVIDIA
from scheduling.reservations.reservation import Admittance, BusyPolicy, Reservation
from scheduling.reservations.reserved_nodes import Claimant, ReservedNodes
from tests.scheduling.device_worlds import PLENTY, gpu_node, gpus
from tests.scheduling.world_helpers import Builder, names, settled, workload

TEAM = Claimant("team", "team/q", "cq", "ann")


def counted(monkeypatch: pytest.MonkeyPatch, owner: type, name: str) -> Counter[str]:
    calls: Counter[str] = Counter()
    method = getattr(owner, name)

    def call(self: Any, *args: Any, **fields: Any) -> Any:
        calls[name] += 1
        return method(self, *args, **fields)

    monkeypatch.setattr(owner, name, call)
    return calls


def nodes_and_limits(*limits: int) -> Builder:
    """The nodes a (reserved from 1000) and b (from 3000), and waiting workloads with these limits."""
    builder = Builder().queue("q", {"default": PLENTY})
    for number, name in enumerate("ab"):
        builder.world.set_node(gpu_node(name))
        builder.world.set_reservation(Reservation(name, 1000 + 2000 * number, 9000, frozenset({name})))
    for number, limit in enumerate(limits):
        fields = {"maximum_execution_time_seconds": limit}
        builder.pending(f"w{number}", "q", [gpus(memory_mib=16384)], at=float(number), **fields)
    return builder


def test_one_cycle_refuses_all_limits_to_which_the_same_windows_close_nodes() -> None:
    results = settled(nodes_and_limits(*range(5000, 5040)).world, 0.0)
    assert len(results) <= 2
    assert not any(result.admissions for result in results)


def test_a_limit_that_passes_one_window_more_is_tried() -> None:
    results = settled(nodes_and_limits(5000, 5001, 2500, 500).world, 0.0)
    assert names(each.workload for result in results for each in result.admissions) == ["w2", "w3"]


def test_a_refusal_does_not_refuse_a_limit_that_differs_later() -> None:
    """At 0 both run into the window; what came at 700 with 200 seconds does not, although another one waits."""
    world = nodes_and_limits(5000).world
    assert not any(result.admissions for result in settled(world, 0.0))
    fields = {"maximum_execution_time_seconds": 200}
    world.set_workload(workload("late", "q", [gpus(memory_mib=16384)], at=700.0, **fields), 700.0)
    world.advance(700.0)
    assert names(each.workload for result in settled(world, 700.0) for each in result.admissions) == ["late"]


def test_open_nodes_are_asked_before_all_nodes() -> None:
    asked: list[frozenset[str]] = []
    world = nodes_and_limits().world
    state = world._state

    def fits_empty() -> bool:
        asked.append(state.reservations.closed_to(TEAM, 0.0))
        return True

    assert not is_held_back(state, lambda: False, fits_empty)
    assert asked == [{"a", "b"}]


def test_the_fleet_is_emptied_once_per_pod_until_a_node_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = counted(monkeypatch, Fleet, "_fits_on_empty")
    fleet = Fleet([NVIDIA])
    fleet.set_node(gpu_node("a"))
    pods = PodSetToPlace("main", 1, {"cpu": 1})
    assert [fleet.fits_when_empty(pods) for _ in range(3)] == [True] * 3
    assert calls.total() == 1
    fleet.set_node(gpu_node("a"))
    assert fleet.fits_when_empty(pods)
    assert calls.total() == 1
    fleet.set_node(replace(gpu_node("a"), allocatable={"cpu": 0, "pods": 1}))
    assert not fleet.fits_when_empty(pods), "the node became smaller"
    fleet.set_node(gpu_node("a"))
    assert fleet.fits_when_empty(pods), "the node grew again"
    fleet.delete_node("a")
    assert not fleet.fits_when_empty(pods), "the answer of before is forgotten"
    fleet.set_node(gpu_node("a"))
    assert fleet.fits_when_empty(pods), "the answer of before is forgotten"


def test_a_node_is_compared_with_reservations_when_its_labels_change(monkeypatch: pytest.MonkeyPatch) -> None:
    world = nodes_and_limits().world
    reservations = world._state.reservations
    world.set_reservation(Reservation("rack", 1000, 2000, node_labels={"rack": "1"}))
    assert reservations.nodes_of("rack") == frozenset()
    calls = counted(monkeypatch, Reservation, "covers")
    world.set_node(replace(gpu_node("a"), unschedulable=True))
    assert reservations.nodes_of("rack") == frozenset()
    assert calls.total() == 0
    world.set_node(gpu_node("a", rack="1"))
    assert reservations.nodes_of("rack") == {"a"}
    assert calls.total() == 1
    world.delete_node("a")
    assert reservations.nodes_of("rack") == frozenset()


def test_waiting_workloads_hold_one_set_of_the_reservations_that_are_not_over() -> None:
    reserved = ReservedNodes({})
    reserved.set(Reservation("over", 0, 10))
    reserved.set(Reservation("ahead", 0, 90))
    one, other = (reserved.barring(Claimant("team", f"team/{n}", "cq", n), 20.0) for n in ("ann", "bob"))
    assert one == {"ahead"}
    assert one is other


def test_a_reservation_that_changes_is_seen_at_the_same_time() -> None:
    reserved = ReservedNodes({"a": Node("a")})
    reserved.set(Reservation("r", 0, 90, frozenset({"a"}), if_busy=BusyPolicy.EVICT))
    assert reserved.closed_to(TEAM, 1.0) == {"a"}
    assert reserved.evicting(TEAM, frozenset({"a"}), 1.0) is not None
    reserved.set(Reservation("r", 0, 90, frozenset({"a"}), allowed=Admittance(users=frozenset({"ann"}))))
    assert reserved.closed_to(TEAM, 1.0) == frozenset()
    assert reserved.evicting(TEAM, frozenset({"a"}), 1.0) is None
