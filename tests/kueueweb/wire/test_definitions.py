"""CustomResourceDefinitions and OpenAPI v2: each served kind with its fields, as Terraform's provider reads them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import orjson
import pytest
from rest_framework.test import APIClient

from kueueweb.wire.encodings.swagger_protobuf import CONTENT_TYPE, MEDIA_TYPE
from kueueweb.wire.resources import RESOURCES

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
META = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"


def definition(alice: APIClient, name: str) -> Any:
    answer = alice.get(f"{CRDS}/{name}")
    assert answer.status_code == 200, answer.content
    return answer.json()


def test_each_kind_that_a_cluster_would_define(alice: APIClient) -> None:
    body = alice.get(CRDS).json()
    assert body["kind"] == "CustomResourceDefinitionList"
    names = [item["metadata"]["name"] for item in body["items"]]
    assert names == sorted(each.qualified for each in RESOURCES if each.group not in ("", "batch"))
    assert "clusterqueues.kueue.x-k8s.io" in names
    assert alice.get(f"{CRDS}/jobs.batch").status_code == 404


def test_a_definition_has_names_versions_and_fields(alice: APIClient) -> None:
    found = definition(alice, "clusterqueues.kueue.x-k8s.io")
    assert found["spec"]["names"]["shortNames"] == ["cq"]
    assert found["spec"]["scope"] == "Cluster"
    newer, older = found["spec"]["versions"]
    assert [(newer["name"], newer["storage"]), (older["name"], older["storage"])] == [
        ("v1beta2", True), ("v1beta1", False),
    ]  # fmt: skip
    assert "cohortName" in newer["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
    assert "cohort" in older["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
    assert definition(alice, "localqueues.kueue.x-k8s.io")["spec"]["scope"] == "Namespaced"


def test_a_list_is_of_the_asked_name_and_cannot_be_watched(alice: APIClient) -> None:
    [one] = alice.get(CRDS, {"fieldSelector": "metadata.name=workloads.kueue.x-k8s.io"}).json()["items"]
    assert one["spec"]["names"]["kind"] == "Workload"
    assert alice.get(CRDS, {"fieldSelector": "metadata.name=nothing"}).json()["items"] == []
    for query, code in (
        ({"fieldSelector": "spec.group=x"}, 400),
        ({"labelSelector": "a=b"}, 400),
        ({"watch": "1"}, 405),
    ):
        assert alice.get(CRDS, query).status_code == code, query


def test_openapi_v2_is_json_without_choices(alice: APIClient) -> None:
    assert alice.get("/openapi/v2", headers={"Accept": "application/xml"}).status_code == 406
    assert b"anyOf" not in alice.get("/openapi/v2").content


def test_openapi_v2_names_each_kind_once(alice: APIClient) -> None:
    body = alice.get("/openapi/v2").json()
    kinds = [
        (kind["group"], kind["version"], kind["kind"])
        for schema in body["definitions"].values()
        for kind in schema.get("x-kubernetes-group-version-kind", ())
    ]
    assert sorted(kinds) == sorted((each.group, version, each.kind) for each in RESOURCES for version in each.versions)
    queue = body["definitions"]["kueue.x-k8s.io.v1beta2.ClusterQueue"]
    assert queue["properties"]["metadata"] == {"$ref": f"#/definitions/{META}"}
    assert {"name", "labels", "managedFields"} <= body["definitions"][META]["properties"].keys()


@pytest.mark.parametrize("path", [CRDS, f"{CRDS}/clusterqueues.kueue.x-k8s.io", "/openapi/v2"])
def test_the_addresses_are_those_of_each_cluster(alice: APIClient, path: str) -> None:
    assert alice.get(f"/kubernetes/default{path}").status_code == 200
    assert alice.get(f"/kubernetes/nosuch{path}").status_code == 404


def test_openapi_v2_has_the_fields_of_jobs(alice: APIClient) -> None:
    """Without them, Terraform's provider takes the selector that the server adds for a mistake."""
    found = alice.get("/openapi/v2").json()["definitions"]
    job = found["batch.v1.Job"]["properties"]
    assert job["metadata"] == {"$ref": f"#/definitions/{META}"}
    spec = found[job["spec"]["$ref"].removeprefix("#/definitions/")]["properties"]
    assert (spec["parallelism"], spec["suspend"]) == ({"type": "integer"}, {"type": "boolean"})
    template = found[spec["template"]["$ref"].removeprefix("#/definitions/")]["properties"]
    pods = found[template["spec"]["$ref"].removeprefix("#/definitions/")]["properties"]
    assert pods["nodeSelector"] == {"type": "object", "additionalProperties": {"type": "string"}}
    assert "emptyDir" in found[pods["volumes"]["items"]["$ref"].removeprefix("#/definitions/")]["properties"]


def fields(data: bytes) -> Iterator[tuple[int, bytes]]:
    """The fields of a message in protobuf, all of which are bytes."""
    at = 0

    def number() -> int:
        nonlocal at
        found = shift = 0
        while True:
            found |= (data[at] & 127) << shift
            at, shift = at + 1, shift + 7
            if data[at - 1] < 128:
                return found

    while at < len(data):
        key, length = number(), number()
        assert key & 7 == 2
        yield key >> 3, data[at : at + length]
        at += length


def one(data: bytes, wanted: int) -> bytes:
    return next((content for number, content in fields(data) if number == wanted), b"")


def named(data: bytes) -> dict[str, bytes]:
    return {one(each, 1).decode(): one(each, 2) for _, each in fields(data)}


def any_in(data: bytes) -> Any:
    return orjson.loads(one(data, 2))


def shape(schema: bytes) -> Any:
    """The part of a schema in protobuf that clients use, as JSON has it."""
    found: dict[str, Any] = {}
    for number, content in fields(schema):
        if number in MANY:
            word, read = MANY[number]
            found.setdefault(word, []).append(read(content))
        elif number == 31:
            found[one(content, 1).decode()] = any_in(one(content, 2))
        else:
            word, read = ONE[number]
            found[word] = read(content)
    return found


Read = Callable[[bytes], Any]
ONE: Mapping[int, tuple[str, Read]] = {
    **{number: (word, bytes.decode) for number, word in enumerate(("$ref", "format", "title", "description"), 1)},
    5: ("default", any_in),
    13: ("pattern", bytes.decode),
    21: ("additionalProperties", lambda content: shape(one(content, 1))),
    22: ("type", lambda content: one(content, 1).decode()),
    23: ("items", lambda content: shape(one(content, 1))),
    25: ("properties", lambda content: {name: shape(each) for name, each in named(content).items()}),
}
MANY: Mapping[int, tuple[str, Read]] = {19: ("required", bytes.decode), 20: ("enum", any_in), 24: ("allOf", shape)}


def without_bounds(schema: Any) -> Any:
    """The schema without bounds of numbers and lengths, which no client of OpenAPI v2 reads."""
    if isinstance(schema, list):
        return [without_bounds(each) for each in schema]
    if not isinstance(schema, Mapping):
        return schema
    bounds = {"minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"}
    return {key: without_bounds(value) for key, value in schema.items() if key not in bounds}


def test_openapi_v2_in_protobuf_is_that_of_json(alice: APIClient) -> None:
    answer = alice.get("/openapi/v2", headers={"Accept": MEDIA_TYPE})
    assert (answer.status_code, answer.headers["Content-Type"]) == (200, CONTENT_TYPE)
    assert one(answer.content, 1) == b"2.0"
    found = {name: shape(each) for name, each in named(one(answer.content, 9)).items()}
    assert found == without_bounds(alice.get("/openapi/v2").json()["definitions"])
