"""Transactions of those who know already what they write, and the order in which all of them lock rows.

The order is: the cluster's row, workloads by their keys, pod sets, nodes, devices, slices. The scheduler's batch holds
the cluster's row while it writes the rest, and triggers raise a number there when others write hardware: whoever
came to that row last would wait for a batch that waits for it.
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
    """A transaction whose writes the database's triggers do not note, so that the scheduler does not read them back."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET LOCAL kueueweb.unnoticed = 'on'")
        yield cursor
