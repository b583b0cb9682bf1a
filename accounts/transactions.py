"""Transactions of those who know already what they write."""

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connection, transaction
from django.db.backends.utils import CursorWrapper


@contextmanager
def unnoticed_transaction() -> Iterator[CursorWrapper]:
    """A transaction whose writes the database's triggers do not note, so that the scheduler does not read them back."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET LOCAL kueueweb.unnoticed = 'on'")
        yield cursor
