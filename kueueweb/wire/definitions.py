"""CustomResourceDefinitions and OpenAPI v2, from which Terraform's provider takes the types of manifests."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final
from uuid import NAMESPACE_URL, uuid5

from kinds.openapi import Schema, anything, integer, listing, manifest_schema, mapping, text, tree
from kueueweb.wire.encodings.protobuf import schemas
from kueueweb.wire.resources import RESOURCES, JsonObject, Resource
from queues.kinds import KINDS
from queues.models import Job

GROUP: Final = "apiextensions.k8s.io"
VERSION: Final = "v1"
PLURAL: Final = "customresourcedefinitions"
KIND: Final = "CustomResourceDefinition"
VERBS: Final = ("get", "list")
_BUILT_IN: Final = ("", "batch")
"""Groups that no cluster defines by CustomResourceDefinitions."""
_OBJECT_META: Final = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
"""The name of metadata's definition in Kubernetes' OpenAPI, by which clients look for it."""

_PLACE: Final = "io.k8s.api."
"""The beginning of the names of parts of built-in kinds."""


def definitions() -> list[JsonObject]:
    """Return the CustomResourceDefinitions of the served kinds, by name."""
    found = [_definition(resource) for resource in RESOURCES if resource.group not in _BUILT_IN]
    return sorted(found, key=lambda item: str(item["metadata"]["name"]))


def _definition(resource: Resource) -> JsonObject:
    names: JsonObject = {
        "kind": resource.kind,
        "listKind": f"{resource.kind}List",
        "plural": resource.plural,
        "singular": resource.singular,
        **({"shortNames": list(resource.short_names)} if resource.short_names else {}),
    }
    versions = [
        {
            "name": version,
            "served": True,
            "storage": version == resource.versions[0],
            "schema": {"openAPIV3Schema": _fields(resource, version)},
            **({"subresources": {"status": {}}} if resource.has_status else {}),
        }
        for version in resource.versions
    ]
    scope = "Namespaced" if resource.namespaced else "Cluster"
    conditions = [
        {"type": type_, "status": "True", "reason": "Served", "message": "kueueweb serves the kind"}
        for type_ in ("NamesAccepted", "Established")
    ]
    return {
        "apiVersion": f"{GROUP}/{VERSION}",
        "kind": KIND,
        "metadata": {
            "name": resource.qualified,
            "uid": str(uuid5(NAMESPACE_URL, resource.qualified)),
            "resourceVersion": "1",
        },
        "spec": {"group": resource.group, "names": names, "scope": scope, "versions": versions},
        "status": {"acceptedNames": names, "conditions": conditions, "storedVersions": [resource.versions[0]]},
    }


def _fields(resource: Resource, version: str) -> Schema:
    """Return the schema of a kind; metadata is Kubernetes' own, as in each CustomResourceDefinition."""
    kind = KINDS.get(resource.kind)
    if kind is None:
        return anything()
    schema = manifest_schema(kind, version)
    return {**schema, "properties": {**schema["properties"], "metadata": {"type": "object"}}}


def swagger() -> JsonObject:
    """Return the document of OpenAPI v2 (Swagger): the served kinds, without paths, which discovery names."""
    types = {name: _without_choices(schema) for name, schema in _types()}
    return {
        "swagger": "2.0",
        "info": {"title": "kueueweb", "version": VERSION},
        "paths": {},
        "definitions": {_OBJECT_META: _object_meta(), **types},
    }


def _without_choices(schema: Any) -> Any:
    """Return the schema without `anyOf`, which version 2 does not have."""
    if isinstance(schema, list):
        return [_without_choices(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    return {key: _without_choices(value) for key, value in schema.items() if key != "anyOf"}


def _types() -> Iterator[tuple[str, Schema]]:
    for resource in RESOURCES:
        for version in resource.versions:
            schema = _fields(resource, version)
            if resource.model is Job:
                parts = schemas(resource.kind, _PLACE)
                schema = parts.pop(f"{_PLACE}{resource.kind}")
                schema["properties"] |= {"apiVersion": text(), "kind": text()}
                yield from parts.items()
            if "properties" in schema:
                reference = {"$ref": f"#/definitions/{_OBJECT_META}"}
                schema = {**schema, "properties": {**schema["properties"], "metadata": reference}}
            kind = {"group": resource.group, "version": version, "kind": resource.kind}
            name = f"{resource.group or 'core'}.{version}.{resource.kind}"
            yield name, {**schema, "x-kubernetes-group-version-kind": [kind]}


def _object_meta() -> Schema:
    words = ("name", "generateName", "namespace", "uid", "resourceVersion", "selfLink")
    times = ("creationTimestamp", "deletionTimestamp")
    owner: dict[str, Any] = {key: text() for key in ("apiVersion", "kind", "name", "uid")}
    owner |= {key: {"type": "boolean"} for key in ("controller", "blockOwnerDeletion")}
    manager = {key: text() for key in ("apiVersion", "fieldsType", "manager", "operation", "subresource")}
    return tree(
        {
            **{key: text() for key in words},
            **{key: text(format="date-time") for key in times},
            "generation": integer(),
            "deletionGracePeriodSeconds": integer(),
            "labels": mapping(text()),
            "annotations": mapping(text()),
            "finalizers": listing(text()),
            "ownerReferences": listing(tree(owner)),
            "managedFields": listing(
                tree({**manager, "time": text(format="date-time"), "fieldsV1": {"type": "object"}})
            ),
        }
    )
