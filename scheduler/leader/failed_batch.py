"""Writes the cluster in which a batch failed as a scenario that `manage.py simulate` replays.

Rows hold whole batches only, so after a failure they are as the failed batch found them. All times are moved so that
the batch is at the scenario's time 0. Devices are not in a scenario: it replays quota, topologies, queues and
priorities.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

from django.conf import settings

from accounts.models import Cluster, Namespace
from gpus.manifests import write_node
from gpus.models import Node
from gpus.services.node_manifests import node_spec
from queues.kinds import KINDS
from queues.models import Workload
from queues.services.configuration import manifest_of, objects
from queues.services.workload_objects import workload_manifest
from scheduling.model.node import PODS
from scheduling.model.quantity import format_amounts
from scheduling.model.times import rfc3339
from scheduling.model.vocabulary import WorkloadStatus
from scheduling.simulator.simulator import EPOCH

MAX_WORKLOADS: Final = 5_000
"""The workloads of the batch come first, then those that hold quota, then others."""
MAX_FILES: Final = 20
MAX_CYCLES: Final = 1_000
_KINDS: Final[Mapping[str, str]] = {
    "Topology": "topologies",
    "LimitRange": "limitRanges",
    "RuntimeClass": "runtimeClasses",
    "ResourceFlavor": "resourceFlavors",
    "AdmissionCheck": "admissionChecks",
    "Cohort": "cohorts",
    "ClusterQueue": "clusterQueues",
    "LocalQueue": "localQueues",
    "Reservation": "reservations",
}
_TIMES: Final = frozenset({"creationTimestamp", "lastTransitionTime", "requeueAt"})


def write_failed_batch(cluster_id: int, workloads: Collection[int], now: float) -> Path:
    """Write the scenario of a batch about these workloads (row ids), and return its file. Raises OSError."""
    cluster = Cluster.objects.get(pk=cluster_id)
    folder = Path(settings.FAILED_BATCH_FOLDER or Path(tempfile.gettempdir()) / "kueueweb-failed-batches")
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    name = f"{cluster.name}-{datetime.fromtimestamp(now, UTC):%Y%m%dT%H%M%SZ}"
    path = folder / f"{name}.json"
    path.write_text(json.dumps([{"name": name, "scenario": _scenario(cluster, workloads, now)}], indent=1) + "\n")
    for old in sorted(folder.glob("*.json"), key=lambda found: found.stat().st_mtime)[:-MAX_FILES]:
        old.unlink(missing_ok=True)
    return path


def _scenario(cluster: Cluster, workloads: Collection[int], now: float) -> dict[str, Any]:
    rows = _workloads(cluster, workloads)
    nodes = list(Node.objects.filter(cluster=cluster))
    waiting = sum(row.quota_reserved_at is None for row in rows)
    scenario: dict[str, Any] = {
        "namespaces": [
            {"metadata": {"name": found.name, "labels": found.labels}}
            for found in Namespace.objects.filter(cluster=cluster)
        ],
        "nodes": [write_node(node_spec(node)) for node in nodes],
        "pods": [pod for node in nodes for pod in _foreign_pods(node)],
        **{key: [manifest_of(row) for row in objects(cluster, KINDS[kind])] for kind, key in _KINDS.items()},
        "workloads": [workload_manifest(row) for row in rows],
        "cycles": min(waiting + 1, MAX_CYCLES),
        "placement": cluster.placement,
        **_settings(cluster.configuration),
    }
    by = timedelta(seconds=EPOCH - now)
    moved: dict[str, Any] = _moved(scenario, by)
    for reservation in moved["reservations"]:
        for edge in ("start", "end"):
            reservation["spec"][edge] = _later(reservation["spec"][edge], by)
    return moved


def _workloads(cluster: Cluster, workloads: Collection[int]) -> list[Workload]:
    unfinished = Workload.objects.filter(cluster=cluster).exclude(status=WorkloadStatus.FINISHED)
    concerned, holding = unfinished.filter(pk__in=workloads), unfinished.filter(quota_reserved_at__isnull=False)
    found: dict[int, None] = {}
    for rows in (concerned, holding, unfinished):
        found.update(dict.fromkeys(rows.order_by("pk").values_list("pk", flat=True)[:MAX_WORKLOADS]))
    kept = Workload.objects.filter(pk__in=list(found)[:MAX_WORKLOADS])
    return list(kept.select_related("job").prefetch_related("pod_sets").order_by("pk"))


def _foreign_pods(node: Node) -> Iterator[dict[str, Any]]:
    """Pods that represent all other pods on a node; the first takes all of their resources."""
    amounts = dict(node.foreign_usage)
    for number in range(max(amounts.pop(PODS, 0), bool(amounts))):
        resources = {"requests": format_amounts(amounts)} if number == 0 else {}
        container = {"name": "main", "resources": resources}
        metadata = {"name": f"others-on-{node.name}-{number}"}
        yield {"metadata": metadata, "spec": {"nodeName": node.name, "containers": [container]}}


def _settings(configuration: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of Kueue's Configuration that a scenario has."""
    found = {key: configuration.get(key) for key in ("fairSharing", "admissionFairSharing", "featureGates")}
    found["transformations"] = (configuration.get("resources") or {}).get("transformations")
    return {key: value for key, value in found.items() if value is not None}


def _moved(value: Any, by: timedelta, key: str = "") -> Any:
    """Return the same, with each time moved; values that JSON does not have become text."""
    if isinstance(value, Mapping):
        return {name: _moved(item, by, name) for name, item in value.items()}
    if isinstance(value, Iterable) and not isinstance(value, str):
        return [_moved(item, by) for item in value]
    if key in _TIMES and value:
        return _later(value, by)
    return value if value is None or isinstance(value, str | int | float | bool) else str(value)


def _later(moment: Any, by: timedelta) -> str:
    return rfc3339(datetime.fromisoformat(str(moment)) + by)
