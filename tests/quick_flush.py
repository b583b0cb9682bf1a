"""How the database is emptied after a test that commits.

Django truncates each of the hundred tables and makes all permissions anew, which takes 0.4 seconds after each of eight
hundred tests. Here only tables that have rows are emptied, and what migrations made stays.
"""

from __future__ import annotations

from functools import cache

from django.db import connection
from django.test import TransactionTestCase

_KEPT = {"django_migrations", "django_content_type", "auth_permission"}


def delete_rows(case: TransactionTestCase) -> None:
    """What stands in for `TransactionTestCase._fixture_teardown`; the database's user has to be its superuser."""
    with connection.cursor() as cursor:
        cursor.execute(_non_empty_query())
        tables = [name for (name,) in cursor.fetchall()]
        # Without triggers and foreign keys: the order of tables is of no matter, and no trigger writes history of it.
        deletes = "".join(f"DELETE FROM {connection.ops.quote_name(name)};" for name in tables)
        cursor.execute(f"BEGIN; SET LOCAL session_replication_role = replica; {deletes} COMMIT")
        # The session serves the next test.
        cursor.execute("UNLISTEN *; SELECT pg_advisory_unlock_all()")


def keep_connections(case: TransactionTestCase) -> bool:
    """Stand in for `TransactionTestCase._should_reload_connections`, by which each test ends its session.

    A new session costs PostgreSQL a tenth of a second: it reads catalogues, and compiles triggers and plans.
    """
    return False


@cache
def _non_empty_query() -> str:
    with connection.cursor() as cursor:
        tables = sorted(set(connection.introspection.table_names(cursor)) - _KEPT)
    one = "SELECT '{0}' WHERE EXISTS (SELECT FROM {1})"
    return " UNION ALL ".join(one.format(name, connection.ops.quote_name(name)) for name in tables)
