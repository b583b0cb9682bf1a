"""Reads the few messages that kubectl sends in Kubernetes' protobuf and never as JSON: its questions about rights."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import IO, Any, Final

from rest_framework.exceptions import ParseError

from kueueweb.api.content import BodyParser

_MAGIC: Final = b"k8s\x00"
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_MAX_SHIFT: Final = 63

Message = Mapping[int, tuple[str, "Message | None"]]
"""Number of a field -> its name, and the message in it; None for a text. Other fields are skipped."""

_ATTRIBUTES: Final[Message] = {
    1: ("namespace", None), 2: ("verb", None), 3: ("group", None), 5: ("resource", None), 6: ("subresource", None),
    7: ("name", None),
}  # fmt: skip
_PATH: Final[Message] = {1: ("path", None), 2: ("verb", None)}
_MESSAGES: Final[Mapping[str, Message]] = {
    "SelfSubjectAccessReview": {
        2: ("spec", {1: ("resourceAttributes", _ATTRIBUTES), 2: ("nonResourceAttributes", _PATH)})
    },
    "SelfSubjectRulesReview": {2: ("spec", {1: ("namespace", None)})},
    "SelfSubjectReview": {},
}
_ENVELOPE: Final[Message] = {1: ("typeMeta", {1: ("apiVersion", None), 2: ("kind", None)})}
_RAW: Final = 2


class ReviewParser(BodyParser):
    """A review in protobuf as the object that it would be in JSON."""

    media_type = "application/vnd.kubernetes.protobuf"

    def parse(
        self, stream: IO[bytes], media_type: str | None = None, parser_context: Mapping[str, Any] | None = None
    ) -> Any:
        """Read the object. Raises ParseError for other data."""
        body = super().parse(stream, media_type, parser_context)
        if not body.startswith(_MAGIC):
            raise ParseError("The body is not Kubernetes protobuf.")
        try:
            meta = _read(body[len(_MAGIC) :], _ENVELOPE).get("typeMeta", {})
            raw = next((value for number, value in _fields(body[len(_MAGIC) :]) if number == _RAW), b"")
            if meta.get("kind") not in _MESSAGES:
                raise ParseError(f"{meta.get('kind')}: Unsupported value: send it as JSON")
            return {**meta, **_read(raw, _MESSAGES[meta["kind"]])}
        except (IndexError, ValueError) as mistake:
            raise ParseError(f"The body is not Kubernetes protobuf: {mistake}") from None


def _read(data: bytes, message: Message) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for number, value in _fields(data):
        if number in message:
            name, inner = message[number]
            found[name] = value.decode() if inner is None else _read(value, inner)
    return found


def _fields(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield the fields that hold bytes; numbers are passed by. Raises IndexError and ValueError."""
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        number, kind = key >> 3, key & 7
        if kind == _VARINT:
            _, at = _varint(data, at)
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
            return value, at
        if shift > _MAX_SHIFT:
            raise ValueError("a number is too long")
