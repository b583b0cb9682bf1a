"""What the cycles of one batch decided, turned into the rows, events and log lines that the batch writes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from scheduler.core.decisions import (
    Admit,
    ConditionType,
    CycleResult,
    DecisionKind,
    Evict,
    EvictionReason,
    Outcome,
    Preempt,
)
from scheduler.core.workload import Workload
from scheduler.core.world import World
from scheduler.store.batch import Batch, CycleRow, DecisionRow, EventRow, WorkloadWrite
from scheduler.store.mirror import Entry, Mirror, Place, places, should_run


class Recorder:
    """Collects one batch. Between the World's savepoint and its commit; thrown away when the batch is refused."""

    def __init__(self, world: World, mirror: Mirror, now: float) -> None:
        self._world = world
        self._mirror = mirror
        self._now = now
        self._touched: dict[str, None] = {}
        self._evicted: dict[str, str] = {}
        self._events: list[EventRow] = []
        self._decisions: list[DecisionRow] = []
        self._cycles: list[CycleRow] = []
        self.writes: list[WorkloadWrite] = []
        self.released_ids: list[int] = []
        self._devices: set[Place] = set()
        self.cycles = self.admitted = self.preempted = 0
        self.unfinished = False

    @property
    def pushes(self) -> bool:
        """Whether the cluster has something to hear."""
        return any(write.push for write in self.writes)

    # --- Steps that rows ask for --------------------------------------------------------------------------------------

    def settle_rows(self) -> int:
        """Steps that changed rows ask for: stop what was deactivated, take quota back from what stopped."""
        steps = 0
        for key in sorted(self._mirror.due):
            entry, workload = self._mirror.workloads.get(key), self._world.workload(key)
            if entry is not None and workload is not None:
                steps += self._settle(entry, workload)
        for id_, held in self._mirror.ended.items():
            self.released_ids.append(id_)
            self._devices |= held
        return steps + len(self.released_ids)

    def _settle(self, entry: Entry, workload: Workload) -> int:
        evicted = workload.is_true(ConditionType.EVICTED)
        if workload.admission is not None and evicted and entry.pods_stopped:
            self._world.release_workload(workload.key, self._now)
            self._note(workload, "QuotaReleased", "Its pods have stopped; its quota and devices are free")
            return 1
        if workload.admission is not None and not evicted and not entry.active:
            self.evict(workload, EvictionReason.DEACTIVATED, "The workload is deactivated")
            return 1
        return 0

    def evict(self, workload: Workload, reason: EvictionReason, message: str) -> None:
        """Tell a workload to stop, for a reason outside the cycle."""
        self._world.evict_workload(workload.key, reason, message, self._now)
        self._evicted[workload.key] = reason
        self._note(workload, f"EvictedDueTo{reason}", message)
        self._log(workload, 0, DecisionKind.EVICT, reason, message)

    def run_timers(self) -> int:
        """Workloads whose back-off is over queue again."""
        keys = self._world.run_timers(self._now)
        for key in keys:
            self._touched[key] = None
        return len(keys)

    # --- Cycles -------------------------------------------------------------------------------------------------------

    def record(self, result: CycleResult, seconds: float) -> None:
        """One cycle's decisions."""
        self.cycles += 1
        self.admitted += len(result.admissions)
        self.preempted += len(result.preemptions)
        for admission in result.admissions:
            self._admission(admission)
        for preemption in result.preemptions:
            self._preemption(preemption)
        for eviction in result.evictions:
            self._eviction(eviction)
        for outcome in result.outcomes:
            self._outcome(outcome)
        if result.decided:
            self._cycles.append(
                CycleRow(
                    result.cycle, self._now, seconds, result.heads, len(result.admissions), len(result.preemptions),
                    sum(outcome.kind is DecisionKind.PARK for outcome in result.outcomes),
                )
            )  # fmt: skip

    def _admission(self, admission: Admit) -> None:
        workload = self._current(admission.workload)
        detail: dict[str, Any] = {
            "pod_sets": [
                {"name": pod_set.name, "count": pod_set.count, "flavors": dict(pod_set.flavors)}
                for pod_set in admission.pod_sets
            ]
        }
        if admission.devices:
            detail["devices"] = [
                [held.node, held.uuid, held.memory_mib, held.cores_percent] for held in admission.devices
            ]
        reason = "Admitted" if admission.admitted else "QuotaReserved"
        self._note(workload, "QuotaReserved", admission.message)
        if admission.admitted:
            self._note(workload, "Admitted", f"Admitted by ClusterQueue {admission.cluster_queue}")
        self._log(workload, admission.cycle, admission.kind, reason, admission.message, detail, admission.cluster_queue)

    def _preemption(self, preemption: Preempt) -> None:
        victim = self._current(preemption.workload)
        self._evicted[victim.key] = EvictionReason.PREEMPTED
        self._note(victim, "Preempted", preemption.message)
        preemptor = self._current(preemption.preemptor)
        self._note(preemptor, "PreemptedWorkload", f"Preempted {victim.key} ({preemption.reason})")
        detail = {"preemptor": preemption.preemptor, "preemptor_cluster_queue": preemption.preemptor_cluster_queue}
        self._log(
            victim,
            preemption.cycle,
            preemption.kind,
            preemption.reason,
            preemption.message,
            detail,
            preemption.cluster_queue,
        )

    def _eviction(self, eviction: Evict) -> None:
        workload = self._current(eviction.workload)
        self._evicted[workload.key] = eviction.reason
        self._note(workload, f"EvictedDueTo{eviction.reason}", eviction.message, "Warning")
        self._log(
            workload,
            eviction.cycle,
            eviction.kind,
            eviction.reason,
            eviction.message,
            cluster_queue=eviction.cluster_queue,
        )

    def _outcome(self, outcome: Outcome) -> None:
        workload = self._current(outcome.workload)
        self._note(workload, outcome.reason, outcome.message, "Warning")
        self._log(
            workload, outcome.cycle, outcome.kind, outcome.reason, outcome.message, cluster_queue=outcome.cluster_queue
        )

    def _current(self, key: str) -> Workload:
        workload = self._world.workload(key)
        if workload is None:
            raise LookupError(f"a cycle decided on {key}, which the World does not know")
        return workload

    def _note(self, workload: Workload, reason: str, message: str, type_: str = "Normal") -> None:
        self._touched[workload.key] = None
        self._events.append(EventRow(workload, self._now, type_, reason, message))

    def _log(
        self,
        workload: Workload,
        cycle: int,
        kind: DecisionKind,
        reason: str,
        message: str,
        detail: Mapping[str, Any] | None = None,
        cluster_queue: str | None = None,
    ) -> None:
        queue = self._mirror.cluster_queue_of(workload) if cluster_queue is None else cluster_queue
        self._decisions.append(
            DecisionRow(workload, self._now, cycle, kind, queue, reason, message, dict(detail or {}))
        )

    # --- The batch ----------------------------------------------------------------------------------------------------

    def batch(
        self, cluster_id: int, cluster_name: str, epoch: int, generation: int, change_ids: tuple[int, ...]
    ) -> Batch:
        """What to save: each touched workload once, as it is after the last cycle."""
        for key in self._touched:
            workload, entry = self._world.workload(key), self._mirror.workloads.get(key)
            if workload is not None and entry is not None:
                self.writes.append(self._write(workload, entry))
        return Batch(
            cluster_id=cluster_id,
            cluster_name=cluster_name,
            epoch=epoch,
            configuration_generation=generation,
            change_ids=change_ids,
            workloads=self.writes,
            released_ids=self.released_ids,
            events=self._events,
            decisions=self._decisions,
            cycles=self._cycles,
            devices={place: device for place in self._devices if (device := self._mirror.device_row(*place))},
        )

    def _write(self, workload: Workload, entry: Entry) -> WorkloadWrite:
        queue = self._mirror.cluster_queue_of(workload)
        held = places(workload)
        self._devices |= held ^ entry.devices
        return WorkloadWrite(
            id=entry.id,
            generation=entry.generation,
            workload=workload,
            cluster_queue=queue,
            push=entry.has_job and should_run(workload) != entry.runs,
            reserves_devices=bool(held) and not entry.devices,
            releases_devices=bool(entry.devices) and not held,
            counted_evictions=self._counted(entry, workload.key),
            deactivate=not entry.active,
        )

    def _counted(self, entry: Entry, key: str) -> list[dict[str, Any]] | None:
        reason = self._evicted.get(key)
        if reason is None:
            return None
        counts = [dict(count) for count in entry.eviction_counts]
        for count in counts:
            if count["reason"] == reason:
                count["count"] += 1
                return counts
        return [*counts, {"reason": reason, "underlyingCause": "", "count": 1}]
