"""The workloads of a job that is submitted again: the controller's pass decides which stay, go and are added.

`clusters`, which contains the controller, registers the pass of each kind. If each pod is a separate workload, Kueue
has no controller for the object that creates the pods: as many workloads with its template are kept as it has replicas.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final

from accounts.models import Cluster
from queues.manifests import kueue_keys as keys
from queues.manifests.job import JobManifest, WorkloadsPer
from queues.manifests.job_workloads import workload_names
from queues.manifests.workload import JobSpec, PodSetSpec, WorkloadSpec
from queues.models import Job, Workload
from queues.services.job_changes import pod_set_specs
from scheduling.model.vocabulary import WorkloadStatus

_SLICE: Final = (keys.SLICE_NAME, keys.REPLACED_SLICE)
"""The annotations that distinguish the slices of an elastic job."""


@dataclass(frozen=True, slots=True)
class SubmittedJob:
    """A job that is submitted again, for the pass: its present row and its desired manifest.

    * scales: whether it may change its size while it holds quota. A job that was not elastic when it was started
      cannot become so.
    """

    row: Job
    spec: JobSpec
    queue_name: str
    scales: bool


@dataclass(frozen=True, slots=True)
class PassResult:
    """The workloads of a job after a pass.

    * kept: by the name of each workload that the job keeps, the pods of each of its pod sets.
    * created: by the names of new workloads, the annotations that distinguish them.
    * held: by name, the reason why workloads wait while the job needs no pods.
    * finished: by name, the reason and the message of the end of workloads.
    * failure: why the pass ended early; empty if it did not.
    """

    kept: Mapping[str, Mapping[str, int]]
    created: Mapping[str, Mapping[str, str]]
    held: Mapping[str, str]
    finished: Mapping[str, tuple[str, str]]
    failure: str = ""


SubmittedPass = Callable[[Cluster, SubmittedJob, Sequence[Workload], datetime], PassResult]
JOB_PASSES: Final[dict[str, SubmittedPass]] = {}
"""By the kind of a job: runs the controller's pass over a job that is submitted again and its workloads, whose rows are
locked. It stores nothing."""


@dataclass(slots=True)
class Matched:
    """Workloads to change with their new specs, workloads to remove, and specs to create; the others as in
    `PassResult`."""

    kept: list[tuple[Workload, WorkloadSpec]] = field(default_factory=list)
    surplus: list[Workload] = field(default_factory=list)
    missing: list[WorkloadSpec] = field(default_factory=list)
    held: Mapping[str, str] = field(default_factory=dict)
    finished: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    failure: str = ""


def match_workloads(
    cluster: Cluster,
    row: Job,
    job: JobManifest,
    stored: JobSpec,
    wanted: Sequence[WorkloadSpec],
    there: Sequence[Workload],
    now: datetime,
) -> Matched:
    """Match the locked workloads of a job with the workloads that it needs now."""
    if not stored.managed:
        return Matched(surplus=list(there))
    if not (there or wanted):
        return Matched()
    if job.workloads_per is WorkloadsPer.POD:
        return _match_replicas(job, stored, wanted, there)
    live = [workload for workload in there if workload.status != WorkloadStatus.FINISHED]
    if job.workloads_per is WorkloadsPer.JOB:
        if there and wanted and not live:  # it has ended: nothing of it may change, and it is not run again
            return Matched([(there[0], replace(wanted[0], name=there[0].name))])
        there = live
    holds = any(workload.quota_reserved_at is not None for workload in live)
    scales = stored.scales and not (holds and row.annotations.get(keys.ELASTIC_JOB) != "true")
    queue = wanted[0].queue_name if wanted else job.queue_name
    submitted = SubmittedJob(row, stored, queue or next((each.queue_name for each in live), ""), scales)
    result = JOB_PASSES[job.kind](cluster, submitted, there, now)
    if result.failure:
        return Matched(failure=result.failure)
    if job.workloads_per is WorkloadsPer.GROUP:
        return _match_groups(result, wanted, there)
    return _match_slices(result, wanted, there) if scales else _match_one(result, wanted, there)


def _match_groups(result: PassResult, wanted: Sequence[WorkloadSpec], there: Sequence[Workload]) -> Matched:
    """Groups have numbers, which are in the names of their workloads."""
    specs = {spec.name: spec for spec in wanted}
    kept = [(each, specs[each.name]) for each in there if each.name in result.kept and each.name in specs]
    missing = [specs[name] for name in result.created if name in specs]
    return Matched(kept, _dropped(result, there), missing, result.held, result.finished)


def _match_one(result: PassResult, wanted: Sequence[WorkloadSpec], there: Sequence[Workload]) -> Matched:
    """Match the only workload of a job, whatever its name, because the cluster may have named it.

    A workload with quota is kept even if the pass would stop the job: changes of immutable fields are refused.
    """
    found = sorted(there, key=lambda each: (each.quota_reserved_at is None, each.name not in result.kept))
    kept = [(found[0], replace(wanted[0], name=found[0].name))] if found and wanted else []
    missing = [replace(wanted[0], name=name) for name in result.created if wanted] if not found else []
    surplus = found[1:] if kept else _dropped(result, there)
    return Matched(kept, surplus, missing, result.held, result.finished)


def _match_slices(result: PassResult, wanted: Sequence[WorkloadSpec], there: Sequence[Workload]) -> Matched:
    """Match the slices of an elastic job, which differ in the counts of their pods."""
    kept = [
        (each, _as_slice(spec, each, result.kept[each.name]))
        for each in there
        if each.name in result.kept
        for spec in wanted[:1]
    ]
    missing = [
        replace(spec, name=name, annotations={**spec.annotations, **annotations})
        for name, annotations in result.created.items()
        for spec in wanted[:1]
    ]
    return Matched(kept, _dropped(result, there), missing, result.held, result.finished)


def _dropped(result: PassResult, there: Sequence[Workload]) -> list[Workload]:
    return [each for each in there if each.name not in result.kept and each.name not in result.finished]


def _as_slice(spec: WorkloadSpec, workload: Workload, counts: Mapping[str, int]) -> WorkloadSpec:
    """Return the spec with the sizes of the pass and the annotations of the slice."""
    slices = {key: workload.annotations[key] for key in _SLICE if key in workload.annotations}
    pod_sets = tuple(replace(each, count=counts.get(each.name, each.count)) for each in spec.pod_sets)
    return replace(spec, name=workload.name, pod_sets=pod_sets, annotations={**spec.annotations, **slices})


def _match_replicas(
    job: JobManifest, stored: JobSpec, wanted: Sequence[WorkloadSpec], there: Sequence[Workload]
) -> Matched:
    """Keep as many workloads with the job's template as it has replicas, those with quota first."""
    alike = [row for row in there if wanted and _is_replica(row, wanted[0].pod_sets)]
    alike.sort(key=lambda row: (row.quota_reserved_at is None, row.pk))
    kept = [(row, replace(spec, name=row.name)) for row, spec in zip(alike, wanted, strict=False)]
    taken = {row.name for row in there}
    names = workload_names(job, stored, len(wanted) + len(there))
    free = [name for name in names if name not in taken]
    missing = [replace(spec, name=name) for spec, name in zip(wanted[len(kept) :], free, strict=False)]
    return Matched(kept, [row for row in there if row not in alike[: len(kept)]], missing)


def _is_replica(row: Workload, pod_sets: tuple[PodSetSpec, ...]) -> bool:
    ending = row.status == WorkloadStatus.FINISHED or row.deletion_requested_at is not None
    return not ending and pod_set_specs(row) == pod_sets
