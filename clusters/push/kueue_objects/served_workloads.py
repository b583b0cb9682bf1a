"""Writes rows of workloads to Workload objects, with their status, in a cluster where kueueweb serves them."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from enum import Enum
from functools import partial
from math import inf
from typing import Any, Final

from django.conf import settings
from django.db import connection

from accounts.models import Cluster
from clusters.api_errors import ClusterError, ClusterUnreachable
from clusters.api_objects import JsonObject, Kind
from clusters.client import ClusterClient
from clusters.jobs.registry import JOB_KINDS
from clusters.push.event_recorder import Notice, Regarding
from clusters.push.kueue_objects.refusals import note_refusal
from clusters.push.kueue_objects.served_status import tell_status
from clusters.push.workload_events import events_of_created
from clusters.request_threads import carry_out
from clusters.served.agreement import ABSENT, Side, Step, settle
from clusters.served.contents import FINALIZER, last_edit, note_absence
from clusters.served.kept_entries import keep_all
from clusters.served.workload_specs import (
    KIND,
    WorkloadRow,
    read_spec,
    spec_in,
    status_in,
    workload_content,
    workload_rows,
)
from queues.manifests.pod_group import POD_GROUP
from queues.models import ServedObject, Workload
from queues.services.pod_groups.life import is_composed
from queues.services.workload_objects import workload_manifest, workload_status
from scheduling.model.vocabulary import WorkloadStatus

_CHUNK: Final = 16
"""Objects that are read and written together, before the time is looked at."""
_SWEEP_SECONDS: Final = 0.5
"""How long one sweep writes the workloads whose jobs wait for it, and how long the others: the next jobs to start wait
for both. A busy API server writes 40 objects a second."""
_STATUS_SECONDS: Final = 1.0
"""One status per second for each object. As in Kueue, a status that starts or stops pods is written before they do."""
_JOB_UID: Final = "kueue.x-k8s.io/job-uid"
_CHANGED: Final = """
    SELECT workload.id, workload.namespace, workload.name FROM queues_workload AS workload
        LEFT JOIN queues_servedobject AS served ON served.cluster_id = workload.cluster_id AND served.kind = 'Workload'
            AND served.namespace = workload.namespace AND served.name = workload.name
    WHERE workload.cluster_id = %(cluster)s
        AND (served.id IS NULL AND workload.status <> 'Finished' OR served.row_version <> workload.xmin::text::bigint)
        AND (served.retry_at IS NULL OR served.retry_at <= %(now)s)
        AND (
            workload.push_sequence > workload.pushed_sequence
            OR NOT %(unpushed)s AND (served.status_told_at IS NULL OR served.status_told_at <= %(recent)s)
        )
    ORDER BY workload.id
"""
_ORPHANS: Final = """
    SELECT served.id FROM queues_servedobject AS served
    WHERE served.cluster_id = %(cluster)s AND served.kind = 'Workload' AND (served.agreed <> '' OR served.uid = '')
        AND NOT EXISTS (
        SELECT FROM queues_workload AS workload WHERE workload.cluster_id = served.cluster_id
            AND workload.namespace = served.namespace AND workload.name = served.name)
"""


class _Result(Enum):
    """The change of an object's entry that follows from its requests."""

    KEEP = "keep"
    FORGET = "forget"
    NONE = "none"


class ServedWorkloads:
    """One sweep over the workloads that have changed since their objects were written.

    * all_at_once: leave none for another sweep.
    """

    def __init__(
        self,
        cluster: Cluster,
        client: ClusterClient,
        resource: Kind,
        clock: Callable[[], float],
        *,
        all_at_once: bool = False,
    ) -> None:
        self._cluster = cluster
        self._client = client
        self._resource = resource
        self._now = datetime.fromtimestamp(clock(), UTC)
        self._parents: Mapping[str, str] = {}
        self._created = events_of_created(cluster, client)
        self._seconds = inf if all_at_once else _SWEEP_SECONDS

    def tell_unpushed(self) -> frozenset[int]:
        """Write the workloads whose jobs or pods the sweep changes. Returns the keys of the rows that are left for the
        next sweep, with their jobs. Raises ClusterUnreachable; refused objects are tried again later."""
        return frozenset(pk for pk, _, _ in self._tell_changed(unpushed=True))

    def tell(self) -> frozenset[tuple[str, str]]:
        """Write all other workloads. Returns (namespace, name) of the workloads that are left for the next sweep.

        Raises as above.
        """
        orphans = [(entry, None) for entry in ServedObject.objects.filter(pk__in=self._orphans())]
        for start in range(0, len(orphans), _CHUNK):
            self._tell_together(orphans[start : start + _CHUNK])
        return frozenset((namespace, name) for _, namespace, name in self._tell_changed(unpushed=False))

    def _tell_changed(self, *, unpushed: bool) -> Sequence[tuple[int, str, str]]:
        """Write the first ones; return (key, namespace, name) of the others."""
        recent = self._now - timedelta(seconds=_STATUS_SECONDS)
        values: dict[str, Any] = {"cluster": self._cluster.pk, "now": self._now, "recent": recent, "unpushed": unpushed}
        with connection.cursor() as cursor:
            cursor.execute(_CHANGED, values)
            changed: list[tuple[int, str, str]] = cursor.fetchall()
        until = time.monotonic() + self._seconds
        for start in range(0, len(changed), _CHUNK):
            if start and time.monotonic() >= until:
                return changed[start:]
            self._tell_keys([f"{namespace}/{name}" for _, namespace, name in changed[start : start + _CHUNK]])
        return ()

    def _tell_keys(self, keys: Collection[str]) -> None:
        names = {key.rpartition("/")[2] for key in keys}
        # Read the entries first: a change that arrives in between then meets an older version and is not
        # overwritten with an outdated row.
        known = {entry.key: entry for entry in self._entries(names)}
        rows = workload_rows(self._cluster, keys)
        told = [(known.get(key) or self._new_entry(row.row), row) for key, row in rows.items()]
        # A variant's object names its parent's, so it is written after it.
        for has_parent in (False, True):
            wave = [(entry, row) for entry, row in told if bool(row.row.parent_name) is has_parent]
            if wave:
                parents = {row.row.parent_name for _, row in wave} if has_parent else ()
                self._parents = {entry.key: entry.uid for entry in self._entries(parents)} if has_parent else {}
                self._tell_together(wave)

    def _entries(self, names: Collection[str]) -> Sequence[ServedObject]:
        return list(ServedObject.objects.filter(cluster=self._cluster, kind=KIND, name__in=names))

    def _new_entry(self, row: Workload) -> ServedObject:
        return ServedObject(cluster=self._cluster, kind=KIND, namespace=row.namespace, name=row.name)

    def _orphans(self) -> list[int]:
        with connection.cursor() as cursor:
            cursor.execute(_ORPHANS, {"cluster": self._cluster.pk})
            return [pk for (pk,) in cursor.fetchall()]

    def _tell_together(self, told: Sequence[tuple[ServedObject, WorkloadRow | None]]) -> None:
        """Write some objects, and store their known state."""

        def store(done: Mapping[int, _Result | ClusterError]) -> None:
            for number, result in done.items():
                if isinstance(result, ClusterError) and not isinstance(result, ClusterUnreachable):
                    self._note_refusal(told[number][0], result)
                elif result is _Result.FORGET:
                    told[number][0].forget()
            keep_all([told[number][0] for number, result in done.items() if result is _Result.KEEP])

        results = carry_out([partial(self._tell_one, entry, row) for entry, row in told], store)
        unreachable = next((result for result in results if isinstance(result, ClusterUnreachable)), None)
        if unreachable is not None:
            raise unreachable

    def _note_refusal(self, entry: ServedObject, refusal: ClusterError) -> None:
        if refusal.conflict and entry.pk is not None:
            # The watcher reads the change first; then the object is written again.
            ServedObject.objects.filter(pk=entry.pk).update(status_told_at=self._now)
        else:
            note_refusal(self._cluster, entry, refusal, self._now)

    def _tell_one(self, entry: ServedObject, row: WorkloadRow | None) -> _Result:
        """Write an object. Only requests: it runs in a thread of its own. Raises ClusterError."""
        if row is None:
            self._delete(entry)
            return _Result.FORGET
        settled = settle(entry.agreed, row.side, Side(entry.content, entry.edited_at or self._now))
        if settled.step is Step.FOLLOW:
            return _Result.NONE  # the watcher handles it
        if settled.step is Step.TELL:
            self._tell_spec(entry, row)
        if entry.uid and not entry.deleting and not _is_to_be_evicted(row.row):
            self._tell_status(entry, row)
        if entry.uid and entry.held and row.row.status == WorkloadStatus.FINISHED:
            self._release(entry)
        if entry.uid:
            entry.agreed = row.side.content
        entry.row_version = row.version
        entry.problem, entry.failures, entry.retry_at = "", 0, None
        return _Result.KEEP

    def _tell_spec(self, entry: ServedObject, row: WorkloadRow) -> None:
        if row.side.content == ABSENT:
            self._client.delete(self._resource, entry.namespace, entry.name, uid=entry.uid)
            entry.content, entry.deleting = ABSENT, True
        elif entry.uid:
            if row.row.quota_reserved_at is None:
                self._tell_status(entry, row)  # most of a spec can't change while the object says it holds quota
            self._replace(entry, row)
        elif not _ends(row) and _is_whole(row):
            self._create(entry, row)

    def _create(self, entry: ServedObject, row: WorkloadRow) -> None:
        manifest = workload_manifest(row.row)
        metadata = {key: manifest["metadata"][key] for key in ("name", "namespace") if key in manifest["metadata"]}
        for key in ("labels", "annotations"):
            if manifest["metadata"].get(key):
                metadata[key] = manifest["metadata"][key]
        owner = self._owner(row)
        parent = self._parent(row)
        if parent is not None:
            metadata["ownerReferences"] = [parent]
        if owner is not None:
            metadata["ownerReferences"] = [owner]
            metadata["labels"] = {**(metadata.get("labels") or {}), _JOB_UID: owner["uid"]}
        body = {
            "apiVersion": self._resource.api_version,
            "kind": KIND,
            "metadata": metadata,
            "spec": spec_in(manifest["spec"], self._resource.api_version),
        }
        try:
            stored = self._client.create(self._resource, body)
        except ClusterError as error:
            there = self._client.get(self._resource, entry.namespace, entry.name) if error.conflict else None
            if there is None:
                raise
            # Another client made it first, or Kueue left it: it becomes this workload's object and follows its row.
            stored = there
        else:
            self._note_creation(entry, owner)
        self._note(entry, stored, row)
        if entry.content != row.side.content and not entry.deleting:
            self._replace(entry, row)

    def _note_creation(self, entry: ServedObject, owner: JsonObject | None) -> None:
        if owner is None or not settings.KUBERNETES_EVENTS:
            return
        job = Regarding(owner["apiVersion"], owner["kind"], entry.namespace, owner["name"], owner["uid"])
        self._created.append(Notice(job, "CreatedWorkload", f"Created Workload: {entry.key}", self._now))

    def _owner(self, row: WorkloadRow) -> JsonObject | None:
        """Return the job as the cluster knows it; None if it does not exist yet, or if pods without an owner are the
        job."""
        job = row.row.job
        kind = JOB_KINDS.get(job.kind) if job is not None else None
        if job is None or kind is None:
            return None
        uid = str(job.uid)
        if not job.found_in_cluster:
            there = self._client.get(kind.resource, job.namespace, job.name)
            if there is None:
                return None
            uid = there["metadata"]["uid"]
        reference = {"apiVersion": kind.api_version, "kind": job.kind, "name": job.name, "uid": uid}
        return {**reference, "controller": True, "blockOwnerDeletion": True}

    def _parent(self, row: WorkloadRow) -> JsonObject | None:
        """Return the parent's object, which owns its variants; None if the row is no variant. Raises a ClusterError
        while it does not exist."""
        name = row.row.parent_name
        if not name:
            return None
        uid = self._parents.get(f"{row.row.namespace}/{name}")
        if not uid:
            raise ClusterError(404, "NotFound", f"its parent Workload {name} does not exist yet")
        reference = {"apiVersion": self._resource.api_version, "kind": KIND, "name": name, "uid": uid}
        return {**reference, "controller": True, "blockOwnerDeletion": True}

    def _replace(self, entry: ServedObject, row: WorkloadRow) -> None:
        """Write our row into the current object. Raises a ClusterError with `conflict` if it was changed."""
        live = self._client.get(self._resource, entry.namespace, entry.name)
        if live is None:
            note_absence(entry, self._now)
            self._create(entry, row)
            return
        if live["metadata"]["resourceVersion"] != entry.resource_version:
            raise ClusterError(409, "Conflict", f"{entry} has since been changed in the cluster")
        spec = spec_in(workload_manifest(row.row)["spec"], self._resource.api_version)
        if "active" not in spec:
            spec["active"] = True
        if row.row.job_id is not None:
            # The pods are the job's, and follow from it: Kueue's defaults of their templates stay.
            spec["podSets"] = _resized((live.get("spec") or {}).get("podSets") or (), spec["podSets"])
        metadata = live["metadata"]
        owner = None if metadata.get("ownerReferences") else self._owner(row)
        if owner is not None:  # the job of a prebuilt workload has taken it over
            labels = {**(metadata.get("labels") or {}), _JOB_UID: owner["uid"]}
            metadata = {**metadata, "ownerReferences": [owner], "labels": labels}
        body = {**live, "metadata": metadata, "spec": {**(live.get("spec") or {}), **spec}}
        stored = self._client.replace(self._resource, body)
        self._note(entry, stored, row)

    def _note(self, entry: ServedObject, stored: JsonObject, row: WorkloadRow) -> None:
        metadata = stored["metadata"]
        entry.uid, entry.resource_version = metadata["uid"], metadata["resourceVersion"]
        entry.object_generation = metadata.get("generation") or 0
        entry.deleting = bool(metadata.get("deletionTimestamp"))
        entry.held = FINALIZER in (metadata.get("finalizers") or ())
        spec, _ = read_spec(stored, self._resource.api_version)
        entry.content = workload_content(spec, has_job=row.row.job_id is not None)
        edited_at, edited_by = last_edit(stored)
        entry.edited_at, entry.edited_by = edited_at, edited_by[:150]
        entry.status = stored.get("status") or {}

    def _release(self, entry: ServedObject) -> JsonObject | None:
        """Remove kueueweb's finalizer from the object, which no longer holds anything; return the object, None if it is
        gone.
        """
        live = self._client.get(self._resource, entry.namespace, entry.name)
        if live is None or live["metadata"]["uid"] != entry.uid:
            return None
        finalizers = live["metadata"].get("finalizers") or []
        if FINALIZER in finalizers:
            left = [each for each in finalizers if each != FINALIZER]
            metadata = {"finalizers": left, "resourceVersion": live["metadata"]["resourceVersion"]}
            stored = self._client.patch(self._resource, entry.namespace, entry.name, {"metadata": metadata})
            if live["metadata"]["resourceVersion"] == entry.resource_version:
                entry.resource_version = stored["metadata"]["resourceVersion"]  # otherwise the watcher reads the change
        entry.held = False
        return live

    def _delete(self, entry: ServedObject) -> None:
        if entry.uid and self._release(entry) is not None:
            self._client.delete(self._resource, entry.namespace, entry.name, uid=entry.uid)

    def _tell_status(self, entry: ServedObject, row: WorkloadRow) -> None:
        status = status_in(workload_status(row.row), self._resource.api_version)
        try:
            if tell_status(self._client, self._resource, entry, status):
                entry.status_told_at = self._now
        except ClusterError as refusal:
            if not refusal.not_found:
                raise
            entry.deleting = True  # nothing more to write; the watcher notes the deletion


def _resized(there: Sequence[JsonObject], wanted: Sequence[JsonObject]) -> Sequence[JsonObject]:
    """Return the pod sets that are there with the numbers of pods that are wanted; the wanted ones where the names
    differ."""
    sizes = {each["name"]: {key: each.get(key) for key in ("count", "minCount")} for each in wanted}
    if [each["name"] for each in there] != [*sizes]:
        return wanted
    resized = ({**each, **sizes[each["name"]]} for each in there)
    return [{key: value for key, value in each.items() if value is not None} for each in resized]


def _is_to_be_evicted(row: Workload) -> bool:
    """Return whether another program has set Evicted and the engine has not decided so yet: until then its condition
    stays."""
    return bool(row.requeue_message) and row.evicted_at is None and row.finished_at is None


def _is_whole(row: WorkloadRow) -> bool:
    """Return whether the workload may be seen: that of a group, as in Kueue, once all of its pods were there."""
    job = row.row.job
    return job is None or job.kind != POD_GROUP or is_composed(row.row)


def _ends(row: WorkloadRow) -> bool:
    """Return whether it has ended, or its job was deleted: no object is created for it any more, and the cluster would
    remove it."""
    job = row.row.job
    withdrawn = job is not None and job.deletion_requested_at is not None
    return row.row.status == WorkloadStatus.FINISHED or row.row.ending is not None or withdrawn
