"""Objects that configure scheduling in the cluster -> their rows: limits, namespaces, Kueue's own where it decides."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from django.db import DataError, transaction

from accounts.models import Cluster
from accounts.services.apply_result import Submitted
from accounts.services.namespaces import note_namespaces
from clusters.api_objects import LIMIT_RANGES, NAMESPACES, RESOURCE_QUOTAS, RUNTIME_CLASSES, JsonObject, Kind
from clusters.client import Listing, WatchEvent
from clusters.sync.present import Present, name_key, present
from foundation.exceptions import ManifestErrors
from queues.kinds import KINDS
from queues.services.configuration import apply_objects, delete_objects, forget_objects, set_check_active
from scheduling.manifest import FieldReader, MistakeReason, ValidationReport

_log = logging.getLogger(__name__)

LIMIT_KINDS: Final = (RESOURCE_QUOTAS, LIMIT_RANGES, RUNTIME_CLASSES)
_ACTOR: Final = "watcher"
_SERVERS: Final = ("status", "apiVersion", "kind", "metadata")
"""Fields of an object that its author does not write, or that are read separately."""

_NOT_OURS: Final[Mapping[str, tuple[str, ...]]] = {"ClusterQueue": ("concurrentAdmissionPolicy",)}


class ConfigurationSync:
    """Keeps the rows of one kind in step with the objects of one cluster.

    If kueueweb decides, a row from a manifest follows the cluster's object of its name, and stays if that object is
    deleted; a namespace is deleted only if the cluster had it before, because ours are created in the cluster when the
    first job needs them. A namespace that the cluster has is noted, so that no request changes its row. If another
    scheduler decides, rows exist only for the cluster's objects.
    """

    def __init__(self, cluster: Cluster, kind: Kind) -> None:
        self._cluster = cluster
        self._kind = KINDS[kind.kind]
        self._api_version = kind.api_version
        self._made_by_need = kind == NAMESPACES
        self._known: dict[str, Any] = {}
        self._active: dict[str, bool] = {}

    def apply(self, items: Sequence[Listing | WatchEvent], now: float) -> None:
        """Applies lists and changes, in the order in which they came."""
        found = present(items, name_key)
        gone = set(found.gone)
        if found.listed:
            gone |= self._not_listed(found.objects.keys())
            self._known = {}  # rows that a user has changed meanwhile follow the cluster again
        self._remove(gone, now)
        changed = list(self._read(found.objects.values()))
        if changed:
            with transaction.atomic():
                self._store(changed, now)
                self._note_namespaces(found, gone)
        else:
            self._note_namespaces(found, gone)
        if self._kind.name == "AdmissionCheck" and self._cluster.is_mirrored:
            self._note_activity(found.objects)

    def _note_namespaces(self, found: Present, gone: Collection[str]) -> None:
        if self._made_by_need:
            note_namespaces(self._cluster, found.objects, gone, listed=found.listed)

    def _not_listed(self, listed: Iterable[str]) -> set[str]:
        there = set(self._known) if self._made_by_need and not self._cluster.is_mirrored else self._found_keys()
        return there - set(listed)

    def _read(self, manifests: Iterable[JsonObject]) -> Iterable[Submitted[Any]]:
        """Yield the changed objects. An object that cannot be read is logged, and its stored version stays."""
        for manifest in manifests:
            report = ValidationReport()
            submitted = _as_submitted(manifest)
            top = FieldReader(report, "", self._without_its_own(submitted) if self._cluster.is_mirrored else submitted)
            spec = self._kind.read(top, self._api_version.rpartition("/")[2])
            # A field that the API server accepted is not an error: a newer version may have fields that we do not know.
            errors = [error for error in report.errors if error.reason != MistakeReason.UNKNOWN_FIELD]
            if errors:
                self._complain(name_key(manifest), ManifestErrors(errors))
            elif self._known.get(name_key(manifest)) != spec:
                self._known[name_key(manifest)] = spec
                yield Submitted(spec, ValidationReport())

    def _without_its_own(self, submitted: JsonObject) -> JsonObject:
        """Return the object without fields that only the deciding scheduler supports."""
        spec, unknown = submitted.get("spec"), _NOT_OURS.get(self._kind.name, ())
        if not isinstance(spec, Mapping):
            return submitted
        return {**submitted, "spec": {key: value for key, value in spec.items() if key not in unknown}}

    def _store(self, submissions: Sequence[Submitted[Any]], now: float) -> None:
        """Store all objects at once or, if one of them is refused, each on its own."""
        if not submissions:
            return
        versions = self._applied_versions()
        fresh = [
            Submitted(submitted.spec, ValidationReport(), versions.get(submitted.spec.meta.key, ""))
            for submitted in submissions
        ]
        try:
            with transaction.atomic():
                apply_objects(
                    self._cluster, self._kind, fresh, actor=_ACTOR, from_cluster=True,
                    now=datetime.fromtimestamp(now, UTC),
                )  # fmt: skip
        except (ManifestErrors, DataError) as refused:
            if len(submissions) > 1:
                for submitted in submissions:
                    self._store([submitted], now)
            elif not self._made_anew(submissions[0], refused):
                self._complain(submissions[0].spec.meta.key, refused)
            else:
                self._store(submissions, now)

    def _made_anew(self, submitted: Submitted[Any], refused: Exception) -> bool:
        """Delete the row that conflicts with an object of its name; return whether there was one.

        Where another scheduler decides, such a row belongs to a deleted object whose name another object has now: an
        immutable field differs, or the row waits for its deletion.
        """
        errors = refused.errors if isinstance(refused, ManifestErrors) else ()
        reasons = {error.reason for error in errors}
        if not self._cluster.is_mirrored or not reasons & {MistakeReason.IMMUTABLE, MistakeReason.IN_USE}:
            return False
        return forget_objects(self._cluster, self._kind, [submitted.spec.meta.key]) > 0

    def _remove(self, keys: Iterable[str], now: float) -> None:
        wanted = set(keys)
        gone = sorted(wanted if self._cluster.is_mirrored or not wanted else wanted & self._found_keys())
        for key in gone:
            self._known.pop(key, None)
        if not gone:
            return
        if self._cluster.is_mirrored:
            forget_objects(self._cluster, self._kind, gone)
            return
        with transaction.atomic():
            delete_objects(
                self._cluster, self._kind, gone, actor=_ACTOR, from_cluster=True, now=datetime.fromtimestamp(now, UTC)
            )

    def _found_keys(self) -> set[str]:
        """Return the objects that no manifest created; all of them if another scheduler decides."""
        return {key for key, version in self._versions() if self._cluster.is_mirrored or not version}

    def _applied_versions(self) -> Mapping[str, str]:
        return {key: version for key, version in self._versions() if version}

    def _versions(self) -> Iterator[tuple[str, str]]:
        """Yield each object that has a row, with the version of its manifest; that is empty if no manifest
        created it."""
        columns = ("namespace", "name", "api_version") if self._kind.namespaced else ("name", "api_version")
        for *key, version in self._kind.model.objects.filter(cluster=self._cluster).order_by().values_list(*columns):
            yield "/".join(key), version

    def _note_activity(self, objects: Mapping[str, JsonObject]) -> None:
        """An admission check's Active condition, which its controller sets."""
        for key, check in objects.items():
            conditions = (check.get("status") or {}).get("conditions") or ()
            active = any(each.get("type") == "Active" and each.get("status") == "True" for each in conditions)
            if self._active.get(key) is not active and set_check_active(self._cluster, key, active=active):
                self._active[key] = active

    def _complain(self, key: str, error: Exception) -> None:
        _log.error("%s %s of cluster %s can't be stored: %s", self._kind.name, key, self._cluster.name, error)


def _as_submitted(manifest: JsonObject) -> JsonObject:
    """Return the object without a server's fields."""
    metadata = {
        key: value
        for key, value in manifest["metadata"].items()
        if key in ("name", "namespace", "labels", "annotations")
    }
    return {"metadata": metadata, **{key: value for key, value in manifest.items() if key not in _SERVERS}}
