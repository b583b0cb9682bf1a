"""CustomResourceDefinitions and OpenAPI v2: each served kind with its fields, as Terraform's provider reads them."""

from __future__ import annotations

from typing import Any

import pytest
from rest_framework.test import APIClient

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
    protobuf = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
    assert alice.get("/openapi/v2", headers={"Accept": protobuf}).status_code == 406
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
