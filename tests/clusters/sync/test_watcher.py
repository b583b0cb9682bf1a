"""The watcher at work, with everything going wrong that can go wrong with events."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.db import DataError, InternalError, connection, transaction
from django.test.utils import CaptureQueriesContext

from accounts.models import Cluster
from accounts.services.watcher_health import beat, watcher_health
from clusters.api_objects import NODES, PODS
from clusters.client import WatchEvent
from clusters.inbox import Inbox
from clusters.sync.nodes import NodeSync
from clusters.sync.watcher import Watcher, _Reflectors
from gpus.models import Device, Node
from gpus.services import forget_node
from queues.models import Pod, PodSet
from tests.cluster_kinds import JOBS
from tests.clusters.system import System, gpu_job
from tests.patience import PATIENCE_SECONDS

pytestmark = pytest.mark.django_db(transaction=True)


def wait_for(done: Callable[[], bool]) -> None:
    """Until it is so; the clock of threads and sockets is the machine's."""
    end = time.monotonic() + PATIENCE_SECONDS
    while not done():
        assert time.monotonic() < end, "it did not come about"
        threading.Event().wait(0.05)


def test_it_follows_through_late_repeated_lost_events_and_broken_connections(system: System) -> None:
    chaos = {"delay_seconds": 0.01, "repeat_rate": 0.2, "drop_rate": 0.2, "disconnect_rate": 0.1}
    system.chaos(watch=chaos)
    watcher = Watcher(system.cluster, system.client, relist_seconds=2.0, clock=system.now)
    stopped = threading.Event()

    def run() -> None:
        watcher.run(stopped)
        connection.close()

    thread = threading.Thread(target=run)
    thread.start()
    try:
        for number in range(4):
            system.submit(gpu_job(f"job-{number}", run_seconds=10 * (number + 1)))
        for _ in range(6):
            system.engine.run()
            system.push()
            system.advance(3)
        system.chaos(nodes={"node-02": "cordoned"})
        wait_for(
            lambda: Pod.objects.filter(phase="Running").count() + Pod.objects.filter(phase="Succeeded").count() == 4
        )
        wait_for(lambda: Node.objects.get(name="node-02").unschedulable)
        system.advance(60)
        wait_for(lambda: not PodSet.objects.exclude(workload__status="Finished").exists())
        truth = {item["metadata"]["uid"]: item["status"]["phase"] for item in system.client.list(PODS).items}
        wait_for(lambda: dict(Pod.objects.values_list("uid", "phase")) == truth)
    finally:
        stopped.set()
        thread.join(timeout=PATIENCE_SECONDS)
    assert not thread.is_alive()
    assert watcher_health("default").alive


@contextmanager
def lost_connections(table: str) -> Iterator[None]:
    """Whoever updates a row of the table meets a server that ends."""
    with connection.cursor() as cursor:
        cursor.execute(
            "CREATE FUNCTION lose_connection() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
            " RAISE EXCEPTION 'terminating connection' USING ERRCODE = '57P01'; END $$;"
            f" CREATE TRIGGER lose_connection BEFORE UPDATE ON {table} EXECUTE FUNCTION lose_connection()"
        )
    try:
        yield
    finally:
        with connection.cursor() as cursor:
            cursor.execute("DROP FUNCTION lose_connection CASCADE")


def test_it_goes_on_when_the_database_went_away_as_served_kinds_were_noted(
    system: System, caplog: pytest.LogCaptureFixture
) -> None:
    watcher = Watcher(system.cluster, system.client, relist_seconds=0.1, clock=system.now)
    stopped = threading.Event()

    def run() -> None:
        watcher.run(stopped)
        connection.close()

    thread = threading.Thread(target=run)
    with lost_connections("accounts_cluster"):
        system.install_operator("JobSet")
        thread.start()
        wait_for(lambda: "terminating connection" in caplog.text)
    try:
        wait_for(lambda: Cluster.objects.get().served_kinds == ["JobSet"])
    finally:
        stopped.set()
        thread.join(timeout=PATIENCE_SECONDS)
    assert not thread.is_alive()


def test_a_heartbeat_of_a_node_asks_the_database_nothing(system: System) -> None:
    reflectors = _Reflectors(system.client, 60.0, Inbox(1))
    node = system.client.list(NODES).items[0]
    node["metadata"]["annotations"]["hami.io/node-handshake"] = "Requesting_2026.01.01 00:00:00"

    def turn() -> None:
        assert not system.watcher._turn([(NODES, WatchEvent("MODIFIED", node))], reflectors, threading.Event())

    turn()
    with CaptureQueriesContext(connection) as queries:
        for _ in range(5):
            turn()
    assert len(queries) == 0


def test_pods_that_are_not_needed_again_are_reclaimable(system: System) -> None:
    system.submit(gpu_job(parallelism=2, completions=3, run_seconds=20))
    for _ in range(2):
        system.turn()
    assert PodSet.objects.get().reclaimable_count == 0
    system.turn(25)
    assert PodSet.objects.get().reclaimable_count == 1


def test_the_command_lists_once(system: System) -> None:
    Device.objects.all().delete()
    Node.objects.all().delete()
    call_command("watch_cluster", cluster="default", once=True, stdout=StringIO())
    assert (Node.objects.count(), Device.objects.count()) == (2, 4)


def test_the_command_names_a_cluster_that_is_not_there_or_does_not_answer(system: System) -> None:
    with pytest.raises(CommandError, match="no cluster 'nowhere'"):
        call_command("watch_cluster", cluster="nowhere")
    with pytest.raises(CommandError, match="Unreachable"):
        call_command("watch_cluster", cluster="default", once=True, server="http://127.0.0.1:9")


def test_jobs_of_a_cluster_that_is_only_observed_get_no_workload(system: System) -> None:
    Cluster.objects.update(mode="observe")
    system.cluster.refresh_from_db()
    body = gpu_job(suspend=True)
    body["metadata"]["namespace"] = "default"
    system.client.create(JOBS, body)
    system.watcher.resync()
    assert not PodSet.objects.exists()


def test_a_heartbeat_says_when_something_was_heard() -> None:
    beat("elsewhere", 1_767_225_600.0, heard=True)
    beat("elsewhere", 1_767_225_700.0, heard=False)
    health = watcher_health("elsewhere")
    assert (health.alive, health.last_event_at) == (True, "2026-01-01T00:00:00Z")
    assert watcher_health("nobody").alive is False


def test_a_node_that_could_not_be_stored_is_stored_the_next_time(system: System) -> None:
    nodes = NodeSync(system.cluster)
    node = system.client.list(NODES).items[0]
    node["metadata"]["labels"]["row"] = "b"
    with transaction.atomic(), connection.cursor() as cursor:
        with pytest.raises(DataError):
            cursor.execute("SELECT 1 / 0")
        with pytest.raises(InternalError):
            nodes.apply([WatchEvent("MODIFIED", node)], system.now())
        transaction.set_rollback(True)
    nodes.apply([WatchEvent("MODIFIED", node)], system.now())
    assert Node.objects.get(name=node["metadata"]["name"]).labels["row"] == "b"


def test_a_list_reads_the_nodes_that_have_another_version(system: System) -> None:
    nodes = NodeSync(system.cluster)
    listing = system.client.list(NODES)
    nodes.apply([listing], system.now())
    same, other = listing.items
    for node in listing.items:
        node["metadata"]["labels"]["row"] = "b"
    other["metadata"]["resourceVersion"] += "0"
    nodes.apply([listing], system.now())
    assert {row.name: row.labels.get("row") for row in Node.objects.all()} == {
        same["metadata"]["name"]: None,
        other["metadata"]["name"]: "b",
    }
    Node.objects.filter(name=same["metadata"]["name"]).delete()
    nodes.apply([listing], system.now())
    assert Node.objects.get(name=same["metadata"]["name"]).labels["row"] == "b"


def test_a_node_that_was_applied_while_it_left_stays_and_is_not_ready(system: System) -> None:
    nodes = NodeSync(system.cluster)
    listing = system.client.list(NODES)
    nodes.apply([listing], system.now())
    first, second = listing.items
    for node in (first, second):  # after the sync has read the rows, before it deletes them
        Node.objects.filter(name=node["metadata"]["name"]).update(api_version="v1")
    nodes.apply([WatchEvent("DELETED", first)], system.now())
    assert forget_node(system.cluster.pk, second["metadata"]["name"], keeps_applied=True)
    assert dict(Node.objects.values_list("name", "ready")) == dict.fromkeys(
        (first["metadata"]["name"], second["metadata"]["name"]), False
    )
    nodes.apply([WatchEvent("ADDED", first)], system.now())
    assert Node.objects.get(name=first["metadata"]["name"]).ready
