"""Measures the cost of a checkpoint, and of requests about the past: `pytest tests/benchmarks/test_checkpoints.py -s`.

10,000 workloads, of which some thousands hold devices, on 1,200 nodes of eight devices.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable

import pytest
from django.db import connection
from rest_framework.test import APIClient

from accounts.models import Cluster, Role, RoleBinding
from history.models import Checkpoint
from history.services.checkpoints.checkpoint_taking import take_checkpoint
from queues.models import LocalQueue
from scheduler.leader.engine import Engine
from studio.services.past_explanations import explain_past
from tests.benchmarks.test_history import REQUESTS, run, submit
from tests.factories import START, make_cluster, make_cluster_queue, make_node
from tests.users import make_user

pytestmark = pytest.mark.django_db(transaction=True)

NODES, QUEUES, WORKLOADS = 1200, 40, 10_000
MOST_SECONDS = 3.0


@pytest.fixture
def cluster() -> Cluster:
    """Quota for half of the workloads."""
    cluster = make_cluster()
    allocatable = {"cpu": 96_000, "memory": 2**39, "pods": 110}
    for number in range(NODES):
        make_node(cluster, f"node-{number:04}", [{} for _ in range(8)], allocatable=allocatable, ready=True)
    resources = {"cpu": 10**9, "nvidia.com/gpu": 125, "nvidia.com/gpumem": 10**9, "nvidia.com/gpucores": 10**9}
    for number in range(QUEUES):
        name = f"queue-{number}"
        make_cluster_queue(cluster, name, {"default-flavor": resources}, local_queue="", cohort_name="all")
        LocalQueue.objects.create(
            cluster=cluster, namespace="team", name=name, cluster_queue_name=name, created_at=START
        )
    submit(cluster, [f"w-{number}" for number in range(WORKLOADS)], REQUESTS)
    run(Engine(cluster, "test"))
    return cluster


def seconds(work: Callable[[], object], times: int = 5) -> float:
    """The longest of some runs."""
    found = []
    for _ in range(times):
        started = time.perf_counter()
        work()
        found.append(time.perf_counter() - started)
    return max(found)


def test_the_past_is_shown_within_seconds(cluster: Cluster) -> None:
    user = make_user("vera")
    RoleBinding.objects.get_or_create(name="vera-binding", username="vera", role=Role.VIEWER)
    client = APIClient()
    client.force_authenticate(user)
    print(f"\ncheckpoint: {seconds(lambda: take_checkpoint(cluster), 3):.2f} s")
    found = Checkpoint.objects.latest("taken_at")
    print(f"figures by: {found.figures['source']}, content {found.size_bytes / 2**20:.2f} MiB")
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_column_size(figures) + pg_column_size(devices) FROM history_checkpoint LIMIT 1")
        print(f"figures and devices: {cursor.fetchone()[0] / 2**20:.2f} MiB")
    at = found.taken_at.isoformat().replace("+", "%2B")
    for path in (
        "cohorts/tree/?", "cluster-queues/?", "local-queues/?", "workloads/?", "workloads/team/w-9999/?", "devices/?",
        "workloads/?ordering=position&cluster_queue=queue-1&", "nodes/?", "device-allocations/?",
        "checkpoints/figures/?",
    ):  # fmt: skip
        taken = seconds(lambda path=path: client.get(f"/api/v1/{path}at={at}"))  # type: ignore[misc]  # a default binds it
        print(f"{path:60} {taken:.2f} s")
        assert taken < MOST_SECONDS
    gc.freeze()  # as the studio, of which a child builds the whole World
    taken = seconds(lambda: explain_past(cluster, "team", "w-9999", found.taken_at), 3)
    gc.unfreeze()
    print(f"{'explanation':60} {taken:.2f} s")
    assert taken < MOST_SECONDS
