"""apps/v1 StatefulSet: all of its pods are one workload."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from clusters.jobs.families.serving import (
    MULTIKUEUE_ORIGIN,
    ServingKind,
    annotated_parent,
    check_same_role,
    check_selector,
    is_of_old_revision,
    let_run,
)
from clusters.jobs.framework import conditions as state
from clusters.jobs.framework.context import JobContext
from clusters.jobs.framework.errors import FieldErrors, forbidden, immutable
from clusters.jobs.framework.identity import is_managed, priority_class_of, queue_name_of
from clusters.jobs.framework.job_kind import integer_at
from clusters.jobs.framework.manifest import (
    JsonObject,
    add_owner,
    annotations_of,
    controller_of,
    dig,
    is_being_deleted,
    labels_of,
    mapping_at,
    name_of,
    namespace_of,
    set_annotation,
    set_label,
    uid_of,
)
from clusters.jobs.framework.pod_sets import MAIN, make_pod_set
from clusters.jobs.framework.store import Objects, ObjectStore
from clusters.jobs.framework.topology import PodLabels
from clusters.jobs.framework.workloads import follow_gates, name_for, name_for_set, priority_of, set_priority
from clusters.jobs.kinds.pod import group_name_of, is_terminated
from clusters.jobs.kinds.pod_group import group_workload
from queues.manifests import kueue_keys as keys

_POD_INDEX_LABEL: Final = "apps.kubernetes.io/pod-index"


class StatefulSet(ServingKind):
    """A prebuilt workload for a pod group whose pods the StatefulSet creates one after the other."""

    api_version = "apps/v1"
    kind = "StatefulSet"
    plural = "statefulsets"
    framework = "statefulset"
    groups_pods = True
    short_names = ("sts",)
    restart_policies = ("Always",)
    spec_integers = ("replicas",)
    spec_fields = frozenset(
        {
            "minReadySeconds", "ordinals", "persistentVolumeClaimRetentionPolicy", "podManagementPolicy", "replicas",
            "revisionHistoryLimit", "selector", "serviceName", "template", "updateStrategy", "volumeClaimTemplates",
        }
    )  # fmt: skip
    pod_template_path = "spec.template"
    omitted_zeros = frozenset({"replicas", "readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas"})

    def pod_sets(self, job: JsonObject, context: JobContext) -> list[JsonObject]:
        template = dig(job, "spec", "template") or {}
        labels = PodLabels(_POD_INDEX_LABEL)
        return [make_pod_set(MAIN, _replicas(job), {"spec": template.get("spec") or {}}, labels, annotated=template)]

    def templates(self, job: JsonObject) -> list[tuple[str, JsonObject]]:
        return [(MAIN, mapping_at(job, "spec", "template"))]

    def hands_over(self, job: JsonObject) -> JsonObject:
        return {}  # Kueue copies none of its labels

    def workload_count(self, job: JsonObject) -> int:
        return int(_replicas(job) > 0)

    def check_schema(self, job: JsonObject) -> FieldErrors:
        return check_selector(job)

    def _is_of_another(self, job: JsonObject) -> bool:
        """Return whether another kind created the set for its own pods."""
        return annotated_parent(dig(job, "spec", "template") or {}) not in (None, self.framework)

    # The webhooks

    def default(self, job: JsonObject, context: JobContext) -> None:
        if not self._is_of_another(job):
            super().default(job, context)

    def mark_templates(self, job: JsonObject) -> None:
        # Queue and priority are not for the template: they may change while pods of one revision run.
        set_annotation(mapping_at(job, "spec", "template"), keys.SUSPENDING_PARENT, self.framework)

    def check_create(self, job: JsonObject, context: JobContext) -> FieldErrors:
        return [] if self._is_of_another(job) else super().check_create(job, context)

    def check_update(self, old: JsonObject, new: JsonObject, context: JobContext) -> FieldErrors:
        if self._is_of_another(new):
            return []
        errors = super().check_update(old, new, context)
        if not is_managed(new, context):
            return errors
        specs = [dig(job, "spec", "template", "spec") or {} for job in (old, new)]
        errors += check_same_role("spec.template.spec", *specs)
        before, after = _replicas(old), _replicas(new)
        if before and after:
            counts = [dig(job, "spec", "replicas") for job in (old, new)]
            errors += immutable("spec.replicas", *counts)
        if not before and after > 0:
            errors += _check_scale_up(old, new, context)
        return errors

    # The controllers

    def reconcile(self, namespace: str, name: str, context: JobContext, store: ObjectStore) -> None:
        job = self._managed(namespace, name, context, store)
        if job is not None:
            _reconcile_members(job, store)
            self._reconcile_workload(job, context, store)
        self._mark_pods(namespace, context, store)

    def reconcile_pods(self, namespace: str, name: str, context: JobContext, store: ObjectStore) -> None:
        job = self._managed(namespace, name, context, store)
        if job is not None:
            _reconcile_members(job, store)
        self._mark_pods(namespace, context, store)

    def _managed(self, namespace: str, name: str, context: JobContext, store: ObjectStore) -> JsonObject | None:
        job = store.get(self.kind, namespace, name)
        return job if job is not None and not self._is_of_another(job) and self.is_ours(job, context) else None

    def _mark_pods(self, namespace: str, context: JobContext, store: ObjectStore) -> None:
        for pod in list(self._pods(namespace, store)):
            _mark_pod(pod, context, store)

    def _pods(self, namespace: str, store: ObjectStore) -> Iterator[JsonObject]:
        for pod in store.list("Pod", namespace):
            if annotated_parent(pod) == self.framework and not is_terminated(pod) and not is_being_deleted(pod):
                yield pod

    def workload_names(self, job: JsonObject) -> list[str]:
        return [name_for_set(job)] if _replicas(job) > 0 else []

    def _reconcile_workload(self, job: JsonObject, context: JobContext, store: ObjectStore) -> None:
        _, workload = find_workload(job, store)
        if workload is None:
            self._make_workload(job, context, store)
        else:
            _update_workload(workload, job, store, context.now)

    def _make_workload(self, job: JsonObject, context: JobContext, store: ObjectStore) -> None:
        managed = bool(queue_name_of(job)) or context.settings.manage_jobs_without_queue_name
        if not managed or _replicas(job) <= 0 or MULTIKUEUE_ORIGIN in labels_of(job):
            return
        pod_sets = self.pod_sets(job, context)
        workload = group_workload(name_for_set(job), job, pod_sets)
        set_label(workload, keys.JOB_UID, uid_of(job))
        name_owner(workload, job, self.full_name)
        add_owner(workload, job)
        set_priority(workload, priority_of(job, pod_sets, None, context))
        if store.get("Workload", namespace_of(job), name_of(workload)) is None:
            store.write(workload)


def _reconcile_members(job: JsonObject, store: ObjectStore) -> None:
    """Make the pods of the set's group follow its queue, and let those of an older revision run."""
    name = group_of_set(job, store)
    for pod in store.list("Pod", namespace_of(job)):
        if group_name_of(pod) == name:
            _follow_queue(pod, job, store)
            if is_of_old_revision(pod, job):
                let_run(pod, store)


def name_owner(workload: JsonObject, owner: JsonObject, full_name: str) -> None:
    """Write the owner of a serving kind's workload on it."""
    set_annotation(workload, keys.JOB_OWNER_KIND, full_name)
    set_annotation(workload, keys.JOB_OWNER_NAME, name_of(owner))


def _replicas(job: JsonObject) -> int:
    return integer_at(job, "spec", "replicas", default=1)


def find_workload(job: JsonObject, objects: Objects) -> tuple[str, JsonObject | None]:
    """Find the workload of a StatefulSet and its name. Older versions created the name without the uid."""
    name = name_for_set(job)
    workload = objects.get("Workload", namespace_of(job), name)
    if workload is None:
        older = name_for({**job, "metadata": {**job["metadata"], "uid": ""}})
        workload = objects.get("Workload", namespace_of(job), older)
        name = name if workload is None else older
    return name, workload


def group_of_set(job: JsonObject, store: ObjectStore) -> str:
    """Return the name of the group of the set's pods, which is also the name of its workload. The workload of a set
    that was submitted here is named before the cluster gives the set its uid."""
    name, workload = find_workload(job, store)
    return name if workload is not None else owned_name(job, store, "") or name


def owned_name(job: JsonObject, store: ObjectStore, index: str) -> str:
    """Return the name of the unfinished workload that the set owns for the group with that index; empty if there is
    none."""
    return next(
        (
            name_of(each)
            for each in store.list("Workload", namespace_of(job))
            if any(owner.get("uid") == uid_of(job) for owner in each["metadata"].get("ownerReferences") or ())
            and annotations_of(each).get(keys.COMPONENT_INDEX, "") == index
            and not state.is_finished(each)
        ),
        "",
    )


def _check_scale_up(old: JsonObject, new: JsonObject, context: JobContext) -> FieldErrors:
    """Refuse to scale a set up while its pods, or its workload from before the scale-down, still exist."""
    if integer_at(new, "status", "replicas") > 0:
        return [forbidden("spec.replicas", "scaling down is still in progress")]
    _, workload = find_workload(old, context.objects)
    if workload is not None and not state.is_on_hold(workload):
        return [forbidden("spec.replicas", "workload from previous scale-down is still being deleted")]
    return []


def _follow_queue(pod: JsonObject, job: JsonObject, store: ObjectStore) -> None:
    queue = queue_name_of(job)
    if _replicas(job) and queue and labels_of(pod).get(keys.QUEUE_NAME) != queue:
        set_label(pod, keys.QUEUE_NAME, queue)
        store.write(pod)


def _update_workload(workload: JsonObject, job: JsonObject, store: ObjectStore, now: str) -> None:
    replicas = _replicas(job)
    if replicas > 0:
        if not _owns(job, workload):
            add_owner(workload, job)
            name_owner(workload, job, StatefulSet().full_name)
        workload["spec"]["queueName"] = queue_name_of(job)
    follow_gates(workload, job)
    holding = state.has_quota(workload) and not state.is_finished(workload) and state.is_active(workload)
    if replicas == 0 and holding:
        state.release_quota(workload, state.ON_HOLD, "StatefulSet scaled to zero; workload on hold", now)
    elif replicas > 0 and state.is_on_hold(workload):
        message = "Workload no longer on hold; waiting for quota reservation"
        state.release_quota(workload, state.PENDING_EVALUATION, message, now)
    store.write(workload)


def _owns(job: JsonObject, workload: JsonObject) -> bool:
    return any(
        (owner.get("kind"), owner.get("name")) == (job["kind"], name_of(job))
        for owner in workload["metadata"].get("ownerReferences") or ()
    )


def _mark_pod(pod: JsonObject, context: JobContext, store: ObjectStore) -> None:
    """Make a pod of a StatefulSet a member of its workload's group."""
    owner = controller_of(pod)
    if owner is None or (owner.get("apiVersion"), owner.get("kind")) != ("apps/v1", StatefulSet.kind):
        return
    job = store.get(StatefulSet.kind, namespace_of(pod), owner["name"])
    if job is None:
        return
    workload_name = group_of_set(job, store)
    if not queue_name_of(job) and not context.settings.manage_jobs_without_queue_name:
        return
    queue = queue_name_of(job)
    if group_name_of(pod) == workload_name:  # members follow only the set's queue
        if queue and labels_of(pod).get(keys.QUEUE_NAME) != queue:
            set_label(pod, keys.QUEUE_NAME, queue)
            store.write(pod)
        return
    labels = {keys.MANAGED: "true", keys.QUEUE_NAME: queue, keys.PRIORITY_CLASS: priority_class_of(job)}
    mapping_at(pod, "metadata", "labels").update({key: value for key, value in labels.items() if value})
    mapping_at(pod, "metadata", "annotations").update(
        {
            keys.PREBUILT_WORKLOAD: workload_name,
            keys.POD_GROUP_NAME: workload_name,
            keys.POD_GROUP_TOTAL_COUNT: str(_replicas(job)),
            keys.POD_GROUP_FAST_ADMISSION: "true",
            keys.POD_GROUP_SERVING: "true",
            keys.POD_GROUP_POD_INDEX_LABEL: _POD_INDEX_LABEL,
            keys.ROLE_HASH: MAIN,
        }
    )
    store.write(pod)
