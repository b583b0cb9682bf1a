"""A job with its rows before a pass of the controller over it, and the results of passes over a batch."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from clusters.api_objects import JsonObject
from clusters.jobs.framework.manifest import annotations_of, labels_of, namespace_of
from clusters.jobs.live_job import Changes
from queues.manifests import kueue_keys as keys
from queues.manifests.workload import WorkloadSpec
from queues.models import Job, Workload
from queues.services.job_changes import pod_set_specs
from scheduling.model.vocabulary import WorkloadStatus


@dataclass(frozen=True, slots=True)
class Look:
    """A job for the controller's pass, with its rows, or with those of the job of which it is a part."""

    job: JsonObject
    row: Job | None
    workloads: Sequence[Workload]
    is_part: bool = False


@dataclass(slots=True)
class News:
    """The results of the passes over a batch: ends of workloads with their reasons, reclaimable pods by pod set,
    workloads that are on hold or no longer are, and the jobs to start or to stop."""

    finished: dict[tuple[str, str], list[tuple[str, str]]] = field(default_factory=lambda: defaultdict(list))
    reclaimable: dict[str, dict[tuple[str, str], int]] = field(default_factory=lambda: defaultdict(dict))
    held: dict[str, list[tuple[str, str]]] = field(default_factory=lambda: defaultdict(list))
    unheld: list[tuple[str, str]] = field(default_factory=list)
    told: list[Job] = field(default_factory=list)

    def note(self, look: Look, changes: Changes) -> None:
        """Add the results of the pass over one job."""
        namespace = namespace_of(look.job)
        for name, why in changes.finished.items():
            self.finished[why].append((namespace, name))
        for name, counts in changes.reclaimable.items():
            for pod_set, count in counts.items():
                self.reclaimable[pod_set][namespace, name] = count
        for name, message in changes.held.items():
            self.held[message].append((namespace, name))
        self.unheld += [(namespace, name) for name in changes.unheld]
        if changes.job is not None and look.row is not None:
            self.told.append(look.row)


def is_plain_creation(look: Look, changes: Changes) -> bool:
    """Return whether the pass over a job without a row created its first workload and changed nothing else."""
    if look.is_part or look.row is not None or look.workloads or not changes.created:
        return False
    return not (changes.changed or changes.removed or changes.taken)


def drops_all(look: Look, changes: Changes) -> bool:
    """Return whether the pass removes every unfinished workload of a job in the cluster."""
    left = {each.name for each in look.workloads if each.status != WorkloadStatus.FINISHED and each.job_id is not None}
    found = look.row is not None and look.row.found_in_cluster
    return found and bool(changes.removed) and left <= {*changes.removed}


def taken(spec: WorkloadSpec, prebuilt: Workload) -> WorkloadSpec:
    """Return the spec of a job when it takes over a workload. A workload from a MultiKueue manager gets the templates
    of the job."""
    if keys.MULTIKUEUE_ORIGIN not in prebuilt.labels:
        return replace(spec, pod_sets=pod_set_specs(prebuilt))
    index = prebuilt.annotations.get(keys.COMPONENT_INDEX)
    annotations = spec.annotations if index is None else {**spec.annotations, keys.COMPONENT_INDEX: index}
    return replace(spec, name=prebuilt.name, annotations=annotations)


def with_marks(spec: WorkloadSpec, made: JsonObject, workloads: Iterable[Workload]) -> WorkloadSpec:
    """Return the spec of an elastic job's next slice, whose templates repeat the marks of the running pods, as in
    Kueue. Any tenant can write these keys, so only values from an admission of the job are repeated."""
    made_pod_sets = made["spec"]["podSets"]
    if keys.REPLACED_SLICE not in annotations_of(made) or len(made_pod_sets) != len(spec.pod_sets):
        return spec
    admitted = [each for each in workloads if each.admitted_at is not None]
    given = {
        keys.WORKLOAD: {name for each in admitted for name in (each.name, each.annotations.get(keys.SLICE_NAME))},
        keys.CLUSTER_QUEUE: {each.cluster_queue_name for each in admitted},
        keys.LOCAL_QUEUE: {each.queue_name for each in admitted},
    }
    pod_sets = zip(spec.pod_sets, made_pod_sets, strict=True)
    return replace(
        spec,
        pod_sets=tuple(
            replace(own, template=_marked(own.template, seen["template"], {**given, keys.POD_SET: {own.name}}))
            for own, seen in pod_sets
        ),
    )


def _marked(
    template: Mapping[str, Any], seen: Mapping[str, Any], given: Mapping[str, Collection[str | None]]
) -> dict[str, Any]:
    """Return the template, plus the marks of the running pods whose values an admission gave."""
    metadata = dict(template.get("metadata") or {})
    for part, values in (("labels", labels_of(seen)), ("annotations", annotations_of(seen))):
        marks = {key: value for key, value in values.items() if value in given.get(key, ())}
        if marks:
            metadata[part] = {**(metadata.get(part) or {}), **marks}
    return {**template, "metadata": metadata} if metadata else dict(template)


def is_admitted(workload: Workload) -> bool:
    """Return whether the workload runs, or may start."""
    return workload.status == WorkloadStatus.ADMITTED and workload.evicted_at is None


def waits_for_the_job(workload: Workload) -> bool:
    """Return whether a sweep waits for the workload's job to be suspended or to lose its last pod. The sweep then
    records that an evicted workload has stopped, or starts the job again."""
    stopping = workload.evicted_at is not None and workload.quota_reserved_at is not None
    return (stopping and workload.pods_stopped_at is None) or workload.push_sequence > workload.pushed_sequence
