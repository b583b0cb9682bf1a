"""The labels, annotations and the owner of a job."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from clusters.jobs.framework.context import JobContext
from clusters.jobs.framework.errors import JobError
from clusters.jobs.framework.go_syntax import BadSyntax, parse_int32
from clusters.jobs.framework.manifest import (
    JsonObject,
    annotations_of,
    controller_of,
    is_being_deleted,
    labels_of,
    namespace_of,
    uid_of,
)
from queues.manifests import kueue_keys as keys

_MAX_OWNERS: Final = 10


def queue_name_of(obj: Mapping[str, Any]) -> str:
    return labels_of(obj).get(keys.QUEUE_NAME, "")


def priority_class_of(obj: Mapping[str, Any]) -> str:
    return labels_of(obj).get(keys.PRIORITY_CLASS, "")


def prebuilt_workload_of(obj: Mapping[str, Any]) -> str:
    """Return the workload that the job wants to use; the annotation takes precedence over the label."""
    return annotations_of(obj).get(keys.PREBUILT_WORKLOAD) or labels_of(obj).get(keys.PREBUILT_WORKLOAD, "")


def is_elastic(obj: Mapping[str, Any]) -> bool:
    return annotations_of(obj).get(keys.ELASTIC_JOB) == "true"


def maximum_execution_seconds_of(obj: Mapping[str, Any]) -> int | None:
    """Return the limit; None without a number above 0."""
    try:
        seconds = parse_int32(labels_of(obj).get(keys.MAXIMUM_EXECUTION_SECONDS, ""))
    except BadSyntax:
        return None
    return seconds if seconds > 0 else None


def managed_ancestor(job: JsonObject, context: JobContext) -> JsonObject | None:
    """Return the topmost managed owner: the job runs when that owner does.

    Raises JobError if an owner is missing, the owners form a circle, or there are too many.
    """
    seen: set[str] = set()
    here, found = job, None
    while True:
        if uid_of(here) in seen:
            raise JobError("cyclic ownership")
        seen.add(uid_of(here))
        reference = controller_of(here)
        if reference is None or not _is_known(reference, context):
            return found
        owner = context.objects.get(context.name_of_kind(reference), namespace_of(job), reference["name"])
        if owner is None:
            raise JobError(f'workload owner not found\n{reference["kind"]} "{reference["name"]}" not found')
        if uid_of(owner) != reference.get("uid"):
            return found
        if context.is_enabled(reference) and _may_be_ancestor(owner, context):
            found = owner
        here = owner
        if len(seen) > _MAX_OWNERS:
            raise JobError("managed owner chain limit reached")


def _is_known(reference: Mapping[str, Any], context: JobContext) -> bool:
    kind = (reference.get("apiVersion", ""), reference.get("kind", ""))
    return kind in context.kinds or kind in context.external or kind == ("apps/v1", "ReplicaSet")


def _may_be_ancestor(owner: JsonObject, context: JobContext) -> bool:
    return context.settings.manage_jobs_without_queue_name or bool(queue_name_of(owner))


def is_queued(job: JsonObject, context: JobContext) -> bool:
    """Return whether the job names a queue, or waits for a workload of its own without one. Raises JobError."""
    if queue_name_of(job):
        return True
    return context.settings.manage_jobs_without_queue_name and is_managed(job, context)


def is_managed(job: JsonObject, context: JobContext) -> bool:
    """Return whether the job waits for a workload of its own. Raises JobError."""
    if is_being_deleted(job) or managed_ancestor(job, context) is not None:
        return False
    if queue_name_of(job):
        return True
    return context.settings.manage_jobs_without_queue_name and context.namespace_is_managed(namespace_of(job))
