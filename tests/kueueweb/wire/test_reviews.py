"""Questions about rights in protobuf, as kubectl sends them; bodies that are none are refused."""

from __future__ import annotations

from io import BytesIO
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rest_framework.exceptions import ParseError, UnsupportedMediaType
from rest_framework.test import APIClient

from kueueweb.wire.encodings.protobuf import ProtobufParser

ADDRESS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
PROTOBUF = "application/vnd.kubernetes.protobuf"


def field(number: int, content: bytes) -> bytes:
    """A field of bytes that is shorter than 128."""
    assert len(content) < 128
    return bytes([number << 3 | 2, len(content)]) + content


def review(namespace: str, verb: str, resource: str) -> bytes:
    """A SelfSubjectAccessReview about jobs, as client-go writes it: empty fields are written too."""
    attributes = b"".join(
        field(number, text.encode())
        for number, text in enumerate((namespace, verb, "batch", "v1", resource, "", ""), 1)
    )
    raw = field(1, field(1, b"")) + field(2, field(1, attributes)) + field(3, b"\x08\x00" + field(2, b""))
    meta = field(1, b"authorization.k8s.io/v1") + field(2, b"SelfSubjectAccessReview")
    return b"k8s\x00" + field(1, meta) + field(2, raw) + field(3, b"") + field(4, b"")


def ask(client: APIClient, body: bytes) -> Any:
    return client.post(ADDRESS, body, content_type=PROTOBUF)


def test_a_question_in_protobuf_is_answered(bob: APIClient) -> None:
    for namespace, yes in (("team-a", True), ("team-b", False)):
        answer = ask(bob, review(namespace, "list", "jobs"))
        assert (answer.status_code, answer.json()["status"]["allowed"]) == (201, yes)


CRDS = {"group": "apiextensions.k8s.io", "resource": "customresourcedefinitions"}
PENDING = {
    "group": "visibility.kueue.x-k8s.io",
    "resource": "localqueues",
    "subresource": "pendingworkloads",
    "verb": "get",
}


@pytest.mark.parametrize(
    ("attributes", "allowed"),
    [
        ({**CRDS, "verb": "list"}, True),
        ({**CRDS, "verb": "watch"}, False),
        ({**CRDS, "verb": "delete"}, False),
        ({**PENDING, "namespace": "team-a"}, True),
        ({**PENDING, "namespace": "team-b"}, False),
        ({**PENDING, "namespace": "team-a", "verb": "list"}, False),
        ({**PENDING, "namespace": "team-a", "resource": "pods"}, False),
    ],
)
def test_resources_that_are_no_rows(bob: APIClient, attributes: dict[str, str], allowed: bool) -> None:
    body = {"kind": "SelfSubjectAccessReview", "spec": {"resourceAttributes": attributes}}
    answer = bob.post(ADDRESS, body, format="json")
    assert (answer.status_code, answer.json()["status"]["allowed"]) == (201, allowed)


def test_the_list_of_rights_names_the_definitions(bob: APIClient) -> None:
    address = ADDRESS.replace("accessreviews", "rulesreviews")
    status = bob.post(address, {"kind": "SelfSubjectRulesReview", "spec": {}}, format="json").json()["status"]
    rule = {"verbs": ["get", "list"], "apiGroups": [CRDS["group"]], "resources": [CRDS["resource"]]}
    assert rule in status["resourceRules"]
    assert "/openapi/*" in status["nonResourceRules"][0]["nonResourceURLs"]


@pytest.mark.parametrize("body", [b"k8s\x00\xff", b"k8s\x00\x0a\x05ab", b"{}", b"k8s\x00\x0b"])
def test_other_bodies_are_refused(bob: APIClient, body: bytes) -> None:
    answer = ask(bob, body)
    assert (answer.status_code, answer.json()["reason"]) == (400, "BadRequest")


def test_a_question_about_nothing_is_refused(bob: APIClient) -> None:
    for spec in ({}, {"resourceAttributes": [], "nonResourceAttributes": "x"}):
        answer = bob.post(ADDRESS, {"spec": spec}, format="json")
        assert (answer.status_code, answer.json()["reason"]) == (422, "Invalid")


def test_other_media_types_are_refused(bob: APIClient) -> None:
    answer = bob.post(ADDRESS, b"a: b", content_type="application/yaml")
    assert (answer.status_code, answer.json()["reason"]) == (415, "UnsupportedMediaType")


@given(st.binary(max_size=60))
def test_any_bytes_are_a_message_or_a_mistake(data: bytes) -> None:
    try:
        found = ProtobufParser().parse(BytesIO(b"k8s\x00" + data))
    except (ParseError, UnsupportedMediaType):
        return
    assert found["kind"]
