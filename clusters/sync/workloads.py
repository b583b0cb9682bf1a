"""Kueue's Workload objects of a cluster that it runs -> our rows."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime

from django.db import DataError, transaction

from accounts.models import Cluster, ClusterMode
from clusters.api_objects import JsonObject, Kind
from clusters.client import Listing, WatchEvent
from clusters.sync.ownership import Ownership, owner_uids, parent_workload
from clusters.sync.present import name_key, present, uid_of
from foundation.exceptions import ManifestErrors
from queues.manifests.workload_object import read_workload
from queues.manifests.workload_status import read_workload_status
from queues.services.mirror.mirrored_workloads import (
    MirroredWorkload,
    forget_workloads,
    keep_workloads,
    note_changes,
    store_workloads,
)
from scheduling.manifest import FieldReader, MistakeReason, ValidationReport

_log = logging.getLogger(__name__)


class WorkloadSync:
    """Keeps workloads' rows in step with the Workload objects of one cluster."""

    def __init__(self, cluster: Cluster, kind: Kind, ownership: Ownership) -> None:
        self._cluster = cluster
        self._version = kind.api_version
        self._ownership = ownership
        self._versions: dict[str, str] = {}
        """uid -> the resourceVersion that is stored."""
        self._heard: dict[str, tuple[str, str, str]] = {}
        """uid -> namespace, name and the last known resourceVersion."""

    def apply(self, items: Sequence[Listing | WatchEvent], now: float) -> None:
        """Applies lists and changes, in the order in which they came."""
        changes = [change for item in items for change in self._changes(item)]
        if changes and self._cluster.mode == ClusterMode.SHADOW:
            note_changes(self._cluster, changes, now)
        found = present(items, uid_of)
        for uid in found.gone:
            self._forget(uid)
        forget_workloads(self._cluster, [uuid.UUID(uid) for uid in found.gone])
        if found.listed:
            for uid in self._versions.keys() - found.objects.keys():
                self._forget(uid)
            keep_workloads(self._cluster, [uuid.UUID(uid) for uid in found.objects])
        news = [each for each in found.objects.values() if self._versions.get(uid_of(each)) != _version(each)]
        self._store([(each, read) for each in news if (read := self._read(each)) is not None])

    def _changes(self, item: Listing | WatchEvent) -> Iterator[tuple[str, str, JsonObject | None]]:
        """Yield the news of a list or an event, in the order of the cluster."""
        if isinstance(item, WatchEvent):
            listed = [item.object] if item.type != "DELETED" else []
            gone = [uid_of(item.object)] if item.type == "DELETED" else []
        else:
            listed = sorted(item.items, key=_order)
            gone = [*(self._heard.keys() - {uid_of(each) for each in listed})]
        for uid in gone:
            if uid in self._heard:
                namespace, name, _ = self._heard.pop(uid)
                yield namespace, name, None
        for obj in listed:
            metadata, uid = obj["metadata"], uid_of(obj)
            heard = (metadata["namespace"], metadata["name"], _version(obj))
            if self._heard.get(uid) != heard:
                self._heard[uid] = heard
                kept = {key: value for key, value in metadata.items() if key != "managedFields"}
                yield heard[0], heard[1], {**obj, "metadata": kept}

    def _forget(self, uid: str) -> None:
        self._versions.pop(uid, None)
        self._ownership.forget_workload(uid)

    def _read(self, obj: JsonObject) -> MirroredWorkload | None:
        """Read the object as read; None if that fails, which keeps its stored state."""
        report = ValidationReport()
        top = FieldReader(report, "", obj)
        spec = read_workload(top, self._version.rpartition("/")[2])
        state = read_workload_status(top)
        # A newer Kueue may know more fields than we do.
        errors = [error for error in report.errors if error.reason != MistakeReason.UNKNOWN_FIELD]
        if errors:
            self._complain(obj, ManifestErrors(errors))
            return None
        metadata, owners = obj["metadata"], owner_uids(obj)
        self._ownership.note_workload(uid_of(obj), owners, [pod_set.name for pod_set in spec.pod_sets])
        return MirroredWorkload(
            uuid.UUID(uid_of(obj)),
            datetime.fromisoformat(metadata["creationTimestamp"]),
            replace(spec, api_version=self._version),
            state,
            tuple(uuid.UUID(owner) for owner in owners),
            _moment(metadata.get("deletionTimestamp")),
            parent_workload(obj),
        )

    def _store(self, read: Sequence[tuple[JsonObject, MirroredWorkload]]) -> None:
        """Store all workloads at once or, if the database refuses one of them, each on its own."""
        try:
            with transaction.atomic():
                store_workloads(self._cluster, [workload for _, workload in read])
        except DataError as refused:
            if len(read) == 1:
                self._complain(read[0][0], refused)
                return
            for each in read:
                self._store([each])
            return
        self._versions |= {uid_of(obj): _version(obj) for obj, _ in read}

    def _complain(self, obj: JsonObject, error: Exception) -> None:
        _log.error("Workload %s of cluster %s can't be mirrored: %s", name_key(obj), self._cluster.name, error)


def _version(obj: JsonObject) -> str:
    return str(obj["metadata"]["resourceVersion"])


def _order(obj: JsonObject) -> tuple[int, str]:
    """Versions grow with time; they are numbers, wherever they can be compared."""
    version = _version(obj)
    return (int(version) if version.isdecimal() else 0), version


def _moment(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text else None
