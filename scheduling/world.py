"""The state of everything the scheduler decides on, updated in place, and undone when a batch is refused.

    world = World(configuration)
    world.set_cluster_queue(...); world.set_workload(...)
    point = world.savepoint()
    for result in run_until_idle(world, now): ...     # scheduling.run_until_idle: cycles until nothing more happens
    world.commit(point)                       # or world.undo(point): as if the cycles had not been

Every `set_` adds or replaces, every `delete_` forgets; deleting what is not there does nothing. References are names
and may dangle. Events that may let inadmissible workloads start mark the cohort tree that they concern; the next cycle
moves its workloads back to their queues (Kueue's flush).
"""

from __future__ import annotations

from dataclasses import dataclass

from scheduling.cycle.explain import holders, remedy
from scheduling.cycle.flavor_topology import left_out
from scheduling.lifecycle.conditions import release
from scheduling.lifecycle.elastic import scaled_down
from scheduling.model.decisions import CycleResult, Outcome
from scheduling.model.vocabulary import ConditionType, DecisionKind, PendingReason
from scheduling.model.workload import Workload
from scheduling.state.preemption_loops import describe_pause, is_news
from scheduling.state.status import (
    ClusterQueueStatus,
    CohortStatus,
    PendingPosition,
    cluster_queue_status,
    cohort_status,
    pending_positions,
)
from scheduling.state.workload_info import QueueState, WorkloadInfo
from scheduling.world_objects import WorldObjects


@dataclass(frozen=True, slots=True)
class Savepoint:
    """A mark to undo to. Opaque."""

    cycle: int


class World(WorldObjects):
    """See the module's text."""

    # -- workloads -----------------------------------------------------------------------------------------------------

    def set_workload(self, workload: Workload, now: float) -> None:
        """Add or replace a workload, placed by its state: pending -> its queue, holding quota -> usage, finished or
        deactivated -> gone. `now` decides whether its back-off is over."""
        state = self._state
        state.advance(now)
        before = state.workloads.get(workload.key)
        if before is None:
            if not workload.is_true(ConditionType.FINISHED):
                info = self._info(workload)
                state.insert(info)
                self._tracker.track(info)
                state.clear_pauses((info.cluster_queue,))
        elif workload.is_true(ConditionType.FINISHED):
            self.finish_workload(workload.key, now)
        else:
            self._update(before, workload)

    def _update(self, before: WorkloadInfo, workload: Workload) -> None:
        state, known, queue = self._state, before.workload, before.cluster_queue
        if not self._tracker.update_reserving(before, workload):
            self._replace(before, self._info(workload))
        if is_news(known, workload):
            state.clear_pauses((queue, state.workloads[workload.key].cluster_queue))

    def _replace(self, before: WorkloadInfo, info: WorkloadInfo) -> None:
        """Exchange a workload for its new version; what its queue remembers of it stays."""
        if before.last_assignment is not None and before.scheduling_hash == info.scheduling_hash:
            info.last_assignment = before.last_assignment
        if not self._tracker.replace_inadmissible(before, info):
            self._exchange(before, info)

    def delete_workload(self, key: str) -> None:
        """Forget a workload; what it held is free."""
        info = self._state.workloads.get(key)
        if info is not None:
            if info.cluster_queue:
                self._state.dirty_queues.add(info.cluster_queue)
            self._state.clear_pauses((info.cluster_queue,))
            self._state.preemption_loops.forget(key)
            self._tracker.untrack(info)
            self._state.forget(info)

    def finish_workload(self, key: str, now: float) -> None:
        """The workload is done: its quota is free at once, and the world forgets it."""
        self._state.advance(now)
        self.delete_workload(key)

    def release_workload(self, key: str, now: float) -> None:
        """The pods of an evicted workload have stopped: its quota is free, it is pending again and keeps its place
        (Requeued True after a preemption or a failed node; else it waits for its back-off)."""
        self._state.advance(now)
        info = self._state.workloads.get(key)
        if info is not None and info.queue_state is QueueState.RESERVING:
            self._replace(info, self._info(release(info.current(), now)))

    def scale_down(self, key: str, now: float, *, pods_may_run: bool) -> bool:
        """Let an elastic workload hold no more than its pod sets ask for (`scheduling.lifecycle.elastic`).

        What it gives back is free, and its tree of cohorts is scheduled again. False if it holds no more than that.
        """
        self._state.advance(now)
        info = self._state.workloads.get(key)
        if info is None or info.queue_state is not QueueState.RESERVING:
            return False
        before = info.current()
        after = scaled_down(before, self._tracker.domain_nodes, pods_may_run=pods_may_run)
        if after is before:
            return False
        self._replace(info, self._info(after))
        return True

    def workload(self, key: str) -> Workload | None:
        """The workload as the world sees it now, decisions of the last cycles included; None when unknown."""
        info = self._state.workloads.get(key)
        return info.current() if info is not None else None

    # -- cycles --------------------------------------------------------------------------------------------------------

    def advance(self, now: float) -> None:
        """Let time pass: those who wait for the end of a protection are active again when it is over."""
        self._state.advance(now)

    def has_active(self) -> bool:
        """Whether some active ClusterQueue has an active workload, so that a cycle has something to look at."""
        self._refresh()
        if any(waiting.is_due(self._state.now) for waiting in self._state.second_pass.values()):
            return True
        return not self._parts.is_blocked() and next(self._state.ready_queues(), None) is not None

    def active_queue_count(self) -> int:
        """How many active ClusterQueues have such a workload."""
        self._refresh()
        return sum(1 for _ in self._state.ready_queues())

    def run_cycle(self, now: float) -> CycleResult:
        """One scheduling cycle at that time: at most one head per ClusterQueue. See `scheduling.cycle.cycle`."""
        self._state.advance(now)
        self._refresh()
        result = self._parts.run_cycle()
        for decision in result.preemptions:
            self._state.preemption_loops.note(decision.workload, decision.preemptor)
        return result

    def sample_usage(self, now: float) -> dict[str, dict[str, float]]:
        """Decay the past usage of LocalQueues whose sampling interval is over. Returns what each of them
        consumed, resource -> natural units, to be stored in `LocalQueue.consumed`; empty without admission fair
        sharing."""
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
        """Outcomes since the last call that no cycle told, such as those of workloads that are inadmissible because an
        equal one is; None without any."""
        outcomes, self._state.out_of_cycle_outcomes = self._state.out_of_cycle_outcomes, []
        return CycleResult(self._state.cycle, outcomes=tuple(outcomes)) if outcomes else None

    def pause_preemption_loops(self) -> CycleResult | None:
        """If workloads preempt each other in circles, they preempt nobody for a while: say so on those that
        wait. None when none do."""
        state = self._state
        paused = state.preemption_loops.close(state.now)
        outcomes: list[Outcome] = []
        for key, until in paused.items():
            info = state.workloads.get(key)
            if info is None:
                continue
            state.wake_queue_at(info.cluster_queue, until)
            if info.queue_state in (QueueState.ACTIVE, QueueState.INADMISSIBLE):
                kind = DecisionKind.SKIP if info.queue_state is QueueState.ACTIVE else DecisionKind.PARK
                reason = PendingReason.WAITING_FOR_QUOTA
                outcomes.append(state.refuse(info, info.cluster_queue, kind, reason, describe_pause(until)))
        return CycleResult(state.cycle, outcomes=tuple(outcomes)) if paused else None

    def _refresh(self) -> None:
        self._hierarchy.rebuild()
        self._state.wake_inadmissible()

    # -- savepoints ----------------------------------------------------------------------------------------------------

    def savepoint(self) -> Savepoint:
        """Start to remember how to go back. Savepoints do not nest: raises RuntimeError inside another."""
        if self._state.journal.is_open:
            raise RuntimeError("a savepoint is open already: commit or undo it first")
        self._hierarchy.rebuild()
        self._state.start_journal()
        return Savepoint(self._state.cycle)

    def undo(self, savepoint: Savepoint) -> None:
        """Go back: every `run_cycle` and change of a workload since the savepoint has not been.
        Configuration and nodes must not change between savepoint and undo."""
        self._state.journal.close(undo=True)

    def commit(self, savepoint: Savepoint) -> None:
        """Keep what happened and forget how to go back."""
        self._state.journal.close(undo=False)

    # -- views ---------------------------------------------------------------------------------------------------------

    def cluster_queue_status(self, name: str) -> ClusterQueueStatus:
        """A ClusterQueue's numbers; raises KeyError."""
        self._refresh()
        return cluster_queue_status(self._state.cluster_queues[name])

    def queue_problems(self) -> dict[str, str]:
        """Why ClusterQueues are inactive, by name; those that a stop policy holds and nothing else are left out."""
        self._hierarchy.rebuild()
        return self._hierarchy.problems()

    def cohort_status(self, name: str) -> CohortStatus:
        """A Cohort's numbers; raises KeyError."""
        self._refresh()
        return cohort_status(self._state.tree.cohorts[name])

    def cluster_queue_names(self) -> tuple[str, ...]:
        """Every ClusterQueue, by name."""
        return tuple(sorted(self._state.cluster_queues))

    def cohort_names(self) -> tuple[str, ...]:
        """Every cohort, implicit ones included, by name."""
        self._refresh()
        return tuple(sorted(self._state.tree.cohorts))

    def pending(self, cluster_queue: str) -> tuple[PendingPosition, ...]:
        """Who waits in a ClusterQueue, in queue order, the inadmissible ones included (Kueue's visibility API)."""
        self._refresh()
        return pending_positions(self._state.cluster_queues[cluster_queue])

    def device_usage(self, node: str, uuid: str) -> tuple[int, int, int]:
        """What decided slices take of a device now: slots, MiB, percent of cores."""
        return self._state.fleet.decided_usage(node, uuid)

    def why_pending(self, key: str) -> str:
        """Why the workload waits: which resource in which flavor lacks how much, who holds it, and what would let it
        in. Raises KeyError for an unknown workload; empty for one that holds quota."""
        self._refresh()
        info = self._state.workloads[key]
        if info.queue_state is QueueState.RESERVING:
            return ""
        verdict = info.current().condition(ConditionType.QUOTA_RESERVED)
        message = verdict.message if verdict is not None else "it has not been looked at yet"
        cq = self._state.cluster_queues.get(info.cluster_queue)
        if cq is not None and not cq.active:
            return f"ClusterQueue {cq.name}: {cq.inactive_message}"
        if cq is None or info.queue_state is QueueState.NOWHERE:
            return message
        refusals = self._parts.refusals(info, cq)
        state = self._state
        parts = (message, holders(cq, refusals, state), left_out(info, refusals, state), remedy(refusals))
        return ". ".join(filter(None, parts))
