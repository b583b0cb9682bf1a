"""Reservations, their calendar and their preview over REST."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest
from django.utils import timezone

from accounts.models import Cluster
from gpus.models import Node
from queues.models import Pod, PodSet, Reservation, Workload
from scheduling.model.times import rfc3339
from tests.api_client import SchemaClient
from tests.factories import make_node, make_workload
from tests.users import EPOCH

URL = "/api/v1/reservations/firmware/"
CALENDAR = "/api/v1/reservation-calendar/"
PREVIEW = "/api/v1/reservation-calendar/preview/"
HOUR = timedelta(hours=1)


def body(start: datetime, end: datetime, **fields: Any) -> dict[str, Any]:
    return {
        "starts_at": rfc3339(start, whole_seconds=True),
        "ends_at": rfc3339(end, whole_seconds=True),
        "nodes": {"names": ["n1"], "labels": {}},
        **fields,
    }


@pytest.fixture
def now() -> datetime:
    return timezone.now().replace(microsecond=0)


@pytest.fixture(autouse=True)
def nodes(cluster: Cluster) -> None:
    for name in ("n1", "n2", "n3"):
        make_node(cluster, name, labels={"rack": "1"} if name == "n2" else {})


def reserve(cluster: Cluster, start: datetime, end: datetime, name: str = "firmware", **fields: Any) -> Reservation:
    fields.setdefault("node_names", ["n1"])
    return Reservation.objects.create(
        cluster=cluster, name=name, starts_at=start, ends_at=end, created_at=EPOCH, **fields
    )


def running(cluster: Cluster, name: str, node: str, namespace: str = "team-a", **fields: Any) -> Workload:
    """A workload with a pod on a node."""
    row = make_workload(cluster, name, namespace=namespace)
    Workload.objects.filter(pk=row.pk).update(
        status="Admitted", quota_reserved_at=EPOCH, admitted_at=timezone.now(), cluster_queue_name="main", **fields
    )
    Pod.objects.create(
        workload=row, pod_set="main", replica=0, namespace=namespace, name=name, uid=name, node_name=node,
        phase="Running",
    )  # fmt: skip
    return row


def test_a_reservation_is_made_read_changed_and_deleted(alice: SchemaClient, now: datetime) -> None:
    made = body(now, now + HOUR, allowed={"users": ["ada"]}, comment="New firmware")
    response = alice.put(URL, made, format="json")
    assert response.status_code == 201, response.json()
    found = response.json()
    assert found["starts_at"] == made["starts_at"]
    assert found["nodes"] == {"names": ["n1"], "labels": {}, "count": None}
    assert found["allowed"] == {"namespaces": [], "local_queues": [], "cluster_queues": [], "users": ["ada"]}
    assert (found["recurrence"], found["if_busy"], found["comment"]) == ("None", "Wait", "New firmware")
    changed = alice.patch(URL, {"if_busy": "Evict", "allowed": {"users": []}}, format="json", HTTP_IF_MATCH="*")
    assert changed.status_code == 200, changed.json()
    assert (changed.json()["if_busy"], changed.json()["allowed"]["users"]) == ("Evict", [])
    assert [row["name"] for row in alice.get("/api/v1/reservations/").json()["results"]] == ["firmware"]
    assert alice.delete(URL).status_code == 204
    assert alice.get(URL).status_code == 404


def test_every_mistake_is_located(alice: SchemaClient, now: datetime) -> None:
    response = alice.put(URL, body(now + HOUR, now, nodes={}, if_busy="Kill"), format="json")
    assert response.status_code == 400, response.json()
    text = response.content.decode()
    for part in ("ends_at", "must be later than the start", "nodes.names", "Required value", "if_busy"):
        assert part in text


def test_the_calendar_tells_the_state_of_each_window(alice: SchemaClient, cluster: Cluster, now: datetime) -> None:
    reserve(cluster, now - 3 * HOUR, now - 2 * HOUR, "ended")
    reserve(cluster, now - HOUR, now + HOUR, "active", node_names=["n3"])
    reserve(cluster, now - HOUR, now + HOUR, "busy", if_busy="Evict", node_names=["n1", "n3"])
    reserve(cluster, now + HOUR, now + 2 * HOUR, "planned", node_names=[], node_labels={"rack": "1"})
    running(cluster, "train", "n1")
    period = {"since": rfc3339(now - timedelta(days=1)), "until": rfc3339(now + timedelta(days=1))}
    found = alice.get(CALENDAR, period).json()
    assert found["truncated"] is False
    assert {each["reservation"]: each["state"] for each in found["windows"]} == {
        "ended": "Ended", "active": "Active", "busy": "Busy", "planned": "Planned",
    }  # fmt: skip
    by_name = {each["reservation"]: each for each in found["windows"]}
    assert [each["reservation"] for each in found["windows"]] == ["ended", "active", "busy", "planned"]
    assert by_name["planned"]["nodes"] == ["n2"]
    assert by_name["busy"]["busy"] == [{"namespace": "team-a", "name": "train", "node_count": 1}]
    assert (by_name["busy"]["busy_count"], by_name["ended"]["busy"]) == (1, [])
    assert by_name["busy"]["maintenance"] is True


def test_an_allowed_workload_makes_no_window_busy(alice: SchemaClient, cluster: Cluster, now: datetime) -> None:
    reserve(cluster, now - HOUR, now + HOUR, allowed_cluster_queues=["main"])
    running(cluster, "train", "n1")
    (window,) = alice.get(CALENDAR).json()["windows"]
    assert (window["state"], window["maintenance"]) == ("Active", False)


def test_a_workload_whose_nodes_are_chosen_makes_a_window_busy(
    alice: SchemaClient, cluster: Cluster, now: datetime
) -> None:
    reserve(cluster, now - HOUR, now + HOUR)
    row = make_workload(cluster, "placed", namespace="team-a")
    Workload.objects.filter(pk=row.pk).update(status="Admitted", quota_reserved_at=EPOCH)
    PodSet.objects.filter(workload=row).update(nodes=["n1", None])
    (window,) = alice.get(CALENDAR).json()["windows"]
    assert window["state"] == "Busy"


def test_a_recurring_reservation_has_a_window_each_day(alice: SchemaClient, cluster: Cluster, now: datetime) -> None:
    reserve(cluster, now, now + HOUR, recurrence="Daily")
    period = {"since": rfc3339(now + timedelta(days=10)), "until": rfc3339(now + timedelta(days=13))}
    found = alice.get(CALENDAR, period).json()["windows"]
    assert [each["starts_at"] for each in found] == [
        rfc3339(now + timedelta(days=days), whole_seconds=True) for days in (10, 11, 12)
    ]


def test_a_tenant_sees_the_windows_and_its_own_workloads(
    alice: SchemaClient, bob: SchemaClient, nobody: SchemaClient, cluster: Cluster, now: datetime
) -> None:
    reserve(cluster, now - HOUR, now + HOUR, allowed_users=["eve"])
    running(cluster, "mine", "n1")
    running(cluster, "hers", "n1", namespace="team-b")
    (window,) = bob.get(CALENDAR).json()["windows"]
    assert window["allowed"] is None
    assert [each["name"] for each in window["busy"]] == ["mine"]
    assert window["busy_count"] == 2
    (window,) = alice.get(CALENDAR).json()["windows"]
    assert window["allowed"]["users"] == ["eve"]
    assert [each["name"] for each in window["busy"]] == ["mine", "hers"]
    assert nobody.get(CALENDAR).status_code == 403
    assert bob.get(URL).status_code == 403
    assert bob.put(URL, body(now, now + HOUR), format="json").status_code == 403


@pytest.mark.parametrize(
    ("since", "until"),
    [("2026-01-02T00:00:00Z", "2026-01-01T00:00:00Z"), ("2026-01-01T00:00:00Z", "2026-05-01T00:00:00Z")],
)
def test_the_period_is_bounded(alice: SchemaClient, since: str, until: str) -> None:
    response = alice.get(CALENDAR, {"since": since, "until": until})
    assert response.status_code == 400
    assert "until: Invalid value" in response.json()["message"]


@pytest.mark.parametrize("period", [{"since": "9999-12-30T00:00:00Z"}, {"until": "9999-12-31T23:00:00Z"}])
def test_the_period_ends_before_the_last_years(alice: SchemaClient, period: dict[str, str]) -> None:
    response = alice.get(CALENDAR, period)
    assert response.status_code == 400
    assert "must be before the year 9000" in response.json()["message"]


def test_the_preview_lists_evicted_workloads_and_stores_nothing(
    alice: SchemaClient, bob: SchemaClient, cluster: Cluster, now: datetime
) -> None:
    endless = running(cluster, "endless", "n1")
    PodSet.objects.filter(workload=endless).update(nodes=["n1"])
    hosts = running(cluster, "hosts", "n1")
    domains = {"levels": ["kubernetes.io/hostname"], "domains": [{"values": ["n1"], "count": 1}]}
    PodSet.objects.filter(workload=hosts).update(topology_assignment=domains)
    running(cluster, "not-chosen", "n1")
    running(cluster, "short", "n1", maximum_execution_seconds=1800)
    running(cluster, "elsewhere", "n3")
    running(cluster, "allowed", "n1", submitted_by="ada")
    for name, limit in (("waits", None), ("waits-long", 7200), ("waits-short", 1800)):
        make_workload(cluster, name, namespace="team-a", maximum_execution_seconds=limit)
    asked = body(now + HOUR, now + 2 * HOUR, if_busy="Evict", allowed={"users": ["ada"]}, name="firmware")
    response = alice.post(PREVIEW, asked, format="json")
    assert response.status_code == 200, response.json()
    found = response.json()
    assert [(each["name"], each["evicted"], each["nodes"]) for each in found["holders"]] == [
        ("endless", True, ["n1"]),
        ("hosts", True, ["n1"]),
        ("not-chosen", False, ["n1"]),
    ], "the engine evicts only from nodes that kueueweb chose"
    assert (found["holder_count"], found["nodes"]) == (3, ["n1"])
    assert found["waiting"] == {"without_limit": 1, "too_long": 1}
    assert not Reservation.objects.exists()
    assert bob.post(PREVIEW, asked, format="json").status_code == 403
    wrong = alice.post(PREVIEW, {**asked, "ends_at": asked["starts_at"]}, format="json")
    assert wrong.status_code == 400
    assert alice.post(PREVIEW, {key: asked[key] for key in asked if key != "name"}, format="json").status_code == 400


def test_the_preview_of_a_window_that_is_over(alice: SchemaClient, now: datetime) -> None:
    asked = body(now - 2 * HOUR, now - HOUR, name="firmware")
    found = alice.post(PREVIEW, asked, format="json").json()
    assert (found["window"], found["holders"], found["nodes"]) == (None, [], ["n1"])


def test_a_count_of_nodes_and_an_end_of_the_recurrence(alice: SchemaClient, cluster: Cluster, now: datetime) -> None:
    node = Node.objects.get(name="n1")
    until = rfc3339(now + 49 * HOUR, whole_seconds=True)
    made = body(
        now + HOUR, now + 2 * HOUR, nodes={"names": [], "labels": {}, "count": 2}, recurrence="Daily", until=until
    )
    answer = alice.put(URL, made)
    assert answer.status_code == 201, answer.content
    assert (answer.json()["nodes"]["count"], answer.json()["until"]) == (2, until)
    shown = alice.get(CALENDAR).json()["windows"]
    assert [window["nodes"] for window in shown] == [["n1", "n2"]] * 2
    Node.objects.filter(pk=node.pk).update(cordoned=True)
    assert alice.get(CALENDAR).json()["windows"][0]["nodes"] == ["n2", "n3"]
    again = alice.put(URL, body(now + HOUR, now + 2 * HOUR), HTTP_IF_MATCH="*")
    assert (again.json()["nodes"]["count"], again.json()["until"]) == (None, None)


@pytest.mark.parametrize(
    ("fields", "path"),
    [
        ({"nodes": {"count": 0}}, "nodes.count"),
        ({"nodes": {}}, "nodes.names"),
        ({"until": "2100-01-01T00:00:00Z"}, "until"),
        ({"until": "2000-01-01T00:00:00Z", "recurrence": "Daily"}, "until"),
    ],
)
def test_a_mistake_in_a_count_or_an_end_is_located(
    alice: SchemaClient, now: datetime, fields: dict[str, Any], path: str
) -> None:
    answer = alice.put(URL, body(now + HOUR, now + 2 * HOUR, **fields))
    assert answer.status_code == 400
    assert path in answer.content.decode()
