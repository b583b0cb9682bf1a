"""Slices of elastic jobs and reservations: a new slice does not extend the loan of a reserved node."""

from __future__ import annotations

from typing import Any, Final

import pytest

from scheduling.lifecycle.conditions import evict
from scheduling.lifecycle.conditions import reserved as reserved_again
from scheduling.model.admission_check import AdmissionCheck, AdmissionCheckRule
from scheduling.model.node import Node
from scheduling.model.selectors import HOSTNAME_LABEL
from scheduling.model.topology import Topology
from scheduling.model.vocabulary import EvictionReason
from scheduling.world import World
from tests.scheduling.cycle.test_reserved_nodes import (
    START,
    WAITS,
    limited,
    nodes_of,
    reservation,
    started,
    two_nodes,
    whole,
)
from tests.scheduling.device_worlds import gpu_node, gpu_racks, gpus, rack_node
from tests.scheduling.world_helpers import (
    NAMESPACE,
    Builder,
    reason_of,
    workload,
)

SLICE: Final = [gpus(memory_mib=16_000)]


def lent_slice(*, racks: bool, limit: dict[str, Any], pods: int = 1) -> World:
    """A slice of an elastic job on b, which is reserved, and also on a if it has two pods; otherwise a is free."""
    world = (gpu_racks(rack_node("a", "1"), rack_node("b", "1")) if racks else two_nodes()).world
    world.set_workload(workload("filler", "q", SLICE), 0.0)
    assert started(world) == ["filler"]
    assert nodes_of(world, "filler") == ["a"]
    if limit:
        world.set_reservation(reservation("b"))
    if pods > 1:
        world.finish_workload(f"{NAMESPACE}/filler", 0.0)
    world.set_workload(workload("old", "q", [gpus(memory_mib=16_000, pods=pods)], at=1.0, **limit), 0.0)
    assert started(world) == ["old"]
    assert "b" in nodes_of(world, "old")
    world.set_reservation(reservation("b"))
    world.finish_workload(f"{NAMESPACE}/filler", 400.0)
    return world


@pytest.mark.parametrize("racks", [False, True])
@pytest.mark.parametrize(
    ("now", "before", "after", "pods", "starts"),
    [
        (500.0, 1000, 1000, 2, False),
        (500.0, 1000, None, 2, False),
        (500.0, 1000, 500, 2, True),
        (500.0, None, None, 2, True),
        (1500.0, 1000, None, 2, False),
        (1500.0, None, None, 2, True),
    ],
)
def test_a_slice_does_not_keep_reserved_nodes_longer_than_the_one_before(
    racks: bool, now: float, before: int | None, after: int | None, pods: int, starts: bool
) -> None:
    """The limit of a new slice starts over, and its pods stay where those of the old one are."""
    world = lent_slice(racks=racks, limit={} if before is None else limited(before))
    limit = {} if after is None else limited(after)
    made = [gpus(memory_mib=16_000, pods=pods)]
    world.set_workload(workload("new", "q", made, at=now, replaces=f"{NAMESPACE}/old", **limit), now)
    assert started(world, now) == (["new"] if starts else [])
    assert reason_of(world, "new") == ("" if starts else WAITS)


@pytest.mark.parametrize(("after", "starts"), [(1000, False), (500, True)])
def test_a_slice_shrinks_on_a_reserved_node_only_if_it_ends_no_later(after: int, starts: bool) -> None:
    world = lent_slice(racks=False, limit=limited(1000), pods=2)
    made = workload("new", "q", SLICE, at=500.0, replaces=f"{NAMESPACE}/old", **limited(after))
    world.set_workload(made, 500.0)
    assert started(world, 500.0) == (["new"] if starts else [])


@pytest.mark.parametrize("reserved", [True, False])
def test_a_slice_without_devices_stays_off_the_reserved_host_of_the_one_before(reserved: bool) -> None:
    builder = Builder().flavor("tas", topology_name="hosts")
    builder.world.set_topology(Topology("hosts", (HOSTNAME_LABEL,)))
    builder.queue("q", {"tas": 100})
    for name in "ab":
        builder.world.set_node(Node(name, {HOSTNAME_LABEL: name}, allocatable={"cpu": 4000, "pods": 110}))
    builder.pending("old", "q", 4, **limited(1000))
    assert started(builder.world) == ["old"]
    builder.world.set_reservation(reservation("a" if reserved else "none"))
    made = workload("new", "q", 4, count=2, at=500.0, replaces=f"{NAMESPACE}/old", **limited(1000))
    builder.world.set_workload(made, 500.0)
    assert started(builder.world, 500.0) == ([] if reserved else ["new"])


def test_a_slice_that_took_over_pods_is_admitted_when_its_checks_are_ready() -> None:
    """One that was evicted since then has no pods any more."""
    rule = AdmissionCheckRule("check")
    builder = two_nodes(admission_checks=(rule,))
    builder.world.set_admission_check(AdmissionCheck("check", "example.com/check"))
    builder.pending("old", "q", whole())
    assert started(builder.world) == ["old"]
    builder.world.set_reservation(reservation("a"))
    builder.pending("new", "q", whole(), at=1.0, replaces=f"{NAMESPACE}/old")
    assert started(builder.world, 1.0) == ["new"]
    key = f"{NAMESPACE}/new"
    assert builder.world.closing_window(key, START) is None
    found = builder.world.workload(key)
    assert found is not None
    evicted = evict(found, EvictionReason.DRAINED, "moved", 2.0)
    builder.world.set_workload(reserved_again(evicted, "Quota reserved", 3.0), 3.0)
    window = builder.world.closing_window(key, START)
    assert window is not None
    assert window.reservation == "maintenance"


def test_a_slice_on_open_nodes_grows_as_before() -> None:
    world = two_nodes().pending("old", "q", SLICE).world
    world.set_node(gpu_node("c"))
    assert started(world) == ["old"]
    assert nodes_of(world, "old") == ["a"]
    world.set_reservation(reservation("b"))
    world.set_workload(workload("new", "q", whole(pods=2), at=1.0, replaces=f"{NAMESPACE}/old"), 1.0)
    assert started(world, 1.0) == ["new"]
    assert sorted(nodes_of(world, "new")) == ["a", "c"]
