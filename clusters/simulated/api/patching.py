"""The patches of Kubernetes' API: JSON merge patch, strategic merge patch and JSON patch."""

from __future__ import annotations

from typing import Any

from clusters.simulated.api.errors import ApiError, bad_request
from clusters.simulated.api.fields import entry_key, is_set, list_keys
from clusters.simulated.api.objects import JsonObject

MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_MERGE_PATCH = "application/strategic-merge-patch+json"
JSON_PATCH = "application/json-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"

# Where strategic merge patch and server-side apply differ: the former merges these by one key, the latter takes them as
# one or merges them by more keys.
_STRATEGIC_KEYS = {"taints": "key", "ports": "containerPort", "topologySpreadConstraints": "topologyKey"}


def merge_patch(target: Any, patch: Any) -> Any:
    """RFC 7386: maps are merged, null removes, everything else (lists too) replaces."""
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merge_patch(result.get(key), value)
    return result


def strategic_merge_patch(target: JsonObject, patch: JsonObject) -> JsonObject:
    """Kubernetes' own: as a merge patch, but lists that have a merge key are merged by it.

    Directives: `$patch: replace` and `delete` in maps and list entries, `$deleteFromPrimitiveList/NAME`, `$retainKeys`;
    `$setElementOrder/NAME` is accepted and has no effect on the order here.
    """
    if patch.get("$patch") == "replace":
        return {key: value for key, value in patch.items() if key != "$patch"}
    if patch.get("$patch") == "delete":
        return {}
    result = dict(target)
    for key in set(result) - set(patch.get("$retainKeys", result)):
        del result[key]
    for key, value in patch.items():
        _strategic_field(result, key, value)
    return result


def _strategic_field(result: JsonObject, key: str, value: Any) -> None:
    if key.startswith("$deleteFromPrimitiveList/"):
        name = key.partition("/")[2]
        result[name] = [member for member in result.get(name) or () if member not in value]
    elif key.startswith("$"):
        return
    elif value is None:
        result.pop(key, None)
    elif isinstance(value, dict):
        old = result.get(key)
        result[key] = strategic_merge_patch(old if isinstance(old, dict) else {}, value)
    elif isinstance(value, list):
        result[key] = _strategic_list(key, result.get(key) or [], value)
    else:
        result[key] = value


def _strategic_list(name: str, old: list[Any], patch: list[Any]) -> list[Any]:
    if is_set(name):
        return [*old, *(member for member in patch if member not in old)]
    if name not in _STRATEGIC_KEYS and list_keys(name) is None:
        return patch
    if any(entry.get("$patch") == "replace" for entry in patch):
        return [entry for entry in patch if "$patch" not in entry]
    result = list(old)
    for entry in patch:
        key = _merge_key(name, entry)
        position = next((i for i, present in enumerate(result) if _merge_key(name, present) == key), None)
        if entry.get("$patch") == "delete":
            if position is not None:
                del result[position]
        elif position is None:
            result.append(strategic_merge_patch({}, entry))
        else:
            result[position] = strategic_merge_patch(result[position], entry)
    return result


def _merge_key(name: str, entry: JsonObject) -> str:
    if name in _STRATEGIC_KEYS:
        return str(entry.get(_STRATEGIC_KEYS[name]))
    return entry_key(name, entry)


def json_patch(target: JsonObject, operations: list[JsonObject]) -> JsonObject:
    """RFC 6902. Raises ApiError (422) where an operation does not apply."""
    document: Any = target
    for operation in operations:
        path = _pointer(str(operation.get("path", "")))
        kind = operation.get("op")
        if kind in ("move", "copy"):
            source = _pointer(str(operation.get("from", "")))
            value = _read(document, source)
            if kind == "move":
                document = _edited(document, source, "remove", None)
            document = _edited(document, path, "add", value)
        elif kind == "test":
            if _read(document, path) != operation.get("value"):
                raise ApiError(422, "Invalid", f"the test of {operation.get('path')!r} failed")
        elif kind in ("add", "remove", "replace"):
            document = _edited(document, path, kind, operation.get("value"))
        else:
            raise bad_request(f"unknown JSON patch operation {kind!r}")
    if not isinstance(document, dict):
        raise bad_request("a JSON patch must leave an object")
    return document


def _pointer(text: str) -> list[str]:
    return [part.replace("~1", "/").replace("~0", "~") for part in text.split("/")[1:]]


def _read(document: Any, path: list[str]) -> Any:
    here = document
    for part in path:
        try:
            here = here[int(part)] if isinstance(here, list) else here[part]
        except (KeyError, IndexError, ValueError, TypeError) as error:
            raise ApiError(422, "Invalid", f"the path /{'/'.join(path)} does not exist") from error
    return here


def _edited(document: Any, path: list[str], kind: str, value: Any) -> Any:
    if not path:
        return value
    head, rest = path[0], path[1:]
    if isinstance(document, list):
        return _edited_list(document, head, rest, kind, value)
    if not isinstance(document, dict) or (head not in document and (rest or kind != "add")):
        raise ApiError(422, "Invalid", f"the path {head!r} does not exist")
    result = dict(document)
    if rest:
        result[head] = _edited(document[head], rest, kind, value)
    elif kind == "remove":
        del result[head]
    else:
        result[head] = value
    return result


def _edited_list(document: list[Any], head: str, rest: list[str], kind: str, value: Any) -> list[Any]:
    result = list(document)
    position = len(result) if head == "-" else int(head) if head.isdigit() else -1
    if not 0 <= position <= len(result) or (position == len(result) and (rest or kind != "add")):
        raise ApiError(422, "Invalid", f"the index {head!r} does not exist")
    if rest:
        result[position] = _edited(result[position], rest, kind, value)
    elif kind == "add":
        result.insert(position, value)
    elif kind == "remove":
        del result[position]
    else:
        result[position] = value
    return result
