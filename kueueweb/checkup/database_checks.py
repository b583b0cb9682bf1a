"""PostgreSQL: whether it answers, as which user, and whether it has the tables of this release."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, Final

from django.db import DatabaseError, connection
from django.db.migrations.exceptions import InconsistentMigrationHistory
from django.db.migrations.executor import MigrationExecutor

from kueueweb.checkup.finding import Finding, clock, fail, ok, warn

_OLDEST: Final = 14
_NEARLY_FULL: Final = 0.8
_FACTS: Final = """
    SELECT current_setting('server_version_num')::int / 10000, current_setting('server_version'),
        pg_is_in_recovery(), current_setting('server_encoding'), current_setting('fsync') = 'on',
        current_setting('synchronous_commit') <> 'off',
        has_schema_privilege(current_schema(), 'CREATE'),
        (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'),
        current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int,
        coalesce((SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()), false),
        inet_server_addr() IS NULL OR inet_server_addr() = inet_client_addr(), clock_timestamp()
"""


def database_checks(*, before_migrate: bool) -> Iterator[Finding]:
    """Yield the findings; only the first if the database does not answer.

    * before_migrate: missing tables are not an error, as `migrate` has not run yet.
    """
    try:
        ours = datetime.now(UTC)
        with connection.cursor() as cursor:
            cursor.execute(_FACTS)
            facts = cursor.fetchone()
        seconds = (datetime.now(UTC) - ours).total_seconds()
    except DatabaseError as error:
        remedy = "Compare DATABASE_URL with the server's address, user and database, and check the server's log."
        yield fail("database", f"PostgreSQL does not answer: {error}", remedy)
        return
    yield from _server(facts)
    yield clock("database-clock", facts[-1], ours, precision_seconds=seconds)
    with suppress(DatabaseError):
        yield _identity()
    yield _migrations(before_migrate=before_migrate)


def _server(facts: tuple[Any, ...]) -> Iterator[Finding]:
    major, version, in_recovery, encoding, fsync, waits, may_create, connections, most, tls, is_local, _ = facts
    name = "database"
    if major < _OLDEST:
        yield fail(name, f"PostgreSQL {version}", f"Upgrade the server to PostgreSQL {_OLDEST} or newer.")
    else:
        yield ok(name, f"PostgreSQL {version}")
    if in_recovery:
        yield fail(
            "database-role", "the server is a replica, which accepts no writes", "Name the primary in DATABASE_URL."
        )
    if encoding != "UTF8":
        yield fail("database-encoding", f"{encoding}", "Create the database with ENCODING 'UTF8'.")
    if not fsync or not waits:
        setting = "fsync" if not fsync else "synchronous_commit"
        yield warn(
            "database-durability",
            f"{setting} is off: a crash of the server loses committed requests",
            f"Set {setting} to on.",
        )
    if not may_create:
        yield fail("database-rights", "the user may not create tables", "GRANT CREATE ON SCHEMA public TO the user.")
    if connections > most * _NEARLY_FULL:
        yield warn(
            "database-connections",
            f"{connections} of {most} are in use",
            "Raise max_connections, or run fewer processes.",
        )
    else:
        yield ok("database-connections", f"{connections} of {most} are in use")
    if not tls and not is_local:
        yield warn("database-tls", "the connection is not encrypted", "Add sslmode=verify-full to DATABASE_URL.")


def _identity() -> Finding:
    """Check the permission to read the identity by which installations recognize each other
    (`clusters.push.installation`)."""
    check = "database-identity"
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT system_identifier FROM pg_control_system()")
            return ok(check, str(cursor.fetchone()[0]))
    except DatabaseError as error:
        return fail(check, str(error), "GRANT EXECUTE ON FUNCTION pg_control_system() TO the user.")


def _migrations(*, before_migrate: bool) -> Finding:
    check = "database-migrations"
    try:
        executor = MigrationExecutor(connection)
        executor.loader.check_consistent_history(connection)
        plan = executor.migration_plan(executor.loader.graph.leaf_nodes())
        unknown = sorted(set(executor.loader.applied_migrations) - set(executor.loader.disk_migrations))
    except InconsistentMigrationHistory as error:
        return fail(check, str(error), "A database of that version can't be upgraded: start with an empty one.")
    except DatabaseError as error:
        return fail(check, str(error), "Let the user of DATABASE_URL read and create tables.")
    if unknown:
        app, name = unknown[-1]
        return fail(
            check, f"migrations of a newer release: {len(unknown)}, the last is {app}.{name}",
            "Run the image of that release, or restore the backup from before its upgrade.",
        )  # fmt: skip
    if plan and before_migrate:
        return ok(check, f"pending migrations: {len(plan)}")
    if plan:
        migration = plan[0][0]
        return fail(
            check, f"missing migrations: {len(plan)}, the first is {migration.app_label}.{migration.name}",
            "Run python manage.py migrate.",
        )  # fmt: skip
    return ok(check, "none is missing")
