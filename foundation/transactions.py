"""The lock order of all transactions, and transactions whose changes the scheduler need not read back.

The order is: the cluster's row, workloads by key, pod sets, nodes, devices, slices. The scheduler's batch holds the
cluster's row while it writes the rest, and triggers update that row when other transactions write nodes or devices. A
transaction that locked it last would deadlock with a batch.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connection, transaction
from django.db.backends.utils import CursorWrapper


@contextmanager
def hardware_transaction(cluster_id: int) -> Iterator[None]:
    """A transaction that writes nodes, devices or slices, and so has locked the cluster's row first."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SELECT FROM accounts_cluster WHERE id = %s FOR NO KEY UPDATE", [cluster_id])
        yield


@contextmanager
def unnoticed_transaction() -> Iterator[CursorWrapper]:
    """Open a transaction whose writes the triggers ignore, so that the scheduler does not read them back."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET LOCAL kueueweb.unnoticed = 'on'")
        yield cursor
