"""Writes OpenAPI v2 in the protobuf of gnostic, which Argo CD and older clients of Kubernetes read instead of JSON."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import Any, Final

import orjson

from kinds.openapi import Schema
from kueueweb.wire import definitions

MEDIA_TYPE: Final = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
"""The name by which clients ask for it."""
CONTENT_TYPE: Final = MEDIA_TYPE.replace("@", ".")
"""The name in answers: clients refuse a media type with an @."""
_BYTES: Final = 2
_MORE: Final = 0x80


@cache
def swagger_in_protobuf() -> bytes:
    """Return the document. It changes only with kueueweb itself."""
    document = definitions.swagger()
    information = _text(1, document["info"]["title"]) + _text(2, document["info"]["version"])
    return (
        _text(1, document["swagger"])
        + _field(2, information)
        + _field(8, b"")
        + _field(9, _named(document["definitions"].items(), _schema))
    )


def _schema(schema: Schema) -> bytes:
    """Return a schema with the fields that occur in our documents."""
    parts = [_text(number, schema[word]) for word, number in _TEXTS.items() if word in schema]
    parts += [_field(5, _any(schema["default"]))] if "default" in schema else []
    parts += [_text(19, name) for name in schema.get("required", ())]
    parts += [_field(20, _any(value)) for value in schema.get("enum", ())]
    if isinstance(schema.get("additionalProperties"), Mapping):
        parts.append(_field(21, _field(1, _schema(schema["additionalProperties"]))))
    parts += [_field(22, _text(1, schema["type"]))] if "type" in schema else []
    parts += [_field(23, _field(1, _schema(schema["items"])))] if "items" in schema else []
    parts += [_field(24, _schema(each)) for each in schema.get("allOf", ())]
    if "properties" in schema:
        parts.append(_field(25, _named(schema["properties"].items(), _schema)))
    parts += [_field(31, _text(1, key) + _field(2, _any(schema[key]))) for key in schema if key.startswith("x-")]
    return b"".join(parts)


_TEXTS: Final[Mapping[str, int]] = {"$ref": 1, "format": 2, "title": 3, "description": 4, "pattern": 13}


def _named(items: Iterable[tuple[str, Any]], write: Callable[[Any], bytes]) -> bytes:
    """Return values with their names."""
    return b"".join(_field(1, _text(1, name) + _field(2, write(value))) for name, value in items)


def _any(value: Any) -> bytes:
    """Return a value as YAML, which JSON is."""
    return _field(2, orjson.dumps(value))


def _text(number: int, text: str) -> bytes:
    return _field(number, text.encode())


def _field(number: int, content: bytes) -> bytes:
    return _varint(number << 3 | _BYTES) + _varint(len(content)) + content


def _varint(value: int) -> bytes:
    found = bytearray()
    while value >= _MORE:
        found.append(value & (_MORE - 1) | _MORE)
        value >>= 7
    found.append(value)
    return bytes(found)
