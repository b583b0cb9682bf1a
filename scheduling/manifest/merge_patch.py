"""JSON merge patch (RFC 7386)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def merge_patch(target: Any, patch: Any) -> Any:
    """Merge a patch into the target: maps are merged, nulls remove keys, and all other values (lists included) are
    replaced. Neither argument is changed."""
    if not isinstance(patch, Mapping):
        return patch
    result = dict(target) if isinstance(target, Mapping) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merge_patch(result.get(key), value)
    return result


def difference(target: Mapping[str, Any], wanted: Mapping[str, Any]) -> dict[str, Any]:
    """Return the merge patch that turns the target into the wanted object; empty if they are equal."""
    patch: dict[str, Any] = {key: None for key in target if key not in wanted}
    for key, value in wanted.items():
        there = target.get(key)
        if isinstance(there, Mapping) and isinstance(value, Mapping):
            inner = difference(there, value)
            if inner:
                patch[key] = inner
        elif there != value:
            patch[key] = value
    return patch
