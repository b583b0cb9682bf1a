"""leaderworkerset.x-k8s.io/v1 LeaderWorkerSet: each group of a leader and its workers is a workload."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from clusters.jobs.families.serving import MULTIKUEUE_ORIGIN, ServingKind, check_same_role, is_of_old_revision, let_run
from clusters.jobs.framework.context import JobContext
from clusters.jobs.framework.errors import FieldErrors, JobError, distinct, immutable, invalid
from clusters.jobs.framework.identity import is_managed, queue_name_of
from clusters.jobs.framework.job_kind import TemplateSite, integer_at
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
    remove_finalizer,
    set_annotation,
    set_label,
    uid_of,
)
from clusters.jobs.framework.pod_sets import MAIN
from clusters.jobs.framework.store import ObjectStore, by_name
from clusters.jobs.framework.topology import PodLabels
from clusters.jobs.framework.workloads import follow_gates, name_for_set, priority_of, set_priority, update_priorities
from clusters.jobs.kinds.pod import group_name_of, is_gated, is_terminated
from clusters.jobs.kinds.pod_group import group_workload
from clusters.jobs.kinds.statefulset import name_owner, owned_name
from queues.manifests import kueue_keys as keys
from queues.manifests.job import WorkloadsPer

_DOMAIN: Final = "leaderworkerset.sigs.k8s.io"
_NAME_LABEL: Final = f"{_DOMAIN}/name"
_GROUP_INDEX_LABEL: Final = f"{_DOMAIN}/group-index"
_WORKER_INDEX_LABEL: Final = f"{_DOMAIN}/worker-index"
_LEADER_NAME: Final = f"{_DOMAIN}/leader-name"
_LEADER: Final = "leader"
_WORKER: Final = "worker"
_MAX_REPLICAS: Final = 1_000_000
_PATH: Final = "spec.leaderWorkerTemplate"


class LeaderWorkerSet(ServingKind):
    """The pods of a group are found by its index."""

    api_version = "leaderworkerset.x-k8s.io/v1"
    kind = "LeaderWorkerSet"
    plural = "leaderworkersets"
    framework = "leaderworkerset.x-k8s.io/leaderworkerset"
    optional = True
    groups_pods = True
    group_label = _GROUP_INDEX_LABEL
    part_kind = "StatefulSet"
    remakes_parts = True
    workloads_per = WorkloadsPer.GROUP
    short_names = ("lws",)
    kept_texts = frozenset({"message"})
    omitted_zeros = frozenset({"replicas", "readyReplicas", "updatedReplicas"})

    def sites(self, job: JsonObject) -> list[TemplateSite]:
        templates = mapping_at(job, "spec", "leaderWorkerTemplate")
        leader = templates.get("leaderTemplate")
        found = []
        if leader is not None:
            found.append(TemplateSite(_LEADER, 1, leader, f"{_PATH}.leaderTemplate.metadata"))
        count = _size(job) - len(found)
        name = _WORKER if leader is not None else MAIN
        worker, labels = mapping_at(templates, "workerTemplate"), PodLabels(_WORKER_INDEX_LABEL)
        return [*found, TemplateSite(name, count, worker, f"{_PATH}.workerTemplate.metadata", labels)]

    def workload_count(self, job: JsonObject) -> int:
        return _groups(job)

    def selector_of_pods(self, job: JsonObject) -> str:
        return f"{_NAME_LABEL}={name_of(job)}"

    def group_of(self, pod: JsonObject) -> str:
        return labels_of(pod).get(self.group_label, "")

    def maker_of(self, pod: JsonObject) -> str:
        return labels_of(pod).get(_NAME_LABEL, "")

    def pod_sets(self, job: JsonObject, context: JobContext) -> list[JsonObject]:
        found = super().pod_sets(job, context)
        for pod_set in found:
            metadata = mapping_at(pod_set["template"], "metadata")
            for field in ("labels", "annotations"):
                metadata[field] = _without_own(metadata.get(field) or {})
        return found

    # The webhooks

    def mark_templates(self, job: JsonObject) -> None:
        sites = self.sites(job)
        for site in sites:
            self.mark(site.template, job)
            set_annotation(site.template, keys.POD_GROUP_SERVING, "true")
        if len(sites) > 1 and keys.POD_SET_GROUP not in annotations_of(sites[1].template):
            set_annotation(sites[1].template, keys.POD_INDEX_OFFSET, "1")

    def check_create(self, job: JsonObject, context: JobContext) -> FieldErrors:
        errors = super().check_create(job, context)
        replicas = _replicas(job)
        rule = f"must be >= 0, got {replicas}" if replicas < 0 else f"must be <= {_MAX_REPLICAS}, got {replicas}"
        if not 0 <= replicas <= _MAX_REPLICAS:
            errors.append(invalid("spec.replicas", replicas, f"invalid LeaderWorkerSet replicas: {rule}"))
        return distinct([*errors, *self.check_topology(job, context)])

    def check_update(self, old: JsonObject, new: JsonObject, context: JobContext) -> FieldErrors:
        errors = [*self.check_create(new, context), *super().check_update(old, new, context)]
        if is_managed(new, context):
            for field in ("leaderTemplate", "workerTemplate"):
                before, after = (dig(job, "spec", "leaderWorkerTemplate", field) for job in (old, new))
                errors += _check_same_template(f"{_PATH}.{field}", before, after)
            errors += immutable(f"{_PATH}.size", _size(old), _size(new))
        return distinct(errors)

    # The controller

    def reconcile(self, namespace: str, name: str, context: JobContext, store: ObjectStore) -> None:
        job = store.get(self.kind, namespace, name)
        if job is None or not self.is_ours(job, context):
            return
        self._reconcile_workloads(job, context, store)
        self.reconcile_pods(namespace, name, context, store)

    def reconcile_pods(self, namespace: str, name: str, context: JobContext, store: ObjectStore) -> None:
        job = store.get(self.kind, namespace, name)
        if job is None or not self.is_ours(job, context):
            return
        stateful_sets = by_name(
            found for found in store.list("StatefulSet", namespace) if labels_of(found).get(_NAME_LABEL) == name
        )
        for pod in store.list("Pod", namespace):
            if labels_of(pod).get(_NAME_LABEL) == name:
                owner = controller_of(pod) or {}
                if owner.get("uid") == uid_of(job) and _mark_pod(pod, job, store):
                    store.write(pod)  # its operator creates pods without StatefulSets
                elif owner.get("uid") != uid_of(job):
                    self._reconcile_pod(pod, job, stateful_sets.get(owner.get("name", "")), store)

    def workload_names(self, job: JsonObject) -> list[str]:
        return [_workload_name(job, str(index)) for index in range(_groups(job))]

    def _reconcile_workloads(self, job: JsonObject, context: JobContext, store: ObjectStore) -> None:
        superfluous = by_name(
            workload
            for workload in store.list("Workload", namespace_of(job))
            if any(owner.get("uid") == uid_of(job) for owner in workload["metadata"].get("ownerReferences") or ())
        )
        failure: JobError | None = None
        for index in range(_groups(job)):
            workload = superfluous.pop(_workload_name(job, str(index)), None)
            try:
                if workload is not None:
                    _update_workload(workload, job, context, store)
                elif MULTIKUEUE_ORIGIN not in labels_of(job):
                    self._make_workload(job, index, context, store)
            except JobError as mistake:
                failure = failure or mistake
        for workload in superfluous.values():
            remove_finalizer(workload, keys.RESOURCE_IN_USE)
            store.write(workload)
            store.delete(workload, context.now)
        if failure is not None:
            raise failure

    def _make_workload(self, job: JsonObject, index: int, context: JobContext, store: ObjectStore) -> None:
        pod_sets = self.pod_sets(job, context)
        workload = group_workload(_workload_name(job, str(index)), job, pod_sets)
        labels = labels_of(job)
        copied = {key: labels[key] for key in context.settings.label_keys_to_copy if key in labels}
        mapping_at(workload, "metadata", "labels").update(copied)
        set_label(workload, keys.JOB_UID, uid_of(job))
        name_owner(workload, job, self.full_name)
        set_annotation(workload, keys.COMPONENT_INDEX, str(index))
        add_owner(workload, job)
        set_priority(workload, priority_of(job, pod_sets, None, context))
        store.create(workload)

    def _reconcile_pod(
        self, pod: JsonObject, job: JsonObject, stateful_set: JsonObject | None, store: ObjectStore
    ) -> None:
        if stateful_set is None or is_of_old_revision(pod, stateful_set):
            let_run(pod, store)
        elif not is_terminated(pod) and not is_being_deleted(pod) and _mark_pod(pod, job, store):
            store.write(pod)


def _without_own(values: Mapping[str, str]) -> dict[str, str]:
    """Labels or annotations without the keys that distinguish the groups: all groups have the same pod sets."""
    return {key: value for key, value in values.items() if not key.startswith(_DOMAIN) or key == _NAME_LABEL}


def _size(job: JsonObject) -> int:
    return integer_at(job, "spec", "leaderWorkerTemplate", "size", default=1)


def _replicas(job: JsonObject) -> int:
    return integer_at(job, "spec", "replicas", default=1)


def _groups(job: JsonObject) -> int:
    """Return the number of groups, including the groups that a rolling update adds for a while."""
    replicas, there = _replicas(job), integer_at(job, "status", "replicas")
    surge = dig(job, "spec", "rolloutStrategy", "rollingUpdateConfiguration", "maxSurge")
    surging = isinstance(surge, int) and surge > 0 and integer_at(job, "status", "updatedReplicas") < replicas
    return max(replicas, there) if surging else replicas


def _workload_name(job: JsonObject, index: str) -> str:
    return name_for_set(job, name=f"{name_of(job)}-{index}")


def _check_same_template(path: str, old: Any, new: Any) -> FieldErrors:
    if old is None or new is None:
        return [] if old is new else immutable(path, str(old), str(new))
    return check_same_role(f"{path}.spec", old.get("spec") or {}, new.get("spec") or {})


def _update_workload(workload: JsonObject, job: JsonObject, context: JobContext, store: ObjectStore) -> None:
    workload["spec"]["queueName"] = queue_name_of(job)
    follow_gates(workload, job)
    store.write(workload)
    if update_priorities([workload], job, None, context):
        store.write(workload)


def _group_name(job: JsonObject, index: str, store: ObjectStore) -> str:
    """Return the name of a group's workload: that of a set that was submitted here is made before the set has
    its uid."""
    name = _workload_name(job, index)
    if store.get("Workload", namespace_of(job), name) is not None:
        return name
    return owned_name(job, store, index) or name


def _rename_group(pod: JsonObject, job: JsonObject, store: ObjectStore) -> bool:
    """Give a marked pod the name of its group's workload if the workload that it names does not exist; return whether
    it changed.

    Earlier versions named the groups of a set that was submitted here by the uid that the cluster gave it.
    """
    named, index = group_name_of(pod), labels_of(pod).get(_GROUP_INDEX_LABEL)
    if not named or index is None or store.get("Workload", namespace_of(job), named) is not None:
        return False
    workload = _group_name(job, index, store)
    if store.get("Workload", namespace_of(job), workload) is None:
        return False
    mapping_at(pod, "metadata", "annotations").update({keys.POD_GROUP_NAME: workload, keys.PREBUILT_WORKLOAD: workload})
    return True


def _mark_pod(pod: JsonObject, job: JsonObject, store: ObjectStore) -> bool:
    """Mark a pod as a member of its group; return whether anything changed."""
    queue, labels = queue_name_of(job), labels_of(pod)
    if keys.MANAGED in labels:
        renamed = _rename_group(pod, job, store)
        if not queue or not is_gated(pod) or labels.get(keys.QUEUE_NAME) == queue:
            return renamed
        set_label(pod, keys.QUEUE_NAME, queue)
        return True
    if _GROUP_INDEX_LABEL not in labels:
        return False
    workload = _group_name(job, labels[_GROUP_INDEX_LABEL], store)
    set_label(pod, keys.MANAGED, "true")
    if queue and is_gated(pod):
        set_label(pod, keys.QUEUE_NAME, queue)
    role = MAIN
    if dig(job, "spec", "leaderWorkerTemplate", "leaderTemplate") is not None:
        role = _WORKER if _LEADER_NAME in annotations_of(pod) else _LEADER
    mapping_at(pod, "metadata", "annotations").update(
        {
            keys.POD_GROUP_NAME: workload,
            keys.PREBUILT_WORKLOAD: workload,
            keys.POD_GROUP_TOTAL_COUNT: str(_size(job)),
            keys.ROLE_HASH: role,
        }
    )
    return True
