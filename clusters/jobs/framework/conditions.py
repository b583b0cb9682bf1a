"""Conditions in the status of a workload, set as Kueue's job controllers set them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from clusters.jobs.framework.manifest import JsonObject, annotations_of, dig, mapping_at
from queues.manifests import kueue_keys as keys

ADMITTED: Final = "Admitted"
EVICTED: Final = "Evicted"
FINISHED: Final = "Finished"
PODS_READY: Final = "PodsReady"
QUOTA_RESERVED: Final = "QuotaReserved"
REQUEUED: Final = "Requeued"
WAITING_FOR_REPLACEMENT_PODS: Final = "WaitingForReplacementPods"
ON_HOLD: Final = "OnHold"
PENDING_EVALUATION: Final = "PendingEvaluation"


def condition_of(obj: Mapping[str, Any], kind: str) -> Mapping[str, Any] | None:
    conditions = dig(obj, "status", "conditions") or ()
    return next((condition for condition in conditions if condition.get("type") == kind), None)


def is_true(obj: Mapping[str, Any], kind: str) -> bool:
    condition = condition_of(obj, kind)
    return condition is not None and condition.get("status") == "True"


def set_condition(obj: JsonObject, kind: str, status: bool, reason: str, message: str, now: str) -> bool:
    """Set the condition; return whether anything changed. The time of the transition changes with the status."""
    conditions = mapping_at(obj, "status").setdefault("conditions", [])
    wanted = {"status": "True" if status else "False", "reason": reason, "message": message}
    for condition in conditions:
        if condition.get("type") == kind:
            changed = any(condition.get(key) != value for key, value in wanted.items())
            if condition.get("status") != wanted["status"]:
                condition["lastTransitionTime"] = now
            condition.update(wanted)
            return changed
    conditions.append({"type": kind, **wanted, "lastTransitionTime": now})
    return True


def is_finished(workload: Mapping[str, Any]) -> bool:
    return is_true(workload, FINISHED)


def is_admitted(workload: Mapping[str, Any]) -> bool:
    return is_true(workload, ADMITTED)


def has_quota(workload: Mapping[str, Any]) -> bool:
    return is_true(workload, QUOTA_RESERVED)


def is_evicted(workload: Mapping[str, Any]) -> bool:
    return is_true(workload, EVICTED)


def is_on_hold(workload: Mapping[str, Any]) -> bool:
    condition = condition_of(workload, QUOTA_RESERVED)
    return condition is not None and condition.get("status") == "False" and condition.get("reason") == ON_HOLD


def is_active(workload: Mapping[str, Any]) -> bool:
    return dig(workload, "spec", "active") is not False


def finish(workload: JsonObject, reason: str, message: str, now: str) -> bool:
    """Finish the workload; return whether it was unfinished before."""
    return not is_finished(workload) and set_condition(workload, FINISHED, True, reason, message, now)


def release_quota(workload: JsonObject, reason: str, message: str, now: str) -> bool:
    """Remove the reservation, and with it the admission, from the workload; return whether anything changed."""
    changed = set_condition(workload, QUOTA_RESERVED, False, reason, message, now)
    changed = mapping_at(workload, "status").pop("admission", None) is not None or changed
    reason, message = "NoReservation", "The workload has no reservation"
    return set_condition(workload, ADMITTED, False, reason, message, now) or changed


def is_single_pod(workload: Mapping[str, Any]) -> bool:
    """Return whether the workload is one pod that no controller recreates. Such a workload ends with its pod."""
    owners = dig(workload, "metadata", "ownerReferences") or []
    if len(owners) != 1 or annotations_of(workload).get(keys.IS_GROUP_WORKLOAD) == "true":
        return False
    return (owners[0].get("apiVersion"), owners[0].get("kind")) == ("v1", "Pod")
