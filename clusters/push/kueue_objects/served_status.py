"""Writes statuses into the cluster as Kueue does, by server-side apply: only kueueweb's own fields of each object."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any, Final

from accounts.services.object_status import Status
from clusters.api_errors import ClusterError, ClusterUnreachable
from clusters.api_objects import JsonObject, Kind
from clusters.client import FIELD_MANAGER, ClusterClient
from queues.kinds.multikueue import QUOTA_AUTOMATION
from queues.models import ServedObject
from scheduling.manifest.merge_patch import difference
from scheduling.model.vocabulary import ConditionType

_log = logging.getLogger(__name__)

KEYS: Final[Mapping[str, tuple[str, ...]]] = {
    "ClusterQueue": (
        "conditions", "flavorsReservation", "flavorsUsage", "pendingWorkloads", "reservingWorkloads",
        "admittedWorkloads", "fairSharing",
    ),
    "LocalQueue": (
        "conditions", "flavorsReservation", "flavorsUsage", "pendingWorkloads", "reservingWorkloads",
        "admittedWorkloads", "fairSharing",
    ),
    "Cohort": ("fairSharing",),
    "AdmissionCheck": ("conditions",),
    "MultiKueueCluster": ("conditions",),
    "Workload": (
        "conditions", "admission", "requeueState", "reclaimablePods", "admissionChecks",
        "accumulatedPastExecutionTimeSeconds", "schedulingStats", "unhealthyNodes", "clusterName",
        "nominatedClusterNames", "preemptionGates",
    ),
}  # fmt: skip
"""The keys of each status that kueueweb writes; the others are left unchanged."""
MANAGERS: Final[Mapping[str, str]] = {"Workload": "kueue-admission"}
"""Kueue's own field manager, so that a Kueue that takes over can remove outdated fields, and kueueweb those of
Kueue.
"""
_V1BETA1: Final[Mapping[str, Mapping[str, str]]] = {
    "LocalQueue": {"flavorsUsage": "flavorUsage"},
    "Workload": {"accumulatedPastExecutionTimeSeconds": "accumulatedPastExexcutionTimeSeconds"},
}
"""Names of the older version."""
_OUR_CONDITIONS: Final = frozenset({str(each) for each in ConditionType} | {"Active", QUOTA_AUTOMATION})
"""A condition of another type is another controller's."""
_REFUSES_FIELDS: Final = frozenset(
    {HTTPStatus.BAD_REQUEST, HTTPStatus.UNPROCESSABLE_ENTITY, HTTPStatus.INTERNAL_SERVER_ERROR}
)
"""An API server answers 500 if the body of an apply does not have the types of the definition."""
_STATUS_FIELD: Final = re.compile(r"\bstatus\.([A-Za-z]+)")


def tell_status(client: ClusterClient, resource: Kind, entry: ServedObject, status: Status) -> bool:
    """Write the status if it differs from the last known one, and record it in `entry`.

    Returns whether there was anything to write. Raises ClusterError, with `conflict` if the object has changed since it
    was read; an edit, a deletion or a check's answer is then read first.
    """
    if not differs(resource, entry, status):
        return False
    keys = _names(entry.kind, resource.api_version)
    wanted = _wanted(status, keys, entry)
    stored = _apply(client, resource, entry, wanted)
    surplus = _surplus(stored.get("status") or {}, wanted, keys.values())
    if surplus:
        # An apply leaves our fields that other managers wrote, such as an earlier version of ours, unchanged.
        version = {"resourceVersion": stored["metadata"]["resourceVersion"]}
        patch = {"metadata": version, "status": surplus}
        stored = client.patch(resource, entry.namespace, entry.name, patch, subresource="status")
    entry.resource_version = str(stored["metadata"]["resourceVersion"])
    left = {key: value for key, value in (stored.get("status") or {}).items() if key not in keys.values()}
    # Compare with the value that we wrote: the server may spell it differently, and a refused value is not sent again
    # until it changes.
    entry.status = {**left, **wanted, **_with_others_conditions(stored.get("status") or {}, wanted)}
    return True


def differs(resource: Kind, entry: ServedObject, status: Status) -> bool:
    """Return whether the status differs from the last known one, so that there is anything to write."""
    if entry.kind == "AdmissionCheck" and not status:
        return False  # another controller reports whether it is active
    keys = _names(entry.kind, resource.api_version)
    wanted = _wanted(status, keys, entry)
    return not all(_same(entry.status.get(key), wanted.get(key)) for key in keys.values())


def _names(kind: str, api_version: str) -> Mapping[str, str]:
    """Return our keys of a status -> their names in that version."""
    older = _V1BETA1.get(kind, {}) if api_version.endswith("/v1beta1") else {}
    return {key: older.get(key, key) for key in KEYS[kind]}


def _wanted(status: Status, keys: Mapping[str, str], entry: ServedObject) -> JsonObject:
    """Return the status in the cluster's version.

    A condition keeps its transition time, and names the generation in the cluster.
    """
    wanted = {name: status[key] for key, name in keys.items() if status.get(key) is not None}
    if wanted.get("conditions"):
        there = {each.get("type"): each for each in entry.status.get("conditions") or ()}
        wanted["conditions"] = [_condition(each, there.get(each["type"]), entry) for each in wanted["conditions"]]
    return wanted


def _condition(wanted: Mapping[str, Any], there: Mapping[str, Any] | None, entry: ServedObject) -> JsonObject:
    found = {**wanted, "observedGeneration": entry.object_generation}
    if there is not None and there.get("status") == wanted["status"] and there.get("lastTransitionTime"):
        found["lastTransitionTime"] = there["lastTransitionTime"]
    return found


def _apply(client: ClusterClient, resource: Kind, entry: ServedObject, wanted: JsonObject) -> JsonObject:
    """Write that status, and return the object. A field that the server refuses keeps its value."""
    metadata = {"name": entry.name, "uid": entry.uid, "resourceVersion": entry.resource_version}
    if entry.namespace:
        metadata["namespace"] = entry.namespace
    identity = {"apiVersion": resource.api_version, "kind": entry.kind, "metadata": metadata}
    manager = MANAGERS.get(entry.kind, FIELD_MANAGER)
    told = dict(wanted)
    while True:
        try:
            return client.apply(resource, {**identity, "status": told}, subresource="status", manager=manager)
        except ClusterUnreachable:
            raise
        except ClusterError as refusal:
            refused = {key for key in _refused_fields(refusal) if key in told and told[key] is wanted[key]}
            if not refused:
                raise
            _log.warning("%s: the server refuses %s of its status: %s", entry, ", ".join(sorted(refused)), refusal)
            kept = {key: entry.status[key] for key in refused if key in entry.status}
            told = {key: value for key, value in told.items() if key not in refused} | kept


def _refused_fields(refusal: ClusterError) -> set[str]:
    """Return the keys of a status that a refusal names."""
    if refusal.status not in _REFUSES_FIELDS:
        return set()
    return {found for text in (*refusal.fields, refusal.message) for found in _STATUS_FIELD.findall(text)}


def _surplus(there: Mapping[str, Any], wanted: Mapping[str, Any], keys: Any) -> JsonObject:
    """Return the merge patch that removes outdated values from kueueweb's fields."""
    patch: JsonObject = {}
    for key in keys:
        found, value = _ours(there.get(key)), wanted.get(key)
        if _empty(found) or not _exceeds(found, value):
            continue
        if isinstance(found, Mapping) and isinstance(value, Mapping):
            patch[key] = difference(found, value)
        elif isinstance(value, list) and key == "conditions":
            patch[key] = [*value, *_others_conditions(there)]
        else:
            patch[key] = value
    return patch


def _exceeds(there: Any, wanted: Any) -> bool:
    """Return whether there is more than wanted: a field, or an entry of a list with names."""
    if isinstance(there, Mapping) and isinstance(wanted, Mapping):
        return any(key not in wanted or _exceeds(value, wanted[key]) for key, value in there.items())
    named = _by_name(there)
    if named is not None:
        return _exceeds(named, _by_name(wanted) or {})
    return not _empty(there) and _empty(wanted)


def _same(there: Any, wanted: Any) -> bool:
    """Return whether a field has the wanted value. The order of named entries and conditions of others do not count."""
    if _empty(there) and _empty(wanted):
        return True
    found, value = _by_name(_ours(there)), _by_name(wanted)
    if found is not None and value is not None:
        return found == value
    return bool(there == wanted)


def _empty(value: Any) -> bool:
    return value is None or value in ([], {})


def _by_name(value: Any) -> Mapping[str, Any] | None:
    """Return the entries of a list by their names or types; None for any other value."""
    if not isinstance(value, list) or not all(isinstance(each, Mapping) for each in value):
        return None
    for key in ("type", "name"):
        if value and all(key in each for each in value):
            return {str(each[key]): each for each in value}
    return None


def _ours(value: Any) -> Any:
    """Return our conditions of a list of conditions, and any other value whole."""
    if not isinstance(value, list):
        return value
    return [each for each in value if not (isinstance(each, Mapping) and _is_others(each))]


def _is_others(entry: Mapping[str, Any]) -> bool:
    return "type" in entry and entry["type"] not in _OUR_CONDITIONS


def _others_conditions(status: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    return [each for each in status.get("conditions") or () if _is_others(each)]


def _with_others_conditions(there: Mapping[str, Any], wanted: Mapping[str, Any]) -> JsonObject:
    others = _others_conditions(there)
    return {"conditions": [*(wanted.get("conditions") or ()), *others]} if others else {}
