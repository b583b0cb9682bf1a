"""Runs the controller's pass over a job of the live cluster: shows rows as objects, and returns the changes of the
pass.

The pass runs over a store that holds one job and its workloads. The watcher stores its changes of the workloads in
their rows, and the push writes its changes of the job to the cluster.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from accounts.services.object_status import server_metadata
from clusters.api_objects import JsonObject
from clusters.jobs.families.serving import ServingKind
from clusters.jobs.framework import conditions as state
from clusters.jobs.framework.context import JobContext
from clusters.jobs.framework.controller import reconcile, runs_elsewhere
from clusters.jobs.framework.errors import CannotStart, JobError, PendingJob
from clusters.jobs.framework.identity import is_elastic
from clusters.jobs.framework.job_kind import JobKind
from clusters.jobs.framework.managed_job import ManagedJob
from clusters.jobs.framework.manifest import (
    annotations_of,
    controller_of,
    copied,
    dig,
    is_being_deleted,
    labels_of,
    name_of,
    namespace_of,
    owner_reference,
    uid_of,
)
from clusters.jobs.framework.pod_set_info import PodSetInfo, infos_of_admission, infos_of_workload
from clusters.jobs.framework.pod_sets import counts_of
from clusters.jobs.framework.store import ObjectStore
from clusters.jobs.owned_keys import WORKLOAD_UID_LABEL, owned_keys
from clusters.jobs.registry import JOB_KINDS
from queues.manifests import kueue_keys as keys
from queues.manifests.bounds import MAX_REPLICAS
from queues.manifests.workload import PodSetSpec, WorkloadSpec
from queues.manifests.workload_object import write_workload
from queues.models import Job, Workload
from queues.services.job_changes import pod_set_specs
from queues.services.workload_objects import workload_spec, workload_status
from scheduling.model.times import rfc3339
from scheduling.model.vocabulary import WorkloadStatus

_CLASS: Final = "WorkloadPriorityClass"
_FOLLOWED: Final = (keys.QUEUE_NAME, keys.PRIORITY_CLASS)
_GATES: Final = (keys.ADMISSION_GATED_BY, keys.START_AFTER)
_UNREAD: Final = frozenset({"managedFields"})
"""Metadata that no rule reads and that is half of a job: it is not copied with each pass."""

Place = Callable[[str, Sequence[PodSetInfo]], None]
"""Adds the chosen nodes and our labels to the changes that an admission makes to pods. Its first argument is the
workload's name."""


@dataclass(slots=True)
class Changes:
    """The changes that a pass makes to a job and its workloads, whose rows are named by the names of their objects.

    * finished: the reason and the message.
    * reclaimable: pods per pod set that will not be needed again.
    * changed: the objects whose spec or gates the workloads get.
    * held: workloads that release their quota while the job is on hold, and the reason; unheld: workloads of a job that
      no longer exists.
    * removed: workloads that the job does not need.
    * created: new workloads of the job; taken: prebuilt workloads that belong to it from now on; awaited: whether a
      workload that it needs does not exist yet.
    * job: the desired job, if it starts, stops or changes.
    * waits: whether it may start once its pods of an earlier admission have stopped.
    * failure: the reason why the pass ended early.
    """

    finished: dict[str, tuple[str, str]] = field(default_factory=dict)
    reclaimable: dict[str, dict[str, int]] = field(default_factory=dict)
    changed: dict[str, JsonObject] = field(default_factory=dict)
    held: dict[str, str] = field(default_factory=dict)
    unheld: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    created: list[JsonObject] = field(default_factory=list)
    taken: list[str] = field(default_factory=list)
    awaited: bool = False
    job: JsonObject | None = None
    waits: bool = False
    failure: str = ""


class LiveJob(ManagedJob):
    """A job of the live cluster, whose pods get nodes and devices from us.

    A job that was submitted here is read from its row, not from the cluster, and its workloads are changed together
    with it.
    """

    submitted_here = False
    place: Place | None = None
    waits = False
    """Whether the job's start waits until its pods of an earlier admission have stopped."""
    taken = ""
    """The prebuilt workload that it takes over."""
    placed: Collection[str] = ()
    """The names of its workloads whose pods have nodes from us."""

    def is_active(self) -> bool:
        # No job starts while pods of it are left that were not admitted, and a stopped workload gives its quota back
        # when its pods are gone: a workload need not wait for that to be made.
        return False

    def is_suspended(self) -> bool:
        # One whose templates still say for which workload it was started is not stopped altogether.
        return super().is_suspended() and not was_started(self.object)

    def is_equivalent(self, workload: JsonObject) -> bool:
        # A manager's workload gets the job's own templates when it is taken over, as its cluster completed them. In one
        # that a Kueue left, whose pods have fields that we do not know, nothing is known to differ.
        unknown = any(not pod_set["template"].get("spec") for pod_set in workload["spec"]["podSets"])
        half_stopped = super().is_suspended() and was_started(self.object)
        copied = self.taken == name_of(workload) and keys.MULTIKUEUE_ORIGIN in labels_of(workload)
        if copied or unknown or half_stopped:
            return True
        return self._has_admitted_size(workload) if self.submitted_here else super().is_equivalent(workload)

    def _has_admitted_size(self, workload: JsonObject) -> bool:
        """Return whether a job that runs has no more pods than were admitted."""
        running = self._running_pod_sets(workload)
        if running is None or self.is_suspended():
            return True
        return counts_of(self.pod_sets()) == counts_of(running)

    def own(self, workload: JsonObject) -> None:
        if controller_of(workload) is None:
            self.taken = name_of(workload)
            super().own(workload)

    def runs_as(self, workload: JsonObject) -> bool:
        if self.kind.is_suspended(self.object):
            return self._resumes(workload)
        if self._runs_elsewhere(workload):
            return True
        found = {*values_of(self.object.get("spec"), WORKLOAD_UID_LABEL)}
        if not found:  # a Kueue may have started it, of a version that names no workload in the template
            named = {*values_of(self.object.get("spec"), keys.WORKLOAD)}
            return named == {name_of(workload)} if named else name_of(workload) not in self.placed
        # A job that is resized runs on under the next slice of its workload.
        return is_elastic(self.object) or found == {uid_of(workload)}

    def _resumes(self, workload: JsonObject) -> bool:
        """Restart a job that its owner suspended. Return whether its templates are still those of the workload's only
        admission.
        """
        if state.condition_of(workload, state.EVICTED) is not None:
            return False
        resumed: JsonObject = copied(self.object)
        try:
            infos = infos_of_admission(workload, self.context)
            if self.place is not None:
                self.place(name_of(workload), infos)
            self.kind.start(resumed, infos, self.context)
        except CannotStart:
            return False
        self.kind.suspend(resumed)
        if _written(resumed) != _written(self.object):
            return False
        self.start(workload, infos_of_admission(workload, self.context))
        return True

    def start(self, workload: JsonObject, infos: Sequence[PodSetInfo]) -> None:
        elsewhere = self._runs_elsewhere(workload)
        if not self.submitted_here and not elsewhere and not self.kind.is_stopped(self.object):
            self.waits = True
            raise PendingJob("its pods have not stopped yet")
        if self.place is not None:
            self.place(name_of(workload), infos)
        super().start(workload, infos)

    def stop(self, workload: JsonObject | None, reason: str, message: str) -> None:
        super().stop(workload, reason, message)
        infos = self.own_infos(workload)
        if infos is not None and was_started(self.object):
            self.kind.restore(self.object, infos)
            self.store.write(self.object)

    def own_infos(self, workload: JsonObject | None) -> list[PodSetInfo] | None:
        return own_infos(workload)

    def _runs_elsewhere(self, workload: JsonObject) -> bool:
        return runs_elsewhere(workload, self.context)


def look_at(
    kind: JobKind,
    job: JsonObject,
    row: Job | None,
    workloads: Sequence[Workload],
    context: JobContext,
    place: Place | None = None,
) -> Changes:
    """Run one pass over a job and the rows of its workloads; a prebuilt workload that the job names is among them. A
    job that is part of another job has that job's workloads."""
    shown = shown_job(kind, job, row, workloads)
    before = {each.name: shown_workload(each, shown) for each in workloads if not is_removed(each, row)}
    store = ObjectStore([shown, *before.values()])
    live = LiveJob(kind, namespace_of(shown), name_of(shown), context, store)
    live.submitted_here, live.place = row is not None and not row.found_in_cluster, place
    live.placed = {each.name for each in workloads if any(pod_set.nodes for pod_set in each.pod_sets.all())}
    failure = ""
    try:
        reconcile(live)
    except JobError as error:
        failure = str(error)
    changes = changes_of(before, store.present("Workload"))
    if row is not None and not kind.is_on_hold(shown):
        changes.unheld = [each.name for each in workloads if each.on_hold]
    # The size of an elastic job that was submitted here changes once the slice of that size is admitted.
    waits = any(each.status not in (WorkloadStatus.ADMITTED, WorkloadStatus.FINISHED) for each in workloads)
    if _written(shown if waits else job) != _written(live.object):
        changes.job = live.object
    changes.waits, changes.taken, changes.failure = live.waits, [live.taken] if live.taken else [], failure
    return changes


def look_at_set(
    kind: ServingKind, job: JsonObject, row: Job | None, workloads: Sequence[Workload], context: JobContext
) -> Changes:
    """Run one pass over an object whose pods wait, and over the rows of its workloads. A workload without quota follows
    the number of replicas. Kueue's workload keeps an earlier number, and then matches no pods."""
    shown = shown_job(kind, job, row, workloads)
    if kind.workload_count(shown) > MAX_REPLICAS:
        count = kind.workload_count(shown)
        return Changes(failure=f"{kind.size_path}: Invalid value {count}: must be at most {MAX_REPLICAS}")
    before = {each.name: shown_workload(each, shown) for each in workloads if not is_removed(each, row)}
    store = ObjectStore([shown, *before.values()])
    failure = ""
    try:
        kind.reconcile(namespace_of(shown), name_of(shown), context, store)
        _follow_sizes(kind, shown, context, store)
    except JobError as error:
        failure = str(error)
    workloads_left = store.present("Workload")
    changes = changes_of(before, workloads_left)
    left = {name_of(each): each for each in workloads_left}
    changes.unheld = [
        name for name, old in before.items() if state.is_on_hold(old) and not state.is_on_hold(left.get(name, old))
    ]
    changes.failure = failure
    if not kind.workload_count(shown) and (row is None or row.found_in_cluster):  # REST decides about its own
        # Kueue holds the workload once it has quota. Until then it would take quota from others for no pods.
        waiting = [name for name, old in before.items() if name in left and _waits(old)]
        changes.held |= dict.fromkeys(waiting, f"{kind.kind} scaled to zero; workload on hold")
    if keys.MULTIKUEUE_ORIGIN in labels_of(shown):
        owned = {each.name for each in workloads if each.job_id is not None}
        missing = [name for name in kind.workload_names(shown) if name not in owned]
        changes.taken = [name for name in missing if name in before]
        changes.awaited = len(changes.taken) < len(missing)
    return changes


def _waits(workload: JsonObject) -> bool:
    """Return whether a workload waits for quota."""
    return not (state.has_quota(workload) or state.is_finished(workload) or state.is_on_hold(workload))


def _follow_sizes(kind: ServingKind, job: JsonObject, context: JobContext, store: ObjectStore) -> None:
    sizes = counts_of(kind.pod_sets(job, context)) if kind.workload_count(job) else {}
    for workload in store.list("Workload", namespace_of(job)):
        pod_sets = workload["spec"]["podSets"]
        if sizes.keys() != counts_of(pod_sets).keys() or state.has_quota(workload) or state.is_finished(workload):
            continue
        for pod_set in pod_sets:
            pod_set["count"] = sizes[pod_set["name"]]
        store.write(workload)


def _written(job: JsonObject) -> tuple[Any, ...]:
    """Return the parts of a job that a pass writes: a batch Job that stops loses its start time."""
    return job.get("spec"), annotations_of(job), dig(job, "status", "startTime")


def stopped_job(kind: JobKind, job: JsonObject, workload: JsonObject) -> JsonObject | None:
    """Return the suspended job with its own templates; None if it already is in that state."""
    stopped: JsonObject = copied(job)
    kind.suspend(stopped)
    kind.restore(stopped, own_infos(workload) or ())
    return None if _written(stopped) == _written(job) else stopped


def own_infos(workload: JsonObject | None) -> list[PodSetInfo] | None:
    """Return the values of each pod set that a stopped job gets back. The templates of a slice repeat the marks of the
    pods that ran at that time. If the marks were restored, they would keep the job from other queues."""
    infos = infos_of_workload(workload)
    if workload is not None and keys.REPLACED_SLICE in annotations_of(workload):
        for info in infos or ():
            for name in owned_keys({"labels": info.labels}).get("labels", ()):
                del info.labels[name]
            info.annotations.pop(keys.WORKLOAD, None)
    return infos


def was_started(job: Mapping[str, Any]) -> bool:
    """Return whether the job's templates name the workload for which it was started."""
    return any(True for _ in values_of(job.get("spec"), WORKLOAD_UID_LABEL))


def values_of(value: Any, key: str) -> Iterator[Any]:
    """Yield the values under a key, at any depth."""
    if isinstance(value, dict):
        for name, item in value.items():
            if name == key:
                yield item
            else:
                yield from values_of(item, key)
    elif isinstance(value, list):
        for item in value:
            yield from values_of(item, key)


def is_removed(workload: Workload, row: Job | None) -> bool:
    """Return whether a pass has removed the workload, which has stopped since. Its job gets another workload with that
    name."""
    kept = row is not None and row.deletion_requested_at is not None
    return not kept and workload.deletion_requested_at is not None and workload.status == WorkloadStatus.FINISHED


def shown_job(kind: JobKind, job: JsonObject, row: Job | None, workloads: Sequence[Workload]) -> JsonObject:
    """Return the job with the queue and the class of its workloads, unless its owner has changed the labels since.

    A job whose queue label was removed stays in its queue, and the priority of a workload that was changed here stays.
    The size of an elastic job that was submitted here is the size in its row. Everything except the labels is shared
    with the original: a pass reads it, and changes a copy.
    """
    metadata = {key: value for key, value in job["metadata"].items() if key not in _UNREAD}
    labels: dict[str, str] = dict(metadata.get("labels") or {})
    shown: JsonObject = {**job, "metadata": {**metadata, "labels": labels}}
    if row is None:
        return shown
    here = not row.found_in_cluster
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
        shown = copied(shown)
        kind.resize(shown, copied(row.manifest))
    return shown


def shown_workload(row: Workload, job: JsonObject) -> JsonObject:
    """Return a row as the object that its job's controller reads."""
    shown = write_workload(workload_spec(row))
    metadata = shown["metadata"]
    metadata |= {**server_metadata(row), "finalizers": [keys.RESOURCE_IN_USE]}
    if row.job is not None and row.job.kind in JOB_KINDS:  # no object stands for a group of pods
        controls = not JOB_KINDS[row.job.kind].groups_pods
        metadata["ownerReferences"] = [owner_reference(_owner(row.job, job), controller=controls)]
    shown["status"] = {**workload_status(row), "conditions": [dict(each) for each in row.conditions]}
    _complete_conditions(row, shown)
    return shown


def _owner(row: Job, job: JsonObject) -> JsonObject:
    """Return the owner of the workload: the job itself, or the object of another job's row."""
    if (row.kind, row.name) == (job["kind"], name_of(job)):
        return job
    metadata = {"namespace": row.namespace, "name": row.name, "uid": str(row.uid)}
    return {"apiVersion": JOB_KINDS[row.kind].api_version, "kind": row.kind, "metadata": metadata}


def _complete_conditions(row: Workload, shown: JsonObject) -> None:
    """Complete the conditions from the row's columns. If a job has ended while some of its pods are left, the row is
    not Finished yet, but its object is."""
    ending = row.ending or {}
    reserved = row.quota_reserved_at is not None
    holds = {
        state.QUOTA_RESERVED: reserved,
        state.ADMITTED: reserved and (row.admitted_at is not None or row.status == WorkloadStatus.ADMITTED),
        state.EVICTED: row.evicted_at is not None,
        state.FINISHED: row.status == WorkloadStatus.FINISHED or row.ending is not None,
    }
    now = rfc3339(row.updated_at)
    if row.on_hold and not reserved:
        state.set_condition(shown, state.QUOTA_RESERVED, False, state.ON_HOLD, row.on_hold, now)
    for kind, wanted in holds.items():
        known = state.condition_of(shown, kind)
        if state.is_true(shown, kind) == wanted:
            continue
        reason = ending.get("reason", "") if kind == state.FINISHED else ""
        reason = str(reason or (known or {}).get("reason") or kind)
        state.set_condition(shown, kind, wanted, reason, str((known or {}).get("message") or ""), now)


def changes_of(before: Mapping[str, JsonObject], left: Iterable[JsonObject]) -> Changes:
    """Return the changes of workloads that a pass left in its store; `before` are the workloads that it read."""
    changes = Changes()
    after = {name_of(each): each for each in left}
    for name, old in before.items():
        new = after.get(name)
        if new is old:
            continue  # the pass has not written it
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
    changes.created = [each for each in after.values() if not uid_of(each)]
    return changes


def _gates(workload: JsonObject) -> dict[str, str]:
    found = annotations_of(workload)
    return {key: found[key] for key in _GATES if found.get(key)}


def _reclaimable(workload: JsonObject) -> dict[str, int]:
    entries: Iterable[Mapping[str, Any]] = dig(workload, "status", "reclaimablePods") or ()
    found = {str(each["name"]): int(each["count"]) for each in entries}
    return {str(each["name"]): found.get(each["name"], 0) for each in workload["spec"]["podSets"]}


def changed_spec(row: Workload, obj: JsonObject, read: Callable[[], tuple[PodSetSpec, ...]]) -> WorkloadSpec:
    """Return the row's spec, updated from the object. `read` reads the job's pods again if more than their number
    differs."""
    spec = obj["spec"]
    reference = spec.get("priorityClassRef") or {}
    annotations = {key: value for key, value in row.annotations.items() if key not in _GATES}
    return replace(
        workload_spec(row),
        queue_name=spec.get("queueName") or "",
        priority=spec.get("priority"),
        priority_class_kind=reference.get("kind", ""),
        priority_class_name=reference.get("name", ""),
        maximum_execution_seconds=spec.get("maximumExecutionTimeSeconds"),
        annotations={**annotations, **_gates(obj)},
        pod_sets=_pod_sets(pod_set_specs(row), spec["podSets"], read),
    )


def _pod_sets(
    there: Sequence[PodSetSpec], wanted: Sequence[JsonObject], read: Callable[[], tuple[PodSetSpec, ...]]
) -> tuple[PodSetSpec, ...]:
    alike = [each.name for each in there] == [each["name"] for each in wanted] and all(
        dict(old.template) == new["template"] and dict(old.topology_request) == (new.get("topologyRequest") or {})
        for old, new in zip(there, wanted, strict=True)
    )
    if not alike:
        return read()
    return tuple(
        replace(old, count=new["count"], min_count=new.get("minCount")) for old, new in zip(there, wanted, strict=True)
    )
