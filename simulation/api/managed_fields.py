"""Ownership of fields: server-side apply, and the changes of other writes to its book-keeping."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from simulation.api.fields import (
    FieldSet,
    Path,
    changes,
    contains,
    describe,
    entry_key,
    field_set,
    from_fields_v1,
    is_atomic_map,
    is_keyed_list,
    is_set,
    to_fields_v1,
    value_at,
    without,
)
from simulation.api.objects import JsonObject, timestamp

_EMPTY: FieldSet = frozenset()


@dataclass(frozen=True, slots=True)
class Owner:
    """One entry of metadata.managedFields: a manager's fields by one operation on the object or a subresource."""

    manager: str
    operation: str
    subresource: str
    api_version: str
    time: str
    fields: FieldSet

    def is_entry(self, manager: str, operation: str, subresource: str) -> bool:
        return (self.manager, self.operation, self.subresource) == (manager, operation, subresource)


def owners_of(item: JsonObject) -> list[Owner]:
    """Decode metadata.managedFields."""
    return [
        Owner(
            manager=entry.get("manager", ""),
            operation=entry.get("operation", "Update"),
            subresource=entry.get("subresource", ""),
            api_version=entry.get("apiVersion", ""),
            time=entry.get("time", ""),
            fields=from_fields_v1(entry.get("fieldsV1") or {}),
        )
        for entry in item["metadata"].get("managedFields") or ()
    ]


def with_owners(item: JsonObject, owners: list[Owner]) -> JsonObject:
    """Return a copy of the object with these managed fields; entries without fields are dropped."""
    entries = []
    for owner in owners:
        if not owner.fields:
            continue
        entry: JsonObject = {
            "manager": owner.manager,
            "operation": owner.operation,
            "apiVersion": owner.api_version,
            "time": owner.time,
            "fieldsType": "FieldsV1",
            "fieldsV1": to_fields_v1(owner.fields),
        }
        if owner.subresource:
            entry["subresource"] = owner.subresource
        entries.append(entry)
    return {**item, "metadata": {**item["metadata"], "managedFields": entries}}


def after_update(
    live: JsonObject | None, updated: JsonObject, manager: str, subresource: str, now: float
) -> JsonObject:
    """Update managedFields after a create, update or patch: changed fields belong to the manager, removed ones to no
    manager."""
    changed, gone = changes(live, updated) if live else (field_set(updated), _EMPTY)
    before = owners_of(live) if live else []
    owners = [
        owner if owner.is_entry(manager, "Update", subresource) else _less(owner, changed | gone) for owner in before
    ]
    position = next((i for i, owner in enumerate(owners) if owner.is_entry(manager, "Update", subresource)), None)
    mine = ((owners.pop(position).fields if position is not None else _EMPTY) - gone) | changed
    entry = Owner(manager, "Update", subresource, updated["apiVersion"], timestamp(now), mine)
    owners.insert(len(owners) if position is None else position, entry)
    return with_owners(updated, owners)


def _less(owner: Owner, paths: FieldSet) -> Owner:
    return Owner(owner.manager, owner.operation, owner.subresource, owner.api_version, owner.time, owner.fields - paths)


def conflicts(live: JsonObject, applied: JsonObject, manager: str) -> dict[str, list[str]]:
    """Return, by manager, the fields of an applied configuration that it owns with another value."""
    wanted = field_set(applied)
    found: dict[str, list[str]] = {}
    for owner in owners_of(live):
        if owner.manager == manager and owner.operation == "Apply":
            continue
        clashing = [path for path in owner.fields & wanted if _differs(live, applied, path)]
        if clashing:
            found.setdefault(owner.manager, []).extend(describe(path) for path in clashing)
    return found


def _differs(live: JsonObject, applied: JsonObject, path: Path) -> bool:
    return path[-1][0] == "f" and value_at(live, path) != value_at(applied, path)


def apply(live: JsonObject, applied: JsonObject, manager: str, subresource: str, now: float) -> JsonObject:
    """Return the object after server-side apply. Conflicts must have been excluded or forced. Fields that the manager
    applied before and no longer gives are removed, unless another manager owns them too."""
    wanted = field_set(applied)
    taken = frozenset(path for path in wanted if contains(live, path) and _differs(live, applied, path))
    owners = [
        owner if owner.is_entry(manager, "Apply", subresource) else _less(owner, taken) for owner in owners_of(live)
    ]
    position = next((i for i, owner in enumerate(owners) if owner.is_entry(manager, "Apply", subresource)), None)
    before = owners[position].fields if position is not None else _EMPTY
    others = [owner for i, owner in enumerate(owners) if i != position]
    kept = frozenset().union(*(owner.fields for owner in others)) if others else _EMPTY
    dropped = {path for path in before - wanted - kept if not _holds_kept(path, wanted | kept)}
    merged = _merge(without(live, dropped), applied, "")
    entry = Owner(manager, "Apply", subresource, applied["apiVersion"], timestamp(now), wanted)
    others.insert(len(others) if position is None else position, entry)
    return with_owners(merged, others)


def _holds_kept(path: Path, kept: FieldSet) -> bool:
    return any(other[: len(path)] == path for other in kept)


def _merge(live: Any, applied: Any, name: str) -> Any:
    if isinstance(applied, dict) and isinstance(live, dict) and not is_atomic_map(name):
        result = dict(live)
        for key, value in applied.items():
            result[key] = _merge(live.get(key), value, key)
        return result
    if is_keyed_list(name, applied) and isinstance(live, list):
        return _merge_list(live, applied, name)
    if isinstance(applied, list) and isinstance(live, list) and is_set(name):
        return [*live, *(member for member in applied if member not in live)]
    return applied


def _merge_list(live: list[JsonObject], applied: list[JsonObject], name: str) -> list[JsonObject]:
    result = list(live)
    positions = {entry_key(name, entry): position for position, entry in enumerate(live)}
    for entry in applied:
        position = positions.get(entry_key(name, entry))
        if position is None:
            result.append(entry)
        else:
            result[position] = _merge(live[position], entry, name)
    return result
