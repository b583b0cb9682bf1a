"""Cycles and decisions over REST."""

from datetime import timedelta
from uuid import uuid4

import pytest

from accounts.models import Cluster
from scheduler.models import Decision, SchedulingCycle
from tests.api_client import SchemaClient
from tests.users import EPOCH

URL = "/api/v1/decisions/"


@pytest.fixture
def decisions(cluster: Cluster) -> None:
    for index, namespace in enumerate(("team-a", "team-b", "team-a")):
        Decision.objects.create(
            id=index + 1,
            decided_at=EPOCH + timedelta(minutes=index // 2),
            cluster_name="default",
            epoch=1,
            cycle=index,
            action="Preempt" if index < 2 else "Admit",
            namespace=namespace,
            workload_name=f"w{index}",
            workload_uid=uuid4(),
            cluster_queue_name="research",
            reason="QuotaReserved",
            message="Preempted to make room; preemptor path: /ai/production; preemptee path: /ai/research",
            detail={"preemptor": "team-b/secret"} if index < 2 else {"devices": [["n1", "GPU-1", 8192, 30]]},
        )


def test_the_newest_first(alice: SchemaClient, decisions: None) -> None:
    page = alice.get(URL, {"limit": 2}).json()
    assert [row["workload_name"] for row in page["results"]] == ["w2", "w1"]
    assert page["results"][1]["detail"] == {"preemptor": "team-b/secret"}
    rest = alice.get(URL, {"limit": 2, "after": page["next"]}).json()
    assert [row["workload_name"] for row in rest["results"]] == ["w0"]
    assert [row["workload_name"] for row in alice.get(URL, {"search": "W1"}).json()["results"]] == ["w1"]
    found = alice.get(URL, {"namespace": "team-a", "since": (EPOCH + timedelta(minutes=1)).isoformat()}).json()
    assert [row["workload_name"] for row in found["results"]] == ["w2"]


def test_a_tenant_reads_where_a_workload_ran_and_not_who_preempted_it(bob: SchemaClient, decisions: None) -> None:
    rows = bob.get(URL).json()["results"]
    assert [(row["workload_name"], row["detail"]) for row in rows] == [
        ("w2", {"devices": [["n1", "GPU-1", 8192, 30]]}),
        ("w0", {}),
    ]
    assert {row["message"] for row in rows} == {"Preempted to make room; preemptee path: /ai/research"}, "S14"


def test_cycles(alice: SchemaClient, bob: SchemaClient, cluster: Cluster) -> None:
    for number in (1, 2):
        SchedulingCycle.objects.create(
            cluster=cluster,
            epoch=1,
            number=number,
            started_at=EPOCH,
            duration_seconds=0.25,
            heads=2,
            admitted=1,
            preempted=0,
            inadmissible=1,
        )
    rows = alice.get("/api/v1/scheduling-cycles/").json()["results"]
    assert [row["number"] for row in rows] == [2, 1]
    assert bob.get("/api/v1/scheduling-cycles/").status_code == 403
