"""The state on which the scheduler decides. It is updated in place, and changes can be undone if a batch is refused.

    world = World(configuration)
    world.set_cluster_queue(...); world.set_workload(...)
    point = world.savepoint()
    for result in run_until_idle(world, now): ...     # scheduling.run_until_idle: cycles until they are idle
    world.commit(point)                       # or world.undo(point): undo the cycles and every other change

Every `set_` method adds or replaces an object, every `delete_` method removes it; deleting an unknown object does
nothing. References are names and may dangle. An event that may make inadmissible workloads admissible marks its cohort
tree; the next cycle moves the workloads of that tree back to their queues (Kueue's flush).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from scheduling.advice.explanation import Explanation, explain
from scheduling.advice.moves import Fragmentation, MoveAdvice, advise_moves, fragmentation
from scheduling.cycle.closed_nodes import window_before_start
from scheduling.devices.claims.charges import ClaimRefusal
from scheduling.devices.search.fragmentation_report import FragmentationReport, cluster_report, used_device_count
from scheduling.lifecycle.conditions import evict, release, reservation_started
from scheduling.lifecycle.elastic import scaled_down
from scheduling.model.cluster_queue import ClusterQueue
from scheduling.model.configuration import Configuration
from scheduling.model.decisions import CycleResult, Outcome
from scheduling.model.vendor import NVIDIA, DeviceVendor
from scheduling.model.vocabulary import ConditionType, DecisionKind, EvictionReason, PendingReason
from scheduling.model.workload import Workload
from scheduling.reservations.reserved_nodes import Claimant, ReservedWindow
from scheduling.state.known_objects import KnownObjects, used_nodes
from scheduling.state.preemption_loops import describe_pause, is_news
from scheduling.state.second_pass import MULTIKUEUE
from scheduling.state.status import (
    ClusterQueueStatus,
    CohortStatus,
    PendingCounts,
    PendingPosition,
    cluster_queue_status,
    cohort_status,
    drained_workloads,
    pending_counts,
    pending_positions,
)
from scheduling.state.workload_info import QueueState, WorkloadInfo
from scheduling.world_objects import WorldObjects


@dataclass(frozen=True, slots=True)
class Savepoint:
    """An opaque mark to which changes can be undone."""

    cycle: int


class World(WorldObjects):
    """The facade of the library: sets and deletes objects, runs cycles, and reports status."""

    def __init__(self, configuration: Configuration | None = None, vendors: Sequence[DeviceVendor] = (NVIDIA,)) -> None:
        """Create an empty world. `vendors` define which resources and annotations request devices."""
        super().__init__(configuration, vendors)
        self._preemption_skips: dict[str, int] = {}

    # -- workloads -----------------------------------------------------------------------------------------------------

    def set_workload(self, workload: Workload, now: float) -> None:
        """Add or replace a workload and track it by its status: a pending workload is queued, one that holds quota
        counts as usage, a finished or deactivated one is not tracked. `now` decides whether its back-off has ended."""
        state = self._state
        state.advance(now)
        before = state.workloads.get(workload.key)
        if before is None:
            if not workload.is_true(ConditionType.FINISHED):
                info = self._records.new(workload)
                state.insert(info)
                self._tracker.track(info)
                state.waking.clear_pauses((info.cluster_queue,))
        elif workload.is_true(ConditionType.FINISHED):
            self.finish_workload(workload.key, now)
        else:
            self._update(before, workload)
        self._records.follow_device_kinds()

    def _update(self, before: WorkloadInfo, workload: Workload) -> None:
        state, known, queue = self._state, before.workload, before.cluster_queue
        if not self._tracker.update_reserving(before, workload):
            self._replace(before, self._records.new(workload))
        if is_news(known, workload):
            state.waking.clear_pauses((queue, state.workloads[workload.key].cluster_queue))

    def _replace(self, before: WorkloadInfo, info: WorkloadInfo) -> None:
        """Replace a workload by its new version. Its queue keeps the state of its previous attempts."""
        if before.last_assignment is not None and before.scheduling_hash == info.scheduling_hash:
            info.last_assignment = before.last_assignment
        if not self._tracker.replace_inadmissible(before, info):
            self._records.exchange(before, info)

    def delete_workload(self, key: str) -> None:
        """Delete a workload and release its quota and devices."""
        info = self._state.workloads.get(key)
        if info is not None:
            if info.cluster_queue:
                self._state.dirty_queues.add(info.cluster_queue)
            self._state.waking.clear_pauses((info.cluster_queue,))
            self._state.preemption_loops.forget(key)
            self._tracker.untrack(info)
            self._state.forget(info)

    def finish_workload(self, key: str, now: float) -> None:
        """Finish a workload: its quota is free at once and it is removed."""
        self._state.advance(now)
        self.delete_workload(key)

    def release_workload(self, key: str, now: float) -> None:
        """Release an evicted workload whose pods have stopped. Its quota is free. It is pending again in its old
        position: Requeued is True at once after a preemption or a node failure, otherwise when its back-off ends."""
        self._state.advance(now)
        info = self._state.workloads.get(key)
        if info is not None and info.queue_state is QueueState.RESERVING:
            self._replace(info, self._records.new(release(info.current(), now)))

    def set_preemptor(self, key: str) -> None:
        """Record that another scheduler preempts for a pending workload. As in Kueue it comes first in its
        BestEffortFIFO ClusterQueue until it gets quota or leaves the queue."""
        info = self._state.workloads.get(key)
        cq = self._state.cluster_queues.get(info.cluster_queue) if info is not None else None
        if cq is not None and key in cq.queue and not cq.strict:
            cq.queue.sticky = key

    def scale_down(self, key: str, now: float, *, pods_may_run: bool) -> bool:
        """Reduce the quota of an elastic workload to the requests of its pod sets (`scheduling.lifecycle.elastic`).

        The released quota wakes its cohort tree. Return False if the workload does not hold more than it requests.
        """
        self._state.advance(now)
        info = self._state.workloads.get(key)
        if info is None or info.queue_state is not QueueState.RESERVING:
            return False
        before = info.current()
        after = scaled_down(before, self._tracker.domain_nodes, pods_may_run=pods_may_run)
        if after is before:
            return False
        self._replace(info, self._records.new(after))
        return True

    def workload(self, key: str) -> Workload | None:
        """Return the workload including the decisions of the last cycles; None if it is unknown."""
        info = self._state.workloads.get(key)
        return info.current() if info is not None else None

    # -- cycles --------------------------------------------------------------------------------------------------------

    def advance(self, now: float) -> None:
        """Set the time. Workloads that waited for the end of a preemption protection become active once it has ended;
        claims that were too costly to count may be counted now."""
        self._state.advance(now)
        self._records.count_waiting_claims()

    def has_active(self) -> bool:
        """Return whether the next cycle would have work: an active ClusterQueue has an active workload, or workloads
        must be read again."""
        self._refresh()
        self._read_outdated()
        if self._state.outdated:
            return True
        if any(waiting.is_due(self._state.now) for waiting in self._state.second_pass.values()):
            return True
        return not self._parts.is_blocked() and next(self._state.ready_queues(), None) is not None

    def active_queue_count(self) -> int:
        """Count the active ClusterQueues that have an active workload."""
        self._refresh()
        return sum(1 for _ in self._state.ready_queues())

    def run_cycle(self, now: float) -> CycleResult:
        """Run one scheduling cycle at that time, with at most one head per ClusterQueue. See
        `scheduling.cycle.cycle`."""
        self._state.advance(now)
        self._refresh()
        read = self._read_outdated()
        result = self._parts.run_cycle()
        for decision in result.preemptions:
            self._state.preemption_loops.note(decision.workload, decision.preemptor)
        self._preemption_skips.update(result.preemption_skips)
        return replace(result, read=read) if read else result

    def preemption_skips(self) -> dict[str, int]:
        """Map each ClusterQueue to the number of preemptions that its last cycle with a skip has skipped (Kueue's
        gauge)."""
        queues = self._state.cluster_queues
        return {name: count for name, count in self._preemption_skips.items() if name in queues}

    def sample_usage(self, now: float) -> dict[str, dict[str, float]]:
        """Decay the past usage of LocalQueues whose sampling interval is over.

        Returns the consumption of each (resource -> natural units), to be stored in `LocalQueue.consumed`; empty
        without admission fair sharing.
        """
        state = self._state
        state.advance(now)
        if state.history is None:
            return {}
        running: dict[str, list[WorkloadInfo]] = {}
        for cq in state.cluster_queues.values():
            for info in cq.workloads.values():
                if info.admitted:
                    running.setdefault(info.queue_key, []).append(info)
        return {key: state.history.consumed(key) for key in state.history.sample(running, now)}

    def drain_outcomes(self) -> CycleResult | None:
        """Return the outcomes decided outside of a cycle since the last call, for example workloads that became
        inadmissible together with an equal one. Large numbers are returned in several calls; None if there are none."""
        state = self._state
        outcomes, state.out_of_cycle_outcomes = [*state.out_of_cycle_outcomes.values()], {}
        outcomes += state.tell_equals()
        return CycleResult(state.cycle, outcomes=tuple(outcomes)) if outcomes else None

    def pause_preemption_loops(self) -> CycleResult | None:
        """Pause workloads in preemption loops. Return the new messages of the pending ones; None if there is no
        loop."""
        state = self._state
        paused = state.preemption_loops.close(state.now)
        outcomes: list[Outcome] = []
        for key, until in paused.items():
            info = state.workloads.get(key)
            if info is None:
                continue
            state.waking.wake_queue_at(info.cluster_queue, until)
            if info.queue_state in (QueueState.ACTIVE, QueueState.INADMISSIBLE):
                kind = DecisionKind.SKIP if info.queue_state is QueueState.ACTIVE else DecisionKind.INADMISSIBLE
                reason = PendingReason.WAITING_FOR_QUOTA
                outcomes.append(state.refuse(info, info.cluster_queue, kind, reason, describe_pause(until)))
        return CycleResult(state.cycle, outcomes=tuple(outcomes)) if paused else None

    def _refresh(self) -> None:
        self._hierarchy.rebuild()
        self._state.multifactor.refresh()
        self._state.entitlements.refresh()
        self._state.waking.wake_inadmissible()

    def _read_outdated(self) -> int:
        """Read some outdated workloads again and return their number. Wake the workloads that were held back for a
        workload that left its queue."""
        read = self._records.read_outdated()
        if read:
            self._state.waking.wake_held_back()
        return read

    # -- reservations --------------------------------------------------------------------------------------------------

    def next_window_change(self, now: float) -> float | None:
        """Return the next time at which a window of a reservation starts or ends; None if there is none."""
        return self._state.reservations.changes_after(now)

    def next_window_effect(self, now: float) -> float | None:
        """Return the next time at which a window ends that a queue waits for, or at which a window starts that evicts a
        workload with quota; None if there is none."""
        state = self._state
        if not state.reservations:
            return None
        due = min(state.wake_at.values(), default=None)
        ends = [] if due is None else [state.reservations.ends_from(due, now)]
        held = (self.evicting_window(key, now) for key in self.objects.reserving() if state.reservations.evicts)
        starts = (window.starts_at for window in held if window is not None and window.starts_at > now)
        return min((at for at in (*ends, *starts) if at is not None), default=None)

    def evicting_window(self, key: str, now: float) -> ReservedWindow | None:
        """Return the first window, present or to come, at whose start a workload that holds quota is evicted from the
        nodes that it uses; None if there is none."""
        state = self._state
        info = state.workloads.get(key)
        if not state.reservations or info is None or info.queue_state is not QueueState.RESERVING:
            return None
        claimant = Claimant.of(info.workload, info.cluster_queue)
        return state.reservations.evicting(claimant, used_nodes(info), now)

    def closing_window(self, key: str, now: float) -> ReservedWindow | None:
        """Return the first window that closes a node of a workload that holds quota, but is not admitted yet; None if
        there is none."""
        info = self._state.workloads.get(key)
        if info is None or info.queue_state is not QueueState.RESERVING:
            return None
        return window_before_start(self._state, info, now)

    def evict_for_windows(self, now: float) -> list[str]:
        """Ask the workloads whose nodes such a window has taken to stop; return their keys. Used by runs without the
        steps of `scheduling.lifecycle.reconcile`."""
        asked: list[str] = []
        for key in self.objects.reserving() if self._state.reservations else ():
            window, workload = self.evicting_window(key, now), self.workload(key)
            if window is None or window.starts_at > now or workload is None or workload.is_true(ConditionType.EVICTED):
                continue
            message = reservation_started(window.reservation)
            self.set_workload(evict(workload, EvictionReason.RESERVATION_STARTED, message, now), now)
            asked.append(key)
        return asked

    # -- savepoints ----------------------------------------------------------------------------------------------------

    def savepoint(self) -> Savepoint:
        """Start recording how to undo changes. Savepoints do not nest; a second one raises RuntimeError."""
        if self._state.journal.is_open:
            raise RuntimeError("a savepoint is open already: commit or undo it first")
        self._hierarchy.rebuild()
        self._state.start_journal()
        for thing in (self._tracker, self._records):
            self._state.journal.note_once(thing)
        self._state.journal.note(self._restore_skips, dict(self._preemption_skips))
        return Savepoint(self._state.cycle)

    def _restore_skips(self, skips: dict[str, int]) -> None:
        self._preemption_skips = skips

    def undo(self, savepoint: Savepoint) -> None:
        """Undo every `run_cycle` and every change of an object since the savepoint: the World decides and reports as if
        these had never happened. Permanent results, such as those of device selectors, stay known."""
        self._state.journal.close(undo=True)
        self._state.multifactor.forget()
        self._state.user_usage.forget()
        self._state.entitlements.rebuilt()

    def commit(self, savepoint: Savepoint) -> None:
        """Keep all changes since the savepoint."""
        self._state.journal.close(undo=False)

    # -- views ---------------------------------------------------------------------------------------------------------

    @property
    def objects(self) -> KnownObjects:
        """The present specs of the objects, and the holders of quota."""
        self._hierarchy.rebuild()
        return KnownObjects(self._state)

    def fragmentation(self) -> Fragmentation:
        """Return the fragmentation of the devices: in total, per flavor and per node."""
        return fragmentation(self._state)

    def device_report(self) -> FragmentationReport:
        """Return the figures of all devices: the number of unused devices, and the fragmented idle part."""
        return cluster_report(self._state.fleet)

    def used_device_count(self) -> int:
        """Return how many devices hold a slice or more."""
        return used_device_count(self._state.fleet)

    def claim_users(self) -> list[str]:
        """Return the keys of workloads whose pods claim devices of drivers."""
        return list(self._state.claim_users)

    def take_counted(self) -> list[str]:
        """Return the keys of workloads whose claims were counted since the last call, after being too costly before."""
        return self._records.take_counted()

    @property
    def selector_evaluations(self) -> int:
        """How many times a selector of devices was evaluated."""
        return self._state.evaluations.count

    def claim_refusal(self, key: str) -> ClaimRefusal | None:
        """Return why a workload's claims keep it out of its queue."""
        info = self._state.workloads.get(key)
        return info.claim_refusal if info is not None else None

    def workloads_of_local_queue(self, key: str) -> list[str]:
        """Return the keys of the workloads that name the LocalQueue `namespace/name`."""
        return list(self._state.by_local_queue.get(key, ()))

    def has_topology(self, flavor: str) -> bool:
        """Return whether the flavor has a topology."""
        known = self._state.flavors.get(flavor)
        return known is not None and known.topology_name is not None

    def places_all_pods_in(self, flavor: str) -> bool:
        """Return whether kueueweb assigns nodes to pods without devices in this flavor."""
        known = self._state.flavors.get(flavor)
        return self._state.places_all_pods and known is not None and not known.quota_only

    def hands_over(self, cluster_queue: str) -> bool:
        """Return whether the ClusterQueue's workloads run in other clusters (MultiKueue), so that none is placed
        here."""
        cq = self._state.cluster_queues.get(cluster_queue)
        names = [rule.name for rule in cq.spec.admission_checks] if cq is not None else []
        checks = self._state.checks
        return any(name in checks and checks[name].controller_name == MULTIKUEUE for name in names)

    def cluster_queue_status(self, name: str) -> ClusterQueueStatus:
        """Return a ClusterQueue's status; raises KeyError."""
        self._refresh()
        return cluster_queue_status(self._state.cluster_queues[name])

    def queue_problems(self) -> dict[str, str]:
        """Return the reasons why ClusterQueues are inactive, by name. A ClusterQueue whose only problem is its stop
        policy is left out."""
        self._hierarchy.rebuild()
        return self._hierarchy.problems()

    def selects_namespace(self, cluster_queue: str, namespace: str) -> bool:
        """Return whether a ClusterQueue selects a namespace; raises KeyError for an unknown ClusterQueue."""
        return self._state.selects_namespace(self._state.cluster_queues[cluster_queue], namespace)

    def queue_state(self, key: str) -> QueueState:
        """Return the place where the workload is tracked; raises KeyError."""
        return self._state.workloads[key].queue_state

    def cohort_status(self, name: str) -> CohortStatus:
        """Return a Cohort's status; raises KeyError."""
        self._refresh()
        return cohort_status(self._state.tree.cohorts[name])

    def cluster_queue_names(self) -> tuple[str, ...]:
        return tuple(sorted(self._state.cluster_queues))

    def cohort_names(self) -> tuple[str, ...]:
        """Return the names of all cohorts, implicit ones included, sorted."""
        self._refresh()
        return tuple(sorted(self._state.tree.cohorts))

    def pending(self, cluster_queue: str) -> tuple[PendingPosition, ...]:
        """Return the pending workloads of a ClusterQueue in queue order, inadmissible ones included (Kueue's
        visibility API)."""
        self._refresh()
        return pending_positions(self._state.cluster_queues[cluster_queue])

    def pending_counts(self, cluster_queue: str) -> PendingCounts:
        """Count the pending workloads of a ClusterQueue by LocalQueue; raises KeyError."""
        self._refresh()
        return pending_counts(self._state.cluster_queues[cluster_queue])

    def drained_workloads(self) -> dict[str, str]:
        """Return the admitted workloads that must stop because their queue is drained, with their ClusterQueue."""
        return drained_workloads(self._state.cluster_queues.values(), self._state.local_queues)

    def fair_sharing_usage(self) -> dict[str, float]:
        """Return the past usage that orders the LocalQueues, by their keys; empty without admission fair sharing."""
        history = self._state.history
        return {} if history is None else {key: history.usage(key) for key in sorted(self._state.local_queues)}

    def device_holders(self) -> tuple[str, ...]:
        """Return the keys of workloads that are placed on devices or nodes."""
        return tuple(self._state.fleet.reservations)

    def device_usage(self, node: str, uuid: str) -> tuple[int, int, int]:
        """Return the usage of a device by our own slices: slots, MiB, percent of cores."""
        return self._state.fleet.decided_usage(node, uuid)

    def advise_moves(self, key: str) -> MoveAdvice:
        """Return the fewest moves of running pods that free the devices for a pending workload
        (`scheduling.advice.moves`)."""
        self._hierarchy.rebuild()
        self._records.update(key)
        return advise_moves(self._state, key, self._parts.nominate)

    def _variants_of(self, key: str) -> list[str]:
        """Return the variants of a workload that waits in no queue itself (concurrent admission)."""
        state = self._state
        info = state.workloads[key]
        if info.queue_state is not QueueState.NOWHERE or info.workload.parent:
            return []
        siblings = state.by_local_queue.get(info.queue_key, ())
        return [each for each in siblings if state.workloads[each].workload.parent == key]

    def explain(self, key: str) -> Explanation:
        """Explain as data why a workload waits, by its variants if it has some. Raises KeyError for an unknown one."""
        self._refresh()
        variants = self._variants_of(key)
        for each in (key, *variants):
            self._records.update(each)
        queue = None if variants else self._queue_of_parent(key)
        if queue is None:
            return explain(self._state, self._parts, key, variants)
        point = self.savepoint()  # as if it had been queued: it has no variants yet
        try:
            self.set_cluster_queue(replace(queue, concurrent_admission=None))
            self.set_workload(self._state.workloads[key].current(), self._state.now)
            self._refresh()
            return explain(self._state, self._parts, key)
        finally:
            self.undo(point)

    def _queue_of_parent(self, key: str) -> ClusterQueue | None:
        """Return the ClusterQueue of a workload that should wait as variants and does not have them yet."""
        info = self._state.workloads[key]
        local_queue = self._state.local_queues.get(info.queue_key)
        found = self._state.cluster_queues.get(local_queue.cluster_queue) if local_queue is not None else None
        if found is None or found.spec.concurrent_admission is None or info.queue_state is not QueueState.NOWHERE:
            return None
        return None if info.workload.parent or info.workload.admission is not None else found.spec
