"""Before it is submitted: would it start now, why not, and what would it cost? Nothing is stored."""

from typing import Any

import pytest

from accounts.models import Cluster
from history.models import Price
from queues.models import Job, LocalQueue, Workload
from tests.api_client import SchemaClient
from tests.factories import START, make_cluster_queue
from tests.users import alice, bob, charlie, cluster

__all__ = ["alice", "bob", "charlie", "cluster"]

pytestmark = pytest.mark.django_db

JOB = """
apiVersion: batch/v1
kind: Job
metadata: {name: train, namespace: team-a, labels: {kueue.x-k8s.io/queue-name: local}}
spec:
  parallelism: 2
  completions: 2
  template:
    spec:
      restartPolicy: Never
      containers: [{name: c, image: i, resources: {requests: {cpu: %s}}}]
"""


def preview(client: SchemaClient, text: str) -> Any:
    return client.generic("POST", "/api/v1/preview/", text, content_type="application/yaml")


def make_queue(cluster: Cluster) -> None:
    make_cluster_queue(cluster, "main", {"default-flavor": {"cpu": 10_000}}, local_queue="")
    LocalQueue.objects.create(
        cluster=cluster, namespace="team-a", name="local", cluster_queue_name="main", created_at=START
    )


@pytest.mark.parametrize(("cpu", "state"), [("2", "FitsNow"), ("6", "CannotStart")])
def test_it_says_whether_it_would_start_now(cluster: Cluster, bob: SchemaClient, cpu: str, state: str) -> None:
    make_queue(cluster)
    for _ in range(2):  # what was tried before is forgotten
        answer = preview(bob, JOB % cpu)
        assert answer.status_code == 200, answer.content
        (workload,) = answer.json()["workloads"]
        assert workload["explanation"]["state"] == state
        assert workload["explanation"]["position"] == 1
    assert not Job.objects.exists()
    assert not Workload.objects.exists()


def test_it_says_what_an_hour_costs_by_the_price_of_the_flavor(cluster: Cluster, bob: SchemaClient) -> None:
    make_queue(cluster)
    for flavor, price in (("", "1"), ("default-flavor", "0.25")):
        Price.objects.create(cluster=cluster, flavor=flavor, resource="cpu", per_hour=price, currency="EUR")
    answer = preview(bob, JOB % "2").json()
    assert answer["currency"] == "EUR"
    assert answer["workloads"][0]["costs"] == [
        {"pod_sets": ["main"], "flavor": "default-flavor", "per_hour": 1.0, "is_upper_bound": False}
    ]


def test_a_mistake_is_located_as_when_it_is_submitted(cluster: Cluster, bob: SchemaClient) -> None:
    answer = preview(bob, JOB % "many")
    assert answer.status_code == 400
    assert "cpu" in answer.json()["errors"][0]["path"]


def test_who_may_not_submit_there_may_not_try(cluster: Cluster, charlie: SchemaClient) -> None:
    make_queue(cluster)
    assert preview(charlie, JOB % "1").status_code == 403
