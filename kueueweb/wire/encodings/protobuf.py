"""Reads bodies in Kubernetes' protobuf as the objects that they would be in JSON. Typed Go clients send the built-in
kinds so, and do not try JSON after a refusal. Answers are JSON, which all of them read.

`scripts/protobuf_messages.py` writes the table of messages, and says how.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import IO, Any, Final

import orjson
from rest_framework.exceptions import ParseError, UnsupportedMediaType

from kueueweb.api.content import BodyParser

_MAGIC: Final = b"k8s\x00"
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_MAX_SHIFT: Final = 63
_SIGN: Final = 2**63
_64_BITS: Final = 2**64 - 1
_TABLE: Final = Path(__file__).with_name("protobuf_messages.json")
_KEY, _VALUE = 1, 2
_LIST, _MAP = "[]", "map:"

Wire = int | bytes


@dataclass(frozen=True, slots=True)
class _Field:
    """A field of a message. An empty name: its fields are those of the object itself."""

    name: str
    kind: str
    is_kept: bool
    """Whether it is in JSON although it is empty."""


class ProtobufParser(BodyParser):
    """A body in protobuf as the object that it would be in JSON."""

    media_type = "application/vnd.kubernetes.protobuf"

    def parse(
        self, stream: IO[bytes], media_type: str | None = None, parser_context: Mapping[str, Any] | None = None
    ) -> Any:
        """Read the object. Raises ParseError for other data, and UnsupportedMediaType for kinds that are read only as
        JSON."""
        body = super().parse(stream, media_type, parser_context)
        if not body.startswith(_MAGIC):
            raise ParseError("The body is not Kubernetes protobuf.")
        try:
            return _object(body[len(_MAGIC) :])
        except (IndexError, ValueError, OverflowError, OSError) as mistake:
            raise ParseError(f"The body is not Kubernetes protobuf: {mistake}") from None


def _object(data: bytes) -> dict[str, Any]:
    """Return the object in an envelope, which names its kind."""
    envelope = dict(_fields(data))
    meta = {number: _text(value) for number, value in _fields(_bytes(envelope.get(1, b"")))}
    kind = meta.get(2, "")
    if kind not in _table()["roots"]:
        read = ", ".join(_table()["roots"])
        detail = f"{kind}: Unsupported value: protobuf is read for {read}; send it as application/json"
        raise UnsupportedMediaType(ProtobufParser.media_type, detail)
    return {"apiVersion": meta.get(1, ""), "kind": kind, **_message(_bytes(envelope.get(2, b"")), kind)}


@cache
def _table() -> Mapping[str, Any]:
    found: dict[str, Any] = orjson.loads(_TABLE.read_bytes())
    return found


def schemas(kind: str, place: str) -> dict[str, dict[str, Any]]:
    """Return the OpenAPI schemas of the messages of which a kind is made, by the place and their names, so that clients
    know the types of its fields. They refer to each other."""
    found: dict[str, dict[str, Any]] = {}
    wanted = [kind]
    while wanted:
        name = wanted.pop()
        if f"{place}{name}" in found:
            continue
        properties: dict[str, Any] = {}
        for field in _plain_fields(name):
            inner = field.kind.removeprefix(_LIST).removeprefix(_MAP)
            schema = _SCHEMAS.get(inner)
            if schema is None:
                wanted.append(inner)
                schema = {"$ref": f"#/definitions/{place}{inner}"}
            if field.kind.startswith(_LIST):
                schema = {"type": "array", "items": schema}
            elif field.kind.startswith(_MAP):
                schema = {"type": "object", "additionalProperties": schema}
            properties[field.name] = schema
        found[f"{place}{name}"] = {"type": "object", "properties": properties}
    return found


def _plain_fields(name: str) -> Iterator[_Field]:
    """Yield the fields of a message, and of the messages that are written into it."""
    for field in _messages()[name].values():
        if field.name:
            yield field
        else:
            yield from _plain_fields(field.kind)


_SCHEMAS: Final[Mapping[str, dict[str, Any]]] = {
    "string": {"type": "string"},
    "int": {"type": "integer"},
    "bool": {"type": "boolean"},
    "raw": {"type": "string", "format": "byte"},
    "FieldsV1": {"type": "object"},
    "IntOrString": {"type": "string", "format": "int-or-string"},
    "MicroTime": {"type": "string", "format": "date-time"},
    "Quantity": {"type": "string"},
    "Time": {"type": "string", "format": "date-time"},
}


@cache
def _messages() -> Mapping[str, Mapping[int, _Field]]:
    """Return the fields of each message by their numbers."""
    return {
        name: {int(number): _field(text) for number, text in fields.items()}
        for name, fields in _table()["messages"].items()
    }


def _field(text: str) -> _Field:
    name, _, kind = text.partition(" ")
    return _Field(name, kind.removeprefix("*"), kind.startswith("*"))


def _message(data: bytes, name: str) -> dict[str, Any]:
    """Return the fields of a message. Unknown ones are passed by, as in Kubernetes."""
    found: dict[str, Any] = {}
    for number, value in _fields(data):
        field = _messages()[name].get(number)
        if field is None:
            continue
        if field.kind.startswith(_LIST):
            found.setdefault(field.name, []).extend(_items(value, field.kind.removeprefix(_LIST)))
        elif field.kind.startswith(_MAP):
            entry = dict(_fields(_bytes(value)))
            inner = field.kind.removeprefix(_MAP)
            found.setdefault(field.name, {})[_text(entry.get(_KEY, b""))] = _value(entry.get(_VALUE, b""), inner)
        elif not field.name:
            found |= _message(_bytes(value), field.kind)
        else:
            read = _value(value, field.kind)
            if field.is_kept or not _is_empty(read):
                found[field.name] = read
    return found


def _is_empty(value: Any) -> bool:
    """Return whether JSON leaves a value out. Objects stay, as Go writes them."""
    return value is None or (not value and not isinstance(value, dict))


def _items(value: Wire, kind: str) -> list[Any]:
    """Return the items of a list in a field: one, or numbers that are packed."""
    if kind != "int" or isinstance(value, int):
        return [_value(value, kind)]
    found, at = [], 0
    while at < len(value):
        number, at = _varint(value, at)
        found.append(_value(number, kind))
    return found


def _value(value: Wire, kind: str) -> Any:
    read = _KINDS.get(kind)
    return _message(_bytes(value), kind) if read is None else read(value)


def _bytes(value: Wire) -> bytes:
    if isinstance(value, int):
        raise ValueError("a number stands in place of a text or an object")
    return value


def _text(value: Wire) -> str:
    text = _bytes(value).decode()
    if "\0" in text:
        raise ValueError("a text contains a NUL character")
    return text


def _number(value: Wire) -> int:
    if not isinstance(value, int):
        raise ValueError("a text or an object stands in place of a number")
    return value - 2 * _SIGN if value >= _SIGN else value


def _quantity(value: Wire) -> str:
    return _text(dict(_fields(_bytes(value))).get(1, b"0"))


def _integer_or_text(value: Wire) -> int | str:
    parts = dict(_fields(_bytes(value)))
    return _text(parts.get(3, b"")) if _number(parts.get(1, 0)) else _number(parts.get(2, 0))


def _time(value: Wire) -> str | None:
    """Return the time in RFC 3339, to the second as Kubernetes writes it; None for the zero time."""
    parts = dict(_fields(_bytes(value)))
    if not parts:
        return None
    return datetime.fromtimestamp(_number(parts.get(1, 0)), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


_KINDS: Final[Mapping[str, Callable[[Wire], Any]]] = {
    "string": _text,
    "int": _number,
    "bool": lambda value: bool(_number(value)),
    "raw": lambda value: base64.b64encode(_bytes(value)).decode(),
    "FieldsV1": lambda value: orjson.loads(_bytes(dict(_fields(_bytes(value))).get(1, b"null"))),
    "IntOrString": _integer_or_text,
    "MicroTime": _time,
    "Quantity": _quantity,
    "Time": _time,
}


def _fields(data: bytes) -> Iterator[tuple[int, Wire]]:
    """Yield the numbers of the fields, and their values. Raises IndexError and ValueError."""
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        number, kind = key >> 3, key & 7
        if kind == _VARINT:
            value, at = _varint(data, at)
            yield number, value
        elif kind == _BYTES:
            length, at = _varint(data, at)
            if at + length > len(data):
                raise ValueError("it is truncated")
            yield number, data[at : at + length]
            at += length
        elif kind in (_FIXED64, _FIXED32):
            at += 8 if kind == _FIXED64 else 4
        else:
            raise ValueError(f"wire type {kind} is unknown")


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value, shift = 0, 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if not byte & 0x80:
            return value & _64_BITS, at  # ten bytes have 70 bits; Go drops the rest, and JSON has no place for them
        if shift > _MAX_SHIFT:
            raise ValueError("a number is too long")
