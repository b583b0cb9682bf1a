"""`cluster-queues/{name}/user-limits/`: what users hold, and may hold."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import Group, User

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


def join(user: str, *groups: str) -> None:
    for group in groups:
        User.objects.get(username=user).groups.add(Group.objects.get_or_create(name=group)[0])


def submit(client: SchemaClient, name: str, cpu: str = "1") -> None:
    body = {"namespace": "team-a", "name": name, "local_queue": "main", "pod_sets": [{"requests": {"cpu": cpu}}]}
    answer = client.post("/api/v1/workloads/", body)
    assert answer.status_code == 201, answer.content


@pytest.fixture
def grouped(cluster: Cluster, alice: SchemaClient, bob: SchemaClient) -> Cluster:
    """The group eng may have 2 cpu in queue-team-a, and all others together one workload; bob and alice are in eng."""
    limits = [{"groups": ["eng"], "resources": {"cpu": "2"}}, {"groups": ["*"], "workloads": 1}]
    make_cluster_queue(cluster, "queue-team-a", {"default-flavor": {"cpu": 9000}}, local_queue="", user_limits=limits)
    LocalQueue.objects.create(
        cluster=cluster, namespace="team-a", name="main", cluster_queue_name="queue-team-a", created_at=START
    )
    for user in ("alice", "bob"):
        join(user, "zoo", "eng")
    return cluster


def test_the_groups_of_a_user_are_kept_at_the_submission_and_limit(
    grouped: Cluster, alice: SchemaClient, bob: SchemaClient
) -> None:
    submit(bob, "one")
    submit(bob, "two")
    submit(alice, "three")
    assert Workload.objects.get(name="one").user_groups == ["eng", "zoo"]
    User.objects.get(username="alice").groups.clear()
    Engine(grouped, "test").run()
    waiting = Workload.objects.get(status="Pending")
    assert (waiting.name, waiting.reason) == ("three", "WaitingForUserLimit")
    assert waiting.message == (
        "cpu of group eng in ClusterQueue queue-team-a: 2 cores held, 1 core requested, at most 2 cores allowed"
    )


def test_a_group_is_shown_with_its_limit_to_its_members(
    grouped: Cluster, alice: SchemaClient, bob: SchemaClient
) -> None:
    submit(bob, "one")
    Engine(grouped, "test").run()
    cpu = {"resource": "cpu", "held": 1000, "limit": 2000, "free": 1000}
    of_eng = {
        "level": "ClusterQueue queue-team-a", "user": "", "group": "eng", "workloads": 1, "max_workloads": None,
        "resources": [cpu],
    }  # fmt: skip
    shown = bob.get(ADDRESS).json()["results"]
    assert of_eng in shown
    assert {row["group"] for row in shown} == {"eng"}, "the usage of all others is not for members of eng"
    User.objects.get(username="bob").groups.clear()
    assert bob.get(ADDRESS).json()["results"] == []
    join("bob", "zoo")
    assert {row["group"] for row in bob.get(ADDRESS).json()["results"]} == {"*"}
    assert of_eng in alice.get(ADDRESS).json()["results"]


def test_the_headroom_of_a_user_is_that_of_the_group(grouped: Cluster, alice: SchemaClient, bob: SchemaClient) -> None:
    submit(alice, "one", cpu="1500m")
    Engine(grouped, "test").run()
    address = "/api/v1/local-queues/team-a/main/headroom/"
    (found,) = bob.get(address).json()["resources"]
    assert (found["free"], found["user_free"]) == (500, 500)
    User.objects.get(username="bob").groups.clear()
    (found,) = bob.get(address).json()["resources"]
    assert found["user_free"] is None


def test_a_limit_of_groups_is_read_back_as_written(limited: Cluster, alice: SchemaClient) -> None:
    limits = [{"users": [], "groups": ["eng", "*"], "workloads": 7}]
    answer = alice.patch("/api/v1/cluster-queues/queue-team-a/", {"user_limits": limits})
    assert (answer.status_code, answer.json()["user_limits"]) == (200, limits)
    for twice in ([{"groups": ["eng"], "workloads": 1}] * 2, [{"groups": [], "workloads": 1}]):
        assert alice.patch("/api/v1/cluster-queues/queue-team-a/", {"user_limits": twice}).status_code == 400
