"""JSON Patch (RFC 6902), as the API server applies it."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

from simulation.api.objects import JsonObject


class BadPatch(ValueError):
    """An operation that can't be carried out on the object."""


def apply_json_patch(target: JsonObject, operations: Sequence[JsonObject]) -> JsonObject:
    """Return the object with all operations applied in order. Raises BadPatch; the target is not changed."""
    holder: dict[str, Any] = {"": copy.deepcopy(target)}
    for operation in operations:
        _apply(holder, operation)
    result = holder[""]
    if not isinstance(result, dict):
        raise BadPatch("the result is not an object")
    return result


def _apply(holder: dict[str, Any], operation: JsonObject) -> None:
    name, path = operation.get("op"), _steps(operation, "path")
    match name:
        case "add":
            _put(holder, path, operation.get("value"), insert=True)
        case "replace":
            _value(holder, path)
            _put(holder, path, operation.get("value"), insert=False)
        case "remove":
            _remove(holder, path)
        case "move":
            _put(holder, path, _remove(holder, _steps(operation, "from")), insert=True)
        case "copy":
            _put(holder, path, copy.deepcopy(_value(holder, _steps(operation, "from"))), insert=True)
        case "test":
            if _value(holder, path) != operation.get("value"):
                raise BadPatch(f"test of {operation['path']} fails")
        case _:
            raise BadPatch(f"there is no operation {name!r}")


def _steps(operation: JsonObject, key: str) -> list[str]:
    pointer = operation.get(key)
    if not isinstance(pointer, str) or (pointer and not pointer.startswith("/")):
        raise BadPatch(f"{key} must be a JSON pointer, not {pointer!r}")
    return [step.replace("~1", "/").replace("~0", "~") for step in pointer.split("/")]


def _value(holder: Any, path: Sequence[str]) -> Any:
    here = holder
    for step in path:
        if isinstance(here, dict) and step in here:
            here = here[step]
        elif isinstance(here, list) and step.isdigit() and int(step) < len(here):
            here = here[int(step)]
        else:
            raise BadPatch(f"there is nothing at {'/'.join(path)}")
    return here


def _put(holder: Any, path: Sequence[str], value: Any, *, insert: bool) -> None:
    parent, last = _value(holder, path[:-1]), path[-1]
    if isinstance(parent, dict):
        parent[last] = value
    elif isinstance(parent, list):
        if last == "-" and insert:
            parent.append(value)
        elif last.isdigit() and int(last) < len(parent) + insert:
            parent[int(last) : int(last) + (not insert)] = [value]
        else:
            raise BadPatch(f"{'/'.join(path)} is outside of the list")
    else:
        raise BadPatch(f"nothing can be added at {'/'.join(path)}")


def _remove(holder: Any, path: Sequence[str]) -> Any:
    found = _value(holder, path)
    parent = _value(holder, path[:-1])
    del parent[int(path[-1]) if isinstance(parent, list) else path[-1]]
    return found
