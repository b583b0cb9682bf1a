"""Forward runs of cycles and reservations: a window's end starts workloads, and its start may evict holders."""

from __future__ import annotations

from typing import Any

import pytest

from scheduling.reservations.reservation import BusyPolicy, Reservation
from scheduling.studio.forward_cycles import MAX_WINDOW_SECONDS, ForwardCycles
from scheduling.world import World
from tests.scheduling.device_worlds import PLENTY, gpu_node, gpus
from tests.scheduling.world_helpers import NAMESPACE, Builder, settled

NOW = 1000.0
ASKED = frozenset({f"{NAMESPACE}/w"})


def one_node() -> Builder:
    builder = Builder().queue("q", {"default": PLENTY})
    builder.world.set_node(gpu_node("a"))
    return builder


def starts(world: World, ends: dict[str, float]) -> dict[str, float]:
    run = ForwardCycles(world, NOW, ends, {})
    run.run(ASKED, lambda: True)
    return {key.removeprefix(f"{NAMESPACE}/"): at for key, at in run.starts.items()}


def test_a_waiting_workload_starts_when_the_window_ends() -> None:
    for end, expected in ((NOW + 500, {"w": 500.0}), (NOW + MAX_WINDOW_SECONDS + 1, {})):
        builder = one_node().pending("w", "q", [gpus(memory_mib=16384)])
        builder.world.set_reservation(Reservation("r", NOW - 1, end, frozenset({"a"})))
        settled(builder.world, NOW)
        assert starts(builder.world, {}) == expected


def test_a_holder_leaves_at_the_start_of_a_window_that_evicts() -> None:
    for policy, expected in ((BusyPolicy.EVICT, 900.0), (BusyPolicy.WAIT, 5000.0)):
        builder = one_node().pending("holder", "q", [gpus(memory_mib=16384)])
        settled(builder.world, NOW)
        builder.world.set_reservation(Reservation("r", NOW + 100, NOW + 900, frozenset({"a"}), if_busy=policy))
        builder.pending("w", "q", [gpus(memory_mib=16384)], at=1.0, priority=1)
        settled(builder.world, NOW)
        assert starts(builder.world, {f"{NAMESPACE}/holder": 5000.0})["w"] == expected


def test_only_windows_with_an_effect_are_played(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a hundred windows on the node, only the ends wake the queue; without a waiting workload, none does."""
    for waits, most in ((True, 101), (False, 1)):
        builder = one_node()
        if waits:
            builder.pending("w", "q", [gpus(memory_mib=16384)])
        for number in range(100):
            end = NOW + 100 + number
            builder.world.set_reservation(Reservation(f"r{number}", NOW + number / 2, end, frozenset({"a"})))
        settled(builder.world, NOW)
        moments: list[float] = []
        advance = World.advance

        def note(self: World, now: float, moments: list[float] = moments, advance: Any = advance) -> None:
            moments.append(now)
            advance(self, now)

        with monkeypatch.context() as patched:
            patched.setattr(World, "advance", note)
            assert starts(builder.world, {}) == ({"w": 199.0} if waits else {})
        assert len(set(moments)) <= most
        assert not any(now - NOW in [number / 2 for number in range(1, 100)] for now in moments)


def test_ends_are_not_merged_across_the_start_of_a_window() -> None:
    """Ends at 10,000 and 10,100 seconds happen at once, but not if a window evicts a holder between them."""
    builder = one_node()
    builder.world.set_node(gpu_node("b"))
    for name in ("one", "two"):
        builder.pending(name, "q", [gpus(memory_mib=16384)])
    settled(builder.world, NOW)
    evicted = next(n for n in ("one", "two") if _node(builder.world, n) == "a")
    kept = "two" if evicted == "one" else "one"
    window = Reservation("r", NOW + 10_050, NOW + 20_000, frozenset({"a"}), if_busy=BusyPolicy.EVICT)
    builder.world.set_reservation(window)
    run = ForwardCycles(builder.world, NOW, {f"{NAMESPACE}/{kept}": 10_000.0, f"{NAMESPACE}/{evicted}": 10_100.0}, {})
    run.run(ASKED, lambda: True)
    assert f"{NAMESPACE}/{evicted}" in run.starts, "it was evicted at the start, and waits for the free node"


def _node(world: World, name: str) -> str:
    found = world.workload(f"{NAMESPACE}/{name}")
    assert found is not None
    assert found.placement is not None
    return found.placement.pods[0].node
