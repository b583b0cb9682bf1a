"""What every address keeps to: dry runs, totals, Location, deletion of every kind, and Kueue's status."""

from typing import Any

import pytest
import yaml
from django.contrib.auth.models import User
from rest_framework.test import APIClient

from accounts.models import Cluster
from clusters.manifests.kinds import KINDS
from queues.manifests.documents import MAX_BYTES
from queues.models import ClusterQueue, Job, LocalQueue, PodSet, Topology, Workload
from tests.api_client import SchemaClient
from tests.factories import make_cluster_queue
from tests.users import EPOCH

pytestmark = pytest.mark.django_db

API = "/api/v1"
JOB = """
apiVersion: batch/v1
kind: Job
metadata: {name: train, namespace: team-a, labels: {kueue.x-k8s.io/queue-name: local}}
spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: i, resources: {requests: {cpu: 1}}}]}}}
"""
CLAIM = "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: data, namespace: team-a}\nspec: {}\n"
AUTOSCALER = "apiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler\nmetadata: {name: h, namespace: team-a}\n"


def apply(client: SchemaClient, text: str, query: str = "") -> Any:
    return client.post(f"{API}/manifests/{query}", text, content_type="application/yaml")


def manifest(client: SchemaClient, address: str) -> dict[str, Any]:
    answer: Any = client.get(f"{API}/manifests/{address}/", headers={"Accept": "application/json"})
    assert answer.status_code == 200, answer.content
    found: dict[str, Any] = answer.json()
    return found


def team_queue(cluster: Cluster, cpu: int = 10_000) -> None:
    """The ClusterQueue `main`, and team-a's LocalQueue `local` to it."""
    make_cluster_queue(cluster, "main", {"default-flavor": {"cpu": cpu}}, local_queue="")
    LocalQueue.objects.create(
        cluster=cluster, namespace="team-a", name="local", cluster_queue_name="main", created_at=EPOCH
    )


def workload(cluster: Cluster, name: str, cpu: int, *, admitted: bool) -> Workload:
    """It holds cores of the ClusterQueue `main`."""
    row = Workload.objects.create(
        cluster=cluster, namespace="team-a", name=name, created_at=EPOCH, queue_name="local", cluster_queue_name="main",
        quota_reserved_at=EPOCH, admitted_at=EPOCH if admitted else None,
        status="Admitted" if admitted else "QuotaReserved",
    )  # fmt: skip
    PodSet.objects.create(
        workload=row, template={}, requests={"cpu": cpu}, flavors={"cpu": "default-flavor"},
        resource_usage={"cpu": cpu}, admitted_count=1,
    )  # fmt: skip
    return row


def test_a_dry_run_of_an_edit_stores_nothing(alice: SchemaClient, cluster: Cluster) -> None:
    made: Any = alice.put(f"{API}/topologies/racks/?dry_run=true", {"levels": ["rack"]}, format="json")
    assert (made.status_code, made.json()["levels"]) == (201, ["rack"])
    assert "ETag" not in made.headers
    assert not Topology.objects.exists()


@pytest.mark.parametrize(
    ("method", "address", "body"),
    [
        ("post", "workloads/", [{"namespace": "team-a", "name": "new", "pod_sets": [{"requests": {"cpu": "1"}}]}]),
        ("post", "workloads/team-a/one/cancel/", None),
        ("post", "workloads/cancel/", {"workloads": [{"namespace": "team-a", "name": "one"}]}),
        ("delete", "workloads/team-a/one/", None),
        ("delete", "cluster-queues/main/", None),
        ("delete", "manifests/workload/team-a/one/", None),
    ],
)
def test_a_dry_run_of_any_write_stores_nothing(
    alice: SchemaClient, cluster: Cluster, method: str, address: str, body: Any
) -> None:
    team_queue(cluster)
    workload(cluster, "one", 1000, admitted=True)
    before = (list(Workload.objects.values()), list(ClusterQueue.objects.values()))
    answer: Any = getattr(alice, method)(f"{API}/{address}?dry_run=true", body, format="json")
    assert answer.status_code in (200, 201, 202, 204), answer.content
    assert (list(Workload.objects.values()), list(ClusterQueue.objects.values())) == before


def test_a_dry_run_is_true_or_false(alice: SchemaClient) -> None:
    answer: Any = alice.put(f"{API}/topologies/racks/?dry_run=maybe", {"levels": ["rack"]}, format="json")
    assert (answer.status_code, answer.json()["errors"][0]["value"]) == (400, "maybe")


def test_a_list_counts_its_rows_where_that_is_asked_for(alice: SchemaClient, cluster: Cluster) -> None:
    for name in ("a", "b", "c"):
        Topology.objects.create(cluster=cluster, name=name, levels=["rack"], created_at=EPOCH)
    page: Any = alice.get(f"{API}/topologies/?limit=2&total=true")
    assert (len(page.json()["results"]), page.json()["total"]) == (2, 3)
    rest: Any = alice.get(f"{API}/topologies/?limit=2&total=true&after={page.json()['next']}")
    assert (len(rest.json()["results"]), rest.json()["total"]) == (1, 3)
    assert "total" not in alice.get(f"{API}/topologies/").json()


def test_what_was_made_says_where_it_is(alice: SchemaClient, cluster: Cluster) -> None:
    made: Any = alice.put(f"{API}/topologies/racks/", {"levels": ["rack"]}, format="json")
    assert made.headers["Location"] == f"{API}/topologies/racks/"
    body = {"namespace": "team-a", "generate_name": "w-", "pod_sets": [{"requests": {"cpu": "1"}}]}
    submitted: Any = alice.post(f"{API}/workloads/", body, format="json")
    name = submitted.json()["workloads"][0]["name"]
    assert submitted.headers["Location"] == f"{API}/workloads/team-a/{name}/"


EVERY_KIND = f"""
apiVersion: v1
kind: Namespace
metadata: {{name: made}}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: WorkloadPriorityClass
metadata: {{name: made}}
value: 1
---
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {{name: made}}
value: 1
---
apiVersion: node.k8s.io/v1
kind: RuntimeClass
metadata: {{name: made}}
handler: nvidia
---
apiVersion: v1
kind: LimitRange
metadata: {{name: made, namespace: team-a}}
spec: {{limits: [{{type: Container, max: {{cpu: 8}}}}]}}
---
apiVersion: v1
kind: ResourceQuota
metadata: {{name: made, namespace: team-a}}
spec: {{hard: {{requests.cpu: 1}}}}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: Topology
metadata: {{name: made}}
spec: {{levels: [{{nodeLabel: rack}}]}}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: AdmissionCheck
metadata: {{name: made}}
spec: {{controllerName: example.com/billing}}
---
apiVersion: v1
kind: Node
metadata: {{name: made}}
---
apiVersion: config.kueue.x-k8s.io/v1beta2
kind: Configuration
---
{JOB}"""


def test_whatever_an_apply_makes_can_be_deleted(alice: SchemaClient, cluster: Cluster) -> None:
    answer = apply(alice, EVERY_KIND)
    assert answer.status_code == 200, answer.json()
    for made in answer.json()["objects"]:
        kind = KINDS[made["kind"]]
        key = [made["namespace"]] * kind.namespaced + [made["name"] or "default"]
        address = "/".join([API, "manifests", kind.name.lower(), *key, ""])
        assert alice.delete(address).status_code == 204, address
        assert alice.delete(address).status_code == 404, address
    assert not Job.objects.exists()


def test_objects_carry_kueues_status(alice: SchemaClient, cluster: Cluster) -> None:
    """FlavorsReservation, flavorsUsage, counts and conditions; `status.admission` of a workload."""
    team_queue(cluster, 4000)
    workload(cluster, "runs", 1500, admitted=True)
    workload(cluster, "reserves", 3000, admitted=False)
    status = manifest(alice, "clusterqueue/main")["status"]
    assert status["flavorsReservation"] == [
        {"name": "default-flavor", "resources": [{"name": "cpu", "total": "4500m", "borrowed": "500m"}]}
    ]
    assert status["flavorsUsage"] == [
        {"name": "default-flavor", "resources": [{"name": "cpu", "total": "1500m", "borrowed": "0"}]}
    ]
    counts = ("pendingWorkloads", "reservingWorkloads", "admittedWorkloads")
    assert [status[count] for count in counts] == [0, 2, 1]
    assert [condition["type"] for condition in status["conditions"]] == ["Active"]
    local = manifest(alice, "localqueue/team-a/local")["status"]
    assert local["flavorsUsage"] == [{"name": "default-flavor", "resources": [{"name": "cpu", "total": "1500m"}]}]
    assert [local[count] for count in counts] == [0, 2, 1]
    found = manifest(alice, "workload/team-a/runs")
    assert found["metadata"]["creationTimestamp"] == "2026-01-05T09:00:00Z"
    assert found["status"]["admission"] == {
        "clusterQueue": "main",
        "podSetAssignments": [
            {
                "name": "main", "count": 1, "flavors": {"cpu": "default-flavor"}, "resourceUsage": {"cpu": "1500m"},
            }
        ],
    }  # fmt: skip


def test_the_workload_of_a_job_names_its_owner(alice: SchemaClient, cluster: Cluster) -> None:
    team_queue(cluster)
    assert apply(alice, JOB).status_code == 200
    [owner] = manifest(alice, f"workload/team-a/{Workload.objects.get().name}")["metadata"]["ownerReferences"]
    assert (owner["apiVersion"], owner["kind"], owner["name"], owner["controller"]) == (
        "batch/v1",
        "Job",
        "train",
        True,
    )
    assert owner["uid"] == str(Job.objects.get().uid)


def test_a_kind_as_json_is_a_list(alice: SchemaClient, cluster: Cluster) -> None:
    Topology.objects.create(cluster=cluster, name="racks", levels=["rack"], created_at=EPOCH)
    found = manifest(alice, "topology")
    assert (found["kind"], [item["metadata"]["name"] for item in found["items"]]) == ("List", ["racks"])


def test_an_error_that_is_asked_for_as_yaml_is_yaml(alice: SchemaClient) -> None:
    answer: Any = alice.get(f"{API}/manifests/clusterqueue/nope/", headers={"Accept": "application/yaml"})
    assert (answer.status_code, answer.headers["Content-Type"].partition(";")[0]) == (404, "application/yaml")
    assert not answer.content.startswith(b"{")
    assert yaml.safe_load(answer.content)["reason"] == "NotFound"


def test_unsupported_kinds_are_passed_by_where_that_is_asked_for(alice: SchemaClient, cluster: Cluster) -> None:
    refused = apply(alice, f"{JOB}---\n{AUTOSCALER}")
    assert (refused.status_code, refused.json()["reason"]) == (400, "UnsupportedKind")
    assert not Job.objects.exists()
    taken = apply(alice, f"{JOB}---\n{AUTOSCALER}", "?skip_unsupported=true")
    assert [skipped["kind"] for skipped in taken.json()["skipped"]] == ["HorizontalPodAutoscaler"]
    assert [done["outcome"] for done in taken.json()["objects"]] == ["created"]
    assert apply(alice, AUTOSCALER, "?skip_unsupported=true").status_code == 400


def test_what_stands_beside_a_job_is_passed_by(alice: SchemaClient, cluster: Cluster) -> None:
    """A PersistentVolumeClaim beside its Job."""
    answer = apply(alice, f"{CLAIM}---\n{JOB}")
    assert [skipped["document"] for skipped in answer.json()["skipped"]] == [0]
    assert Job.objects.get().name == "train"
    assert apply(alice, CLAIM).status_code == 400


def test_a_mistake_is_not_hidden_by_an_unsupported_kind(alice: SchemaClient, cluster: Cluster) -> None:
    answer = apply(alice, f"{AUTOSCALER}---\n{JOB.replace('batch/v1', 'batch/v7')}---\n{JOB.replace('train', 'T')}")
    assert [error["document"] for error in answer.json()["errors"]] == [0, 1, 2]


def test_a_manifest_beyond_the_bound_is_too_large(alice: SchemaClient, cluster: Cluster) -> None:
    answer = apply(alice, "#" * (MAX_BYTES + 1))
    assert (answer.status_code, answer.json()["reason"]) == (413, "TooLarge")


def test_actions_on_many_say_what_they_left_and_why(alice: SchemaClient, cluster: Cluster) -> None:
    team_queue(cluster)
    workload(cluster, "one", 1000, admitted=True)
    Workload.objects.filter(name="one").update(active=False)
    keys = [{"namespace": "team-a", "name": name} for name in ("one", "nope")]
    answer: Any = alice.post(f"{API}/workloads/hold/", {"workloads": keys}, format="json")
    assert answer.json() == {
        "changed": [],
        "skipped": [
            keys[1] | {"reason": "NotFound", "message": "There is no Workload team-a/nope."},
            keys[0] | {"reason": "Conflict", "message": "It is already on hold."},
        ],
    }


def test_a_refused_action_says_which_state_refuses_it(alice: SchemaClient, cluster: Cluster) -> None:
    team_queue(cluster)
    workload(cluster, "one", 1000, admitted=True)
    address = f"{API}/workloads/team-a/one/hold/"
    Workload.objects.update(active=False)
    assert alice.post(address).json()["message"].endswith("It is already on hold.")
    Workload.objects.update(status="Finished", finished_at=EPOCH)
    assert alice.post(address).json()["message"].endswith("It has ended.")


def test_an_error_repeats_what_was_sent(alice: SchemaClient) -> None:
    answer: Any = alice.get(f"{API}/workloads/?limit=abc")
    assert answer.json()["errors"][0]["value"] == "abc"
    empty: Any = alice.post(f"{API}/workloads/", [], format="json")
    assert not empty.json()["message"].startswith(":")


def test_the_api_can_be_tried_on_a_page(alice: SchemaClient) -> None:
    """From our own server, with no script inline."""
    reader = APIClient()
    reader.force_authenticate(User.objects.get(username="alice"))
    page: Any = reader.get(f"{API}/docs/")
    assert page.status_code == 200
    text = page.content.decode()
    assert "swagger-ui-bundle.js" in text
    assert "https://" not in text
    assert APIClient().get(f"{API}/docs/").status_code == 401


def test_ten_thousand_workloads_under_one_generated_name(alice: SchemaClient, cluster: Cluster) -> None:
    team_queue(cluster)
    one = {
        "namespace": "team-a",
        "generate_name": "b-",
        "local_queue": "local",
        "pod_sets": [{"requests": {"cpu": "1"}}],
    }
    answer: Any = alice.post(f"{API}/workloads/", [one] * 10_000, format="json")
    assert answer.status_code == 201
    assert len({made["name"] for made in answer.json()["workloads"]}) == 10_000
    assert Workload.objects.count() == 10_000
