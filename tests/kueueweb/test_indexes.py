"""Which indexes the database keeps: every row that is written writes all of its table's indexes."""

from __future__ import annotations

from collections import defaultdict
from typing import Final, NamedTuple

import pytest
from django.db import connection

from tests.kueueweb.test_migrations import LARGE

pytestmark = pytest.mark.django_db


class Index(NamedTuple):
    """An index of a table; `columns`: their numbers, in order, with class and direction of each."""

    name: str
    columns: list[tuple[str, str, str]]
    unique: bool


_WHOLE: Final = """
    SELECT indrelid::regclass::text, indexrelid::regclass::text, indkey::text, indclass::text, indoption::text,
        indisunique
    FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid JOIN pg_am ON pg_am.oid = relam
    WHERE amname = 'btree' AND indpred IS NULL AND indexprs IS NULL AND relnamespace = 'public'::regnamespace"""
"""The ordered indexes of whole tables. A partial one may be worth its place beside another that begins as it does."""


def whole_indexes() -> dict[str, list[Index]]:
    """By table."""
    found: dict[str, list[Index]] = defaultdict(list)
    with connection.cursor() as cursor:
        cursor.execute(_WHOLE)
        for table, name, *parts, unique in cursor.fetchall():
            columns = list(zip(*(part.split() for part in parts), strict=True))
            found[table].append(Index(name, columns, unique))
    return found


def needless(indexes: list[Index]) -> list[str]:
    """The indexes that find nothing that another does not find as fast."""
    return [
        each.name
        for each in indexes
        if not each.unique
        and any(other is not each and other.columns[: len(each.columns)] == each.columns for other in indexes)
    ]


def test_no_index_of_a_large_table_begins_another() -> None:
    often = LARGE | {"schedulingcycle", "device", "mirroredchange"}
    large = {table: found for table, found in whole_indexes().items() if table.partition("_")[2] in often}
    assert {"queues_workload", "history_usagerecord", "gpus_devicesample"} <= large.keys()
    assert {table: names for table, found in large.items() if (names := needless(found))} == {}


def test_an_index_that_begins_another_is_needless_unless_it_is_unique() -> None:
    one, two = ("1", "c", "0"), ("2", "c", "0")
    long, unique = Index("long", [one, two], False), Index("unique", [one], True)
    assert needless([Index("short", [one], False), Index("other", [two], False), long, unique]) == ["short"]
    assert needless([Index("backwards", [("1", "c", "3")], False), long]) == []
