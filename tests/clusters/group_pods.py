"""Plain pods for tests: alone or of a group, as they are applied and as Kueue's webhook leaves them in the cluster."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from clusters.api_objects import JsonObject
from tests.clusters.system import queued
from tests.simulated_cluster import pod

KUEUE = "kueue.x-k8s.io"


def gpu_pod(
    name: str,
    *,
    group: str = "",
    total: int = 0,
    run_seconds: float = 1000,
    mib: int = 4000,
    annotations: Mapping[str, str] | None = None,
    **spec: Any,
) -> JsonObject:
    """A pod of namespace `team` with a slice of a device, alone or of a group of `total` pods."""
    notes = {"kueueweb.io/run-seconds": str(run_seconds), **(annotations or {})}
    if group:
        notes[f"{KUEUE}/pod-group-total-count"] = str(total)
    manifest = pod(name, annotations=notes, limits={"nvidia.com/gpu": "1", "nvidia.com/gpumem": str(mib)}, **spec)
    manifest["metadata"]["labels"] = {f"{KUEUE}/pod-group-name": group} if group else {}
    return queued(manifest)


def found_pod(name: str, **options: Any) -> JsonObject:
    """The same, as Kueue's webhook leaves it: gated, labelled and with a finalizer."""
    manifest = gpu_pod(name, schedulingGates=[{"name": f"{KUEUE}/admission"}], **options)
    manifest["metadata"]["labels"][f"{KUEUE}/managed"] = "true"
    manifest["metadata"]["finalizers"] = [f"{KUEUE}/managed"]
    return manifest
