"""Reads from a pod's manifest why it is not ready, or how it ended."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from clusters.api_objects import JsonObject

UNSCHEDULABLE: Final = "Unschedulable"
_MAX_REASON: Final = 128
_MAX_MESSAGE: Final = 1024
_MAX_RESTARTS: Final = 2**31 - 1


@dataclass(frozen=True, slots=True)
class PodStatus:
    """`reason` is Kubernetes' own; empty for a pod that runs and is ready."""

    reason: str = ""
    message: str = ""
    restarts: int = 0
    containers: tuple[str, ...] = ()


def pod_status(manifest: JsonObject) -> PodStatus:
    """Return the pod's own reason, or else the scheduler's, or else that of the first container that waits or has
    failed."""
    status, spec = manifest.get("status") or {}, manifest.get("spec") or {}
    entries = [*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())]
    reason, message = _reason(status, entries)
    return PodStatus(
        reason[:_MAX_REASON],
        message[:_MAX_MESSAGE],
        min(_MAX_RESTARTS, sum(int(entry.get("restartCount") or 0) for entry in entries)),
        tuple(
            str(container.get("name", ""))
            for container in (*(spec.get("initContainers") or ()), *(spec.get("containers") or ()))
        ),
    )


def why_not_ready(pods: Sequence[PodStatus]) -> str:
    """Return why the pods of a workload do not start, in the cluster's words; empty if unknown."""
    stuck = [pod for pod in pods if pod.reason == UNSCHEDULABLE]
    if not stuck:
        return ""
    whose = "its pods" if len(stuck) == len(pods) else f"{len(stuck)} of its {len(pods)} pods"
    return f"{whose[0].upper()}{whose[1:]} cannot be scheduled: {min(pod.message for pod in stuck)}"


def _reason(status: Mapping[str, Any], entries: Iterable[Mapping[str, Any]]) -> tuple[str, str]:
    if status.get("reason"):
        return str(status["reason"]), str(status.get("message") or "")
    for condition in status.get("conditions") or ():
        if condition.get("type") == "PodScheduled" and condition.get("status") == "False":
            return str(condition.get("reason") or ""), str(condition.get("message") or "")
    ended = ("", "")
    for entry in entries:
        state = entry.get("state") or {}
        if waiting := state.get("waiting"):
            return str(waiting.get("reason") or ""), str(waiting.get("message") or "")
        terminated = state.get("terminated")
        if terminated and terminated.get("exitCode"):
            said = str(terminated.get("message") or "")
            told = f"container {entry.get('name', '')} ended with exit code {terminated['exitCode']}"
            return str(terminated.get("reason") or "Error"), f"{told}: {said}" if said else told
        if terminated:
            ended = str(terminated.get("reason") or "Completed"), ""
    return ended
