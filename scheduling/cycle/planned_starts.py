"""Backfill as EASY schedulers do it: the first workload of a queue that must wait gets a planned start, and later ones
may pass only if they do not delay it.

A planned start is the first declared end of a running workload at which the waiting one fits, found by the searches
with which the cycle admits: quota, topology and devices. A workload without a declared limit (maximum execution time)
never ends for a plan. Plans are computed again whenever they are needed. None is kept.

Windows of reservations close and open nodes on the way: a plan is sought in the spans of time between which the same
nodes are closed to the workload.

Only ClusterQueues that select backfill have plans, and only their workloads are held back.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from typing import Final, Self

from scheduling.cycle.assignment import Assignment, Mode, Refusal, RefusalKind
from scheduling.cycle.closed_nodes import spans_of_closing
from scheduling.cycle.flavor_assigner import FlavorAssigner
from scheduling.cycle.flavor_devices import DeviceAssigner
from scheduling.cycle.flavor_placement import PlacementAssigner
from scheduling.cycle.preemption import Target
from scheduling.cycle.user_limits import refuse_user
from scheduling.model.resources import FlavorResource
from scheduling.model.vocabulary import ConditionType, PendingReason
from scheduling.quota.cells import Cell, add_usage, remove_usage
from scheduling.state.cluster_queue import ClusterQueueState
from scheduling.state.state import State
from scheduling.state.what_if import Simulation
from scheduling.state.workload_info import WorkloadInfo

MAX_CANDIDATES: Final = 16
"""At most this many different workloads of a queue are tried for a plan. Each costs as much as in a cycle."""
_FOR_ROOM: Final = frozenset(
    {
        PendingReason.WAITING_FOR_QUOTA,
        PendingReason.WAITING_FOR_DEVICES,
        PendingReason.WAITING_FOR_NODES,
        PendingReason.TOPOLOGY_PLACEMENT_FAILED,
        PendingReason.WAITING_FOR_PLANNED_START,
        PendingReason.WAITING_FOR_RESERVATION,
    }
)
"""The verdicts that the end of another workload, or of a window, can change."""

Ends = list[tuple[float, WorkloadInfo]]
"""Workloads that hold quota with their declared ends, the earliest first."""


@dataclass(frozen=True, slots=True)
class PlannedAmount:
    """Quota that a planned start uses, in base units."""

    flavor: str
    resource: str
    amount: int


@dataclass(frozen=True, slots=True)
class PlannedStart:
    """The time when a waiting workload starts if the running ones end at their declared limits, and the quota that it
    then gets."""

    workload: str
    cluster_queue: str
    starts_at: float
    quota: tuple[PlannedAmount, ...]


class _Plan:
    """A planned start, with the workloads that have ended by then."""

    __slots__ = ("cq", "ended", "info", "quota", "starts_at")

    def __init__(
        self,
        info: WorkloadInfo,
        cq: ClusterQueueState,
        starts_at: float,
        ended: Sequence[WorkloadInfo],
        quota: dict[Cell, int],
    ) -> None:
        self.info = info
        self.cq = cq
        self.starts_at = starts_at
        self.ended = ended
        self.quota = quota

    @property
    def keys(self) -> frozenset[FlavorResource]:
        return frozenset(cell.key for cell in self.quota)

    def told(self) -> PlannedStart:
        amounts = ((cell.key.flavor, cell.key.resource, amount) for cell, amount in self.quota.items())
        return PlannedStart(
            self.info.key, self.cq.name, self.starts_at, tuple(PlannedAmount(*each) for each in sorted(amounts))
        )


class _Ended:
    """Removes the first workloads of a list of ends from the usage, and restores them when the context ends."""

    def __init__(self, simulation: Simulation, ends: Ends) -> None:
        self._simulation = simulation
        self._ends = ends
        self._count = 0

    def let(self, count: int) -> None:
        """Remove or restore workloads until this number of them is removed."""
        while self._count < count:
            self._simulation.remove(self._ends[self._count][1], note=False)
            self._count += 1
        while self._count > count:
            self._count -= 1
            self._simulation.restore(self._ends[self._count][1], note=False)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.let(0)


class Planner:
    """Plans starts on the state's live usage, which is the same after each call."""

    def __init__(
        self, state: State, assigner: FlavorAssigner, placement: PlacementAssigner, devices: DeviceAssigner
    ) -> None:
        """`assigner` must not search for victims: a planned start preempts nothing."""
        self.heads: dict[str, WorkloadInfo] = {}
        """The heads of the present cycle by ClusterQueue. They wait, but are in no queue until the cycle ends."""
        self._state = state
        self._assigner = assigner
        self._placement = placement
        self._devices = devices

    def planned_start(self, info: WorkloadInfo, cq: ClusterQueueState) -> PlannedStart | None:
        """Return the protected planned start of a waiting workload; None if it has none."""
        if cq.spec.backfill is None or self.plans_before(info, cq):
            return None
        plan = self._first_plan(cq, [info])
        return plan.told() if plan is not None else None

    def plans_before(self, info: WorkloadInfo, cq: ClusterQueueState) -> bool:
        """Return whether a workload before it in its queue has a planned start."""
        return self._first_plan(cq, cq.queue.firsts_before(info)) is not None

    def delayed_by(
        self, info: WorkloadInfo, cq: ClusterQueueState, assignment: Assignment, targets: Sequence[Target] = ()
    ) -> PlannedStart | None:
        """Return the first planned start that the workload would delay with this assignment; None if there is none.
        `targets`: the workloads that it would preempt."""
        if cq.spec.backfill is None:
            return None
        victims = [target.info for target in targets]
        parent = info.workload.parent
        for plan in self._plans_before(info, cq, assignment):
            if parent and plan.info.workload.parent == parent:
                continue  # variants of one workload: only one of them runs at a time
            if self._delays(plan, info, cq, assignment, victims):
                return plan.told()
        return None

    def refusal(
        self, info: WorkloadInfo, cq: ClusterQueueState, assignment: Assignment, targets: Sequence[Target] = ()
    ) -> Refusal | None:
        """Return the refusal of a workload that would delay a planned start.

        The text names no other workload, because equal workloads of other tenants get the same text. It names no time
        either, because a start that is computed from the present would change the text with each attempt.
        """
        found = self.delayed_by(info, cq, assignment, targets)
        if found is None:
            return None
        whose = "ahead of it" if found.cluster_queue == cq.name else "of another ClusterQueue of its cohort"
        text = f"would delay the planned start of a workload {whose}"
        return Refusal(RefusalKind.PLANNED_START, PendingReason.WAITING_FOR_PLANNED_START, text=text)

    # -- the plans that a workload must not delay ----------------------------------------------------------------------

    def _plans_before(self, info: WorkloadInfo, cq: ClusterQueueState, assignment: Assignment) -> Iterator[_Plan]:
        """Yield the plan of its own queue, and of each queue of its cohort that waits for quota which the workload
        would borrow."""
        own = self._first_plan(cq, cq.queue.firsts_before(info))
        if own is not None:
            yield own
        borrowed = {cell.key for cell, amount in assignment.usage.items() if cell.usage + amount > cell.subtree}
        for other in self._state.tree_of(cq) if borrowed else ():
            if other is cq or other.spec.backfill is None or not other.active:
                continue
            head = self.heads.get(other.name)
            admitted = head is None or head.key in other.workloads
            plan = self._first_plan(other, other.queue.firsts(None if admitted else head))
            if plan is not None and _order(plan.info, other) < _order(info, cq) and not borrowed.isdisjoint(plan.keys):
                yield plan

    def _first_plan(self, cq: ClusterQueueState, waiting: Iterable[WorkloadInfo]) -> _Plan | None:
        """Return the plan of the first waiting workload that can have one. Others block nothing."""
        candidates = list(islice((info for info in waiting if self._waits_for_room(info, cq)), MAX_CANDIDATES))
        candidates = [info for info in candidates if self._fit(info, cq) is None]  # the others wait for no end
        if not candidates:
            return None
        ends = self._ends(cq, candidates)
        with _Ended(self._state.simulation, ends) as ended:
            for info in candidates:
                plan = self._plan(info, cq, ends, ended)
                if plan is not None:
                    return plan
        return None

    def _waits_for_room(self, info: WorkloadInfo, cq: ClusterQueueState) -> bool:
        """Return whether the end of other workloads may let it start, by its last verdict."""
        verdict = cq.queue.outcome(info)
        known = verdict is None or verdict[0] in _FOR_ROOM
        return known and info.workload.replaces is None and self._state.namespace_matches(info, cq)

    def _plan(self, info: WorkloadInfo, cq: ClusterQueueState, ends: Ends, ended: _Ended) -> _Plan | None:
        """Return the plan of a workload; None if it does not fit even after all ends."""
        first = 0
        for start, end in spans_of_closing(self._state, info):
            last = bisect_left(ends, end, key=lambda each: each[0])
            ended.let(last)
            moment = start + min(1.0, (end - start) / 2)  # its start may still be open: a window closes after it
            with self._state.reservations.at(moment):
                if self._fit(info, cq) is not None:
                    return self._plan_between(info, cq, ends, ended, (start, first, last))
            first = last
        return None

    def _plan_between(
        self, info: WorkloadInfo, cq: ClusterQueueState, ends: Ends, ended: _Ended, span: tuple[float, int, int]
    ) -> _Plan:
        """Return the plan of a workload that fits after the last end of a span (its start, and the numbers of ends
        before it and by its end): a binary search for the first end after which it fits. An end takes no place away, so
        that it fits after all later ones, too."""
        start, low, high = span
        usage: dict[Cell, int] = {}
        while low < high:
            middle = (low + high) // 2
            ended.let(middle)
            found = self._fit(info, cq)
            if found is None:
                low = middle + 1
            else:
                high, usage = middle, found
        if not usage:
            ended.let(low)
            usage = self._fit(info, cq) or {}
        starts_at = max(start, ends[low - 1][0]) if low else start
        return _Plan(info, cq, starts_at, [other for end, other in ends if end <= starts_at], usage)

    # -- trials on the live usage --------------------------------------------------------------------------------------

    def _delays(
        self,
        plan: _Plan,
        info: WorkloadInfo,
        cq: ClusterQueueState,
        assignment: Assignment,
        victims: Sequence[WorkloadInfo],
    ) -> bool:
        left = info.workload.time_left_seconds
        # With checks, its time begins when they are ready, and that time is not known.
        if left is not None and not cq.spec.admission_checks and self._state.now + left <= plan.starts_at:
            return False
        replaced = self._state.replaced_slice(info, cq)
        gone = [*plan.ended, *victims, *([replaced] if replaced is not None else [])]
        with self._without(gone), self._with(info, assignment), self._state.reservations.at(plan.starts_at):
            return self._fit(plan.info, plan.cq) is None

    def _fit(self, info: WorkloadInfo, cq: ClusterQueueState) -> dict[Cell, int] | None:
        """Return the quota that a waiting workload would use if it was decided now; None if it does not fit."""
        last, info.last_assignment = info.last_assignment, None
        assignment = self._assigner.assign(cq, info, info.pod_sets)
        info.last_assignment = last
        fits = assignment.mode is Mode.FIT and refuse_user(self._state, info, cq, assignment.usage) is None
        return assignment.usage if fits and self._has_place(info, cq, assignment) else None

    def _has_place(self, info: WorkloadInfo, cq: ClusterQueueState, assignment: Assignment) -> bool:
        self._placement.place(info, cq, assignment, explained=False)
        return assignment.mode is Mode.FIT

    def _ends(self, cq: ClusterQueueState, waiting: Iterable[WorkloadInfo]) -> Ends:
        """Return the declared ends of workloads that hold quota in the cohort tree; in all trees if nodes matter,
        because trees share nodes. Removed workloads are left out."""
        state = self._state
        on_nodes = any(slot.topology for group in cq.groups for slot in group.flavors)
        on_nodes = on_nodes or any(self._devices.concerns(info) for info in waiting)
        queues = state.cluster_queues.values() if on_nodes else state.tree_of(cq)
        removed = state.simulation.removed
        holders = [info for each in queues for info in each.workloads.values() if info.key not in removed]
        found = [(end, info.key, info) for info in holders if (end := self._end(info)) is not None]
        return [(end, info) for end, _, info in sorted(found, key=lambda each: each[:2])]

    def _end(self, info: WorkloadInfo) -> float | None:
        """Return the declared end of a workload that holds quota; None without a limit.

        A workload that is not admitted yet ends at the earliest if it is admitted now. An overdue workload, and one
        whose pods are stopping, ends now.
        """
        now = self._state.now
        if info.evicted:
            return now
        left = info.workload.time_left_seconds
        if left is None:
            return None
        workload = info.current()
        admitted = workload.is_true(ConditionType.ADMITTED)
        since = workload.conditions[ConditionType.ADMITTED].last_transition_time if admitted else now
        return max(now, since + left)

    @contextmanager
    def _without(self, infos: Iterable[WorkloadInfo]) -> Iterator[None]:
        """Remove these workloads from the usage until the exit. Workloads that are removed already stay removed."""
        simulation = self._state.simulation
        removed = [info for info in dict.fromkeys(infos) if info.key not in simulation.removed]
        for info in removed:
            simulation.remove(info, note=False)
        try:
            yield
        finally:
            for info in removed:
                simulation.restore(info, note=False)

    @contextmanager
    def _with(self, info: WorkloadInfo, assignment: Assignment) -> Iterator[None]:
        """Charge an assignment until the exit, as if its workload were admitted."""
        usage, topologies, fleet = tuple(assignment.usage.items()), self._state.topology_flavors, self._state.fleet
        add_usage(usage)
        for flavor, charge in assignment.topology_usage:
            topologies.add_usage(flavor, charge)
        if assignment.placement is not None:
            fleet.reserve(info.key, assignment.placement)
        try:
            yield
        finally:
            if assignment.placement is not None:
                fleet.release(info.key)
            for flavor, charge in assignment.topology_usage:
                topologies.remove_usage(flavor, charge)
            remove_usage(usage)


def _order(info: WorkloadInfo, cq: ClusterQueueState) -> tuple[int, float, str, str]:
    """Return the order across queues: class and time, or the multifactor priority where the root cohort weighs it."""
    return info.order if cq.ordered_across else info.class_order
