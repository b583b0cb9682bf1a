"""Manifests over REST: applied with the user's rights, given back so that they apply again unchanged."""

import orjson
import pytest
import yaml
from django.db import connection
from django.test.utils import CaptureQueriesContext

from accounts.models import Cluster
from queues.models import ClusterQueue, Cohort, LocalQueue, Workload
from scheduler.leader.engine import Engine
from tests.api_client import SchemaClient
from tests.factories import make_cluster_queue
from tests.users import EPOCH

URL = "/api/v1/manifests/"
QUEUES = """
apiVersion: kueue.x-k8s.io/v1beta2
kind: Cohort
metadata: {name: company}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: research}
spec:
  cohortName: company
  resourceGroups:
  - coveredResources: [cpu]
    flavors: [{name: on-demand, resources: [{name: cpu, nominalQuota: 4}]}]
"""
JOB = """
apiVersion: batch/v1
kind: Job
metadata: {name: train, namespace: team-a, labels: {kueue.x-k8s.io/queue-name: main}}
spec:
  template: {spec: {restartPolicy: Never, containers: [{name: c, image: i}]}}
"""


def apply(client: SchemaClient, text: str, **query: str):  # type: ignore[no-untyped-def]  # a test client's response
    return client.post(URL, text.encode(), content_type="application/yaml", query_params=query)


def test_apply_and_get(alice: SchemaClient) -> None:
    body = apply(alice, QUEUES).json()
    assert body["objects"] == [
        {"kind": "Cohort", "namespace": "", "name": "company", "outcome": "created"},
        {"kind": "ClusterQueue", "namespace": "", "name": "research", "outcome": "created"},
    ]
    for path in ("clusterqueue/research/", "cq/"):
        got = alice.get(f"{URL}{path}", headers={"Accept": "application/yaml"})
        assert got.headers["Content-Type"].startswith("application/yaml")
        assert got.content == alice.get(f"{URL}{path}?format=yaml").content
        again = apply(alice, got.content.decode()).json()
        assert [done["outcome"] for done in again["objects"]] == ["unchanged"]
    assert alice.get(f"{URL}clusterqueue/research/", headers={"Accept": "*/*"}).json()["kind"] == "ClusterQueue"
    assert alice.get(f"{URL}cq/?format=toml").status_code == 400


@pytest.mark.parametrize(
    ("kind", "table"), [("workload", "queues_workload"), ("job", "queues_job"), ("localqueue", "queues_localqueue")]
)
def test_what_others_have_is_not_read_for_a_tenant(
    cluster: Cluster, alice: SchemaClient, bob: SchemaClient, charlie: SchemaClient, kind: str, table: str
) -> None:
    """Every tenant's objects were read and written out, and then most of them left out."""
    for namespace in ("team-a", "team-c"):
        LocalQueue.objects.create(cluster=cluster, namespace=namespace, name="main", created_at=EPOCH)
        assert apply(alice, JOB.replace("team-a", namespace)).status_code == 200

    def read(client: SchemaClient, path: str = "") -> tuple[list[str], list[str]]:
        with CaptureQueriesContext(connection) as captured:
            answer = client.get(f"{URL}{kind}/{path}", headers={"Accept": "application/json"})
        assert answer.status_code == 200
        read = [query["sql"] for query in captured if f'FROM "{table}"' in query["sql"]]
        return [item["metadata"]["namespace"] for item in answer.json()["items"]], read

    namespaces, read_by_admin = read(alice)
    assert sorted(namespaces) == ["team-a", "team-c"]
    assert f'"{table}"."namespace" IN' not in read_by_admin[0]
    for client, own, expected in ((bob, "team-a", ["team-a"]), (charlie, "team-b", [])):
        namespaces, queries = read(client)
        assert namespaces == expected
        assert f""""{table}"."namespace" IN ('{own}')""" in queries[0]


def test_a_dry_run_stores_nothing(alice: SchemaClient) -> None:
    body = apply(alice, QUEUES, dry_run="true").json()
    assert body["dry_run"] is True
    assert not Cohort.objects.exists()


def test_prune(alice: SchemaClient) -> None:
    apply(alice, QUEUES, set="base")
    body = apply(alice, QUEUES.partition("---")[0], set="base", prune="true").json()
    assert ("research", "pruned") in [(done["name"], done["outcome"]) for done in body["objects"]]
    assert not ClusterQueue.objects.exists()
    assert apply(alice, QUEUES, prune="true").status_code == 400
    assert apply(alice, QUEUES, prune="perhaps").status_code == 400


def test_a_submitter_applies_jobs_and_nothing_else(bob: SchemaClient, charlie: SchemaClient) -> None:
    assert apply(bob, JOB).status_code == 200
    assert Workload.objects.get().submitted_by == "bob"
    refused = apply(bob, f"{JOB}---{QUEUES}")
    assert refused.status_code == 403
    assert [error["document"] for error in refused.json()["errors"]] == [1, 2]
    assert apply(charlie, JOB).status_code == 403
    assert "kind: Job" in bob.get(f"{URL}job/team-a/train/?format=yaml").content.decode()
    assert bob.get(f"{URL}workload/?format=yaml").content.decode().count("kind: Workload") == 1
    assert charlie.get(f"{URL}workload/").json()["items"] == []
    assert charlie.get(f"{URL}job/team-a/train/").status_code == 404
    assert bob.get(f"{URL}clusterqueue/research/").status_code == 403


def test_mistakes_are_located(alice: SchemaClient) -> None:
    refused = apply(alice, QUEUES.replace("nominalQuota: 4", "nominalQuota: lots"))
    assert refused.status_code == 400
    [error] = refused.json()["errors"]
    assert (error["document"], error["path"]) == (1, "spec.resourceGroups[0].flavors[0].resources[0].nominalQuota")
    assert not Cohort.objects.exists()


@pytest.mark.parametrize(
    ("path", "status"),
    [("nonsense/", 400), ("clusterqueue/none/", 404), ("job/train/", 400), ("job/team-a/none/", 404)],
)
def test_what_there_is_not(alice: SchemaClient, path: str, status: int) -> None:
    assert alice.get(f"{URL}{path}").status_code == status


@pytest.mark.django_db(transaction=True)
def test_an_elastic_job_changes_its_size_while_it_holds_quota(cluster: Cluster, alice: SchemaClient) -> None:
    elastic = JOB.replace("image: i", "image: i, resources: {requests: {cpu: 1}}").replace(
        "labels:", "annotations: {kueue.x-k8s.io/elastic-job: 'true'}, labels:"
    )

    def resize(parallelism: int) -> list[tuple[int, str]]:
        answer = apply(alice, elastic.replace("spec:\n", f"spec:\n  parallelism: {parallelism}\n", 1))
        assert answer.status_code == 200, answer.json()
        Engine(cluster, "test").run()
        rows = alice.get("/api/v1/workloads/").json()["results"]
        details = [alice.get(f"/api/v1/workloads/{row['namespace']}/{row['name']}/").json() for row in rows]
        return sorted((row["pod_sets"][0]["admitted_count"] or 0, row["status"]) for row in details)

    make_cluster_queue(cluster, quotas={"default-flavor": {"cpu": 3_000}}, local_queue="")
    LocalQueue.objects.create(
        cluster=cluster, namespace="team-a", name="main", cluster_queue_name="main", created_at=EPOCH
    )
    assert resize(3) == [(3, "Admitted")]
    assert resize(5) == [(0, "Pending"), (3, "Admitted")]
    assert resize(2) == [(2, "Admitted"), (3, "Finished")], "the slice that waits gets the size, and replaces the first"
    assert resize(3) == [(2, "Finished"), (3, "Admitted"), (3, "Finished")]
    refused = apply(alice, elastic.replace("image: i,", "image: j,"))
    assert (refused.status_code, refused.json()["errors"][0]["path"]) == (400, "spec.template")


CONFIGURATION = """
apiVersion: config.kueue.x-k8s.io/v1beta2
kind: Configuration
fairSharing: {preemptionStrategies: [LessThanInitialShare]}
"""
DEVICE_PLUGIN = """
apiVersion: v1
kind: ConfigMap
metadata: {name: hami, namespace: kube-system}
data: {config.yaml: 'deviceSplitCount: 4'}
"""


@pytest.mark.parametrize(
    ("text", "path", "edit"),
    [
        (CONFIGURATION, "configuration/default/", {"manageJobsWithoutQueueName": True}),
        (DEVICE_PLUGIN, "configmap/kube-system/hami/", {"data": {"config.yaml": "deviceSplitCount: 5"}}),
    ],
)
def test_settings_are_edited_only_as_they_were_read(
    alice: SchemaClient, text: str, path: str, edit: dict[str, object]
) -> None:
    assert alice.get(f"{URL}{path}").status_code == 404
    apply(alice, text)
    read = alice.get(f"{URL}{path}?format=json").json()
    mine = apply(alice, orjson.dumps({**read, **edit}).decode())
    assert [done["outcome"] for done in mine.json()["objects"]] == ["configured"]
    late = apply(alice, orjson.dumps({**read, "metadata": {**read["metadata"], "uid": ""}}).decode())
    assert late.status_code == 409
    assert late.json()["errors"][0]["path"] == "metadata.resourceVersion"
    now = alice.get(f"{URL}{path}?format=json").json()
    assert {key: now[key] for key in edit} == edit
    assert now["metadata"]["resourceVersion"] != read["metadata"]["resourceVersion"]
    elsewhere = {**read["metadata"], "uid": "5a2e4b1c-0000-4000-8000-000000000000"}
    assert apply(alice, orjson.dumps({**read, "metadata": elsewhere}).decode()).status_code == 200


@pytest.mark.parametrize(
    ("text", "edited", "path"),
    [
        (CONFIGURATION, CONFIGURATION + "manageJobsWithoutQueueName: true\n", "configuration/default/"),
        (DEVICE_PLUGIN, DEVICE_PLUGIN.replace("Count: 4", "Count: 5"), "configmap/kube-system/hami/"),
        (QUEUES, QUEUES.replace("nominalQuota: 4", "nominalQuota: 5"), "clusterqueue/research/"),
    ],
)
def test_configuration_is_deleted_only_as_it_was_read(alice: SchemaClient, text: str, edited: str, path: str) -> None:
    apply(alice, text)
    read = alice.get(f"{URL}{path}").headers["ETag"]
    apply(alice, edited)
    late = alice.delete(f"{URL}{path}", headers={"If-Match": read})
    assert (late.status_code, late.json()["reason"]) == (412, "PreconditionFailed")
    now = late.headers["ETag"]
    assert now == f'"{late.json()["current"]["metadata"]["resourceVersion"]}"'
    assert now == alice.get(f"{URL}{path}").headers["ETag"] != read
    assert alice.delete(f"{URL}{path}", headers={"If-Match": now}).status_code == 204
    assert alice.delete(f"{URL}{path}", headers={"If-Match": "*"}).status_code == 404


def test_what_runs_is_not_deleted_on_a_condition(alice: SchemaClient) -> None:
    make_cluster_queue(Cluster.objects.get(), "research")
    assert apply(alice, JOB).status_code == 200
    refused = alice.delete(f"{URL}job/team-a/train/", headers={"If-Match": '"1"'})
    assert (refused.status_code, refused.json()["reason"]) == (400, "Invalid")
    assert alice.delete(f"{URL}job/team-a/train/").status_code == 204


def test_the_configuration_is_deleted_by_its_name(alice: SchemaClient) -> None:
    apply(alice, CONFIGURATION)
    assert alice.delete(f"{URL}configuration/other/").status_code == 404
    assert alice.get(f"{URL}configuration/default/").status_code == 200


def test_a_configuration_that_is_to_be_new_replaces_none(alice: SchemaClient) -> None:
    fresh = "apiVersion: config.kueue.x-k8s.io/v1beta2\nkind: Configuration\nmetadata: {resourceVersion: '0'}\n"
    assert apply(alice, fresh).status_code == 200
    other = fresh + "manageJobsWithoutQueueName: true\n"
    assert apply(alice, other).status_code == 409


def test_a_setting_that_is_past_is_found_in_its_document(alice: SchemaClient) -> None:
    apply(alice, CONFIGURATION)
    settings = {"apiVersion": "config.kueue.x-k8s.io/v1beta2", "kind": "Configuration"}
    past = orjson.dumps({**settings, "metadata": {"resourceVersion": "past"}}).decode()
    late = apply(alice, f"{QUEUES}\n---\n{past}")
    assert late.status_code == 409
    queues = len(list(yaml.safe_load_all(QUEUES)))
    [error] = late.json()["errors"]
    assert (error["document"], error["path"]) == (queues, "metadata.resourceVersion")


def test_fair_sharing_of_an_old_configuration_is_kept_as_a_new_one_says_it(alice: SchemaClient) -> None:
    apply(alice, "apiVersion: config.kueue.x-k8s.io/v1beta1\nkind: Configuration\nfairSharing: {enable: true}\n")
    read = alice.get(f"{URL}configuration/default/?format=json").json()
    strategies = ["LessThanOrEqualToFinalShare", "LessThanInitialShare"]
    assert read["fairSharing"] == {"preemptionStrategies": strategies}
    assert apply(alice, orjson.dumps(read).decode()).status_code == 200


def test_an_old_configuration_that_waits_for_pods_waits_as_it_did(alice: SchemaClient) -> None:
    """The defaults of the two versions differ."""
    old = "apiVersion: config.kueue.x-k8s.io/v1beta1\nkind: Configuration\nwaitForPodsReady: {enable: true%s}\n"
    for more, stored in (("", ("5m", True)), (", timeout: 1h, blockAdmission: false", ("1h", False))):
        apply(alice, old % more)
        found = alice.get(f"{URL}configuration/default/?format=json").json()["waitForPodsReady"]
        assert (found["timeout"], found["blockAdmission"]) == stored
