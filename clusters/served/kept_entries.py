"""Stores the known state of several of Kueue's objects at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import orjson
from django.db import connection

from queues.models import ServedObject

_COLUMNS: Final = {
    "uid": "text", "resource_version": "text", "object_generation": "bigint", "content": "text",
    "edited_at": "timestamptz", "edited_by": "text", "held": "boolean", "deleting": "boolean", "agreed": "text",
    "row_version": "bigint", "status": "jsonb", "status_told_at": "timestamptz", "problem": "text",
    "failures": "smallint", "retry_at": "timestamptz",
}  # fmt: skip
"""The columns that change, and their types."""
_KEEP: Final = f"""
    WITH told AS (
        SELECT told.* FROM json_to_recordset(%s) AS told (
            id bigint, loaded text, {", ".join(f"{name} {type_}" for name, type_ in _COLUMNS.items())}
        ) JOIN queues_servedobject AS served ON served.id = told.id AND served.resource_version = told.loaded
        ORDER BY served.id FOR NO KEY UPDATE OF served
    )
    UPDATE queues_servedobject AS served SET {", ".join(f"{name} = told.{name}" for name in _COLUMNS)}
    FROM told WHERE served.id = told.id
    RETURNING served.id
"""  # noqa: S608 (the names are those above)


def keep_all(entries: Sequence[ServedObject]) -> None:
    """Store each entry as `ServedObject.keep` does: not over another version that the watcher has noted since the entry
    was read."""
    new = [entry for entry in entries if not entry.pk]
    if new:
        ServedObject.objects.bulk_create(new, ignore_conflicts=True)
    known = {entry.pk: entry for entry in entries if entry.pk}
    if not known:
        return
    with connection.cursor() as cursor:
        cursor.execute(_KEEP, [orjson.dumps([_values(entry) for entry in known.values()]).decode()])
        stored = [pk for (pk,) in cursor.fetchall()]
    for pk in stored:
        known[pk].loaded_version = known[pk].resource_version


def _values(entry: ServedObject) -> dict[str, Any]:
    return {"id": entry.pk, "loaded": entry.loaded_version, **{name: getattr(entry, name) for name in _COLUMNS}}
