"""The OpenAPI of served kinds: every field is described, and every field that manifests use is among them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from rest_framework.test import APIClient

from kinds.openapi import manifest_schema
from queues.kinds import KINDS

ROOT = Path(__file__).resolve().parents[3]
VERSIONS = [(name, version) for name, kind in KINDS.items() for version in kind.versions]


def undescribed(schema: Mapping[str, Any], path: str) -> Iterator[str]:
    if schema.get("type") == "array":
        yield from undescribed(schema["items"], f"{path}[]")
    for name, field in schema.get("properties", {}).items():
        if not field.get("description"):
            yield f"{path}.{name}"
        yield from undescribed(field, f"{path}.{name}")


def unknown(value: Any, schema: Mapping[str, Any], path: str) -> Iterator[str]:
    if schema.get("type") == "array":
        for item in value:
            yield from unknown(item, schema["items"], f"{path}[]")
    elif isinstance(value, dict) and not schema.get("x-kubernetes-preserve-unknown-fields"):
        for name, inner in value.items():
            if name in schema.get("properties", {}):
                yield from unknown(inner, schema["properties"][name], f"{path}.{name}")
            elif "additionalProperties" not in schema:
                yield f"{path}.{name}"


@pytest.mark.parametrize(("name", "version"), VERSIONS)
def test_every_field_of_every_version_is_described(name: str, version: str) -> None:
    schema = manifest_schema(KINDS[name], version.rpartition("/")[2])
    assert schema["description"]
    assert list(undescribed(schema, name)) == []


def test_every_declared_field_has_a_help_text() -> None:
    """Fields that no manifest has are in REST's schema and the admin's forms alone."""
    assert [f"{kind.name}.{field.name}" for kind in KINDS.values() for field in kind.fields if not field.help] == []


def test_the_fields_of_our_manifests_are_among_those_described() -> None:
    tried = set()
    for file in [*(ROOT / "docs").rglob("*.yaml"), *(ROOT / "tests").rglob("*.yaml")]:
        for document in yaml.safe_load_all(file.read_text()):
            kind = KINDS.get(document.get("kind", "")) if isinstance(document, dict) else None
            if kind is None or document["apiVersion"] not in kind.versions:
                continue
            tried.add(kind.name)
            schema = manifest_schema(kind, document["apiVersion"].rpartition("/")[2])
            assert list(unknown(document, schema, f"{file.name}: {kind.name}")) == []
    assert {"ClusterQueue", "ResourceFlavor", "LocalQueue"} <= tried


def test_kubectl_finds_a_kind_by_its_address(alice: APIClient) -> None:
    index = alice.get("/openapi/v3").json()["paths"]
    address = index["apis/kueue.x-k8s.io/v1beta2"]["serverRelativeURL"]
    document = alice.get(address).json()
    names = {"group": "kueue.x-k8s.io", "version": "v1beta2", "kind": "ClusterQueue"}
    assert (
        document["paths"]["/apis/kueue.x-k8s.io/v1beta2/clusterqueues/{name}"]["patch"][
            "x-kubernetes-group-version-kind"
        ]
        == names
    )
    [schema] = [
        found
        for found in document["components"]["schemas"].values()
        if found["x-kubernetes-group-version-kind"] == [names]
    ]
    preemption = schema["properties"]["spec"]["properties"]["preemption"]["properties"]
    assert preemption["withinClusterQueue"]["enum"] == ["Never", "LowerPriority", "LowerOrNewerEqualPriority"]
