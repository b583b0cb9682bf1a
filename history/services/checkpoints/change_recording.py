"""Records changes of the rows that checkpoints keep, until the next checkpoint takes them over.

Triggers record them (`history/migrations/0012`). They are off until the worker that takes checkpoints turns them on.
"""

from __future__ import annotations

import zlib
from datetime import datetime, timedelta
from typing import Final

from django.db import connection, transaction
from psycopg import sql

LOCK_SECONDS: Final = 1.0
"""How long turning a trigger on or off waits for the writers of its table, which wait for it in turn."""
KEPT: Final = timedelta(hours=1)
"""Changes are kept until the next checkpoint of each cluster, but at most for this time."""
_OVERLAP: Final = timedelta(minutes=10)
"""Changes before the newest checkpoint stay this long, for the readers that began before it was taken."""
MOST_CHANGE_BYTES: Final = 2**26
"""A checkpoint does not keep more changes: 10,000 lives of workloads have some 50 MB."""
COLUMNS: Final = ("at", "table_name", "operation", "row_id", "row_ids", "old")
_LEVEL: Final = 3

_TO_TURN: Final = """
SELECT tgrelid::regclass::text, tgname FROM pg_trigger
WHERE tgname LIKE 'kueueweb\\_record\\_%%' AND (tgenabled <> 'D') <> %s ORDER BY 1, 2
"""
_BEGIN: Final = "INSERT INTO history_rowchange (at, table_name, operation) VALUES (clock_timestamp(), '', 'B')"
_SINCE: Final = """
SELECT greatest(
    clock_timestamp() - make_interval(secs => %s), (SELECT max(at) FROM history_rowchange WHERE operation = 'B'))
WHERE NOT EXISTS (SELECT FROM pg_trigger WHERE tgname LIKE 'kueueweb\\_record\\_%%' AND tgenabled = 'D')
"""
_DELETE: Final = """
DELETE FROM history_rowchange WHERE at < greatest(now() - make_interval(secs => %(kept)s), (
    SELECT min(newest) FROM (
        SELECT coalesce(max(taken_at), '-infinity') AS newest
        FROM accounts_cluster AS cluster LEFT JOIN history_checkpoint AS taken ON taken.cluster_id = cluster.id
        GROUP BY cluster.id
    ) AS newest_of_each
) - make_interval(secs => %(overlap)s))
"""


class TooManyChanges(Exception):
    """The changes since the last checkpoint have more bytes than a checkpoint keeps of them."""


def record_changes(on: bool) -> None:
    """Turn the recording on or off. Raises OperationalError if a table's writers do not end; the next call goes on
    with that table."""
    with connection.cursor() as cursor:
        cursor.execute(_TO_TURN, [on])
        triggers = cursor.fetchall()
    for table, trigger in triggers:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("SELECT set_config('lock_timeout', %s, true)", [f"{LOCK_SECONDS * 1000:.0f}ms"])
            cursor.execute(
                sql.SQL("ALTER TABLE {} {} TRIGGER {}").format(
                    sql.Identifier(*table.split(".")), sql.SQL("ENABLE" if on else "DISABLE"), sql.Identifier(trigger)
                )
            )
            if on and (table, trigger) == triggers[-1]:  # a process that ends here leaves no recording without it
                cursor.execute(_BEGIN)


def recorded_since() -> datetime | None:
    """Return the moment since which each change is recorded; None if changes are not recorded."""
    with connection.cursor() as cursor:
        cursor.execute(_SINCE, [KEPT.total_seconds()])
        found = cursor.fetchone()
    return found[0] if found else None


def read_changes(since: datetime) -> bytes:
    """Return the changes after that moment, in their order, in COPY's text format, compressed. Raises
    TooManyChanges."""
    query = sql.SQL("COPY (SELECT {columns} FROM history_rowchange WHERE at > {since} ORDER BY id) TO STDOUT").format(
        columns=sql.SQL(", ").join(map(sql.Identifier, COLUMNS)), since=sql.Literal(since)
    )
    deflater, parts, size = zlib.compressobj(_LEVEL), [], 0
    with connection.wrap_database_errors, connection.cursor() as cursor, cursor.copy(query) as copy:
        for part in copy:
            size += len(part)
            if size > MOST_CHANGE_BYTES:
                raise TooManyChanges
            parts.append(deflater.compress(part))
    return b"".join([*parts, deflater.flush()])


def delete_recorded_changes() -> int:
    """Delete the changes that a checkpoint of each cluster has, and those older than an hour; return their number."""
    with connection.cursor() as cursor:
        cursor.execute(_DELETE, {"kept": KEPT.total_seconds(), "overlap": _OVERLAP.total_seconds()})
        return int(cursor.rowcount)
