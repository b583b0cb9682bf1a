"""A job as its controller sees it: the object, its workloads, and the operations on both."""

from __future__ import annotations

from collections.abc import Sequence

from clusters.jobs.framework.conditions import finish, has_quota, is_admitted
from clusters.jobs.framework.context import JobContext
from clusters.jobs.framework.errors import CannotStart, JobError
from clusters.jobs.framework.identity import is_elastic, maximum_execution_seconds_of
from clusters.jobs.framework.job_kind import JobKind, Outcome
from clusters.jobs.framework.manifest import (
    JsonObject,
    add_owner,
    annotations_of,
    controller_of,
    copied,
    is_being_deleted,
    mapping_at,
    name_of,
    remove_finalizer,
    uid_of,
)
from clusters.jobs.framework.pod_set_info import PodSetInfo, infos_of_admission, infos_of_workload, merge_into_template
from clusters.jobs.framework.pod_sets import same_pods
from clusters.jobs.framework.store import ObjectStore
from clusters.jobs.framework.workloads import mark_with_uid, name_for, new_workload
from queues.manifests import kueue_keys as keys
from scheduling.lifecycle.conditions import OWNER_IS_GONE

_ORPHANED = ("OwnerNotFound", OWNER_IS_GONE)


class ManagedJob:
    """One object of a kind that can be suspended. Subclasses handle pods and groups of pods."""

    is_top_level = False
    """Whether its owners are ignored, because no owner starts and stops it."""
    starts_in_this_cluster_only = False

    def __init__(self, kind: JobKind, namespace: str, name: str, context: JobContext, store: ObjectStore) -> None:
        self.kind = kind
        self.namespace = namespace
        self.name = name
        self.context = context
        self.store = store
        found = store.get(kind.kind, namespace, name)
        self.found = found is not None
        self.object: JsonObject = found or {
            "apiVersion": kind.api_version, "kind": kind.kind, "metadata": {"namespace": namespace, "name": name},
        }  # fmt: skip

    @property
    def is_gone(self) -> bool:
        """Return whether the job no longer exists, or is being deleted."""
        return not self.found or is_being_deleted(self.object)

    def is_skipped(self) -> bool:
        return self.found and bool(self.kind.is_skipped(self.object))

    def is_suspended(self) -> bool:
        return self.kind.is_suspended(self.object)

    def is_active(self) -> bool:
        return self.kind.is_active(self.object)

    def outcome(self) -> Outcome:
        return self.kind.outcome(self.object)

    def pods_ready(self) -> bool:
        return self.kind.pods_ready(self.object, self.context)

    def pod_sets(self) -> list[JsonObject]:
        return self.kind.pod_sets(self.object, self.context)

    def reclaimable_pods(self) -> list[JsonObject] | None:
        return self.kind.reclaimable_pods(self.object, self.context)

    def set_own_conditions(self, workload: JsonObject) -> bool:
        """Set the conditions that only some jobs have; return whether any changed."""
        return False

    def follows_queue_changes(self) -> bool:
        return True

    # Its workloads

    def workloads(self) -> list[JsonObject]:
        """Return the workloads that name the job as an owner."""
        return workloads_of((self.kind.api_version, self.kind.kind, self.name), self.namespace, self.store)

    def finish_orphans(self) -> None:
        """Finish the workloads of a deleted job, and remove their finalizers."""
        for workload in self.workloads():
            if not is_being_deleted(workload) and controller_of(workload) is not None:
                finish(workload, *_ORPHANED, self.context.now)
            remove_finalizer(workload, keys.RESOURCE_IN_USE)
            self.store.write(workload)

    def finalize(self) -> None:
        """Clean up when the job no longer needs a workload."""

    def find_match(self) -> tuple[JsonObject | None, list[JsonObject]]:
        """Return the workload that matches the job, and the job's other workloads. Raises JobError."""
        match: JsonObject | None = None
        others = []
        for workload in self.workloads():
            if match is None and self.is_equivalent(workload):
                match = workload
            else:
                others.append(workload)
        return match, others

    def is_equivalent(self, workload: JsonObject) -> bool:
        """Return whether a workload matches the job. Raises JobError."""
        owner = controller_of(workload) or {}
        if (owner.get("name"), owner.get("uid")) != (name_of(self.object), uid_of(self.object)):
            return False
        if workload["spec"].get("maximumExecutionTimeSeconds") != maximum_execution_seconds_of(self.object):
            return False
        mine, its = self.pod_sets(), workload["spec"]["podSets"]
        tolerations = not is_admitted(workload)
        running = self._running_pod_sets(workload)
        if running is None:
            return same_pods(mine, its, tolerations=tolerations)
        if same_pods(mine, running, tolerations=tolerations):
            return True
        return self.is_suspended() and same_pods(mine, its, tolerations=tolerations)

    def _running_pod_sets(self, workload: JsonObject) -> list[JsonObject] | None:
        """Return the pod sets that the job's templates contain while it runs; None without quota, or if its admission
        cannot run."""
        if not has_quota(workload):
            return None
        try:
            infos = {info.name: info for info in infos_of_admission(workload, self.context)}
        except JobError:
            return None
        pod_sets = [copied(pod_set) for pod_set in workload["spec"]["podSets"]]
        partial = any(each["count"] > each.get("minCount", each["count"]) for each in pod_sets)
        for pod_set in pod_sets:
            info = infos.get(pod_set["name"])
            if info is None:
                return None
            try:
                merge_into_template(pod_set["template"], info)
            except CannotStart:
                return None
            if partial and "minCount" in pod_set:
                pod_set["count"] = info.count
        return pod_sets

    def own(self, workload: JsonObject) -> None:
        """Take over a prebuilt workload."""
        owner = controller_of(workload)
        if owner is None or owner.get("uid") != uid_of(self.object):
            add_owner(workload, self.object, controller=True)
            mark_with_uid(workload, self.object)
            self.store.write(workload)

    def new_workload(self) -> JsonObject:
        """Build the workload that the job needs. Raises JobError."""
        extra = self.kind.slice_name(self.object) if is_elastic(self.object) else ""
        keys_to_copy = self.context.settings.label_keys_to_copy
        workload = new_workload(name_for(self.object, extra), self.object, self.pod_sets(), keys_to_copy)
        mark_with_uid(workload, self.object)
        add_owner(workload, self.object, controller=True)
        return workload

    # Start and stop

    def runs_as(self, workload: JsonObject) -> bool:
        """Return whether the job, which is not suspended, runs as the workload was admitted."""
        return True

    def start(self, workload: JsonObject, infos: Sequence[PodSetInfo]) -> None:
        """Start the job. Raises CannotStart, and then leaves the job unchanged."""
        started = copied(self.object)
        self.kind.start(started, infos, self.context)
        self.object = started
        self.store.write(started)

    def suspend(self) -> None:
        self.kind.suspend(self.object)
        self.store.write(self.object)

    def stop(self, workload: JsonObject | None, reason: str, message: str) -> None:
        """Stop the job. Raises JobError if the job cannot be restored yet; it is suspended even then."""
        try:
            self.kind.stop(self.object, self.own_infos(workload))
        finally:
            self.store.write(self.object)

    def own_infos(self, workload: JsonObject | None) -> list[PodSetInfo] | None:
        """Return the values of each pod set that a stopped job gets back."""
        return infos_of_workload(workload)

    def annotate(self) -> None:
        """Add to an elastic job the annotations that its kind requires."""
        wanted = self.kind.elastic_annotations(self.object, self.context)
        if any(annotations_of(self.object).get(key) != value for key, value in wanted.items()):
            mapping_at(self.object, "metadata", "annotations").update(wanted)
            self.store.write(self.object)


def workloads_of(owner: tuple[str, str, str], namespace: str, store: ObjectStore) -> list[JsonObject]:
    """Return the workloads that an object owns, given its apiVersion, kind and name."""
    return [
        workload
        for workload in store.list("Workload", namespace)
        if any(
            (ref.get("apiVersion"), ref.get("kind"), ref.get("name")) == owner
            for ref in workload["metadata"].get("ownerReferences") or ()
        )
    ]
