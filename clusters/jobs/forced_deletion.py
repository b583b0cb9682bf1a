"""The pods that Kueue's gate FailureRecoveryPolicy deletes in the place of a kubelet that no longer answers."""

from __future__ import annotations

from typing import Final

from clusters.api_objects import JsonObject
from clusters.jobs.framework.conditions import is_true
from clusters.jobs.framework.manifest import annotations_of, is_being_deleted
from queues.manifests.kueue_keys import SAFE_TO_DELETE
from scheduling.model.times import parse_rfc3339

CONDITION: Final = "KueueFailureRecovery"
UNREACHABLE: Final = "node.kubernetes.io/unreachable"
GRACE_SECONDS: Final = 60.0
"""Kueue's time from a pod's deletion timestamp to its forced deletion."""


def asks_for_it(pod: JsonObject) -> bool:
    """Return whether the pod is being deleted, its annotation allows a forced deletion, and none has been requested. If
    a pod still exists after a forced deletion, a finalizer keeps it."""
    is_forced = was_failed(pod) and pod["metadata"].get("deletionGracePeriodSeconds") == 0
    return is_being_deleted(pod) and annotations_of(pod).get(SAFE_TO_DELETE) == "true" and not is_forced


def was_failed(pod: JsonObject) -> bool:
    """Return whether the policy set the pod to Failed."""
    return is_true(pod, CONDITION)


def is_overdue(pod: JsonObject, now: float) -> bool:
    """Return whether the pod should have finished terminating a minute ago."""
    return now >= parse_rfc3339(pod["metadata"]["deletionTimestamp"]) + GRACE_SECONDS
