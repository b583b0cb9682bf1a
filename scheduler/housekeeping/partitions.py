"""Monthly partitions of the decision log: created ahead of time, dropped as a whole after the retention period."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import transaction
from psycopg import sql

MONTHS_AHEAD = 2


def month_start(moment: datetime, months: int = 0) -> datetime:
    """Return the first instant (UTC) of the month that is `months` after the moment's month."""
    index = moment.year * 12 + moment.month - 1 + months
    return datetime(index // 12, index % 12 + 1, 1, tzinfo=UTC)


def partition_name(start: datetime) -> str:
    """Return the table of the month that begins at `start`."""
    return f"scheduler_decision_{start:%Y_%m}"


def maintain_partitions(cursor: Any, now: datetime | None = None) -> None:
    """Create the partitions of this month and the next ones; drop months that ended before the retention period."""
    now = now or datetime.now(UTC)
    for months in range(MONTHS_AHEAD + 1):
        _make(cursor, month_start(now, months), month_start(now, months + 1))
    oldest = partition_name(month_start(now - timedelta(days=settings.DECISION_RETENTION_DAYS)))
    cursor.execute(
        "SELECT c.relname FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid "
        "WHERE i.inhparent = 'scheduler_decision'::regclass AND c.relname ~ '^scheduler_decision_[0-9]{4}_[0-9]{2}$'"
    )
    for (name,) in cursor.fetchall():
        if name < oldest:
            cursor.execute(sql.SQL("DROP TABLE {}").format(sql.Identifier(name)))


def _make(cursor: Any, start: datetime, end: datetime) -> None:
    """Create a month's partition, and move the rows into it that the default partition received while it was
    missing.

    All of it or nothing: a row in a table that is not attached yet is in no decision log.
    """
    name = partition_name(start)
    if _is_attached(cursor, name):
        return
    table = sql.Identifier(name)
    with transaction.atomic():
        # A row that came into the default partition after the move would not let the month's partition be attached.
        cursor.execute("LOCK TABLE ONLY scheduler_decision IN SHARE UPDATE EXCLUSIVE MODE")
        cursor.execute("LOCK TABLE scheduler_decision_default IN ACCESS EXCLUSIVE MODE")
        if _is_attached(cursor, name):  # by another process meanwhile
            return
        create = sql.SQL(
            "CREATE TABLE IF NOT EXISTS {} (LIKE scheduler_decision INCLUDING DEFAULTS INCLUDING CONSTRAINTS)"
        )
        cursor.execute(create.format(table))
        move = sql.SQL(
            "WITH moved AS (DELETE FROM scheduler_decision_default WHERE decided_at >= {} AND decided_at < {} "
            "RETURNING *) INSERT INTO {} SELECT * FROM moved"
        )
        cursor.execute(move.format(start, end, table))
        attach = sql.SQL("ALTER TABLE scheduler_decision ATTACH PARTITION {} FOR VALUES FROM ({}) TO ({})")
        cursor.execute(attach.format(table, start.isoformat(), end.isoformat()))


def _is_attached(cursor: Any, name: str) -> bool:
    cursor.execute("SELECT FROM pg_inherits WHERE inhrelid = to_regclass(%s)", [name])
    return cursor.fetchone() is not None
