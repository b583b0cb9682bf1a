"""The comparable content of an object, from our row or from the cluster: the same in any version, and in any order of
the fields."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

import orjson

from clusters.api_objects import JsonObject
from clusters.client import FIELD_MANAGER
from clusters.served.agreement import ABSENT
from kinds.declaration import Kind, KindSpec
from queues.models import ServedObject
from scheduling.manifest import FieldReader, LocatedError, MistakeReason, ValidationReport

FINALIZER: Final = "kueue.x-k8s.io/resource-in-use"
"""Kueue's finalizer: an object with it stays until nothing uses it."""
WITH_FINALIZER: Final = frozenset({"ClusterQueue", "ResourceFlavor", "AdmissionCheck", "Topology"})
_SERVERS: Final = ("status", "apiVersion", "kind", "metadata")
_MAX_WRITER: Final = 150
_UNREADABLE: Final = "unreadable"


@dataclass(frozen=True, slots=True)
class Read:
    """An object of the cluster as read. `spec` is None if that fails, and `errors` say why."""

    key: str
    uid: str
    resource_version: str
    generation: int
    content: str
    edited_at: datetime
    edited_by: str
    spec: KindSpec | None
    errors: Sequence[LocatedError]
    deleting: bool
    held: bool
    status: JsonObject


def note(entry: ServedObject, read: Read) -> None:
    """Note the content of the object now."""
    entry.uid, entry.resource_version = read.uid, read.resource_version
    entry.object_generation, entry.deleting, entry.held = read.generation, read.deleting, read.held
    entry.content, entry.status = read.content, read.status
    entry.edited_at, entry.edited_by = read.edited_at, read.edited_by[:_MAX_WRITER]


def note_absence(entry: ServedObject, at: datetime) -> None:
    """Note that the object does not exist any more."""
    entry.uid, entry.resource_version, entry.content = "", "", ABSENT
    entry.deleting, entry.held, entry.status, entry.edited_at, entry.edited_by = False, False, {}, at, ""


def read_object(kind: Kind, obj: JsonObject, version: str) -> Read:
    """Read an object of a version such as `v1beta2`."""
    metadata = obj["metadata"]
    report = ValidationReport()
    spec: KindSpec | None = kind.read(FieldReader(report, "", as_submitted(obj)), version)
    # A field that the API server accepted is not an error: a newer version may have fields that we do not know.
    errors = [error for error in report.errors if error.reason != MistakeReason.UNKNOWN_FIELD]
    deleting = bool(metadata.get("deletionTimestamp"))
    content = f"{_UNREADABLE} {metadata['resourceVersion']}" if errors or spec is None else content_of(kind, spec)
    edited_at, edited_by = last_edit(obj)
    return Read(
        key="/".join(filter(None, (metadata.get("namespace"), metadata["name"]))),
        uid=str(metadata["uid"]),
        resource_version=str(metadata["resourceVersion"]),
        generation=int(metadata.get("generation") or 0),
        content=ABSENT if deleting else content,
        edited_at=edited_at,
        edited_by=edited_by,
        spec=None if errors else spec,
        errors=errors,
        deleting=deleting,
        held=FINALIZER in (metadata.get("finalizers") or ()),
        status=obj.get("status") or {},
    )


def content_of(kind: Kind, spec: KindSpec) -> str:
    """Return a digest that equal specs share."""
    return digest(kind.write(spec))


def digest(value: Mapping[str, Any]) -> str:
    """Return a text that is equal for equal values. The order of keys does not count; the order in lists does."""
    return hashlib.sha256(orjson.dumps(value, default=str, option=orjson.OPT_SORT_KEYS)).hexdigest()


def row_content(kind: Kind, row: Any | None) -> str:
    """Return the content of a row whose spec's data are prefetched; a row that waits for its deletion has no
    content."""
    if row is None or row.deletion_requested_at is not None:
        return ABSENT
    return content_of(kind, kind.spec_of(row))


def as_submitted(obj: JsonObject) -> JsonObject:
    """Return the object without the fields that a server adds."""
    kept = ("name", "namespace", "labels", "annotations")
    metadata = {key: value for key, value in obj["metadata"].items() if key in kept}
    return {"metadata": metadata, **{key: value for key, value in obj.items() if key not in _SERVERS}}


def last_edit(obj: JsonObject) -> tuple[datetime, str]:
    """Return the time and the program of the last change that another author made to its own fields."""
    metadata = obj["metadata"]
    found = [(metadata["creationTimestamp"], "")]
    for entry in metadata.get("managedFields") or ():
        others = entry.get("manager") != FIELD_MANAGER and entry.get("subresource") != "status"
        if others and entry.get("time"):
            found.append((entry["time"], str(entry.get("manager") or "")))
    at, by = max(found)
    moment = datetime.fromisoformat(at)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC), by


def status_writer(obj: JsonObject, condition: str = "") -> str:
    """Return the program that last wrote to the status, or to the given condition, if it has an owner."""
    written = [entry for entry in obj["metadata"].get("managedFields") or () if entry.get("subresource") == "status"]
    field = f'k:{{"type":"{condition}"}}'
    written = [each for each in written if field in _conditions_of(each)] or written
    managers = [(str(entry.get("time") or ""), str(entry.get("manager") or "")) for entry in written]
    return max(managers, default=("", ""))[1] or "a controller"


def _conditions_of(entry: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the conditions that an entry of managedFields owns, by their key in FieldsV1."""
    status: Mapping[str, Any] = (entry.get("fieldsV1") or {}).get("f:status") or {}
    return status.get("f:conditions") or {}


def is_newer(version: str, known: str) -> bool:
    """Return whether a resourceVersion is later than a known one. They are whole numbers that grow; any other value can
    only be known to differ."""
    if version.isdecimal() and known.isdecimal():
        return int(version) > int(known)
    return version != known
