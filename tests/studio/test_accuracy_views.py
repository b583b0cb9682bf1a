"""`studio/accuracy/` over REST: figures, and the rights of another tenant."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from accounts.models import Cluster
from queues.models import LocalQueue
from studio.models import KeptEstimate
from studio.services.accuracy import accuracy_json
from tests.api_client import SchemaClient
from tests.factories import make_cluster_queue

pytestmark = pytest.mark.django_db


def keep(cluster: Cluster, cluster_queue: str, waited: float, hours_ago: float = 1, **fields: Any) -> None:
    """An estimate of 60 to 600 s, probably 120 s, whose workload waited so long."""
    started = timezone.now() - timedelta(hours=hours_ago)
    made = started - timedelta(seconds=waited)
    values: dict[str, Any] = {
        "workload_uid": uuid4(), "namespace": "team-a", "workload_name": "w", "tree": "cohort all", "queued_at": made,
        "stage_seconds": 0, "made_at": made, "p10_seconds": 60, "p50_seconds": 120, "p90_seconds": 600,
        "features": [4.8, 4.8], "started_at": started,
    }  # fmt: skip
    KeptEstimate.objects.create(cluster=cluster, cluster_queue=cluster_queue, **values | fields)


@pytest.fixture
def judged(cluster: Cluster) -> Cluster:
    """ClusterQueue `a` of team-a with three estimates, `b` of team-b with one."""
    for name, namespace in (("a", "team-a"), ("b", "team-b")):
        make_cluster_queue(cluster, name, local_queue="")
        LocalQueue.objects.create(
            cluster=cluster, namespace=namespace, name="main", cluster_queue_name=name, created_at=timezone.now()
        )
    keep(cluster, "a", 100)
    keep(cluster, "a", 700)
    keep(cluster, "a", 100, p10_seconds=None, p50_seconds=None, p90_seconds=None, unknown="NoRunEnded")
    keep(cluster, "a", 90, stage_seconds=300)
    keep(cluster, "a", 90, hours_ago=100)
    keep(cluster, "a", 90, started_at=None)
    keep(cluster, "b", 3000)
    return cluster


def test_figures_by_age_of_waiting_and_by_queue(judged: Cluster, vera: SchemaClient) -> None:
    found = vera.get("/api/v1/studio/accuracy/").json()
    assert [each["stage_seconds"] for each in found["stages"]] == [0, 300, 900, 3600]
    assert [each["count"] for each in found["stages"]] == [4, 1, 0, 0]
    queues = {each["cluster_queue"]: each for each in found["cluster_queues"]}
    assert queues["a"]["coverage"] == pytest.approx(1 / 3)
    assert (queues["a"]["count"], queues["a"]["unknown"]) == (3, 1)
    assert queues["a"]["median_error_seconds"] == pytest.approx(580)
    assert queues["a"]["mean_width_seconds"] == pytest.approx(540)
    assert queues["b"]["bias_seconds"] == pytest.approx(120 - 3000)


def test_a_tenant_reads_only_the_queues_that_it_may_see(
    judged: Cluster, bob: SchemaClient, charlie: SchemaClient
) -> None:
    for client, name, count in ((bob, "a", 3), (charlie, "b", 1)):
        response = client.get("/api/v1/studio/accuracy/")
        assert [each["cluster_queue"] for each in response.json()["cluster_queues"]] == [name]
        assert response.json()["stages"][0]["count"] == count


def test_the_hours_are_bounded(judged: Cluster, vera: SchemaClient) -> None:
    assert vera.get("/api/v1/studio/accuracy/?hours=200").json()["stages"][0]["count"] == 5
    for hours in ("0", "721", "-1", "day", "9" * 40):
        response = vera.get(f"/api/v1/studio/accuracy/?hours={hours}")
        assert response.status_code == 400
        assert "must be a number from 1 to 720" in str(response.json())


def test_the_newest_estimates_are_those_of_the_visible_queues(judged: Cluster) -> None:
    """The busy queue `b` leaves the others their place, and no more rows are read than the answer is about."""
    for _ in range(5):
        keep(judged, "b", 3000, hours_ago=0.5)
    since = timezone.now() - timedelta(hours=24)
    with CaptureQueriesContext(connection) as queries:
        found = accuracy_json(judged, since, frozenset({"a"}), max_judged=2)
    assert sum(stage["count"] for stage in found["stages"]) == 2
    assert {each["cluster_queue"] for each in found["cluster_queues"]} <= {"a"}
    assert "LIMIT 2" in queries[0]["sql"]
    assert accuracy_json(judged, since, None, max_judged=6)["stages"][0]["count"] == 6
    assert accuracy_json(judged, since, frozenset())["stages"][0]["count"] == 0
