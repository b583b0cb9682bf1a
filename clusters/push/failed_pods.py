"""Sets pods to Failed that no kubelet will end, with a condition that gives the reason."""

from __future__ import annotations

from datetime import datetime

from clusters.api_objects import PODS, JsonObject
from clusters.client import ClusterClient
from clusters.jobs.kinds.pod import is_terminated
from scheduling.model.times import rfc3339


def fail_pod(client: ClusterClient, pod: JsonObject, why: JsonObject, now: datetime) -> None:
    """Add the condition `why` (its type, reason and message) and set the phase to Failed, unless the pod has ended.

    Raises ClusterError, with `conflict` if the pod was changed since it was read.
    """
    metadata, status = pod["metadata"], pod.get("status") or {}
    condition = {**why, "status": "True", "lastTransitionTime": rfc3339(now)}
    patch = {
        "metadata": {"uid": metadata["uid"], "resourceVersion": metadata["resourceVersion"]},
        "status": {
            "phase": status["phase"] if is_terminated(pod) else "Failed",
            "conditions": [*(status.get("conditions") or ()), condition],
        },
    }
    client.patch(PODS, metadata["namespace"], metadata["name"], patch, subresource="status")
