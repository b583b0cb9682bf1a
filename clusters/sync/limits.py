"""Syncs ResourceQuotas, LimitRanges and RuntimeClasses of the cluster to rows."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from django.db import DataError, transaction

from accounts.exceptions import ManifestErrors
from accounts.models import Cluster
from accounts.services.apply_result import Submitted
from clusters.client import (
    LIMIT_RANGES,
    RESOURCE_QUOTAS,
    RUNTIME_CLASSES,
    JsonObject,
    Kind,
    Listing,
    WatchEvent,
)
from queues.kinds import KINDS
from queues.services.configuration import apply_objects, delete_objects
from scheduling.manifest import FieldReader, ValidationReport

_log = logging.getLogger(__name__)

LIMIT_KINDS: Final = (RESOURCE_QUOTAS, LIMIT_RANGES, RUNTIME_CLASSES)
_ACTOR: Final = "watcher"


class LimitsSync:
    """Keeps the rows of one such kind in step with the objects of one cluster.

    A row created by a manifest follows the cluster's object of the same name, and stays when that is deleted.
    """

    def __init__(self, cluster: Cluster, kind: Kind) -> None:
        self._cluster = cluster
        self._kind = KINDS[kind.kind]
        self._api_version = kind.api_version
        self._known: dict[str, Any] = {}

    def apply(self, items: Sequence[Listing | WatchEvent], now: float) -> None:
        """Apply lists and changes in the order in which they came."""
        listed = False
        present: dict[str, JsonObject] = {}
        gone: set[str] = set()
        for item in items:
            if isinstance(item, Listing):
                listed, gone = True, set()
                present = {_key(found): found for found in item.items}
            elif item.type == "DELETED":
                present.pop(_key(item.object), None)
                gone.add(_key(item.object))
            else:
                present[_key(item.object)] = item.object
                gone.discard(_key(item.object))
        if listed:
            self._known = {}  # rows that an operator changed follow the cluster again
            gone |= self._found_keys() - present.keys()
        self._store(list(self._read(present.values())), now)
        if gone:
            self._remove(gone & self._found_keys(), now)

    def _read(self, manifests: Iterable[JsonObject]) -> Iterable[Submitted[Any]]:
        """The objects that changed. An unreadable one is logged, and its row stays as it is."""
        for manifest in manifests:
            report = ValidationReport()
            top = FieldReader(report, "", _as_submitted(manifest))
            top.ignore("apiVersion", "kind")
            spec = self._kind.read(top, self._api_version.rpartition("/")[2])
            if report.errors:
                self._complain(_key(manifest), ManifestErrors(report.errors))
            elif self._known.get(_key(manifest)) != spec:
                self._known[_key(manifest)] = spec
                yield Submitted(spec, report)

    def _store(self, submissions: Sequence[Submitted[Any]], now: float) -> None:
        """Store all at once; if one is refused, each on its own."""
        if not submissions:
            return
        versions = self._applied_versions()
        fresh = [
            Submitted(submitted.spec, ValidationReport(), versions.get(submitted.spec.meta.key, ""))
            for submitted in submissions
        ]
        try:
            with transaction.atomic():
                apply_objects(self._cluster, self._kind, fresh, actor=_ACTOR, now=datetime.fromtimestamp(now, UTC))
        except (ManifestErrors, DataError) as refused:
            if len(submissions) == 1:
                self._complain(submissions[0].spec.meta.key, refused)
            else:
                for submitted in submissions:
                    self._store([submitted], now)

    def _remove(self, keys: Iterable[str], now: float) -> None:
        gone = sorted(keys)
        for key in gone:
            self._known.pop(key, None)
        if gone:
            with transaction.atomic():
                delete_objects(self._cluster, self._kind, gone, actor=_ACTOR, now=datetime.fromtimestamp(now, UTC))

    def _found_keys(self) -> set[str]:
        """The objects without a manifest of ours."""
        rows = self._kind.model.objects.filter(cluster=self._cluster, api_version="")
        return {row.key if self._kind.namespaced else row.name for row in rows}

    def _applied_versions(self) -> Mapping[str, str]:
        rows = self._kind.model.objects.filter(cluster=self._cluster).exclude(api_version="")
        return {row.key if self._kind.namespaced else row.name: row.api_version for row in rows}

    def _complain(self, key: str, error: Exception) -> None:
        _log.error("%s %s of cluster %s can't be stored: %s", self._kind.name, key, self._cluster.name, error)


def _key(manifest: JsonObject) -> str:
    metadata = manifest["metadata"]
    return "/".join(filter(None, (metadata.get("namespace"), metadata["name"])))


def _as_submitted(manifest: JsonObject) -> JsonObject:
    """The object without fields that a server or a newer cluster adds."""
    metadata = {
        key: value
        for key, value in manifest["metadata"].items()
        if key in ("name", "namespace", "labels", "annotations")
    }
    known = ("spec", "handler", "overhead", "scheduling")
    return {"metadata": metadata, **{key: manifest[key] for key in known if key in manifest}}
