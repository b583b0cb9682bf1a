"""`cluster-queues/{name}/user-limits/`: what users hold, and may hold."""

from __future__ import annotations

import pytest

from accounts.models import Cluster
from queues.models import LocalQueue, Workload
from scheduler.leader.engine import Engine
from tests.api_client import SchemaClient
from tests.factories import START, make_cluster_queue, make_cohort, make_workload

pytestmark = pytest.mark.django_db(transaction=True)

ADDRESS = "/api/v1/cluster-queues/queue-team-a/user-limits/"


@pytest.fixture
def limited(cluster: Cluster) -> Cluster:
    """bob may have 2 cpu in queue-team-a; each user may have 2 workloads in the cohort."""
    make_cohort(cluster, "all", user_limits=[{"users": ["*"], "workloads": 2}])
    for namespace in ("team-a", "team-b"):
        limits = [{"users": ["bob"], "resources": {"cpu": "2"}}] if namespace == "team-a" else []
        queue = make_cluster_queue(
            cluster, f"queue-{namespace}", {"default-flavor": {"cpu": 9000}}, local_queue="", cohort_name="all",
            user_limits=limits,
        )  # fmt: skip
        LocalQueue.objects.create(
            cluster=cluster, namespace=namespace, name="main", cluster_queue_name=queue.name, created_at=START
        )
    for user, namespace, number in (("bob", "team-a", 3), ("alice", "team-a", 1), ("charlie", "team-b", 3)):
        for index in range(number):
            row = make_workload(cluster, f"{user}{index}", {"cpu": "1"}, namespace=namespace, queue_name="main")
            Workload.objects.filter(pk=row.pk).update(submitted_by=user)
    Engine(cluster, "test", clock=lambda: START.timestamp() + 1000).run()
    return cluster


def test_users_start_as_many_workloads_as_their_limits_allow(limited: Cluster) -> None:
    waiting = Workload.objects.filter(status="Pending").order_by("name").values_list("name", "reason")
    assert list(waiting) == [("bob2", "WaitingForUserLimit"), ("charlie2", "WaitingForUserLimit")]


def test_an_admin_reads_every_users_holdings(limited: Cluster, alice: SchemaClient) -> None:
    rows = alice.get(ADDRESS).json()["results"]
    assert [(row["level"], row["user"], row["workloads"], row["max_workloads"]) for row in rows] == [
        ("ClusterQueue queue-team-a", "bob", 2, None),
        ("Cohort all", "alice", 1, 2),
        ("Cohort all", "bob", 2, 2),
        ("Cohort all", "charlie", 2, 2),
    ]
    assert rows[0]["resources"] == [{"resource": "cpu", "held": 2000, "limit": 2000, "free": 0}]


def test_a_tenant_reads_its_own_holdings_only(limited: Cluster, bob: SchemaClient) -> None:
    rows = bob.get(ADDRESS).json()["results"]
    assert [(row["level"], row["user"]) for row in rows] == [
        ("ClusterQueue queue-team-a", "bob"),
        ("Cohort all", "bob"),
    ]
    assert bob.get("/api/v1/cluster-queues/queue-team-b/user-limits/").status_code == 404


def test_a_user_at_the_limit_is_told_which_one(limited: Cluster, bob: SchemaClient) -> None:
    found = bob.get("/api/v1/workloads/team-a/bob2/explanation/").json()
    assert (found["state"], found["rule"]) == ("Waits", "UserLimit")
    assert found["message"] == (
        "Cpu of user bob in ClusterQueue queue-team-a: 2 cores held, 1 core requested, at most 2 cores allowed."
    )
    assert found["remedy"] == "It starts when other workloads of its user end, or the limit is raised."


def test_a_limit_is_written_over_rest_and_read_back(limited: Cluster, alice: SchemaClient) -> None:
    limits = [{"users": ["bob"], "resources": {"cpu": "1500m"}}, {"users": ["*"], "workloads": 7}]
    answer = alice.patch("/api/v1/cluster-queues/queue-team-a/", {"user_limits": limits})
    assert answer.status_code == 200, answer.content
    assert answer.json()["user_limits"] == limits
    refused = alice.patch("/api/v1/cluster-queues/queue-team-a/", {"user_limits": [{"users": [], "workloads": 7}]})
    assert refused.status_code == 400
    assert "user_limits[0].users" in refused.content.decode()
