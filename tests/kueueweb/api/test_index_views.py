"""Addresses of REST: the index, and a slash that was forgotten."""

from __future__ import annotations

import pytest
from django.test import Client

from accounts.models import Cluster
from queues.models import Workload

pytestmark = pytest.mark.django_db

JOB = {"namespace": "team", "name": "one", "local_queue": "queue", "pod_sets": [{"count": 1, "requests": {"cpu": "1"}}]}


def test_the_index_leads_to_every_list(client: Client) -> None:
    assert client.get("/api/").json() == {"versions": {"v1": "/api/v1/"}}
    found = client.get("/api/v1/").json()
    assert found["workloads"] == "/api/v1/workloads/"
    assert found["schema"] == "/api/v1/schema/"
    assert all("<" not in address for address in found.values())
    assert client.post("/api/v1/").status_code in {403, 405}


def test_each_address_of_the_index_is_one(client: Client) -> None:
    for address in client.get("/api/v1/").json().values():
        assert client.get(address).status_code != 404, address


@pytest.mark.parametrize("address", ["workloads", "cluster-queues/research", "workloads/team/one/priority"])
def test_a_forgotten_slash_leads_to_the_address_with_it(client: Client, address: str) -> None:
    answer = client.get(f"/api/v1/{address}?status=Pending&search=%2F%2F")
    assert answer.status_code == 308
    assert answer["Location"] == f"/api/v1/{address}/?status=Pending&search=%2F%2F"
    assert answer["Cache-Control"] == "no-store"
    assert "end in a slash" in answer.json()["message"]


@pytest.mark.parametrize("path", ["/api/v1/nothing", "/api/v1//evil.example.org/workloads", "/api/v2/workloads"])
def test_what_is_no_address_with_a_slash_is_not_there(client: Client, path: str) -> None:
    answer = client.get(path)
    assert (answer.status_code, "Location" in answer) == (404, False)


def test_a_post_without_its_slash_needs_no_csrf_token_and_stores_nothing(cluster: Cluster) -> None:
    strict = Client(enforce_csrf_checks=True, headers={"Authorization": "Bearer of-a-user"})
    answer = strict.post("/api/v1/workloads", JOB, content_type="application/json")
    assert (answer.status_code, answer["Location"]) == (308, "/api/v1/workloads/")
    assert not Workload.objects.exists()
