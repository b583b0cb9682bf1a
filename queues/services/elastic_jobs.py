"""Elastic jobs that change their size while they hold quota.

Kueue's elastic jobs by workload slices. One that grows: a new workload slice asks for all pods,
is charged the difference only, and takes the old one's place when it is admitted, which is Finished then as
WorkloadSliceReplaced. One that shrinks: the counts become less in place, and a slice that waits is withdrawn. There are
two live slices at most: the one that holds quota and the one that waits; another size replaces the one that waits.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from queues.manifests import kueue_keys as keys
from queues.manifests.job import workload_name
from queues.manifests.workload import JobSpec, WorkloadSpec
from queues.models import Job, Workload
from queues.services.job_changes import pod_set_specs
from scheduling.model.vocabulary import WorkloadStatus

_SLICE_KEYS: Final = (keys.SLICE_NAME, keys.REPLACED_SLICE)

Match = tuple[list[tuple[Workload, WorkloadSpec]], list[Workload], list[WorkloadSpec]]
"""What is kept and becomes what, what is too much, what is missing."""


def match_slices(row: Job, job: JobSpec, there: Sequence[Workload], wanted: Sequence[WorkloadSpec]) -> Match | None:
    """How the slices of an elastic job that holds quota become what is wanted; None where that is nothing special."""
    live = [workload for workload in there if workload.status != WorkloadStatus.FINISHED]
    holder = next((workload for workload in live if workload.quota_reserved_at is not None), None)
    if holder is None or not wanted or not _is_elastic(row, job):
        return None
    (spec,) = wanted
    waiting = [workload for workload in live if workload is not holder]
    smaller = _fits_in(holder, spec)
    as_it_is = replace(spec, name=holder.name, pod_sets=pod_set_specs(holder), annotations=_with_slice(holder, spec))
    if smaller is None or smaller:
        return [(holder, replace(as_it_is, pod_sets=spec.pod_sets))], waiting, []
    larger = _slice(row, job, holder, spec)
    if waiting:
        return [(holder, as_it_is), (waiting[0], replace(larger, name=waiting[0].name))], waiting[1:], []
    return [(holder, as_it_is)], [], [larger]


def _is_elastic(row: Job, job: JobSpec) -> bool:
    return job.scales and row.annotations.get(keys.ELASTIC_JOB) == "true"


def _fits_in(holder: Workload, spec: WorkloadSpec) -> bool | None:
    """Whether no pod set asks for more pods than are there; None where more than the counts differs."""
    there, wanted = pod_set_specs(holder), spec.pod_sets
    if len(there) != len(wanted):
        return None
    pairs = list(zip(there, wanted, strict=True))
    if any(replace(old, count=new.count) != new for old, new in pairs):
        return None
    return all(new.count <= old.count for old, new in pairs)


def _slice(row: Job, job: JobSpec, holder: Workload, spec: WorkloadSpec) -> WorkloadSpec:
    first = holder.annotations.get(keys.SLICE_NAME, holder.name)
    name = workload_name(job.kind, job.api_version.rpartition("/")[0], job.name, f"{job.uid}\n{row.generation + 1}")
    slices = {keys.SLICE_NAME: first, keys.REPLACED_SLICE: holder.key}
    return replace(spec, name=name, annotations={**spec.annotations, **slices})


def _with_slice(holder: Workload, spec: WorkloadSpec) -> dict[str, str]:
    """The wanted annotations, and those that say which slice it is."""
    kept = {key: holder.annotations[key] for key in _SLICE_KEYS if key in holder.annotations}
    return {**spec.annotations, **kept}
