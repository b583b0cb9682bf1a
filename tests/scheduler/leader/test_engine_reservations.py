"""The engine and reservations: windows open and close at their times, and evict where they say so."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from accounts.models import Cluster
from gpus.models import Node
from queues.models import Reservation
from queues.services.workloads import record_finished
from scheduler.leader.engine import Engine
from scheduler.leader.failed_batch import write_failed_batch
from scheduler.models import Decision
from scheduling.model.vocabulary import EvictionReason
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


def test_a_window_that_waits_evicts_none(cluster: Cluster, clock: Clock) -> None:
    make_workload(cluster, "one", GPU)
    engine = engine_of(cluster, clock)
    engine.run()
    reserve(cluster, 100, 200, "n1", "n2")
    for seconds in (0, 100, 150):
        clock.after(seconds)
        engine.run()
        assert statuses() == {"one": "Admitted"}


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
    text = write_failed_batch(cluster.pk, [], NOW).read_text()
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
