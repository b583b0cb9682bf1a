"""What a thousand workloads cost over REST, and a page of a long list: `pytest tests/benchmarks/test_rest.py -s`.

Each time stands beside that of the same rows through Django's own `bulk_create`, or of the same page where the list is
short: those ratios, unlike milliseconds, can be compared between machines.
"""

import statistics
import time
from collections.abc import Callable
from typing import Any

import orjson
import pytest
from django.db import connection
from rest_framework.test import APIClient

from accounts.models import Cluster
from queues.models import PodSet, Workload, WorkloadEvent
from tests.users import EPOCH, cluster, make_user

__all__ = ["cluster"]

COUNT = 1000
ROUNDS = 5


def milliseconds(work: Callable[[int], object], rounds: int = ROUNDS) -> float:
    """The median of a few rounds, after one that warms up."""
    times = []
    for index in range(rounds + 1):
        started = time.perf_counter()
        work(index)
        times.append(1000 * (time.perf_counter() - started))
    return statistics.median(times[1:])


def body(prefix: str) -> bytes:
    pod_sets = [{"count": 2, "requests": {"cpu": "500m", "memory": "2Gi", "nvidia.com/gpu": "1"}}]
    documents = [
        {"namespace": "team-a", "name": f"{prefix}-{number}", "local_queue": "main", "pod_sets": pod_sets}
        for number in range(COUNT)
    ]
    return orjson.dumps(documents)


def insert_with_the_orm(cluster: Cluster, prefix: str) -> None:
    """The same rows by Django's own means, with nothing read or checked."""
    workloads = Workload.objects.bulk_create(
        Workload(cluster=cluster, namespace="team-a", name=f"{prefix}-{number}", created_at=EPOCH)
        for number in range(COUNT)
    )
    PodSet.objects.bulk_create(PodSet(workload=row, template={}, requests={}) for row in workloads)
    WorkloadEvent.objects.bulk_create(
        WorkloadEvent(cluster=cluster, workload_uid=row.uid, namespace="team-a", workload_name=row.name, at=EPOCH)
        for row in workloads
    )


@pytest.fixture
def client(cluster: Cluster) -> Any:
    client = APIClient()
    client.force_authenticate(make_user("alice"))
    return client


def test_submit(client: Any, cluster: Cluster) -> None:
    bodies = [body(f"rest-{index}") for index in range(ROUNDS + 1)]

    def post(index: int) -> None:
        response = client.post("/api/v1/workloads/", bodies[index], content_type="application/json")
        assert response.status_code == 201

    rest = milliseconds(post)
    orm = milliseconds(lambda index: insert_with_the_orm(cluster, f"orm-{index}"))
    print(
        f"\nPOST of {COUNT} workloads: {rest:.0f} ms ({rest / orm:.2f} x bulk_create of the rows alone, {orm:.0f} ms)"
    )


def test_list(client: Any, cluster: Cluster) -> None:
    def page(_: int, after: str = "", limit: int = 100) -> dict[str, Any]:
        found: dict[str, Any] = client.get(
            "/api/v1/workloads/", {"limit": limit, "after": after, "ordering": "id"}
        ).json()
        return found

    insert_with_the_orm(cluster, "first")
    short = milliseconds(page)
    for number in range(19):
        insert_with_the_orm(cluster, f"more-{number}")
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE queues_workload, queues_podset")  # as the server does by itself after a while
    first = milliseconds(page)
    after = ""
    for _ in range(19):
        after = page(0, after, 1000)["next"]
    last = milliseconds(lambda index: page(index, after))
    print(
        f"\n100 workloads of {COUNT}: {short:.1f} ms; of {20 * COUNT}: first page {first / short:.2f} x, "
        f"last pages {last / short:.2f} x"
    )
