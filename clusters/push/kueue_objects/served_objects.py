"""Writes rows to Kueue's configuration objects, with their status, in a cluster where kueueweb serves them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Mapping
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, Final

from accounts.models import Cluster
from accounts.services.object_status import STATUS_READERS
from clusters.api_errors import ClusterError, ClusterUnreachable
from clusters.api_objects import JsonObject
from clusters.api_objects import Kind as Resource
from clusters.client import ClusterClient
from clusters.push.kueue_objects.refusals import note_refusal
from clusters.push.kueue_objects.served_events import tell_of_overwriting
from clusters.push.kueue_objects.served_status import differs, tell_status
from clusters.push.namespaces import make_namespace
from clusters.request_threads import carry_out
from clusters.served.agreement import ABSENT, Side, Step, settle
from clusters.served.contents import FINALIZER, WITH_FINALIZER, note, note_absence, read_object
from clusters.served.kept_entries import keep_all
from clusters.served.served_rows import Row, entries, read_rows, row_versions, split
from kinds.declaration import Kind
from queues.kinds import KINDS
from queues.models import ServedObject
from queues.services.configuration import objects

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
        for name, keys in self._due().items():
            self._tell_kind(KINDS[name], keys)

    def tell_statuses(self, now: float) -> bool:
        """Write the statuses that have changed. Returns whether some are left, which were written less than a second
        ago. Raises ClusterUnreachable; a refused one is tried again later."""
        at = datetime.fromtimestamp(now, UTC)
        kinds = [kind for name, kind in KINDS.items() if name in self._served and name in STATUS_READERS]
        left = [self._tell_statuses(kind, at) for kind in kinds]
        return any(left)

    def _tell_kind(self, kind: Kind, keys: Collection[str]) -> None:
        names = {split(key)[1] for key in keys}
        known = {entry.key: entry for entry in entries(self._cluster, kind.name).filter(name__in=names)}
        rows = read_rows(self._cluster, kind, keys)
        for key in sorted(keys):
            namespace, name = split(key)
            entry = known.get(key) or ServedObject(
                cluster=self._cluster, kind=kind.name, namespace=namespace, name=name
            )
            try:
                self._settle(kind, entry, rows.get(key))
            except ClusterUnreachable:
                raise
            except ClusterError as refusal:
                note_refusal(self._cluster, entry, refusal, self._now)

    def _due(self) -> dict[str, set[str]]:
        """Return by kind, in their order, the keys of the objects whose rows have changed since both agreed, are new,
        or were deleted."""
        kinds = [kind for name, kind in KINDS.items() if name in self._served]
        due: dict[str, set[str]] = {kind.name: set() for kind in kinds}
        columns = ("kind", "namespace", "name", "row_version", "retry_at", "uid", "held", "deleting")
        known = {
            (kind, namespace, name): (version, retry_at, kind in WITH_FINALIZER and uid and not held and not deleting)
            for kind, namespace, name, version, retry_at, uid, held, deleting in ServedObject.objects.filter(
                cluster=self._cluster, kind__in=due
            ).values_list(*columns)
        }
        versions = row_versions(self._cluster, kinds)
        for key in known.keys() | versions.keys():
            version, retry_at, is_to_be_held = known.get(key, (None, None, False))
            if (version != versions.get(key) or is_to_be_held) and (retry_at is None or retry_at <= self._now):
                kind, namespace, name = key
                due[kind].add(f"{namespace}/{name}" if namespace else name)
        return {kind: keys for kind, keys in due.items() if keys}

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

    def _tell_statuses(self, kind: Kind, at: datetime) -> bool:
        # An object without a stored version has changed: the watcher updates the row first.
        there = entries(self._cluster, kind.name).exclude(uid="").exclude(resource_version="").filter(deleting=False)
        known = {entry.key: entry for entry in there}
        if not known:
            return False
        names = {split(key)[1] for key in known}
        keyed = {_key(kind, row): row for row in objects(self._cluster, kind).filter(name__in=names)}
        rows = [row for key, row in keyed.items() if key in known]
        statuses = STATUS_READERS[kind.name](self._cluster, rows) if rows else []
        resource = self._served[kind.name]
        compared = [(known[_key(kind, row)], status) for row, status in zip(rows, statuses, strict=True)]
        changed = [(entry, status) for entry, status in compared if differs(resource, entry, status)]
        recent = at - timedelta(seconds=STATUS_SECONDS)
        told = [(entry, status) for entry, status in changed if not recent < (entry.status_told_at or recent) <= at]
        results = carry_out([partial(tell_status, self._client, resource, entry, status) for entry, status in told])
        kept = [entry for (entry, _), result in zip(told, results, strict=True) if self._is_kept(entry, result, at)]
        keep_all(kept)
        unreachable = [result for result in results if isinstance(result, ClusterUnreachable)]
        if unreachable:
            raise unreachable[0]
        return len(told) < len(changed)

    def _is_kept(self, entry: ServedObject, result: bool | ClusterError, at: datetime) -> bool:
        """Return whether to store the entry after its status was written, or the server has refused it."""
        if not isinstance(result, ClusterError):
            entry.status_told_at = at
            return True
        if result.not_found:
            entry.deleting = True  # nothing more to write; the watcher deletes the row
            return True
        if not isinstance(result, ClusterUnreachable):
            if not result.conflict:  # otherwise the watcher reads the change first
                _log.warning("Cluster %s refuses the status of %s: %s", self._cluster.name, entry, result)
            ServedObject.objects.filter(pk=entry.pk).update(status_told_at=at)
        return False


def _key(kind: Kind, row: Any) -> str:
    return f"{row.namespace}/{row.name}" if kind.namespaced else str(row.name)


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
