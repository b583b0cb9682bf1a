"""Undoes recorded changes in temporary tables, so that they show an earlier moment than the rows they were filled from.

The first change of a row after the moment says whether the row was there; the old values of its changes, the earliest
last, are its columns then.
"""

from __future__ import annotations

import zlib
from collections.abc import Collection
from datetime import datetime
from typing import Any, Final

import orjson
from django.db import connection
from django.db.backends.utils import CursorWrapper
from django.db.models import JSONField
from psycopg import sql

from accounts.models import Cluster
from history.services.checkpoints.change_recording import COLUMNS, MOST_CHANGE_BYTES
from history.services.checkpoints.checkpoint_tables import TABLES, DamagedContent, columns_of, condition_of

_CREATE: Final = """
CREATE TEMPORARY TABLE kueueweb_undone (
    id bigint GENERATED ALWAYS AS IDENTITY, at timestamptz, table_name text, operation text, row_id bigint,
    row_ids bigint[], old hstore
)
"""
_COLUMNS: Final = ", ".join(COLUMNS)
_TAKE_RECORDED: Final = """
INSERT INTO kueueweb_undone (COLUMNS) SELECT COLUMNS FROM history_rowchange WHERE at > %s ORDER BY id
""".replace("COLUMNS", _COLUMNS)
_UNDO: Final = """
WITH changes AS (
    SELECT id, operation, coalesce(row_id, inserted) AS row_id, old
    FROM kueueweb_undone LEFT JOIN LATERAL unnest(row_ids) AS inserted ON true WHERE table_name = {name}
), undone AS (
    SELECT row_id, kueueweb_merged(old ORDER BY id DESC) AS old, (array_agg(operation ORDER BY id))[1] = 'I' AS created,
        bool_or(operation = 'D') AS deleted
    FROM changes GROUP BY row_id
), present AS (
    DELETE FROM {table} AS kept USING undone WHERE kept.id = undone.row_id RETURNING kept.id, hstore(kept) AS columns
)
INSERT INTO {table} ({columns})
    SELECT {columns_then} FROM undone LEFT JOIN present ON present.id = undone.row_id
        CROSS JOIN LATERAL populate_record(NULL::{table}, coalesce(present.columns, '') || undone.old) AS row_then
    WHERE NOT undone.created AND (present.id IS NOT NULL OR undone.deleted)
"""
_DEFAULTS: Final = """
SELECT attname, pg_get_expr(adbin, adrelid) FROM pg_attribute JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum
WHERE attrelid = %s::regclass AND attnotnull AND attgenerated = ''
"""
_SETTINGS: Final = """
SELECT key, value FROM each((
    SELECT kueueweb_merged(old ORDER BY id DESC) FROM kueueweb_undone
    WHERE table_name = 'accounts_cluster' AND row_id = %s))
"""


def take_recorded_changes(cursor: CursorWrapper, after: datetime) -> None:
    """Take the changes after that moment from the table of recorded changes."""
    cursor.execute(_CREATE)
    cursor.execute(_TAKE_RECORDED, [after])


def take_kept_changes(cursor: CursorWrapper, content: bytes, after: datetime) -> None:
    """Take the changes after that moment from a checkpoint. Raises DamagedContent."""
    inflater = zlib.decompressobj()
    try:
        rows = inflater.decompress(content, MOST_CHANGE_BYTES + 1)
    except zlib.error as error:
        raise DamagedContent(f"its changes: {error}") from error
    if not inflater.eof:
        raise DamagedContent("the end of its changes is missing")
    cursor.execute(_CREATE)
    with connection.wrap_database_errors, cursor.copy(f"COPY kueueweb_undone ({_COLUMNS}) FROM STDIN") as copy:
        copy.write(rows)
    cursor.execute("DELETE FROM kueueweb_undone WHERE at <= %s", [after])


def undo_changes(cursor: CursorWrapper, cluster_id: int, shown: Collection[str], oldest: datetime) -> None:
    """Undo the taken changes in the temporary tables `shown`. Restored rows that a checkpoint of the moment would not
    have are removed: those of other clusters, and of workloads that had finished before `oldest`."""
    cursor.execute("SELECT DISTINCT table_name FROM kueueweb_undone")
    changed = {name for (name,) in cursor.fetchall()}
    for model, _ in TABLES:
        name = model._meta.db_table
        if name in changed and name in shown:
            columns = columns_of(model)
            defaults = _defaults(cursor, name)
            cursor.execute(
                sql.SQL(_UNDO).format(
                    name=sql.Literal(name),
                    table=sql.Identifier("pg_temp", name),
                    columns=sql.SQL(", ").join(map(sql.Identifier, columns)),
                    columns_then=sql.SQL(", ").join(
                        sql.SQL("coalesce(row_then.{}, {})").format(
                            sql.Identifier(column), sql.SQL(defaults.get(column, "NULL"))
                        )
                        for column in columns
                    ),
                )
            )
    for model, condition in TABLES if changed else ():
        name = model._meta.db_table
        if name in shown:
            cursor.execute(
                sql.SQL("DELETE FROM {} AS row WHERE ({}) IS NOT TRUE").format(
                    sql.Identifier("pg_temp", name), condition_of(condition, cluster_id, oldest)
                )
            )


def _defaults(cursor: CursorWrapper, name: str) -> dict[str, str]:
    """Return the defaults of the columns that may not be null. A row that was deleted before an upgrade lacks the
    columns that the upgrade added."""
    cursor.execute(_DEFAULTS, [f"pg_temp.{name}"])
    return dict(cursor.fetchall())


def undone_settings(cursor: CursorWrapper, cluster_id: int) -> dict[str, Any]:
    """Return the columns of the cluster's row that the taken changes replaced, with their values then."""
    cursor.execute(_SETTINGS, [cluster_id])
    return {
        column: orjson.loads(value) if isinstance(Cluster._meta.get_field(column), JSONField) else value
        for column, value in cursor.fetchall()
    }
