"""Turns a submitted job into its workloads."""

import hashlib
import json
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol

from foundation.exceptions import ManifestErrors, UnsupportedKind
from queues.manifests import kueue_keys as keys
from queues.manifests.generated_name import generated_name
from queues.manifests.job import JobManifest, WorkloadsPer, workload_name
from queues.manifests.pod_group import POD
from queues.manifests.workload import JobSpec, WorkloadSpec
from queues.manifests.workload_object import read_workload
from scheduling.manifest import FieldReader, MistakeReason, ValidationReport


class ClusterObjects(Protocol):
    """The objects of the cluster to which a job may refer."""

    def get(self, kind: str, namespace: str, name: str) -> dict[str, Any] | None: ...

    def list(self, kind: str, namespace: str = "") -> list[dict[str, Any]]: ...


class JobReader(Protocol):
    """Reads the manifest of a job of one kind; `found_in_cluster`: the API server has already accepted it."""

    def __call__(
        self, top: FieldReader, objects: ClusterObjects | None, *, found_in_cluster: bool = False
    ) -> JobManifest: ...


_TEMPLATE_HASH_LENGTH = 10
_POD_HASH_LENGTH = 5


@dataclass(frozen=True, slots=True)
class PriorityChoice:
    """The class that a workload's priority comes from, and its kind; two empty texts without a class."""

    value: int = 0
    kind: str = ""
    name: str = ""


def job_spec(
    job: JobManifest,
    *,
    name: str = "",
    uid: uuid.UUID | None = None,
    queue_name: str | None = None,
    applied_set: str = "",
    row_id: int | None = None,
    found_in_cluster: bool = False,
) -> JobSpec:
    """Return the job to store; the caller provides a generated `name` and a defaulted `queue_name`."""
    name = name or job.meta.name
    manifest = {**job.manifest, "metadata": {**job.manifest["metadata"], "name": name}}
    managed = bool(job.queue_name if queue_name is None else queue_name)
    return JobSpec(
        kind=job.kind,
        name=name,
        namespace=job.meta.namespace,
        manifest=manifest,
        managed=managed,
        suspended=managed or bool(job.manifest["spec"].get("suspend")),
        uid=uid or uuid.uuid4(),
        labels=dict(job.meta.labels),
        annotations=dict(job.meta.annotations),
        api_version=job.api_version,
        applied_set=applied_set,
        row_id=row_id,
        found_in_cluster=found_in_cluster,
        scales=job.scales,
        handed_over=job.handed_over,
    )


def job_workloads(
    job: JobManifest, stored: JobSpec, *, queue_name: str = "", priority: PriorityChoice | None = None
) -> list[WorkloadSpec]:
    """Return the workloads of a stored job, in the order of their replicas; names are stable for as long as its pods
    are."""
    annotations = job.workload_annotations
    if keys.JOB_OWNER_KIND in annotations:
        annotations = {**annotations, keys.JOB_OWNER_NAME: stored.name}
    template = WorkloadSpec(
        namespace=stored.namespace,
        name="",
        queue_name=queue_name or job.queue_name,
        pod_sets=job.pod_sets,
        priority=priority.value if priority else None,
        priority_class_kind=priority.kind if priority else "",
        priority_class_name=priority.name if priority else "",
        never_preempt=job.never_preempt,
        maximum_execution_seconds=job.maximum_execution_seconds,
        labels={keys.JOB_UID: str(stored.uid)},
        annotations=annotations,
        applied_set=stored.applied_set,
        job=stored,
        document=job.document,
    )
    names = workload_names(job, stored, job.workload_count)
    if job.workloads_per is not WorkloadsPer.GROUP:
        return [replace(template, name=name) for name in names]
    return [
        replace(template, name=name, annotations={**template.annotations, keys.COMPONENT_INDEX: str(index)})
        for index, name in enumerate(names)
    ]


def workload_names(job: JobManifest, stored: JobSpec, count: int) -> list[str]:
    """Return the names of a job's first workloads."""
    own = partial(workload_name, job.kind, job.api_group, uid=str(stored.uid))
    if job.workloads_per is WorkloadsPer.JOB:
        return [own(name=stored.name)][:count]
    if job.workloads_per is WorkloadsPer.GROUP:
        return [own(name=f"{stored.name}-{index}") for index in range(count)]
    content = json.dumps(job.pod_sets[0].template, sort_keys=True)
    template_hash = _hash(content, _TEMPLATE_HASH_LENGTH)
    pods = [
        f"{stored.name}-{template_hash}-{_hash(f'{stored.uid}/{replica}', _POD_HASH_LENGTH)}"
        for replica in range(count)
    ]
    return [workload_name(POD, "", pod, str(uuid.uuid5(stored.uid, pod))) for pod in pods]


def _hash(text: str, length: int) -> str:
    return hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()[:length]


JOB_READERS: dict[tuple[str, str], JobReader] = {}
"""The readers by apiVersion and kind. The app that connects to clusters, which has the kinds, registers them here."""
_WORKLOAD_VERSIONS = ("kueue.x-k8s.io/v1beta1", "kueue.x-k8s.io/v1beta2")


def workload_specs(
    document: Mapping[str, Any],
    index: int = 0,
    objects: ClusterObjects | None = None,
    *,
    queue_required: bool = True,
    found_in_cluster: bool = False,
) -> list[WorkloadSpec]:
    """Return the new workloads that the manifest of a job or of a Workload requests.

    Of a job's priority classes, the first that it names is used. A job found in the cluster has its uid there, a hash
    of which is in the names of its workloads. Raises `ManifestErrors`, which locates every mistake, and
    `UnsupportedKind`; a job without a queue is a mistake if one is required.
    """
    report = ValidationReport(index)
    kind, api_version = document.get("kind"), document.get("apiVersion")
    top = FieldReader(report, "", document)
    top.ignore("apiVersion", "kind")
    if kind == "Workload" and api_version in _WORKLOAD_VERSIONS:
        specs = [read_workload(top, str(api_version).rpartition("/")[2])]
    elif reader := JOB_READERS.get((str(api_version), str(kind))):
        job = reader(top, objects, found_in_cluster=found_in_cluster)
        name = job.workload_priority_class or job.hinted_priority_class or job.pod_priority_class
        is_kueue = bool(job.workload_priority_class or job.hinted_priority_class)
        uid = uuid.UUID(job.uid) if found_in_cluster else None
        stored = job_spec(job, name=_name(job), uid=uid, found_in_cluster=found_in_cluster)
        specs = [
            replace(
                spec,
                priority_class_kind=("WorkloadPriorityClass" if is_kueue else "PriorityClass") if name else "",
                priority_class_name=name,
            )
            for spec in job_workloads(job, stored)
        ]
        path = top.at(f"metadata.labels[{keys.QUEUE_NAME}]")
        if queue_required and not job.queue_name and path not in {error.path for error in report.errors}:
            report.error(path, None, "Required value", "Name a LocalQueue of the namespace.", MistakeReason.REQUIRED)
    else:
        report.error("kind", kind, f"is not a kind of workload in {api_version}", "", MistakeReason.UNSUPPORTED_KIND)
        raise UnsupportedKind(report.errors)
    top.close()
    if report.errors:
        raise ManifestErrors(report.errors)
    return specs


def _name(job: JobManifest) -> str:
    return generated_name(job.meta.name) if job.meta.generate_name else job.meta.name
