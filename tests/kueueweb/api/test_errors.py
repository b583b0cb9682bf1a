"""Every error has the one shape, whoever raises it."""

from typing import Any

import pytest
from django.db import OperationalError
from django.test import Client, RequestFactory
from pytest_django import Settings
from redis import ConnectionError as RedisConnectionError
from rest_framework.exceptions import ValidationError

from foundation.exceptions import AlreadyExists, Conflict, ManifestErrors, UnsupportedKind
from kueueweb.api.errors import bad_request, error_response, server_error
from scheduling.manifest import LocatedError
from tests.api_client import SchemaClient


@pytest.mark.parametrize(
    ("error", "status", "reason"),
    [
        (Conflict("x"), 409, "Conflict"),
        (AlreadyExists("x"), 409, "AlreadyExists"),
        (ManifestErrors([LocatedError(2, "spec", {"a": 1}, "is wrong")]), 400, "InvalidManifest"),
        (UnsupportedKind([]), 400, "UnsupportedKind"),
        (OperationalError("no"), 503, "Unavailable"),
        (RedisConnectionError("no"), 503, "Unavailable"),
    ],
)
def test_ours(error: Exception, status: int, reason: str) -> None:
    response = error_response(error, {})
    assert response is not None
    assert (response.status_code, response.data["reason"]) == (status, reason)


def test_a_located_mistake() -> None:
    response = error_response(ManifestErrors([LocatedError(2, "spec", {"a": 1}, "is wrong", "Do it right.")]), {})
    assert response is not None
    assert response.data["errors"] == [
        {
            "document": 2,
            "path": "spec",
            "value": "{'a': 1}",
            "rule": "is wrong",
            "remedy": "Do it right.",
            "reason": "Invalid",
        }
    ]


def test_fields_are_refused_in_the_phrases_of_kubernetes(alice: SchemaClient) -> None:
    """With the value that was sent, where it was sent."""
    sent = {"currency": "EUR", "prices": [{"flavor": "a100", "resource": "cpu"}, {"resource": 7, "flavor": "f" * 300}]}
    mistakes = alice.put("/api/v1/prices/", sent, format="json").json()["errors"]
    assert [(one["path"], one["value"], one["rule"], one["remedy"], one["reason"]) for one in mistakes] == [
        ("prices[0].per_hour", None, "Required value", "Add it.", "Required"),
        ("prices[1].flavor", "f" * 300, "Ensure this field has no more than 253 characters.",
         "Write a text of this length.", "TooLong"),
        ("prices[1].resource", 7, "must be a string", "", "Invalid"),
        ("prices[1].per_hour", None, "Required value", "Add it.", "Required"),
    ]  # fmt: skip
    mode = alice.patch("/api/v1/clusters/default/", {"mode": "sleep"}, format="json").json()["errors"][0]
    assert (mode["path"], mode["value"], mode["rule"], mode["reason"]) == (
        "mode", "sleep", "Unsupported value", "NotSupported",
    )  # fmt: skip


def test_numbers_that_no_clock_has_are_refused(alice: SchemaClient) -> None:
    """`days` as large as a 64-bit number was a server error."""
    for days in (2**31, 445_803_528_735_609_600, 10**30):
        answer = alice.post("/api/v1/auth/tokens/", {"days": days}, format="json")
        assert (answer.status_code, answer.json()["errors"][0]["path"]) == (400, "days")
    answer = alice.patch("/api/v1/clusters/default/", {"accepts_workloads_from": [0]}, format="json")
    assert (answer.status_code, answer.json()["errors"][0]["path"]) == (400, "accepts_workloads_from[0]")


@pytest.mark.parametrize(
    ("method", "path", "field", "most", "longest"),
    [
        ("patch", "clusters/default/", "accepts_workloads_from", 1000, 253),
        ("post", "auth/tokens/", "namespaces", 100, 63),
        ("post", "auth/tokens/", "clusters", 100, 63),
        ("patch", "users/alice/", "groups", 1000, 150),
    ],
)
def test_lists_that_are_stored_have_an_end(
    alice: SchemaClient, method: str, path: str, field: str, most: int, longest: int
) -> None:
    def send(names: list[str]) -> Any:
        return getattr(alice, method)(f"/api/v1/{path}", {field: names}, format="json")

    too_many = send([f"n{number}" for number in range(most + 1)])
    assert (too_many.status_code, too_many.json()["errors"][0]["path"]) == (400, field)
    too_long = send(["n" * (longest + 1)])
    assert (too_long.status_code, too_long.json()["errors"][0]["path"]) == (400, f"{field}[0]")
    assert send(["n" * longest]).status_code < 400


def test_a_field_of_another_type_says_what_to_write(alice: SchemaClient) -> None:
    answer = alice.put("/api/v1/topologies/racks/", {"levels": "rack"}, format="json").json()["errors"][0]
    assert (answer["rule"], answer["remedy"], answer["reason"]) == (
        "must be a list", "Write a list: [a, b], or a line with a dash for each item.", "WrongType",
    )  # fmt: skip


def test_nested_details_of_drf() -> None:
    error = ValidationError({"workloads": [{}, {"name": ["is required"]}], "reason": ["is none", "is long"]})
    response = error_response(error, {})
    assert response is not None
    assert [(mistake["path"], mistake["rule"]) for mistake in response.data["errors"]] == [
        ("workloads[1].name", "is required"),
        ("reason", "is none"),
        ("reason", "is long"),
    ]


def test_our_own_mistakes_are_not_explained() -> None:
    assert error_response(KeyError("secret"), {}) is None
    assert server_error(RequestFactory().get("/")).status_code == 500
    assert bad_request(RequestFactory().get("/"), Exception()).status_code == 400


@pytest.mark.parametrize("path", ["/api/v1/nothing/", "/api/nothing/", "/ws/x/", "/static/none.js"])
def test_addresses_that_are_none(path: str, db: None) -> None:
    response = Client().get(path)
    assert (response.status_code, response.json()["reason"]) == (404, "NotFound")


def test_a_body_that_is_too_large(alice: SchemaClient, settings: Settings) -> None:
    settings.MAXIMUM_BODY_BYTES = 10
    response: Any = alice.post("/api/v1/workloads/", [{"name": "much too long"}])
    assert (response.status_code, response.json()["reason"]) == (413, "TooLarge")
