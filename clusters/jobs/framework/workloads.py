"""The workload of a job: its name, its construction, its priority."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from clusters.jobs.framework.conditions import has_quota
from clusters.jobs.framework.context import JobContext
from clusters.jobs.framework.errors import JobError
from clusters.jobs.framework.identity import maximum_execution_seconds_of, priority_class_of, queue_name_of
from clusters.jobs.framework.manifest import (
    JsonObject,
    annotations_of,
    dig,
    group_of,
    labels_of,
    mapping_at,
    name_of,
    namespace_of,
    uid_of,
)
from clusters.jobs.framework.syntax import is_label_value
from queues.manifests import kueue_keys as keys
from queues.manifests.job import workload_name
from queues.manifests.start_order import jobs_before

_WORKLOAD_GROUP = "kueue.x-k8s.io"
_POD_GROUP = "scheduling.k8s.io"


def name_for(owner: Mapping[str, Any], extra: str = "", name: str = "") -> str:
    """Return the name of an owner's workload; `name` replaces the owner's name if the owner has several workloads."""
    group = group_of(owner["apiVersion"])
    return workload_name(owner["kind"], group, name or name_of(owner), uid_of(owner), extra)


def name_for_set(owner: Mapping[str, Any], name: str = "") -> str:
    """Return the name of a workload of a StatefulSet or LeaderWorkerSet. In a worker cluster of MultiKueue, it is the
    name from the manager."""
    origin = annotations_of(owner).get(keys.MULTIKUEUE_ORIGIN_UID)
    if origin is None or keys.MULTIKUEUE_ORIGIN not in labels_of(owner):
        return name_for(owner, name=name)
    return workload_name(owner["kind"], group_of(owner["apiVersion"]), name or name_of(owner), origin)


def new_workload(
    name: str, owner: JsonObject, pod_sets: Sequence[JsonObject], label_keys: Iterable[str] = ()
) -> JsonObject:
    """Build a workload with the fields copied from its owner, without owner references."""
    annotations = {
        key: value for key, value in annotations_of(owner).items() if key.startswith(keys.PROVISIONING_PREFIX)
    }
    labels = labels_of(owner)
    seconds = maximum_execution_seconds_of(owner)
    return {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "Workload",
        "metadata": {
            "name": name,
            "namespace": namespace_of(owner),
            "labels": {key: labels[key] for key in label_keys if key in labels},
            "annotations": annotations,
            "finalizers": [keys.RESOURCE_IN_USE],
        },
        "spec": {
            "queueName": queue_name_of(owner),
            "podSets": list(pod_sets),
            **({} if seconds is None else {"maximumExecutionTimeSeconds": seconds}),
        },
        "status": {},
    }


def mark_with_uid(workload: JsonObject, owner: JsonObject) -> None:
    """Set the label that identifies the workloads of a job, if the owner's uid is a valid value of a label."""
    if is_label_value(uid_of(owner)):
        mapping_at(workload, "metadata", "labels")[keys.JOB_UID] = uid_of(owner)


def follow_gates(workload: JsonObject, owner: JsonObject) -> bool:
    """Copy the admission gates of the owner, and remove the jobs that it no longer starts after; return whether the
    workload changed."""
    there = annotations_of(workload)
    gates = {keys.ADMISSION_GATED_BY: annotations_of(owner).get(keys.ADMISSION_GATED_BY, "")}
    before, named = jobs_before(there), jobs_before(annotations_of(owner))
    left = [name for name in before if name in named]
    if len(left) < len(before):
        gates[keys.START_AFTER] = ",".join(left)
    changed = {key: text for key, text in gates.items() if there.get(key, "") != text}
    if not changed:
        return False
    annotations = mapping_at(workload, "metadata", "annotations")
    for key, text in changed.items():
        if text:
            annotations[key] = text
        else:
            del annotations[key]
    return True


Priority = tuple[JsonObject | None, int]
"""The reference to a class, and its value."""


def priority_of(
    job: JsonObject, pod_sets: Sequence[JsonObject], own_class: str | None, context: JobContext
) -> Priority:
    """Return the priority: from the label's class, else the class that the kind itself names, else the first class of
    the pods, else the global default. `own_class` is None for a kind that leaves it to the pods. Raises JobError for a
    class that does not exist."""
    label = priority_class_of(job)
    if label:
        return _class("WorkloadPriorityClass", _WORKLOAD_GROUP, label, context)
    name = _first_class(pod_sets) if own_class is None else own_class
    return _class("PriorityClass", _POD_GROUP, name, context) if name else _default_priority(context)


def _class(kind: str, group: str, name: str, context: JobContext) -> Priority:
    found = context.objects.get(kind, "", name)
    if found is None:
        raise JobError(f'{kind} "{name}" not found')
    return {"group": group, "kind": kind, "name": name}, int(found.get("value") or 0)


def _first_class(pod_sets: Sequence[JsonObject]) -> str:
    names = (dig(pod_set, "template", "spec", "priorityClassName") for pod_set in pod_sets)
    return next((str(name) for name in names if name), "")


def _default_priority(context: JobContext) -> Priority:
    classes = [found for found in context.objects.list("PriorityClass") if found.get("globalDefault")]
    if not classes:
        return None, 0
    smallest = min(classes, key=lambda found: int(found.get("value") or 0))
    reference = {"group": _POD_GROUP, "kind": "PriorityClass", "name": name_of(smallest)}
    return reference, int(smallest.get("value") or 0)


def set_priority(workload: JsonObject, priority: Priority) -> bool:
    """Set the workload's priority; return whether it changed."""
    reference, value = priority
    spec = workload["spec"]
    if spec.get("priority") == value and (spec.get("priorityClassRef") or None) == reference:
        return False
    spec["priority"] = value
    if reference is None:
        spec.pop("priorityClassRef", None)
    else:
        spec["priorityClassRef"] = reference
    return True


def update_priorities(
    workloads: Iterable[JsonObject], job: JsonObject, own_class: str | None, context: JobContext
) -> list[JsonObject]:
    """Give all workloads of a job the class in its changed priority label; return the changed ones.

    A workload keeps a priority that comes from its pods. A workload that reserved quota without a class can no longer
    get one.
    """
    label = priority_class_of(job)
    following = [workload for workload in workloads if _follows_label(workload)]
    changing = [workload for workload in following if _class_name(workload) != label]
    if not changing:
        return []
    priority = priority_of(job, changing[0]["spec"]["podSets"], own_class, context)
    return [workload for workload in following if set_priority(workload, priority)]


def _follows_label(workload: JsonObject) -> bool:
    reference = workload["spec"].get("priorityClassRef")
    if not reference:
        return not has_quota(workload)
    return (reference.get("kind"), reference.get("group")) == ("WorkloadPriorityClass", _WORKLOAD_GROUP)


def _class_name(workload: JsonObject) -> str:
    return str((workload["spec"].get("priorityClassRef") or {}).get("name", ""))
