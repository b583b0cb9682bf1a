"""`workloads/counts/`."""

import pytest

from accounts.models import Cluster
from queues.models import Pod, Workload
from tests.api_client import SchemaClient
from tests.factories import make_workload

URL = "/api/v1/workloads/counts/"


@pytest.fixture
def workloads(cluster: Cluster) -> None:
    """Two wait and one runs in team-a; one waits in team-b."""
    for name, namespace, status in (
        ("a1", "team-a", "Pending"),
        ("a2", "team-a", "Pending"),
        ("a3", "team-a", "Admitted"),
        ("b1", "team-b", "Pending"),
    ):
        make_workload(cluster, name, namespace=namespace, status=status)


def groups(body: dict[str, object]) -> dict[str, int]:
    return {row["value"]: row["count"] for row in body["groups"]}  # type: ignore[attr-defined]


def test_by_status_and_by_namespace(workloads: None, alice: SchemaClient) -> None:
    body = alice.get(URL).json()
    assert (body["total"], groups(body)) == (4, {"Pending": 3, "Admitted": 1})
    assert groups(alice.get(URL, {"by": "namespace", "status": "Pending"}).json()) == {"team-a": 2, "team-b": 1}
    assert alice.get(URL, {"search": "a1"}).json()["total"] == 1


def test_by_state(workloads: None, alice: SchemaClient) -> None:
    """Running, starting, failed and held workloads are told apart, in counts, in lists and by the filter."""
    fields: dict[str, dict[str, object]] = {
        "a2": {"active": False},
        "held": {"status": "Evicted", "active": False},
        "runs": {"status": "Admitted", "pods_ready_at": "2026-01-01T00:00:00Z"},
        "well": {"status": "Finished", "reason": "Succeeded"},
        "badly": {"status": "Finished", "reason": "Failed"},
        "late": {"status": "Finished", "reason": "FailedToStart"},
        "cancelled": {"status": "Finished", "reason": "Cancelled", "active": False},
    }
    for name, changed in fields.items():
        if name != "a2":
            make_workload(Workload.objects.get(name="a1").cluster, name, namespace="team-a")
        Workload.objects.filter(name=name).update(**changed)
    states = {
        "Pending": 2, "OnHold": 1, "Evicted": 1, "Starting": 1, "Running": 1, "Succeeded": 1, "Failed": 2,
        "Finished": 1,
    }  # fmt: skip
    assert groups(alice.get(URL, {"by": "state"}).json()) == states
    assert alice.get(URL, {"state": "Failed,OnHold"}).json()["total"] == 3
    rows = alice.get("/api/v1/workloads/", {"state": "Failed,OnHold,Running"}).json()["results"]
    assert {row["name"]: row["state"] for row in rows} == {
        "a2": "OnHold", "runs": "Running", "badly": "Failed", "late": "Failed",
    }  # fmt: skip
    assert alice.get("/api/v1/workloads/team-a/a3/").json()["state"] == "Starting"
    assert alice.get(URL, {"state": "Sleeping"}).status_code == 400


def test_by_label(workloads: None, alice: SchemaClient) -> None:
    """What has no such label is counted too, so that the groups add up."""
    Workload.objects.filter(name="a1").update(labels={"example.com/team": "vision", "1": ""})
    Workload.objects.filter(name="b1").update(labels={"example.com/team": "speech"})
    body = alice.get(URL, {"by": "label:example.com/team"}).json()
    assert (body["total"], groups(body)) == (4, {"": 2, "speech": 1, "vision": 1})
    assert groups(alice.get(URL, {"by": "label:1"}).json()) == {"": 4}
    response = alice.get(URL, {"by": "label:two words"})
    assert response.status_code == 400
    assert response.json()["errors"][0]["path"] == "by"


def test_by_node(workloads: None, alice: SchemaClient, bob: SchemaClient) -> None:
    """A workload with pods on two nodes is counted on each, and once in the total; pods that ended do not count."""
    for name, pods in {
        "a1": [("n1", "Running"), ("n1", "Running"), ("n2", "Pending")],
        "b1": [("n1", "Failed")],
    }.items():
        workload = Workload.objects.get(name=name)
        for replica, (node, phase) in enumerate(pods):
            uid = f"{name}-{replica}"
            Pod.objects.create(
                workload=workload, pod_set="main", replica=replica, namespace=workload.namespace, name=uid, uid=uid,
                phase=phase, node_name=node,
            )  # fmt: skip
    body = alice.get(URL, {"by": "node"}).json()
    assert (body["total"], groups(body)) == (4, {"": 3, "n1": 1, "n2": 1})
    assert groups(bob.get(URL, {"by": "node", "namespace": "team-b"}).json()) == {}


def test_a_tenant_counts_what_it_sees(workloads: None, bob: SchemaClient) -> None:
    assert bob.get(URL).json()["total"] == 3


def test_an_unknown_group_is_refused(workloads: None, alice: SchemaClient) -> None:
    response = alice.get(URL, {"by": "colour"})
    assert response.status_code == 400
    assert "Supported values: status, reason" in str(response.json())
