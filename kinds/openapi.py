"""OpenAPI of a kind's manifests, from its declaration: the fields that `kubectl explain` and `kueueweb explain` show.

A schema here is a JSON object of OpenAPI 3.0, as CustomResourceDefinitions have it: nested, without references.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from kinds.declaration import Field, Kind

Schema = dict[str, Any]

_METADATA: Final = "Kubernetes' metadata of the object: name, namespace, labels and annotations."
_API_VERSION: Final = "The group and version of this document."
_KIND: Final = "The kind of the object."
_SPEC: Final = "The desired state of the object."
_STATUS: Final = "The state of the object, which kueueweb writes."


def text(description: str = "", **more: Any) -> Schema:
    """Return the schema of a string."""
    return _described(description, {"type": "string", **more})


def integer(description: str = "", **more: Any) -> Schema:
    """Return the schema of a whole number of 32 bits."""
    return _described(description, {"type": "integer", "format": "int32", **more})


def quantity(description: str = "") -> Schema:
    """Return the schema of a Kubernetes quantity: a number, or text such as 500m and 10Gi."""
    return _described(
        description, {"anyOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": True}
    )


def mapping(values: Schema, description: str = "") -> Schema:
    """Return the schema of an object whose keys the author chooses."""
    return _described(description, {"type": "object", "additionalProperties": values})


def listing(items: Schema, description: str = "") -> Schema:
    """Return the schema of a list."""
    return _described(description, {"type": "array", "items": items})


def tree(properties: dict[str, Schema], required: tuple[str, ...] = (), description: str = "") -> Schema:
    """Return the schema of an object with these fields."""
    found: Schema = {"type": "object", "properties": properties}
    return _described(description, {**found, "required": list(required)} if required else found)


def anything(description: str = "") -> Schema:
    """Return the schema of an object whose fields are not described."""
    return _described(description, {"type": "object", "x-kubernetes-preserve-unknown-fields": True})


def manifest_schema(kind: Kind, version: str) -> Schema:
    """Return the schema of the kind's manifests in a version such as `v1beta2`."""
    root = tree(
        {
            "apiVersion": text(_API_VERSION),
            "kind": text(_KIND),
            "metadata": tree(
                {
                    "name": text("The name of the object, unique among the objects of its kind."),
                    **({"namespace": text("The namespace of the object.")} if kind.namespaced else {}),
                    "labels": mapping(text(), "Labels, by which selectors choose objects."),
                    "annotations": _annotations(kind),
                },
                ("name",),
                _METADATA,
            ),
        },
        description=kind.description,
    )
    for found in kind.stored:
        place = found.older.get(version) if version in found.older else None
        path = place.path if place else "" if version in found.older else found.path
        if path:
            type_ = (place.type if place else None) or found.type
            _put(kind, root, found, path, _described(found.help, type_.schema()))
            for key, schema in type_.beside(version).items():
                _put(kind, root, found, ".".join((*path.split(".")[:-1], key)), schema)
    root["properties"]["status"] = anything(_STATUS)
    return root


def _annotations(kind: Kind) -> Schema:
    stated = {found.annotation: text(found.help) for found in kind.stored if found.annotation}
    return _described(
        "Annotations. Those below are fields of kueueweb that Kueue does not have." if stated else "Annotations.",
        {"type": "object", "additionalProperties": {"type": "string"}, **({"properties": stated} if stated else {})},
    )


def _put(kind: Kind, root: Schema, found: Field, path: str, schema: Schema) -> None:
    *outer, last = path.split(".")
    at = root
    for depth, key in enumerate(outer, 1):
        said = kind.parts.get(".".join(outer[:depth])) or _description(kind, found, len(outer) - depth)
        described = _described(said or (_SPEC if key == "spec" else ""), tree({}))
        at = at["properties"].setdefault(key, described)
    at["properties"][last] = schema
    if found.required:
        at["required"] = [*at.get("required", ()), last]


def _description(kind: Kind, found: Field, inner: int) -> str:
    """Return the description of the group of our JSON that is this many levels above the field's own."""
    groups = found.json_path.split(".")[:-1] if found.json is not None else []
    path = ".".join(groups[: len(groups) - inner])
    return kind.groups[path].description if path in kind.groups else ""


def _described(description: str, schema: Schema) -> Schema:
    return {"description": description, **schema} if description else schema
