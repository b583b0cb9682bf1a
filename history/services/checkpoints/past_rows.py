"""Shows the rows of a checkpoint in place of the present ones, to the queries of one transaction.

Temporary tables hide the tables of the same names, so each reader of the present reads the past by the same code. The
transaction may write nothing else, and is rolled back.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from functools import partial
from typing import Any, ClassVar, Final

from django.conf import settings
from django.db import DatabaseError, OperationalError, connection, models, transaction
from django.db.backends.utils import CursorWrapper
from django.utils import timezone
from psycopg import sql

from accounts.models import Cluster
from foundation.advisory_locks import LockedWork, take_one_of
from foundation.exceptions import InvalidRequest, NotFound, Unavailable
from history.models import Checkpoint
from history.services.checkpoints.checkpoint_tables import (
    FORMAT,
    TABLES,
    DamagedContent,
    TableRows,
    columns_of,
    condition_of,
    key_of,
    oldest_at,
    tables_in,
)
from queues.models import StartEstimate
from scheduling.model.times import rfc3339

_CLOCK_SECONDS: Final = 5.0
"""The browser's clock may be ahead of ours by this much."""
_FILLING: Final = "kueueweb_filling"
EXACT: Final = timedelta(milliseconds=1)
"""The precision of a checkpoint's moment."""
READERS: Final = 6
"""The number of simultaneous reads of the past in the whole installation. Each takes some 240 of PostgreSQL's locks;
its default settings have 6,400 for all sessions."""
_log = logging.getLogger(__name__)


class NoCheckpoint(NotFound):
    """Nothing is kept of that moment."""

    reason: ClassVar[str] = "NoCheckpoint"


class TooManyPastReads(Unavailable):
    """Others already use all places of requests that read the past."""

    reason: ClassVar[str] = "TooManyPastReads"
    retry_after = 2


def find_checkpoint(cluster: Cluster, at: datetime) -> Checkpoint:
    """Return the last checkpoint at or before that moment. Raises NoCheckpoint, and InvalidRequest for a future
    moment."""
    refuse_future(at)
    kept = Checkpoint.objects.filter(cluster=cluster).defer("content", "devices", "changes")
    found = kept.filter(taken_at__lte=at).order_by("-taken_at").first()
    if found is None:
        earliest = kept.order_by("taken_at").values_list("taken_at", flat=True).first()
        if earliest is None:
            raise NoCheckpoint(f"No checkpoint of cluster {cluster.name} is kept: {_without_any()}")
        raise NoCheckpoint(
            f"No checkpoint of cluster {cluster.name} is from {rfc3339(at)} or before. The earliest is from "
            f"{rfc3339(earliest)}: name that moment or a later one."
        )
    if found.format != FORMAT:
        raise NoCheckpoint(
            f"The checkpoint from {rfc3339(found.taken_at)} has the format {found.format}, which this release, with "
            f"format {FORMAT}, does not read. Read it with the release that wrote it."
        )
    return found


def refuse_future(at: datetime) -> None:
    """Raise InvalidRequest for a future moment."""
    if at > timezone.now() + timedelta(seconds=_CLOCK_SECONDS):
        raise InvalidRequest(f"at: Invalid value: {rfc3339(at)}: must not be in the future.")


def _without_any() -> str:
    if not settings.CHECKPOINT_MINUTES:
        return "CHECKPOINT_MINUTES is 0, which turns them off."
    return f"the first is taken within {settings.CHECKPOINT_MINUTES} minutes, by a worker of the queue push."


def cluster_then(found: Checkpoint) -> Cluster:
    """Return the cluster's row with the settings of that moment, by which the rules decided. It must not be saved."""
    cluster = Cluster.objects.get(pk=found.cluster_id)
    for name, value in found.settings.items():
        setattr(cluster, name, value)
    return cluster


@contextmanager
def showing_rows(found: Checkpoint, *, hidden: Collection[str] = ()) -> Iterator[None]:
    """Show the rows of this checkpoint instead of the current ones; `hidden` tables keep showing the current rows.
    Raises NoCheckpoint if it is damaged or gone, and TooManyPastReads."""

    def fill(cursor: CursorWrapper, shown: Sequence[str]) -> None:
        fill_with_checkpoint(cursor, content_of(found), shown)

    with showing_tables(fill, hidden, damage=partial(damaged, found)):
        yield


def damaged(found: Checkpoint, error: Exception) -> NoCheckpoint:
    """Return the error of a checkpoint of which the rows cannot be read."""
    _log.error("The checkpoint of cluster %s from %s is damaged: %s", found.cluster_id, found.taken_at, error)
    return NoCheckpoint(
        f"The checkpoint from {rfc3339(found.taken_at)} is damaged ({type(error).__name__}): name a moment "
        "before it, or from the next one on. checkpoints/ lists their moments."
    )


Fill = Callable[[CursorWrapper, Sequence[str]], None]
"""Creates these tables as temporary ones with the rows to show."""


@contextmanager
def showing_tables(fill: Fill, hidden: Collection[str], *, damage: Callable[[Exception], Exception]) -> Iterator[None]:
    """Show the tables that `fill` creates instead of the current ones, but for `hidden` ones. `damage` is the error of
    rows that cannot be read. Raises TooManyPastReads."""
    alone = not connection.in_atomic_block
    with transaction.atomic():
        if alone:  # rows and their changes in one snapshot
            with connection.cursor() as cursor:
                cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        if not take_one_of(LockedWork.PAST_READS, READERS):
            raise TooManyPastReads(
                f"{READERS} requests already read the past, the maximum at a time. Try again in a few seconds."
            )
        try:
            _show(fill, [name for name in _MODELS if name not in hidden])
        except (DamagedContent, DatabaseError) as error:
            if isinstance(error, OperationalError):  # the database's state, not the content
                raise
            raise damage(error) from error
        try:
            yield
        finally:
            transaction.set_rollback(True)


def devices_of(found: Checkpoint) -> Mapping[str, Any]:
    """Return the devices of the figures by their UUID. Raises NoCheckpoint if it is gone since it was found."""
    devices: Mapping[str, Any] | None = _field_of(found, "devices")
    if devices is None:
        raise _gone(found)
    return devices


def content_of(found: Checkpoint) -> bytes:
    """Return the compressed rows. Raises NoCheckpoint if it is gone since it was found."""
    content = _field_of(found, "content")
    if content is None:
        raise _gone(found)
    return bytes(content)


def _field_of(found: Checkpoint, name: str) -> Any:
    return Checkpoint.objects.filter(pk=found.pk).values_list(name, flat=True).first()


def _gone(found: Checkpoint) -> NoCheckpoint:
    return NoCheckpoint(
        f"The checkpoint from {rfc3339(found.taken_at)} has just been deleted: send the request again, and the one "
        "before it answers."
    )


def _show(fill: Fill, shown: Sequence[str]) -> None:
    with connection.cursor() as cursor:
        fill(cursor, shown)
        _forget_missing(cursor, shown)
        cursor.execute("SHOW search_path")
        [path] = cursor.fetchone()
        cursor.execute("SELECT set_config('search_path', %s, true)", [f"pg_temp, {path}"])
        cursor.execute("SET TRANSACTION READ ONLY")


def fill_with_checkpoint(cursor: CursorWrapper, content: bytes, shown: Sequence[str]) -> None:
    """Fill temporary tables with the rows of a checkpoint. Raises DamagedContent."""
    tables = {table.table: table for table in tables_in(content)}
    for name in shown:
        # A table that the checkpoint does not have was added later: there was nothing in it.
        _fill(cursor, tables.get(name, TableRows(name, (), b"")))


def fill_estimates(cursor: CursorWrapper, content: bytes | None, shown: Sequence[str]) -> None:
    """Fill the table of estimates with those of a checkpoint: later ones are not recorded."""
    name = StartEstimate._meta.db_table
    if name not in shown:
        return
    cursor.execute(sql.SQL("DELETE FROM {}").format(sql.Identifier("pg_temp", name)))
    for kept in tables_in(content) if content is not None else ():
        if kept.table == name:
            cursor.execute(sql.SQL("DROP TABLE {}").format(sql.Identifier("pg_temp", name)))
            _fill(cursor, kept)


def fill_with_present_rows(cursor: CursorWrapper, cluster_id: int, at: datetime, shown: Sequence[str]) -> None:
    """Fill temporary tables with the current rows that a checkpoint of that moment might have."""
    cursor.execute("SELECT current_schema()")
    [schema] = cursor.fetchone()
    for model, condition in TABLES:
        name = model._meta.db_table
        if name in shown:
            columns = sql.SQL(", ").join(sql.Identifier(column) for column in columns_of(model))
            _create(cursor, name, _FILLING)  # conditions read the current table of this name
            cursor.execute(
                sql.SQL("INSERT INTO {temporary} ({columns}) SELECT {columns} FROM {table} AS row WHERE {rows}").format(
                    temporary=sql.Identifier("pg_temp", _FILLING),
                    columns=columns,
                    table=sql.Identifier(schema, name),
                    rows=condition_of(condition, cluster_id, oldest_at(at)),
                )
            )
            cursor.execute(
                sql.SQL("ALTER TABLE {} RENAME TO {}").format(sql.Identifier("pg_temp", _FILLING), sql.Identifier(name))
            )
            _add_indexes(cursor, name)


_MODELS: Final = {model._meta.db_table: model for model, _ in TABLES}


def _fill(cursor: CursorWrapper, found: TableRows) -> None:
    """Create the table with its present columns, and copy the rows. A kept column that the table has lost is read and
    ignored; a new one gets its default."""
    table = sql.Identifier("pg_temp", found.table)
    _create(cursor, found.table)
    cursor.execute("SELECT attname FROM pg_attribute WHERE attrelid = %s::regclass", [f"pg_temp.{found.table}"])
    present = {name for (name,) in cursor.fetchall()}
    for column in (name for name in found.columns if name not in present):
        cursor.execute(sql.SQL("ALTER TABLE {} ADD COLUMN {} text").format(table, sql.Identifier(column)))
    if found.columns:
        query = sql.SQL("COPY {} ({}) FROM STDIN").format(
            table, sql.SQL(", ").join(sql.Identifier(column) for column in found.columns)
        )
        with connection.wrap_database_errors, cursor.copy(query) as copy:
            copy.write(found.rows)
    _add_indexes(cursor, found.table)


def _create(cursor: CursorWrapper, name: str, temporary: str = "") -> None:
    """Create a temporary table of the same name, or of another one, with the columns of a current table."""
    cursor.execute(
        sql.SQL("CREATE TEMPORARY TABLE {} (LIKE {} INCLUDING DEFAULTS INCLUDING GENERATED)").format(
            sql.Identifier(temporary or name), sql.Identifier(name)
        )
    )


def _add_indexes(cursor: CursorWrapper, name: str) -> None:
    for columns in _indexed(_MODELS[name]):
        names = sql.SQL(", ").join(sql.Identifier(column) for column in columns)
        cursor.execute(sql.SQL("CREATE INDEX ON {} ({})").format(sql.Identifier("pg_temp", name), names))


def _indexed(model: type[models.Model]) -> Iterator[Sequence[str]]:
    """Yield the key, and the references by which other tables are joined."""
    yield (key_of(model),)
    for column in model._meta.concrete_fields:
        if column.is_relation and column.related_model in _MODELS.values():
            yield (str(column.column),)


def _forget_missing(cursor: CursorWrapper, shown: Collection[str]) -> None:
    """Empty the references to rows that a checkpoint does not have, such as a job of which the row was deleted."""
    for name in shown:
        for column in _MODELS[name]._meta.concrete_fields:
            target = column.related_model
            if not column.is_relation or not column.null or not isinstance(target, type):
                continue
            if target._meta.db_table in shown:
                statement = sql.SQL(
                    "UPDATE {table} SET {column} = NULL WHERE {column} IS NOT NULL "
                    "AND NOT EXISTS (SELECT FROM {target} WHERE {target}.id = {table}.{column})"
                ).format(
                    table=sql.Identifier(name),
                    column=sql.Identifier(str(column.column)),
                    target=sql.Identifier(target._meta.db_table),
                )
                cursor.execute(statement)
