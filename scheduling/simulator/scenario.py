"""Reads Kubernetes manifests (kueue.x-k8s.io/v1beta2, v1 Namespace and Node) into the core's objects.

For scenarios of the simulator: the manifests are taken as valid, the API's defaults are applied. Raises KeyError,
ValueError or `InvalidQuantity` for malformed ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from scheduling.devices.search.namespace_quota import NamespaceQuota, whole_amounts
from scheduling.model.admission_check import AdmissionCheck, AdmissionCheckState
from scheduling.model.cluster_queue import (
    AdmissionCheckRule,
    BorrowWithinCohort,
    ClusterQueue,
    ClusterQueuePreemption,
    FlavorFungibility,
)
from scheduling.model.cohort import Cohort, FlavorQuotas, ResourceGroup, ResourceQuota
from scheduling.model.configuration import (
    DEFAULT_PREEMPTION_STRATEGIES,
    Configuration,
    FairSharing,
)
from scheduling.model.limit_range import LimitRange, LimitRangeItem
from scheduling.model.local_queue import LocalQueue
from scheduling.model.node import Node
from scheduling.model.pod import PodTemplate
from scheduling.model.pod_defaults import RuntimeClass
from scheduling.model.quantity import NANOS, parse_amount, parse_quantity
from scheduling.model.resource_flavor import ResourceFlavor
from scheduling.model.resources import Transformation
from scheduling.model.selectors import LabelSelector, Taint, Toleration
from scheduling.model.times import parse_rfc3339
from scheduling.model.topology import TopologyRequest
from scheduling.model.topology_encoding import decode
from scheduling.model.vocabulary import (
    AdmissionCheckStatus,
    AdmissionMode,
    BorrowWithinCohortPolicy,
    ConditionStatus,
    ConditionType,
    FungibilityPolicy,
    FungibilityPreference,
    PreemptionStrategy,
    QueueingStrategy,
    ReclaimWithinCohortPolicy,
    StopPolicy,
    TransformationStrategy,
    WithinClusterQueuePolicy,
)
from scheduling.model.workload import Admission, Condition, PodSet, PodSetAssignment, RequeueState, Workload

Manifest = Mapping[str, Any]


def read_resource_flavor(manifest: Manifest) -> ResourceFlavor:
    """A ResourceFlavor."""
    spec = manifest.get("spec") or {}
    return ResourceFlavor(
        manifest["metadata"]["name"],
        dict(spec.get("nodeLabels") or {}),
        tuple(Taint.from_manifest(taint) for taint in spec.get("nodeTaints") or ()),
        tuple(Toleration.from_manifest(toleration) for toleration in spec.get("tolerations") or ()),
        spec.get("topologyName") or None,
    )


def read_resource_groups(groups: Iterable[Manifest]) -> tuple[ResourceGroup, ...]:
    """`spec.resourceGroups` of a ClusterQueue or a Cohort."""
    return tuple(
        ResourceGroup(
            tuple(group["coveredResources"]),
            tuple(
                FlavorQuotas(flavor["name"], {quota["name"]: _read_quota(quota) for quota in flavor["resources"]})
                for flavor in group["flavors"]
            ),
        )
        for group in groups
    )


def _read_quota(quota: Manifest) -> ResourceQuota:
    name = quota["name"]
    borrowing, lending = quota.get("borrowingLimit"), quota.get("lendingLimit")
    return ResourceQuota(
        parse_amount(name, quota.get("nominalQuota", "0")),
        parse_amount(name, borrowing) if borrowing is not None else None,
        parse_amount(name, lending) if lending is not None else None,
    )


def _read_weight(spec: Manifest) -> float:
    weight = (spec.get("fairSharing") or {}).get("weight")
    return 1.0 if weight is None else parse_quantity(weight) / NANOS


def read_cohort(manifest: Manifest) -> Cohort:
    """A Cohort."""
    spec = manifest.get("spec") or {}
    return Cohort(
        manifest["metadata"]["name"],
        spec.get("parentName") or "",
        read_resource_groups(spec.get("resourceGroups") or ()),
        _read_weight(spec),
    )


def read_cluster_queue(manifest: Manifest) -> ClusterQueue:
    """A ClusterQueue, with Kueue's defaults."""
    spec = manifest.get("spec") or {}
    selector = spec.get("namespaceSelector")
    checks = (spec.get("admissionChecksStrategy") or {}).get("admissionChecks") or ()
    scope = spec.get("admissionScope") or {}
    return ClusterQueue(
        name=manifest["metadata"]["name"],
        cohort_name=spec.get("cohortName") or "",
        resource_groups=read_resource_groups(spec.get("resourceGroups") or ()),
        queueing_strategy=QueueingStrategy(spec.get("queueingStrategy") or QueueingStrategy.BEST_EFFORT_FIFO),
        namespace_selector=LabelSelector.from_manifest(selector) if selector is not None else None,
        preemption=_read_preemption(spec.get("preemption") or {}),
        flavor_fungibility=_read_fungibility(spec.get("flavorFungibility") or {}),
        fair_weight=_read_weight(spec),
        stop_policy=StopPolicy(spec.get("stopPolicy") or StopPolicy.NONE),
        admission_checks=tuple(AdmissionCheckRule(c["name"], tuple(c.get("onFlavors") or ())) for c in checks),
        admission_mode=AdmissionMode(scope.get("admissionMode") or AdmissionMode.NO_ADMISSION_FAIR_SHARING),
    )


def _read_preemption(manifest: Manifest) -> ClusterQueuePreemption:
    borrowing = manifest.get("borrowWithinCohort") or {}
    return ClusterQueuePreemption(
        WithinClusterQueuePolicy(manifest.get("withinClusterQueue") or WithinClusterQueuePolicy.NEVER),
        ReclaimWithinCohortPolicy(manifest.get("reclaimWithinCohort") or ReclaimWithinCohortPolicy.NEVER),
        BorrowWithinCohort(
            BorrowWithinCohortPolicy(borrowing.get("policy") or BorrowWithinCohortPolicy.NEVER),
            borrowing.get("maxPriorityThreshold"),
        ),
    )


def _read_fungibility(manifest: Manifest) -> FlavorFungibility:
    preference = manifest.get("preference")
    return FlavorFungibility(
        FungibilityPolicy(manifest.get("whenCanBorrow") or FungibilityPolicy.MAY_STOP_SEARCH),
        FungibilityPolicy(manifest.get("whenCanPreempt") or FungibilityPolicy.TRY_NEXT_FLAVOR),
        FungibilityPreference(preference) if preference else None,
    )


def read_local_queue(manifest: Manifest) -> LocalQueue:
    """A LocalQueue."""
    spec = manifest.get("spec") or {}
    metadata = manifest["metadata"]
    return LocalQueue(
        metadata.get("namespace") or "default",
        metadata["name"],
        spec["clusterQueue"],
        StopPolicy(spec.get("stopPolicy") or StopPolicy.NONE),
        _read_weight(spec),
    )


def read_admission_check(manifest: Manifest) -> AdmissionCheck:
    """An AdmissionCheck."""
    return AdmissionCheck(manifest["metadata"]["name"], (manifest.get("spec") or {}).get("controllerName") or "")


def read_node(manifest: Manifest) -> Node:
    """A v1 Node without devices. A node without a Ready condition counts as not ready."""
    spec, status = manifest.get("spec") or {}, manifest.get("status") or {}
    allocatable = status.get("allocatable") or status.get("capacity") or {}
    conditions = {condition["type"]: condition["status"] for condition in status.get("conditions") or ()}
    return Node(
        manifest["metadata"]["name"],
        dict(manifest["metadata"].get("labels") or {}),
        tuple(Taint.from_manifest(taint) for taint in spec.get("taints") or ()),
        {name: parse_amount(name, quantity) for name, quantity in allocatable.items()},
        ready=conditions.get("Ready") == "True",
        unschedulable=bool(spec.get("unschedulable")),
    )


def read_limit_range(manifest: Manifest) -> LimitRange:
    """A v1 LimitRange."""
    metadata, limits = manifest["metadata"], (manifest.get("spec") or {}).get("limits") or ()
    namespace = metadata.get("namespace") or "default"
    return LimitRange(namespace, metadata["name"], tuple(LimitRangeItem.from_manifest(item) for item in limits))


def read_runtime_class(manifest: Manifest) -> RuntimeClass:
    """A node.k8s.io/v1 RuntimeClass."""
    return RuntimeClass(manifest["metadata"]["name"], (manifest.get("overhead") or {}).get("podFixed") or {})


def read_resource_quota(manifest: Manifest) -> NamespaceQuota:
    """A v1 ResourceQuota; its scopes are not looked at, as in HAMi."""
    metadata, hard = manifest["metadata"], (manifest.get("spec") or {}).get("hard") or {}
    return NamespaceQuota(metadata.get("namespace") or "default", metadata["name"], whole_amounts(hard))


def read_workload(manifest: Manifest) -> Workload:
    """A Workload with its status."""
    metadata, spec, status = manifest["metadata"], manifest.get("spec") or {}, manifest.get("status") or {}
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
        conditions={c.type: c for c in map(_read_condition, status.get("conditions") or ())},
        admission=_read_admission(admission) if admission else None,
        requeue_state=_read_requeue_state(requeue) if requeue else None,
        reclaimable_pods={entry["name"]: entry["count"] for entry in status.get("reclaimablePods") or ()},
        admission_checks=tuple(
            AdmissionCheckState(check["name"], AdmissionCheckStatus(check["state"]), check.get("message") or "")
            for check in status.get("admissionChecks") or ()
        ),
        maximum_execution_time_seconds=spec.get("maximumExecutionTimeSeconds"),
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
            )
            for assignment in manifest.get("podSetAssignments") or ()
        ),
    )


def read_configuration(scenario: Manifest) -> Configuration:
    """`fairSharing` and `transformations` of a scenario, as in Kueue's Configuration."""
    fair = scenario.get("fairSharing")
    strategies = tuple(PreemptionStrategy(s) for s in (fair or {}).get("preemptionStrategies") or ())
    return Configuration(
        fair_sharing=FairSharing(strategies or DEFAULT_PREEMPTION_STRATEGIES) if fair is not None else None,
        transformations=tuple(_read_transformation(rule) for rule in scenario.get("transformations") or ()),
    )


def _read_transformation(manifest: Manifest) -> Transformation:
    return Transformation(
        manifest["input"],
        TransformationStrategy(manifest.get("strategy") or TransformationStrategy.RETAIN),
        manifest.get("multiplyBy") or None,
        {name: parse_quantity(quantity) for name, quantity in (manifest.get("outputs") or {}).items()},
    )
