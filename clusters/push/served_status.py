"""Statuses as Kueue writes them into the cluster, from those that our manifests show (pure)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from accounts.services.object_status import Status
from queues.models import ServedObject

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
        "nominatedClusterNames",
    ),
}  # fmt: skip
"""What we write of each status; the rest is left as it is."""
_V1BETA1: Final[Mapping[str, Mapping[str, str]]] = {
    "LocalQueue": {"flavorsUsage": "flavorUsage"},
    "Workload": {"accumulatedPastExecutionTimeSeconds": "accumulatedPastExexcutionTimeSeconds"},
}
"""Names of the older version."""


def told_status(kind: str, api_version: str, status: Status, entry: ServedObject) -> Status:
    """The status for the cluster: with None for what goes, in the version that is written.

    A condition keeps the time at which its status became what it is, and names the generation that the cluster counts.
    """
    if kind == "AdmissionCheck" and not status:
        return {}  # another controller says of itself whether it is active
    wanted: Status = {key: status.get(key) for key in KEYS[kind]}
    there = {each.get("type"): each for each in entry.status.get("conditions") or ()}
    if status.get("conditions"):
        wanted["conditions"] = [_condition(each, there.get(each["type"]), entry) for each in status["conditions"]]
    older = _V1BETA1.get(kind, {}) if api_version.endswith("/v1beta1") else {}
    return {older.get(key, key): value for key, value in wanted.items() if value is not None or key in entry.status}


def _condition(wanted: Mapping[str, Any], there: Mapping[str, Any] | None, entry: ServedObject) -> dict[str, Any]:
    found = {**wanted, "observedGeneration": entry.object_generation}
    if there is not None and there.get("status") == wanted["status"] and there.get("lastTransitionTime"):
        found["lastTransitionTime"] = there["lastTransitionTime"]
    return found
