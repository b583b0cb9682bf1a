"""Label and field selectors of list, watch and deletecollection."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from simulation.api.errors import bad_request
from simulation.api.objects import JsonObject, labels_of
from simulation.api.resources import Resource

Predicate = Callable[[JsonObject], bool]

_SET_BASED = re.compile(r"^\s*(?P<key>\S+)\s+(?P<operator>in|notin)\s*\((?P<values>[^)]*)\)\s*$")
_SPLIT = re.compile(r",(?![^(]*\))")
_FIELDS: dict[str, frozenset[str]] = {
    "pods": frozenset(
        {"spec.nodeName", "spec.restartPolicy", "spec.schedulerName", "spec.serviceAccountName", "status.phase"}
    ),
    "nodes": frozenset({"spec.unschedulable"}),
    "namespaces": frozenset({"status.phase"}),
    "jobs": frozenset({"status.successful"}),
    "events": frozenset(
        {
            "involvedObject.kind",
            "involvedObject.name",
            "involvedObject.namespace",
            "involvedObject.uid",
            "reason",
            "type",
        }
    ),
}


def parse(resource: Resource, label_selector: str, field_selector: str) -> Predicate:
    """Return one predicate for both selectors. Raises ApiError (400), which names the unreadable or unsupported
    part."""
    requirements = [_label_requirement(part) for part in _SPLIT.split(label_selector) if part.strip()]
    requirements += [_field_requirement(resource, part) for part in field_selector.split(",") if part.strip()]
    return lambda item: all(requirement(item) for requirement in requirements)


def _label_requirement(text: str) -> Predicate:
    found = _SET_BASED.match(text)
    if found:
        key = found["key"]
        values = {value.strip() for value in found["values"].split(",")}
        if found["operator"] == "in":
            return lambda item: labels_of(item).get(key) in values
        return lambda item: labels_of(item).get(key) not in values
    text = text.strip()
    for operator in ("!=", "==", "="):
        if operator in text:
            key, _, value = (part.strip() for part in text.partition(operator))
            if operator == "!=":
                return lambda item: labels_of(item).get(key) != value
            return lambda item: labels_of(item).get(key) == value
    if text.startswith("!"):
        return lambda item: text[1:] not in labels_of(item)
    if not re.fullmatch(r"[A-Za-z0-9._/-]+", text):
        raise bad_request(f"unable to parse requirement: {text!r}")
    return lambda item: text in labels_of(item)


def _field_requirement(resource: Resource, text: str) -> Predicate:
    for operator in ("!=", "==", "="):
        if operator not in text:
            continue
        path, _, value = (part.strip() for part in text.partition(operator))
        if path not in {"metadata.name", "metadata.namespace"} | _FIELDS.get(resource.plural, frozenset()):
            raise bad_request(f'field label not supported: "{path}"')
        wanted = operator != "!="
        return lambda item: (_field(item, path) == value) is wanted
    raise bad_request(f"invalid selector: {text!r}; can't understand it")


def _field(item: JsonObject, path: str) -> str:
    value: Any = item
    for part in path.split("."):
        value = value.get(part) if isinstance(value, dict) else None
    if value is None:
        return "false" if path == "spec.unschedulable" else ""
    return str(value).lower() if isinstance(value, bool) else str(value)
