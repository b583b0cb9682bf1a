"""Kueue's feature gates and one of ours: defaults, dependencies, and the values that each may have here."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

BALANCED_PLACEMENT: Final = "TASBalancedPlacement"

DISABLE_WAIT_FOR_PODS_READY: Final = "DisableWaitForPodsReady"
STRICT_KUEUE_LIFECYCLE: Final = "StrictKueueLifecycle"
"""Ours: a workload's life cycle is Kueue's even where kueueweb's is better for its user (docs/scheduling.md)."""

CLAIMS_INTEGRATED: Final = "KueueDRAIntegration"
CLAIMS_REJECTED: Final = "KueueDRARejectWorkloadsWhenDRADisabled"
CAPACITY_INTEGRATED: Final = "KueueDRAIntegrationConsumableCapacity"
COUNTERS_INTEGRATED: Final = "KueueDRAIntegrationPartitionableDevices"

ADMISSION_FAIR_SHARING: Final = "AdmissionFairSharing"
ADMISSION_GATED_BY: Final = "AdmissionGatedBy"
CONCURRENT_ADMISSION: Final = "ConcurrentAdmission"
CUSTOM_METRIC_LABELS: Final = "CustomMetricLabels"
DEFAULT_PRIORITY_CLASS: Final = "WorkloadPriorityClassDefaulting"
DISPATCH_IN_ORDER: Final = "MultiKueueIncrementalDispatcherRespectConfigOrder"
DISPATCH_STEPS: Final = "MultiKueueIncrementalDispatcherConfig"
FAILURE_RECOVERY: Final = "FailureRecoveryPolicy"
FLAVOR_FUNGIBILITY: Final = "FlavorFungibility"
LOCAL_QUEUE_METRICS: Final = "LocalQueueMetrics"
METRIC_OF_CREATION: Final = "MetricForWorkloadCreationLatency"
MANAGER_QUOTA_AUTOMATION: Final = "MultiKueueManagerQuotaAutomation"
METRICS_OF_COHORTS: Final = "MetricsForCohorts"
PARTIAL_ADMISSION: Final = "PartialAdmission"
PREEMPT_WITHIN_NOMINAL: Final = "FairSharingPreemptWithinNominal"
PREFER_NON_BORROWING: Final = "FairSharingPrioritizeNonBorrowing"
PRIORITY_BOOST: Final = "PriorityBoost"
PRIORITY_SORTING: Final = "PrioritySortingWithinCohort"
QUOTA_CHECK_STRATEGY: Final = "QuotaCheckStrategy"
RECLAIMABLE_PODS: Final = "ReclaimablePods"
SPARK_APPLICATIONS: Final = "SparkApplicationIntegration"


class Standing(Enum):
    """The values that a gate may have here."""

    SWITCHES = "switches"
    """Either way, and each acts as in Kueue."""
    ALWAYS_ON = "always on"
    """The behaviour behind the gate is always on here."""
    ALWAYS_OFF = "always off"
    """The behaviour behind the gate does not exist here."""
    INTERNAL = "internal"
    """Either way: it concerns the inside of Kueue's own program, or permits a field that takes effect by itself."""


@dataclass(frozen=True, slots=True)
class FeatureGate:
    """A feature gate: Kueue's default, and the values that it may have here."""

    default: bool
    standing: Standing

    def allows(self, *, on: bool) -> bool:
        """Return whether the gate may have this value."""
        if self.standing is Standing.ALWAYS_ON:
            return on
        return not on or self.standing is not Standing.ALWAYS_OFF


def _gates(standing: Standing, *, on: tuple[str, ...] = (), off: tuple[str, ...] = ()) -> dict[str, FeatureGate]:
    """`on`, `off`: the gates that are so by default."""
    return {name: FeatureGate(name in on, standing) for name in (*on, *off)}


GATES: Final[Mapping[str, FeatureGate]] = {
    **_gates(
        Standing.SWITCHES,
        on=(
            ADMISSION_FAIR_SHARING, ADMISSION_GATED_BY, CLAIMS_INTEGRATED, CLAIMS_REJECTED, COUNTERS_INTEGRATED,
            DEFAULT_PRIORITY_CLASS, DISPATCH_IN_ORDER, DISPATCH_STEPS, FLAVOR_FUNGIBILITY, LOCAL_QUEUE_METRICS,
            METRICS_OF_COHORTS, METRIC_OF_CREATION, PARTIAL_ADMISSION, PREEMPT_WITHIN_NOMINAL,
            PREFER_NON_BORROWING, PRIORITY_SORTING, QUOTA_CHECK_STRATEGY, RECLAIMABLE_PODS,
        ),
        off=(
            BALANCED_PLACEMENT, CAPACITY_INTEGRATED, CONCURRENT_ADMISSION, CUSTOM_METRIC_LABELS,
            DISABLE_WAIT_FOR_PODS_READY, FAILURE_RECOVERY, MANAGER_QUOTA_AUTOMATION, PRIORITY_BOOST, SPARK_APPLICATIONS,
            STRICT_KUEUE_LIFECYCLE,
        ),
    ),
    **_gates(
        Standing.ALWAYS_ON,
        on=(
            "AssignQueueLabelsForPods", "CleanupProvisioningRequestsOnEviction",
            "DeferRayServiceFinalizationForRedisCleanup", "ElasticJobsViaWorkloadSlices", "FinishOrphanedWorkloads",
            "FlavorFungibilityPreserveScanProgress", "KueueDRAIntegrationExtendedResource", "LWSImmutableGroupSize",
            "ManagedJobsNamespaceSelectorAlwaysRespected", "MultiKueue", "MultiKueueKubeConfigPathValidation",
            "MultiKueueRemoteSpecSync", "PodIntegrationValidateGroupOwner",
            "RecomputeAssignmentUponPreemptionTargetsOverlap", "SkipReassignmentForPodOwnedWorkloads",
            "TASFailedNodeReplacement", "TASFailedNodeReplacementFailFast", "TASHandleOverlappingFlavors",
            "TASMultiLayerTopology", "TASProfileMixed", "TASRecomputeAssignmentWithinSchedulingCycle",
            "TASReplaceNodeOnNodeTaints", "TASReplaceNodeOnPodTermination", "TASValidateWorkloadSliceSize",
            "TLSOptions", "TopologyAwareScheduling", "UnadmittedWorkloadsObservability",
            "ValidateRayAndSparkJobUpdates", "VisibilityOnDemand", "WorkloadIdentifierAnnotations",
            "WorkloadValidateResourcesAreNonNegative", "WorkloadValidationForPodSetMetadata",
        ),
    ),
    **_gates(
        Standing.ALWAYS_OFF,
        on=("MultiKueueAdaptersForCustomJobs",),
        off=(
            "ElasticJobsViaWorkloadSlicesWithTAS", "FastQuotaReleaseInPodIntegration",
            "MultiKueueClusterProfile", "MultiKueueOrchestratedPreemption",
            "PrioritizePreemptorWorkloads", "RejectUpdatesToCQWithInvalidOnFlavors", "SchedulerLibraryIntegration",
            "ShortWorkloadNames", "TASReplaceNodeDueToNotReadyOverFixedTime", "TASRespectNodeAffinityPreferred",
            "UnadmittedWorkloadsExplicitStatus",
        ),
    ),
    **_gates(
        Standing.INTERNAL,
        on=(
            "RemoveFinalizersWithStrictPatch", "SchedulingEquivalenceHashing", "SkipAncestorCheckForDeletedWorkloads",
            "TASAssignmentsEncodingByHostnamePrefix", "TASCacheNodeMatchResults", "TASCacheTopologyTree",
            "TASCachingRemainingResources", "VectorizedResourceRequests",
        ),
        off=("WorkloadRequestUseMergePatch",),
    ),
}  # fmt: skip

DEPENDENCIES: Final[Mapping[str, str]] = {
    CAPACITY_INTEGRATED: CLAIMS_INTEGRATED,
    COUNTERS_INTEGRATED: CLAIMS_INTEGRATED,
    "FlavorFungibilityPreserveScanProgress": FLAVOR_FUNGIBILITY,
    "KueueDRAIntegrationExtendedResource": CLAIMS_INTEGRATED,
}
"""Gates that need another gate, which may be off."""


def is_on(configuration: Mapping[str, Any], gate: str) -> bool:
    """Return whether a gate is on in a stored Configuration. It is off while the gate that it depends on is off."""
    above = DEPENDENCIES.get(gate)
    value = (configuration.get("featureGates") or {}).get(gate)
    wanted = GATES[gate].default if value is None else value is True
    return wanted and (above is None or is_on(configuration, above))
