"""Turns the decisions of one batch's cycles into rows, events and log lines."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import Any

from scheduler.store.batch import Attempt, Batch, CycleRow, DecisionRow, EventRow, WorkloadWrite
from scheduler.store.placements import held_slices
from scheduler.store.row_index import (
    Place,
    RowIndex,
    WorkloadRow,
    as_the_world_sees_it,
    placement_of,
    places,
    should_run,
)
from scheduling.lifecycle.conditions import admitted_message, eviction_event, waited_seconds
from scheduling.lifecycle.context import deadline
from scheduling.lifecycle.reconcile import Step, next_step
from scheduling.lifecycle.variants import next_family_step, next_gate_at, next_step_of_left
from scheduling.model.configuration import Configuration
from scheduling.model.decisions import Admit, CycleResult, Evict, Outcome, Preempt, ReplaceNode
from scheduling.model.vocabulary import ConditionType, DecisionKind, EvictionReason, FinishedReason
from scheduling.model.workload import Workload
from scheduling.world import World

_MAX_STEPS = 16
"""More steps than this of one workload in one instant mean a bug, and raise an error."""


_MAX_FAMILY_STEPS = 128
"""The same for a parent with its variants, of which there are at most 16."""


def _earliest(one: float | None, other: float | None) -> float | None:
    return min((at for at in (one, other) if at is not None), default=None)


def _priority(workload: Workload) -> str:
    base, boost = workload.priority, workload.priority_boost
    return f"effective priority: {workload.effective_priority} (base: {base}, boost: {boost})"


def admission_detail(admission: Admit, workload: Workload) -> dict[str, Any]:
    """Return the detail of the decision: pod sets, slices of devices, and how long the workload waited for quota."""
    detail: dict[str, Any] = {
        "pod_sets": [
            {
                "name": pod_set.name,
                "count": pod_set.count,
                "flavors": dict(pod_set.flavors),
                "resource_usage": dict(pod_set.resource_usage),
            }
            for pod_set in admission.pod_sets
        ]
    }
    slices = [held.slice for held in held_slices(workload)]
    if slices:
        detail["devices"] = [[held.node, held.uuid, held.memory_mib, held.cores_percent] for held in slices]
    if not admission.second_pass:
        detail["waited_seconds"] = round(waited_seconds(workload), 3)
    return detail


def preemption_detail(preemption: Preempt) -> dict[str, Any]:
    """Return the detail of the decision: the preemptor and its ClusterQueue."""
    return {"preemptor": preemption.preemptor, "preemptor_cluster_queue": preemption.preemptor_cluster_queue}


def described_admission(admission: Admit, workload: Workload) -> str:
    """Return the ClusterQueue, the wait time in Kueue's words, and the flavors."""
    flavors = "; ".join(
        f"{pod_set.name} ({pod_set.count}): "
        + ", ".join(f"{resource} in {flavor}" for resource, flavor in pod_set.flavors.items())
        for pod_set in admission.pod_sets
    )
    waited = f"wait time since queued was {waited_seconds(workload):.0f}s"
    return f"Quota reserved in ClusterQueue {admission.cluster_queue}, {waited}; {flavors}"


class BatchBuilder:
    """Collects one batch between the World's savepoint and its commit. Dropped if the batch is refused."""

    def __init__(self, world: World, rows: RowIndex, configuration: Configuration, now: float) -> None:
        self._world = world
        self._rows = rows
        self._configuration = configuration
        self._now = now
        self._deactivated: set[str] = set()
        self._activated: set[str] = set()
        self._moved: set[str] = set()
        self._scaled: set[str] = set()
        self._told: dict[str, str] = {}
        self.replaced: dict[str, tuple[FinishedReason, str]] = {}
        self._consumed: list[tuple[int, dict[str, Any]]] = []
        self._accumulated: dict[str, int] = {}
        self.deadlines: dict[str, float | None] = {}
        self.families: dict[str, None] = {}
        """The parents of variants that were looked at."""
        self._touched: dict[str, None] = {}
        self._evicted: dict[str, list[tuple[EvictionReason, str]]] = {}
        self._events: list[EventRow] = []
        self._decisions: list[DecisionRow] = []
        self._cycles: list[CycleRow] = []
        self._attempts: list[Attempt] = []
        self.writes: list[WorkloadWrite] = []
        self.released_ids: list[int] = []
        self._devices: set[Place] = set()
        self.cycles = self.admitted = self.preempted = 0
        self.unfinished = False

    @property
    def touched(self) -> Collection[str]:
        """The keys of the workloads that the batch writes."""
        return self._touched

    @property
    def pushes(self) -> bool:
        """Whether the batch has anything to push to the cluster."""
        return any(write.push for write in self.writes)

    # -- Steps outside the cycle ---------------------------------------------------------------------------------------

    def reconcile(self, keys: Iterable[str]) -> int:
        """Take the due steps of `scheduling.lifecycle.reconcile` for these workloads; returns their number."""
        keys = list(keys)
        steps = sum(self._reconcile(key) for key in keys)
        parents = dict.fromkeys(filter(None, map(self._rows.variants.parent_of, keys)))
        return steps + sum(self._reconcile_family(parent) for parent in parents)

    def _reconcile_family(self, parent: str) -> int:
        """Take the due steps of a parent and its variants (`scheduling.lifecycle.variants`)."""
        self.families[parent] = None
        steps = self._reconcile(parent)  # its own deadline comes with it
        for _ in range(_MAX_FAMILY_STEPS):
            step = self._family_step(parent)
            if step is None:
                return steps
            self._take(step)
            steps += 1 + self._reconcile(step.workload.key)
        raise RuntimeError(f"the variants of workload {parent} keep taking steps without becoming idle")

    def _family_step(self, key: str) -> Step | None:
        family = self._rows.variants.family(key, self._is_wanted)
        if family is None:
            parent, variants = self._rows.variants.left(key)
            wanted = {each.key for each in variants if self._is_wanted(each.key)}
            return next_step_of_left(parent, variants, wanted, self._now)
        step = next_family_step(family, self._now)
        if step is None:
            self.deadlines[key] = _earliest(self.deadlines.get(key), next_gate_at(family, self._now))
        return step

    def _is_wanted(self, key: str) -> bool:
        """Return whether the workload is active after the changes of this batch."""
        if key in self._deactivated or key in self._activated:
            return key in self._activated
        return self._rows.workloads[key].active

    def _reconcile(self, key: str) -> int:
        steps = 0
        for steps in range(_MAX_STEPS):
            workload = self._world.workload(key)
            if workload is None or key not in self._rows.workloads or key in self._rows.aside:
                return steps
            workload = self._scale_down(workload)
            context = self._rows.context(workload, self._configuration, self._now, wanted=self._is_wanted(key))
            if key in self._accumulated:
                context = replace(context, accumulated_seconds=self._accumulated[key])
            if key in self._evicted:  # it has stopped, and may have been admitted again since
                context = replace(context, eviction_request=None)
            step = next_step(workload, context, self._now)
            if step is None:
                self.deadlines[key] = deadline(workload, context, self._now)
                return steps
            self._take(step)
        raise RuntimeError(f"workload {key} changes state again and again without settling")

    def _take(self, step: Step) -> None:
        workload = step.workload
        if step.deactivates:
            self._deactivated.add(workload.key)
            self._activated.discard(workload.key)
        if step.activates:
            self._activated.add(workload.key)
            self._deactivated.discard(workload.key)
        if not self._is_wanted(workload.key):
            workload = as_the_world_sees_it(replace(workload, active=False))  # dequeued once its pods have stopped
        if step.accumulated_seconds is not None:
            self._accumulated[workload.key] = step.accumulated_seconds
        if step.evicted is not None:
            self._evicted.setdefault(workload.key, []).append(step.evicted)
            if workload.admission is not None:
                message = workload.conditions[ConditionType.EVICTED].message
                asked = f" (asked for by {step.requested_by})" if step.requested_by else ""
                self._log(workload, 0, DecisionKind.EVICT, step.evicted[0], f"{message}{asked}")
        held = self._current(workload.key).admission is not None
        self._world.set_workload(workload, self._now)
        self._touched[workload.key] = None
        for event in step.events:
            if not (event.ours and self._configuration.strict_kueue_lifecycle):
                self._note(workload, event.reason, event.message, "Warning" if event.warning else "Normal")
        if held and workload.admission is None:
            self._make_way_for_slice(workload)

    def _make_way_for_slice(self, workload: Workload) -> None:
        """Finish an evicted slice of an elastic job instead of requeueing it together with its replacement."""
        if not self._rows.waiting_slice_of(workload.key):
            return
        self._finish_slice(workload.key, FinishedReason.OUT_OF_SYNC, "Its job has since requested another size")
        self._world.finish_workload(workload.key, self._now)

    def _scale_down(self, workload: Workload) -> Workload:
        """Release what an elastic job no longer requests: quota at once, slices when their pods are gone."""
        key = workload.key
        if workload.admission is None or workload.is_true(ConditionType.EVICTED) or key in self._scaled:
            return workload
        self._scaled.add(key)
        if self._world.scale_down(key, self._now, pods_may_run=self._rows.may_run(workload)):
            after = self._current(key)
            counts = [found.count for found in after.admission.pod_set_assignments] if after.admission else []
            before = [found.count for found in workload.admission.pod_set_assignments]
            if counts != before:
                self._moved.add(key)
                message = f"Scaled down from {_listed(before)} to {_listed(counts)} pods; the quota is released"
                self._note(after, "ScaledDown", message)
            workload = after
        gone = self._rows.gave_up_replicas(workload)
        if gone:
            self._note(workload, "ReplicasReleased", f"Released the devices of replica {', '.join(gone)} held")
        return workload

    def release_ended(self) -> int:
        """Release the devices of finished workloads; returns how many workloads had some."""
        for id_, held in self._rows.ended.items():
            self.released_ids.append(id_)
            self._devices |= held
        return len(self.released_ids)

    def sample_usage(self) -> None:
        """Decay the past usage of LocalQueues (admission fair sharing), and store it for the next leader."""
        for key, consumed in self._world.sample_usage(self._now).items():
            stored = {"consumedResources": consumed, "lastUpdate": self._now}
            self._consumed.append((self._rows.local_queue_ids[key], stored))

    # -- Cycles --------------------------------------------------------------------------------------------------------

    def record(self, result: CycleResult, seconds: float) -> None:
        self.cycles += 1
        self.admitted += len(result.admissions)
        self.preempted += len(result.preemptions)
        for admission in result.admissions:
            self._admission(admission)
        for preemption in result.preemptions:
            self._preemption(preemption)
        for eviction in result.evictions:
            self._eviction(eviction)
        for replacement in result.replacements:
            self._replacement(replacement)
        for outcome in result.outcomes:
            self._outcome(outcome)
        for failure in result.second_pass_failures:
            self._note(self._current(failure.workload), "SecondPassFailed", failure.message, "Warning")
        self.reconcile([preemption.workload for preemption in result.preemptions])
        self.reconcile([eviction.workload for eviction in result.evictions])
        self.reconcile([replacement.workload for replacement in result.replacements])
        self.reconcile([admission.workload for admission in result.admissions])
        self.reconcile([each.workload for each in result.outcomes if self._rows.variants.parent_of(each.workload)])
        if result.heads:
            took = bool(result.admissions or result.preemptions or result.evictions)
            self._attempts.append(Attempt("success" if took else "inadmissible", seconds))
        if result.decided:
            self._cycles.append(
                CycleRow(
                    result.cycle, self._now, seconds, result.heads, len(result.admissions), len(result.preemptions),
                    sum(outcome.kind is DecisionKind.INADMISSIBLE for outcome in result.outcomes),
                )
            )  # fmt: skip

    def _admission(self, admission: Admit) -> None:
        workload = self._current(admission.workload)
        detail = admission_detail(admission, workload)
        reason = "Admitted" if admission.admitted else "QuotaReserved"
        message = described_admission(admission, workload)
        if not admission.second_pass:
            self._note(workload, "QuotaReserved", message)
        if admission.replaces is not None:
            self._replace(admission.replaces, admission.workload)
        if admission.admitted:
            waited = self._now - workload.conditions[ConditionType.QUOTA_RESERVED].last_transition_time
            self._note(workload, "Admitted", admitted_message(admission.cluster_queue, waited))
        self._log(workload, admission.cycle, admission.kind, reason, message, detail, admission.cluster_queue)

    def _replace(self, old: str, new: str) -> None:
        """Hand over quota and devices of an elastic job's old slice to the new one, and finish the old one."""
        self._finish_slice(old, FinishedReason.WORKLOAD_SLICE_REPLACED, f"Replaced by workload {new}")

    def _finish_slice(self, old: str, reason: FinishedReason, message: str) -> None:
        entry = self._rows.workloads[old]
        self.replaced[old] = (reason, message)
        self.released_ids.append(entry.id)
        self._devices |= places(entry.placement)

    def _preemption(self, preemption: Preempt) -> None:
        victim = self._current(preemption.workload)
        self._evicted.setdefault(victim.key, []).append((EvictionReason.PREEMPTED, ""))
        self._note(victim, eviction_event(EvictionReason.PREEMPTED), preemption.message)
        preemptor = self._current(preemption.preemptor)
        priorities = f"preemptor {_priority(preemptor)}; preemptee {_priority(victim)}"
        self._note(victim, "Preempted", f"{preemption.message}; {priorities}")
        self._note(preemptor, "PreemptedWorkload", f"Preempted {victim.key} ({preemption.reason})")
        detail = preemption_detail(preemption)
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
        self._evicted.setdefault(workload.key, []).append((eviction.reason, ""))
        self._note(workload, eviction_event(eviction.reason), eviction.message)
        self._log(
            workload,
            eviction.cycle,
            eviction.kind,
            eviction.reason,
            eviction.message,
            cluster_queue=eviction.cluster_queue,
        )

    def _replacement(self, replacement: ReplaceNode) -> None:
        workload = self._current(replacement.workload)
        self._moved.add(workload.key)
        self._note(workload, "NodeReplaced", replacement.message)
        self._log(
            workload,
            replacement.cycle,
            replacement.kind,
            "NodeReplaced",
            replacement.message,
            {"node": replacement.node},
            replacement.cluster_queue,
        )

    def _outcome(self, outcome: Outcome) -> None:
        """Store every new message in the row. Event and log line are written only for a new reason; otherwise they
        would flood the log."""
        workload = self._current(outcome.workload)
        self._touched[workload.key] = None
        entry = self._rows.workloads.get(workload.key)
        if self._told.get(workload.key, entry.reason if entry else "") == outcome.reason:
            return
        self._told[workload.key] = outcome.reason
        self._note(workload, outcome.reason, outcome.message, "Warning")
        self._log(
            workload, outcome.cycle, outcome.kind, outcome.reason, outcome.message, cluster_queue=outcome.cluster_queue
        )

    def _current(self, key: str) -> Workload:
        workload = self._world.workload(key)
        if workload is None:
            raise LookupError(f"a cycle decided on {key}, which is not in the World")
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
        queue = self._rows.cluster_queue_of(workload) if cluster_queue is None else cluster_queue
        self._decisions.append(
            DecisionRow(workload, self._now, cycle, kind, queue, reason, message, dict(detail or {}))
        )

    # -- The batch -----------------------------------------------------------------------------------------------------

    def batch(
        self, cluster_id: int, cluster_name: str, epoch: int, generation: int, change_ids: tuple[int, ...]
    ) -> Batch:
        """Return the batch to save: each changed workload once, in its state after the last cycle."""
        for key in self._touched:
            workload, entry = self._world.workload(key), self._rows.workloads.get(key)
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
            attempts=self._attempts,
            replaced=self.replaced,
            consumed=self._consumed,
            devices={place: device for place in self._devices if (device := self._rows.device_row(*place))},
        )

    def _write(self, workload: Workload, entry: WorkloadRow) -> WorkloadWrite:
        queue = self._rows.cluster_queue_of(workload)
        placement = placement_of(workload)
        moved = placement != entry.placement  # also if it was released and admitted elsewhere within this batch
        held, before = places(placement), places(entry.placement)
        if moved:
            self._devices |= held | before
        return WorkloadWrite(
            id=entry.id,
            generation=entry.generation,
            workload=workload,
            cluster_queue=queue,
            push=entry.has_job and (should_run(workload) != entry.runs or moved or self._is_news(workload)),
            reserves_devices=moved and bool(held),
            releases_devices=moved and bool(before),
            counted_evictions=self._counted(entry, workload.key),
            accumulated_seconds=self._accumulated.get(workload.key),
            deactivate=not self._is_wanted(workload.key),
        )

    def _is_news(self, workload: Workload) -> bool:
        """Return whether the decision must be pushed although the same pods should run as before."""
        return workload.key in self._moved or (workload.key in self._evicted and self._rows.may_run(workload))

    def _counted(self, entry: WorkloadRow, key: str) -> list[dict[str, Any]] | None:
        """Kueue's schedulingStats: evictions by reason and cause. A batch may evict a workload twice."""
        if key not in self._evicted:
            return None
        counts = {(stored["reason"], stored["underlyingCause"]): stored["count"] for stored in entry.eviction_counts}
        for reason, cause in self._evicted[key]:
            counts[reason.value, cause] = counts.get((reason.value, cause), 0) + 1
        return [
            {"reason": reason, "underlyingCause": cause, "count": count} for (reason, cause), count in counts.items()
        ]


def _listed(counts: Iterable[int]) -> str:
    return ", ".join(map(str, counts))
