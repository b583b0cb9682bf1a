"""The documentation of a kind's fields as text, from the server's OpenAPI, in the form that `kubectl explain` has."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from kueueweb_client.errors import ClientError
from kueueweb_client.types import Object

Schema = Mapping[str, Any]

_WIDTH: Final = 80
_TYPES: Final = {"string": "string", "integer": "integer", "boolean": "boolean", "number": "number"}


@dataclass(frozen=True, slots=True)
class Documented:
    """A kind's schema: its group, version and kind, and the fields of its manifests."""

    group: str
    version: str
    kind: str
    schema: Schema


def find_kind(document: Object, kind: str) -> Documented | None:
    """Return the kind's schema in an OpenAPI document of a group and a version; None if it has no such kind."""
    for schema in document["components"]["schemas"].values():
        for names in schema.get("x-kubernetes-group-version-kind", ()):
            if names["kind"] == kind:
                return Documented(names["group"], names["version"], kind, schema)
    return None


def describe(found: Documented, path: Sequence[str], *, recursive: bool = False) -> Iterator[str]:
    """Yield the lines about the kind, or about the field at a path such as ("spec", "preemption").

    Raises `ClientError` if there is no such field, with the fields that there are.
    """
    yield from ([f"GROUP:      {found.group}"] if found.group else [])
    yield f"KIND:       {found.kind}"
    yield f"VERSION:    {found.version}"
    yield ""
    schema = _at(found, path)
    if path:
        yield f"FIELD: {path[-1]} <{_type(schema)}>"
        yield from _choices(schema, "")
        yield ""
    yield "DESCRIPTION:"
    yield from _paragraph(schema.get("description", "The server does not describe it."))
    yield ""
    fields = _fields(schema)
    if fields:
        yield "FIELDS:"
        yield from _tree(schema, "  ") if recursive else _list(schema)


def _at(found: Documented, path: Sequence[str]) -> Schema:
    schema = found.schema
    for depth, key in enumerate(path):
        fields = _fields(schema)
        if key not in fields:
            where = ".".join((found.kind, *path[:depth]))
            known = f"It has: {', '.join(fields)}." if fields else "It has no described fields."
            raise ClientError(f'field "{key}" does not exist in {where}. {known}')
        schema = fields[key]
    return schema


def _fields(schema: Schema) -> Mapping[str, Schema]:
    found: Mapping[str, Schema] = _inner(schema).get("properties", {})
    return found


def _inner(schema: Schema) -> Schema:
    """Return the schema of the items of lists."""
    while schema.get("type") == "array":
        schema = schema["items"]
    return schema


def _type(schema: Schema) -> str:
    if schema.get("x-kubernetes-int-or-string"):
        return "Quantity"
    if schema["type"] == "array":
        return f"[]{_type(schema['items'])}"
    if "additionalProperties" in schema:
        return f"map[string]{_type(schema['additionalProperties'])}"
    return _TYPES.get(schema["type"], "Object")


def _list(schema: Schema) -> Iterator[str]:
    required = _inner(schema).get("required", ())
    for name, field in _fields(schema).items():
        yield f"  {name}\t<{_type(field)}>{' -required-' if name in required else ''}"
        yield from _choices(field, "    ")
        yield from _paragraph(field.get("description", ""))
        yield ""


def _tree(schema: Schema, indent: str) -> Iterator[str]:
    required = _inner(schema).get("required", ())
    for name, field in _fields(schema).items():
        yield f"{indent}{name}\t<{_type(field)}>{' -required-' if name in required else ''}"
        yield from _tree(field, f"{indent}  ")


def _choices(schema: Schema, indent: str) -> Iterator[str]:
    if "enum" in schema:
        yield f"{indent}enum: {', '.join(schema['enum'])}"
    if "default" in schema:
        yield f"{indent}default: {schema['default']}"


def _paragraph(text: str) -> list[str]:
    indent = " " * 4
    return textwrap.wrap(text, _WIDTH, initial_indent=indent, subsequent_indent=indent, break_on_hyphens=False)
