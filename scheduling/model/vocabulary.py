"""All enums of the vocabulary: condition types, reasons, policies and modes.

Condition types and reasons are Kueue's PascalCase tokens. Each enum is defined once, here, and is used for the
choices of the database, of the API's schema and of the screens.
"""

from __future__ import annotations

from enum import StrEnum


class ConditionType(StrEnum):
    """The conditions of a Workload (Kueue's, kueue.x-k8s.io/v1beta2)."""

    QUOTA_RESERVED = "QuotaReserved"
    ADMITTED = "Admitted"
    EVICTED = "Evicted"
    PREEMPTED = "Preempted"
    REQUEUED = "Requeued"
    FINISHED = "Finished"
    PODS_READY = "PodsReady"
    DEACTIVATION_TARGET = "DeactivationTarget"
    BLOCKED_ON_PREEMPTION_GATES = "BlockedOnPreemptionGates"
    WAITING_FOR_REPLACEMENT_PODS = "WaitingForReplacementPods"


class ConditionStatus(StrEnum):
    """The status of a condition."""

    TRUE = "True"
    FALSE = "False"
    UNKNOWN = "Unknown"


class WorkloadStatus(StrEnum):
    """The stage of a workload's life."""

    PENDING = "Pending"
    QUOTA_RESERVED = "QuotaReserved"
    ADMITTED = "Admitted"
    EVICTED = "Evicted"
    FINISHED = "Finished"


class PendingReason(StrEnum):
    """The reason why QuotaReserved is False (Kueue's reasons, and some of our own)."""

    PENDING_EVALUATION = "PendingEvaluation"
    NO_MATCHING_FLAVOR = "NoMatchingFlavor"
    EXCEEDS_MAX_QUOTA = "ExceedsMaxQuota"
    WAITING_FOR_QUOTA = "WaitingForQuota"
    WAITING_FOR_DEVICES = "WaitingForDevices"
    """Beyond Kueue: no node has the devices that its pods request."""
    WAITING_FOR_NODES = "WaitingForNodes"
    """Beyond Kueue: its pods request no devices, and no node has room for them."""
    TOPOLOGY_PLACEMENT_FAILED = "TopologyPlacementFailed"
    WAITING_FOR_PREEMPTED_WORKLOADS = "WaitingForPreemptedWorkloads"
    MISCONFIGURED = "Misconfigured"
    SUSPENDED = "Suspended"
    WAITING_FOR_PODS_READY = "WaitingForPodsReady"
    ADMISSION_GATED = "AdmissionGated"
    ON_HOLD = "OnHold"
    DEACTIVATED = "Deactivated"
    POD_GROUP_INCOMPLETE = "PodGroupIncomplete"
    """Beyond Kueue, where no workload exists yet: pods of its group are missing."""


class EvictionReason(StrEnum):
    """The reason why Evicted is True."""

    PREEMPTED = "Preempted"
    PODS_READY_TIMEOUT = "PodsReadyTimeout"
    ADMISSION_CHECK = "AdmissionCheck"
    CLUSTER_QUEUE_STOPPED = "ClusterQueueStopped"
    LOCAL_QUEUE_STOPPED = "LocalQueueStopped"
    NODE_FAILURES = "NodeFailures"
    FLAVOR_MIGRATION = "FlavorMigration"
    DEACTIVATED = "Deactivated"
    DEVICES_NOT_ASSIGNED = "DevicesNotAssigned"
    """Beyond Kueue: admitted on quota alone before any device was known, and now devices are known."""
    DRAINED = "Drained"
    """Beyond Kueue: an operator drains one of its nodes or devices."""
    REQUEUE_REQUESTED = "RequeueRequested"
    """Beyond Kueue: a user asked the workload to stop and to wait again."""


class PreemptionReason(StrEnum):
    """The reason why Preempted is True."""

    IN_CLUSTER_QUEUE = "InClusterQueue"
    IN_COHORT_RECLAMATION = "InCohortReclamation"
    IN_COHORT_FAIR_SHARING = "InCohortFairSharing"
    IN_COHORT_RECLAIM_WHILE_BORROWING = "InCohortReclaimWhileBorrowing"


class RequeuedReason(StrEnum):
    """Reasons of the Requeued condition that are not an eviction reason."""

    REACTIVATED = "Reactivated"
    BACKOFF_FINISHED = "BackoffFinished"
    CLUSTER_QUEUE_RESTARTED = "ClusterQueueRestarted"
    LOCAL_QUEUE_RESTARTED = "LocalQueueRestarted"
    INADMISSIBLE = "Inadmissible"


class DeactivationCause(StrEnum):
    """The cause for which Kueue deactivates a workload by itself; `Deactivated` becomes `DeactivatedDueTo<Cause>`."""

    ADMISSION_CHECK = "AdmissionCheck"
    REQUEUING_LIMIT_EXCEEDED = "RequeuingLimitExceeded"
    MAXIMUM_EXECUTION_TIME_EXCEEDED = "MaximumExecutionTimeExceeded"
    EVICTED_ON_MANAGER_CLUSTER = "EvictedOnManagerCluster"


class FinishedReason(StrEnum):
    """The reason why Finished is True."""

    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    OUT_OF_SYNC = "OutOfSync"
    OWNER_NOT_FOUND = "OwnerNotFound"
    WORKLOAD_SLICE_REPLACED = "WorkloadSliceReplaced"
    FAILED_TO_START = "FailedToStart"
    CANCELLED = "Cancelled"


class PodsReadyReason(StrEnum):
    """Reasons of the PodsReady condition."""

    WAIT_FOR_START = "WaitForStart"
    WAIT_FOR_RECOVERY = "WaitForRecovery"
    STARTED = "Started"
    RECOVERED = "Recovered"


class ReplacementPodsReason(StrEnum):
    """Reasons of the WaitingForReplacementPods condition, beside those of an eviction and PodGroupIncomplete."""

    PODS_FAILED = "PodsFailed"
    PODS_READY = "PodsReady"


class AdmissionCheckStatus(StrEnum):
    """The state of one admission check of a workload."""

    PENDING = "Pending"
    READY = "Ready"
    RETRY = "Retry"
    REJECTED = "Rejected"


class QueueingStrategy(StrEnum):
    """The effect of a head that does not fit on the workloads behind it: it blocks them, or lets them pass."""

    STRICT_FIFO = "StrictFIFO"
    BEST_EFFORT_FIFO = "BestEffortFIFO"


class StopPolicy(StrEnum):
    """Whether a queue admits workloads, and whether it evicts its admitted workloads."""

    NONE = "None"
    HOLD = "Hold"
    HOLD_AND_DRAIN = "HoldAndDrain"


class WithinClusterQueuePolicy(StrEnum):
    """The workloads of its own ClusterQueue that a pending workload may preempt."""

    NEVER = "Never"
    LOWER_PRIORITY = "LowerPriority"
    LOWER_OR_NEWER_EQUAL_PRIORITY = "LowerOrNewerEqualPriority"


class ReclaimWithinCohortPolicy(StrEnum):
    """The borrowing workloads of the cohort that a pending workload within its quota may preempt."""

    NEVER = "Never"
    LOWER_PRIORITY = "LowerPriority"
    ANY = "Any"


class BorrowWithinCohortPolicy(StrEnum):
    """Whether a workload that has to borrow may preempt workloads of the cohort."""

    NEVER = "Never"
    LOWER_PRIORITY = "LowerPriority"


class FungibilityPolicy(StrEnum):
    """Whether the search ends at a flavor that fits by borrowing (or by preempting), or continues."""

    MAY_STOP_SEARCH = "MayStopSearch"
    TRY_NEXT_FLAVOR = "TryNextFlavor"


class FungibilityPreference(StrEnum):
    """The preference between two flavors if one needs borrowing and the other preemption."""

    BORROWING_OVER_PREEMPTION = "BorrowingOverPreemption"
    PREEMPTION_OVER_BORROWING = "PreemptionOverBorrowing"


class PreemptionStrategy(StrEnum):
    """Fair sharing: the comparison of shares that allows preemption of a workload of another queue."""

    LESS_THAN_OR_EQUAL_TO_FINAL_SHARE = "LessThanOrEqualToFinalShare"
    LESS_THAN_INITIAL_SHARE = "LessThanInitialShare"


class AdmissionMode(StrEnum):
    """Whether a ClusterQueue orders its LocalQueues by their past usage."""

    USAGE_BASED_ADMISSION_FAIR_SHARING = "UsageBasedAdmissionFairSharing"
    NO_ADMISSION_FAIR_SHARING = "NoAdmissionFairSharing"


class QuotaCheckStrategy(StrEnum):
    """The treatment of a requested resource that no resource group covers."""

    BLOCK_UNDECLARED = "BlockUndeclared"
    IGNORE_UNDECLARED = "IgnoreUndeclared"


class TransformationStrategy(StrEnum):
    """Whether a transformed resource is kept beside its outputs."""

    RETAIN = "Retain"
    REPLACE = "Replace"


class PlacementScope(StrEnum):
    """The pods that are placed on named nodes; the cluster's own scheduler places all others, by quota alone as in
    Kueue."""

    DEVICES = "devices"
    """Pods of workloads that ask for devices."""
    TOPOLOGY = "topology"
    """Also pods in flavors with a topology."""
    ALL = "all"
    """All pods, where nodes are known."""


class RequeuingTimestamp(StrEnum):
    """The time that orders a workload that WaitForPodsReady evicted."""

    EVICTION = "Eviction"
    CREATION = "Creation"


class ClusterQueueReason(StrEnum):
    """The reason why a ClusterQueue is Active or not."""

    READY = "Ready"
    TERMINATING = "Terminating"
    STOPPED = "Stopped"
    FLAVOR_NOT_FOUND = "FlavorNotFound"
    ADMISSION_CHECK_NOT_FOUND = "AdmissionCheckNotFound"
    ADMISSION_CHECK_INACTIVE = "AdmissionCheckInactive"
    MULTIPLE_MULTIKUEUE_ADMISSION_CHECKS = "MultipleMultiKueueAdmissionChecks"
    MULTIKUEUE_ADMISSION_CHECK_APPLIED_PER_FLAVOR = "MultiKueueAdmissionCheckAppliedPerFlavor"
    MULTIKUEUE_WITH_PROVISIONING_REQUEST = "MultiKueueWithProvisioningRequest"
    TOPOLOGY_NOT_FOUND = "TopologyNotFound"
    COHORT_CYCLE = "CohortCycle"


class LocalQueueReason(StrEnum):
    """The reason why a LocalQueue is Active or not."""

    READY = "Ready"
    STOPPED = "Stopped"
    CLUSTER_QUEUE_DOES_NOT_EXIST = "ClusterQueueDoesNotExist"
    CLUSTER_QUEUE_IS_INACTIVE = "ClusterQueueIsInactive"


class DecisionKind(StrEnum):
    """The decision of a cycle about one workload."""

    ADMIT = "Admit"
    PREEMPT = "Preempt"
    EVICT = "Evict"
    INADMISSIBLE = "Inadmissible"
    SKIP = "Skip"
    REPLACE_NODE = "ReplaceNode"


class Unscaled(StrEnum):
    """A factor that counts as it is, instead of as a part of the highest or the total."""

    ASSOCIATION = "association"
    PARTITION = "queue"
    QOS = "class"
    RESOURCES = "resources"
