"""Django's migrate with short lock waits.

A statement that changes a table waits for every transaction that reads it, such as that of a backup, and all later
statements on the table wait behind it. So each statement gives up after a few seconds, lets the others pass, and is
tried again. So is a migration whose tables another process locked in another order.

An index that is built concurrently blocks no other statement while it waits, so it may wait longer: whenever it gives
up, it is built again. It then leaves an unfinished index under its name, which is dropped before the next attempt. One
that was finished before the migration was interrupted is kept (`BuildIndex`).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any, Final

import psycopg
from django.contrib.postgres.operations import AddIndexConcurrently
from django.core.management.base import CommandError, CommandParser
from django.core.management.commands import migrate
from django.db import OperationalError, connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.migrations.exceptions import InconsistentMigrationHistory
from django.db.migrations.executor import MigrationExecutor

from kueueweb.management.commands.makemigrations import WithoutHelp

_LOCK_TIMEOUT_SECONDS: Final = 3.0
_PAUSE_SECONDS: Final = 5.0
_TRIES: Final = 120
_INDEX_TIMEOUT_SECONDS: Final = 600.0
_TABLE_IN_USE: Final = (psycopg.errors.LockNotAvailable, psycopg.errors.DeadlockDetected)
_TOO_OLD: Final = (
    "This database was created by a version (a058272 or older) that cannot be upgraded. Nothing was "
    "changed. Start with an empty database, apply your queues' manifests and submit the workloads "
    "again."
)


class Command(migrate.Command):
    """Django's, with patience."""

    autodetector = WithoutHelp

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument(
            "--lock-timeout",
            type=float,
            default=_LOCK_TIMEOUT_SECONDS,
            help="Seconds that a table change waits for its readers before it yields to other sessions.",
        )
        parser.add_argument("--lock-pause", type=float, default=_PAUSE_SECONDS, help="Seconds before the next attempt.")

    def handle(self, *arguments: Any, lock_timeout: float, lock_pause: float, **options: Any) -> None:
        connection = connections[options["database"]]
        for _ in range(_TRIES):
            with connection.cursor() as cursor:
                cursor.execute("SELECT set_config('lock_timeout', %s, false)", [f"{lock_timeout * 1000:.0f}ms"])
            try:
                with connection.execute_wrapper(_let_indexes_wait):
                    for name in _unfinished_indexes(connection):
                        self.stderr.write(f"Dropping the unfinished index {name} of an earlier attempt")
                        with connection.cursor() as cursor:
                            cursor.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {connection.ops.quote_name(name)}")
                    super().handle(*arguments, **options)
            except OperationalError as error:
                if not isinstance(error.__cause__, _TABLE_IN_USE):
                    raise
                self.stderr.write(f"A table is in use; retrying in {lock_pause:g} s: {error}")
                threading.Event().wait(lock_pause)
            except InconsistentMigrationHistory as error:
                raise CommandError(_TOO_OLD) from error
            else:
                return
            finally:
                with connection.cursor() as cursor:
                    cursor.execute("RESET lock_timeout")
        raise CommandError(
            "A table was in use the whole time. Find the session that uses it (SELECT * FROM pg_stat_activity), "
            "and run "
            "migrate again: it continues where it stopped."
        )


def _let_indexes_wait(
    execute: Callable[..., Any], statement: Any, parameters: Any, many: bool, context: dict[str, Any]
) -> Any:
    """Execute a statement; one that builds an index beside all other work waits for longer."""
    if "CONCURRENTLY" not in str(statement):
        return execute(statement, parameters, many, context)
    cursor = context["cursor"].cursor
    before = cursor.execute("SELECT current_setting('lock_timeout')").fetchone()[0]
    cursor.execute("SELECT set_config('lock_timeout', %s, false)", [f"{_INDEX_TIMEOUT_SECONDS * 1000:.0f}ms"])
    try:
        return execute(statement, parameters, many, context)
    finally:
        cursor.execute("SELECT set_config('lock_timeout', %s, false)", [before])


def _unfinished_indexes(connection: BaseDatabaseWrapper) -> Iterator[str]:
    """Yield the names of invalid indexes that a migration still has to create, and that no session is creating."""
    executor = MigrationExecutor(connection)
    plan = executor.migration_plan(executor.loader.graph.leaf_nodes())
    operations = (operation for migration, _ in plan for operation in migration.operations)
    names = [each.index.name for each in operations if isinstance(each, AddIndexConcurrently)]
    with connection.cursor() as cursor:
        cursor.execute(
            """
            SELECT class.relname FROM pg_index AS index JOIN pg_class AS class ON class.oid = index.indexrelid
            WHERE NOT index.indisvalid AND class.relname = ANY (%s) AND pg_table_is_visible(class.oid)
            AND NOT EXISTS (SELECT FROM pg_stat_progress_create_index WHERE index_relid = index.indexrelid)
            """,
            [names],
        )
        yield from [name for (name,) in cursor.fetchall()]
