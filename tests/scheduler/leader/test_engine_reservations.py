"""The engine and reservations: windows open and close at their times, and evict where they say so."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from accounts.models import Cluster
from gpus.models import Node
from queues.models import AdmissionCheck, ClusterQueue, PodSet, Reservation
from queues.services.admission_checks import CheckAnswer, set_check_state
from queues.services.workloads import record_finished
from scheduler.leader.engine import Engine
from scheduler.leader.failed_batch import write_failed_batch
from scheduler.models import Decision
from scheduling.model.vocabulary import AdmissionCheckStatus, EvictionReason
from tests.engines import NOW, reasons, start, statuses
from tests.factories import START, make_cluster, make_cluster_queue, make_node, make_workload

pytestmark = pytest.mark.django_db(transaction=True)

GPU = {"nvidia.com/gpu": "1", "nvidia.com/gpumem": "16000"}


class Clock:
    """A clock that the test moves, in seconds from NOW."""

    def __init__(self) -> None:
        self.at = NOW

    def __call__(self) -> float:
        return self.at

    def after(self, seconds: float) -> None:
        self.at = NOW + seconds


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def cluster() -> Cluster:
    """Two nodes of one device each."""
    cluster = make_cluster()
    make_cluster_queue(cluster, quotas={"default-flavor": {"nvidia.com/gpu": 8, "nvidia.com/gpumem": 10**6}})
    for name in ("n1", "n2"):
        make_node(cluster, name, [{}])
    return cluster


def engine_of(cluster: Cluster, clock: Clock) -> Engine:
    return Engine(cluster, "test", clock=clock)


def reserve(cluster: Cluster, start: float, end: float, *nodes: str, **fields: Any) -> Reservation:
    """A reservation from and to a number of seconds after NOW."""
    at = datetime.fromtimestamp(NOW, UTC)
    return Reservation.objects.create(
        cluster=cluster,
        name=fields.pop("name", "maintenance"),
        created_at=START,
        starts_at=at + timedelta(seconds=start),
        ends_at=at + timedelta(seconds=end),
        node_names=list(nodes),
        **fields,
    )


def test_a_window_closes_its_nodes_and_its_end_opens_them(cluster: Cluster, clock: Clock) -> None:
    reserve(cluster, 100, 200, "n1", "n2")
    make_workload(cluster, "short", GPU, maximum_execution_seconds=100)
    make_workload(cluster, "long", GPU, maximum_execution_seconds=101)
    engine = engine_of(cluster, clock)
    engine.run()
    assert statuses() == {"short": "Admitted", "long": "Pending"}
    assert reasons()["long"] == "WaitingForReservation"
    clock.after(199)
    engine.run()
    assert statuses()["long"] == "Pending"
    clock.after(200)
    engine.run()
    assert statuses()["long"] == "Admitted"


def test_an_edit_and_a_deletion_are_decided_at_once(cluster: Cluster, clock: Clock) -> None:
    row = reserve(cluster, 0, 1000, "n1", "n2")
    make_workload(cluster, "one", GPU)
    make_workload(cluster, "two", GPU)
    engine = engine_of(cluster, clock)
    engine.run()
    assert statuses() == {"one": "Pending", "two": "Pending"}
    Reservation.objects.update(node_names=["n1"])
    engine.run()
    assert statuses() == {"one": "Admitted", "two": "Pending"}
    row.delete()
    engine.run()
    assert statuses()["two"] == "Admitted"


@pytest.mark.parametrize("new_leader", [False, True])
def test_the_start_of_a_window_evicts_holders_that_it_does_not_allow(
    cluster: Cluster, clock: Clock, new_leader: bool
) -> None:
    make_workload(cluster, "theirs", GPU, submitted_by="bob")
    make_workload(cluster, "ours", GPU, submitted_by="ann")
    engine = engine_of(cluster, clock)
    engine.run()
    reserve(cluster, 100, 200, "n1", "n2", if_busy="Evict", allowed_users=["ann"])
    engine.run()
    assert statuses() == {"theirs": "Admitted", "ours": "Admitted"}
    if new_leader:
        engine = engine_of(cluster, clock)
        engine.run()
    clock.after(99)
    engine.run()
    assert statuses()["theirs"] == "Admitted"
    clock.after(100)
    engine.run()
    assert statuses() == {"theirs": "Pending", "ours": "Admitted"}, "its pods never ran, so that it has stopped"
    decision = Decision.objects.get(action="Evict")
    assert (decision.workload_name, decision.reason) == ("theirs", EvictionReason.RESERVATION_STARTED)
    assert decision.message == "The reservation maintenance of its nodes has started"
    assert reasons()["theirs"] == "WaitingForReservation"
    clock.after(200)
    engine.run()
    assert statuses()["theirs"] == "Admitted"


def test_a_workload_without_a_limit_runs_between_windows_that_evict(cluster: Cluster, clock: Clock) -> None:
    reserve(cluster, 100, 200, "n1", "n2", recurrence="Daily", if_busy="Evict")
    make_workload(cluster, "endless", GPU)
    engine = engine_of(cluster, clock)
    engine.run()
    assert statuses() == {"endless": "Admitted"}
    clock.after(100)
    engine.run()
    assert (statuses()["endless"], reasons()["endless"]) == ("Pending", "WaitingForReservation")
    clock.after(200)
    engine.run()
    assert statuses() == {"endless": "Admitted"}


def test_a_window_that_waits_evicts_none(cluster: Cluster, clock: Clock) -> None:
    make_workload(cluster, "one", GPU)
    engine = engine_of(cluster, clock)
    engine.run()
    reserve(cluster, 100, 200, "n1", "n2")
    for seconds in (0, 100, 150):
        clock.after(seconds)
        engine.run()
        assert statuses() == {"one": "Admitted"}


@pytest.mark.parametrize(
    ("ready_at", "limit", "nodes", "status"),
    [
        (150, None, ("n1", "n2"), "Pending"),
        (50, None, ("n1", "n2"), "Pending"),
        (50, 50, ("n1", "n2"), "Admitted"),
        (50, 51, ("n1", "n2"), "Pending"),
        (150, None, ("n2",), "Admitted"),
        (200, None, ("n1", "n2"), "Admitted"),
    ],
)
def test_a_workload_whose_checks_become_ready_is_not_admitted_to_closed_nodes(
    cluster: Cluster, clock: Clock, ready_at: int, limit: int | None, nodes: tuple[str, ...], status: str
) -> None:
    """It got quota before the reservation was made; its pods do not run yet, so that even a window that waits for
    busy nodes closes them."""
    AdmissionCheck.objects.create(cluster=cluster, name="budget", controller_name="x", created_at=START)
    ClusterQueue.objects.update(admission_checks=[{"name": "budget"}])
    make_workload(cluster, "one", GPU, maximum_execution_seconds=limit)
    engine = engine_of(cluster, clock)
    engine.run()
    assert statuses() == {"one": "QuotaReserved"}
    assert PodSet.objects.get().nodes == ["n1"]
    reserve(cluster, 100, 200, *nodes)
    clock.after(ready_at)
    engine.run()
    assert statuses() == {"one": "QuotaReserved"}
    at = datetime.fromtimestamp(clock(), UTC)
    set_check_state(cluster, "team", "one", "budget", CheckAnswer(AdmissionCheckStatus.READY), actor="finance", now=at)
    engine.run()
    assert statuses() == {"one": status}
    evicted = Decision.objects.filter(action="Evict").values_list("reason", flat=True)
    assert list(evicted) == ([EvictionReason.RESERVATION_STARTED] if status == "Pending" else [])
    assert reasons()["one"] == ("WaitingForReservation" if status == "Pending" else "Admitted")


def test_a_limit_that_ends_at_the_start_of_the_window_is_the_reason(cluster: Cluster, clock: Clock) -> None:
    reserve(cluster, 100, 200, "n1", "n2", if_busy="Evict")
    make_workload(cluster, "lent", GPU, maximum_execution_seconds=100)
    engine = engine_of(cluster, clock)
    engine.run()
    assert statuses() == {"lent": "Admitted"}
    clock.after(100)
    engine.run()
    assert Decision.objects.get(action="Evict").reason == EvictionReason.DEACTIVATED


def test_a_node_that_gets_the_labels_is_vacated(cluster: Cluster, clock: Clock) -> None:
    make_workload(cluster, "one", GPU)
    engine = engine_of(cluster, clock)
    engine.run()
    reserve(cluster, 0, 1000, node_labels={"rack": "1"}, if_busy="Evict")
    engine.run()
    assert statuses() == {"one": "Admitted"}
    Node.objects.update(labels={"rack": "1"})
    engine.run()
    assert statuses() == {"one": "Pending"}


@pytest.mark.parametrize("change", ["fails", "is cordoned", "leaves"])
def test_a_node_that_takes_the_place_of_another_one_is_vacated(cluster: Cluster, clock: Clock, change: str) -> None:
    reserve(cluster, 0, 1000, node_count=1, if_busy="Evict")
    make_workload(cluster, "one", GPU)
    engine = engine_of(cluster, clock)
    engine.run()
    assert statuses() == {"one": "Admitted"}, "on n2, because n1 is reserved"
    first = Node.objects.filter(name="n1")
    if change == "leaves":
        first.delete()
    else:
        first.update(**({"ready": False} if change == "fails" else {"cordoned": True}))
    engine.run()
    assert statuses() == {"one": "Pending"}
    assert Decision.objects.get(action="Evict").reason == EvictionReason.RESERVATION_STARTED


def test_a_new_leader_keeps_the_nodes_free(cluster: Cluster, clock: Clock) -> None:
    reserve(cluster, 0, 1000, "n1", "n2")
    make_workload(cluster, "one", GPU)
    engine_of(cluster, clock).run()
    engine_of(cluster, clock).run()
    assert statuses() == {"one": "Pending"}


def test_a_refused_batch_decides_again_with_the_reservation(cluster: Cluster) -> None:
    """The reservation is made between the decision and COMMIT: the batch must not admit onto its nodes."""
    make_workload(cluster, "one", GPU)
    engine = start(cluster, meanwhile=lambda: reserve(cluster, 0, 1000, "n1", "n2"))
    engine.run()
    assert statuses() == {"one": "Pending"}
    assert reasons() == {"one": "WaitingForReservation"}


def test_a_failed_batch_is_written_with_its_reservations(cluster: Cluster, settings: Any, tmp_path: Any) -> None:
    settings.FAILED_BATCH_FOLDER = str(tmp_path)
    reserve(cluster, 60, 120, "n1")
    make_workload(cluster, "one", GPU, labels={"end": "user", "start": "2026-01-01T00:00:00Z"})
    text = write_failed_batch(cluster.pk, [], NOW).read_text()
    assert '"end": "user"' in text
    assert '"start": "2026-01-01T00:01:00Z"' in text
    assert '"end": "2026-01-01T00:02:00Z"' in text


def test_finished_workloads_are_no_holders(cluster: Cluster, clock: Clock) -> None:
    make_workload(cluster, "one", GPU)
    engine = engine_of(cluster, clock)
    engine.run()
    reserve(cluster, 100, 200, "n1", "n2", if_busy="Evict")
    record_finished(cluster, [("team", "one")])
    engine.run()
    clock.after(100)
    engine.run()
    assert statuses() == {"one": "Finished"}
