"""What the life of a workload costs in processor time, by step: `pytest tests/benchmarks/test_flood.py -s`.

Workloads are submitted over REST by two hundred a request, decided and ended, as in `tests/load/large-scale.json`, but
one step after the other in one process: other work on the machine moves the times of the clock, and these hardly.
`PROFILE=FILE` writes the profile of this process.
"""

from __future__ import annotations

import cProfile
import os
import time
from collections import Counter
from pathlib import Path
from typing import Any

import orjson
import pytest
from django.db import connection
from rest_framework.test import APIClient

from accounts.models import Cluster, Namespace
from queues.models import LocalQueue, ResourceFlavor, Workload
from scheduler.leader.engine import Engine
from tests.factories import START, make_cluster, make_cluster_queue
from tests.users import make_user

pytestmark = pytest.mark.django_db(transaction=True)

COHORTS, QUEUES = 2, 100
CLASSES = (("small", 35, 50, "1"), ("medium", 11, 100, "5"), ("large", 4, 200, "20"))
REQUEST = 200
WAVES = 30


class Meter:
    """Processor time of this process and of its database session, by step, in microseconds a workload."""

    def __init__(self) -> None:
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_backend_pid()")
            self._session = Path(f"/proc/{cursor.fetchone()[0]}/schedstat")
        self.spent: Counter[str] = Counter()
        self._at = self._now()

    def step(self, name: str) -> None:
        """What was spent since the last step was spent on this one."""
        now = self._now()
        self.spent[f"{name}, process"] += now[0] - self._at[0]
        self.spent[f"{name}, PostgreSQL"] += now[1] - self._at[1]
        self._at = now

    def _now(self) -> tuple[int, int]:
        return time.process_time_ns(), int(self._session.read_text().split()[0])


@pytest.fixture
def cluster() -> Cluster:
    cluster = make_cluster()
    Namespace.objects.get_or_create(cluster=cluster, name="team", defaults={"created_at": START})
    ResourceFlavor.objects.get_or_create(cluster=cluster, name="load", defaults={"created_at": START})
    for cohort in range(COHORTS):
        for number in range(QUEUES):
            make_cluster_queue(
                cluster,
                f"queue-{cohort}-{number}",
                {"load": {"cpu": (20_000, 100_000, None)}},
                local_queue="",
                cohort_name=f"cohort-{cohort}",
                reclaim_within_cohort="Any",
                within_cluster_queue="LowerPriority",
            )
    LocalQueue.objects.bulk_create(
        LocalQueue(cluster=cluster, namespace="team", name=name, cluster_queue_name=name, created_at=START)
        for name in (f"queue-{cohort}-{number}" for cohort in range(COHORTS) for number in range(QUEUES))
    )
    return cluster


def bodies() -> list[bytes]:
    kinds = [kind for kind in CLASSES for _ in range(kind[1])]
    documents = [
        {
            "namespace": "team",
            "name": f"queue-{number % COHORTS}-{number // COHORTS % QUEUES}-{number}",
            "local_queue": f"queue-{number % COHORTS}-{number // COHORTS % QUEUES}",
            "priority": kind[2],
            "pod_sets": [{"count": 1, "requests": {"cpu": kind[3]}}],
        }
        for number in range(REQUEST * WAVES)
        for kind in [kinds[number * 7 % len(kinds)]]
    ]
    return [orjson.dumps(documents[at : at + REQUEST]) for at in range(0, len(documents), REQUEST)]


def act_as(name: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT set_config('application_name', %s, false)", [name])


def test_flood(cluster: Cluster) -> None:
    client: Any = APIClient()
    client.force_authenticate(make_user("alice"))
    engine = Engine(cluster, "test")
    engine.run()
    profile = cProfile.Profile() if "PROFILE" in os.environ else None
    meter = Meter()
    if profile:
        profile.enable()
    waiting = bodies()
    while waiting or Workload.objects.exclude(status="Finished").exists():
        meter.step("looking")
        if waiting:
            answer = client.post("/api/v1/workloads/", waiting.pop(), content_type="application/json")
            assert answer.status_code == 201
        meter.step("submitting")
        act_as("kueueweb service benchmark")
        while engine.run().more:
            pass
        meter.step("deciding")
        act_as("kueueweb benchmark")
        running = Workload.objects.filter(status="Admitted").order_by("id").values_list("name", flat=True)
        names = [{"namespace": "team", "name": name} for name in running[:1000]]
        meter.step("looking")
        if names:
            body = orjson.dumps({"workloads": names, "reason": "Succeeded", "message": "Its time is up"})
            answer = client.post("/api/v1/workloads/finish/", body, content_type="application/json")
            assert len(answer.json()["changed"]) == len(names)
        meter.step("ending")
    if profile:
        profile.disable()
        profile.dump_stats(os.environ["PROFILE"])
    count = REQUEST * WAVES
    print(f"\nmicroseconds of the processor a workload, of {count}:")
    for name, spent in meter.spent.items():
        if not name.startswith("looking"):
            print(f"{name:24} {spent / 1000 / count:7.0f}")
    print(f"{'all':24} {sum(v for k, v in meter.spent.items() if 'looking' not in k) / 1000 / count:7.0f}")
