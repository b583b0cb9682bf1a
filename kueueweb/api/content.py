"""How bodies are read and answers are written: orjson, with a size limit."""

from collections.abc import Mapping
from typing import IO, Any, Final

import orjson
from django.conf import settings
from rest_framework.exceptions import ParseError
from rest_framework.parsers import BaseParser
from rest_framework.renderers import BaseRenderer

from kueueweb.api.exceptions import TooLarge

_MAX_DEPTH: Final = 128
_MAX_WRITTEN_DEPTH: Final = 254
"""The depth that orjson can write."""


class JSONRenderer(BaseRenderer):
    """JSON in orjson's format: times as RFC 3339 in UTC with Z."""

    media_type = "application/json"
    format = "json"
    charset = None
    render_style = "binary"

    def render(
        self, data: Any, accepted_media_type: str | None = None, renderer_context: Mapping[str, Any] | None = None
    ) -> bytes:
        """Return the bytes of the answer; none for an answer without content."""
        if data is None:
            return b""
        return orjson.dumps(data, default=str, option=orjson.OPT_UTC_Z | orjson.OPT_NON_STR_KEYS)


class BodyParser(BaseParser):
    """Hands over the body's bytes, for views that read them themselves."""

    def parse(
        self, stream: IO[bytes], media_type: str | None = None, parser_context: Mapping[str, Any] | None = None
    ) -> Any:
        """Return the bytes. Raises `TooLarge` above the setting MAXIMUM_BODY_BYTES."""
        max_bytes: int = settings.MAXIMUM_BODY_BYTES
        body = stream.read(max_bytes + 1)
        if len(body) > max_bytes:
            raise TooLarge(f"The body has more than {max_bytes / 2**20:g} MiB; send it in several requests.")
        return body


class JSONParser(BodyParser):
    """JSON as orjson reads it."""

    media_type = "application/json"

    def parse(
        self, stream: IO[bytes], media_type: str | None = None, parser_context: Mapping[str, Any] | None = None
    ) -> Any:
        """Return the value. Raises ParseError with the place of the mistake."""
        body = super().parse(stream, media_type, parser_context)
        if b"\\u0000" in body:
            raise ParseError("The body contains a NUL character, which is not allowed.")
        try:
            value = orjson.loads(body)
        except orjson.JSONDecodeError as error:
            raise ParseError(f"The body is not JSON: {error}") from None
        if body.count(b"{") + body.count(b"[") > _MAX_DEPTH and _is_too_deep(value):
            raise ParseError(f"The body is nested more than {_MAX_DEPTH} levels deep.")
        return value


def _is_too_deep(value: Any) -> bool:
    """Return whether the value would be deeper than can be written where we store it. Encode it with orjson, which
    finds out fastest."""
    for _ in range(_MAX_WRITTEN_DEPTH - _MAX_DEPTH):
        value = [value]
    try:
        orjson.dumps(value)
    except orjson.JSONEncodeError:
        return True
    return False
