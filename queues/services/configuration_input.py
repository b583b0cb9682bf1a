"""Configuration objects as our JSON states them -> the manifests that the services take, and mistakes back again.

The services read manifests and nothing else, so that an edit over REST meets the same rules as a file that is applied.
"""

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from accounts.exceptions import InvalidRequest, ManifestErrors
from queues.manifests.protection import COOL_DOWN_SECONDS, MINIMUM_RUN_SECONDS, PREEMPT_FOR_DEVICES
from scheduling.manifest import LocatedError, MistakeReason
from scheduling.manifest.fields import suggestion

_READ_ONLY: Final = frozenset(
    (
        "uid", "name", "namespace", "generation", "created_at", "deletion_requested_at", "conditions", "pending",
        "reserving", "admitted",
    )
)  # fmt: skip
_PROTECTION: Final = {"minimum_run_seconds": MINIMUM_RUN_SECONDS, "cool_down_seconds": COOL_DOWN_SECONDS}
_METADATA: Final = ("labels", "annotations")
_VERBATIM: Final = frozenset({"namespace_selector", "node_labels", "node_taints", "tolerations"})
"""Parts of Kubernetes' own objects: their keys are not ours to rename."""

_PLACES: Final[Mapping[str, Mapping[str, str]]] = {
    "ClusterQueue": {
        "cohort": "cohortName",
        "queueing_strategy": "queueingStrategy",
        "namespace_selector": "namespaceSelector",
        "flavor_fungibility": "flavorFungibility",
        "preemption": "preemption",
        "admission_checks": "admissionChecksStrategy.admissionChecks",
        "stop_policy": "stopPolicy",
        "fair_weight": "fairSharing.weight",
        "admission_mode": "admissionScope.admissionMode",
        "resource_groups": "resourceGroups",
    },
    "Cohort": {"parent": "parentName", "fair_weight": "fairSharing.weight", "resource_groups": "resourceGroups"},
    "LocalQueue": {"cluster_queue": "clusterQueue", "stop_policy": "stopPolicy", "fair_weight": "fairSharing.weight"},
    "ResourceFlavor": {
        "node_labels": "nodeLabels",
        "node_taints": "nodeTaints",
        "tolerations": "tolerations",
        "topology": "topologyName",
    },
}
"""Our field -> its place in the spec of v1beta2."""

_BEYOND_KUEUE: Final[Mapping[str, tuple[str, ...]]] = {
    "ClusterQueue": ("preempt_for_devices", "preemption_protection"),
    "Cohort": ("preemption_protection",),
    "LocalQueue": (),
    "ResourceFlavor": (),
}
"""Our fields that a manifest says in annotations."""


def manifest_from(kind: str, name: str, namespace: str, body: Mapping[str, Any]) -> dict[str, Any]:
    """The manifest of v1beta2 that says what the body says. Raises `ManifestErrors` for fields that no `kind` has."""
    places = _PLACES[kind]
    known = {*places, *_METADATA, *_BEYOND_KUEUE[kind]}
    rule = "is not a field that is known here"
    errors = [
        LocatedError(0, field, None, rule, suggestion(field, known), MistakeReason.UNKNOWN_FIELD)
        for field in body
        if field not in known and field not in _READ_ONLY
    ]
    for field, value in (("name", name), ("namespace", namespace)):
        if body.get(field, value) != value:
            errors.append(LocatedError(0, field, str(body[field]), f"must be {value}, as in the address"))
    if errors:
        raise ManifestErrors(errors)
    metadata: dict[str, Any] = {"name": name, **{field: body[field] for field in _METADATA if field in body}}
    if namespace:
        metadata["namespace"] = namespace
    if added := _annotations(kind, body):
        given = metadata.get("annotations") or {}
        metadata["annotations"] = {**given, **added} if isinstance(given, Mapping) else given
    spec: dict[str, Any] = {}
    for field, place in places.items():
        if field in body:
            _put(spec, place, body[field] if field in _VERBATIM else _camel_keys(body[field]))
    return {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": kind, "metadata": metadata, "spec": spec}


def relocated(kind: str, mistakes: ManifestErrors) -> ManifestErrors:
    """The same mistakes, with the paths of our JSON."""
    return type(mistakes)([replace(error, path=_our_path(kind, error.path)) for error in mistakes.errors])


def _annotations(kind: str, body: Mapping[str, Any]) -> dict[str, str]:
    added: dict[str, str] = {}
    fields = _BEYOND_KUEUE[kind]
    if "preempt_for_devices" in fields and body.get("preempt_for_devices"):
        added[PREEMPT_FOR_DEVICES] = str(body["preempt_for_devices"]).lower()
    protection = body.get("preemption_protection") if "preemption_protection" in fields else None
    if protection is not None:
        if not isinstance(protection, Mapping) or not protection.keys() <= _PROTECTION.keys():
            raise InvalidRequest(f"preemption_protection must be an object with {' and '.join(_PROTECTION)}.")
        for field, annotation in _PROTECTION.items():
            if protection.get(field) is not None:
                added[annotation] = str(protection[field])
    return added


def _put(spec: dict[str, Any], place: str, value: Any) -> None:
    outer, dot, inner = place.partition(".")
    if not dot:
        spec[outer] = value
    elif value not in ("", None, []):
        spec[outer] = {inner: value}


def _camel_keys(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {_camel(str(key)): _camel_keys(inner) for key, inner in value.items()}
    return [_camel_keys(inner) for inner in value] if isinstance(value, list) else value


def _camel(name: str) -> str:
    return re.sub(r"_([a-z])", lambda found: found[1].upper(), name)


def _our_path(kind: str, path: str) -> str:
    for field, annotation in _PROTECTION.items():
        if path == f"metadata.annotations[{annotation}]":
            return f"preemption_protection.{field}"
    if path == f"metadata.annotations[{PREEMPT_FOR_DEVICES}]":
        return "preempt_for_devices"
    path = path.removeprefix("metadata.").removeprefix("spec.")
    for field, place in _PLACES[kind].items():
        if path == place or path.startswith((f"{place}.", f"{place}[")):
            path = field + path.removeprefix(place)
            return path if field in _VERBATIM else _snake_path(path)
    return path


def _snake_path(path: str) -> str:
    """Field names in snake_case; what stands in brackets is a key or an index and stays."""

    def snake(found: re.Match[str]) -> str:
        return found[0] if found[0][0] == "[" else f"_{found[0].lower()}"

    return re.sub(r"\[[^\]]*\]|[A-Z]", snake, path)
