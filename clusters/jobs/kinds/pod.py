"""v1 Pod: a pod without an owner, or whose owner lets it wait.

A pod cannot be suspended: it is gated until it is admitted, and deleted when it is stopped.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from clusters.jobs.framework.conditions import EVICTED, condition_of, is_true, set_condition
from clusters.jobs.framework.context import JobContext
from clusters.jobs.framework.controller import WORKLOAD_DELETED, WORKLOAD_EVICTED
from clusters.jobs.framework.defaulting import DEFAULT_NAME, default_priority_class
from clusters.jobs.framework.errors import CannotStart, FieldErrors, JobError, forbidden, immutable, invalid, required
from clusters.jobs.framework.go_syntax import BadSyntax, parse_integer
from clusters.jobs.framework.identity import managed_ancestor, prebuilt_workload_of, queue_name_of
from clusters.jobs.framework.job_kind import JobKind, Outcome, Stopping, TemplateSite
from clusters.jobs.framework.managed_job import ManagedJob
from clusters.jobs.framework.manifest import (
    JsonObject,
    annotations_of,
    controller_of,
    dig,
    is_being_deleted,
    labels_of,
    mapping_at,
    namespace_of,
    remove_finalizer,
    set_annotation,
    set_label,
)
from clusters.jobs.framework.pod_set_info import PodSetInfo, merge_into_template
from clusters.jobs.framework.pod_sets import MAIN, make_pod_set
from clusters.jobs.framework.scheduling_gates import add_gate, has_gate, remove_gates
from clusters.jobs.framework.store import ObjectStore
from clusters.jobs.framework.topology import PodLabels, check_topology
from clusters.jobs.framework.validation import (
    annotation_or_label_path,
    annotation_path,
    check_annotation_or_label,
    check_changed_job,
    check_new_job,
    label_path,
)
from queues.manifests import kueue_keys as keys
from queues.manifests.role_hash import role_hash

TERMINATION_TARGET: Final = "TerminationTarget"


class Pod(JobKind):
    """A workload of one pod; pods with a group name are one workload together (`PodGroup`)."""

    api_version = "v1"
    kind = "Pod"
    plural = "pods"
    stopping = Stopping.DELETE
    optional = False
    short_names = ("po",)
    restart_policies = ("Always", "Never", "OnFailure")
    pod_template_path = ""

    def sites(self, job: JsonObject) -> list[TemplateSite]:
        return []  # the pod itself already has what it needs

    def templates(self, job: JsonObject) -> list[tuple[str, JsonObject]]:
        return [(MAIN, job)]

    def pod_sets(self, job: JsonObject, context: JobContext) -> list[JsonObject]:
        return [pod_set_of(job)]

    def pod_label_selector(self, job: JsonObject) -> str:
        return f"{keys.POD_GROUP_NAME}={labels_of(job).get(keys.POD_GROUP_NAME, '')}"

    def is_suspended(self, job: JsonObject) -> bool:
        return is_terminated(job) or is_gated(job)

    def suspend(self, job: JsonObject) -> None:
        """Do nothing: a pod is stopped only by its deletion."""

    def outcome(self, job: JsonObject) -> Outcome:
        if not is_terminated(job):
            return Outcome(False)
        status = job["status"]
        return Outcome(True, status["phase"] == "Succeeded", status.get("message") or "")

    def is_active(self, job: JsonObject) -> bool:
        return False

    def pods_ready(self, job: JsonObject, context: JobContext) -> bool:
        return is_true(job, "Ready")

    def reclaimable_pods(self, job: JsonObject, context: JobContext) -> list[JsonObject]:
        return []

    def is_skipped(self, job: JsonObject) -> bool:
        return labels_of(job).get(keys.MANAGED) != "true"

    # The webhooks

    def default(self, job: JsonObject, context: JobContext) -> None:
        told_by_parent = keys.SUSPENDING_PARENT in annotations_of(job)
        if not told_by_parent and not self._takes(job, context):
            return
        if not told_by_parent:
            finalizers = mapping_at(job, "metadata").get("finalizers") or []
            if keys.MANAGED not in finalizers:
                job["metadata"]["finalizers"] = [*finalizers, keys.MANAGED]
        add_gate(job, keys.ADMISSION_GATE)
        index_label = annotations_of(job).get(keys.POD_GROUP_POD_INDEX_LABEL)
        if index_label is not None:
            set_label(job, keys.POD_GROUP_POD_INDEX, labels_of(job).get(index_label, ""))
        add_gate(job, keys.TOPOLOGY_GATE)
        set_annotation(job, keys.ROLE_HASH, role_of(job))

    def _takes(self, job: JsonObject, context: JobContext) -> bool:
        """Return whether the pod is a job of its own, and is marked as one. Raises JobError."""
        namespace = namespace_of(job)
        if context.objects.get("Namespace", "", namespace) is None:
            raise JobError(f'failed to get namespace: namespaces "{namespace}" not found')
        if not context.namespace_is_managed(namespace) or managed_ancestor(job, context) is not None:
            return False
        if not queue_name_of(job) and context.has_default_queue(namespace):
            set_label(job, keys.QUEUE_NAME, DEFAULT_NAME)
        default_priority_class(job, context)
        if not queue_name_of(job) and not context.settings.manage_jobs_without_queue_name:
            return False
        set_label(job, keys.MANAGED, "true")
        return True

    def check_create(self, job: JsonObject, context: JobContext) -> FieldErrors:
        return list(dict.fromkeys([*check_new_job(self, job), *_check_pod(job)]))

    def check_update(self, old: JsonObject, new: JsonObject, context: JobContext) -> FieldErrors:
        errors = [*check_changed_job(self, old, new, context), *_check_pod(new), *_check_retriable(old, new)]
        if group_name_of(old):
            path = annotation_or_label_path(new, keys.POD_GROUP_NAME)
            errors += immutable(path, group_name_of(old), group_name_of(new))
        return list(dict.fromkeys(errors))

    def warnings(self, job: JsonObject, context: JobContext) -> list[str]:
        owner = controller_of(job)
        if labels_of(job).get(keys.MANAGED) != "true" or owner is None or not context.is_enabled(owner):
            return []
        return [f"{label_path(keys.MANAGED)}: the pod's owner is managed, so the pod itself should not be"]


def is_terminated(pod: JsonObject) -> bool:
    return dig(pod, "status", "phase") in ("Failed", "Succeeded")


def is_gated(pod: JsonObject) -> bool:
    return has_gate(pod, keys.ADMISSION_GATE)


def group_name_of(pod: JsonObject) -> str:
    return annotations_of(pod).get(keys.POD_GROUP_NAME) or labels_of(pod).get(keys.POD_GROUP_NAME, "")


def role_of(pod: JsonObject) -> str:
    """Return the role in the pod's annotation, or else the hash of its spec."""
    annotations = annotations_of(pod)
    return annotations[keys.ROLE_HASH] if keys.ROLE_HASH in annotations else role_hash(pod.get("spec") or {})


def total_count_of(pod: JsonObject) -> int:
    """Return the number of pods in the pod's group. Raises JobError, which names the fault of the annotation."""
    if not group_name_of(pod):
        raise JobError(f"pod doesn't have a '{keys.POD_GROUP_NAME}' annotation/label")
    text = annotations_of(pod).get(keys.POD_GROUP_TOTAL_COUNT)
    if text is None:
        raise JobError(f"failed to extract '{keys.POD_GROUP_TOTAL_COUNT}' annotation")
    try:
        count = parse_integer(text)
    except BadSyntax as mistake:
        raise JobError(str(mistake)) from mistake
    if count < 1:
        rule = "group total count should be greater than zero"
        raise JobError(f"incorrect annotation value '{keys.POD_GROUP_TOTAL_COUNT}={text}': {rule}")
    return count


def pod_set_of(pod: JsonObject, name: str = MAIN, count: int = 1) -> JsonObject:
    """Build a pod set of pods like this one. Raises JobError."""
    labels = PodLabels(keys.POD_GROUP_POD_INDEX)
    return make_pod_set(name, count, {"spec": pod.get("spec") or {}}, labels, annotated=pod)


def _check_pod(pod: JsonObject) -> FieldErrors:
    errors: FieldErrors = []
    if labels_of(pod).get(keys.MANAGED, "true") != "true":
        errors.append(forbidden(label_path(keys.MANAGED), "managed label value can only be 'true'"))
    errors += [*_check_group(pod), *check_topology("metadata", pod)]
    prebuilt = prebuilt_workload_of(pod)
    if group_name_of(pod) and prebuilt and prebuilt != group_name_of(pod):
        path = annotation_or_label_path(pod, keys.PREBUILT_WORKLOAD)
        errors.append(invalid(path, prebuilt, "prebuilt workload and pod group should be equal"))
    return errors


def _check_group(pod: JsonObject) -> FieldErrors:
    """Check that a group's pods have both its name and its size."""
    annotations = annotations_of(pod)
    named_by = "annotation" if annotations.get(keys.POD_GROUP_NAME) else "label"
    rule = (
        f"both the '{keys.POD_GROUP_TOTAL_COUNT}' annotation and the '{keys.POD_GROUP_NAME}' {named_by} should be set"
    )
    counted = keys.POD_GROUP_TOTAL_COUNT in annotations
    if not group_name_of(pod):
        return [required(annotation_or_label_path(pod, keys.POD_GROUP_NAME), rule)] if counted else []
    errors = check_annotation_or_label(pod, keys.POD_GROUP_NAME)
    path = annotation_path(keys.POD_GROUP_TOTAL_COUNT)
    if not counted:
        return [*errors, required(path, rule)]
    try:
        total_count_of(pod)
    except JobError as mistake:
        errors.append(invalid(path, annotations[keys.POD_GROUP_TOTAL_COUNT], str(mistake)))
    return errors


def is_unretriable(pod: JsonObject) -> bool:
    """Return whether the pod's annotation says that no pod will replace a failed one of its group."""
    return annotations_of(pod).get(keys.RETRIABLE_IN_GROUP) == "false"


def _check_retriable(old: JsonObject, new: JsonObject) -> FieldErrors:
    if not group_name_of(new) or not is_unretriable(old) or is_unretriable(new):
        return []
    return [
        forbidden(annotation_path(keys.RETRIABLE_IN_GROUP), "unretriable pod group can't be converted to retriable")
    ]


class ManagedPod(ManagedJob):
    """A pod that is a workload of its own."""

    is_top_level = True
    starts_in_this_cluster_only = True

    def finalize(self) -> None:
        let_go(self.object, self.store)

    def start(self, workload: JsonObject, infos: Sequence[PodSetInfo]) -> None:
        if len(infos) != 1:
            raise CannotStart(f"invalid podset infos: expecting 1 pod set got {len(infos)}")
        if is_gated(self.object):
            self.start_one(self.object, infos[0])

    def start_one(self, pod: JsonObject, info: PodSetInfo) -> None:
        """Let the pod be scheduled. Raises CannotStart."""
        start_pod(pod, info, self.store)

    def stop(self, workload: JsonObject | None, reason: str, message: str) -> None:
        stop_pods([self.object], workload, reason, message, self.context, self.store)


def let_go(pod: JsonObject, store: ObjectStore) -> bool:
    """Remove Kueue's finalizer from a pod; return whether the pod had it."""
    removed = remove_finalizer(pod, keys.MANAGED)
    if removed:
        store.write(pod)
    return removed


def start_pod(pod: JsonObject, info: PodSetInfo, store: ObjectStore) -> None:
    """Let a pod be scheduled. Raises CannotStart; the pod is then unusable and is not written."""
    merge_into_template(pod, info)
    topology = any(gate["name"] == keys.TOPOLOGY_GATE for gate in info.scheduling_gates)
    remove_gates(pod, keys.ADMISSION_GATE, *(() if topology else (keys.TOPOLOGY_GATE,)))
    store.write(pod)


def stop_pods(
    pods: Sequence[JsonObject],
    workload: JsonObject | None,
    reason: str,
    message: str,
    context: JobContext,
    store: ObjectStore,
) -> None:
    """Delete pods, with a reason. Pods that wait at their gate, or have ended, are kept unless the workload is
    deleted."""
    if reason == WORKLOAD_EVICTED and workload is not None:
        reason += f"DueTo{(condition_of(workload, EVICTED) or {}).get('reason', '')}"
    for pod in pods:
        waits = is_terminated(pod) or is_gated(pod)
        if is_being_deleted(pod) or (waits and reason != WORKLOAD_DELETED):
            continue
        set_condition(pod, TERMINATION_TARGET, True, reason, message, context.now)
        store.write(pod)
        store.delete(pod, context.now)
