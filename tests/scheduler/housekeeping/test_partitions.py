"""Monthly partitions of the decision log."""

from __future__ import annotations

import uuid
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

import pytest
from django.db import connection, transaction

from scheduler.housekeeping.partitions import maintain_partitions, month_start
from scheduler.models import Decision
from tests.acceptance.processes import wait_for

pytestmark = pytest.mark.django_db

NOVEMBER = datetime(2026, 11, 20, tzinfo=UTC)


def partitions() -> list[str]:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT c.relname FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid "
            "WHERE i.inhparent = 'scheduler_decision'::regclass ORDER BY 1"
        )
        return [row[0] for row in cursor.fetchall()]


def write_decision(at: datetime) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO scheduler_decision (decided_at, cluster_name, epoch, cycle, action, namespace, workload_name, "
            "workload_uid, cluster_queue_name, reason, message, detail) "
            "VALUES (%s, 'default', 1, 1, 'Admit', 'team', 'one', %s, 'main', 'Admitted', '', '{}')",
            [at, uuid.uuid4()],
        )


@pytest.mark.parametrize(
    ("months", "start"), [(0, datetime(2026, 11, 1, tzinfo=UTC)), (2, datetime(2027, 1, 1, tzinfo=UTC))]
)
def test_a_month_starts_on_its_first(months: int, start: datetime) -> None:
    assert month_start(NOVEMBER, months) == start


def test_it_makes_this_month_and_the_next_two_and_nothing_twice() -> None:
    with connection.cursor() as cursor:
        maintain_partitions(cursor, NOVEMBER)
        maintain_partitions(cursor, NOVEMBER)
    assert partitions() == [
        "scheduler_decision_2026_11",
        "scheduler_decision_2026_12",
        "scheduler_decision_2027_01",
        "scheduler_decision_default",
    ]


def test_it_takes_over_what_the_default_partition_held() -> None:
    write_decision(NOVEMBER)
    with connection.cursor() as cursor:
        maintain_partitions(cursor, NOVEMBER)
        cursor.execute("SELECT count(*) FROM scheduler_decision_default")
        assert cursor.fetchone() == (0,)
    assert Decision.objects.count() == 1


def test_a_partition_that_was_left_without_its_log_is_attached_with_its_rows() -> None:
    """An earlier release could stop between the two."""
    write_decision(NOVEMBER)
    with connection.cursor() as cursor:
        cursor.execute("CREATE TABLE scheduler_decision_2026_11 (LIKE scheduler_decision INCLUDING DEFAULTS)")
        cursor.execute("INSERT INTO scheduler_decision_2026_11 SELECT * FROM scheduler_decision_default")
        cursor.execute("DELETE FROM scheduler_decision_default")
        maintain_partitions(cursor, NOVEMBER)
    assert Decision.objects.count() == 1
    assert "scheduler_decision_2026_11" in partitions()


@pytest.mark.django_db(transaction=True)
def test_a_decision_that_is_written_meanwhile_does_not_stop_it() -> None:
    try:
        with ThreadPoolExecutor(1) as pool:
            with transaction.atomic():
                write_decision(NOVEMBER)
                made = pool.submit(_maintain)
                wait_for("a session that waits for this one", _waits_for_a_lock)
                write_decision(NOVEMBER)
            made.result()
        assert Decision.objects.count() == 2
        with connection.cursor() as cursor:
            cursor.execute("SELECT count(*) FROM scheduler_decision_default")
            assert cursor.fetchone() == (0,)
    finally:
        with connection.cursor() as cursor:
            for name in partitions()[:-1]:
                cursor.execute(f"DROP TABLE {name}")


def _maintain() -> None:
    try:
        with connection.cursor() as cursor:
            maintain_partitions(cursor, NOVEMBER)
    finally:
        connection.close()


def _waits_for_a_lock() -> bool:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT FROM pg_locks WHERE NOT granted AND relation = 'scheduler_decision_default'::regclass "
            "AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
        )
        return cursor.fetchone() is not None


def test_it_drops_months_beyond_the_retention() -> None:
    with connection.cursor() as cursor:
        maintain_partitions(cursor, datetime(2026, 3, 5, tzinfo=UTC))
        write_decision(datetime(2026, 3, 6, tzinfo=UTC))
        write_decision(datetime(2026, 5, 6, tzinfo=UTC))
        maintain_partitions(cursor, NOVEMBER)
    assert "scheduler_decision_2026_03" not in partitions()
    assert "scheduler_decision_2026_05" in partitions()
    assert Decision.objects.count() == 1
