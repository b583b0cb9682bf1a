"""Jobs that become workloads: batch/v1 Job, v1 Pod and apps/v1 Deployment."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from queues.manifests import kueue_keys as keys
from queues.manifests.bounds import MAX_REPLICAS
from queues.manifests.pod_group import PodGroupMember, read_pod_group
from queues.manifests.pod_rules import check_pod_rules
from queues.manifests.pod_template import PodTemplateSpec, read_pod_template
from queues.manifests.protection import read_never_preempt
from queues.manifests.topology_request import read_topology_annotations
from queues.manifests.workload import PodSetSpec
from scheduling.manifest import Fields, MistakeReason, ObjectMeta, read_metadata, write_metadata
from scheduling.manifest.fields import INT32_MAX
from scheduling.manifest.syntax import dns_subdomain

MAIN: Final = "main"
_HASH_LENGTH: Final = 5
_MAX_NAME: Final = 253
_JOB_SPEC_FIELDS: Final = (
    "activeDeadlineSeconds", "backoffLimit", "backoffLimitPerIndex", "managedBy", "manualSelector", "maxFailedIndexes",
    "podFailurePolicy", "podReplacementPolicy", "scheduling", "selector", "successPolicy", "ttlSecondsAfterFinished",
)  # fmt: skip
_DEPLOYMENT_SPEC_FIELDS: Final = (
    "minReadySeconds", "paused", "progressDeadlineSeconds", "revisionHistoryLimit", "strategy",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class JobManifest:
    """A job as submitted, and what its workloads are made of.

    Each of `workload_count` workloads has `pod_sets` (a Deployment has one workload per replica, others have one). The
    three priority classes are those of Kueue's order: the label's, one that an annotation hints at, the pods' own.
    """

    meta: ObjectMeta
    kind: str
    manifest: dict[str, Any]
    queue_name: str = ""
    pod_sets: tuple[PodSetSpec, ...] = ()
    workload_count: int = 1
    workload_priority_class: str = ""
    hinted_priority_class: str = ""
    pod_priority_class: str = ""
    maximum_execution_seconds: int | None = None
    never_preempt: bool = False
    workload_annotations: Mapping[str, str] = field(default_factory=dict)
    group: PodGroupMember | None = None
    """Of a Pod that belongs to a group: the group's pods are one workload."""
    uid: str = ""
    """The cluster's, in the manifest of a job that was found there."""
    document: int = 0

    @property
    def api_version(self) -> str:
        return str(self.manifest["apiVersion"])

    @property
    def api_group(self) -> str:
        """The API group, empty for the core group."""
        return self.api_version.rpartition("/")[0]


def workload_name(kind: str, group: str, name: str, uid: str, extra: str = "") -> str:
    """The name of a job's workload: its kind, its name and a hash, so that a job made anew gets a new one.

    `extra` tells apart the workloads that one job has one after the other.
    """
    text = "\n".join((kind, group, name, uid, *((extra,) if extra else ())))
    digest = hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()[:_HASH_LENGTH]
    prefix = f"{kind.lower()}-{name}"[: _MAX_NAME - _HASH_LENGTH - 1]
    return f"{prefix}-{digest}"


def read_job(top: Fields, version: str) -> JobManifest:
    """Read a batch/v1 Job: one pod set `main` of min(parallelism, completions) pods."""
    meta, spec = read_head(top)
    parallelism = spec.integer("parallelism", 1)
    completions = spec.optional_integer("completions")
    spec.ignore("completionMode", *_JOB_SPEC_FIELDS)
    spec.boolean("suspend")
    count = parallelism if completions is None else min(parallelism, completions)
    template, queue = _read_template(top, meta, spec, ("Never", "OnFailure"))
    spec.close()
    if template.manifest and not template.manifest["spec"].get("restartPolicy"):
        template = _with_restart_policy(spec, template)
    least = _minimum_parallelism(top, meta, parallelism)
    topology = _topology(spec, template, keys.JOB_COMPLETION_INDEX)
    if topology and meta.annotations.get(keys.ELASTIC_JOB) == "true":
        _refuse_elastic_topology(spec, template)
    pod_set = PodSetSpec(MAIN, count, template.manifest, template.requests, least, topology)
    body = {**spec.content, "template": dict(template.manifest)}
    return job_manifest(top, meta, "Job", "batch/v1", body, queue, (pod_set,), template.priority_class_name)


def read_deployment(top: Fields, version: str) -> JobManifest:
    """Read an apps/v1 Deployment: each of its replicas is a workload of one pod."""
    meta, spec = read_head(top)
    replicas = spec.integer("replicas", 1, maximum=MAX_REPLICAS)
    spec.ignore(*_DEPLOYMENT_SPEC_FIELDS)
    selector = spec.required_fields("selector")
    wanted = selector.text_map("matchLabels")
    selector.ignore("matchExpressions")
    selector.close()
    template, queue = _read_template(top, meta, spec, ("Always",))
    spec.close()
    labels = (template.manifest.get("metadata") or {}).get("labels") or {}
    if template.manifest and any(labels.get(key) != value for key, value in wanted.items()):
        spec.error("selector", "must match the template's labels", "Give the template the selector's labels.")
    pod_set = PodSetSpec(MAIN, 1, template.manifest, template.requests, None, _topology(spec, template, ""))
    body = {**spec.content, "template": dict(template.manifest)}
    own_class = template.priority_class_name
    return job_manifest(top, meta, "Deployment", "apps/v1", body, queue, (pod_set,), own_class, replicas)


def read_pod(top: Fields, version: str) -> JobManifest:
    """Read a v1 Pod: a workload of one pod, or a member of a group of pods that are one workload together."""
    meta, spec = read_head(top)
    if meta.labels.get(keys.MANAGED, "true") != "true":
        place, rule = top.at(f"metadata.labels[{keys.MANAGED}]"), 'may only be "true"'
        top.report.error(place, meta.labels[keys.MANAGED], rule, "Remove it.", MistakeReason.FORBIDDEN)
    queue = _queue_name(top, meta)
    content = {"metadata": {"labels": dict(meta.labels), "annotations": dict(meta.annotations)}, "spec": spec.content}
    pod = Fields(top.report, "", content)
    template = read_pod_template(pod, runnable=bool(queue))
    check_pod_rules(pod, ("Always", "Never", "OnFailure"))
    group = read_pod_group(top, meta, content)
    place, index = top.at("metadata.annotations"), keys.POD_GROUP_POD_INDEX if group else ""
    topology = read_topology_annotations(top.report, place, meta.annotations, index)
    pod_set = PodSetSpec(group.role if group else MAIN, 1, template.manifest, template.requests, None, topology)
    job = job_manifest(top, meta, "Pod", "v1", dict(spec.content), queue, (pod_set,), template.priority_class_name)
    return replace(job, group=group)


def read_head(top: Fields) -> tuple[ObjectMeta, Fields]:
    """The metadata of a job, and its spec to be read on."""
    top.ignore("status")
    meta = read_metadata(top, namespaced=True)
    if keys.PREBUILT_WORKLOAD in meta.labels or keys.PREBUILT_WORKLOAD in meta.annotations:
        top.report.warn(
            top.at(f"metadata.labels[{keys.PREBUILT_WORKLOAD}]"), "is not used: the job gets a workload of its own"
        )
    return meta, top.required_fields("spec")


def _read_template(
    top: Fields, meta: ObjectMeta, spec: Fields, restart_policies: tuple[str, ...]
) -> tuple[PodTemplateSpec, str]:
    queue = _queue_name(top, meta)
    template = spec.required_fields("template")
    check_pod_rules(template, restart_policies)
    return read_pod_template(template, runnable=bool(queue)), queue


def job_manifest(
    top: Fields,
    meta: ObjectMeta,
    kind: str,
    api_version: str,
    body: dict[str, Any],
    queue: str,
    pod_sets: tuple[PodSetSpec, ...],
    pod_priority_class: str,
    workload_count: int = 1,
) -> JobManifest:
    """A job of any kind, with what all kinds say by labels and annotations."""
    return JobManifest(
        meta=meta,
        kind=kind,
        manifest={"apiVersion": api_version, "kind": kind, "metadata": write_metadata(meta), "spec": body},
        queue_name=queue,
        pod_sets=pod_sets,
        workload_count=workload_count,
        workload_priority_class=_checked_name(top, "labels", meta.labels, keys.PRIORITY_CLASS),
        hinted_priority_class=_hinted_priority_class(top, meta),
        pod_priority_class=pod_priority_class,
        maximum_execution_seconds=_maximum_execution_seconds(top, meta),
        never_preempt=read_never_preempt(top, meta),
        workload_annotations=_copied_annotations(meta),
        uid=_uid(top),
        document=top.report.document,
    )


def _uid(top: Fields) -> str:
    metadata = top.content.get("metadata")
    uid = metadata.get("uid") if isinstance(metadata, Mapping) else None
    return uid if isinstance(uid, str) else ""


def _queue_name(top: Fields, meta: ObjectMeta) -> str:
    label = _checked_name(top, "labels", meta.labels, keys.QUEUE_NAME)
    if label or keys.QUEUE_NAME not in meta.annotations:
        return label
    place = top.at(f"metadata.annotations[{keys.QUEUE_NAME}]")
    top.report.warn(place, "Kueue reads the queue's name from a label: it is taken, but make it a label")
    return _checked_name(top, "annotations", meta.annotations, keys.QUEUE_NAME)


def _hinted_priority_class(top: Fields, meta: ObjectMeta) -> str:
    if keys.PRIORITY_CLASS in meta.labels or keys.PRIORITY_CLASS not in meta.annotations:
        return ""
    place = top.at(f"metadata.annotations[{keys.PRIORITY_CLASS}]")
    top.report.warn(place, "Kueue reads the priority class from a label: it is taken, but make it a label")
    return _checked_name(top, "annotations", meta.annotations, keys.PRIORITY_CLASS)


def _checked_name(top: Fields, where: str, values: Mapping[str, str], key: str) -> str:
    name = values.get(key, "")
    broken = dns_subdomain(name) if name else None
    if broken:
        top.report.error(top.at(f"metadata.{where}[{key}]"), name, broken)
        return ""
    return name


def _maximum_execution_seconds(top: Fields, meta: ObjectMeta) -> int | None:
    text = meta.labels.get(keys.MAXIMUM_EXECUTION_SECONDS)
    if text is None:
        return None
    if text.isascii() and text.isdigit() and 0 < int(text) <= INT32_MAX:
        return int(text)
    place = top.at(f"metadata.labels[{keys.MAXIMUM_EXECUTION_SECONDS}]")
    top.report.error(place, text, "must be a whole number of seconds of at least 1, in quotes")
    return None


def _minimum_parallelism(top: Fields, meta: ObjectMeta, parallelism: int) -> int | None:
    text = meta.annotations.get(keys.MINIMUM_PARALLELISM)
    if text is None:
        return None
    if meta.annotations.get(keys.ELASTIC_JOB) == "true":
        place = top.at(f"metadata.annotations[{keys.MINIMUM_PARALLELISM}]")
        rule = "can't be used in an elastic job"
        top.report.error(place, text, rule, f"Remove it, or {keys.ELASTIC_JOB}.", MistakeReason.FORBIDDEN)
        return None
    if text.isascii() and text.isdigit() and 0 < int(text) < parallelism:
        return int(text)
    place = top.at(f"metadata.annotations[{keys.MINIMUM_PARALLELISM}]")
    top.report.error(place, text, f"must be between 1 and parallelism - 1 ({parallelism - 1}), in quotes")
    return None


def _copied_annotations(meta: ObjectMeta) -> dict[str, str]:
    return {
        key: value
        for key, value in meta.annotations.items()
        if key in keys.COPIED_TO_WORKLOAD or key.startswith(keys.PROVISIONING_PREFIX)
    }


def _topology(spec: Fields, template: PodTemplateSpec, pod_index_label: str) -> dict[str, Any]:
    path = f"{spec.at('template')}.metadata.annotations"
    return read_topology_annotations(spec.report, path, template.annotations, pod_index_label)


def _refuse_elastic_topology(spec: Fields, template: PodTemplateSpec) -> None:
    """Kueue's gate ElasticJobsViaWorkloadSlicesWithTAS is off by default, and here."""
    for annotation in keys.TOPOLOGY:
        if annotation in template.annotations:
            spec.report.error(
                f"{spec.at('template')}.metadata.annotations[{annotation}]",
                template.annotations[annotation],
                "can't be used in an elastic job",
                f"Remove it, or {keys.ELASTIC_JOB}.",
                MistakeReason.FORBIDDEN,
            )


def _with_restart_policy(spec: Fields, template: PodTemplateSpec) -> PodTemplateSpec:
    path = f"{spec.at('template')}.spec.restartPolicy"
    spec.report.warn(path, "is missing, and Kubernetes asks for Never or OnFailure in a Job: Never is taken")
    pod_spec = {**template.manifest["spec"], "restartPolicy": "Never"}
    return PodTemplateSpec({**template.manifest, "spec": pod_spec}, template.requests)
