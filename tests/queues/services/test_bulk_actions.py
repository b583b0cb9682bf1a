"""Thousands of workloads in one call: committed in pieces, between which the leader decides, and one line of audit."""

from __future__ import annotations

import threading
from functools import partial

import pytest
from django.db import DatabaseError, connection

from accounts.models import AuditRecord, Cluster
from accounts.services import audit
from accounts.services.actor import Actor, act_as, acting
from queues.api.workload_pieces import in_pieces
from queues.models import Workload
from queues.services import workloads
from queues.services.workloads import Action
from tests.engines import start
from tests.factories import make_cluster, make_cluster_queue, make_workload

pytestmark = pytest.mark.django_db(transaction=True)

Keys = list[tuple[str, str]]
SIZE, MANY = 20, 50

ACTIONS: dict[str, Action] = {
    "cancel": partial(workloads.cancel, actor="alice"),
    "hold": partial(workloads.hold, actor="alice"),
    "priority": partial(workloads.change_priority, priority=7, actor="alice"),
}


@pytest.fixture
def cluster() -> Cluster:
    cluster = make_cluster()
    make_cluster_queue(cluster, quotas={"default-flavor": {"cpu": 100_000}})
    return cluster


@pytest.fixture
def keys(cluster: Cluster) -> Keys:
    rows = [make_workload(cluster, f"w-{number:04}") for number in range(MANY)]
    return [(row.namespace, row.name) for row in reversed(rows)]


def newest() -> int:
    found = AuditRecord.objects.order_by("-id").first()
    return found.id if found else 0


@pytest.mark.parametrize("verb", ACTIONS)
def test_the_leader_decides_between_the_pieces(cluster: Cluster, keys: Keys, verb: str) -> None:
    """Each piece is committed before the next one, so a new workload is admitted meanwhile."""
    engine = start(cluster)
    sizes: list[int] = []
    decided: list[str] = []

    def action(place: Cluster, piece: Keys) -> Keys:
        changed = ACTIONS[verb](place, piece)
        assert not connection.in_atomic_block
        sizes.append(len(piece))
        row = make_workload(cluster, f"other-{len(sizes)}")
        engine.run()
        row.refresh_from_db()
        decided.append(row.status)
        return changed

    assert in_pieces(action, cluster, keys, SIZE) == keys
    assert sizes == [SIZE, SIZE, MANY - 2 * SIZE]
    assert decided == ["Admitted"] * 3


def test_two_calls_on_the_same_workloads_and_the_leader_wait_for_each_other_in_one_order(
    cluster: Cluster, keys: Keys
) -> None:
    engine = start(cluster)
    failed: list[DatabaseError] = []

    def call(verb: str, named: Keys) -> None:
        try:
            in_pieces(ACTIONS[verb], cluster, named, SIZE)
        except DatabaseError as error:
            failed.append(error)
        finally:
            connection.close()

    threads = [
        threading.Thread(target=call, args=("priority", keys)),
        threading.Thread(target=call, args=("hold", list(reversed(keys)))),
    ]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        engine.run()
    for thread in threads:
        thread.join()
    assert failed == []
    engine.run()
    assert set(Workload.objects.values_list("active", "priority")) == {(False, 7)}


def test_one_request_is_one_line_of_the_audit(cluster: Cluster, keys: Keys) -> None:
    Workload.objects.filter(name="w-0003").update(priority=2)
    before = newest()
    with acting(Actor(request="POST /api/v1/workloads/priority/", request_id="r-1")):
        act_as("alice", "session")
        in_pieces(ACTIONS["priority"], cluster, keys, SIZE)
    [line] = AuditRecord.objects.filter(id__gt=before)
    assert (line.verb, line.kind, line.namespace, line.name) == ("update", "Workload", "team", "")
    assert (line.username, line.request_id) == ("alice", "r-1")
    assert line.after == {"count": MANY, "names": sorted(name for _, name in keys), "priority": 7}
    assert line.before == {}, "they had different priorities"
    with acting(Actor(request="POST /api/v1/workloads/hold/", request_id="r-2")):
        act_as("bob", "session")
        in_pieces(ACTIONS["hold"], cluster, keys[:1], SIZE)
    alone = AuditRecord.objects.order_by("-id")[0]
    assert (alone.name, alone.username, alone.before, alone.after) == (
        keys[0][1], "bob", {"active": True}, {"active": False}
    )  # fmt: skip


def test_what_a_request_did_before_it_broke_off_is_in_the_audit(cluster: Cluster, keys: Keys) -> None:
    before = newest()
    done: Keys = []

    def breaks_off(place: Cluster, piece: Keys) -> Keys:
        if done:
            raise DatabaseError("the connection is lost")
        done.extend(ACTIONS["hold"](place, piece))
        return done

    with pytest.raises(DatabaseError):
        in_pieces(breaks_off, cluster, keys, SIZE)
    [line] = AuditRecord.objects.filter(id__gt=before)
    assert line.after == {"count": SIZE, "names": sorted(name for _, name in done), "active": False}


def test_lines_of_a_request_that_died_are_written_for_it(cluster: Cluster, keys: Keys) -> None:
    """Its process was killed between two pieces: the parts are committed, and no line is."""
    before = newest()
    actor = '{"username": "alice", "request_id": "r-9"}'
    with connection.cursor() as cursor:
        cursor.execute("SELECT set_config('kueueweb.actor', %s, false)", [actor])
        cursor.execute("SELECT set_config('kueueweb.audit_together', 'dead', false)")
    ACTIONS["hold"](cluster, keys[:3])
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT set_config('kueueweb.actor', '', false), set_config('kueueweb.audit_together', '', false)"
        )
    audit.join_left_behind()
    assert newest() == before, "it may still be at work"
    with connection.cursor() as cursor:
        cursor.execute("UPDATE accounts_auditpart SET at = at - interval '1 hour'")
    audit.join_left_behind()
    [line] = AuditRecord.objects.filter(id__gt=before)
    assert (line.username, line.request_id) == ("alice", "r-9")
    assert line.after is not None
    assert line.after["count"] == 3
    audit.join_left_behind()
    assert newest() == line.id
