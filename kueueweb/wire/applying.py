"""Server-side apply: the object after a manager's apply, and the managers with which it conflicts.

Managers are the clients that apply; every other change (REST, the dashboard, a patch) belongs to the manager
`kueueweb`. A conflict is a field that another manager has applied, or that was changed since this manager applied it,
and that this apply gives another value. With `force` the field changes hands.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final

from accounts.models import ManagedFields
from accounts.services.managed_fields import ANNOTATION
from clusters.webhook.conversion import NotConvertible, convert
from foundation.exceptions import HostileManifest, ManifestErrors
from kueueweb.wire.refusals import Refusal
from kueueweb.wire.resources import JsonObject
from queues.manifests.documents import read_documents
from scheduling.manifest.applied_fields import (
    Path,
    applied_part,
    as_fields,
    difference,
    fields_of,
    merged,
    projected,
    union,
    values_at,
    without,
    written,
)

OTHERS: Final = "kueueweb"
"""The manager of fields that were not applied."""
KUBECTL: Final = "kubectl"
"""The manager of `kubectl apply --server-side`; it takes over the fields that `kubectl apply` had applied."""

_MAX_MANAGERS: Final = 100
"""Managers of one object: each read of it shows them all."""
_DEFAULT: Final = object()


@dataclass(frozen=True, slots=True)
class Apply:
    """One server-side apply. `rows` are the managers of the object before the change."""

    manager: str
    manifest: JsonObject
    rows: Mapping[str, ManagedFields]

    @property
    def own(self) -> dict[str, Any]:
        """The fields that the manager applies."""
        return fields_of(applied_part(self.manifest))

    def check_managers(self) -> None:
        """Raise Refusal (422) for one manager too many."""
        if self.manager not in self.rows and len(self.rows) >= _MAX_MANAGERS:
            message = f"metadata.managedFields: Too many: must have at most {_MAX_MANAGERS} managers"
            raise Refusal(HTTPStatus.UNPROCESSABLE_ENTITY, message)

    def wanted(self, there: JsonObject) -> JsonObject:
        """Return the object with the applied fields, and without each field that only this manager applied before and
        now omits."""
        kept = self.own
        for manager, row in self.rows.items():
            if manager not in (self.manager, ANNOTATION):
                kept = union(kept, fields_of(self._in_version(row, row.applied)))
        dropped = difference(fields_of(self._before()), kept)
        return {**merged(without(there, dropped), applied_part(self.manifest))}

    def conflicts(self, before: JsonObject, after: JsonObject) -> dict[str, list[Path]]:
        """Return the managers whose fields have another value, with the paths of those fields."""
        old, new = dict(values_at(before, self.own)), dict(values_at(after, self.own))
        # A default need not be written: a missing field has its default anyway.
        changed = {path for path in old.keys() | new.keys() if old.get(path, _DEFAULT) != new.get(path, _DEFAULT)}
        found: dict[str, list[Path]] = {}
        for manager, row in self.rows.items():
            if manager in (self.manager, ANNOTATION):
                continue
            applied = self._in_version(row, row.applied)
            paths = [path for path, _ in values_at(applied, fields_of(applied)) if path in changed]
            if paths:
                found[manager] = paths
        mine = self.rows.get(self.manager)
        if mine is not None:
            seen = self._in_version(mine, mine.seen)
            last = values_at(seen, fields_of(seen))
            paths = [path for path, value in last if path in changed and old.get(path, _DEFAULT) != value]
            if paths:
                found[OTHERS] = paths
        return found

    def left_to(self, row: ManagedFields, paths: list[Path]) -> dict[str, Any]:
        """Return the fields that another manager has applied, without the fields that have a new manager."""
        return dict(without(self._in_version(row, row.applied), as_fields(paths)))

    def seen(self, after: JsonObject) -> dict[str, Any]:
        """Return the applied fields as the object shows them now."""
        return dict(projected(after, self.own))

    def _before(self) -> dict[str, Any]:
        """Return the fields that this manager applied last."""
        mine, annotation = self.rows.get(self.manager), self.rows.get(ANNOTATION)
        if mine is not None:
            return self._in_version(mine, mine.applied)
        if self.manager != KUBECTL or annotation is None:
            return {}
        try:
            found = [document.content for document in read_documents(annotation.last_applied)]
        except (HostileManifest, ManifestErrors):  # its author may write any text there
            return {}
        return self._in_this_version(found[0]) if found else {}

    def _in_version(self, row: ManagedFields, fields: Mapping[str, Any]) -> dict[str, Any]:
        """Fields of a row in the version of this apply."""
        identity = {"apiVersion": row.api_version, "kind": row.kind}
        return self._in_this_version({**fields, **identity, "metadata": fields.get("metadata", {})})

    def _in_this_version(self, found: JsonObject) -> dict[str, Any]:
        try:
            return applied_part(convert(found, self.manifest["apiVersion"]))
        except NotConvertible:
            return {}


def conflict(conflicts: Mapping[str, list[Path]]) -> Refusal:
    """Return the refusal of an apply, in Kubernetes' words."""
    count = sum(map(len, conflicts.values()))
    causes = [
        {"reason": "FieldManagerConflict", "message": f'conflict with "{manager}"', "field": written(path)}
        for manager, paths in sorted(conflicts.items())
        for path in paths
    ]
    lines = [
        f'conflicts with "{manager}":\n' + "\n".join(f"- {written(path)}" for path in paths)
        for manager, paths in sorted(conflicts.items())
    ]
    plural = "s" if count > 1 else ""
    message = f"Apply failed with {count} conflict{plural}: " + "\n".join(lines)
    return Refusal(HTTPStatus.CONFLICT, message, {"causes": causes})
