"""What history costs the scheduler: `pytest tests/benchmarks/test_history.py -s`.

Waves of workloads with a slice of a device each are taken in, admitted and finished, in turn with the triggers that
leave records of use and without them; and one sampling of 10,000 workloads, as a share of the 15 s between two.
"""

from __future__ import annotations

import statistics
import time
from datetime import timedelta

import orjson
import pytest
from django.db import connection
from django.utils import timezone

from accounts.models import Cluster, Namespace
from foundation.redis_client import redis_client
from history.models import UsageRecord, WorkloadSample
from history.services.sampling.sample import sample
from queues.api.workload_input import read_workload
from queues.models import LocalQueue, Workload
from queues.services.submission import create_workloads
from queues.services.workloads import record_finished
from scheduler.leader.engine import Engine
from scheduler.live.publisher import numbers, snapshot_key
from tests.factories import START, make_cluster, make_cluster_queue, make_node

pytestmark = pytest.mark.django_db(transaction=True)

NODES, DEVICES, QUEUES = 100, 8, 40
WAVE, ROUNDS = 400, 7
WAITING, STEP_SECONDS, SAMPLINGS = 10_000, 15, 9
REQUESTS = {"cpu": "1", "nvidia.com/gpu": "1", "nvidia.com/gpumem": "8000", "nvidia.com/gpucores": "25"}
TRIGGERS = (
    ("queues_workload", "kueueweb_usage_ended"),
    ("queues_podset", "kueueweb_usage_changed"),
    ("queues_podset", "kueueweb_usage_deleted"),
)


@pytest.fixture
def cluster() -> Cluster:
    """100 nodes of eight devices, and 40 queues that have room for all that is submitted."""
    cluster = make_cluster()
    Namespace.objects.get_or_create(cluster=cluster, name="team", defaults={"created_at": START})
    allocatable = {"cpu": 96_000, "memory": 2**39, "pods": 110}
    for number in range(NODES):
        make_node(cluster, f"node-{number:03}", [{} for _ in range(DEVICES)], allocatable=allocatable, ready=True)
    resources = {
        "cpu": 1_000_000,
        "nvidia.com/gpu": 1000,
        "nvidia.com/gpumem": 8_000_000,
        "nvidia.com/gpucores": 25_000,
    }
    for number in range(QUEUES):
        name = f"queue-{number}"
        make_cluster_queue(cluster, name, {"default-flavor": resources}, local_queue="", cohort_name="all")
        LocalQueue.objects.create(
            cluster=cluster, namespace="team", name=name, cluster_queue_name=name, created_at=START
        )
    return cluster


def submit(cluster: Cluster, names: list[str], requests: dict[str, str]) -> None:
    pod_sets = [{"count": 1, "requests": requests}]
    create_workloads(
        cluster,
        [
            read_workload(
                {"namespace": "team", "name": name, "local_queue": f"queue-{index % QUEUES}", "pod_sets": pod_sets},
                index,
            )
            for index, name in enumerate(names)
        ],
        actor="test",
    )


def run(engine: Engine) -> None:
    while engine.run().more:
        pass


def wave(cluster: Cluster, engine: Engine, name: str) -> float:
    """Seconds that the engine, and those who say that work has ended, take for the whole life of WAVE workloads."""
    names = [f"{name}-{number}" for number in range(WAVE)]
    submit(cluster, names, REQUESTS)
    started = time.perf_counter()
    run(engine)
    admitted = Workload.objects.filter(name__in=names, status="Admitted").count()
    record_finished(cluster, [("team", each) for each in names], actor="test")
    run(engine)
    seconds = time.perf_counter() - started
    assert admitted == WAVE
    return seconds


def set_triggers(word: str) -> None:
    with connection.cursor() as cursor:
        for table, trigger in TRIGGERS:
            cursor.execute(f"ALTER TABLE {table} {word} TRIGGER {trigger}")


def test_records_of_use(cluster: Cluster) -> None:
    with connection.cursor() as cursor:  # as the product's own processes, of which the audit records nothing
        cursor.execute("SET application_name = 'kueueweb service benchmark'")
    engine = Engine(cluster, "test")
    wave(cluster, engine, "warm-up")
    without, with_records = [], []
    for number in range(ROUNDS):
        set_triggers("DISABLE")
        without.append(wave(cluster, engine, f"without-{number}"))
        set_triggers("ENABLE")
        with_records.append(wave(cluster, engine, f"with-{number}"))
    assert UsageRecord.objects.count() == WAVE * (ROUNDS + 1)
    plain, noted = statistics.median(without), statistics.median(with_records)
    print(
        f"\n{WAVE} workloads submitted, admitted and finished: {1000 * plain:.0f} ms without records of use, "
        f"{1000 * noted:.0f} ms with them: {noted / plain:.2f} times"
    )


def test_sampling(cluster: Cluster) -> None:
    engine = Engine(cluster, "test")
    submit(cluster, [f"running-{number}" for number in range(WAVE)], REQUESTS)
    submit(cluster, [f"waiting-{number}" for number in range(WAITING)], {"cpu": "1000"})
    run(engine)
    frame = {"type": "snapshot", "epoch": engine.epoch, "sequence": 10**6, "time": timezone.now()}
    frame["data"] = numbers(engine.world, engine.rows)
    redis_client().set(snapshot_key(cluster.name), orjson.dumps(frame))
    seconds = []
    now = timezone.now()
    for number in range(SAMPLINGS):
        engine.run(0.0)  # the leader renews its lease
        started = time.perf_counter()
        assert sample(cluster, now + timedelta(seconds=STEP_SECONDS * number))
        seconds.append(time.perf_counter() - started)
    assert WorkloadSample.objects.filter(pending__gte=WAITING).exists()
    median = statistics.median(seconds)
    print(
        f"\none sampling of {WAITING + WAVE} workloads in {QUEUES} queues on {NODES} nodes: {1000 * median:.0f} ms "
        f"(most {1000 * max(seconds):.0f} ms), {100 * median / STEP_SECONDS:.1f} % of the {STEP_SECONDS} s between two"
    )
