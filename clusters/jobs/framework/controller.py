"""The controller of all kinds of jobs: one pass over a job brings the job and its workload one step closer to each
other.

A pass writes its changes into the store and ends; passes are repeated until none changes anything. The order of the
steps is Kueue's.
"""

from __future__ import annotations

from typing import Final

from clusters.jobs.framework import conditions as state
from clusters.jobs.framework.context import MULTIKUEUE_CONTROLLER, JobContext
from clusters.jobs.framework.errors import CannotStart, JobError, PendingJob
from clusters.jobs.framework.identity import is_elastic, managed_ancestor, prebuilt_workload_of, queue_name_of
from clusters.jobs.framework.managed_job import ManagedJob, workloads_of
from clusters.jobs.framework.manifest import (
    JsonObject,
    controller_of,
    is_being_deleted,
    mapping_at,
    name_of,
    namespace_of,
    remove_finalizer,
    uid_of,
)
from clusters.jobs.framework.pod_set_info import infos_of_admission
from clusters.jobs.framework.pod_sets import counts_of
from clusters.jobs.framework.slices import fit_slices, latest_with_quota, link_slice, replaced_by, unfinished
from clusters.jobs.framework.store import ObjectStore
from clusters.jobs.framework.workloads import follow_gates, priority_of, set_priority, update_priorities
from queues.manifests import kueue_keys as keys

WORKLOAD_DELETED: Final = "WorkloadDeleted"
WORKLOAD_EVICTED: Final = "WorkloadEvicted"
NO_MATCHING_WORKLOAD: Final = "NoMatchingWorkload"
NOT_ADMITTED: Final = "NotAdmitted"
_REQUEUED_AFTER: Final = ("Preempted", "NodeFailures")
"""Evictions after which a workload may be requeued at once; after others an operator or controller must decide."""


def reconcile(job: ManagedJob) -> None:
    """Run one pass. Raises JobError; earlier writes stay."""
    try:
        _Pass(job).run()
    except PendingJob:
        return


class _Pass:
    """A pass over one job. Each step returns whether it ends the pass."""

    def __init__(self, job: ManagedJob) -> None:
        self.job = job
        self.context: JobContext = job.context
        self.store: ObjectStore = job.store
        self.now = job.context.now

    def run(self) -> None:
        job = self.job
        if job.is_skipped():
            return
        if job.is_gone:
            job.finish_orphans()
            if job.found:
                job.finalize()
            return
        if self.context.objects.get("Namespace", "", job.namespace) is None:
            return
        if not self.context.namespace_is_managed(job.namespace):
            return
        ancestor = None if job.is_top_level else managed_ancestor(job.object, self.context)
        if not self._is_ours(ancestor):
            return
        if ancestor is not None:
            self._suspend_child(ancestor)
        else:
            self._handle(self._one_workload())

    def _is_ours(self, ancestor: JsonObject | None) -> bool:
        if self.context.settings.manage_jobs_without_queue_name or queue_name_of(self.job.object):
            return True
        return ancestor is not None and bool(queue_name_of(ancestor))

    def _suspend_child(self, ancestor: JsonObject) -> None:
        """Suspend a job inside a managed job unless the outer job is admitted; while one of the two is elastic, only if
        the outer job is evicted or has no workload."""
        job = self.job
        if job.outcome().finished or job.is_suspended():
            return
        owner = (ancestor["apiVersion"], ancestor["kind"], name_of(ancestor))
        workloads = unfinished(workloads_of(owner, namespace_of(ancestor), self.store))
        if not workloads:
            job.suspend()
            return
        newest = workloads[-1]
        # While an elastic ancestor grows, its new slice is not admitted and its pods run on.
        elastic = is_elastic(job.object) or is_elastic(ancestor)
        if state.is_evicted(newest) if elastic else not state.is_admitted(newest):
            job.suspend()

    def _handle(self, workload: JsonObject | None) -> None:
        if workload is None:
            if not self.job.kind.is_on_hold(self.job.object) and not self._job_finished(None):
                self._make_workload()
            return
        steps = (
            self._own_conditions, self._workload_finished, self._workload_deleted, self._on_hold, self._job_finished,
            self._reclaimable, self._pods_ready, self._evicted, self._suspended, self._running,
        )  # fmt: skip
        for step in steps:
            if step(workload):
                return

    # The one workload of the job

    def _one_workload(self) -> JsonObject | None:
        job = self.job
        if prebuilt_workload_of(job.object):
            return self._prebuilt_workload()
        if is_elastic(job.object):
            pod_sets = job.pod_sets()
            job.annotate()
            workload, compatible = fit_slices(job.workloads(), pod_sets, self.store, self.now)
            if compatible:
                self._follow_priority_of_slices(workload)
                return workload
        match, others = job.find_match()
        stale = None
        if match is None and others and job.is_suspended() and not state.has_quota(others[0]):
            stale, *others = others
        if match is None and not job.is_suspended():
            self._stop_without_match(others)
        self._delete(others, match)
        if stale is not None:
            return self._update_to_match(stale)
        if match is not None:
            self._follow_labels(match)
        return match

    def _prebuilt_workload(self) -> JsonObject | None:
        job = self.job
        workload = self.store.get("Workload", job.namespace, prebuilt_workload_of(job.object))
        if workload is None:
            return None
        owner = controller_of(workload)
        if owner is not None and owner.get("uid") != uid_of(job.object):
            return None
        job.own(workload)
        if is_elastic(job.object) and replaced_by(workload) is not None:
            return workload
        if job.is_equivalent(workload):
            return workload
        message = "The prebuilt workload is out of sync with its user job"
        if state.finish(workload, "OutOfSync", message, self.now):
            self.store.write(workload)
        return None

    def _follow_priority_of_slices(self, workload: JsonObject | None) -> None:
        """Copy the priority of the slice that holds quota to its replacement."""
        live = [] if workload is None else [workload]
        holding = latest_with_quota(self.job.workloads())
        if holding is not None and all(each["metadata"]["name"] != holding["metadata"]["name"] for each in live):
            live.append(holding)
        own_class = self.job.kind.priority_class(self.job.object)
        for changed in update_priorities(live, self.job.object, own_class, self.context):
            self.store.write(changed)

    def _stop_without_match(self, others: list[JsonObject]) -> None:
        if self.job.outcome().finished:
            return
        if len(others) == 1:
            message = "No matching Workload; restoring pod templates according to existent Workload"
            self.job.stop(others[0], NO_MATCHING_WORKLOAD, message)
        else:
            self.job.stop(None, NO_MATCHING_WORKLOAD, "Missing Workload; unable to restore pod templates")

    def _delete(self, workloads: list[JsonObject], match: JsonObject | None) -> None:
        deleted = 0
        for workload in workloads:
            remove_finalizer(workload, keys.RESOURCE_IN_USE)
            self.store.write(workload)
            if not is_being_deleted(workload):
                self.store.delete(workload, self.now)
                deleted += 1
        if deleted:
            found = "no matching" if match is None else "extra"
            raise JobError(f"{found} workloads: deleted {len(workloads)} workloads")

    def _update_to_match(self, workload: JsonObject) -> JsonObject:
        fresh = self.job.new_workload()
        self._prepare(fresh, workload["spec"].get("active"))
        workload["spec"] = fresh["spec"]
        self.store.write(workload)
        return workload

    def _follow_labels(self, workload: JsonObject) -> None:
        job = self.job
        changed = follow_gates(workload, job.object)
        own_class = job.kind.priority_class(job.object)
        if update_priorities([workload], job.object, own_class, self.context) or changed:
            self.store.write(workload)

    def _prepare(self, workload: JsonObject, active: bool | None) -> None:
        """Fill in the fields of a new workload other than its pod sets. Raises JobError."""
        job = self.job
        follow_gates(workload, job.object)
        own_class = job.kind.priority_class(job.object)
        set_priority(workload, priority_of(job.object, workload["spec"]["podSets"], own_class, self.context))
        if is_elastic(job.object):
            link_slice(workload, job.workloads())
        elif active is not None:
            workload["spec"]["active"] = active

    def _make_workload(self) -> None:
        job = self.job
        prebuilt = prebuilt_workload_of(job.object)
        if prebuilt:
            job.stop(None, NO_MATCHING_WORKLOAD, "missing workload")
        if job.is_active() and not is_elastic(job.object):
            return  # its pods must stop first
        if prebuilt:
            raise JobError("prebuilt workload not found")
        workload = job.new_workload()
        self._prepare(workload, None)
        self.store.create(workload)

    # The steps

    def _own_conditions(self, workload: JsonObject) -> bool:
        if not self.job.set_own_conditions(workload):
            return False
        self.store.write(workload)
        return True

    def _workload_finished(self, workload: JsonObject) -> bool:
        if not state.is_finished(workload):
            return False
        self.job.finalize()
        self._let_go(workload)
        return True

    def _workload_deleted(self, workload: JsonObject) -> bool:
        if not is_being_deleted(workload):
            return False
        self.job.stop(workload, WORKLOAD_DELETED, "Workload is deleted")
        self._let_go(workload)
        return True

    def _let_go(self, workload: JsonObject) -> None:
        if remove_finalizer(workload, keys.RESOURCE_IN_USE):
            self.store.write(workload)

    def _on_hold(self, workload: JsonObject) -> bool:
        if not self.job.kind.is_on_hold(self.job.object):
            return False
        if state.has_quota(workload) and state.release_quota(workload, state.ON_HOLD, "Job is on hold", self.now):
            self.store.write(workload)
        return True

    def _job_finished(self, workload: JsonObject | None) -> bool:
        outcome = self.job.outcome()
        if not outcome.finished:
            return False
        reason = "Succeeded" if outcome.success else "Failed"
        if workload is not None and state.finish(workload, reason, outcome.message, self.now):
            self.store.write(workload)
        self.job.finalize()
        return True

    def _reclaimable(self, workload: JsonObject) -> bool:
        found = self.job.reclaimable_pods()
        if found is None:
            return False
        sizes = counts_of(workload["spec"]["podSets"])
        limited = {each["name"]: min(each["count"], sizes.get(each["name"], each["count"])) for each in found}
        known = mapping_at(workload, "status").get("reclaimablePods") or []
        if limited == {each["name"]: each["count"] for each in known}:
            return False
        workload["status"]["reclaimablePods"] = [{"name": name, "count": count} for name, count in limited.items()]
        self.store.write(workload)
        return True

    def _pods_ready(self, workload: JsonObject) -> bool:
        if not self.context.settings.wait_for_pods_ready:
            return False
        status, reason, message = self._readiness(workload)
        known = state.condition_of(workload, state.PODS_READY) or {}
        if (known.get("status"), known.get("reason")) == ("True" if status else "False", reason):
            return False
        state.set_condition(workload, state.PODS_READY, status, reason, message, self.now)
        self.store.write(workload)
        return True

    def _readiness(self, workload: JsonObject) -> tuple[bool, str, str]:
        known = state.condition_of(workload, state.PODS_READY) or {}
        waiting = (False, "WaitForStart", "Not all pods are ready or succeeded")
        if not state.is_admitted(workload):
            return waiting
        if self.job.pods_ready():
            lost_before = known.get("reason") in ("WaitForRecovery", "Recovered")
            message = "All pods reached readiness and the workload is running"
            return True, "Recovered" if lost_before else "Started", message
        if known.get("status") == "True" or known.get("reason") == "WaitForRecovery":
            return False, "WaitForRecovery", "At least one pod has failed, waiting for recovery"
        return waiting

    def _evicted(self, workload: JsonObject) -> bool:
        if not state.is_evicted(workload):
            return False
        eviction = state.condition_of(workload, state.EVICTED) or {}
        reason, message = str(eviction.get("reason", "")), str(eviction.get("message", ""))
        self.job.stop(workload, WORKLOAD_EVICTED, message)
        if not state.has_quota(workload) or self.job.is_active():
            return True
        requeued = reason in _REQUEUED_AFTER and not state.is_single_pod(workload)
        state.set_condition(workload, state.REQUEUED, requeued, reason, message, self.now)
        state.release_quota(workload, state.PENDING_EVALUATION, message, self.now)
        self.store.write(workload)
        return True

    def _suspended(self, workload: JsonObject) -> bool:
        if not self.job.is_suspended():
            return False
        if state.is_admitted(workload):
            self._start(workload)
            return True
        queue = queue_name_of(self.job.object)
        if self.job.follows_queue_changes() and (workload["spec"].get("queueName") or "") != queue:
            workload["spec"]["queueName"] = queue
            self.store.write(workload)
        return True

    def _start(self, workload: JsonObject) -> None:
        try:
            infos = infos_of_admission(workload, self.context)
            if self.job.starts_in_this_cluster_only and runs_elsewhere(workload, self.context):
                return
            self.job.start(workload, infos)
        except CannotStart as conflict:
            if state.finish(workload, "FailedToStart", str(conflict), self.now):
                self.store.write(workload)

    def _running(self, workload: JsonObject) -> bool:
        admitted = state.is_admitted(workload)
        # The pods of an elastic job wait at their own gate: the job itself need not be stopped.
        waits = not admitted and is_elastic(self.job.object)
        if not waits and not (admitted and self.job.runs_as(workload)):
            self.job.stop(workload, NOT_ADMITTED, "Not admitted by cluster queue")
        return True


def runs_elsewhere(workload: JsonObject, context: JobContext) -> bool:
    """Return whether another cluster runs the job, because one of the workload's admission checks is MultiKueue's."""
    for check in workload["status"].get("admissionChecks") or ():
        found = context.objects.get("AdmissionCheck", "", check["name"])
        if found is not None and found["spec"].get("controllerName") == MULTIKUEUE_CONTROLLER:
            return True
    return False
