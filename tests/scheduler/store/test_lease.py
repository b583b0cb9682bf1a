"""One leader, and the fence around the one before."""

from __future__ import annotations

import threading

import psycopg
import pytest
from django.db import InterfaceError, OperationalError, close_old_connections, connection, transaction
from django.test.utils import CaptureQueriesContext

from accounts.models import Cluster
from scheduler.models import Change
from scheduler.store.lease import Leadership, LeaseLost, begin_epoch, fence, forget_changes_in, renew
from tests.engines import in_another_session
from tests.factories import make_cluster
from tests.patience import PATIENCE_SECONDS

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def cluster() -> Cluster:
    return make_cluster()


def test_one_process_leads() -> None:
    first, second = Leadership(), Leadership()
    assert first.acquire()
    assert first.acquire()
    assert not second.acquire()
    first.release()
    assert second.acquire()
    second.release()


def test_a_leader_at_rest_names_its_session_once() -> None:
    leadership = Leadership()
    assert leadership.acquire()
    with CaptureQueriesContext(connection) as queries:
        assert leadership.acquire()
    assert len(queries) == 0
    connection.close()
    assert leadership.acquire()
    with connection.cursor() as cursor:
        cursor.execute("SELECT current_setting('application_name')")
        assert cursor.fetchone()[0].startswith("kueueweb-scheduler ")
    leadership.release()


def test_a_cluster_with_processes_of_its_own_has_a_leader_of_its_own() -> None:
    all_others, east, second = Leadership(), Leadership("east"), Leadership("east")
    assert all_others.acquire()
    assert east.acquire()
    assert not second.acquire()
    all_others.release()
    assert not second.acquire()
    east.release()
    second.wait()  # PostgreSQL frees the lock once the session has ended
    second.release()


def test_a_process_leads_only_once() -> None:
    leadership = Leadership()
    assert leadership.acquire()
    leadership.release()
    with pytest.raises(LeaseLost, match="has led before; a process leads only once"):
        leadership.acquire()


def test_a_leader_whose_session_ended_notices() -> None:
    leadership, next_leader = Leadership(), Leadership()
    assert leadership.acquire()
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'kueueweb-leader %'"
        )
    next_leader.wait()
    with pytest.raises(LeaseLost, match=f"{leadership.holder} led, but the database session with its lock has ended"):
        leadership.acquire()
    next_leader.release()


def test_a_standby_leads_as_soon_as_the_leader_is_gone() -> None:
    leader, standby = Leadership(), Leadership()
    assert leader.acquire()
    waiting = threading.Thread(target=standby.wait)
    waiting.start()
    leader.release()
    waiting.join(timeout=PATIENCE_SECONDS)
    assert not waiting.is_alive()
    assert standby.acquire()
    standby.release()


def test_a_leader_that_makes_no_progress_is_replaced() -> None:
    leader, patient, standby = Leadership(), Leadership(silence_seconds=3600.0), Leadership(silence_seconds=0.0)
    in_another_session(leader.acquire)
    with pytest.raises(TimeoutError):
        patient.wait(sleep=out_of_time)
    assert leader.renew(), "a leader that has renewed lately goes on"
    standby.wait(sleep=lambda seconds: None)
    assert standby.acquire()
    with pytest.raises(LeaseLost):
        leader.acquire()
    standby.release()


def test_a_leader_that_loads_may_be_silent_for_longer() -> None:
    leader, standby = Leadership(), Leadership(silence_seconds=0.0, loading_seconds=3600.0)
    in_another_session(leader.acquire)
    with leader.loading(), pytest.raises(TimeoutError):
        standby.wait(sleep=out_of_time)
    assert leader.renew()
    leader.release()


def test_a_batch_of_a_leader_that_hangs_does_not_hold_up_the_next_one(cluster: Cluster) -> None:
    """The hanging leader has locked its lease row; its session ends, and so does the lock."""
    old = begin_epoch(cluster.pk, "old")
    locked, over = threading.Event(), threading.Event()
    found: list[str] = []

    def hang() -> None:
        leader = Leadership()
        assert leader.acquire()
        try:
            with transaction.atomic():
                fence(cluster.pk, old)
                locked.set()
                over.wait(timeout=60)
                fence(cluster.pk, old)
        except (InterfaceError, OperationalError) as error:
            found.append(type(error).__name__)
        connection.close()
        leader.release()

    hanging = threading.Thread(target=hang)
    hanging.start()
    assert locked.wait(timeout=60)
    standby = Leadership(silence_seconds=0.0)
    standby.wait()
    assert begin_epoch(cluster.pk, "new") == old + 1
    over.set()
    hanging.join(timeout=60)
    assert found
    standby.release()


def out_of_time(seconds: float) -> None:
    raise TimeoutError


def test_an_older_epoch_is_fenced(cluster: Cluster) -> None:
    old = begin_epoch(cluster.pk, "old")
    new = begin_epoch(cluster.pk, "new")
    assert new == old + 1
    with transaction.atomic():
        fence(cluster.pk, new)
    with pytest.raises(LeaseLost), transaction.atomic():
        fence(cluster.pk, old)
    with pytest.raises(LeaseLost):
        renew(cluster.pk, old)
    renew(cluster.pk, new)


def test_notes_that_decided_nothing_are_deleted_in_their_epoch_only(cluster: Cluster) -> None:
    old = begin_epoch(cluster.pk, "old")
    new = begin_epoch(cluster.pk, "new")
    notes = [
        Change.objects.create(cluster_id=cluster.pk, kind="workload", object_id=n, key=f"team/{n}").pk for n in (1, 2)
    ]
    with pytest.raises(LeaseLost):
        forget_changes_in(cluster.pk, old, notes, "2s")
    assert Change.objects.filter(pk__in=notes).count() == 2
    forget_changes_in(cluster.pk, new, notes[:1], "2s")
    assert [*Change.objects.filter(pk__in=notes).values_list("pk", flat=True)] == notes[1:]
    forget_changes_in(cluster.pk, new, notes[:1], "2s")  # another process has deleted them


def test_a_fence_with_the_configuration_sees_an_edit_that_it_waited_for(cluster: Cluster) -> None:
    epoch = begin_epoch(cluster.pk, "leader")
    edited, found = threading.Event(), []
    before = Cluster.objects.get(pk=cluster.pk).configuration_generation

    def edit() -> None:
        with transaction.atomic():
            Cluster.objects.filter(pk=cluster.pk).update(configuration_generation=before + 1)
            edited.set()
            wait_until_blocked()
        connection.close()

    editor = threading.Thread(target=edit)
    editor.start()
    assert edited.wait(timeout=PATIENCE_SECONDS)
    with transaction.atomic():
        found.append(fence(cluster.pk, epoch, configuration=True))
    editor.join(timeout=PATIENCE_SECONDS)
    assert found == [before + 1]


def test_a_new_leader_waits_for_a_batch_under_way(cluster: Cluster) -> None:
    old = begin_epoch(cluster.pk, "old")
    order: list[str] = []

    def take_over() -> None:
        begin_epoch(cluster.pk, "new")
        order.append("took over")
        close_old_connections()
        connection.close()

    taker = threading.Thread(target=take_over)
    with transaction.atomic():
        fence(cluster.pk, old)
        taker.start()
        wait_until_blocked()
        order.append("batch committed")
    taker.join(timeout=PATIENCE_SECONDS)
    assert order == ["batch committed", "took over"]


def wait_until_blocked() -> None:
    """Until some session of this database waits for a lock; asked outside the transaction under test."""
    parameters = connection.get_connection_params()
    options = {key: parameters[key] for key in ("dbname", "user", "host", "port", "password") if parameters.get(key)}
    with psycopg.connect(**options, autocommit=True) as session:
        for _ in range(1000):
            row = session.execute(
                "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
            ).fetchone()
            if row and row[0]:
                return
            session.execute("SELECT pg_sleep(0.01)")
    raise AssertionError("nothing ever waited for the batch")
