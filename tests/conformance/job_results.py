"""Results of job scenarios, brought into a form in which equal ones compare equal."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from scheduling.model.quantity import InvalidQuantity, parse_quantity

_AMOUNTS = {"requests", "limits", "overhead", "podFixed", "resourcesPerNode"}
_TIMES = {
    "resourceVersion", "managedFields", "creationTimestamp", "lastTransitionTime", "lastProbeTime", "lastUpdateTime",
    "observedGeneration",
}  # fmt: skip


def comparable(section: str, result: Any) -> Any:
    """A section of a result; a section with an error is that it failed."""
    if isinstance(result, Mapping) and "error" in result:
        return "failed"
    if section == "create":
        return _by_name(result, _refusal) if isinstance(result, list) else _refusal(result)
    if section == "updates":
        return [(update["name"], _refusal(update)) for update in result]
    if section == "steps":
        return [_step(step) for step in result]
    if section == "states":
        return [_state(state) for state in result]
    if section == "default" and isinstance(result, list):
        return _by_name(result, lambda entry: comparable("default", entry))
    return plain(result)


def _by_name(entries: list[dict[str, Any]], convert: Any) -> dict[str, Any]:
    return {entry["name"]: convert({key: entry[key] for key in entry if key != "name"}) for entry in entries}


def plain(value: Any, key: str = "") -> Any:
    """Absent, null and empty are alike; quantities are amounts; times are left out; conditions have no order."""
    if isinstance(value, Mapping):
        found = {}
        for name, item in value.items():
            if name in _TIMES or (name == "suspend" and item is False):
                continue
            if name == "deletionTimestamp":
                item = "set" if item else None
            found[name] = _amount(item) if key in _AMOUNTS and not isinstance(item, dict | list) else plain(item, name)
        return {name: item for name, item in found.items() if item not in (None, {}, [])}
    if isinstance(value, list):
        items = [plain(item) for item in value]
        return sorted(items, key=lambda item: str(item.get("type"))) if key == "conditions" else items
    return value


def _amount(value: Any) -> Any:
    try:
        return parse_quantity(value)
    except InvalidQuantity:
        return value


def _refusal(result: Mapping[str, Any]) -> Any:
    """Errors without order; of one that is about no field only that there is one, of bad JSON not what the parser
    says."""
    found = []
    for error in result.get("errors") or ():
        if error["type"] == "Error":
            found.append(("Error", "", ""))
        else:
            detail = re.sub(r"(must be a valid JSON array): .*", r"\1", error.get("detail") or "", flags=re.DOTALL)
            found.append((error["type"], error["field"], detail))
    return sorted(found), result.get("warnings") or 0


def _step(step: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {key: plain(step.get(key), key) for key in ("object", "podSetsInfo")}
    for key in ("workloads", "pods"):
        found[key] = {obj["metadata"]["name"]: plain(obj) for obj in step.get(key) or ()}
    found["made"] = _by_name(step.get("made") or [], lambda made: (plain(made.get("object")), _refusal(made)))
    found["failed"] = bool(step.get("error"))
    return {key: value for key, value in found.items() if value not in (None, {}, [])}


def _state(state: Mapping[str, Any]) -> dict[str, Any]:
    """Whether a job succeeded means something only once it has finished."""
    found: dict[str, Any] = plain({key: value for key, value in state.items() if key != "finished"})
    outcome = state.get("finished") or {}
    ended = outcome.get("finished")
    return {**found, "finished": (outcome.get("success"), outcome.get("message")) if ended else bool(ended)}
