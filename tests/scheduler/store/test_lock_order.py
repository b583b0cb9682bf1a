"""Everybody who writes locks rows in one order, so that nobody waits for a batch that waits for them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from functools import partial
from itertools import count
from typing import Final

import psycopg
import pytest
from django.db import DatabaseError, connection, transaction
from django.utils import timezone

from accounts.models import Cluster
from gpus.annotations import FoundAllocation
from gpus.models import Device, DeviceAllocation
from gpus.services import ExternalPod, forget_node, observed_node, record_external, sync_node
from gpus.services.cordon import close_device
from queues.kinds import KINDS
from queues.manifests.job_workloads import workload_specs
from queues.models import ClusterQueue, Pod, Workload
from queues.services.configuration import apply_json, delete_object, finish_deletions
from queues.services.jobs import apply_jobs, read_job_object
from queues.services.pods import ObservedPod, record_reclaimable, store_pods
from queues.services.submission import create_workloads
from queues.services.workloads import cancel
from scheduler.leader.engine import Engine
from scheduling.model.device import DeviceSlice
from tests.acceptance.processes import database_url, wait_for
from tests.clusters.system import deployment, gpu_job
from tests.factories import make_cluster, make_cluster_queue
from tests.gpus.services.test_nodes import gpu, manifest
from tests.patience import PATIENCE_SECONDS

pytestmark = pytest.mark.django_db(transaction=True)

Write = Callable[[Cluster], object]
CARDS: Final = ("GPU-a", "GPU-b")
TURNS: Final = 20
"""Both take so many turns at least, while the other one is at work."""
BATCH: Final = (
    "SELECT FROM queues_workload ORDER BY id FOR UPDATE",
    "UPDATE queues_podset SET flavors = flavors",
    "UPDATE gpus_device SET used_slots = used_slots",
    "SELECT FROM gpus_deviceallocation ORDER BY id FOR UPDATE",
)
"""What a batch of the scheduler locks after the cluster's row, in its order."""


@pytest.fixture
def cluster() -> Cluster:
    cluster = make_cluster()
    make_cluster_queue(cluster, quotas={"default-flavor": {"cpu": 90_000, "nvidia.com/gpu": 90}})
    node(cluster, healthy=True)
    create_workloads(cluster, workload_specs(deployment(2)), actor="alice")
    hold(cluster, "GPU-a")
    return cluster


def node(cluster: Cluster, *, healthy: bool) -> None:
    cards = [gpu(uuid, index, health=healthy) for index, uuid in enumerate(CARDS)]
    sync_node(cluster.pk, observed_node(manifest(*cards)))


def hold(cluster: Cluster, uuid: str) -> None:
    found = FoundAllocation("n1", (DeviceSlice(uuid, "n1", 100, 1),), "")
    record_external(cluster.pk, [ExternalPod("team", "theirs", "1", found)])


def workloads() -> list[Workload]:
    return list(Workload.objects.order_by("pk"))


def store_pods_of_later_ones_first(cluster: Cluster) -> None:
    pods = [
        ObservedPod(
            workload_uid=str(row.uid), pod_set="main", replica=0, namespace="team", name=f"pod-{row.pk}",
            uid=f"uid-{row.pk}", phase="Pending", ready=False, terminating=False, reason="", message="",
            restarts=0, containers="[]", node_name="", created_at=None, started_at=None, finished_at=None,
        )
        for row in reversed(workloads())
    ]  # fmt: skip
    store_pods(cluster, pods)


def apply_later_ones_first(cluster: Cluster) -> None:
    create_workloads(cluster, workload_specs(gpu_job("later")), actor="alice")
    with transaction.atomic():
        changed = [gpu_job("later", mib=5000), deployment(1)]
        apply_jobs(cluster, [read_job_object(document) for document in changed], actor="alice")


WRITES: Final[dict[str, Write]] = {
    "a card that is seen to be unhealthy": lambda cluster: node(cluster, healthy=False),
    "a card that is cordoned": lambda cluster: close_device(cluster.pk, "GPU-a", cordoned=True),
    "a slice that another card holds": lambda cluster: hold(cluster, "GPU-b"),
    "a node that is gone": lambda cluster: forget_node(cluster.pk, "n1"),
    "pods that were seen": store_pods_of_later_ones_first,
    "jobs that are applied in another order": apply_later_ones_first,
    "pods that are not needed again": lambda cluster: record_reclaimable(
        cluster, "main", {(row.namespace, row.name): 1 for row in reversed(workloads())}
    ),
    "a replica that is cancelled": lambda cluster: cancel(
        cluster, [(workloads()[1].namespace, workloads()[1].name)], actor="alice"
    ),
}


class Writer(threading.Thread):
    """A write in a session of its own; `error` is what the database had against it."""

    def __init__(self, write: Callable[[], object]) -> None:
        super().__init__()
        self._write = write
        self.error: DatabaseError | None = None

    def run(self) -> None:
        try:
            self._write()
        except DatabaseError as error:
            self.error = error
        finally:
            connection.close()


@pytest.mark.parametrize("name", WRITES)
def test_a_write_waits_for_a_batch_that_does_not_wait_for_it(cluster: Cluster, name: str) -> None:
    """Both waited for each other, and the database ended one of them."""
    writer = Writer(partial(WRITES[name], cluster))
    with psycopg.connect(database_url()) as batch, psycopg.connect(database_url(), autocommit=True) as observer:
        batch.execute("SET LOCAL kueueweb.unnoticed = 'on'")
        batch.execute("SELECT FROM accounts_cluster FOR SHARE")
        batch.execute("SELECT FROM queues_workload ORDER BY id LIMIT 1 FOR UPDATE")
        writer.start()
        waiting = "SELECT FROM pg_stat_activity WHERE %s = ANY(pg_blocking_pids(pid))"
        pid = batch.info.backend_pid
        wait_for("the write to meet the batch", lambda: bool(observer.execute(waiting, [pid]).fetchall()))
        for statement in BATCH:
            batch.execute(statement)  # raises DeadlockDetected where the write holds it
        batch.commit()
    writer.join()
    assert writer.error is None


CONFIGURE: Final[dict[str, Write]] = {
    "a queue that is deleted": lambda cluster: delete_object(cluster, "ClusterQueue", "main", actor="alice"),
    "a queue that is edited": lambda cluster: apply_json(
        cluster, KINDS["ClusterQueue"], {"queueing_strategy": "StrictFIFO"}, name="main", actor="alice", merge=True
    ),
    "a queue whose deletion waited": finish_deletions,
}


@pytest.mark.parametrize("name", CONFIGURE)
def test_two_who_write_the_configuration_take_their_turns(name: str) -> None:
    """The watcher and the engine delete queues that nothing uses any more, while somebody else edits them."""
    cluster = make_cluster()
    make_cluster_queue(cluster, quotas={"default-flavor": {"cpu": 4_000}})
    if CONFIGURE[name] is finish_deletions:
        ClusterQueue.objects.update(deletion_requested_at=timezone.now())
    writer = Writer(partial(CONFIGURE[name], cluster))
    with psycopg.connect(database_url()) as other, psycopg.connect(database_url(), autocommit=True) as observer:
        other.execute("UPDATE queues_resourceflavor SET labels = labels")  # its trigger counts a generation
        writer.start()
        waiting = "SELECT FROM pg_stat_activity WHERE %s = ANY(pg_blocking_pids(pid))"
        pid = other.info.backend_pid
        wait_for("the write to meet the other", lambda: bool(observer.execute(waiting, [pid]).fetchall()))
        other.execute("SELECT FROM queues_clusterqueue FOR UPDATE")  # raises DeadlockDetected where the write holds it
        other.execute("DELETE FROM queues_flavorquota")
        other.commit()
    writer.join()
    assert writer.error is None


def test_engine_and_watcher_at_once_never_wait_for_each_other(cluster: Cluster) -> None:
    """Both transactions at work: devices come and go, slices of others move, while workloads are admitted and end."""
    stopped = threading.Event()
    turns = [0]

    def watch() -> None:
        while not stopped.is_set():
            turns[0] += 1
            node(cluster, healthy=turns[0] % 2 == 0)
            hold(cluster, CARDS[turns[0] % 2])

    watcher = Writer(watch)
    watcher.start()
    engine = Engine(cluster, "test")
    deadline = time.monotonic() + PATIENCE_SECONDS
    try:
        for turn in count():
            assert time.monotonic() < deadline, "the watcher waits for good"
            if not watcher.is_alive() or (turn >= TURNS and turns[0] >= TURNS):
                break
            for number in range(3):
                submitted = gpu_job(f"job-{turn}-{number}", mib=100, cores=1)
                create_workloads(cluster, workload_specs(submitted), actor="alice")
            engine.run(0.0)
            admitted = Workload.objects.filter(status="Admitted").values_list("namespace", "name")
            cancel(cluster, list(admitted), actor="alice")
            engine.run(0.0)
    finally:
        stopped.set()
        watcher.join()
    assert watcher.error is None
    assert not Pod.objects.exists()
    assert Device.objects.count() == len(CARDS)
    assert DeviceAllocation.objects.filter(source="external").count() == 1
