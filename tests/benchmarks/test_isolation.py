"""What one tenant's flood costs another: submit to admission beside FLOOD workloads of the first (S6).

    FLOOD=150000 pytest tests/benchmarks/test_isolation.py -s

The engine's own time, in processor seconds of this process, until the other tenant's workload is admitted: on an idle
cluster, while the flood is being taken in, and when all of it waits.
"""

from __future__ import annotations

import os
import statistics
import time

import pytest
from django.utils import timezone

from accounts.models import Cluster, Namespace
from queues.api.workload_input import read_workload
from queues.models import LocalQueue, Workload
from queues.services.submission import create_workloads
from queues.services.workloads import record_finished
from scheduler.leader.engine import Engine
from scheduler.models import Change
from tests.factories import make_cluster, make_cluster_queue

pytestmark = pytest.mark.django_db(transaction=True)

FLOOD = int(os.environ.get("FLOOD", "20000"))
PROBES = 20


def submit(cluster: Cluster, namespace: str, queue: str, names: list[str], cpu: str) -> None:
    pod_sets = [{"count": 1, "requests": {"cpu": cpu}}]
    create_workloads(
        cluster,
        [
            read_workload({"namespace": namespace, "name": name, "queue_name": queue, "pod_sets": pod_sets}, index)
            for index, name in enumerate(names)
        ],
        actor="test",
    )


def probe(cluster: Cluster, engine: Engine, name: str) -> float:
    """Seconds from the submission of a workload to its admission; it ends at once."""
    submit(cluster, "team-b", "b", [name], "10m")
    started = time.thread_time()
    while Workload.objects.get(name=name).status != "Admitted":
        engine.run(0.0)
    seconds = time.thread_time() - started
    record_finished(cluster, [("team-b", name)], actor="test")
    return seconds


def measure(what: str, cluster: Cluster, engine: Engine) -> float:
    times = sorted(probe(cluster, engine, f"{what}-{number}") for number in range(PROBES))
    p95 = times[int(0.95 * len(times)) - 1]
    median = statistics.median(times)
    print(f"{what:<10} median {1000 * median:7.1f} ms, p95 {1000 * p95:7.1f} ms, max {1000 * times[-1]:7.1f} ms")
    return p95


def test_a_flood_of_one_tenant_does_not_hold_up_another() -> None:
    cluster = make_cluster()
    for name in ("team-a", "team-b"):
        Namespace.objects.get_or_create(cluster=cluster, name=name, defaults={"created_at": timezone.now()})
    for name in ("a", "b"):
        quotas = {"default-flavor": {"cpu": (400_000, 0, None)}}  # of one cohort, but nobody borrows
        make_cluster_queue(cluster, name, quotas, local_queue="", cohort_name="all")
        LocalQueue.objects.create(
            cluster=cluster, namespace=f"team-{name}", name=name, cluster_queue_name=name, created_at=timezone.now()
        )
    engine = Engine(cluster, "test")
    idle = measure("idle", cluster, engine)
    for first in range(0, FLOOD, 10_000):
        names = [f"flood-{number}" for number in range(first, min(first + 10_000, FLOOD))]
        submit(cluster, "team-a", "a", names, "100")
    print(f"{Change.objects.count()} notes")
    flooded = measure("flooded", cluster, engine)
    started = time.thread_time()
    while engine.run().more:
        pass
    print(f"taken in after {time.thread_time() - started:.1f} s")
    waiting = measure("waiting", cluster, engine)
    print(f"flooded {flooded / idle:.1f}, waiting {waiting / idle:.1f} times idle")
