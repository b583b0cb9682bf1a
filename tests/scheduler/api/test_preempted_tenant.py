"""What a preempted tenant reads of its preemptor, and a preemptor of its victim, wherever it is to be read."""

from __future__ import annotations

import pytest

from accounts.models import Cluster
from queues.models import LocalQueue, Workload
from scheduler.leader.engine import Engine
from tests.api_client import SchemaClient
from tests.factories import START, make_cluster_queue, make_cohort, make_workload

pytestmark = pytest.mark.django_db(transaction=True)

WORKLOADS = "/api/v1/workloads/"
PLACES = (
    f"{WORKLOADS}team-a/victim/",
    f"{WORKLOADS}",
    f"{WORKLOADS}?cluster_queue=queue-team-a&ordering=position",
    f"{WORKLOADS}team-a/victim/events/",
    f"{WORKLOADS}team-a/victim/explanation/",
    "/api/v1/decisions/",
    "/api/v1/manifests/workload/",
    "/api/v1/manifests/workload/team-a/victim/",
)
SECRETS = ("queue-team-b", "effective priority: 4711", "base: 4711")


@pytest.fixture
def preempted(cluster: Cluster) -> Cluster:
    """team-b takes back by force what team-a has borrowed; a drained cluster finds the victim's pods gone at once."""
    make_cohort(cluster, "all")
    for namespace in ("team-a", "team-b"):
        quotas = {"default-flavor": {"cpu": 4000}}
        queue = make_cluster_queue(
            cluster, f"queue-{namespace}", quotas, local_queue="", cohort_name="all", reclaim_within_cohort="Any"
        )
        LocalQueue.objects.create(
            cluster=cluster, namespace=namespace, name="main", cluster_queue_name=queue.name, created_at=START
        )
    make_workload(cluster, "victim", {"cpu": "7"}, namespace="team-a", queue_name="main")
    engine = Engine(cluster, "test", clock=lambda: START.timestamp() + 1000)
    engine.run()
    make_workload(cluster, "rival", {"cpu": "4"}, namespace="team-b", queue_name="main", priority=4711)
    engine.run()
    assert Workload.objects.get(name="victim").evicted_at is not None
    return cluster


def texts(client: SchemaClient) -> dict[str, str]:
    answers = {place: client.get(place) for place in PLACES}
    assert {answer.status_code for answer in answers.values()} == {200}
    return {place: answer.content.decode() for place, answer in answers.items()}


def test_a_tenant_reads_nothing_of_a_queue_that_it_does_not_see(preempted: Cluster, bob: SchemaClient) -> None:
    found = texts(bob)
    assert [(place, secret) for place, text in found.items() for secret in SECRETS if secret in text] == []
    assert "preemptee path: /all/queue-team-a" in found[f"{WORKLOADS}team-a/victim/"]


def test_users_who_see_the_queue_read_the_path(preempted: Cluster, alice: SchemaClient, bob: SchemaClient) -> None:
    told = {place for place, text in texts(alice).items() if "preemptor path: /all/queue-team-b" in text}
    assert {f"{WORKLOADS}team-a/victim/", f"{WORKLOADS}team-a/victim/events/", "/api/v1/decisions/"} <= told
    assert "/api/v1/manifests/workload/team-a/victim/" in told
    LocalQueue.objects.create(
        cluster=preempted, namespace="team-a", name="other", cluster_queue_name="queue-team-b", created_at=START
    )
    assert {place for place, text in texts(bob).items() if "preemptor path: /all/queue-team-b" in text} == told


def test_a_preempted_tenant_reads_the_name_of_a_preemptor_whose_namespace_it_sees(
    cluster: Cluster, bob: SchemaClient, alice: SchemaClient
) -> None:
    queue = make_cluster_queue(
        cluster, "own", {"default-flavor": {"cpu": 4000}}, local_queue="", within_cluster_queue="LowerPriority"
    )
    LocalQueue.objects.create(
        cluster=cluster, namespace="team-a", name="main", cluster_queue_name=queue.name, created_at=START
    )
    make_workload(cluster, "victim", {"cpu": "4"}, namespace="team-a", queue_name="main")
    engine = Engine(cluster, "test", clock=lambda: START.timestamp() + 1000)
    engine.run()
    make_workload(cluster, "rival", {"cpu": "4"}, namespace="team-a", queue_name="main", priority=7)
    engine.run()
    preempted = "/api/v1/decisions/?action=Preempt"
    expected = {"preemptor": "team-a/rival", "preemptor_cluster_queue": "own"}
    assert [row["detail"] for row in bob.get(preempted).json()["results"]] == [expected]
    assert [row["detail"] for row in alice.get(preempted).json()["results"]] == [expected]


def test_a_preempted_tenant_reads_nothing_of_a_preemptor_of_another_tenant(
    preempted: Cluster, bob: SchemaClient, alice: SchemaClient
) -> None:
    found = "/api/v1/decisions/?action=Preempt"
    assert [row["detail"] for row in bob.get(found).json()["results"]] == [{}]
    assert alice.get(found).json()["results"][0]["detail"]["preemptor"] == "team-b/rival"


def test_a_preemptor_is_not_told_the_name_of_its_victim(
    preempted: Cluster, charlie: SchemaClient, alice: SchemaClient
) -> None:
    events = f"{WORKLOADS}team-b/rival/events/"
    messages = [row["message"] for row in charlie.get(events).json()["results"]]
    assert "Preempted a workload (InCohortReclamation)" in messages
    assert "team-a/victim" not in str(messages)
    assert "Preempted team-a/victim (InCohortReclamation)" in alice.get(events).content.decode()
