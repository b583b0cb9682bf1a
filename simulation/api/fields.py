"""Sets of fields, as server-side apply counts them, and the lists that are merged by key.

A path is a tuple of elements: ("f", name) for a field, ("k", canonical JSON of the keys) for an entry of a list that is
merged by key, ("v", canonical JSON) for a member of a list that is a set. A path names a leaf (a scalar, an atomic list
or map, an empty map) or the presence of a list entry.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any

import orjson

from simulation.api.objects import JsonObject

Element = tuple[str, str]
Path = tuple[Element, ...]
FieldSet = frozenset[Path]

_LIST_KEYS: dict[str, tuple[str, ...]] = {
    "addresses": ("type",),
    "admissionChecks": ("name",),
    "conditions": ("type",),
    "containers": ("name",),
    "env": ("name",),
    "ephemeralContainers": ("name",),
    "evictions": ("reason", "underlyingCause"),
    "flavorsReservation": ("name",),
    "flavorsUsage": ("name",),
    "imagePullSecrets": ("name",),
    "initContainers": ("name",),
    "ownerReferences": ("uid",),
    "podSetAssignments": ("name",),
    "ports": ("containerPort", "protocol"),
    "reclaimablePods": ("name",),
    "schedulingGates": ("name",),
    "topologySpreadConstraints": ("topologyKey", "whenUnsatisfiable"),
    "unhealthyNodes": ("name",),
    "volumeDevices": ("devicePath",),
    "volumeMounts": ("mountPath",),
    "volumes": ("name",),
    "webhooks": ("name",),
}
_ABSENT: Any = object()
_KEY_DEFAULTS = {"protocol": "TCP"}
_SET_LISTS = frozenset({"finalizers"})
_ATOMIC_MAPS = frozenset({"nodeSelector", "selector", "labelSelector", "fieldRef", "resourceFieldRef", "secretRef"})
_IDENTITY = frozenset(
    {
        "creationTimestamp",
        "deletionGracePeriodSeconds",
        "deletionTimestamp",
        "generation",
        "generateName",
        "managedFields",
        "name",
        "namespace",
        "resourceVersion",
        "selfLink",
        "uid",
    }
)


def is_set(field: str) -> bool:
    """Return whether a list of that name is a set of scalars."""
    return field in _SET_LISTS


def is_atomic_map(field: str) -> bool:
    """Return whether a map with that name is owned and replaced as a whole."""
    return field in _ATOMIC_MAPS


def entry_key(field: str, entry: JsonObject) -> str:
    """Return the canonical JSON of the keys of one list entry."""
    keys = {key: entry.get(key, _KEY_DEFAULTS.get(key)) for key in _LIST_KEYS[field]}
    return orjson.dumps(keys, option=orjson.OPT_SORT_KEYS).decode()


def is_keyed_list(field: str, value: Any) -> bool:
    """Return whether this value is a list whose entries are merged by key."""
    return isinstance(value, list) and field in _LIST_KEYS and all(isinstance(entry, dict) for entry in value)


def field_set(item: JsonObject) -> FieldSet:
    """Return the leaves of an object, without its identity and the fields that the server maintains."""
    paths: set[Path] = set()
    for name, value in item.items():
        if name in ("apiVersion", "kind"):
            continue
        if name == "metadata":
            value = {key: entry for key, entry in value.items() if key not in _IDENTITY}
            if not value:
                continue
        paths.update(_leaves((("f", name),), name, value))
    return frozenset(paths)


def changes(before: JsonObject, after: JsonObject) -> tuple[FieldSet, FieldSet]:
    """Return (leaves that are new or changed, leaves that are removed). Equal parts are skipped."""
    changed: set[Path] = set()
    gone: set[Path] = set()
    for name in before.keys() | after.keys():
        if name in ("apiVersion", "kind"):
            continue
        old, new = before.get(name, _ABSENT), after.get(name, _ABSENT)
        if name == "metadata":
            old, new = _without_identity(old), _without_identity(new)
        _compare((("f", name),), name, old, new, changed, gone)
    return frozenset(changed), frozenset(gone)


def _without_identity(metadata: Any) -> JsonObject:
    return {key: value for key, value in metadata.items() if key not in _IDENTITY}


def _compare(path: Path, name: str, old: Any, new: Any, changed: set[Path], gone: set[Path]) -> None:
    if old == new:
        return
    if isinstance(old, dict) and isinstance(new, dict) and old and new and not is_atomic_map(name):
        for key in old.keys() | new.keys():
            child = (*path, ("f", key))
            _compare(child, key, old.get(key, _ABSENT), new.get(key, _ABSENT), changed, gone)
    elif old and new and is_keyed_list(name, old) and is_keyed_list(name, new):
        before = {entry_key(name, entry): entry for entry in old}
        after = {entry_key(name, entry): entry for entry in new}
        for key in before.keys() | after.keys():
            here = (*path, ("k", key))
            if (key in before) != (key in after):
                (changed if key in after else gone).add(here)
            _compare_entries(here, before.get(key, {}), after.get(key, {}), changed, gone)
    else:
        was = set() if old is _ABSENT else set(_leaves(path, name, old))
        now = set() if new is _ABSENT else set(_leaves(path, name, new))
        gone |= was - now
        # A member of a set has no value that could differ.
        changed |= {leaf for leaf in now if leaf not in was or leaf[-1][0] != "v"}


def _compare_entries(path: Path, old: JsonObject, new: JsonObject, changed: set[Path], gone: set[Path]) -> None:
    for key in old.keys() | new.keys():
        child = (*path, ("f", key))
        _compare(child, key, old.get(key, _ABSENT), new.get(key, _ABSENT), changed, gone)


def _leaves(path: Path, name: str, value: Any) -> Iterator[Path]:
    if isinstance(value, dict) and value and not is_atomic_map(name):
        for key, child in value.items():
            yield from _leaves((*path, ("f", key)), key, child)
    elif is_keyed_list(name, value) and value:
        for entry in value:
            here = (*path, ("k", entry_key(name, entry)))
            yield here
            for key, child in entry.items():
                yield from _leaves((*here, ("f", key)), key, child)
    elif isinstance(value, list) and is_set(name):
        for member in value:
            yield (*path, ("v", orjson.dumps(member).decode()))
    else:
        yield path


def value_at(item: JsonObject, path: Path) -> Any:
    """Return the value of a leaf; None for an absent leaf, and for list entries and set members, which carry no
    value."""
    here: Any = item
    name = ""
    for kind, text in path:
        if kind == "f":
            here = here.get(text) if isinstance(here, dict) else None
            name = text
        elif kind == "k":
            entries = here if isinstance(here, list) else []
            here = next((entry for entry in entries if entry_key(name, entry) == text), None)
        if here is None:
            return None
    return here if path[-1][0] == "f" else None


def contains(item: JsonObject, path: Path) -> bool:
    """Return whether the object has that leaf, list entry or set member."""
    here: Any = item
    name = ""
    for kind, text in path:
        if kind == "f":
            if not isinstance(here, dict) or text not in here:
                return False
            here, name = here[text], text
        elif kind == "k":
            entries = here if isinstance(here, list) else []
            here = next((entry for entry in entries if entry_key(name, entry) == text), None)
            if here is None:
                return False
        else:
            return isinstance(here, list) and orjson.loads(text) in here
    return True


def without(item: JsonObject, paths: Iterable[Path]) -> JsonObject:
    """Return a copy without these leaves and entries; maps and lists that become empty are removed, too."""
    result: JsonObject = dict(item)
    entries: set[Path] = set()
    for path in sorted(paths, key=len):
        if any(path[:length] in entries for length in range(1, len(path))):
            continue  # the whole list entry has been removed
        if path[-1][0] == "k":
            entries.add(path)
        result = _removed(result, path, "")
    return result


def _removed(here: Any, path: Path, name: str) -> Any:
    (kind, text), rest = path[0], path[1:]
    if kind == "f":
        if not isinstance(here, dict) or text not in here:
            return here
        copy = dict(here)
        child = _removed(copy[text], rest, text) if rest else None
        if child is None or (rest and child in ({}, [])):
            del copy[text]
        else:
            copy[text] = child
        return copy
    if not isinstance(here, list):
        return here
    if kind == "v":
        member = orjson.loads(text)
        return [entry for entry in here if entry != member]
    if not rest:
        return [entry for entry in here if entry_key(name, entry) != text]
    return [_removed(entry, rest, name) if entry_key(name, entry) == text else entry for entry in here]


def describe(path: Path) -> str:
    """Return a path as Kubernetes prints it: .spec.containers[name="a"].image"""
    text = ""
    for kind, element in path:
        if kind == "f":
            text += f".{element}"
        elif kind == "k":
            keys = orjson.loads(element)
            text += "[" + ",".join(f"{key}={orjson.dumps(value).decode()}" for key, value in keys.items()) + "]"
        else:
            text += f"[={element}]"
    return text


@lru_cache(maxsize=4096)
def to_fields_v1(paths: FieldSet) -> JsonObject:
    """Return the FieldsV1 encoding of a set. It is shared between calls and must not be changed."""
    root: JsonObject = {}
    for path in sorted(paths):
        here = root
        for kind, text in path:
            here = here.setdefault(f"{kind}:{text}", {})
        if path[-1][0] == "k":
            here["."] = {}
    return root


def from_fields_v1(fields: JsonObject) -> FieldSet:
    """Return the set of a FieldsV1 encoding."""
    return _from_json(orjson.dumps(fields))


@lru_cache(maxsize=4096)
def _from_json(content: bytes) -> FieldSet:
    paths: set[Path] = set()
    _decode((), orjson.loads(content), paths)
    return frozenset(paths)


def _decode(path: Path, fields: JsonObject, paths: set[Path]) -> None:
    for encoded, child in fields.items():
        if encoded == ".":
            paths.add(path)
            continue
        kind, _, text = encoded.partition(":")
        here = (*path, (kind, text))
        if child:
            _decode(here, child, paths)
        else:
            paths.add(here)
