"""Plain pods as jobs (pure): which found pods may become workloads, and how a pod is taken over.

A pod cannot be suspended; Kueue's scheduling gate replaces that. A gated pod has not run, and does not run until the
gate is removed. Only such found pods are taken over.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Final

from clusters.api_objects import JsonObject
from clusters.jobs.framework.manifest import controller_of
from clusters.jobs.objects import (
    JOB_UID_LABEL,
    KUEUE_GATES,
    QUEUE_LABEL,
)
from clusters.jobs.registry import KINDS
from queues.manifests.kueue_keys import MANAGED

KUEUE_FINALIZER: Final = MANAGED
"""Kueue's webhook puts it on pods, so that none ends unseen. A pod of a group keeps it until another pod replaces it or
the group ends (Kueue); the result of a single pod is kept in its row.
"""


def is_gated(pod: Mapping[str, Any]) -> bool:
    """Return whether the pod has one of Kueue's gates, and so has not run yet."""
    return any(gate["name"] in KUEUE_GATES for gate in pod["spec"].get("schedulingGates") or ())


def ended_by_itself(pod: Mapping[str, Any]) -> bool:
    """Return whether a pod whose phase is Succeeded or Failed ended before it was asked to stop. A stopped pod may end
    without an error although its work is not done."""
    metadata = pod["metadata"]
    if not metadata.get("deletionTimestamp"):
        return True
    grace = timedelta(seconds=metadata.get("deletionGracePeriodSeconds") or 0)
    asked = datetime.fromisoformat(metadata["deletionTimestamp"]) - grace
    states = [entry.get("state") or {} for entry in (pod.get("status") or {}).get("containerStatuses") or ()]
    ends = [(state.get("terminated") or {}).get("finishedAt") for state in states]
    return bool(ends) and all(end is not None and datetime.fromisoformat(end) < asked for end in ends)


def is_kept_ended(pod: Mapping[str, Any]) -> bool:
    """Return whether only Kueue's finalizer keeps a pod that will not run again because it failed, or was deleted
    before it had a node."""
    metadata = pod["metadata"]
    if KUEUE_FINALIZER not in (metadata.get("finalizers") or ()):
        return False
    failed = (pod.get("status") or {}).get("phase") == "Failed"
    return failed or (bool(metadata.get("deletionTimestamp")) and not pod["spec"].get("nodeName"))


def may_be_taken(pod: Mapping[str, Any]) -> bool:
    """Return whether a found pod becomes a workload: it names a queue, is gated, and belongs to no other job."""
    metadata = pod["metadata"]
    labels = metadata.get("labels") or {}
    if not labels.get(QUEUE_LABEL) or JOB_UID_LABEL in labels or metadata.get("deletionTimestamp"):
        return False
    owner = controller_of(pod) or {}
    return is_gated(pod) and (owner.get("apiVersion", ""), owner.get("kind", "")) not in KINDS


def released_pod(pod: Mapping[str, Any]) -> JsonObject | None:
    """Return the merge patch that removes Kueue's finalizer from a pod; None if it has none."""
    finalizers = _without_finalizer(pod)
    return {"metadata": {"uid": pod["metadata"]["uid"], **finalizers}} if finalizers else None


def _without_finalizer(pod: Mapping[str, Any]) -> JsonObject:
    finalizers = pod["metadata"].get("finalizers") or []
    if KUEUE_FINALIZER not in finalizers:
        return {}
    return {"finalizers": [name for name in finalizers if name != KUEUE_FINALIZER]}
