"""`local-queues/{namespace}/{name}/headroom/`: the amounts that the requesting user may still use."""

from __future__ import annotations

import pytest

from accounts.models import Cluster
from queues.models import LocalQueue, Workload
from scheduler.leader.engine import Engine
from tests.api_client import SchemaClient
from tests.factories import START, make_cluster_queue, make_cohort, make_workload

pytestmark = pytest.mark.django_db(transaction=True)

ADDRESS = "/api/v1/local-queues/team-a/main/headroom/"


def decide(cluster: Cluster) -> None:
    Engine(cluster, "test", clock=lambda: START.timestamp() + 1000).run()


@pytest.fixture
def limited(cluster: Cluster) -> Cluster:
    """queue-team-a has 9 cores; bob may have 4 of them, and 3 workloads in the cohort. bob holds 1 core, alice 2."""
    make_cohort(cluster, "all", user_limits=[{"users": ["bob"], "workloads": 3}])
    make_cluster_queue(
        cluster, "queue-team-a", {"default-flavor": {"cpu": 9000}}, local_queue="", cohort_name="all",
        user_limits=[{"users": ["bob"], "resources": {"cpu": "4"}}],
    )  # fmt: skip
    LocalQueue.objects.create(
        cluster=cluster, namespace="team-a", name="main", cluster_queue_name="queue-team-a", created_at=START
    )
    for user, cores in (("bob", "1"), ("alice", "2")):
        row = make_workload(cluster, user, {"cpu": cores}, namespace="team-a", queue_name="main")
        Workload.objects.filter(pk=row.pk).update(submitted_by=user)
    decide(cluster)
    return cluster


def test_a_limited_user_reads_the_smaller_of_quota_and_limit(limited: Cluster, bob: SchemaClient) -> None:
    assert bob.get(ADDRESS).json() == {
        "cluster_queue": "queue-team-a",
        "active": True,
        "message": "",
        "workloads": 2,
        "resources": [
            {
                "resource": "cpu",
                "free": 3000,
                "quota_free": 6000,
                "user_free": 3000,
                "flavors": [{"flavor": "default-flavor", "free": 6000}],
            }
        ],
    }


def test_a_user_without_a_limit_reads_the_free_quota(limited: Cluster, alice: SchemaClient) -> None:
    found = alice.get(ADDRESS).json()
    assert found["workloads"] is None
    assert [(row["free"], row["user_free"]) for row in found["resources"]] == [(6000, None)]


def test_a_workload_of_the_headroom_starts_and_leaves_none(limited: Cluster, bob: SchemaClient) -> None:
    row = make_workload(limited, "rest", {"cpu": "3"}, namespace="team-a", queue_name="main")
    Workload.objects.filter(pk=row.pk).update(submitted_by="bob")
    decide(limited)
    assert Workload.objects.get(pk=row.pk).status == "Admitted"
    found = bob.get(ADDRESS).json()
    assert (found["workloads"], found["resources"][0]["free"]) == (1, 0)


def test_another_tenant_does_not_learn_that_the_queue_exists(limited: Cluster, charlie: SchemaClient) -> None:
    assert charlie.get(ADDRESS).status_code == 404
    assert charlie.get("/api/v1/local-queues/team-a/none/headroom/").status_code == 404


def test_a_stopped_queue_says_so_beside_its_free_quota(
    limited: Cluster, alice: SchemaClient, bob: SchemaClient
) -> None:
    answer = alice.patch("/api/v1/cluster-queues/queue-team-a/", {"stop_policy": "Hold"})
    assert answer.status_code == 200, answer.content
    decide(limited)
    found = bob.get(ADDRESS).json()
    assert found["active"] is False
    assert found["message"]


def test_a_queue_without_its_cluster_queue_has_no_headroom(limited: Cluster, bob: SchemaClient) -> None:
    LocalQueue.objects.create(
        cluster=limited, namespace="team-a", name="lost", cluster_queue_name="none", created_at=START
    )
    found = bob.get("/api/v1/local-queues/team-a/lost/headroom/").json()
    assert (found["active"], found["workloads"], found["resources"]) == (False, None, [])


def test_a_namespace_that_the_queue_does_not_select_is_told(limited: Cluster, alice: SchemaClient) -> None:
    selector = {"matchLabels": {"team": "none"}}
    answer = alice.patch("/api/v1/cluster-queues/queue-team-a/", {"namespace_selector": selector})
    assert answer.status_code == 200, answer.content
    decide(limited)
    found = alice.get(ADDRESS).json()
    assert (found["active"], found["message"]) == (False, "ClusterQueue queue-team-a does not select namespace team-a")


ALL = "/api/v1/headroom/"


def test_all_queues_of_a_submitter_have_the_headroom_of_each_level(limited: Cluster, bob: SchemaClient) -> None:
    found = bob.get(ALL).json()
    (row,) = found["results"]
    assert not found["truncated"]
    assert (row["namespace"], row["name"], row["workloads"]) == ("team-a", "main", 2)
    assert row["resources"] == bob.get(ADDRESS).json()["resources"]
    assert row["levels"] == [
        {
            "level": "ClusterQueue queue-team-a",
            "workloads": None,
            "resources": [{"resource": "cpu", "quota_free": 6000, "user_free": 3000}],
        },
        {
            "level": "Cohort all",
            "workloads": 2,
            "resources": [{"resource": "cpu", "quota_free": 6000, "user_free": None}],
        },
    ]


def test_only_queues_to_which_the_reader_may_submit_are_listed(
    limited: Cluster, alice: SchemaClient, charlie: SchemaClient
) -> None:
    LocalQueue.objects.create(
        cluster=limited, namespace="team-b", name="lost", cluster_queue_name="none", created_at=START
    )
    named = [(row["namespace"], row["name"]) for row in alice.get(ALL).json()["results"]]
    assert named == [("team-a", "main"), ("team-b", "lost")]
    (row,) = charlie.get(ALL).json()["results"]
    assert (row["name"], row["active"], row["resources"], row["levels"]) == ("lost", False, [], [])
    assert [row["name"] for row in alice.get(f"{ALL}?namespace=team-b").json()["results"]] == ["lost"]
    assert [row["name"] for row in alice.get(f"{ALL}?namespace=team-a,team-b").json()["results"]] == ["main", "lost"]
    assert charlie.get(f"{ALL}?namespace=team-a").json()["results"] == []


def test_a_viewer_may_submit_nowhere(limited: Cluster, vera: SchemaClient) -> None:
    assert vera.get(ALL).json()["results"] == []


def test_a_long_list_says_that_it_is_cut(limited: Cluster, alice: SchemaClient) -> None:
    LocalQueue.objects.bulk_create(
        LocalQueue(cluster=limited, namespace="team-b", name=f"q{n}", cluster_queue_name="none", created_at=START)
        for n in range(1000)
    )
    found = alice.get(ALL).json()
    assert (len(found["results"]), found["truncated"]) == (1000, True)
