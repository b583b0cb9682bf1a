"""One quota is changed alone, and who replaces all of them says what they have read."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from django.db import connection

from accounts.models import Cluster
from queues.models import ClusterQueue
from tests.api_client import SchemaClient
from tests.users import client_of, make_user

URL = "/api/v1/cluster-queues/research/"
V100 = f"{URL}quotas/v100/"
GPU = "nvidia.com/gpu"


def change(resource: str = "cpu", **amounts: str | None) -> dict[str, Any]:
    return {"resources": {resource: amounts}}


def groups(cpu: str = "4", gpu: str = "8") -> list[dict[str, Any]]:
    cells = [
        {"name": "cpu", "nominal_quota": cpu, "borrowing_limit": None, "lending_limit": None},
        {"name": "nvidia.com/gpu", "nominal_quota": gpu, "borrowing_limit": "2", "lending_limit": None},
    ]
    return [{"covered_resources": ["cpu", "nvidia.com/gpu"], "flavors": [{"name": "v100", "resources": cells}]}]


@pytest.fixture
def queue(alice: SchemaClient, cluster: Cluster) -> str:
    """A ClusterQueue of a cohort; its ETag."""
    created = alice.put(URL, {"cohort": "company", "resource_groups": groups()})
    assert created.status_code == 201, created.content
    return str(created.headers["ETag"])


def amounts(client: SchemaClient) -> list[str]:
    return [cell["nominal_quota"] for cell in client.get(URL).json()["resource_groups"][0]["flavors"][0]["resources"]]


def test_one_quota_is_read_and_changed(alice: SchemaClient, queue: str) -> None:
    read = alice.get(V100)
    cpu = {"nominal_quota": "4", "borrowing_limit": None, "lending_limit": None}
    gpu = {"nominal_quota": "8", "borrowing_limit": "2", "lending_limit": None}
    assert read.json() == {"resources": {"cpu": cpu, GPU: gpu}, "generation": int(queue.strip('"'))}
    assert read.headers["ETag"] == queue
    changed = alice.patch(V100, change(GPU, nominal_quota="10"), headers={"If-Match": queue})
    assert (changed.status_code, changed.json()["resources"]) == (200, {"cpu": cpu, GPU: gpu | {"nominal_quota": "10"}})
    assert changed.headers["ETag"] == alice.get(URL).headers["ETag"] != queue
    stale = alice.patch(V100, change(GPU, nominal_quota="12"), headers={"If-Match": queue})
    assert (stale.status_code, stale.json()["current"]) == (412, changed.json())
    assert "by alice" in stale.json()["message"]
    assert alice.patch(V100, change(GPU, borrowing_limit=None)).json()["resources"][GPU]["borrowing_limit"] is None
    assert amounts(alice) == ["4", "10"]


def test_two_who_edit_two_quotas_both_count(alice: SchemaClient, queue: str) -> None:
    assert alice.patch(V100, change(nominal_quota="5")).status_code == 200
    assert alice.patch(V100, change(GPU, nominal_quota="9")).status_code == 200
    assert amounts(alice) == ["5", "9"]


@pytest.mark.parametrize(
    ("body", "path"),
    [
        (change(nominal_quota="lots"), "resources.cpu.nominal_quota"),
        (change(nominal_quota=None), "resources.cpu.nominal_quota"),
        (change(lending_limit="100"), "resources.cpu.lending_limit"),
        (change(quota="1"), "resources.cpu.quota"),
        (change(name="memory"), "resources.cpu.name"),
        (change("memory", nominal_quota="1"), "resources.memory"),
        ({"resources": {"cpu": 3}}, "resources.cpu"),
        ({}, "resources"),
        ({"resources": {}, "cohort": "x"}, "cohort"),
    ],
)
def test_a_mistake_stands_at_the_field(alice: SchemaClient, queue: str, body: dict[str, Any], path: str) -> None:
    refused = alice.patch(V100, body)
    assert (refused.status_code, refused.json()["errors"][0]["path"]) == (400, path)
    assert amounts(alice) == ["4", "8"]


def test_what_there_is_not_and_who_may_not(alice: SchemaClient, bob: SchemaClient, queue: str) -> None:
    for url in (f"{URL}quotas/a100/", V100.replace("research", "gone")):
        assert alice.patch(url, change(nominal_quota="1")).status_code == 404
        assert alice.get(url).status_code == 404
    assert bob.patch(V100, change(nominal_quota="1")).status_code == 403
    assert bob.get(V100).status_code == 403


def test_of_a_cohort(alice: SchemaClient, cluster: Cluster) -> None:
    url = "/api/v1/cohorts/company/"
    assert alice.put(url, {"resource_groups": groups()}).status_code == 201
    answer = alice.patch(f"{url}quotas/v100/", change(nominal_quota="7"))
    assert answer.json()["resources"]["cpu"]["nominal_quota"] == "7"


def test_a_replacement_needs_a_precondition(alice: SchemaClient, queue: str) -> None:
    for refused in (
        alice.put(URL, {"cohort": "company"}),
        alice.patch(URL, {"resource_groups": groups("5")}),
    ):
        assert (refused.status_code, refused.json()["reason"]) == (428, "PreconditionRequired")
        assert refused.headers["ETag"] == queue
        assert refused.json()["current"]["name"] == "research"
        assert f"If-Match: {queue}" in refused.json()["errors"][0]["remedy"]
    assert amounts(alice) == ["4", "8"]
    assert alice.patch(URL, {"fair_weight": "2"}).status_code == 200
    assert alice.patch(URL, {"resource_groups": groups("5")}, headers={"If-Match": "*"}).status_code == 200
    assert amounts(alice) == ["5", "8"]


def test_a_manifest_of_a_past_version_is_a_conflict(alice: SchemaClient, queue: str) -> None:
    def apply(text: str) -> Any:
        return alice.post("/api/v1/manifests/", text.encode(), content_type="application/yaml")

    read = alice.get("/api/v1/manifests/clusterqueue/research/?format=yaml").content.decode()
    version = queue.strip('"')
    assert f"resourceVersion: '{version}'" in read
    assert apply(read).json()["objects"][0]["outcome"] == "unchanged"
    assert alice.patch(V100, change(nominal_quota="5")).status_code == 200
    refused = apply(read)
    assert (refused.status_code, refused.json()["reason"]) == (409, "Conflict")
    [error] = refused.json()["errors"]
    assert (error["path"], error["value"], error["reason"]) == ("metadata.resourceVersion", version, "Conflict")
    assert "the object has been modified by alice" in error["rule"]
    assert amounts(alice) == ["5", "8"]

    of_another_server = read.replace(str(ClusterQueue.objects.get().uid), "11111111-2222-3333-4444-555555555555")
    assert apply(of_another_server).status_code == 200
    assert amounts(alice) == ["4", "8"]


@pytest.mark.django_db(transaction=True)
def test_two_cells_at_once() -> None:
    Cluster.objects.create(name="default")
    user = make_user("alice")
    client = client_of(user)
    assert client.put(URL, {"resource_groups": groups()}).status_code == 201
    codes: list[int] = []

    def run(resource: str) -> None:
        try:
            bodies = [change(resource, nominal_quota=str(number)) for number in range(20, 25)]
            codes.extend(client_of(user).patch(V100, body).status_code for body in bodies)
        finally:
            connection.close()

    threads = [threading.Thread(target=run, args=(resource,)) for resource in ("cpu", GPU)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    assert codes == [200] * 10
    assert amounts(client) == ["24", "24"]
