"""Converts manifests of jobs of every kind into the stored values (pure).

A job is invalid if its kind's webhook would refuse it or, for pods that the API server reads itself, if the API server
would; its pod sets are those of the kind.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from clusters.jobs.framework.context import IntegrationSettings, JobContext
from clusters.jobs.framework.errors import ErrorType, JobError
from clusters.jobs.framework.identity import is_elastic
from clusters.jobs.framework.job_kind import JobKind, Stopping
from clusters.jobs.framework.manifest import JsonObject, annotations_of, copied, dig, labels_of, set_label
from clusters.jobs.framework.store import Objects, ObjectStore
from clusters.jobs.registry import KINDS
from queues.manifests import kueue_keys as keys
from queues.manifests.bounds import MAX_REPLICAS
from queues.manifests.job import JobManifest, WorkloadsPer, job_manifest, read_head, read_queue_name
from queues.manifests.job_workloads import JobReader
from queues.manifests.pod_group import PodGroupMember, read_pod_group
from queues.manifests.pod_rules import check_pod_rules
from queues.manifests.pod_template import read_pod_template
from queues.manifests.workload import HandedOver, PodSetSpec
from scheduling.manifest import FieldReader, MistakeReason, write_metadata
from scheduling.manifest.field_reader import INT32_MAX

_ALWAYS: Final = "Always"
_REASONS: Final = {
    ErrorType.INVALID: MistakeReason.INVALID,
    ErrorType.FORBIDDEN: MistakeReason.FORBIDDEN,
    ErrorType.REQUIRED: MistakeReason.REQUIRED,
    ErrorType.DUPLICATE: MistakeReason.DUPLICATE,
    ErrorType.TOO_MANY: MistakeReason.TOO_MANY,
    ErrorType.TOO_LONG: MistakeReason.TOO_LONG,
}
_REMEDIES: Final = {
    ErrorType.INVALID: "Correct the value.",
    ErrorType.FORBIDDEN: "Remove it.",
    ErrorType.REQUIRED: "Add it.",
    ErrorType.DUPLICATE: "Name it once.",
    ErrorType.TOO_MANY: "Leave some out.",
    ErrorType.TOO_LONG: "Shorten it.",
}


def context_of(objects: Objects) -> JobContext:
    """Return the context of the rules while a manifest is read: objects that it refers to may be created later."""
    return JobContext(IntegrationSettings(), objects, KINDS)


NO_CLUSTER: Final = context_of(ObjectStore())


def reader_of(kind: JobKind) -> JobReader:
    """Return the reader of a kind's manifests; `objects` are the objects of the cluster that it may refer to."""

    def read(top: FieldReader, objects: Objects | None, *, found_in_cluster: bool = False) -> JobManifest:
        context = context_of(objects) if objects else NO_CLUSTER
        return _Reading(kind, top, context, found_in_cluster=found_in_cluster).read()

    return read


class _Reading:
    """A manifest that is being read. Every mistake is noted in its report."""

    def __init__(self, kind: JobKind, top: FieldReader, context: JobContext, *, found_in_cluster: bool) -> None:
        self._kind = kind
        self._top = top
        self._context = context
        self._found_in_cluster = found_in_cluster
        self._mistakes = len(top.report.errors)

    def read(self) -> JobManifest:
        kind, top = self._kind, self._top
        meta, spec = read_head(top)
        self._check_fields(spec)
        queue = read_queue_name(top, meta)
        content: JsonObject = {
            "apiVersion": kind.api_version,
            "kind": kind.kind,
            "metadata": write_metadata(meta),
            "spec": copied(dict(spec.content)),
        }
        body: JsonObject = copied(content["spec"])
        if queue:
            set_label(content, keys.QUEUE_NAME, queue)
        pod_sets = self._pod_sets(content, runnable=bool(queue))
        group = self._group(content) if pod_sets and kind.stopping is Stopping.DELETE else None
        if group is not None:
            pod_sets = tuple(_named(pod_set, group.role) for pod_set in pod_sets)
        own_class = kind.priority_class(content) if pod_sets else None
        noted = {keys.IS_GROUP_WORKLOAD: "true", keys.JOB_OWNER_KIND: kind.full_name} if kind.groups_pods else {}
        first = next((name for each in pod_sets if (name := _class_of(each))), "")
        return job_manifest(
            top,
            meta,
            kind.kind,
            kind.api_version,
            body,
            queue_name=queue,
            pod_sets=pod_sets,
            pod_priority_class=first if own_class is None else own_class,
            workload_count=kind.workload_count(content) if pod_sets else 0,
            workloads_per=kind.workloads_per,
            template_path=kind.pod_template_path,
            size_path=kind.size_path,
            scales=kind.elastic and is_elastic(content),
            handed_over=_metadata_of(kind.hands_over(content)) if pod_sets else ({}, {}),
            group=group,
            workload_annotations=noted,
        )

    def _failed(self) -> bool:
        return len(self._top.report.errors) > self._mistakes

    def _check_fields(self, spec: FieldReader) -> None:
        kind = self._kind
        if not kind.spec_fields:
            spec.ignore(*spec.content)
            return
        for name in kind.spec_integers:
            spec.optional_integer(name, maximum=INT32_MAX if kind.workloads_per is WorkloadsPer.JOB else MAX_REPLICAS)
        spec.ignore(*kind.spec_fields)
        if "suspend" in kind.spec_fields:
            spec.boolean("suspend")
        if kind.pod_template_path == "spec.template":
            spec.required_fields("template")
        spec.close()

    def _pod_sets(self, content: JsonObject, *, runnable: bool) -> tuple[PodSetSpec, ...]:
        """Return the pod sets, or none where something is wrong: all of it is reported."""
        kind, top = self._kind, self._top
        if self._failed():
            return ()
        self._check_templates(content)
        try:
            if not self._found_in_cluster:
                kind.fill_in(content)
            kind.complete(content, self._context)
            for error in [*kind.check_schema(content), *kind.check_create(copied(content), self._context)]:
                rule, remedy = error.detail or "Duplicate value", _REMEDIES[error.type]
                top.report.error(top.at(error.field), error.value or None, rule, remedy, _REASONS[error.type])
            found = kind.pod_sets(copied(content), self._context)
            paths = self._paths(copied(content), len(found))
            own = dict(kind.templates(copied(content)))
        except JobError as failure:
            if not self._failed():
                top.report.error(top.at("spec"), None, str(failure), kind.remedy)
            return ()
        except (AttributeError, KeyError, TypeError, ValueError) as mistake:
            self._locate_in_template(content)
            if self._failed():
                return ()
            rule = f"is not the spec of a {kind.kind}: {type(mistake).__name__}: {mistake}"
            remedy = f"Compare it with the CRD of {kind.plural}."
            top.report.error(top.at("spec"), None, rule, remedy, MistakeReason.WRONG_TYPE)
            return ()
        if kind.workload_count(content) > MAX_REPLICAS:
            top.report.error(top.at(kind.size_path), kind.workload_count(content), f"must be at most {MAX_REPLICAS}")
            return ()
        if not found and kind.has_workload:
            top.report.error(top.at("spec"), None, "has no pods", "Add at least one template.", MistakeReason.REQUIRED)
        return tuple(
            self._pod_set(path, pod_set, own.get(pod_set["name"]), runnable=runnable)
            for path, pod_set in zip(paths, found, strict=True)
        )

    def _check_templates(self, content: JsonObject) -> None:
        """Check the parts of pods that the API server validates itself."""
        kind, path = self._kind, self._kind.pod_template_path
        if not kind.restart_policies or path is None:
            return
        template = dig(content, *path.split(".")) if path else content
        fields = FieldReader(self._top.report, self._top.at(path) if path else self._top.path, template or {})
        check_pod_rules(fields, kind.restart_policies)
        if _ALWAYS not in kind.restart_policies and not dig(template or {}, "spec", "restartPolicy"):
            default = kind.restart_policies[0]
            text = f"is missing; Kubernetes requires {' or '.join(kind.restart_policies)}: {default} is used"
            self._top.report.warn(f"{fields.at('spec')}.restartPolicy", text)

    def _locate_in_template(self, content: JsonObject) -> None:
        """Report the field of the pod template that is of another type than it has in Kubernetes."""
        path = self._kind.pod_template_path
        template = dig(content, *path.split(".")) if path else content
        if path is not None and isinstance(template, Mapping):
            parts = {part: template[part] for part in ("metadata", "spec") if part in template}
            read_pod_template(FieldReader(self._top.report, self._top.at(path) if path else self._top.path, parts))

    def _paths(self, content: JsonObject, count: int) -> Sequence[str]:
        if self._kind.pod_template_path is not None:
            return [self._kind.pod_template_path] * count
        paths = [site.path.removesuffix(".metadata") for site in self._kind.run_sites(content, self._context)]
        return paths if len(paths) == count and all(paths) else ["spec"] * count

    def _pod_set(self, path: str, pod_set: JsonObject, own: JsonObject | None, *, runnable: bool) -> PodSetSpec:
        template = _with_own_metadata(pod_set["template"], own)
        place = self._top.at(path) if path else self._top.path
        fields = FieldReader(self._top.report, place, template)
        # As in Kueue, the workload of a job in the cluster whose pods will be refused waits as Misconfigured.
        read = read_pod_template(fields, runnable=runnable, limits_hold=not self._found_in_cluster)
        return PodSetSpec(
            pod_set["name"],
            pod_set["count"],
            read.manifest,
            read.requests,
            pod_set.get("minCount"),
            pod_set.get("topologyRequest") or {},
        )

    def _group(self, content: JsonObject) -> PodGroupMember | None:
        """Return the group of a pod that is its own job."""
        return None if self._failed() else read_pod_group(self._top, content)


def _with_own_metadata(template: JsonObject, own: JsonObject | None) -> JsonObject:
    """Return a template with labels and annotations also where Kueue keeps the spec alone: annotations choose
    devices."""
    metadata: Any = template.get("metadata") or (own or {}).get("metadata") or {}
    if not isinstance(metadata, Mapping):
        return {**template, "metadata": metadata}
    kept = {field: metadata[field] for field in ("labels", "annotations") if metadata.get(field)}
    return {**template, "metadata": kept} if kept else template


def _metadata_of(obj: JsonObject) -> HandedOver:
    return dict(labels_of(obj)), dict(annotations_of(obj))


def _named(pod_set: PodSetSpec, name: str) -> PodSetSpec:
    return PodSetSpec(
        name, pod_set.count, pod_set.template, pod_set.requests, pod_set.min_count, pod_set.topology_request
    )


def _class_of(pod_set: PodSetSpec) -> str:
    return str(dig(pod_set.template, "spec", "priorityClassName") or "")
