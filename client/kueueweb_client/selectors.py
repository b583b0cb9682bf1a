"""Selectors in Kubernetes' words, for the lists that the server gives whole."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from kueueweb_client.cells import find
from kueueweb_client.errors import ClientError

Matches = Callable[[Mapping[str, Any]], bool]
"""Whether a manifest is selected."""
_KEY: Final = r"[A-Za-z0-9][-A-Za-z0-9_./]*"
_SET: Final = re.compile(rf"^(?P<key>{_KEY})\s+(?P<operator>in|notin)\s*\((?P<values>[^()]*)\)$")
_EQUAL: Final = re.compile(rf"^(?P<key>{_KEY})\s*(?P<operator>==|!=|=)\s*(?P<value>[-A-Za-z0-9_.]*)$")
_EXISTS: Final = re.compile(rf"^(?P<not>!?)\s*(?P<key>{_KEY})$")
_COMMA: Final = re.compile(r",(?![^()]*\))")


class SelectorError(ClientError):
    """A selector that cannot be read."""


def labels_match(selector: str) -> Matches:
    """Read a label selector: `key`, `!key`, `key=value`, `key!=value`, `key in (a,b)`, `key notin (a,b)`, by commas."""
    tests = [_label(part.strip()) for part in _COMMA.split(selector) if part.strip()]
    return lambda item: all(test(find(item, "metadata.labels") or {}) for test in tests)


def _label(text: str) -> Callable[[Mapping[str, str]], bool]:
    if found := _SET.match(text):
        key, values = found["key"], {value.strip() for value in found["values"].split(",")}
        wanted = found["operator"] == "in"
        return lambda labels: (key in labels and labels[key] in values) if wanted else labels.get(key) not in values
    if found := _EQUAL.match(text):
        key, value, wanted = found["key"], found["value"], found["operator"] != "!="
        return lambda labels: (labels.get(key) == value) is wanted
    if found := _EXISTS.match(text):
        key, wanted = found["key"], not found["not"]
        return lambda labels: (key in labels) is wanted
    raise SelectorError(f'Invalid value: "{text}" is not key, !key, key=value, key!=value or key in (a,b)')


def fields_match(selector: str) -> Matches:
    """Read a field selector: `metadata.name=a`, `spec.value!=b`, by commas."""
    tests = [_field(part.strip()) for part in selector.split(",") if part.strip()]
    return lambda item: all(test(item) for test in tests)


def _field(text: str) -> Matches:
    path, operator, value = next(
        ((path, mark, value) for mark in ("!=", "==", "=") for path, found, value in [text.partition(mark)] if found),
        ("", "", ""),
    )
    if not path:
        raise SelectorError(f'Invalid value: "{text}" is not field=value or field!=value')
    wanted = operator != "!="

    def test(item: Mapping[str, Any]) -> bool:
        found = find(item, path.strip())
        text = str(found).lower() if isinstance(found, bool) else "" if found is None else str(found)
        return (text == value.strip()) is wanted

    return test
