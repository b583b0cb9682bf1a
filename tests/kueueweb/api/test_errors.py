"""Every error has the one shape, whoever raises it."""

from typing import Any

import pytest
from django.db import OperationalError
from django.test import Client, RequestFactory
from pytest_django import Settings
from redis import ConnectionError as RedisConnectionError
from rest_framework.exceptions import ValidationError

from accounts.exceptions import AlreadyExists, Conflict, ManifestErrors, UnsupportedKind
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


@pytest.mark.parametrize("path", ["/api/v1/nothing/", "/api/", "/ws/x/", "/static/none.js"])
def test_addresses_that_are_none(path: str, db: None) -> None:
    response = Client().get(path)
    assert (response.status_code, response.json()["reason"]) == (404, "NotFound")


def test_a_body_that_is_too_large(alice: SchemaClient, settings: Settings) -> None:
    settings.MAXIMUM_BODY_BYTES = 10
    response: Any = alice.post("/api/v1/workloads/", [{"name": "much too long"}])
    assert (response.status_code, response.json()["reason"]) == (413, "TooLarge")
