"""Translates the errors of Django REST framework's field checks into Kubernetes' phrases."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from rest_framework.exceptions import ErrorDetail

from scheduling.manifest import LocatedError
from scheduling.manifest.errors import MistakeReason

_REQUIRED: Final = ("Required value", "Add it.", MistakeReason.REQUIRED)
_NUMBER: Final = ("", "Write a number in this range.", MistakeReason.INVALID)
_LENGTH: Final = ("", "Write a text of this length.", MistakeReason.TOO_LONG)
_PHRASES: Final[Mapping[str, tuple[str, str, MistakeReason]]] = {
    "required": _REQUIRED,
    "null": _REQUIRED,
    "blank": _REQUIRED,
    "empty": _REQUIRED,
    "invalid_choice": ("Unsupported value", "The schema of this field lists the values.", MistakeReason.NOT_SUPPORTED),
    "max_value": _NUMBER,
    "min_value": _NUMBER,
    "max_length": _LENGTH,
    "min_length": _LENGTH,
    "not_a_list": ("must be a list", "Write a list: [a, b].", MistakeReason.WRONG_TYPE),
    "not_a_dict": ("must be a mapping of fields", "Write {name: value}.", MistakeReason.WRONG_TYPE),
    "unique": ("Duplicate value", "Choose another.", MistakeReason.DUPLICATE),
}
"""By the framework's code: the rule (empty: its own words), the remedy, and the stable reason."""


def field_mistakes(detail: Any, sent: Any, path: str = "") -> Iterator[LocatedError]:
    """Return the framework's nested details as located mistakes, each with its value in the body `sent`."""
    if isinstance(detail, Mapping):
        for name, inner in detail.items():
            yield from field_mistakes(inner, _part(sent, name), _beneath(path, name))
    elif isinstance(detail, list):
        for index, inner in enumerate(detail):
            if isinstance(inner, str):
                yield from field_mistakes(inner, sent, path)
            else:
                yield from field_mistakes(inner, _part(sent, index), _beneath(path, index))
    else:
        code = (detail.code if isinstance(detail, ErrorDetail) else "") or ""
        rule, remedy, reason = _PHRASES.get(code, ("", "", MistakeReason.INVALID))
        yield LocatedError(0, path, sent, rule or str(detail), remedy, reason)


def _beneath(path: str, name: str | int) -> str:
    if isinstance(name, int):
        return f"{path}[{name}]"
    return f"{path}.{name}" if path else name


def _part(sent: Any, name: str | int) -> Any:
    if isinstance(name, int):
        return sent[name] if isinstance(sent, list) and name < len(sent) else None
    return sent.get(name) if isinstance(sent, Mapping) else None
