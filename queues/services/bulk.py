"""Inserts thousands of rows in one statement with COPY, which is about ten times as fast as the ORM."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

import orjson
from django.db import connection, models
from psycopg import sql


def next_ids(model: type[models.Model], count: int) -> list[int]:
    """New primary keys of the model, so that rows that reference each other can be copied together."""
    # OFFSET 0 has the sequence looked up once, not for each key.
    query = sql.SQL(
        "SELECT nextval(sequence) FROM (SELECT pg_get_serial_sequence({table}, 'id')::regclass AS sequence OFFSET 0) "
        "AS found, generate_series(1, %s)"
    ).format(table=sql.Literal(model._meta.db_table))
    with connection.cursor() as cursor:
        cursor.execute(query, [count])
        return [row[0] for row in cursor.fetchall()]


def copy_rows(
    model: type[models.Model], attributes: Sequence[str], rows: Iterable[Sequence[Any]], now: datetime
) -> None:
    """Insert rows with COPY. Each row gives the values of `attributes` (columns, so `cluster_id`), in order.

    Values of JSON columns are JSON text (`json_text`). Columns that are not named get the model's default, except
    those that the database fills. Errors are Django's (IntegrityError ...).
    """
    fixed = {
        field.attname: _default(field, now)
        for field in model._meta.concrete_fields
        if field.attname not in attributes and not field.has_db_default() and not isinstance(field, models.AutoField)
    }
    query = sql.SQL("COPY {table} ({columns}) FROM STDIN").format(
        table=sql.Identifier(model._meta.db_table),
        columns=sql.SQL(", ").join([sql.Identifier(name) for name in (*attributes, *fixed)]),
    )
    tail = tuple(fixed.values())
    with connection.wrap_database_errors, connection.cursor() as cursor, cursor.copy(query) as copy:
        for row in rows:
            copy.write_row((*row, *tail))


def json_text(value: Any) -> str:
    """The value as JSON text for a JSON column."""
    return orjson.dumps(value).decode()


def _default(field: "models.Field[Any, Any]", now: datetime) -> Any:
    if isinstance(field, models.DateTimeField) and (field.auto_now or field.auto_now_add):
        return now
    value = field.get_default()
    return json_text(value) if isinstance(field, models.JSONField) and value is not None else value
