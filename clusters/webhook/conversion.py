"""Kueue's objects between v1beta1 and v1beta2, by the rules of Kueue's conversion webhook (pure).

Fields that only one version has are dropped in the other, as in Kueue.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Any, Final

import orjson

from clusters.api_objects import JsonObject
from clusters.served.kueue_kinds import GROUP
from clusters.webhook.reviews import BadReview
from scheduling.model.topology import TopologyAssignment
from scheduling.model.topology_encoding import decode, encode

CONVERT: Final = "/convert"
API_VERSION: Final = "apiextensions.k8s.io/v1"
OLD: Final = f"{GROUP}/v1beta1"
NEW: Final = f"{GROUP}/v1beta2"
_MAX_MESSAGE: Final = 1024
_STOPS: Final = "MayStopSearch"
_CLASSES: Final = {
    "kueue.x-k8s.io/workloadpriorityclass": (GROUP, "WorkloadPriorityClass"),
    "scheduling.k8s.io/priorityclass": ("scheduling.k8s.io", "PriorityClass"),
}
"""priorityClassSource of v1beta1 -> group and kind of v1beta2."""


class NotConvertible(ValueError):
    """An object that cannot be converted. The message names it and the field."""


def answer_conversion(body: bytes) -> bytes:
    """Return the ConversionReview with the objects in the version that is asked for. Raises BadReview."""
    try:
        review = orjson.loads(body)
    except orjson.JSONDecodeError as mistake:
        raise BadReview(f"the body is not JSON: {mistake}") from mistake
    request = review.get("request") if isinstance(review, dict) else None
    if not isinstance(request, dict) or review.get("apiVersion") != API_VERSION or not request.get("uid"):
        raise BadReview(f"request.uid: Required value: POST a ConversionReview of {API_VERSION}")
    response: JsonObject = {"uid": request["uid"], "result": {"status": "Success"}}
    try:
        wanted = str(request.get("desiredAPIVersion") or "")
        response["convertedObjects"] = [convert(found, wanted) for found in request.get("objects") or ()]
    except NotConvertible as mistake:
        status = {"status": "Failure", "reason": "Invalid", "code": int(HTTPStatus.UNPROCESSABLE_ENTITY)}
        response["result"] = {**status, "message": str(mistake)[:_MAX_MESSAGE]}
        response["convertedObjects"] = []
    return orjson.dumps({"apiVersion": API_VERSION, "kind": "ConversionReview", "response": response})


def convert(found: Mapping[str, Any], wanted: str) -> JsonObject:
    """Return the object in the version `wanted`. Raises NotConvertible."""
    version, kind = found.get("apiVersion"), str(found.get("kind") or "")
    if version == wanted:
        return dict(found)
    rules = {(OLD, NEW): _TO_NEW, (NEW, OLD): _TO_OLD}.get((str(version), wanted))
    name = (found.get("metadata") or {}).get("name")
    if rules is None:
        raise NotConvertible(f"{kind} {name}: apiVersion: Unsupported value: from {version} to {wanted}")
    converted = {**found, "apiVersion": wanted}
    rule = rules.get(kind)
    try:
        return converted if rule is None else rule(converted)
    except (AttributeError, KeyError, TypeError, ValueError) as mistake:
        raise NotConvertible(f"{kind} {name}: cannot be read as {version}: {mistake!r}") from mistake


def _part(found: JsonObject, key: str) -> JsonObject:
    return dict(found.get(key) or {})


def _without(found: Mapping[str, Any], *keys: str) -> JsonObject:
    return {key: value for key, value in found.items() if key not in keys}


def _renamed(found: JsonObject, before: str, after: str) -> JsonObject:
    return {after if key == before else key: value for key, value in found.items()}


def _with(found: JsonObject, **parts: JsonObject) -> JsonObject:
    """Return the object with these parts, without parts that are empty and that it did not have."""
    return {**found, **{key: part for key, part in parts.items() if part or key in found}}


# -- ClusterQueue, Cohort, LocalQueue


def _new_cluster_queue(found: JsonObject) -> JsonObject:
    spec = _renamed(_part(found, "spec"), "cohort", "cohortName")
    checks = spec.pop("admissionChecks", None)
    if checks:
        spec["admissionChecksStrategy"] = {"admissionChecks": [{"name": name} for name in checks]}
    fungibility = spec.get("flavorFungibility")
    if fungibility:
        old = {"whenCanBorrow": "Borrow", "whenCanPreempt": "Preempt"}
        stops = {key: _STOPS for key, value in old.items() if fungibility.get(key) == value}
        spec["flavorFungibility"] = {**fungibility, **stops}
    status = _without(_part(found, "status"), "pendingWorkloadsStatus")
    return _with(found, spec=spec, status=_without_consumption(status))


def _old_cluster_queue(found: JsonObject) -> JsonObject:
    spec = _without(_part(found, "spec"), "concurrentAdmissionPolicy")
    return _with(found, spec=_renamed(spec, "cohortName", "cohort"))


def _new_cohort(found: JsonObject) -> JsonObject:
    return _with(found, status=_without_consumption(_part(found, "status")))


def _without_consumption(status: JsonObject) -> JsonObject:
    """Remove the consumed resources, which only LocalQueues have."""
    sharing = status.get("fairSharing")
    return {**status, "fairSharing": _without(sharing, "admissionFairSharingStatus")} if sharing else status


def _new_local_queue(found: JsonObject) -> JsonObject:
    status = _without(_part(found, "status"), "flavors")
    return _with(found, status=_renamed(status, "flavorUsage", "flavorsUsage"))


def _old_local_queue(found: JsonObject) -> JsonObject:
    return _with(found, status=_renamed(_part(found, "status"), "flavorsUsage", "flavorUsage"))


# -- Workload


def _new_workload(found: JsonObject) -> JsonObject:
    spec = _part(found, "spec")
    source, name = spec.pop("priorityClassSource", ""), spec.pop("priorityClassName", "")
    if source in _CLASSES:
        group, kind = _CLASSES[source]
        spec["priorityClassRef"] = {"group": group, "kind": kind, "name": name}
    status = _renamed(
        _part(found, "status"), "accumulatedPastExexcutionTimeSeconds", "accumulatedPastExecutionTimeSeconds"
    )
    return _with(found, spec=spec, status=_with_topologies(status, _encoded))


def _old_workload(found: JsonObject) -> JsonObject:
    spec = _without(_part(found, "spec"), "preemptionGates", "priorityClassRef")
    if "podSets" in spec:
        spec["podSets"] = [_old_pod_set(each) for each in spec["podSets"] or ()]
    asked = _part(found, "spec").get("priorityClassRef") or {}
    for source, (group, kind) in _CLASSES.items():
        if (asked.get("group"), asked.get("kind")) == (group, kind):
            spec |= {"priorityClassSource": source, "priorityClassName": asked.get("name") or ""}
    status = _renamed(
        _without(_part(found, "status"), "preemptionGates"),
        "accumulatedPastExecutionTimeSeconds",
        "accumulatedPastExexcutionTimeSeconds",
    )
    return _with(found, spec=spec, status=_with_topologies(status, _plain))


def _old_pod_set(pod_set: JsonObject) -> JsonObject:
    request = pod_set.get("topologyRequest")
    if not request:
        return pod_set
    return {**pod_set, "topologyRequest": _without(request, "podsetSliceRequiredTopologyConstraints")}


def _with_topologies(status: JsonObject, write: Callable[[TopologyAssignment], JsonObject]) -> JsonObject:
    admission = status.get("admission")
    if not admission or not admission.get("podSetAssignments"):
        return status
    assignments = [
        {**each, "topologyAssignment": write(decode(each["topologyAssignment"]))}
        if each.get("topologyAssignment")
        else each
        for each in admission["podSetAssignments"]
    ]
    return {**status, "admission": {**admission, "podSetAssignments": assignments}}


def _encoded(assignment: TopologyAssignment) -> JsonObject:
    return encode(assignment)


def _plain(assignment: TopologyAssignment) -> JsonObject:
    domains = [{"values": list(domain.values), "count": domain.count} for domain in assignment.domains]
    return {"levels": list(assignment.levels), "domains": domains}


# -- AdmissionCheck, MultiKueue


def _new_admission_check(found: JsonObject) -> JsonObject:
    return _with(found, spec=_without(_part(found, "spec"), "retryDelayMinutes"))


def _new_multikueue_cluster(found: JsonObject) -> JsonObject:
    spec = _part(found, "spec")
    kube_config, profile = spec.pop("kubeConfig", None), spec.pop("clusterProfileRef", None)
    source = {"kubeConfig": kube_config} if (kube_config or {}).get("location") else {}
    spec["clusterSource"] = {**source, "clusterProfileRef": profile} if profile else source
    return _with(found, spec=spec)


def _old_multikueue_cluster(found: JsonObject) -> JsonObject:
    spec = _part(found, "spec")
    source = spec.pop("clusterSource", None) or {}
    return _with(found, spec={**spec, **{key: value for key, value in source.items() if value}})


def _old_multikueue_config(found: JsonObject) -> JsonObject:
    return _with(found, spec=_without(_part(found, "spec"), "quotaManagement"))


_Rule = Callable[[JsonObject], JsonObject]
_TO_NEW: Final[Mapping[str, _Rule]] = {
    "AdmissionCheck": _new_admission_check,
    "ClusterQueue": _new_cluster_queue,
    "Cohort": _new_cohort,
    "LocalQueue": _new_local_queue,
    "MultiKueueCluster": _new_multikueue_cluster,
    "Workload": _new_workload,
}
_TO_OLD: Final[Mapping[str, _Rule]] = {
    "ClusterQueue": _old_cluster_queue,
    "LocalQueue": _old_local_queue,
    "MultiKueueCluster": _old_multikueue_cluster,
    "MultiKueueConfig": _old_multikueue_config,
    "Workload": _old_workload,
}
