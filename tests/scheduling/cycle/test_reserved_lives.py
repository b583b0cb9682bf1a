"""Random worlds with reservations, played second by second: no window finds its nodes in use."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from scheduling.model.vocabulary import BackfillPolicy
from scheduling.reservations.reservation import Admittance, BusyPolicy, Reservation
from tests.scheduling.cycle.test_reserved_nodes import (
    limited,
    nodes_of,
)
from tests.scheduling.device_worlds import PLENTY, gpu_node, gpu_racks, gpus, rack_node
from tests.scheduling.world_helpers import (
    NAMESPACE,
    Builder,
    settled,
    workload,
)


@dataclass(frozen=True)
class Asked:
    """A workload of a random world."""

    at: int
    devices: int
    pods: int
    limit: int | None
    user: str
    runs: int


ASKED = st.builds(
    Asked,
    at=st.integers(0, 60),
    devices=st.integers(1, 2),
    pods=st.integers(1, 3),
    limit=st.none() | st.integers(1, 60),
    user=st.sampled_from(["ann", "bob"]),
    runs=st.integers(1, 40),
)


@st.composite
def reservations(draw: st.DrawFn) -> list[Reservation]:
    """Reservations that begin after time 5, of some nodes and for some users."""
    found = []
    for number in range(draw(st.integers(0, 3))):
        start = draw(st.integers(5, 60))
        users = draw(st.frozensets(st.sampled_from(["ann", "bob"]), max_size=1))
        found.append(
            Reservation(
                f"r{number}",
                float(start),
                float(start + draw(st.integers(1, 30))),
                draw(st.frozensets(st.sampled_from("abcd"), min_size=1)),
                allowed=Admittance(users=users),
                if_busy=draw(st.sampled_from(BusyPolicy)),
            )
        )
    return found


class Run:
    """Plays a world second by second. A workload ends after its time, or at its limit; one without a limit may run on.
    Windows alone evict, and evicted workloads stop at once."""

    def __init__(self, asked: list[Asked], windows: list[Reservation], *, topology: bool) -> None:
        self.asked = {f"w{number}": each for number, each in enumerate(asked)}
        self.windows = windows
        self.started: dict[str, int] = {}
        self.log: list[tuple[int, str, tuple[str, ...]]] = []
        self.evicted: list[str] = []
        fields: dict[str, Any] = {"backfill": BackfillPolicy.EASY}
        if topology:
            self.world = gpu_racks(*(rack_node(name, "12"[name > "b"], 2) for name in "abcd"), **fields).world
        else:
            self.world = Builder().queue("q", {"default": PLENTY}, **fields).world
            for name in "abcd":
                self.world.set_node(gpu_node(name, 2))
        for each in windows:
            self.world.set_reservation(each)

    def play(self, since: int = 0, until: int = 100) -> Run:
        for now in range(since, until):
            self.world.advance(float(now))
            self._end(now)
            self._evict(now)
            self._arrive(now)
            for result in settled(self.world, float(now)):
                for admission in result.admissions:
                    name = admission.workload.removeprefix(f"{NAMESPACE}/")
                    self.started[name] = now
                    self.log.append((now, name, tuple(nodes_of(self.world, name))))
            self.check(now)
        return self

    def _end(self, now: int) -> None:
        for name, since in [*self.started.items()]:
            asked = self.asked[name]
            if now >= since + min(asked.runs, asked.limit or asked.runs):
                del self.started[name]
                self.world.finish_workload(f"{NAMESPACE}/{name}", float(now))

    def _evict(self, now: int) -> None:
        for key in self.world.evict_for_windows(float(now)):
            name = key.removeprefix(f"{NAMESPACE}/")
            del self.started[name]
            self.evicted.append(name)
            self.world.release_workload(key, float(now))

    def _arrive(self, now: int) -> None:
        for name, asked in self.asked.items():
            if asked.at == now:
                limit = {} if asked.limit is None else limited(asked.limit)
                pods = [gpus(asked.devices, 16_000, pods=asked.pods)]
                made = workload(name, "q", pods, at=float(now), submitted_by=asked.user, **limit)
                self.world.set_workload(made, float(now))

    def check(self, now: int) -> None:
        """No workload is on a node that a window closes to it: its limit ended before."""
        for window in self.windows:
            if not window.starts_at <= now < window.ends_at:
                continue
            for name in self.started:
                if self.asked[name].user not in window.allowed.users:
                    assert window.node_names.isdisjoint(nodes_of(self.world, name)), (now, name, window)


@settings(max_examples=60, deadline=None)
@given(st.lists(ASKED, min_size=1, max_size=8), reservations(), st.booleans())
def test_no_window_finds_its_nodes_in_use(asked: list[Asked], windows: list[Reservation], topology: bool) -> None:
    """All reservations were made before the first workload, so that even those that evict find nothing to evict."""
    run = Run(asked, windows, topology=topology).play()
    assert run.evicted == []
    untouched = Run(asked, [], topology=topology).play()
    if not windows:
        assert run.log == untouched.log
    everyone = Admittance(users=frozenset({"ann", "bob"}))
    open_to_all = Run(asked, [replace(each, allowed=everyone) for each in windows], topology=topology).play()
    assert open_to_all.log == untouched.log, "reservations that allow every workload change nothing"


@settings(max_examples=40, deadline=None)
@given(st.lists(ASKED, min_size=1, max_size=6), reservations(), st.booleans())
def test_a_reservation_made_over_running_workloads_evicts_them_at_its_start(
    asked: list[Asked], windows: list[Reservation], topology: bool
) -> None:
    early = [replace(each, at=0, runs=99, limit=None) for each in asked]
    run = Run(early, [], topology=topology)
    run.play(until=1)
    held = {name: set(nodes_of(run.world, name)) for name in run.started}
    run.windows = [each for each in windows if each.if_busy is BusyPolicy.EVICT]
    for each in windows:
        run.world.set_reservation(each)
    run.play(since=1)
    closing = [each for each in windows if each.if_busy is BusyPolicy.EVICT]
    expected = {
        name
        for name, used in held.items()
        if any(used & each.node_names and run.asked[name].user not in each.allowed.users for each in closing)
    }
    assert expected <= set(run.evicted)
