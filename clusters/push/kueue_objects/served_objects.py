"""Writes rows to Kueue's configuration objects, with their status, in a cluster where kueueweb serves them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from django.db.models import Q

from accounts.models import Cluster
from accounts.services.object_status import STATUS_READERS, Status
from clusters.api_errors import ClusterError, ClusterUnreachable
from clusters.api_objects import JsonObject
from clusters.api_objects import Kind as Resource
from clusters.client import ClusterClient
from clusters.push.kueue_objects.refusals import note_refusal
from clusters.push.kueue_objects.served_events import tell_of_overwriting
from clusters.push.kueue_objects.served_status import tell_status
from clusters.push.namespaces import make_namespace
from clusters.served.agreement import ABSENT, Side, Step, settle
from clusters.served.contents import FINALIZER, WITH_FINALIZER, note, note_absence, read_object
from clusters.served.served_rows import Row, entries, read_rows, row_version, split
from kinds.declaration import Kind
from queues.kinds import KINDS
from queues.models import ServedObject

_log = logging.getLogger(__name__)

STATUS_SECONDS: Final = 1.0
"""The least time between two status writes of one object."""
_MAX_ATTEMPTS: Final = 3


class ServedObjects:
    """One sweep over the rows of all kinds that the cluster serves.

    * served: the resource of each kind, in the version in which the cluster serves it.
    """

    def __init__(
        self, cluster: Cluster, client: ClusterClient, served: Mapping[str, Resource], clock: Callable[[], float]
    ) -> None:
        self._cluster = cluster
        self._client = client
        self._served = served
        self._now = datetime.fromtimestamp(clock(), UTC)

    def tell(self) -> None:
        """Write the objects, each after the objects that it refers to. Raises ClusterUnreachable; a refused object is
        tried again later."""
        kinds = [kind for name, kind in KINDS.items() if name in self._served]
        for kind in kinds:
            self._tell_kind(kind)
        for kind in kinds:
            if kind.name in STATUS_READERS:
                self._tell_statuses(kind)

    def _tell_kind(self, kind: Kind) -> None:
        due = self._due(kind)
        rows = read_rows(self._cluster, kind, due.keys()) if due else {}
        for key in sorted(due):
            entry = due[key]
            try:
                self._settle(kind, entry, rows.get(key))
            except ClusterUnreachable:
                raise
            except ClusterError as refusal:
                note_refusal(self._cluster, entry, refusal, self._now)

    def _due(self, kind: Kind) -> dict[str, ServedObject]:
        """Return the entry of each object whose row has changed since both agreed, is new, or was deleted."""
        known = {entry.key: entry for entry in entries(self._cluster, kind.name)}
        columns = ["name", "row_version", *(["namespace"] if kind.namespaced else [])]
        rows = kind.model.objects.filter(cluster=self._cluster).annotate(row_version=row_version(kind.model))
        versions = {
            "/".join(filter(None, (row.get("namespace", ""), row["name"]))): row["row_version"]
            for row in rows.values(*columns)
        }
        due: dict[str, ServedObject] = {}
        for key, version in versions.items():
            namespace, name = split(key)
            entry = known.get(key) or ServedObject(
                cluster=self._cluster, kind=kind.name, namespace=namespace, name=name
            )
            if entry.row_version != version or _is_to_be_held(entry):
                due[key] = entry
        due |= {key: entry for key, entry in known.items() if key not in versions}
        return {key: entry for key, entry in due.items() if entry.retry_at is None or entry.retry_at <= self._now}

    def _settle(self, kind: Kind, entry: ServedObject, row: Row | None, attempt: int = 1) -> None:
        side = row.side if row is not None else Side(ABSENT, self._now)
        settled = settle(entry.agreed, side, Side(entry.content, entry.edited_at or self._now))
        if settled.step is Step.NOTHING:
            if row is None and entry.uid:
                self._let_go(kind, entry)
            else:
                self._hold(kind, entry)
                self._agree(entry, row)
        elif settled.step is Step.TELL:
            if settled.overwrites:
                tell_of_overwriting(self._client, self._served[kind.name], entry, row, self._now)
            self._write(kind, entry, row, attempt)
        # otherwise the watcher updates the row

    def _write(self, kind: Kind, entry: ServedObject, row: Row | None, attempt: int) -> None:
        resource = self._served[kind.name]
        if row is None or row.side.content == ABSENT:
            self._delete(kind, entry, row)
            return
        wanted = kind.write(kind.spec_of(row.row), resource.api_version)
        try:
            stored = self._create(kind, wanted) if not entry.uid else self._replace(kind, entry, wanted)
        except ClusterError as error:
            if not (error.conflict or (entry.uid and error.not_found)) or attempt == _MAX_ATTEMPTS:
                raise
            if self._look_again(kind, entry, row):
                self._settle(kind, entry, row, attempt + 1)
            return
        read = read_object(kind, stored, resource.api_version.rpartition("/")[2])
        note(entry, read)
        # The row follows the server's defaults, as an edit without an author.
        entry.agreed = row.side.content
        self._agree(entry, row)

    def _create(self, kind: Kind, wanted: JsonObject) -> JsonObject:
        resource = self._served[kind.name]
        if kind.name in WITH_FINALIZER:
            wanted = {**wanted, "metadata": {**wanted["metadata"], "finalizers": [FINALIZER]}}
        try:
            return self._client.create(resource, wanted)
        except ClusterError as error:
            namespace = wanted["metadata"].get("namespace", "")
            if not error.not_found or not namespace or not make_namespace(self._cluster, self._client, namespace):
                raise
            return self._client.create(resource, wanted)

    def _replace(self, kind: Kind, entry: ServedObject, wanted: JsonObject) -> JsonObject:
        """Replace the author's fields of the object in the cluster, if it has not changed since it was last read."""
        resource = self._served[kind.name]
        live = self._client.get(resource, entry.namespace, entry.name)
        if live is None or live["metadata"]["resourceVersion"] != entry.resource_version:
            raise ClusterError(409, "Conflict", f"{entry} has since been changed in the cluster")
        metadata = {key: value for key, value in live["metadata"].items() if key not in ("labels", "annotations")}
        finalizers = list(metadata.get("finalizers") or ())
        if kind.name in WITH_FINALIZER and FINALIZER not in finalizers:
            metadata["finalizers"] = [*finalizers, FINALIZER]
        body = {key: value for key, value in wanted.items() if key not in ("metadata", "spec")}
        if "spec" in wanted:
            body["spec"] = {**_unknown(kind, live.get("spec") or {}), **wanted["spec"]}
        kept = {key: live[key] for key in ("status",) if key in live}
        return self._client.replace(resource, {**kept, **body, "metadata": {**metadata, **wanted["metadata"]}})

    def _delete(self, kind: Kind, entry: ServedObject, row: Row | None) -> None:
        resource = self._served[kind.name]
        if row is None:
            self._release(kind, entry)
        self._client.delete(resource, entry.namespace, entry.name, uid=entry.uid)
        if row is None:
            entry.forget()
            return
        entry.content, entry.deleting = ABSENT, True
        self._agree(entry, row)

    def _let_go(self, kind: Kind, entry: ServedObject) -> None:
        """Let the cluster delete an object that is no longer used: its row is deleted."""
        self._release(kind, entry)
        entry.forget()

    def _hold(self, kind: Kind, entry: ServedObject) -> None:
        """The finalizer that kueueweb's webhook sets at creation, for an object that was created without it."""
        if not _is_to_be_held(entry):
            return
        resource = self._served[kind.name]
        live = self._client.get(resource, entry.namespace, entry.name)
        if live is None or live["metadata"]["uid"] != entry.uid or live["metadata"].get("deletionTimestamp"):
            return
        finalizers = list(live["metadata"].get("finalizers") or ())
        if FINALIZER not in finalizers:
            metadata = {
                "finalizers": [*finalizers, FINALIZER], "resourceVersion": live["metadata"]["resourceVersion"],
            }  # fmt: skip
            self._client.patch(resource, entry.namespace, entry.name, {"metadata": metadata})
        entry.held = True

    def _release(self, kind: Kind, entry: ServedObject) -> None:
        resource = self._served[kind.name]
        live = self._client.get(resource, entry.namespace, entry.name)
        finalizers = (live or {"metadata": {}})["metadata"].get("finalizers") or []
        if live is None or live["metadata"]["uid"] != entry.uid or FINALIZER not in finalizers:
            return
        left = [each for each in finalizers if each != FINALIZER]
        metadata = {"finalizers": left, "resourceVersion": live["metadata"]["resourceVersion"]}
        self._client.patch(resource, entry.namespace, entry.name, {"metadata": metadata})

    def _look_again(self, kind: Kind, entry: ServedObject, row: Row) -> bool:
        """Note the object as another client has changed it meanwhile; False if the watcher has done so."""
        resource = self._served[kind.name]
        live = self._client.get(resource, entry.namespace, entry.name)
        if live is None:
            note_absence(entry, self._now)
        else:
            note(entry, read_object(kind, live, resource.api_version.rpartition("/")[2]))
        obj = Side(entry.content, entry.edited_at or self._now)
        if settle(entry.agreed, row.side, obj).step is Step.FOLLOW:
            entry.resource_version = ""  # the watcher reads the change and updates the row
        return entry.keep()

    @staticmethod
    def _agree(entry: ServedObject, row: Row | None) -> None:
        """Note that this version of the row is in the cluster."""
        if row is None:
            entry.forget()
            return
        entry.row_version, entry.agreed = row.version, row.side.content
        entry.problem, entry.failures, entry.retry_at = "", 0, None
        entry.keep()

    def _tell_statuses(self, kind: Kind) -> None:
        recent = self._now - timedelta(seconds=STATUS_SECONDS)
        # An object without a stored version has changed: the watcher updates the row first.
        there = entries(self._cluster, kind.name).exclude(uid="").exclude(resource_version="").filter(deleting=False)
        due = {entry.key: entry for entry in there.filter(Q(status_told_at=None) | Q(status_told_at__lte=recent))}
        rows = [row.row for row in read_rows(self._cluster, kind, due.keys()).values()] if due else []
        statuses = STATUS_READERS[kind.name](self._cluster, rows) if rows else []
        for row, status in zip(rows, statuses, strict=True):
            key = f"{row.namespace}/{row.name}" if kind.namespaced else row.name
            self._tell_status(kind, due[key], status)

    def _tell_status(self, kind: Kind, entry: ServedObject, status: Status) -> None:
        try:
            told = tell_status(self._client, self._served[kind.name], entry, status)
        except ClusterUnreachable:
            raise
        except ClusterError as refusal:
            if refusal.not_found:
                entry.deleting = True  # nothing more to write; the watcher deletes the row
                entry.keep()
                return
            if not refusal.conflict:  # otherwise the watcher reads the change first
                _log.warning("Cluster %s refuses the status of %s: %s", self._cluster.name, entry, refusal)
            ServedObject.objects.filter(pk=entry.pk).update(status_told_at=self._now)
            return
        if told:
            entry.status_told_at = self._now
            entry.keep()


def _is_to_be_held(entry: ServedObject) -> bool:
    return entry.kind in WITH_FINALIZER and bool(entry.uid) and not entry.held and not entry.deleting


def _unknown(kind: Kind, spec: Mapping[str, Any]) -> JsonObject:
    """Return the fields of a spec that our rows do not have: they stay with the manager that wrote them."""
    known = set(_known(kind))
    return {key: value for key, value in spec.items() if key not in known}


def _known(kind: Kind) -> Iterable[str]:
    for field in kind.stored:
        places = [field.path, *(place.path for place in field.older.values() if place is not None)]
        yield from (place.split(".")[1] for place in places if place.startswith("spec."))
