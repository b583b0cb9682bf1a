"""`workloads/counts/`."""

import pytest

from accounts.models import Cluster
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


def test_a_tenant_counts_what_it_sees(workloads: None, bob: SchemaClient) -> None:
    assert bob.get(URL).json()["total"] == 3


def test_an_unknown_group_is_refused(workloads: None, alice: SchemaClient) -> None:
    response = alice.get(URL, {"by": "colour"})
    assert response.status_code == 400
    assert "Supported values: status, reason" in str(response.json())
