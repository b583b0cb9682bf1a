"""Numbers, booleans and JSON in annotations, read as Go's standard library reads them.

Annotations are text that Kubernetes' own components parse: a value that one of them refuses must be refused here too.
"""

from __future__ import annotations

import json
import re
from typing import Any, Final

_INTEGER: Final = re.compile(r"[+-]?[0-9]+", re.ASCII)
_UNSIGNED: Final = re.compile(r"[0-9]+", re.ASCII)
_TRUE: Final = frozenset({"1", "t", "T", "TRUE", "true", "True"})
_FALSE: Final = frozenset({"0", "f", "F", "FALSE", "false", "False"})


class BadSyntax(ValueError):
    """The text is not a valid value; the message is that of Go's strconv."""

    def __init__(self, function: str, text: str, problem: str) -> None:
        super().__init__(f"strconv.{function}: parsing {json.dumps(text, ensure_ascii=False)}: {problem}")


def parse_integer(text: str, *, bits: int = 64, function: str = "Atoi") -> int:
    """Parse a decimal number that fits into this many bits. Raises `BadSyntax`."""
    if not _INTEGER.fullmatch(text):
        raise BadSyntax(function, text, "invalid syntax")
    value = int(text)
    if not -(2 ** (bits - 1)) <= value < 2 ** (bits - 1):
        raise BadSyntax(function, text, "value out of range")
    return value


def parse_int32(text: str) -> int:
    return parse_integer(text, bits=32, function="ParseInt")


def is_unsigned(text: str) -> bool:
    """Return whether the text is an unsigned 64-bit number."""
    return bool(_UNSIGNED.fullmatch(text)) and int(text) < 2**64


def parse_boolean(text: str) -> bool:
    """Raises `BadSyntax`."""
    if text in _TRUE:
        return True
    if text in _FALSE:
        return False
    raise BadSyntax("ParseBool", text, "invalid syntax")


def to_int32(value: int) -> int:
    """Convert to 32 bits as Go does, by dropping the upper bits."""
    return (value + 2**31) % 2**32 - 2**31


def parse_json(text: str) -> Any:
    """Parse JSON. Raises ValueError, also for numbers that Python accepts but JSON does not."""

    def refuse(word: str) -> Any:
        raise ValueError(f"{word} is not JSON")

    return json.loads(text, parse_constant=refuse)
