"""The lock order of all transactions, and transactions whose changes the scheduler need not read back.

The order is: the cluster's row, workloads by key, pod sets, nodes, devices, slices. The scheduler's batch holds the
cluster's row while it writes the rest, and triggers update that row when other transactions write nodes or devices. A
transaction that locked it last would deadlock with a batch.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

from django.db import connection, transaction
from django.db.backends.utils import CursorWrapper

_UNNOTICED: Final = "SET LOCAL kueueweb.unnoticed = 'on'"


@contextmanager
def hardware_transaction(cluster_id: int) -> Iterator[None]:
    """Open a transaction that writes nodes, devices or slices, and lock the cluster's row first."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SELECT FROM accounts_cluster WHERE id = %s FOR NO KEY UPDATE", [cluster_id])
        yield


@contextmanager
def unnoticed_transaction(lock_timeout: str = "") -> Iterator[CursorWrapper]:
    """Open a transaction whose writes the triggers ignore, so that the scheduler does not read them back.

    `lock_timeout` is how long it waits for each locked row, as PostgreSQL writes it; empty means the session's own
    timeout.
    """
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(f"{_UNNOTICED}; SET LOCAL lock_timeout = '{lock_timeout}'" if lock_timeout else _UNNOTICED)
        yield cursor


def execute_unnoticed(statement: str, parameters: Sequence[Any]) -> int:
    """Execute one statement as in `unnoticed_transaction`, and return the number of its rows. PostgreSQL runs the
    statements of one message as one transaction, which saves BEGIN and COMMIT."""
    if connection.in_atomic_block:
        with unnoticed_transaction() as cursor:
            cursor.execute(statement, parameters)
            return int(cursor.rowcount)
    with connection.cursor() as cursor:
        cursor.execute(f"{_UNNOTICED}; {statement}", parameters)
        cursor.nextset()
        return int(cursor.rowcount)
