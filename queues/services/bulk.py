"""Inserts thousands of rows in one statement with COPY, which is about ten times as fast as the ORM."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

import orjson
from django.db import connection, models
from psycopg import sql


def next_ids(wanted: Mapping[type[models.Model], int]) -> dict[type[models.Model], list[int]]:
    """Draw this many new primary keys of each model, so that rows that reference each other can be copied together."""
    # OFFSET 0 has the sequence looked up once, not for each key.
    keys = sql.SQL(
        "SELECT {place}, nextval(sequence) FROM (SELECT pg_get_serial_sequence({table}, 'id')::regclass AS sequence "
        "OFFSET 0) AS found, generate_series(1, {count})"
    )
    parts = [
        keys.format(place=place, table=sql.Literal(model._meta.db_table), count=sql.Literal(count))
        for place, (model, count) in enumerate(wanted.items())
    ]
    found: dict[type[models.Model], list[int]] = {model: [] for model in wanted}
    models_in_order = [*wanted]
    with connection.cursor() as cursor:
        cursor.execute(sql.SQL(" UNION ALL ").join(parts))
        for place, key in cursor.fetchall():
            found[models_in_order[place]].append(key)
    return found


def copy_rows(
    model: type[models.Model], attributes: Sequence[str], rows: Iterable[Sequence[Any]], now: datetime
) -> None:
    """Insert rows with COPY.

    Each row has the values of `attributes` (columns, so `cluster_id`), in order. Values of JSON columns are JSON text
    (`json_text`). Columns that are not named get the model's default, except those that the database fills. Raises
    Django's errors (IntegrityError ...).
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
    """Return the value as JSON text for a JSON column."""
    return orjson.dumps(value).decode()


def _default(field: "models.Field[Any, Any]", now: datetime) -> Any:
    if isinstance(field, models.DateTimeField) and (field.auto_now or field.auto_now_add):
        return now
    value = field.get_default()
    return json_text(value) if isinstance(field, models.JSONField) and value is not None else value
