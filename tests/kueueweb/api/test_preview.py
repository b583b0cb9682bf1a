"""Before it is submitted: would it start now, why not, and what would it cost? Nothing is stored."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from accounts.models import Cluster
from foundation.redis_client import redis_client
from history.models import Price
from queues.manifests.documents import read_documents
from queues.models import ClusterQueue, Job, LocalQueue, Workload
from studio.models import Question
from tests.api_client import SchemaClient
from tests.factories import START, make_cluster_queue
from tests.studio_answers import answer_questions, let_a_studio_live, preview_tried
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
        assert [(each["name"], each["count"], each["requests"]) for each in workload["pod_sets"]] == [
            ("main", 2, {"cpu": cpu})
        ]
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


QUEUE = """
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: main}
spec:
  namespaceSelector: {}
  resourceGroups:
  - coveredResources: [cpu]
    flavors:
    - name: default-flavor
      resources: [{name: cpu, nominalQuota: %s}]
"""


@pytest.fixture(autouse=True)
def silence() -> Iterator[None]:
    """No studio was heard, unless a test lets one answer."""
    redis_client().delete("kueueweb:heartbeats")
    yield
    redis_client().delete("kueueweb:heartbeats")


def effects_of(client: SchemaClient, text: str, **parameters: str) -> Any:
    """The preview of alice, whose effects a studio has tried."""
    plan = text
    if "delete" in parameters:
        plan = json.dumps({"delete": [document.content for document in read_documents(text)]})
    preview_tried(Cluster.objects.get(), "alice", plan)
    query = "&".join(f"{name}={value}" for name, value in {"effects": "true", **parameters}.items())
    answer = client.generic("POST", f"/api/v1/preview/?{query}", text, content_type="application/yaml")
    assert answer.status_code == 200, answer.content
    return answer.json()


def waiting(client: SchemaClient, cluster: Cluster, cpu: str) -> str:
    """A stored workload of twice as many cores; its key."""
    make_queue(cluster)
    made = client.generic("POST", "/api/v1/manifests/", JOB % cpu, content_type="application/yaml")
    assert made.status_code == 200, made.content
    return f"team-a/{Workload.objects.get().name}"


def test_a_change_of_quota_says_who_would_start_and_stores_nothing(cluster: Cluster, alice: SchemaClient) -> None:
    key = waiting(alice, cluster, "8")
    for _ in range(2):  # the World is as it was
        found = effects_of(alice, QUEUE % 16)
        assert found["result"]["objects"][0]["outcome"] == "configured"
        assert found["effects"]["starts"] == {"count": 1, "workloads": [{"workload": key, "cluster_queue": "main"}]}
        assert found["effects"]["quotas"] == [
            {
                "kind": "ClusterQueue",
                "name": "main",
                "flavor": "default-flavor",
                "resource": "cpu",
                "nominal_before": 10_000,
                "nominal": 16_000,
                "used": 0,
                "over": 0,
            }
        ]
        (manifest,) = found["manifests"]
        assert manifest["spec"]["queueingStrategy"] == "BestEffortFIFO"  # the default of what was left out
    assert effects_of(alice, QUEUE % 12)["effects"]["starts"]["count"] == 0


def test_a_smaller_quota_says_who_would_no_longer_start(cluster: Cluster, alice: SchemaClient) -> None:
    key = waiting(alice, cluster, "4")
    found = effects_of(alice, QUEUE % 6)["effects"]
    assert [each["workload"] for each in found["waits"]["workloads"]] == [key]


def test_a_deletion_is_previewed_and_not_done(cluster: Cluster, alice: SchemaClient) -> None:
    waiting(alice, cluster, "4")
    found = effects_of(alice, "{kind: ClusterQueue, metadata: {name: main}}", delete="true")
    assert found["result"]["objects"] == [
        {"kind": "ClusterQueue", "namespace": "", "name": "main", "outcome": "pruned"}
    ]
    assert found["effects"]["waits"]["count"] == 1
    assert found["manifests"] == []
    assert ClusterQueue.objects.filter(name="main", deletion_requested_at=None).exists()


def test_who_may_not_change_a_queue_may_not_try(cluster: Cluster, bob: SchemaClient) -> None:
    make_queue(cluster)
    for query, text in (("", QUEUE % 6), ("&delete=true", "{kind: ClusterQueue, metadata: {name: main}}")):
        answer: Any = bob.generic(
            "POST", f"/api/v1/preview/?effects=true{query}", text, content_type="application/yaml"
        )
        assert answer.status_code == 403


def test_effects_are_tried_for_those_who_may_change_queues(cluster: Cluster, bob: SchemaClient) -> None:
    """They take seconds, and tell of the queues of all."""
    job = "{apiVersion: batch/v1, kind: Job, metadata: {name: x, namespace: team-a}}"
    answer: Any = bob.generic("POST", "/api/v1/preview/?effects=true", job, content_type="application/yaml")
    assert (answer.status_code, answer.json()["reason"]) == (403, "NotPermitted")


def test_without_being_asked_no_effects_are_tried(cluster: Cluster, alice: SchemaClient) -> None:
    make_queue(cluster)
    assert preview(alice, QUEUE % 6).json()["effects"] is None


def test_a_configuration_is_deleted_as_people_write_it(cluster: Cluster, alice: SchemaClient) -> None:
    """It has no name in its manifest."""
    Cluster.objects.filter(pk=cluster.pk).update(configuration={"waitForPodsReady": {"timeout": "5m"}})
    text = "{apiVersion: config.kueue.x-k8s.io/v1beta2, kind: Configuration}"
    answer: Any = alice.generic("POST", "/api/v1/preview/?delete=true", text, content_type="application/yaml")
    assert answer.status_code == 200, answer.content
    cluster.refresh_from_db()
    assert cluster.configuration != {}


@pytest.mark.parametrize(
    ("text", "status"),
    [
        ("{kind: ClusterQueue, metadata: {name: absent}}", 404),
        ("{kind: ClusterQueue, metadata: [main]}", 404),
        ("{kind: LocalQueue, metadata: {name: local}}", 404),
        ("{kind: Nothing, metadata: {name: main}}", 400),
        ("{metadata: {name: main}}", 400),
        ('{kind: ClusterQueue, metadata: {name: "a\\0b"}}', 400),
    ],
)
def test_only_what_is_there_is_deleted(cluster: Cluster, alice: SchemaClient, text: str, status: int) -> None:
    make_queue(cluster)
    answer: Any = alice.generic("POST", "/api/v1/preview/?delete=true", text, content_type="application/yaml")
    assert answer.status_code == status, answer.content


def test_what_another_configuration_would_do_is_tried_and_taken_back(cluster: Cluster, alice: SchemaClient) -> None:
    """The transformation doubles what is charged, so that the second of two workloads no longer fits."""
    make_queue(cluster)
    for name in ("one", "two"):
        assert preview_submit(alice, JOB.replace("train", name) % "2500m").status_code == 200
    text = """
apiVersion: config.kueue.x-k8s.io/v1beta2
kind: Configuration
resources:
  transformations: [{input: cpu, strategy: Replace, outputs: {cpu: 2}}]
"""
    for _ in range(2):
        answer = effects_of(alice, text)
        assert [found["kind"] for found in answer["manifests"]] == ["Configuration"]
        assert answer["effects"]["waits"]["count"] == 1, answer["effects"]
    cluster.refresh_from_db()
    assert cluster.configuration == {}
    assert preview(alice, JOB % "2").json()["workloads"][0]["explanation"]["state"] == "FitsNow"


def test_without_a_studio_the_preview_says_so_and_shows_the_rest(cluster: Cluster, alice: SchemaClient) -> None:
    make_queue(cluster)
    answer: Any = alice.generic("POST", "/api/v1/preview/?effects=true", QUEUE % 6, content_type="application/yaml")
    found = answer.json()
    assert (answer.status_code, found["effects"], found["effects_pending"]) == (200, None, False)
    assert "manage.py studio" in found["effects_problem"]
    assert found["manifests"][0]["metadata"]["name"] == "main"
    assert not Question.objects.exists()


def test_while_the_studio_tries_the_preview_is_pending_and_another_text_replaces_it(
    cluster: Cluster, alice: SchemaClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kueueweb.api.preview._WAIT_SECONDS", 0.1)  # nobody answers meanwhile
    make_queue(cluster)
    let_a_studio_live()

    def asked(text: str) -> Any:
        return alice.generic("POST", "/api/v1/preview/?effects=true", text, content_type="application/yaml").json()

    assert [asked(QUEUE % 6)[name] for name in ("effects", "effects_pending", "effects_problem")] == [None, True, ""]
    asked(QUEUE % 7)
    assert [question.inputs["plan"] for question in answer_questions()] == [QUEUE % 7]
    found = asked(QUEUE % 7)
    assert (found["effects"]["quotas"][0]["nominal"], found["effects_pending"]) == (7000, False)
    assert alice.get("/api/v1/studio/questions/").json()["results"] == [], "previews are no questions of their own"


def test_settings_of_devices_are_not_tried(cluster: Cluster, alice: SchemaClient) -> None:
    text = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: hami}\ndata: {config.yaml: 'deviceSplitCount: 4'}\n"
    answer = alice.generic("POST", "/api/v1/preview/?effects=true", text, content_type="application/yaml").json()
    assert (answer["effects"], answer["manifests"][0]["metadata"]["name"]) == (None, "hami")


def preview_submit(client: SchemaClient, text: str) -> Any:
    return client.generic("POST", "/api/v1/manifests/", text, content_type="application/yaml")
