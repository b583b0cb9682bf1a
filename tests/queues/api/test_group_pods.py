"""POST of pods of groups: several documents, in one call or in many, are one workload."""

from typing import Any

from queues.models import Job, PodSet, Workload
from tests.api_client import SchemaClient

URL = "/api/v1/workloads/"


def pod(
    name: str, total: int = 2, *, group: str = "ring", namespace: str = "team-a", queue: str = "main"
) -> dict[str, Any]:
    labels = {"kueue.x-k8s.io/queue-name": queue, "kueue.x-k8s.io/pod-group-name": group}
    annotations = {"kueue.x-k8s.io/pod-group-total-count": str(total)}
    container = {"name": "main", "image": "busybox", "resources": {"requests": {"cpu": "1"}}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, "labels": labels, "annotations": annotations},
        "spec": {"containers": [container]},
    }


def test_a_group_in_one_call_is_one_workload(bob: SchemaClient) -> None:
    answer = bob.post(URL, [pod("a"), pod("b"), pod("alone", 1, group="other")])
    assert answer.status_code == 201
    assert [(row["namespace"], row["name"]) for row in answer.json()["workloads"]] == [
        ("team-a", "ring"),
        ("team-a", "other"),
    ]
    row = bob.get(f"{URL}team-a/ring/").json()
    assert (row["owner"], row["submitted_by"]) == ({"kind": "PodGroup", "name": "ring"}, "bob")
    assert PodSet.objects.get(workload__name="ring").count == 2


def test_pods_join_one_by_one(bob: SchemaClient) -> None:
    first = bob.post(URL, pod("a")).json()["workloads"]
    assert bob.post(URL, pod("b")).json()["workloads"] == first
    assert PodSet.objects.get().count == 2


def test_a_pod_that_is_there_is_refused(bob: SchemaClient) -> None:
    bob.post(URL, pod("a"))
    answer = bob.post(URL, [pod("b"), pod("a")])
    assert (answer.status_code, [error["path"] for error in answer.json()["errors"]]) == (409, ["metadata.name"])
    assert Job.objects.filter(kind="Pod").count() == 1


def test_mistakes_are_located_and_nothing_is_stored(bob: SchemaClient) -> None:
    answer = bob.post(URL, [pod("a"), pod("b", 3), pod("c", queue="")])
    assert answer.status_code == 400
    assert [(error["document"], error["path"]) for error in answer.json()["errors"]] == [
        (2, "metadata.labels[kueue.x-k8s.io/queue-name]")
    ]
    answer = bob.post(URL, [pod("a"), pod("b", 3)])
    assert [(error["document"], error["path"]) for error in answer.json()["errors"]] == [
        (1, "metadata.annotations[kueue.x-k8s.io/pod-group-total-count]")
    ]
    assert not Job.objects.exists()
    assert not Workload.objects.exists()


def test_only_in_bound_namespaces(bob: SchemaClient) -> None:
    assert bob.post(URL, pod("a", namespace="team-b")).status_code == 403
    assert not Job.objects.exists()
