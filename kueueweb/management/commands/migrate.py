"""Django's migrate with short lock waits.

A statement that changes a table waits for every transaction that reads it, such as that of a backup, and all later
statements on the table wait behind it. So each statement gives up after a few seconds, lets the others pass, and is
tried again. So is a migration whose tables another process locked in another order.
"""

from __future__ import annotations

import threading
from typing import Any, Final

import psycopg
from django.core.management.base import CommandError, CommandParser
from django.core.management.commands import migrate
from django.db import OperationalError, connections
from django.db.migrations.exceptions import InconsistentMigrationHistory

_LOCK_TIMEOUT_SECONDS: Final = 3.0
_PAUSE_SECONDS: Final = 5.0
_TRIES: Final = 120
_TABLE_IN_USE: Final = (psycopg.errors.LockNotAvailable, psycopg.errors.DeadlockDetected)
_TOO_OLD: Final = (
    "This database was created by a version (a058272 or older) that cannot be upgraded. Nothing was "
    "changed. Start with an empty database, apply your queues' manifests and submit the workloads "
    "again."
)


class Command(migrate.Command):
    """Django's, with patience."""

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
            "A table was in use all the time. Find the session that uses it (SELECT * FROM pg_stat_activity), and run "
            "migrate again: it continues where it stopped."
        )
