"""Submitted jobs of any kind, as the source of their workloads."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final, TypedDict, Unpack

from queues.manifests import kueue_keys as keys
from queues.manifests.nice import check_nice
from queues.manifests.pod_group import PodGroupMember
from queues.manifests.protection import read_never_preempt
from queues.manifests.start_order import check_start_after
from queues.manifests.workload import HandedOver, PodSetSpec
from scheduling.manifest import FieldReader, ObjectMeta, read_metadata, write_metadata
from scheduling.manifest.field_reader import INT32_MAX
from scheduling.manifest.syntax import dns_subdomain

_HASH_LENGTH: Final = 5
_MAX_NAME: Final = 253


class WorkloadsPer(StrEnum):
    """The number of workloads of a job."""

    JOB = "job"
    """One."""
    POD = "pod"
    """One workload for each pod. The pods are interchangeable."""
    GROUP = "group"
    """One for each group of pods, which has a number."""


@dataclass(frozen=True, slots=True)
class JobManifest:
    """A job as submitted, with the parts of its workloads.

    Each of `workload_count` workloads has `pod_sets`. The three priority classes are those of Kueue's order: the
    label's, one that an annotation hints at, the pods' own.

    * template_path, size_path: the paths that errors about its pods and their number name; a kind with several
      templates has no template_path.
    * scales: it may change its size while it runs.
    """

    meta: ObjectMeta
    kind: str
    manifest: dict[str, Any]
    queue_name: str = ""
    pod_sets: tuple[PodSetSpec, ...] = ()
    workload_count: int = 1
    workloads_per: WorkloadsPer = WorkloadsPer.JOB
    template_path: str | None = None
    size_path: str = "spec"
    scales: bool = False
    handed_over: HandedOver = ({}, {})
    workload_priority_class: str = ""
    hinted_priority_class: str = ""
    pod_priority_class: str = ""
    maximum_execution_seconds: int | None = None
    never_preempt: bool = False
    workload_annotations: Mapping[str, str] = field(default_factory=dict)
    group: PodGroupMember | None = None
    """The group of a Pod that belongs to one: the group's pods are one workload."""
    uid: str = ""
    """The cluster's, in the manifest of a job that was found there."""
    document: int = 0

    def path_of(self, pod_set: str, field: str) -> str:
        """Return the path of a field of a pod set's template, for errors."""
        root = f"spec[{pod_set}].template" if self.template_path is None else self.template_path
        return f"{root}.{field}" if root else field

    @property
    def api_version(self) -> str:
        return str(self.manifest["apiVersion"])

    @property
    def api_group(self) -> str:
        """The API group, empty for the core group."""
        return self.api_version.rpartition("/")[0]


class Decided(TypedDict):
    """The fields of JobManifest that the kind's rules derive from a manifest."""

    queue_name: str
    pod_sets: tuple[PodSetSpec, ...]
    pod_priority_class: str
    workload_count: int
    workloads_per: WorkloadsPer
    template_path: str | None
    size_path: str
    scales: bool
    handed_over: HandedOver
    group: PodGroupMember | None
    workload_annotations: Mapping[str, str]


def workload_name(kind: str, group: str, name: str, uid: str, extra: str = "") -> str:
    """Return the name of a job's workload: its kind, its name and a hash, so that a recreated job gets a new name.

    `extra` distinguishes the workloads that one job has over time.
    """
    text = "\n".join((kind, group, name, uid, *((extra,) if extra else ())))
    digest = hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()[:_HASH_LENGTH]
    prefix = f"{kind.lower()}-{name}"[: _MAX_NAME - _HASH_LENGTH - 1]
    return f"{prefix}-{digest}"


def variant_name(parent: str, uid: str, flavor: str) -> str:
    """Return the name of a workload's variant: as in Kueue the parent's without its hash, the flavor, and a hash."""
    text = "\n".join(("Workload", "kueue.x-k8s.io", parent, uid, flavor))
    digest = hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()[:_HASH_LENGTH]
    base = parent.rpartition("-")[0] or parent
    return f"{f'{base}-variant-{flavor}'[: _MAX_NAME - _HASH_LENGTH - 1]}-{digest}"


def read_head(top: FieldReader) -> tuple[ObjectMeta, FieldReader]:
    """Read the metadata of a job, and the reader of its spec."""
    top.ignore("status")
    meta = read_metadata(top, namespaced=True)
    if keys.PREBUILT_WORKLOAD in meta.labels or keys.PREBUILT_WORKLOAD in meta.annotations:
        top.report.warn(
            top.at(f"metadata.labels[{keys.PREBUILT_WORKLOAD}]"), "is ignored: the job gets its own workload"
        )
    return meta, top.required_fields("spec")


def job_manifest(
    top: FieldReader, meta: ObjectMeta, kind: str, api_version: str, body: dict[str, Any], **decided: Unpack[Decided]
) -> JobManifest:
    """Return a job of any kind, with the labels and annotations that all kinds share."""
    decided["workload_annotations"] = {**_copied_annotations(top, meta), **decided["workload_annotations"]}
    return JobManifest(
        meta=meta,
        kind=kind,
        manifest={"apiVersion": api_version, "kind": kind, "metadata": write_metadata(meta), "spec": body},
        workload_priority_class=_checked_name(top, "labels", meta.labels, keys.PRIORITY_CLASS),
        hinted_priority_class=_hinted_priority_class(top, meta),
        maximum_execution_seconds=_maximum_execution_seconds(meta),
        never_preempt=read_never_preempt(top, meta),
        uid=_uid(top),
        document=top.report.document,
        **decided,
    )


def _uid(top: FieldReader) -> str:
    metadata = top.content.get("metadata")
    uid = metadata.get("uid") if isinstance(metadata, Mapping) else None
    return uid if isinstance(uid, str) else ""


def read_queue_name(top: FieldReader, meta: ObjectMeta) -> str:
    """Read the LocalQueue that the job's label or an annotation names. The kind's rules report an invalid label."""
    if keys.QUEUE_NAME in meta.labels or keys.QUEUE_NAME not in meta.annotations:
        return meta.labels.get(keys.QUEUE_NAME, "")
    place = top.at(f"metadata.annotations[{keys.QUEUE_NAME}]")
    top.report.warn(place, "Kueue reads the queue's name from a label; the annotation works here, but use the label")
    return _checked_name(top, "annotations", meta.annotations, keys.QUEUE_NAME)


def _hinted_priority_class(top: FieldReader, meta: ObjectMeta) -> str:
    if keys.PRIORITY_CLASS in meta.labels or keys.PRIORITY_CLASS not in meta.annotations:
        return ""
    place = top.at(f"metadata.annotations[{keys.PRIORITY_CLASS}]")
    top.report.warn(place, "Kueue reads the priority class from a label; the annotation works here, but use the label")
    return _checked_name(top, "annotations", meta.annotations, keys.PRIORITY_CLASS)


def _checked_name(top: FieldReader, where: str, values: Mapping[str, str], key: str) -> str:
    name = values.get(key, "")
    broken = dns_subdomain(name) if name else None
    if broken:
        top.report.error(top.at(f"metadata.{where}[{key}]"), name, broken)
        return ""
    return name


def _maximum_execution_seconds(meta: ObjectMeta) -> int | None:
    text = meta.labels.get(keys.MAXIMUM_EXECUTION_SECONDS, "")
    return int(text) if text.isascii() and text.isdigit() and 0 < int(text) <= INT32_MAX else None


def _copied_annotations(top: FieldReader, meta: ObjectMeta) -> dict[str, str]:
    check_nice(top, meta)
    check_start_after(top, meta)
    return {
        key: value
        for key, value in meta.annotations.items()
        if (key in keys.COPIED_TO_WORKLOAD or key.startswith(keys.PROVISIONING_PREFIX))
        and (key != keys.ELASTIC_JOB or value == "true")
    }
