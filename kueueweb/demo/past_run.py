"""Runs the jobs of the past through the scheduler's own cycles, on a virtual clock. Pure, given a World.

Decisions are those of the scheduler. Pods start at once and stop at once. A cycle takes a millisecond, so that a
workload that one cycle admits and the next one preempts has held its quota for a while.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from uuid import UUID

from clusters.jobs.framework.topology import topology_request
from kueueweb.demo.arrivals import MAX_WAITING
from kueueweb.demo.jobs import Tenant
from kueueweb.demo.past_jobs import PastJob
from queues.manifests.job import workload_name
from queues.manifests.kueue_keys import PRIORITY_CLASS, QUEUE_NAME
from scheduler.store.batch import DecisionRow
from scheduler.store.batch_builder import admission_detail, described_admission, preemption_detail
from scheduling.model.decisions import CycleResult, Outcome
from scheduling.model.pod import PodTemplate
from scheduling.model.topology import TopologyRequest
from scheduling.model.vocabulary import FinishedReason
from scheduling.model.workload import PodSet, Workload
from scheduling.run_until_idle import run_until_idle
from scheduling.world import World

_CYCLE_SECONDS: Final = 0.001
_LAST_SECONDS: Final = 0.5


@dataclass(frozen=True, slots=True)
class EndedUse:
    """A period in which a workload held quota and devices, and how it ended. `workload` is as it was before the end."""

    workload: Workload
    tenant: Tenant
    priority_class: str
    queued_at: float
    reserved_at: float
    ended_at: float
    outcome: str
    reason: str


@dataclass(slots=True)
class _Known:
    job: PastJob
    priority_class: str
    fails: bool
    queued_at: float
    reserved_at: float = 0.0
    ends_at: float | None = None
    waits_for: str = ""


@dataclass(slots=True)
class PastRun:
    """The run of one past. `priorities` are the values of the priority classes, by name.

    `decisions` and `uses` grow as it runs.
    """

    world: World
    priorities: Mapping[str, int]
    chance: random.Random
    decisions: list[DecisionRow] = field(default_factory=list)
    uses: list[EndedUse] = field(default_factory=list)
    _known: dict[str, _Known] = field(default_factory=dict)
    _ends: list[tuple[float, str]] = field(default_factory=list)
    _cycle_at: float = 0.0

    def run(self, jobs: Iterator[PastJob], moments: Iterable[int], until: int) -> Iterator[int]:
        """Yield each of the moments; the World is then in the state of that moment.

        Everything that still runs in the last second finishes half a second before the end, because the demo's cluster
        begins without pods, and live samples begin at the end. A workload that starts because another one ends in this
        second could not hold its quota for any time.
        """
        coming = next(jobs, None)
        for moment in [*moments, until]:
            while coming is not None and coming.at <= moment:
                self._end_until(coming.at)
                self._submit(coming)
                coming = next(jobs, None)
            self._end_until(min(moment, until - 1))
            self.world.advance(moment)
            if moment < until:
                yield moment
        for key, known in [*self._known.items()]:
            if known.ends_at is not None:
                self._finish(key, known, until - _LAST_SECONDS)

    def holders(self) -> Iterator[tuple[Workload, Tenant]]:
        """Yield the workloads that hold quota now, with their owners."""
        for key, known in self._known.items():
            workload = self.world.workload(key)
            if known.ends_at is not None and workload is not None:
                yield workload, known.job.tenant

    def tenant(self, key: str) -> Tenant:
        """Return the tenant of a workload that waits or runs."""
        return self._known[key].job.tenant

    def _end_until(self, moment: float) -> None:
        while self._ends and self._ends[0][0] <= moment:
            at, key = heapq.heappop(self._ends)
            known = self._known.get(key)
            if known is not None and known.ends_at == at:  # else it was preempted, and runs again or waits
                self.world.advance(at)
                self._finish(key, known, at)
                self._cycles(at)

    def _submit(self, job: PastJob) -> None:
        metadata, spec = job.manifest["metadata"], job.manifest["spec"]
        queue, priority_class = metadata["labels"][QUEUE_NAME], metadata["labels"][PRIORITY_CLASS]
        self.world.advance(job.at)
        local_queue = self.world.objects.local_queues[f"{metadata['namespace']}/{queue}"]
        if len(self.world.pending(local_queue.cluster_queue)) >= MAX_WAITING:
            return
        group = job.manifest["apiVersion"].partition("/")[0]
        uid = str(UUID(int=self.chance.getrandbits(128), version=4))
        workload = Workload(
            namespace=metadata["namespace"],
            name=workload_name(job.manifest["kind"], group, metadata["name"], uid),
            uid=uid,
            queue_name=queue,
            pod_sets=(pod_set(spec),),
            priority=self.priorities[priority_class],
            created_at=job.at,
            submitted_by=job.tenant.username,
        )
        fails = self.chance.random() < job.failing
        self._known[workload.key] = _Known(job, priority_class, fails, queued_at=job.at)
        self.world.set_workload(workload, job.at)
        self._cycles(job.at)

    def _cycles(self, now: float) -> None:
        for result in run_until_idle(self.world, now):
            self._cycle_at = max(now, self._cycle_at + _CYCLE_SECONDS)
            self._note(result, self._cycle_at)
            for preemption in result.preemptions:
                self.world.release_workload(preemption.workload, now)

    def _note(self, result: CycleResult, now: float) -> None:
        for admission in result.admissions:
            known, workload = self._known[admission.workload], self._workload(admission.workload)
            known.reserved_at, known.ends_at, known.waits_for = now, now + known.job.run_seconds, ""
            heapq.heappush(self._ends, (known.ends_at, workload.key))
            message, detail = described_admission(admission, workload), admission_detail(admission, workload)
            self._decide(
                workload, now, result.cycle, admission.kind, admission.cluster_queue, "Admitted", message, detail
            )
        for preemption in result.preemptions:
            known, workload = self._known[preemption.workload], self._workload(preemption.workload)
            detail = preemption_detail(preemption)
            queue, reason, message = preemption.cluster_queue, preemption.reason, preemption.message
            self._decide(workload, now, result.cycle, preemption.kind, queue, reason, message, detail)
            self._stop(workload, known, now, "Preempted", preemption.reason)
            known.ends_at, known.queued_at = None, now
        for outcome in result.outcomes:
            self._still_waits(outcome, now)

    def _still_waits(self, outcome: Outcome, now: float) -> None:
        known = self._known[outcome.workload]
        if known.waits_for != outcome.reason:
            known.waits_for = outcome.reason
            workload, queue = self._workload(outcome.workload), outcome.cluster_queue
            self._decide(workload, now, outcome.cycle, outcome.kind, queue, outcome.reason, outcome.message, {})

    def _finish(self, key: str, known: _Known, at: float) -> None:
        reason = FinishedReason.FAILED if known.fails else FinishedReason.SUCCEEDED
        self._stop(self._workload(key), known, at, "Finished", reason)
        self.world.finish_workload(key, at)
        del self._known[key]

    def _stop(self, workload: Workload, known: _Known, at: float, outcome: str, reason: str) -> None:
        times = (known.queued_at, known.reserved_at, at)
        self.uses.append(EndedUse(workload, known.job.tenant, known.priority_class, *times, outcome, reason))

    def _decide(
        self,
        workload: Workload,
        at: float,
        cycle: int,
        action: str,
        queue: str,
        reason: str,
        message: str,
        detail: dict[str, object],
    ) -> None:
        self.decisions.append(DecisionRow(workload, at, cycle, action, queue, reason, message, detail))

    def _workload(self, key: str) -> Workload:
        found = self.world.workload(key)
        assert found is not None
        return found


def pod_set(spec: Mapping[str, Any]) -> PodSet:
    """Return the pods of a Job's spec, with the topology that its template requests."""
    template = spec["template"]
    topology = TopologyRequest.from_manifest(topology_request(template))
    return PodSet("main", spec["parallelism"], PodTemplate.from_manifest(template), topology_request=topology)
