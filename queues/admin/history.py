"""The history of an object on its admin page: its audit records, field by field, with old and new values."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from accounts.models import AuditRecord
from scheduling.model.quantity import amount_in_words

MOST: Final = 200
_QUOTAS: Final = "quotas"


@dataclass(frozen=True, slots=True)
class FieldChange:
    """One field that an edit changed; an empty text means that the value was missing before or is missing now."""

    field: str
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class Edit:
    """One line of the audit."""

    at: datetime
    username: str
    verb: str
    reason: str
    changes: tuple[FieldChange, ...]


def edits_of(kind: str, cluster: str, namespace: str, name: str) -> list[Edit]:
    """Return the edits of the object, the newest first; at most MOST."""
    found = AuditRecord.objects.filter(kind=kind, cluster_name=cluster, namespace=namespace).about(name)
    return [
        Edit(
            at=record.at,
            username=record.username or record.process,
            verb=record.verb,
            reason=record.reason or record.message,
            changes=tuple(changes_of(record.before or {}, record.after or {})),
        )
        for record in found.order_by("-id")[:MOST]
    ]


def changes_of(
    before: Mapping[str, Any], after: Mapping[str, Any], path: tuple[str, ...] = ()
) -> Iterator[FieldChange]:
    """List the changes field by field, quotas with their units."""
    for key in sorted({*before, *after}):
        old, new, place = before.get(key), after.get(key), (*path, key)
        if isinstance(old, dict) or isinstance(new, dict):
            yield from changes_of(old or {}, new or {}, place)
        else:
            change = FieldChange(_label(place), _words(place, old), _words(place, new))
            if change.before != change.after:
                yield change


def _label(place: tuple[str, ...]) -> str:
    return ", ".join(part.replace("_", " ") for part in place if part != _QUOTAS)


def _words(place: tuple[str, ...], value: Any) -> str:
    if value in (None, "", [], {}):
        return ""
    if place[0] == _QUOTAS and isinstance(value, int):
        return amount_in_words(place[1].rpartition(" ")[2], value)
    return value if isinstance(value, str) else json.dumps(value)
