"""Queues and their tree over REST: activity, counts and usage, as far as the user's LocalQueues reach."""

from typing import Any

import orjson
import pytest
from django.conf import settings
from django.db import connection
from django.utils import timezone
from redis import Redis

from accounts.models import Cluster
from queues.manifests.workload import PodSetSpec, WorkloadSpec
from queues.models import ClusterQueue, Cohort, FlavorQuota, LocalQueue, PodSet, ResourceFlavor, ResourceGroup, Workload
from queues.services.submission import create_workloads
from scheduler.live.publisher import snapshot_key
from scheduler.models import Lease
from tests.api_client import SchemaClient
from tests.users import EPOCH


def cluster_queue(cluster: Cluster, name: str, cohort: str, cpu: int, **fields: Any) -> ClusterQueue:
    row = ClusterQueue.objects.create(
        cluster=cluster, name=name, cohort_name=cohort, namespace_selector={}, created_at=EPOCH, **fields
    )
    group = ResourceGroup.objects.create(
        cluster_queue=row, position=0, covered_resources=["cpu"], flavors=["on-demand"]
    )
    FlavorQuota.objects.create(
        resource_group=group, flavor="on-demand", resource="cpu", nominal_quota=cpu, borrowing_limit=2000
    )
    return row


@pytest.fixture
def queues(cluster: Cluster) -> None:
    """company > research (team-a), production (team-b); alone, with a missing flavor, in no cohort."""
    ResourceFlavor.objects.create(cluster=cluster, name="on-demand", created_at=EPOCH)
    Cohort.objects.create(cluster=cluster, name="science", parent_name="company", created_at=EPOCH)
    cluster_queue(cluster, "research", "science", 4000)
    cluster_queue(cluster, "production", "company", 8000, fair_sharing_weight="2.5")
    alone = cluster_queue(cluster, "alone", "", 1000, stop_policy="Hold")
    ResourceGroup.objects.create(cluster_queue=alone, position=1, covered_resources=["memory"], flavors=["gone"])
    for namespace, queue in (("team-a", "research"), ("team-b", "production"), ("team-b", "missing")):
        LocalQueue.objects.create(
            cluster=cluster, namespace=namespace, name=queue, cluster_queue_name=queue, created_at=EPOCH
        )
    pod_sets = (PodSetSpec("main", 1, {}, {"cpu": 5000}),)
    specs = [WorkloadSpec("team-a", name, "research", pod_sets) for name in ("runs", "waits")]
    create_workloads(cluster, specs, actor="bob")
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL kueueweb.unnoticed = 'on'")
    Workload.objects.filter(name="runs").update(status="Admitted", quota_reserved_at=EPOCH, admitted_at=EPOCH)
    PodSet.objects.filter(workload__name="runs").update(
        admitted_count=1, flavors={"cpu": "on-demand"}, resource_usage={"cpu": 5000}
    )


def test_cluster_queues(alice: SchemaClient, queues: None) -> None:
    rows = {row["name"]: row for row in alice.get("/api/v1/cluster-queues/").json()["results"]}
    assert list(rows) == ["alone", "production", "research"]
    research = rows["research"]
    assert (research["pending"], research["reserving"], research["admitted"]) == (1, 1, 1)
    assert research["conditions"][0]["status"] == "True"
    assert research["resource_groups"] == [
        {
            "covered_resources": ["cpu"],
            "flavors": [
                {
                    "name": "on-demand",
                    "resources": [{"name": "cpu", "nominal_quota": "4", "borrowing_limit": "2", "lending_limit": None}],
                }
            ],
        }
    ]
    assert rows["production"]["fair_weight"] == "2.5"
    alone = rows["alone"]["conditions"][0]
    assert (alone["status"], alone["reason"]) == ("False", "Stopped")
    assert "gone" in alone["message"]


def test_usage_is_told_apart_from_reservation(alice: SchemaClient, queues: None) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL kueueweb.unnoticed = 'on'")
    Workload.objects.filter(name="waits").update(status="QuotaReserved", quota_reserved_at=EPOCH)
    PodSet.objects.filter(workload__name="waits").update(
        admitted_count=1, flavors={"cpu": "on-demand"}, resource_usage={"cpu": 2000}
    )
    (cell,) = alice.get("/api/v1/cluster-queues/research/").json()["usage"]
    assert (cell["used"], cell["admitted"]) == (7000, 5000)
    held = {"flavor": "on-demand", "resource": "cpu", "used": 7000, "admitted": 5000}
    rows = {row["name"]: row["usage"] for row in alice.get("/api/v1/local-queues/").json()["results"]}
    assert rows == {"research": [held], "production": [], "missing": []}
    assert alice.get("/api/v1/local-queues/team-a/research/").json()["usage"] == [held]


def test_only_those_within_reach(bob: SchemaClient, queues: None) -> None:
    assert [row["name"] for row in bob.get("/api/v1/cluster-queues/").json()["results"]] == ["research"]
    assert bob.get("/api/v1/cluster-queues/research/").status_code == 200
    assert bob.get("/api/v1/cluster-queues/production/").status_code == 404
    assert [row["name"] for row in bob.get("/api/v1/cohorts/").json()["results"]] == ["science"]
    assert bob.get("/api/v1/cohorts/science/").json()["parent"] == "company"
    assert [row["name"] for row in bob.get("/api/v1/local-queues/").json()["results"]] == ["research"]
    assert bob.get("/api/v1/local-queues/team-b/production/").status_code == 404


def test_local_queues(alice: SchemaClient, queues: None) -> None:
    rows = {row["name"]: row for row in alice.get("/api/v1/local-queues/").json()["results"]}
    assert (rows["research"]["pending"], rows["research"]["reserving"], rows["research"]["admitted"]) == (1, 1, 1)
    assert rows["research"]["conditions"][0]["reason"] == "Ready"
    assert rows["missing"]["conditions"][0]["reason"] == "ClusterQueueDoesNotExist"
    found = alice.get("/api/v1/local-queues/", {"cluster_queue": "production"}).json()["results"]
    assert [row["name"] for row in found] == ["production"]
    assert alice.get("/api/v1/local-queues/team-a/research/").json()["cluster_queue"] == "research"


def test_the_tree_from_rows(alice: SchemaClient, queues: None) -> None:
    tree = alice.get("/api/v1/cohorts/tree/").json()
    assert tree["source"] == "rows"
    assert [queue["name"] for queue in tree["cluster_queues"]] == ["alone"]
    [company] = tree["cohorts"]
    assert (company["name"], [child["name"] for child in company["cohorts"]]) == ("company", ["science"])
    cell = {"flavor": "on-demand", "resource": "cpu", "deserved": None, "subtree_quota": 12000, "used": 5000}
    assert company["usage"] == [cell]
    [research] = company["cohorts"][0]["cluster_queues"]
    assert research["usage"] == [
        {
            "flavor": "on-demand",
            "resource": "cpu",
            "nominal": 4000,
            "deserved": None,
            "borrowing_limit": 2000,
            "lending_limit": None,
            "used": 5000,
            "borrowed": 1000,
        }
    ]
    assert research["weighted_share"] > 0


def test_the_tree_as_far_as_the_user_reaches(bob: SchemaClient, queues: None) -> None:
    tree = bob.get("/api/v1/cohorts/tree/").json()
    assert tree["cluster_queues"] == []
    [company] = tree["cohorts"]
    assert company["cluster_queues"] == []
    assert [queue["name"] for queue in company["cohorts"][0]["cluster_queues"]] == ["research"]


def test_cohorts_in_a_circle(alice: SchemaClient, cluster: Cluster) -> None:
    for name, parent in (("a", "b"), ("b", "a")):
        Cohort.objects.create(cluster=cluster, name=name, parent_name=parent, created_at=EPOCH)
    cluster_queue(cluster, "q", "a", 1000)
    tree = alice.get("/api/v1/cohorts/tree/").json()
    assert [cohort["name"] for cohort in tree["cohorts"]] == ["a", "b"]
    condition = alice.get("/api/v1/cluster-queues/q/").json()["conditions"][0]
    assert condition["status"] == "False"


def test_the_schedulers_own_numbers_while_it_leads(
    alice: SchemaClient, cluster: Cluster, queues: None, live_services: None
) -> None:
    entry = {"cohort": "", "active": True, "reason": "Ready", "message": "", "pending": 7, "inadmissible": 3}
    entry |= {"reserving": 0, "admitted": 0, "weighted_share": "Infinity", "usage": []}
    frame = {"type": "snapshot", "epoch": 3, "data": {"cluster_queues": {"research": entry}, "cohorts": {}}}
    with Redis.from_url(settings.REDIS_URL) as redis:
        redis.set(snapshot_key("default"), orjson.dumps(frame))
    try:
        lease = Lease.objects.create(cluster=cluster, epoch=3, renewed_at=timezone.now())
        tree = alice.get("/api/v1/cohorts/tree/").json()
        assert (tree["source"], tree["cluster_queues"][0]["weighted_share"]) == ("live", "Infinity")
        assert alice.get("/api/v1/cluster-queues/research/").json()["pending"] == 10
        Lease.objects.filter(pk=lease.pk).update(epoch=4)  # another leader has not shown anything yet
        assert alice.get("/api/v1/cohorts/tree/").json()["source"] == "rows"
        Lease.objects.filter(pk=lease.pk).update(epoch=3, renewed_at=EPOCH)
        assert alice.get("/api/v1/cohorts/tree/").json()["source"] == "rows"
    finally:
        with Redis.from_url(settings.REDIS_URL) as redis:
            redis.delete(snapshot_key("default"))
