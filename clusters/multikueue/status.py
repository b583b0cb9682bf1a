"""Whether workers are connected and checks usable: Kueue's Active conditions, kept in rows and shown with them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from accounts.models import Cluster
from accounts.services.object_status import Status, timestamp
from clusters.api_errors import ClusterError
from clusters.multikueue.manager_rows import configs_of
from foundation.transactions import unnoticed_transaction
from queues.models import AdmissionCheck, MultiKueueCluster
from queues.services.configuration import set_check_active
from scheduling.model.times import rfc3339

_KNOWN_REASONS = frozenset({"BadKubeConfig", "InsecureKubeConfig", "BadClusterProfile"})


def note_connection(row: MultiKueueCluster, error: ClusterError | None, now: datetime) -> None:
    """Record whether the worker answers."""
    if error is None:
        found = {"status": "True", "reason": "Active", "message": "Connected"}
    else:
        reason = error.reason if error.reason in _KNOWN_REASONS else "ClientConnectionFailed"
        found = {"status": "False", "reason": reason, "message": error.message}
    before: dict[str, str] = next((each for each in row.conditions if each["type"] == "Active"), {})
    if {key: before.get(key) for key in found} == found:
        return
    same = before.get("status") == found["status"]
    since = before["lastTransitionTime"] if same else rfc3339(now)
    row.conditions = [{"type": "Active", **found, "lastTransitionTime": since}]
    with unnoticed_transaction():
        MultiKueueCluster.objects.filter(pk=row.pk).update(conditions=row.conditions)


def note_checks(cluster: Cluster, configs: Mapping[str, Sequence[str] | None], workers: Mapping[str, bool]) -> None:
    """Update whether the checks can be answered, because a ClusterQueue with an inactive check admits nothing."""
    for name, clusters in configs.items():
        active, _, _ = check_activity(clusters, workers)
        set_check_active(cluster, name, active=active)


def check_activity(clusters: Sequence[str] | None, workers: Mapping[str, bool]) -> tuple[bool, str, str]:
    """Return (active, reason, message) of a check; `workers` are the existing ones, and whether each is active."""
    if clusters is None:
        return False, "BadConfig", "Cannot load the AdmissionChecks parameters: the MultiKueueConfig is not found"
    missing = [name for name in clusters if name not in workers]
    inactive = [name for name in clusters if name in workers and not workers[name]]
    if not missing and not inactive:
        return True, "Active", "The admission check is active"
    parts = [f"{words}: [{' '.join(names)}]" for words, names in _named(missing, inactive) if names]
    usable = len(missing) + len(inactive) < len(clusters)
    return usable, "SomeActiveClusters" if usable else "NoUsableClusters", ", ".join(parts)


def _named(missing: list[str], inactive: list[str]) -> Sequence[tuple[str, list[str]]]:
    return (("Missing clusters", missing), ("Inactive clusters", inactive))


def worker_statuses(cluster: Cluster, rows: Sequence[MultiKueueCluster]) -> list[Status]:
    """Kueue's status of MultiKueueClusters."""
    return [{"conditions": _of_generation(row)} if row.conditions else {} for row in rows]


def check_statuses(cluster: Cluster, rows: Sequence[AdmissionCheck]) -> list[Status]:
    """Kueue's status of AdmissionChecks. Other controllers report the activity of their own checks."""
    configs = configs_of(cluster)
    workers = {row.name: row.is_active for row in MultiKueueCluster.objects.filter(cluster=cluster)} if configs else {}
    return [_check(row, configs, workers) for row in rows]


def _check(row: AdmissionCheck, configs: Mapping[str, Sequence[str] | None], workers: Mapping[str, bool]) -> Status:
    if row.name not in configs:
        return {}
    active, reason, message = check_activity(configs[row.name], workers)
    condition = {"type": "Active", "status": str(active), "reason": reason, "message": message}
    return {
        "conditions": [
            {**condition, "lastTransitionTime": timestamp(row.updated_at), "observedGeneration": row.generation}
        ]
    }


def _of_generation(row: MultiKueueCluster) -> list[dict[str, Any]]:
    return [{**each, "observedGeneration": row.generation} for each in row.conditions]
