"""Resizes elastic jobs that hold quota (Kueue's workload slices).

A job that grows gets a new workload slice for all its pods. The slice is charged the difference only and replaces
the old one when it is admitted; the old one is then Finished as WorkloadSliceReplaced. A job that shrinks gets lower
counts in place, and a pending slice is withdrawn. There are two unfinished slices at most: one that holds quota and
one that is pending, which another resize replaces.
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
"""Workloads to change with their new specs, workloads to remove, and specs to create."""


def match_slices(row: Job, job: JobSpec, there: Sequence[Workload], wanted: Sequence[WorkloadSpec]) -> Match | None:
    """How the slices of an elastic job that holds quota become the wanted workloads; None if no rule of slices
    applies."""
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
    """Whether no pod set requests more pods than before; None if more than the counts differs."""
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
    """The wanted annotations, with those that identify the slice."""
    kept = {key: holder.annotations[key] for key in _SLICE_KEYS if key in holder.annotations}
    return {**spec.annotations, **kept}
