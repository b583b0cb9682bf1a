"""The validating webhook's rules that all kinds of jobs share."""

from __future__ import annotations

from typing import Protocol

from clusters.jobs.framework.context import JobContext
from clusters.jobs.framework.errors import FieldErrors, forbidden, immutable, invalid
from clusters.jobs.framework.go_syntax import BadSyntax, parse_integer
from clusters.jobs.framework.identity import is_elastic, prebuilt_workload_of, priority_class_of, queue_name_of
from clusters.jobs.framework.manifest import JsonObject, annotations_of, labels_of, namespace_of
from clusters.jobs.framework.syntax import check_gate, check_subdomain
from queues.manifests import kueue_keys as keys


def label_path(key: str) -> str:
    return f"metadata.labels[{key}]"


def annotation_path(key: str) -> str:
    return f"metadata.annotations[{key}]"


class Validated(Protocol):
    """The part of a kind that the shared rules use."""

    @property
    def full_name(self) -> str: ...
    @property
    def elastic(self) -> bool: ...
    @property
    def takes_prebuilt_workload(self) -> bool: ...
    def is_suspended(self, job: JsonObject) -> bool: ...


def check_new_job(kind: Validated, job: JsonObject) -> FieldErrors:
    """Apply the rules for a job that is created."""
    return [
        *check_queue_name(job),
        *_check_prebuilt_workload(kind, job),
        *_check_maximum_execution_time(job),
        *check_elastic(kind, job),
        *check_new_gates(job),
    ]


def check_changed_job(kind: Validated, old: JsonObject, new: JsonObject, context: JobContext) -> FieldErrors:
    """Apply the rules for edits."""
    return [
        *_check_changed_queue(kind, old, new, context),
        *_check_changed_prebuilt_workload(kind, old, new),
        *_check_changed_time(kind, old, new),
        *check_changed_priority_class(old, new, suspended=kind.is_suspended(new)),
        *_check_changed_elastic(old, new),
        *check_changed_gates(old, new),
    ]


def check_queue_name(job: JsonObject) -> FieldErrors:
    return _check_label(job, keys.QUEUE_NAME)


def _check_label(job: JsonObject, key: str) -> FieldErrors:
    labels = labels_of(job)
    return check_subdomain(label_path(key), labels[key]) if key in labels else []


def check_annotation_or_label(job: JsonObject, key: str) -> FieldErrors:
    """Check a name from an annotation, or else from a label."""
    annotation = annotations_of(job).get(key)
    return check_subdomain(annotation_path(key), annotation) if annotation else _check_label(job, key)


def annotation_or_label_path(job: JsonObject, key: str) -> str:
    return annotation_path(key) if annotations_of(job).get(key) else label_path(key)


def _check_prebuilt_workload(kind: Validated, job: JsonObject) -> FieldErrors:
    errors = check_annotation_or_label(job, keys.PREBUILT_WORKLOAD)
    if prebuilt_workload_of(job) and not kind.takes_prebuilt_workload:
        path = annotation_or_label_path(job, keys.PREBUILT_WORKLOAD)
        errors.append(forbidden(path, f'Is not supported for "{kind.full_name}"'))
    return errors


def _check_maximum_execution_time(job: JsonObject) -> FieldErrors:
    text = labels_of(job).get(keys.MAXIMUM_EXECUTION_SECONDS)
    if text is None:
        return []
    path = label_path(keys.MAXIMUM_EXECUTION_SECONDS)
    try:
        seconds = parse_integer(text)
    except BadSyntax as mistake:
        return [invalid(path, text, str(mistake))]
    return [] if seconds > 0 else [invalid(path, seconds, "should be greater than 0")]


def check_elastic(kind: Validated, job: JsonObject) -> FieldErrors:
    if not is_elastic(job) or kind.elastic:
        return []
    return [forbidden(annotation_path(keys.ELASTIC_JOB), f'elastic job is not supported for "{kind.full_name}"')]


def check_new_gates(job: JsonObject) -> FieldErrors:
    """Check the admission gates: names without repetition."""
    path, text = annotation_path(keys.ADMISSION_GATED_BY), annotations_of(job).get(keys.ADMISSION_GATED_BY, "")
    if not text:
        return []
    errors: FieldErrors = []
    seen: set[str] = set()
    for gate in gates_of(text):
        if not gate:
            errors.append(invalid(path, text, "cannot contain empty gate names"))
        elif gate in seen:
            errors.append(invalid(path, text, f"duplicate gate name: {gate}"))
        else:
            seen.add(gate)
            errors += check_gate(path, gate)
    return errors


def gates_of(text: str) -> list[str]:
    return [gate.strip() for gate in text.split(",")] if text.strip() else []


def check_changed_gates(old: JsonObject, new: JsonObject) -> FieldErrors:
    """Check that gates are only removed."""
    path = annotation_path(keys.ADMISSION_GATED_BY)
    before = annotations_of(old).get(keys.ADMISSION_GATED_BY, "")
    after = annotations_of(new).get(keys.ADMISSION_GATED_BY, "")
    errors: FieldErrors = []
    if after and not before:
        errors.append(forbidden(path, "cannot add admission gate after creation"))
    elif after and not set(gates_of(after)) <= set(gates_of(before)):
        errors.append(forbidden(path, "can only remove gates, not add new ones"))
    return [*errors, *check_new_gates(new)]


def _check_changed_queue(kind: Validated, old: JsonObject, new: JsonObject, context: JobContext) -> FieldErrors:
    path, before, after = label_path(keys.QUEUE_NAME), queue_name_of(old), queue_name_of(new)
    errors = [] if kind.is_suspended(new) else immutable(path, before, after)
    if before and not after and context.has_default_queue(namespace_of(old)):
        errors.append(invalid(path, "", "queue-name must not be empty in namespace with default queue"))
    return errors


def _check_changed_prebuilt_workload(kind: Validated, old: JsonObject, new: JsonObject) -> FieldErrors:
    if kind.is_suspended(new) or is_elastic(old):
        return _check_prebuilt_workload(kind, new)
    path = annotation_or_label_path(new, keys.PREBUILT_WORKLOAD)
    return immutable(path, prebuilt_workload_of(old), prebuilt_workload_of(new))


def _check_changed_time(kind: Validated, old: JsonObject, new: JsonObject) -> FieldErrors:
    if kind.is_suspended(new) and kind.is_suspended(old):
        return []
    key = keys.MAXIMUM_EXECUTION_SECONDS
    return immutable(label_path(key), labels_of(old).get(key), labels_of(new).get(key))


def check_changed_priority_class(old: JsonObject, new: JsonObject, *, suspended: bool) -> FieldErrors:
    """Check that a class is changed, or added while the job is suspended, but never removed."""
    path, before, after = label_path(keys.PRIORITY_CLASS), priority_class_of(old), priority_class_of(new)
    if after and not before and not suspended:
        return [invalid(path, after, "WorkloadPriorityClass cannot be added to a non-suspended workload")]
    if before and not after:
        return [invalid(path, after, "WorkloadPriorityClass cannot be removed from a workload")]
    return []


def _check_changed_elastic(old: JsonObject, new: JsonObject) -> FieldErrors:
    if is_elastic(old) == is_elastic(new):
        return []
    return [invalid(annotation_path(keys.ELASTIC_JOB), is_elastic(new), "field is immutable")]
