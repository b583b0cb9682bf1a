"""Reads the queues, flavors, nodes and settings of a scenario (kueue.x-k8s.io/v1beta2, v1 Node and Pod).

The manifests are taken as valid, the API's defaults are applied. Raises KeyError, ValueError or `InvalidQuantity` for
malformed ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from scheduling.devices.search.namespace_quota import NamespaceQuota, whole_amounts
from scheduling.model.admission_check import AdmissionCheck, AdmissionCheckRule
from scheduling.model.cluster_queue import BorrowWithinCohort, ClusterQueue, ClusterQueuePreemption, FlavorFungibility
from scheduling.model.cohort import Cohort, FlavorQuotas, ResourceGroup, ResourceQuota
from scheduling.model.configuration import (
    DEFAULT_PREEMPTION_STRATEGIES,
    AdmissionFairSharing,
    Configuration,
    FairSharing,
)
from scheduling.model.limit_range import LimitRange, LimitRangeItem
from scheduling.model.local_queue import LocalQueue
from scheduling.model.node import PODS, Node
from scheduling.model.pod import PodTemplate
from scheduling.model.pod_defaults import RuntimeClass
from scheduling.model.quantity import NANOS, parse_amount, parse_quantity, to_amount
from scheduling.model.resource_flavor import ResourceFlavor
from scheduling.model.resources import Transformation
from scheduling.model.selectors import LabelSelector, Taint, Toleration
from scheduling.model.times import duration_seconds, parse_rfc3339
from scheduling.model.vocabulary import (
    AdmissionMode,
    BorrowWithinCohortPolicy,
    FungibilityPolicy,
    FungibilityPreference,
    PlacementScope,
    PreemptionStrategy,
    QueueingStrategy,
    ReclaimWithinCohortPolicy,
    StopPolicy,
    TransformationStrategy,
    WithinClusterQueuePolicy,
)
from scheduling.reservations.reservation import Admittance, BusyPolicy, Recurrence, Reservation

Manifest = Mapping[str, Any]

BALANCED_PLACEMENT_GATE = "TASBalancedPlacement"
ENDED_PHASES = ("Succeeded", "Failed")
NO_USAGE: Mapping[str, Mapping[str, int]] = {}


def read_resource_flavor(manifest: Manifest) -> ResourceFlavor:
    spec = manifest.get("spec") or {}
    return ResourceFlavor(
        manifest["metadata"]["name"],
        dict(spec.get("nodeLabels") or {}),
        tuple(Taint.from_manifest(taint) for taint in spec.get("nodeTaints") or ()),
        tuple(Toleration.from_manifest(toleration) for toleration in spec.get("tolerations") or ()),
        spec.get("topologyName") or None,
    )


def read_reservation(manifest: Manifest) -> Reservation:
    """Read a `kueueweb.io/v1 Reservation`."""
    spec = manifest["spec"]
    nodes, allowed = spec.get("nodes") or {}, spec.get("allowed") or {}
    keys = ("namespaces", "localQueues", "clusterQueues", "users")
    return Reservation(
        manifest["metadata"]["name"],
        parse_rfc3339(spec["start"]),
        parse_rfc3339(spec["end"]),
        frozenset(nodes.get("names") or ()),
        dict(nodes.get("labels") or {}),
        Recurrence(spec.get("recurrence") or Recurrence.NONE),
        Admittance(*(frozenset(allowed.get(key) or ()) for key in keys)),
        BusyPolicy(spec.get("ifBusy") or BusyPolicy.WAIT),
        node_count=nodes.get("count"),
        until=parse_rfc3339(spec["until"]) if spec.get("until") else None,
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
    spec = manifest.get("spec") or {}
    return Cohort(
        manifest["metadata"]["name"],
        spec.get("parentName") or "",
        read_resource_groups(spec.get("resourceGroups") or ()),
        _read_weight(spec),
    )


def read_cluster_queue(manifest: Manifest) -> ClusterQueue:
    """Read a ClusterQueue, with Kueue's defaults."""
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
    """Read a LocalQueue, with the past usage of its workloads."""
    spec = manifest.get("spec") or {}
    metadata = manifest["metadata"]
    history = ((manifest.get("status") or {}).get("fairSharing") or {}).get("admissionFairSharingStatus") or {}
    last_update = history.get("lastUpdate")
    return LocalQueue(
        metadata.get("namespace") or "default",
        metadata["name"],
        spec["clusterQueue"],
        StopPolicy(spec.get("stopPolicy") or StopPolicy.NONE),
        _read_weight(spec),
        {name: parse_quantity(text) / NANOS for name, text in (history.get("consumedResources") or {}).items()},
        parse_rfc3339(last_update) if last_update else None,
    )


def read_admission_check(manifest: Manifest) -> AdmissionCheck:
    """Read an AdmissionCheck; without a stated controller it counts as active."""
    spec, conditions = manifest.get("spec") or {}, _conditions(manifest.get("status"))
    active = conditions.get("Active", "True") == "True"
    return AdmissionCheck(manifest["metadata"]["name"], spec.get("controllerName") or "", active)


def _conditions(status: Manifest | None) -> dict[str, str]:
    return {condition["type"]: condition["status"] for condition in (status or {}).get("conditions") or ()}


def read_foreign_usage(pods: Iterable[Manifest]) -> dict[str, dict[str, int]]:
    """Return the usage of v1 Pods without a workload on their nodes, with the number of these pods."""
    usage: dict[str, dict[str, int]] = {}
    for pod in pods:
        node = (pod.get("spec") or {}).get("nodeName")
        if not node or (pod.get("status") or {}).get("phase") in ENDED_PHASES:
            continue
        amounts = {
            name: to_amount(name, nanos) for name, nanos in PodTemplate.from_manifest(pod).effective_requests().items()
        }
        taken = usage.setdefault(node, {})
        for name, amount in {**amounts, PODS: 1}.items():
            taken[name] = taken.get(name, 0) + amount
    return usage


def read_node(manifest: Manifest, foreign_usage: Mapping[str, Mapping[str, int]] = NO_USAGE) -> Node:
    """Read a v1 Node without devices. A node without a Ready condition counts as not ready."""
    spec, status = manifest.get("spec") or {}, manifest.get("status") or {}
    allocatable = status.get("allocatable") or status.get("capacity") or {}
    return Node(
        manifest["metadata"]["name"],
        dict(manifest["metadata"].get("labels") or {}),
        tuple(Taint.from_manifest(taint) for taint in spec.get("taints") or ()),
        {name: parse_amount(name, quantity) for name, quantity in allocatable.items()},
        foreign_usage.get(manifest["metadata"]["name"], {}),
        ready=_conditions(status).get("Ready") == "True",
        unschedulable=bool(spec.get("unschedulable")),
    )


def read_limit_range(manifest: Manifest) -> LimitRange:
    """Read a v1 LimitRange."""
    metadata, limits = manifest["metadata"], (manifest.get("spec") or {}).get("limits") or ()
    namespace = metadata.get("namespace") or "default"
    return LimitRange(namespace, metadata["name"], tuple(LimitRangeItem.from_manifest(item) for item in limits))


def read_runtime_class(manifest: Manifest) -> RuntimeClass:
    """Read a node.k8s.io/v1 RuntimeClass."""
    return RuntimeClass(manifest["metadata"]["name"], (manifest.get("overhead") or {}).get("podFixed") or {})


def read_resource_quota(manifest: Manifest) -> NamespaceQuota:
    """Read a v1 ResourceQuota. Its scopes are ignored, as in HAMi."""
    metadata, hard = manifest["metadata"], (manifest.get("spec") or {}).get("hard") or {}
    return NamespaceQuota(metadata.get("namespace") or "default", metadata["name"], whole_amounts(hard))


def read_configuration(scenario: Manifest) -> Configuration:
    """Read `fairSharing`, `admissionFairSharing`, `transformations` and `featureGates` of a scenario, as in Kueue's
    Configuration, and `placement`, as in a cluster's settings. The default placement is `devices`, because scenarios
    record Kueue's decisions, and Kueue places no pods on nodes."""
    fair, usage_based = scenario.get("fairSharing"), scenario.get("admissionFairSharing")
    strategies = tuple(PreemptionStrategy(s) for s in (fair or {}).get("preemptionStrategies") or ())
    gates = scenario.get("featureGates") or {}
    return Configuration(
        fair_sharing=FairSharing(strategies or DEFAULT_PREEMPTION_STRATEGIES) if fair is not None else None,
        admission_fair_sharing=_read_admission_fair_sharing(usage_based) if usage_based is not None else None,
        balanced_placement=bool(gates.get(BALANCED_PLACEMENT_GATE)),
        transformations=tuple(_read_transformation(rule) for rule in scenario.get("transformations") or ()),
        placement=PlacementScope(scenario.get("placement") or PlacementScope.DEVICES),
    )


def _read_admission_fair_sharing(manifest: Manifest) -> AdmissionFairSharing:
    return AdmissionFairSharing(
        duration_seconds(manifest.get("usageHalfLifeTime") or "0"),
        duration_seconds(manifest.get("usageSamplingInterval") or "5m"),
        {name: float(weight) for name, weight in (manifest.get("resourceWeights") or {}).items()},
    )


def _read_transformation(manifest: Manifest) -> Transformation:
    return Transformation(
        manifest["input"],
        TransformationStrategy(manifest.get("strategy") or TransformationStrategy.RETAIN),
        manifest.get("multiplyBy") or None,
        {name: parse_quantity(quantity) for name, quantity in (manifest.get("outputs") or {}).items()},
    )
