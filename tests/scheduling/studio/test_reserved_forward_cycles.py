"""Forward runs of cycles and reservations: a window's end starts workloads, and its start may evict holders."""

from __future__ import annotations

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
