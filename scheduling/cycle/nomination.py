"""Nomination: finds the assignment of each head, against the same unchanged usage."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from contextlib import contextmanager
from enum import Enum, auto
from typing import TypeVar

from scheduling.cycle.assignment import Assignment, Mode, reserved_assignment
from scheduling.cycle.closed_nodes import outstays
from scheduling.cycle.flavor_assigner import FlavorAssigner, Pins, not_covered
from scheduling.cycle.flavor_devices import DeviceAssigner
from scheduling.cycle.flavor_placement import PlacementAssigner
from scheduling.cycle.flavor_topology import TopologyAssigner
from scheduling.cycle.planned_starts import Planner
from scheduling.cycle.preemption import Preemptor, Target
from scheduling.cycle.preemption_request import PreemptionRequest
from scheduling.cycle.reservation_refusals import refuse_slice
from scheduling.cycle.user_limits import refuse_user
from scheduling.lifecycle.elastic import split_domains
from scheduling.lifecycle.inadmissible import NAMESPACE_MISMATCH
from scheduling.model.vocabulary import AdmissionCheckStatus, PendingReason, PreemptionReason
from scheduling.quota.cells import Cell, CellAmounts
from scheduling.state.cluster_queue import ClusterQueueState
from scheduling.state.state import State
from scheduling.state.workload_info import PodSetRequests, WorkloadInfo

Found = TypeVar("Found")


class Status(Enum):
    """The result of an entry in this cycle."""

    NOT_NOMINATED = auto()
    """It does not fit, was refused before, or waits for its victims to stop."""
    SKIPPED = auto()
    """An earlier entry of the cycle has taken its quota, victims or places, or other pods must be ready first."""
    ASSUMED = auto()
    """It is admitted, or its pods have their places."""
    GATED = auto()
    """It would have to preempt, and a gate forbids that."""


class RequeueReason(Enum):
    """The reason why an entry is requeued; decides whether it stays active.

    A StrictFIFO queue keeps an entry active for any reason but NAMESPACE_MISMATCH, and every queue one that has flavors
    left to try.
    """

    GENERIC = auto()
    """The initial value: inadmissible until a change could help, or active at once if the entry was nominated."""
    FAILED_AFTER_NOMINATION = auto()
    """Active at once: only the order of this cycle stood in its way."""
    NO_FIT = auto()
    """Inadmissible until a change could help, together with all equal workloads, which would not fit either."""
    NO_CANDIDATES = auto()
    """Inadmissible in the same way: preemption could help, but finds no victims now."""
    NAMESPACE_MISMATCH = auto()
    """Inadmissible until the namespace's labels or the queue's selector change, even in a StrictFIFO queue."""
    PENDING_PREEMPTION = auto()
    """Active at once: its victims are stopping."""
    GATED = auto()
    """Inadmissible until a change could help, such as the opening of a gate, the end of a pause or the stop of a lesser
    variant. Equal workloads are not affected."""


class Entry:
    """A head in a cycle. `refused`: it failed a check before nomination. `replaced`: the slice of an elastic job
    that this workload replaces."""

    __slots__ = ("assignment", "cq", "info", "message", "reason", "refused", "replaced", "requeue", "status", "targets")

    def __init__(self, info: WorkloadInfo, cq: ClusterQueueState) -> None:
        self.info = info
        self.cq = cq
        self.assignment = Assignment()
        self.targets: list[Target] = []
        self.replaced: WorkloadInfo | None = None
        self.status = Status.NOT_NOMINATED
        self.requeue = RequeueReason.GENERIC
        self.reason = PendingReason.PENDING_EVALUATION
        self.message = ""
        self.refused = False

    @property
    def is_second_pass(self) -> bool:
        """Return whether the workload already holds quota and only needs topology and devices."""
        return self.replaced is self.info

    def is_after_its_slice(self, placed: Container[str]) -> bool:
        """Return whether this cycle has already decided the slice that the entry replaces: it was asked to stop or
        is in `placed`. In a second pass the slice is the workload itself. A cycle decides each workload once."""
        replaced = self.replaced
        return replaced is not None and (replaced.evicted or (replaced is not self.info and replaced.key in placed))

    def net_usage(self) -> CellAmounts:
        """Return the usage beyond that of the slice that the entry replaces."""
        usage = self.assignment.usage
        if self.replaced is None:
            return tuple(usage.items())
        held = dict(self.replaced.usage)
        return tuple((cell, max(0, amount - held.get(cell, 0))) for cell, amount in usage.items())

    def refuse(self, reason: PendingReason, message: str, requeue: RequeueReason = RequeueReason.GENERIC) -> None:
        """Record why the entry cannot be nominated."""
        self.refused = True
        self.reason = reason
        self.message = message
        self.requeue = requeue


class Nominator:
    """Finds assignments and preemption targets for heads, on the state's live usage."""

    def __init__(
        self,
        state: State,
        assigner: FlavorAssigner,
        topology: TopologyAssigner,
        devices: DeviceAssigner,
        preemptor: Preemptor,
        planner: Planner,
    ) -> None:
        self._state = state
        self._planner = planner
        self._assigner = assigner
        self._topology = topology
        self._devices = devices
        self._placement = PlacementAssigner(topology, devices)
        self._preemptor = preemptor

    def delays_planned_start(self, entry: Entry) -> bool:
        """Return whether an entry would delay a planned start, on the present usage."""
        return self._planner.delayed_by(entry.info, entry.cq, entry.assignment, entry.targets) is not None

    @contextmanager
    def searches(self) -> Iterator[None]:
        """Keep the common results of a cycle's searches for preemption targets, and forget its heads at the end."""
        with self._preemptor.searches():
            try:
                yield
            finally:
                self._planner.heads = {}

    def protect_heads(self, heads: Iterable[tuple[WorkloadInfo, ClusterQueueState]]) -> None:
        """Count the heads of a cycle as waiting for plans, although they were taken from their queues."""
        self._planner.heads = {cq.name: info for info, cq in heads}

    def charged(self, cq: ClusterQueueState) -> None:
        """Stop planning a start for the head of a ClusterQueue, because its usage is now charged."""
        self._planner.heads.pop(cq.name, None)

    def nominate(self, info: WorkloadInfo, cq: ClusterQueueState, cycle: int) -> Entry:
        """Check a head and find its assignment."""
        entry = Entry(info, cq)
        workload = info.workload
        if workload.admission_checks and any(
            check.state in (AdmissionCheckStatus.RETRY, AdmissionCheckStatus.REJECTED)
            for check in workload.admission_checks
        ):
            entry.refuse(PendingReason.PENDING_EVALUATION, "an admission check failed")
            return entry
        if not self._state.namespace_matches(info, cq):
            entry.refuse(PendingReason.MISCONFIGURED, self._not_selected(info, cq), RequeueReason.NAMESPACE_MISMATCH)
            return entry
        violated = self._state.pod_defaults.violation(workload.namespace, (ps.pod_set for ps in info.pod_sets))
        if violated:
            entry.refuse(PendingReason.MISCONFIGURED, f"didn't satisfy LimitRange constraints: {violated}")
            return entry
        exceeded = info.exceeded_limit()
        if exceeded is not None:
            entry.refuse(PendingReason.MISCONFIGURED, f"requests must not exceed limits ({exceeded})")
            return entry
        problem = self._devices.problem(info)
        if problem is not None:
            entry.refuse(PendingReason.MISCONFIGURED, problem)
            return entry
        unplaceable = self._devices.unplaceable_claims(info)
        if unplaceable:
            entry.refuse(PendingReason.WAITING_FOR_DEVICES, unplaceable)
            return entry
        if info.last_assignment is not None and info.last_assignment.is_outdated(cycle, cq.generation):
            info.last_assignment = None
        entry.replaced = self._state.replaced_slice(info, cq)
        if workload.replaces is not None and entry.replaced is None and self._is_stopping(workload.replaces):
            reason = PendingReason.WAITING_FOR_PREEMPTED_WORKLOADS
            entry.refuse(reason, f"the slice that this workload replaces, {workload.replaces}, has not stopped yet")
            return entry
        entry.assignment, entry.targets = self.find_assignment(info, cq)
        return entry

    def nominate_again(self, info: WorkloadInfo, cq: ClusterQueueState) -> Entry:
        """Find a place for a workload that holds quota, in its flavors."""
        entry = Entry(info, cq)
        entry.replaced = info
        entry.assignment, entry.targets = self.assign_again(info, cq)
        return entry

    def assign_again(self, info: WorkloadInfo, cq: ClusterQueueState) -> tuple[Assignment, list[Target]]:
        """Return the assignment for `nominate_again`, as if the workload's own usage were gone."""
        assignment = reserved_assignment(info, cq.node)
        self._state.simulation.remove(info)
        self._placement.place(info, cq, assignment)
        targets = self._find_targets(info, cq, assignment)
        self._topology.place_despite_preemption(assignment, targets)
        self._state.simulation.restore(info)
        return assignment, targets

    def _is_stopping(self, key: str) -> bool:
        """Return whether a slice is evicted while its pods still run."""
        info = self._state.workloads.get(key)
        return info is not None and info.current().admission is not None

    def _not_selected(self, info: WorkloadInfo, cq: ClusterQueueState) -> str:
        """Return the message that the namespace is not selected, followed by the uncovered resources if there are
        any."""
        uncovered = self._assigner.uncovered(cq, (pod_set.requests for pod_set in info.pod_sets))
        return f"{NAMESPACE_MISMATCH}, and {not_covered(uncovered)}" if uncovered else NAMESPACE_MISMATCH

    def find_assignment(
        self, info: WorkloadInfo, cq: ClusterQueueState, pins: Pins | None = None
    ) -> tuple[Assignment, list[Target]]:
        """Return the assignment with full counts, or else with the largest counts that fit (partial admission).

        A slice of an elastic job is assigned in the same flavors, as if the slice that it replaces were gone, so that
        only the difference is tested.
        """
        replaced = self._state.replaced_slice(info, cq)
        if replaced is None:
            return self._find_assignment(info, cq, pins)
        self._state.simulation.remove(replaced)
        found = self._find_assignment(info, cq, pins or _flavors_of(replaced, info))
        self._state.simulation.restore(replaced)
        return found

    def _find_assignment(
        self, info: WorkloadInfo, cq: ClusterQueueState, pins: Pins | None
    ) -> tuple[Assignment, list[Target]]:
        full = self._assign(info, cq, info.pod_sets, pins)
        if full.mode is Mode.FIT:
            return full, []
        targets = self._find_targets(info, cq, full)
        if not targets and info.can_be_reduced():
            reduced = self._search_reduced(info, cq, pins)
            if reduced is not None:
                full, targets = reduced
        self._topology.place_despite_preemption(full, targets)
        return full, targets

    def _assign(
        self, info: WorkloadInfo, cq: ClusterQueueState, pod_sets: Sequence[PodSetRequests], pins: Pins | None
    ) -> Assignment:
        assignment = self._assigner.assign(cq, info, pod_sets, pins)
        refusal = refuse_user(self._state, info, cq, assignment.usage) if assignment.mode is not Mode.NO_FIT else None
        if refusal is not None:
            assignment.refuse(refusal)
            return assignment
        if info.workload.replaces is not None and not self._keep_domains(info, cq, assignment):
            return assignment
        self._placement.place(info, cq, assignment)
        if cq.spec.backfill is not None and assignment.mode is Mode.FIT:
            self._hold_back(info, cq, assignment, ())
        return assignment

    def _hold_back(
        self, info: WorkloadInfo, cq: ClusterQueueState, assignment: Assignment, targets: Sequence[Target]
    ) -> bool:
        """Refuse an assignment that would delay a planned start. Return whether it is refused."""
        refusal = self._planner.refusal(info, cq, assignment, targets)
        if refusal is not None:
            assignment.refuse(refusal)
        return refusal is not None

    def _keep_domains(self, info: WorkloadInfo, cq: ClusterQueueState, assignment: Assignment) -> bool:
        """Keep the pods of a replaced slice in their topology domains, so that only the other pods are placed. Return
        False if a reservation refuses that.

        When a pod set shrinks, its first pods in stored order stay, and the pods to be removed still occupy their
        domains. If kueueweb placed the pods on devices, all domains stay until the cluster reports the removed pods.
        """
        replaced = self._state.replaced_slice(info, cq)
        if replaced is None or replaced.admission is None:
            return True
        if outstays(self._state, info, replaced):
            refuse_slice(self._state, info, assignment)
            return False
        held = {found.name: found.topology_assignment for found in replaced.admission.pod_set_assignments}
        for result in assignment.pod_sets:
            before = held.get(result.name)
            if before is None:
                continue
            if replaced.placement is not None:
                result.kept = before
            elif self._topology.exists(result, before):
                result.kept, result.leaving = split_domains(before, result.pod_set.count)
        return True

    def _find_targets(self, info: WorkloadInfo, cq: ClusterQueueState, assignment: Assignment) -> list[Target]:
        if assignment.mode is not Mode.PREEMPT:
            return []
        cells = assignment.cells_to_preempt()
        request = PreemptionRequest(
            cq,
            info,
            assignment.usage,
            frozenset(cell.key for cell in cells),
            self._placement.can_place(info, assignment),
            self._state.now,
        )
        targets = self._preemptor.find_targets(request)
        if targets and cq.spec.backfill is not None and self._hold_back(info, cq, assignment, targets):
            return []
        return targets

    def _search_reduced(
        self, info: WorkloadInfo, cq: ClusterQueueState, pins: Pins | None
    ) -> tuple[Assignment, list[Target]] | None:
        """Return the result of a binary search for the smallest reduction that fits, or that preemption can make
        fit."""

        def probe(pod_sets: Sequence[PodSetRequests]) -> tuple[Assignment, list[Target]] | None:
            assignment = self._assign(info, cq, pod_sets, pins)
            if assignment.mode is Mode.FIT:
                return assignment, []
            targets = self._find_targets(info, cq, assignment)
            return (assignment, targets) if targets else None

        return search_reduced(info.pod_sets, probe)


def _flavors_of(replaced: WorkloadInfo, info: WorkloadInfo) -> Pins:
    """Return the flavors of the replaced slice, for each pod set of its replacement."""
    assignments = replaced.admission.pod_set_assignments if replaced.admission is not None else ()
    flavors = {assignment.name: assignment.flavors for assignment in assignments}
    return [flavors.get(pod_set.name, {}) for pod_set in info.pod_sets]


def search_reduced(
    pod_sets: Sequence[PodSetRequests], probe: Callable[[Sequence[PodSetRequests]], Found | None]
) -> Found | None:
    """Return the result of the smallest reduction whose probe succeeds, assuming that smaller counts always fit better.

    Reduction i of D removes floor((count - minCount) * i / D) pods from each pod set. The search is Go's sort.Search on
    [0, D+1). Its result counts only if the last successful probe was at the index found.
    """
    spans = [ps.count - ps.min_count if ps.min_count is not None else 0 for ps in pod_sets]
    total = sum(spans)
    if total <= 0:
        return None
    low, high = 0, total + 1
    last: tuple[int, Found] | None = None
    while low < high:
        middle = (low + high) // 2
        reduced = [ps.scaled_to(ps.count - span * middle // total) for ps, span in zip(pod_sets, spans, strict=True)]
        found = probe(reduced)
        if found is None:
            low = middle + 1
        else:
            last = (middle, found)
            high = middle
    return last[1] if last is not None and last[0] == low else None


class PreemptionOracle:
    """Runs a full preemption search for one cell, on the state's live usage."""

    def __init__(self, state: State, preemptor: Preemptor) -> None:
        self._state = state
        self._preemptor = preemptor

    def __call__(
        self, cq: ClusterQueueState, info: WorkloadInfo, cell: Cell, amount: int, level: int
    ) -> tuple[Mode, int]:
        """Return NO_CANDIDATES, PREEMPT (a victim is in the preemptor's own queue) or RECLAIM, and the borrowing
        level after the victims are gone."""
        request = PreemptionRequest(cq, info, {cell: amount}, frozenset((cell.key,)), None, self._state.now)
        targets = self._preemptor.find_targets(request)
        if not targets:
            return Mode.NO_CANDIDATES, level
        simulation = self._state.simulation
        for target in targets:
            simulation.remove(target.info, note=False)
        level = cell.borrow_level(amount)[0]
        for target in targets:
            simulation.restore(target.info, note=False)
        own = any(target.reason is PreemptionReason.IN_CLUSTER_QUEUE for target in targets)
        return (Mode.PREEMPT if own else Mode.RECLAIM), level
