"""JSON Patch (RFC 6902), the form of a mutating webhook's answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from clusters.jobs.framework.manifest import JsonObject


def json_patch(before: Mapping[str, Any], after: Mapping[str, Any], path: str = "") -> list[JsonObject]:
    """Return the operations that turn one object into the other. A list that differs is replaced as a whole, and an
    empty value is not added."""
    operations: list[JsonObject] = [{"op": "remove", "path": _at(path, key)} for key in before if key not in after]
    for key, value in after.items():
        place = _at(path, key)
        if key not in before:
            if not _is_empty(value):
                operations.append({"op": "add", "path": place, "value": value})
        elif isinstance(before[key], Mapping) and isinstance(value, Mapping):
            operations += json_patch(before[key], value, place)
        elif before[key] != value:
            operations.append({"op": "replace", "path": place, "value": value})
    return operations


def _at(path: str, key: str) -> str:
    return f"{path}/{key.replace('~', '~0').replace('/', '~1')}"


def _is_empty(value: Any) -> bool:
    """Return whether a value is empty: rules create the mappings that they look into."""
    if isinstance(value, Mapping):
        return all(_is_empty(item) for item in value.values())
    return value is None or value == []
