"""Jobs of a cluster that lives, as the controller's pass sees them: rows as objects, and what a pass changed of them.

The pass runs over a store that holds one job and its workloads. What it wrote of the workloads goes into their rows;
that the job is to start or to stop is told to the push, which writes into the cluster what the rows say.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from accounts.services.object_status import server_metadata
from clusters.client import JsonObject
from clusters.jobs.framework import conditions as state
from clusters.jobs.framework.context import JobContext
from clusters.jobs.framework.controller import reconcile
from clusters.jobs.framework.errors import JobError
from clusters.jobs.framework.job_kind import JobKind
from clusters.jobs.framework.managed_job import ManagedJob
from clusters.jobs.framework.manifest import (
    controller_of,
    dig,
    is_being_deleted,
    mapping_at,
    name_of,
    namespace_of,
    owner_reference,
    uid_of,
)
from clusters.jobs.framework.pod_set_info import PodSetInfo
from clusters.jobs.framework.store import ObjectStore
from queues.manifests import kueue_keys as keys
from queues.manifests.workload_object import write_workload
from queues.models import Job, Workload
from queues.services.workload_objects import workload_spec, workload_status
from scheduling.model.times import rfc3339
from scheduling.model.vocabulary import WorkloadStatus

_CLASS: Final = "WorkloadPriorityClass"
_FOLLOWED: Final = (keys.QUEUE_NAME, keys.PRIORITY_CLASS)


@dataclass(slots=True)
class Changes:
    """The changes that a pass makes to a job and its workloads, whose rows are named by the names of their objects.

    * finished: why, and the message.
    * reclaimable: pods per pod set that will not be needed again.
    * changed: the objects whose spec, or gates, the workloads are to have.
    * held: workloads whose quota goes back while the job is on hold, and why; unheld: those of a job that no longer is.
    * removed: workloads that the job does not need.
    * created: a new workload of the job; taken: a prebuilt one that is its own from now on.
    * told: whether the job is to start or to stop.
    * failure: why the pass ended early.
    """

    finished: dict[str, tuple[str, str]] = field(default_factory=dict)
    reclaimable: dict[str, dict[str, int]] = field(default_factory=dict)
    changed: dict[str, JsonObject] = field(default_factory=dict)
    held: dict[str, str] = field(default_factory=dict)
    unheld: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    created: JsonObject | None = None
    taken: str = ""
    told: bool = False
    failure: str = ""


class LiveJob(ManagedJob):
    """A job that the push starts and stops: the pass says which of both is to be done.

    The job of a row that was submitted here is what its row says, and its workloads are changed together with it.
    """

    submitted_here = False
    told = False
    """Whether it is to start or to stop."""
    taken = ""
    """The prebuilt workload that it takes over."""

    def is_active(self) -> bool:
        # The push lets no job start while pods of it are left that were not admitted, and a stopped workload gives its
        # quota back when its pods are gone: a workload need not wait for that to be made.
        return False

    def is_equivalent(self, workload: JsonObject) -> bool:
        # A prebuilt workload gets the job's own templates when it is taken over, if the sizes are the same. In one that
        # a Kueue left, whose pods have fields that we do not know, nothing is known to differ.
        unknown = any(not pod_set["template"].get("spec") for pod_set in workload["spec"]["podSets"])
        new = controller_of(workload) is None
        return self.submitted_here or new or unknown or super().is_equivalent(workload)

    def own(self, workload: JsonObject) -> None:
        if controller_of(workload) is None:
            self.taken = name_of(workload)

    def start(self, workload: JsonObject, infos: Sequence[PodSetInfo]) -> None:
        self.kind.resume(self.object)
        self.told = True

    def stop(self, workload: JsonObject | None, reason: str, message: str) -> None:
        if not self.is_suspended():
            self.told = True
            self.kind.suspend(self.object)


def look_at(
    kind: JobKind, job: JsonObject, row: Job | None, workloads: Sequence[Workload], context: JobContext
) -> Changes:
    """One pass over a job and the rows of its workloads, with a prebuilt one that it names among them."""
    shown = shown_job(kind, job, row, workloads)
    before = {each.name: shown_workload(each, shown) for each in workloads if not _is_removed(each, row)}
    store = ObjectStore([shown, *before.values()])
    live = LiveJob(kind, namespace_of(shown), name_of(shown), context, store)
    live.submitted_here = row is not None and not row.found_in_cluster
    failure = ""
    try:
        reconcile(live)
    except JobError as error:
        failure = str(error)
    changes = _changes(before, store.list("Workload"))
    if not kind.is_on_hold(shown):
        changes.unheld = [each.name for each in workloads if each.on_hold]
    changes.told, changes.taken, changes.failure = live.told, live.taken, failure
    return changes


def _is_removed(workload: Workload, row: Job | None) -> bool:
    """Whether a pass has removed the workload, which was stopped since: its job gets another one of that name."""
    kept = row is not None and row.deletion_requested_at is not None
    return not kept and workload.deletion_requested_at is not None and workload.status == WorkloadStatus.FINISHED


def shown_job(kind: JobKind, job: JsonObject, row: Job | None, workloads: Sequence[Workload]) -> JsonObject:
    """The job with the queue and the class that its workloads have, unless its owner changed the labels since.

    A job whose queue label was removed stays in its queue, and the priority of a workload that was changed here stays.
    An elastic job that was submitted here has the size that its row says.
    """
    shown = copy.deepcopy(job)
    if row is None:
        return shown
    here = not row.found_in_cluster
    labels = mapping_at(shown, "metadata", "labels")
    known: Mapping[str, str] = {key: row.labels.get(key, "") for key in _FOLLOWED}
    latest = max(workloads, key=lambda each: (each.status != WorkloadStatus.FINISHED, each.pk), default=None)
    if latest is not None:
        follows_class = latest.priority_class_kind == _CLASS
        has = {keys.QUEUE_NAME: latest.queue_name}
        has[keys.PRIORITY_CLASS] = latest.priority_class_name if follows_class else ""
    else:
        has = dict(known)
    for key in _FOLLOWED:
        unchanged = labels.get(key, "") == known[key] or (key == keys.QUEUE_NAME and not labels.get(key))
        if here or unchanged:
            labels.pop(key, None)
            if has[key]:
                labels[key] = has[key]
    if here and kind.elastic and row.annotations.get(keys.ELASTIC_JOB) == "true":
        kind.resize(shown, copy.deepcopy(row.manifest))
    return shown


def shown_workload(row: Workload, job: JsonObject) -> JsonObject:
    """A row as the object that its job's controller reads."""
    shown = write_workload(workload_spec(row))
    metadata = shown["metadata"]
    metadata |= {**server_metadata(row), "finalizers": [keys.RESOURCE_IN_USE]}
    if row.job_id is not None:
        metadata["ownerReferences"] = [owner_reference(job, controller=True)]
    shown["status"] = {**workload_status(row), "conditions": [dict(each) for each in row.conditions]}
    _complete_conditions(row, shown)
    return shown


def _complete_conditions(row: Workload, shown: JsonObject) -> None:
    """Has the conditions say what the row's columns say: the row of a job that has ended while pods of it are left is
    not Finished yet, and its object is."""
    ending = row.ending or {}
    reserved = row.quota_reserved_at is not None
    holds = {
        state.QUOTA_RESERVED: reserved,
        state.ADMITTED: reserved and (row.admitted_at is not None or row.status == WorkloadStatus.ADMITTED),
        state.EVICTED: row.evicted_at is not None,
        state.FINISHED: row.status == WorkloadStatus.FINISHED or row.ending is not None,
    }
    now = rfc3339(row.updated_at)
    for kind, wanted in holds.items():
        known = state.condition_of(shown, kind)
        if state.is_true(shown, kind) == wanted:
            continue
        reason = ending.get("reason", "") if kind == state.FINISHED else ""
        reason = str(reason or (known or {}).get("reason") or kind)
        state.set_condition(shown, kind, wanted, reason, str((known or {}).get("message") or ""), now)


def _changes(before: Mapping[str, JsonObject], left: Iterable[JsonObject]) -> Changes:
    changes = Changes()
    after = {name_of(each): each for each in left}
    for name, old in before.items():
        new = after.get(name)
        if new is None or not uid_of(new) or (is_being_deleted(new) and not is_being_deleted(old)):
            changes.removed.append(name)
            continue
        if state.is_finished(new) and not state.is_finished(old):
            condition = state.condition_of(new, state.FINISHED) or {}
            changes.finished[name] = (str(condition.get("reason")), str(condition.get("message") or ""))
            continue
        if state.is_on_hold(new) and not state.is_on_hold(old):
            changes.held[name] = str((state.condition_of(new, state.QUOTA_RESERVED) or {}).get("message") or "")
        if new["spec"] != old["spec"] or _gates(new) != _gates(old):
            changes.changed[name] = new
        reclaimable = _reclaimable(new)
        if reclaimable != _reclaimable(old):
            changes.reclaimable[name] = reclaimable
    changes.created = next((each for each in after.values() if not uid_of(each)), None)
    return changes


def _gates(workload: JsonObject) -> str:
    return str(dig(workload, "metadata", "annotations", keys.ADMISSION_GATED_BY) or "")


def _reclaimable(workload: JsonObject) -> dict[str, int]:
    entries: Iterable[Mapping[str, Any]] = dig(workload, "status", "reclaimablePods") or ()
    found = {str(each["name"]): int(each["count"]) for each in entries}
    return {str(each["name"]): found.get(each["name"], 0) for each in workload["spec"]["podSets"]}
