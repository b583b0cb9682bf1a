"""Conversion between the JSON columns of a workload's status and the rules' values: conditions, domains, check
states."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from scheduling.lifecycle.inadmissible import PENDING_EVALUATION
from scheduling.model.admission_check import AdmissionCheckState, PodSetUpdate
from scheduling.model.topology import TopologyAssignment, TopologyDomain
from scheduling.model.vocabulary import AdmissionCheckStatus, ConditionStatus, ConditionType, WorkloadStatus
from scheduling.model.workload import Condition, PodSetAssignment, Workload

CHARGED_USAGE: Final = """CASE WHEN pod_set.reclaimable_count = 0 THEN usage.value::numeric
    ELSE div(usage.value::numeric, greatest(coalesce(pod_set.admitted_count, pod_set.count), 1))
        * least(coalesce(pod_set.admitted_count, pod_set.count), pod_set.count - pod_set.reclaimable_count) END"""
"""SQL of the amount that a pod set is charged of a resource, given `pod_set` and `usage`, the key and the value of its
`resource_usage`: without the pods that were reclaimed since its admission (Kueue's reclaimablePods)."""
_CONDITION_TYPES: Final = frozenset(type_.value for type_ in ConditionType)


def read_topology_assignment(value: Mapping[str, Any] | None) -> TopologyAssignment | None:
    """Read a stored `{levels, domains: [{values, count}]}`; None without a topology."""
    if not value or not value.get("levels"):
        return None
    domains = tuple(TopologyDomain(tuple(domain["values"]), domain["count"]) for domain in value["domains"])
    return TopologyAssignment(tuple(value["levels"]), domains)


def write_topology_assignment(assignment: PodSetAssignment) -> dict[str, Any] | None:
    """Write the form that `read_topology_assignment` reads; `delayed` while the topology is pending."""
    stored: dict[str, Any] = {}
    if assignment.topology_assignment is not None:
        stored["levels"] = list(assignment.topology_assignment.levels)
        stored["domains"] = [
            {"values": list(domain.values), "count": domain.count} for domain in assignment.topology_assignment.domains
        ]
    if assignment.delayed_topology_request:
        stored["delayed"] = assignment.delayed_topology_request
    return stored or None


def read_check_state(fields: Mapping[str, Any]) -> AdmissionCheckState:
    """Read one of a workload's stored check states."""
    return AdmissionCheckState(
        name=fields["name"],
        state=AdmissionCheckStatus(fields.get("state", AdmissionCheckStatus.PENDING)),
        message=fields.get("message", ""),
        last_transition_time=_seconds_of_text(fields.get("lastTransitionTime")),
        requeue_after_seconds=fields.get("requeueAfterSeconds"),
        retry_count=fields.get("retryCount", 0),
        pod_set_updates=tuple(PodSetUpdate.from_manifest(update) for update in fields.get("podSetUpdates") or ()),
    )


def write_check_states(states: Sequence[AdmissionCheckState]) -> list[dict[str, Any]]:
    """Check states in Kubernetes' form."""
    written: list[dict[str, Any]] = []
    for state in states:
        fields: dict[str, Any] = {
            "name": state.name,
            "state": state.state.value,
            "message": state.message,
            "lastTransitionTime": _text_of_seconds(state.last_transition_time),
            "retryCount": state.retry_count,
        }
        if state.requeue_after_seconds is not None:
            fields["requeueAfterSeconds"] = state.requeue_after_seconds
        if state.pod_set_updates:
            fields["podSetUpdates"] = [update.manifest() for update in state.pod_set_updates]
        written.append(fields)
    return written


def read_conditions(conditions: Sequence[Mapping[str, Any]]) -> dict[ConditionType, Condition]:
    """Read the stored conditions. Types that the rules do not know are left out."""
    return {
        ConditionType(fields["type"]): Condition(
            ConditionType(fields["type"]),
            ConditionStatus(fields["status"]),
            fields.get("reason", ""),
            fields.get("message", ""),
            _seconds_of_text(fields.get("lastTransitionTime")),
        )
        for fields in conditions
        if fields["type"] in _CONDITION_TYPES
    }


_TOLD_BY: Final = {
    WorkloadStatus.FINISHED: ConditionType.FINISHED,
    WorkloadStatus.EVICTED: ConditionType.EVICTED,
    WorkloadStatus.ADMITTED: ConditionType.ADMITTED,
    WorkloadStatus.QUOTA_RESERVED: ConditionType.ADMITTED,
    WorkloadStatus.PENDING: ConditionType.QUOTA_RESERVED,
}


def why(workload: Workload) -> tuple[str, str]:
    """Return (reason, message) of the condition that explains the workload's state. Before the first verdict, the
    workload is pending evaluation."""
    condition = workload.condition(_TOLD_BY[workload.status])
    if condition is not None:
        return str(condition.reason), condition.message
    waits = workload.active and workload.status is WorkloadStatus.PENDING
    return (PENDING_EVALUATION[0].value, PENDING_EVALUATION[1]) if waits else ("", "")


def _seconds_of_text(text: str | None) -> float:
    return datetime.fromisoformat(text).timestamp() if text else 0.0


def _text_of_seconds(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat().replace("+00:00", "Z")
