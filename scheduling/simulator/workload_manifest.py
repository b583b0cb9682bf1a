"""Reads a Workload of a scenario (kueue.x-k8s.io/v1beta2) with its status.

The manifest is taken as valid, the API's defaults are applied. Raises KeyError, ValueError or `InvalidQuantity` for a
malformed one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from scheduling.model.admission_check import AdmissionCheckState, PodSetUpdate
from scheduling.model.pod import PodTemplate
from scheduling.model.quantity import parse_amount
from scheduling.model.times import parse_rfc3339
from scheduling.model.topology import TopologyRequest
from scheduling.model.topology_encoding import decode
from scheduling.model.vocabulary import AdmissionCheckStatus, ConditionStatus, ConditionType
from scheduling.model.workload import Admission, Condition, PodSet, PodSetAssignment, RequeueState, Workload

ADMISSION_GATES = "kueue.x-k8s.io/admission-gated-by"
ALLOWED_FLAVORS = "kueue.x-k8s.io/workload-allowed-resource-flavors"
PRIORITY_BOOST = "kueue.x-k8s.io/priority-boost"
REPLACED_SLICE = "kueue.x-k8s.io/workload-slice-replacement-for"
IS_GROUP_WORKLOAD = "kueue.x-k8s.io/is-group-workload"

_CONDITIONS: Final = frozenset(ConditionType)
_WHOLE_NUMBER: Final = re.compile(r"[+-]?[0-9]{1,10}", re.ASCII)

Manifest = Mapping[str, Any]


def read_workload(manifest: Manifest) -> Workload:
    """Read a Workload with its status."""
    metadata, spec, status = manifest["metadata"], manifest.get("spec") or {}, manifest.get("status") or {}
    annotations = metadata.get("annotations") or {}
    admission = status.get("admission")
    requeue = status.get("requeueState")
    return Workload(
        namespace=metadata.get("namespace") or "default",
        name=metadata["name"],
        uid=metadata.get("uid") or "",
        queue_name=spec.get("queueName") or "",
        pod_sets=tuple(_read_pod_set(pod_set) for pod_set in spec.get("podSets") or ()),
        priority=spec.get("priority") or 0,
        active=spec.get("active", True),
        created_at=parse_rfc3339(metadata["creationTimestamp"]),
        conditions={c.type: c for c in map(_read_condition, _known(status.get("conditions") or ()))},
        admission=_read_admission(admission) if admission else None,
        requeue_state=_read_requeue_state(requeue) if requeue is not None else None,
        reclaimable_pods={entry["name"]: entry["count"] for entry in status.get("reclaimablePods") or ()},
        admission_checks=tuple(_read_check(check) for check in status.get("admissionChecks") or ()),
        maximum_execution_time_seconds=spec.get("maximumExecutionTimeSeconds"),
        closed_preemption_gates=_closed_gates(spec, status),
        unhealthy_nodes=tuple(node["name"] for node in status.get("unhealthyNodes") or ()),
        replaces=annotations.get(REPLACED_SLICE),
        priority_boost=_number(annotations.get(PRIORITY_BOOST)),
        admission_gates=_words(annotations.get(ADMISSION_GATES)),
        allowed_flavors=_words(annotations.get(ALLOWED_FLAVORS)),
        single_pod=_is_single_pod(metadata),
    )


def _known(conditions: Iterable[Manifest]) -> Iterable[Manifest]:
    """Leave out conditions that only a newer Kueue knows."""
    return (condition for condition in conditions if condition["type"] in _CONDITIONS)


def _words(text: str | None) -> tuple[str, ...]:
    return tuple(word.strip() for word in text.split(",") if word.strip()) if text else ()


def _number(text: str | None) -> int:
    """Return a number in an annotation. One that Kueue's webhook would have refused is ignored."""
    return int(text) if text and _WHOLE_NUMBER.fullmatch(text) else 0


def _is_single_pod(metadata: Manifest) -> bool:
    owners = [owner["kind"] for owner in metadata.get("ownerReferences") or ()]
    return owners == ["Pod"] and IS_GROUP_WORKLOAD not in (metadata.get("annotations") or {})


def _closed_gates(spec: Manifest, status: Manifest) -> tuple[str, ...]:
    is_open = {gate["name"] for gate in status.get("preemptionGates") or () if gate.get("position") == "Open"}
    return tuple(gate["name"] for gate in spec.get("preemptionGates") or () if gate["name"] not in is_open)


def _read_check(manifest: Manifest) -> AdmissionCheckState:
    return AdmissionCheckState(
        manifest["name"],
        AdmissionCheckStatus(manifest["state"]),
        manifest.get("message") or "",
        parse_rfc3339(manifest["lastTransitionTime"]) if manifest.get("lastTransitionTime") else 0.0,
        manifest.get("requeueAfterSeconds"),
        manifest.get("retryCount") or 0,
        pod_set_updates=tuple(PodSetUpdate.from_manifest(update) for update in manifest.get("podSetUpdates") or ()),
    )


def _read_pod_set(manifest: Manifest) -> PodSet:
    return PodSet(
        manifest.get("name") or "main",
        manifest.get("count", 1),
        PodTemplate.from_manifest(manifest.get("template") or {}),
        manifest.get("minCount"),
        TopologyRequest.from_manifest(manifest.get("topologyRequest")),
    )


def _read_condition(manifest: Manifest) -> Condition:
    return Condition(
        ConditionType(manifest["type"]),
        ConditionStatus(manifest["status"]),
        manifest.get("reason") or "",
        manifest.get("message") or "",
        parse_rfc3339(manifest["lastTransitionTime"]) if manifest.get("lastTransitionTime") else 0.0,
    )


def _read_requeue_state(manifest: Manifest) -> RequeueState:
    at = manifest.get("requeueAt")
    return RequeueState(manifest.get("count") or 0, parse_rfc3339(at) if at else None)


def _read_admission(manifest: Manifest) -> Admission:
    return Admission(
        manifest["clusterQueue"],
        tuple(
            PodSetAssignment(
                assignment.get("name") or "main",
                assignment.get("count", 1),
                dict(assignment.get("flavors") or {}),
                {name: parse_amount(name, text) for name, text in (assignment.get("resourceUsage") or {}).items()},
                decode(topology) if (topology := assignment.get("topologyAssignment")) else None,
                assignment.get("delayedTopologyRequest") or "",
            )
            for assignment in manifest.get("podSetAssignments") or ()
        ),
    )
