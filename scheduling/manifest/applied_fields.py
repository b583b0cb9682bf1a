"""Server-side apply: which fields of an object a manager has applied, and the object that results from an apply.

A set of fields has the form of Kubernetes' FieldsV1: `f:NAME` is a field of a map, `k:{...}` an item of a list with its
key, `v:VALUE` an item of a set, `.` the item itself; an empty map is a value that is owned as a whole.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from scheduling.manifest.associative_lists import Key, is_set, key_of, keys_of, merged_in_order

Fields = dict[str, Any]
"""A set of fields as FieldsV1."""
Path = tuple[str, ...]
"""The way to a value, in the words of FieldsV1."""

_ITSELF: Final = "."
_NOT_OWNED: Final = frozenset({"apiVersion", "kind", "status"})
_NOT_OWNED_METADATA: Final = frozenset(
    {
        "name", "namespace", "generateName", "uid", "resourceVersion", "generation", "creationTimestamp", "selfLink",
        "deletionTimestamp", "deletionGracePeriodSeconds", "managedFields",
    }
)  # fmt: skip
_NOTHING: Final = object()


def applied_part(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """Return the part of an applied manifest that its manager owns: without its identity, its status and nulls."""
    found = {key: _without_nulls(value) for key, value in manifest.items() if key not in _NOT_OWNED}
    metadata = found.pop("metadata", {})
    if isinstance(metadata, Mapping):
        owned = {key: value for key, value in metadata.items() if key not in _NOT_OWNED_METADATA}
        found = {"metadata": owned, **found} if owned else found
    return {key: value for key, value in found.items() if value is not None}


def fields_of(value: Any, field: str = "") -> Fields:
    """Return the fields that a value has, as FieldsV1; `field` is the name of the field that holds it."""
    if isinstance(value, Mapping):
        return {f"f:{key}": fields_of(item, key) for key, item in value.items()}
    keys = keys_of(field, value)
    if keys:
        return {_item(item, keys): {_ITSELF: {}, **fields_of(item)} for item in value}
    return {f"v:{json.dumps(item)}": {} for item in value} if is_set(field, value) else {}


def merged(there: Any, applied: Any, field: str = "") -> Any:
    """Return an object with the applied fields: maps and lists with keys are merged, other values are replaced."""
    if isinstance(there, Mapping) and isinstance(applied, Mapping):
        return {**there, **{key: merged(there.get(key), item, key) for key, item in applied.items()}}
    if isinstance(there, list) and is_set(field, applied) and is_set(field, there):
        return list(dict.fromkeys([*there, *applied]))
    keys = keys_of(field, [*there, *applied]) if isinstance(there, list) and isinstance(applied, list) else ()
    if not keys:
        return applied
    pairs = merged_in_order(there, applied, lambda item: key_of(item, keys))
    return [item if wanted is None else merged(item or {}, wanted) for item, wanted in pairs]


def difference(fields: Fields, others: Fields) -> Fields:
    """Return the fields of the first set that are not in the second."""
    found: Fields = {}
    for name, inner in fields.items():
        if name not in others:
            found[name] = inner
        elif inner:
            rest = difference(inner, others[name])
            if rest:
                found[name] = rest
    return found


def union(one: Fields, other: Fields) -> Fields:
    """Return the fields of both sets."""
    return {**one, **{name: union(one.get(name, {}), inner) for name, inner in other.items()}}


def without(value: Any, fields: Fields, field: str = "") -> Any:
    """Return a value without some of its fields. A map or a list that loses all its content is removed, too."""
    if isinstance(value, Mapping):
        return _without_fields(value, fields)
    if is_set(field, value):
        return [item for item in value if f"v:{json.dumps(item)}" not in fields]
    keys = keys_of(field, value)
    if not keys:
        return value
    left = []
    for item in value:
        inner = fields.get(_item(item, keys))
        if inner is None:
            left.append(item)
        elif _ITSELF not in inner:
            left.append(without(item, inner))
    return left


def projected(value: Any, fields: Fields, field: str = "") -> Any:
    """Return the part of a value that a set of fields names; missing fields are left out."""
    if not fields:
        return value
    if isinstance(value, Mapping):
        named = {key: fields.get(f"f:{key}", _NOTHING) for key in value}
        return {key: projected(value[key], inner, key) for key, inner in named.items() if isinstance(inner, dict)}
    if is_set(field, value):
        return [item for item in value if f"v:{json.dumps(item)}" in fields]
    keys = keys_of(field, value)
    if not keys:
        return value
    items = [(item, fields.get(_item(item, keys))) for item in value]
    return [
        {**{key: item[key] for key in keys if key in item}, **projected(item, inner)}
        for item, inner in items
        if inner is not None
    ]


def as_fields(paths: Iterable[Path]) -> Fields:
    """Return the set of the fields at paths."""
    found: Fields = {}
    for path in paths:
        inner = found
        for part in path:
            inner = inner.setdefault(part, {})
    return found


def values_at(value: Any, fields: Fields, field: str = "", path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Yield the path and the value of each field of a set; missing fields are left out."""
    if not fields:
        yield path, value
        return
    parts = _parts(value, field)
    for name, inner in fields.items():
        if name == _ITSELF:
            yield (*path, name), True
        elif name in parts:
            held, item = parts[name]
            yield from values_at(item, inner, held, (*path, name))


def written(path: Path) -> str:
    """Return a path as Kubernetes writes it in a conflict: `.spec.template.spec.containers[name="main"].image`."""
    text = ""
    for part in path:
        if part.startswith("f:"):
            text += f".{part[2:]}"
        elif part.startswith("k:"):
            text += "[" + ",".join(f"{key}={json.dumps(item)}" for key, item in json.loads(part[2:]).items()) + "]"
        elif part.startswith("v:"):
            text += f"[={part[2:]}]"
    return text


def _without_nulls(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None}
    return [_without_nulls(item) for item in value] if isinstance(value, list) else value


def _without_fields(value: Mapping[str, Any], fields: Fields) -> dict[str, Any]:
    left: dict[str, Any] = {}
    for key, item in value.items():
        inner = fields.get(f"f:{key}", _NOTHING)
        if inner is _NOTHING:
            left[key] = item
        elif isinstance(inner, dict) and inner:
            rest = without(item, inner, key)
            if rest or not item:
                left[key] = rest
    return left


def _item(item: Mapping[str, Any], keys: Key) -> str:
    """Return the name of an item of a list."""
    key = dict(zip(keys, key_of(item, keys), strict=True))
    return "k:" + json.dumps({name: item.get(name, text) for name, text in key.items()}, separators=(",", ":"))


def _parts(value: Any, field: str) -> dict[str, tuple[str, Any]]:
    """Return the parts of a value by their names; each with the name of the field that holds it."""
    if isinstance(value, Mapping):
        return {f"f:{key}": (key, item) for key, item in value.items()}
    keys = keys_of(field, value)
    if keys:
        return {_item(item, keys): ("", item) for item in value}
    return {f"v:{json.dumps(item)}": ("", item) for item in value} if is_set(field, value) else {}
