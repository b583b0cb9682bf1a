"""The mutating webhook: fills in fields when a job is created."""

from __future__ import annotations

from typing import Final

from clusters.jobs.framework.context import MULTIKUEUE_CONTROLLER, JobContext
from clusters.jobs.framework.identity import priority_class_of, queue_name_of
from clusters.jobs.framework.manifest import JsonObject, controller_of, labels_of, namespace_of, set_label
from queues.manifests import kueue_keys as keys

DEFAULT_NAME: Final = "default"
"""The name of the LocalQueue and of the WorkloadPriorityClass that jobs without one get."""


def default_queue(job: JsonObject, context: JobContext) -> None:
    """Set the namespace's default queue, if there is one."""
    namespace = namespace_of(job)
    if not context.has_default_queue(namespace) or queue_name_of(job) or _owner_is_managed(job, context):
        return
    if context.namespace_is_managed(namespace):
        set_label(job, keys.QUEUE_NAME, DEFAULT_NAME)


def default_priority_class(job: JsonObject, context: JobContext) -> None:
    """Set the WorkloadPriorityClass `default`, if it exists and Kueue's gate for it is on."""
    if not context.settings.defaults_priority_class or priority_class_of(job) or _owner_is_managed(job, context):
        return
    if context.objects.get("WorkloadPriorityClass", "", DEFAULT_NAME) is not None:
        set_label(job, keys.PRIORITY_CLASS, DEFAULT_NAME)


def runs_in_other_clusters(job: JsonObject, context: JobContext) -> bool:
    """Return whether the job's queue sends its jobs to other clusters (MultiKueue)."""
    label = labels_of(job).get(keys.QUEUE_NAME)
    queue = context.cluster_queue_of(namespace_of(job), label) if label is not None else None
    if queue is None:
        return False
    for name in admission_check_names(queue):
        check = context.objects.get("AdmissionCheck", "", name)
        if check is not None and check["spec"].get("controllerName") == MULTIKUEUE_CONTROLLER:
            return True
    return False


def admission_check_names(cluster_queue: JsonObject) -> list[str]:
    spec = cluster_queue.get("spec") or {}
    rules = (spec.get("admissionChecksStrategy") or {}).get("admissionChecks") or ()
    return [*(spec.get("admissionChecks") or ()), *(rule["name"] for rule in rules)]


def _owner_is_managed(job: JsonObject, context: JobContext) -> bool:
    owner = controller_of(job)
    return owner is not None and context.is_enabled(owner)
