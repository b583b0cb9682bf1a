"""Applies decisions to the state: reserves quota for a workload, or preempts a workload."""

from __future__ import annotations

from dataclasses import replace

from scheduling.cycle.nomination import Entry
from scheduling.cycle.preemption import Target
from scheduling.lifecycle.conditions import evict, preempt, reserve, sync_admitted, waiting_for_start
from scheduling.model.admission_check import required_checks
from scheduling.model.decisions import Admit
from scheduling.model.placement import Placement
from scheduling.model.vocabulary import AdmissionCheckStatus, EvictionReason
from scheduling.model.workload import Admission, PodSetAssignment, Workload
from scheduling.state.second_pass import PENDING, READY, first_attempt, waits_for_topology
from scheduling.state.state import State
from scheduling.state.workload_info import WorkloadInfo


class Admitter:
    """Applies the decisions of a cycle to the state."""

    def __init__(self, state: State) -> None:
        self._state = state

    def admit(self, entry: Entry) -> Admit:
        """Reserve quota for the entry's workload according to its assignment. The cells are already charged."""
        state, info, cq = self._state, entry.info, entry.cq
        assignment = entry.assignment
        pod_sets = tuple(
            PodSetAssignment(
                result.name,
                result.pod_set.count,
                {name: choice.flavor for name, choice in result.flavors.items()},
                {name: result.requests.get(name, 0) for name in result.flavors},
                result.topology,
                PENDING if result.delayed else "",
            )
            for result in assignment.pod_sets
        )
        info.admission = Admission(cq.name, pod_sets)
        required = _required_checks(entry) if cq.spec.admission_checks else []
        info.admitted = _is_admitted_at_once(entry, required)
        info.evicted = False
        info.reserved_at = state.now
        info.leave_eviction_behind()
        info.topology_usage = tuple(assignment.topology_usage)
        info.placement = assignment.placement
        cq.queue.discard(info)
        if entry.replaced is not None:
            state.discharge(entry.replaced)
            state.forget(entry.replaced)
        state.charge(info, cq, tuple(assignment.usage.items()), charged=True)
        if state.history is not None and cq.usage_based:
            state.history.charge_entry(info)
        info.outcome = None
        admission, placement, now = info.admission, info.placement, state.now
        waits = state.configuration.wait_for_pods_ready is not None
        info.change(lambda workload: _reserve(workload, admission, placement, required, waits, now))
        if assignment.delayed and waits_for_topology(info.current()):  # the checks were Ready before
            state.second_pass[info.key] = first_attempt(info, now)
        replaces = entry.replaced.key if entry.replaced is not None else None
        return Admit(
            info.key, cq.name, pod_sets, info.admitted, state.cycle, placement=info.placement, replaces=replaces
        )

    def place(self, entry: Entry) -> Admit:
        """Place a workload that holds quota. Its topology and devices were delayed until its checks were Ready."""
        state, info = self._state, entry.info
        assert info.admission is not None  # it already holds quota
        found = {result.name: result.topology for result in entry.assignment.pod_sets}
        pod_sets = tuple(
            replace(assigned, topology_assignment=found[assigned.name], delayed_topology_request=READY)
            if assigned.delayed_topology_request == PENDING
            else assigned
            for assigned in info.admission.pod_set_assignments
        )
        admission, placement = replace(info.admission, pod_set_assignments=pod_sets), entry.assignment.placement
        state.move(info, admission, tuple(entry.assignment.topology_usage))
        if placement is not None:
            state.fleet.reserve(info.key, placement)
            state.journal.note(state.fleet.release, info.key)
        info.placement = placement
        info.admitted = True
        info.last_assignment = None
        del state.second_pass[info.key]
        state.rank_changed(info)
        if state.history is not None:
            state.history.admit(info)
        now = state.now
        info.change(lambda workload: sync_admitted(replace(workload, admission=admission, placement=placement), now))
        return Admit(info.key, entry.cq.name, pod_sets, True, state.cycle, placement=placement, second_pass=True)

    def mark_evicted(self, info: WorkloadInfo, reason: EvictionReason, message: str) -> None:
        """Ask a workload to stop for another reason than preemption. It keeps its quota until it has stopped."""
        self._state.journal.note_once(info)
        info.evicted = True
        self._state.rank_changed(info)
        now = self._state.now
        info.change(lambda workload: evict(workload, reason, message, now))

    def mark_preempted(self, target: Target, message: str) -> None:
        """Ask a workload to stop. It keeps its quota until it has stopped."""
        info = target.info
        self._state.journal.note_once(info)
        info.evicted = True
        self._state.rank_changed(info)
        info.preempted_at = self._state.now
        reason, now = target.reason, self._state.now
        info.change(lambda workload: preempt(workload, reason, message, now))


def _is_admitted_at_once(entry: Entry, required: list[str]) -> bool:
    """Return whether no admission check is outstanding: the workload lists every check that its flavors require, and
    every listed check is Ready."""
    if entry.assignment.delayed:
        return False
    checks = entry.info.workload.admission_checks
    if not checks:
        return not required
    states = {check.name: check.state for check in checks}
    ready = all(state is AdmissionCheckStatus.READY for state in states.values())
    return ready and states.keys() >= set(required)


def _required_checks(entry: Entry) -> list[str]:
    flavors = {choice.flavor for ps in entry.assignment.pod_sets for choice in ps.flavors.values()}
    return required_checks(entry.cq.spec.admission_checks, flavors)


def _reserve(
    workload: Workload, admission: Admission, placement: Placement | None, required: list[str], waits: bool, now: float
) -> Workload:
    workload = reserve(workload, admission, placement, required, now)
    return waiting_for_start(workload, now) if waits else workload
