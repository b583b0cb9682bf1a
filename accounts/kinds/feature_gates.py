"""Kueue's feature gates and two of ours: the ones that are read here, and those whose subject is decided for good."""

from typing import Final

BALANCED_PLACEMENT: Final = "TASBalancedPlacement"

DISABLE_WAIT_FOR_PODS_READY: Final = "DisableWaitForPodsReady"
STRICT_KUEUE_LIFECYCLE: Final = "StrictKueueLifecycle"
"""Ours: a workload lives as under Kueue also where ours is better for its user (docs/scheduling.md)."""

PLACE_ALL_PODS: Final = "PlaceAllPods"
"""Ours, and on unless set to false: pods without devices are placed on the cluster's nodes too."""

CLAIMS_INTEGRATED: Final = "KueueDRAIntegration"
CLAIMS_REJECTED: Final = "KueueDRARejectWorkloadsWhenDRADisabled"

HONOURED: Final = frozenset({
    BALANCED_PLACEMENT, DISABLE_WAIT_FOR_PODS_READY, STRICT_KUEUE_LIFECYCLE, PLACE_ALL_PODS, CLAIMS_INTEGRATED,
    CLAIMS_REJECTED,
})  # fmt: skip

KNOWN: Final = HONOURED | frozenset((
    "AdmissionFairSharing", "AdmissionGatedBy", "AssignQueueLabelsForPods", "CleanupProvisioningRequestsOnEviction",
    "ConcurrentAdmission", "CustomMetricLabels", "DeferRayServiceFinalizationForRedisCleanup",
    "DisableWaitForPodsReady", "ElasticJobsViaWorkloadSlices", "ElasticJobsViaWorkloadSlicesWithTAS",
    "FailureRecoveryPolicy", "FairSharingPreemptWithinNominal", "FairSharingPrioritizeNonBorrowing",
    "FastQuotaReleaseInPodIntegration", "FinishOrphanedWorkloads", "FlavorFungibility",
    "FlavorFungibilityPreserveScanProgress", "KueueDRAIntegration", "KueueDRAIntegrationConsumableCapacity",
    "KueueDRAIntegrationExtendedResource", "KueueDRAIntegrationPartitionableDevices",
    "KueueDRARejectWorkloadsWhenDRADisabled", "LWSImmutableGroupSize", "LocalQueueMetrics",
    "ManagedJobsNamespaceSelectorAlwaysRespected", "MetricForWorkloadCreationLatency", "MetricsForCohorts",
    "MultiKueue", "MultiKueueAdaptersForCustomJobs", "MultiKueueClusterProfile",
    "MultiKueueIncrementalDispatcherConfig", "MultiKueueIncrementalDispatcherRespectConfigOrder",
    "MultiKueueKubeConfigPathValidation", "MultiKueueManagerQuotaAutomation", "MultiKueueOrchestratedPreemption",
    "MultiKueueRemoteSpecSync", "PartialAdmission", "PodIntegrationValidateGroupOwner",
    "PrioritizePreemptorWorkloads", "PriorityBoost", "PrioritySortingWithinCohort", "QuotaCheckStrategy",
    "ReclaimablePods", "RecomputeAssignmentUponPreemptionTargetsOverlap", "RejectUpdatesToCQWithInvalidOnFlavors",
    "RemoveFinalizersWithStrictPatch", "SchedulerLibraryIntegration", "SchedulingEquivalenceHashing",
    "ShortWorkloadNames", "SkipAncestorCheckForDeletedWorkloads", "SkipReassignmentForPodOwnedWorkloads",
    "SparkApplicationIntegration", "TASAssignmentsEncodingByHostnamePrefix", "TASBalancedPlacement",
    "TASCacheNodeMatchResults", "TASCacheTopologyTree", "TASCachingRemainingResources", "TASFailedNodeReplacement",
    "TASFailedNodeReplacementFailFast", "TASHandleOverlappingFlavors", "TASMultiLayerTopology", "TASProfileMixed",
    "TASRecomputeAssignmentWithinSchedulingCycle", "TASReplaceNodeDueToNotReadyOverFixedTime",
    "TASReplaceNodeOnNodeTaints", "TASReplaceNodeOnPodTermination", "TASRespectNodeAffinityPreferred",
    "TASValidateWorkloadSliceSize", "TLSOptions", "TopologyAwareScheduling", "UnadmittedWorkloadsExplicitStatus",
    "UnadmittedWorkloadsObservability", "ValidateRayAndSparkJobUpdates", "VectorizedResourceRequests",
    "VisibilityOnDemand", "WorkloadIdentifierAnnotations", "WorkloadPriorityClassDefaulting",
    "WorkloadRequestUseMergePatch", "WorkloadValidateResourcesAreNonNegative", "WorkloadValidationForPodSetMetadata",
))  # fmt: skip
