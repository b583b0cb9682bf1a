"""Changes of rows are recorded while recording is on, taken over by checkpoints, and undone for a moment."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import datetime, timedelta
from threading import Event
from types import SimpleNamespace
from typing import Any

import pytest
from django.db import connection, transaction
from django.utils import timezone

from accounts.models import Cluster
from foundation.shown_past import current_past, open_past
from history.models import Checkpoint, RowChange
from history.services.checkpoints import change_recording
from history.services.checkpoints.change_recording import delete_recorded_changes, record_changes, recorded_since
from history.services.checkpoints.checkpoint_taking import take_checkpoint
from history.services.checkpoints.past_moments import NOT_RECORDED, cluster_at, find_moment, showing_moment
from history.services.checkpoints.past_rows import NoCheckpoint
from history.tasks import prune, take_checkpoints
from queues.models import ClusterQueue, FlavorQuota, PodSet, Workload
from scheduler.api.queue_status import NO_FIGURES, read_numbers
from tests.factories import make_cluster, make_cluster_queue, make_workload

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def cluster(settings: Any) -> Iterator[Cluster]:
    settings.CHECKPOINT_CHANGES = True
    cluster = make_cluster()
    make_cluster_queue(cluster)
    record_changes(True)
    yield cluster
    record_changes(False)


def names(cluster: Cluster, at: datetime) -> set[str]:
    with showing_moment(find_moment(Cluster.objects.get(pk=cluster.pk), at)):
        return set(Workload.objects.values_list("name", flat=True))


def test_nothing_is_recorded_while_it_is_off(cluster: Cluster) -> None:
    record_changes(False)
    RowChange.objects.all().delete()
    make_workload(cluster, "a")
    assert not RowChange.objects.exists()
    assert recorded_since() is None
    with pytest.raises(NoCheckpoint):
        find_moment(cluster, timezone.now())
    record_changes(True)
    make_workload(cluster, "b")
    assert RowChange.objects.exists()


def test_a_moment_before_the_recording_began_is_that_of_the_checkpoint_before(cluster: Cluster) -> None:
    record_changes(False)
    found = take_checkpoint(cluster)
    make_workload(cluster, "a")
    before = timezone.now()
    record_changes(True)
    moment = find_moment(cluster, before)
    assert (moment.undone, moment.exact, moment.time) == (False, False, found.taken_at)
    with open_past(cluster.pk, before) as past:
        assert (past.exact, past.reason) == (False, NOT_RECORDED)
    take_checkpoint(cluster)
    assert not find_moment(cluster, before).exact
    assert find_moment(cluster, timezone.now()).exact


@pytest.mark.parametrize("taken", [False, True], ids=["from the current rows", "from the next checkpoint"])
def test_creations_changes_and_deletions_are_undone(taken: bool, cluster: Cluster) -> None:
    first = timezone.now()
    make_workload(cluster, "a")
    second = timezone.now()
    Workload.objects.filter(name="a").update(priority=7)
    FlavorQuota.objects.update(nominal_quota=1)
    third = timezone.now()
    Workload.objects.filter(name="a").update(priority=8)
    Workload.objects.filter(name="a").delete()
    make_workload(cluster, "b")
    if taken:
        take_checkpoint(cluster)
        make_workload(cluster, "c")
    assert [names(cluster, at) for at in (first, second, third)] == [set(), {"a"}, {"a"}]
    for at, priority, quota in ((second, 0, 10_000), (third, 7, 1)):
        with showing_moment(find_moment(cluster, at)):
            assert [row.priority for row in Workload.objects.all()] == [priority]
            assert PodSet.objects.get().workload.name == "a"
            assert FlavorQuota.objects.get().nominal_quota == quota
    assert set(Workload.objects.values_list("name", flat=True)) == ({"b", "c"} if taken else {"b"})


def test_a_transaction_is_shown_as_a_whole(cluster: Cluster) -> None:
    with transaction.atomic():
        make_workload(cluster, "a")
        between = timezone.now()
        make_workload(cluster, "b")
    assert names(cluster, between) == {"a", "b"}
    [moment] = set(RowChange.objects.exclude(operation="B").values_list("at", flat=True))
    assert names(cluster, moment - timedelta(microseconds=1)) == set()


def test_the_settings_of_the_cluster_are_those_of_the_moment(cluster: Cluster) -> None:
    before = timezone.now()
    for value in ({"fairSharing": {"enable": True}}, {}):
        Cluster.objects.filter(pk=cluster.pk).update(configuration=value)
    Cluster.objects.filter(pk=cluster.pk).update(mode="observe", configuration={"a": 1})
    moment = find_moment(Cluster.objects.get(pk=cluster.pk), before)
    with showing_moment(moment) as settings:
        then = cluster_at(moment, settings)
    assert (then.configuration, then.mode) == ({}, "schedule")


def test_rows_of_another_cluster_are_not_shown(cluster: Cluster) -> None:
    west = make_cluster("west")
    make_workload(west, "elsewhere")
    at = timezone.now()
    Workload.objects.all().delete()
    assert (names(cluster, at), names(west, at)) == (set(), {"elsewhere"})


def test_the_figures_are_those_of_the_moment(cluster: Cluster) -> None:
    make_workload(cluster, "a", cluster_queue_name="main")
    at = timezone.now()
    make_workload(cluster, "b", cluster_queue_name="main")
    ClusterQueue.objects.update(cohort_name="later")
    with open_past(cluster.pk, at) as past:
        assert past.exact
        assert current_past() is past
        numbers = read_numbers(cluster)
    assert (numbers.time, numbers.cluster_queues["main"]["pending"], numbers.cluster_queues["main"]["cohort"]) == (
        at,
        1,
        "",
    )


def test_changes_are_deleted_once_every_cluster_has_a_checkpoint_with_them(cluster: Cluster) -> None:
    west = make_cluster("west")
    make_workload(cluster, "a")
    old = timezone.now() - timedelta(minutes=30)
    RowChange.objects.update(at=old)
    take_checkpoint(cluster)
    assert delete_recorded_changes() == 0  # west has none
    assert RowChange.objects.exists()
    take_checkpoint(west)
    assert not RowChange.objects.filter(at=old).exists()


def test_changes_are_kept_for_an_hour_at_most_and_are_then_a_gap(cluster: Cluster) -> None:
    RowChange.objects.update(at=timezone.now() - timedelta(hours=2))  # the beginning
    assert delete_recorded_changes() == 1
    assert names(cluster, timezone.now() - timedelta(minutes=59)) == set()
    with pytest.raises(NoCheckpoint):
        find_moment(cluster, timezone.now() - timedelta(minutes=61))


def test_too_many_changes_are_not_kept_and_the_checkpoint_is_taken(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_workload(cluster, "a")
    with connection.cursor() as cursor:  # more than one read of COPY has: the server is still sending when we stop
        cursor.execute(
            "INSERT INTO history_rowchange (at, table_name, operation, row_id, old) "
            "SELECT clock_timestamp(), 'queues_workload', 'U', 0, hstore('name', repeat(md5(n::text), 1000)) "
            "FROM generate_series(1, 1000) AS n"
        )
    monkeypatch.setattr(change_recording, "MOST_CHANGE_BYTES", 10)
    found = take_checkpoint(cluster)
    assert (found.changes, found.changes_since) == (None, None)
    assert found.figures["source"] != NO_FIGURES


def test_damaged_changes_are_no_moment(cluster: Cluster) -> None:
    at = take_checkpoint(cluster).taken_at + timedelta(milliseconds=2)  # no checkpoint's own millisecond
    take_checkpoint(cluster)
    Checkpoint.objects.update(changes=b"nothing")
    with pytest.raises(NoCheckpoint, match="is damaged"):
        names(cluster, at)


def test_a_heartbeat_alone_is_not_recorded(cluster: Cluster) -> None:
    make_workload(cluster, "a")
    RowChange.objects.all().delete()
    with connection.cursor() as cursor:
        cursor.execute("SET kueueweb.unnoticed = 'on'")
        cursor.execute("UPDATE queues_workload SET updated_at = now()")
        cursor.execute("UPDATE queues_workload SET updated_at = now(), priority = 3")
        cursor.execute("RESET kueueweb.unnoticed")
    assert RowChange.objects.count() == 1


def test_checkpoints_are_taken_also_if_the_recording_cannot_be_turned_on(
    cluster: Cluster, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    record_changes(False)
    monkeypatch.setattr(change_recording, "LOCK_SECONDS", 0.01)
    locked, done = Event(), Event()

    def lock() -> None:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("LOCK TABLE gpus_node IN ROW EXCLUSIVE MODE")
            locked.set()
            done.wait(60)
        connection.close()

    with ThreadPoolExecutor(1) as pool:
        held = pool.submit(lock)
        assert locked.wait(60)
        take_checkpoints()
        done.set()
        held.result()
    assert "cannot turn the recording of changes on" in caplog.text
    assert Checkpoint.objects.get().changes_since is None
    take_checkpoints()
    assert recorded_since() is not None


def test_recording_ends_with_the_checkpoints(cluster: Cluster, settings: Any) -> None:
    settings.CHECKPOINT_MINUTES = 0
    RowChange.objects.update(at=timezone.now() - timedelta(hours=2))
    prune()
    assert recorded_since() is None
    make_workload(cluster, "a")
    assert not RowChange.objects.exists()


def test_changes_are_deleted_also_if_no_checkpoint_can_be_taken(cluster: Cluster) -> None:
    make_workload(cluster, "a")
    RowChange.objects.filter(table_name="queues_workload").update(at=timezone.now() - timedelta(hours=2))
    prune()
    assert recorded_since() is not None
    assert RowChange.objects.exists()
    assert not RowChange.objects.filter(table_name="queues_workload").exists()


def test_a_process_that_ends_after_its_last_trigger_leaves_the_beginning(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    record_changes(False)
    RowChange.objects.all().delete()
    before = timezone.now()
    make_workload(cluster, "a")

    @contextmanager
    def ends_after(*arguments: Any) -> Iterator[None]:
        with transaction.atomic():
            yield
        with connection.cursor() as cursor:
            cursor.execute("SELECT FROM pg_trigger WHERE tgname LIKE 'kueueweb\\_record\\_%' AND tgenabled = 'D'")
            if not cursor.fetchall():
                raise SystemExit

    monkeypatch.setattr(change_recording, "transaction", SimpleNamespace(atomic=ends_after))
    with pytest.raises(SystemExit):
        record_changes(True)
    since = recorded_since()
    assert since is not None
    assert since > before


def test_a_checkpoint_from_before_the_clock_was_set_back_is_not_the_next_one(cluster: Cluster) -> None:
    found = take_checkpoint(cluster)
    Checkpoint.objects.filter(pk=found.pk).update(taken_at=timezone.now() + timedelta(hours=1))
    make_workload(cluster, "a")
    assert names(cluster, timezone.now()) == {"a"}


def test_a_row_that_was_deleted_before_an_upgrade_has_the_defaults_of_new_columns(cluster: Cluster) -> None:
    make_workload(cluster, "a")
    at = timezone.now()
    Workload.objects.all().delete()
    with connection.cursor() as cursor:
        cursor.execute("UPDATE history_rowchange SET old = old - 'requeue_reason'::text WHERE operation = 'D'")
    assert names(cluster, at) == {"a"}
