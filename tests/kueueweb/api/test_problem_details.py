"""Errors have the form of RFC 9457 for clients that accept it, whichever part of the server refuses."""

from __future__ import annotations

import pytest
from django.test import Client

from accounts.models import Cluster
from tests.api_client import SchemaClient

PROBLEM = "application/problem+json"


@pytest.mark.parametrize("accept", [PROBLEM, f"application/json, {PROBLEM};q=0.9"])
@pytest.mark.parametrize(
    ("address", "status", "title", "reason"),
    [
        ("workloads/?statu=Pending", 400, "Bad Request", "Invalid"),  # refused before the view
        ("workloads/team/absent/", 404, "Not Found", "NotFound"),  # refused by the view
        ("nowhere/", 404, "Not Found", "NotFound"),  # no address
    ],
)
def test_an_error_has_both_forms(
    alice: SchemaClient, cluster: Cluster, accept: str, address: str, status: int, title: str, reason: str
) -> None:
    answer = alice.get(f"/api/v1/{address}", headers={"Accept": accept})
    body = answer.json()
    assert (answer.status_code, answer.headers["Content-Type"]) == (status, PROBLEM)
    assert (body["type"], body["title"], body["status"]) == ("about:blank", title, status)
    assert (body["reason"], body["detail"]) == (reason, body["message"])
    assert body["instance"] == f"/api/v1/audit/?request_id={answer.headers['X-Request-ID']}"
    assert int(answer.headers["Content-Length"]) == len(answer.content)


def test_without_a_login(client: Client, db: None) -> None:
    answer = client.get("/api/v1/workloads/", headers={"Accept": PROBLEM})
    assert (answer.status_code, answer.headers["Content-Type"]) == (401, PROBLEM)


def test_an_answer_without_an_error_is_json(alice: SchemaClient, cluster: Cluster) -> None:
    answer = alice.get("/api/v1/workloads/", headers={"Accept": PROBLEM})
    assert (answer.status_code, answer.headers["Content-Type"]) == (200, "application/json")


def test_other_clients_get_the_short_form(alice: SchemaClient, cluster: Cluster) -> None:
    for accept in ("application/json", "*/*"):
        answer = alice.get("/api/v1/nowhere/", headers={"Accept": accept})
        assert answer.headers["Content-Type"] == "application/json"
        assert answer.json().keys() == {"reason", "message", "errors"}
