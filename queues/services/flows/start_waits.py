"""The jobs for which a workload waits (`waits_for` of its row), at its creation and after an edit of its annotation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from operator import or_

from django.db.models import Q

from accounts.models import Cluster
from queues.manifests.start_order import job_named, jobs_before
from queues.manifests.workload import WorkloadSpec
from queues.models import Job, Workload
from scheduling.lifecycle.conditions import VARIANT_GATE
from scheduling.model.vocabulary import FinishedReason, WorkloadStatus


def first_waits(cluster: Cluster, specs: Sequence[WorkloadSpec]) -> dict[int, list[str]]:
    """Return, by the identity of the spec, the jobs that new workloads wait for; workloads that wait for no job are
    left out. A further workload of a stored job, or a variant, waits only for existing jobs: the job may have started
    before, and the earlier jobs may have been deleted since. A failed job exists."""
    waits = {id(spec): [*jobs_before(spec.annotations)] for spec in specs if spec.annotations}
    waits = {identity: names for identity, names in waits.items() if names}
    again = [spec for spec in specs if id(spec) in waits and _is_further(spec)]
    if again:
        counted = [FinishedReason.SUCCEEDED, FinishedReason.WORKLOAD_SLICE_REPLACED]
        done = reduce(or_, (Q(conditions__contains=[{"type": "Finished", "reason": reason}]) for reason in counted))
        unmet = Workload.objects.filter(cluster=cluster, job__isnull=False, parent_name="")
        unmet = unmet.exclude(done, status=WorkloadStatus.FINISHED)
        names = {job_named(item) for spec in again for item in waits[id(spec)]}
        jobs = Job.objects.filter(cluster=cluster, name__in=names, pk__in=unmet.values("job"))
        there = set(jobs.values_list("namespace", "name"))
        for spec in again:
            waits[id(spec)] = [item for item in waits[id(spec)] if (spec.namespace, job_named(item)) in there]
    return waits


def _is_further(spec: WorkloadSpec) -> bool:
    return VARIANT_GATE in spec.preemption_gates or (spec.job is not None and spec.job.row_id is not None)


def fewer_waits(waits_for: Sequence[str], annotations: Mapping[str, str]) -> list[str]:
    """Return the remaining jobs after an edit of the annotation, which can only remove jobs."""
    named = jobs_before(annotations)
    return [name for name in waits_for if name in named]
