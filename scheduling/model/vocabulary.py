"""All enums of the vocabulary: condition types, reasons, policies and modes.

Condition types and reasons are Kueue's PascalCase tokens. Each enum is defined once, here, and is used for the
choices of the database, of the API's schema and of the screens.
"""

from __future__ import annotations

from enum import StrEnum


class ConditionType(StrEnum):
    """The conditions of a Workload (Kueue's, kueue.x-k8s.io/v1beta2)."""

    QUOTA_RESERVED = "QuotaReserved"
    """It holds quota in a ClusterQueue; its pods may not run yet, because checks may still be pending."""
    ADMITTED = "Admitted"
    """It holds quota and all its admission checks are Ready: its pods may run."""
    EVICTED = "Evicted"
    """It was asked to stop. Its quota stays charged until its pods have stopped."""
    PREEMPTED = "Preempted"
    """It was evicted for another workload; stays beside Evicted to name the preemptor."""
    REQUEUED = "Requeued"
    """Whether it competes again after an eviction; False while it waits out a pause."""
    FINISHED = "Finished"
    """It has ended for good and is never scheduled again."""
    PODS_READY = "PodsReady"
    """Whether all its pods are ready, as WaitForPodsReady measures it."""
    DEACTIVATION_TARGET = "DeactivationTarget"
    """It is about to be deactivated; keeps the cause until `active` is false."""
    BLOCKED_ON_PREEMPTION_GATES = "BlockedOnPreemptionGates"
    """It could be admitted by preemption, but a closed gate forbids that."""
    WAITING_FOR_REPLACEMENT_PODS = "WaitingForReplacementPods"
    """A group of pods that lost members waits for their replacements."""


class ConditionStatus(StrEnum):
    """The status of a condition."""

    TRUE = "True"
    """The condition holds."""
    FALSE = "False"
    """The condition does not hold; its reason gives the cause."""
    UNKNOWN = "Unknown"
    """The writer of the condition does not know the state."""


class WorkloadStatus(StrEnum):
    """The stage of a workload's life."""

    PENDING = "Pending"
    """It waits in a queue, or cannot be queued."""
    QUOTA_RESERVED = "QuotaReserved"
    """It holds quota and waits for admission checks."""
    ADMITTED = "Admitted"
    """Its pods may run."""
    EVICTED = "Evicted"
    """Its pods are being stopped; until they have stopped, it keeps its quota."""
    FINISHED = "Finished"
    """It has ended for good, so its quota is released."""


class WorkloadState(StrEnum):
    """The stage of a workload's life: its status, refined by `active`, its pods and its outcome."""

    ON_HOLD = "OnHold"
    """Its user deactivated it, so it is not scheduled until it is released."""
    PENDING = "Pending"
    """It waits in a queue, or cannot be queued."""
    QUOTA_RESERVED = "QuotaReserved"
    """It holds quota and waits for admission checks."""
    STARTING = "Starting"
    """Admitted, and not all of its pods are ready."""
    RUNNING = "Running"
    """Admitted, and all of its pods are ready."""
    EVICTED = "Evicted"
    """Its pods are being stopped; until they have stopped, it keeps its quota."""
    SUCCEEDED = "Succeeded"
    """Finished, and its job succeeded."""
    FAILED = "Failed"
    """Finished, and its job failed."""
    FINISHED = "Finished"
    """Neither succeeded nor failed: cancelled, replaced, or without its owner."""


class SharingPolicy(StrEnum):
    """Beyond Kueue: how a cohort divides its quota among the queues and cohorts below it."""

    PROPORTION = "proportion"
    """By weight and demand, as Volcano's plugin proportion does."""
    CAPACITY = "capacity"
    """By declaration, the queue with the smallest used part first, as Volcano's plugin capacity does."""
    FAIR_SHARE = "fair-share"
    """Quota first, then the rest by the queue's priority and weight, as KAI does."""


class BackfillPolicy(StrEnum):
    """Beyond Kueue: which waiting workloads of a ClusterQueue get a planned start that later ones must not delay."""

    EASY = "easy"
    """The first that must wait."""


class PendingReason(StrEnum):
    """The reason why QuotaReserved is False (Kueue's reasons, and some of our own)."""

    PENDING_EVALUATION = "PendingEvaluation"
    """No cycle has evaluated it since it was queued."""
    NO_MATCHING_FLAVOR = "NoMatchingFlavor"
    """No flavor suits its pods, even if quota is free: taints, affinity, uncovered resources."""
    EXCEEDS_MAX_QUOTA = "ExceedsMaxQuota"
    """It requests more than the queue could get if the whole cohort were idle, so that waiting cannot help."""
    WAITING_FOR_QUOTA = "WaitingForQuota"
    """It would fit if other workloads ended."""
    WAITING_FOR_DEVICES = "WaitingForDevices"
    """Beyond Kueue: no node has the devices that its pods request."""
    WAITING_FOR_NODES = "WaitingForNodes"
    """Beyond Kueue: its pods request no devices, and no node has room for them."""
    WAITING_FOR_USER_LIMIT = "WaitingForUserLimit"
    """Beyond Kueue: with it, its user would hold more than the queue, or a cohort above, allows one user."""
    WAITING_FOR_PLANNED_START = "WaitingForPlannedStart"
    """Beyond Kueue: it would fit, but it would delay the planned start of a workload before it (backfill)."""
    WAITING_FOR_RESERVATION = "WaitingForReservation"
    """Beyond Kueue: it needs nodes that a reservation keeps free for others, and it may run into its window."""
    TOPOLOGY_PLACEMENT_FAILED = "TopologyPlacementFailed"
    """Quota is free, but no domain of the topology has room."""
    WAITING_FOR_PREEMPTED_WORKLOADS = "WaitingForPreemptedWorkloads"
    """Its victims are evicted, but their pods have not stopped."""
    MISCONFIGURED = "Misconfigured"
    """Its queue or its request must be changed before it can be considered."""
    SUSPENDED = "Suspended"
    """Its ClusterQueue or LocalQueue is stopped or not active."""
    WAITING_FOR_PODS_READY = "WaitingForPodsReady"
    """WaitForPodsReady blocks admission until the pods of an earlier workload are ready."""
    ADMISSION_GATED = "AdmissionGated"
    """An annotation gates its admission until the gate's owner removes it."""
    ON_HOLD = "OnHold"
    """Its job needs no pods now, such as a StatefulSet that is scaled to zero."""
    DEACTIVATED = "Deactivated"
    """`active` is false: by a user, or for a cause of DeactivationCause."""
    POD_GROUP_INCOMPLETE = "PodGroupIncomplete"
    """Beyond Kueue, where no workload exists yet: pods of its group are missing."""


class EvictionReason(StrEnum):
    """The reason why Evicted is True."""

    PREEMPTED = "Preempted"
    """Another workload needs its quota."""
    PODS_READY_TIMEOUT = "PodsReadyTimeout"
    """Its pods were not ready in time."""
    ADMISSION_CHECK = "AdmissionCheck"
    """A check answered Retry or Rejected."""
    CLUSTER_QUEUE_STOPPED = "ClusterQueueStopped"
    """Its ClusterQueue is drained (HoldAndDrain)."""
    LOCAL_QUEUE_STOPPED = "LocalQueueStopped"
    """Its LocalQueue is drained (HoldAndDrain)."""
    NODE_FAILURES = "NodeFailures"
    """A node of its topology assignment failed and could not be replaced."""
    FLAVOR_MIGRATION = "FlavorMigration"
    """A flavor that it prefers has become free."""
    VARIANT_EVICTED = "VariantEvicted"
    """The admitted variant of the workload was evicted."""
    CONCURRENT_ADMISSION = "ConcurrentAdmission"
    """No variant of the workload is admitted any more."""
    DEACTIVATED = "Deactivated"
    """`active` is false."""
    DEVICES_NOT_ASSIGNED = "DevicesNotAssigned"
    """Beyond Kueue: admitted on quota alone before any device was known, and now devices are known."""
    DRAINED = "Drained"
    """Beyond Kueue: an operator drains one of its nodes or devices."""
    REQUEUE_REQUESTED = "RequeueRequested"
    """Beyond Kueue: a user asked the workload to stop and to wait again."""
    RESERVATION_STARTED = "ReservationStarted"
    """Beyond Kueue: a reservation of one of its nodes started, and does not allow it there."""


class MigrationMode(StrEnum):
    """The fate of the other variants of a workload once one is admitted (concurrent admission)."""

    TRY_PREFERRED_FLAVORS = "TryPreferredFlavors"
    """Variants of preferred flavors continue to try."""
    RETAIN_FIRST_ADMISSION = "RetainFirstAdmission"
    """The others are deactivated."""


class PreemptionReason(StrEnum):
    """The reason why Preempted is True."""

    IN_CLUSTER_QUEUE = "InClusterQueue"
    """The preemptor is of the same ClusterQueue and has precedence there."""
    IN_COHORT_RECLAMATION = "InCohortReclamation"
    """The victim borrowed quota that the preemptor's side of the cohort owns."""
    IN_COHORT_FAIR_SHARING = "InCohortFairSharing"
    """The victim's queue has the larger share of what the cohort lends."""
    IN_COHORT_RECLAIM_WHILE_BORROWING = "InCohortReclaimWhileBorrowing"
    """The preemptor borrows too, but borrowWithinCohort lets it preempt lower priorities."""


class RequeuedReason(StrEnum):
    """Reasons of the Requeued condition that are not an eviction reason."""

    REACTIVATED = "Reactivated"
    """`active` is true again."""
    BACKOFF_FINISHED = "BackoffFinished"
    """The pause after an eviction is over."""
    CLUSTER_QUEUE_RESTARTED = "ClusterQueueRestarted"
    """Its ClusterQueue admits again."""
    LOCAL_QUEUE_RESTARTED = "LocalQueueRestarted"
    """Its LocalQueue admits again."""
    INADMISSIBLE = "Inadmissible"
    """The devices of its claims cannot be counted, so it is kept out of its queue."""


class DeactivationCause(StrEnum):
    """The cause for which Kueue deactivates a workload by itself; `Deactivated` becomes `DeactivatedDueTo<Cause>`."""

    ADMISSION_CHECK = "AdmissionCheck"
    """A check rejected it: asking again would not help."""
    REQUEUING_LIMIT_EXCEEDED = "RequeuingLimitExceeded"
    """Its pods missed their time-out as often as the limit allows."""
    MAXIMUM_EXECUTION_TIME_EXCEEDED = "MaximumExecutionTimeExceeded"
    """It ran longer than its own limit."""
    EVICTED_ON_MANAGER_CLUSTER = "EvictedOnManagerCluster"
    """The manager cluster of MultiKueue evicted the original of this copy."""


class FinishedReason(StrEnum):
    """The reason why Finished is True."""

    SUCCEEDED = "Succeeded"
    """Its job completed."""
    FAILED = "Failed"
    """Its job failed."""
    OUT_OF_SYNC = "OutOfSync"
    """Its job has since requested another size, so it no longer represents the job."""
    OWNER_NOT_FOUND = "OwnerNotFound"
    """Its job is deleted."""
    WORKLOAD_SLICE_REPLACED = "WorkloadSliceReplaced"
    """A larger or smaller slice of the same elastic job has taken its place."""
    FAILED_TO_START = "FailedToStart"
    """The cluster refuses its job for good, so the workload would hold quota in vain."""
    CANCELLED = "Cancelled"
    """A user ended it; Kueue would delete it."""


class PodsReadyReason(StrEnum):
    """Reasons of the PodsReady condition."""

    WAIT_FOR_START = "WaitForStart"
    """Its pods have not been ready since its admission."""
    WAIT_FOR_RECOVERY = "WaitForRecovery"
    """Its pods were ready, and one has failed since."""
    STARTED = "Started"
    """All its pods are ready for the first time."""
    RECOVERED = "Recovered"
    """All its pods are ready again."""


class AdmissionCheckStatus(StrEnum):
    """The state of one admission check of a workload."""

    PENDING = "Pending"
    """Its controller has not answered."""
    READY = "Ready"
    """The workload may be admitted."""
    RETRY = "Retry"
    """The workload is evicted and may try again later."""
    REJECTED = "Rejected"
    """The workload is evicted and deactivated."""


class QueueingStrategy(StrEnum):
    """The effect of a head that does not fit on the workloads behind it: it blocks them, or lets them pass."""

    STRICT_FIFO = "StrictFIFO"
    """A head that does not fit blocks the queue, so that small workloads cannot delay a large one forever."""
    BEST_EFFORT_FIFO = "BestEffortFIFO"
    """A head that does not fit lets the others pass, so that free quota does not stay idle."""


class StopPolicy(StrEnum):
    """Whether a queue admits workloads, and whether it evicts its admitted workloads."""

    NONE = "None"
    """Admits workloads."""
    HOLD = "Hold"
    """No new admissions; admitted workloads run to their end."""
    HOLD_AND_DRAIN = "HoldAndDrain"
    """No new admissions, and admitted workloads are evicted."""


class WithinClusterQueuePolicy(StrEnum):
    """Kueue's `withinClusterQueue`: the workloads of its own ClusterQueue that a pending workload may preempt."""

    NEVER = "Never"
    """Pending workloads wait for free quota instead of preempting in their own queue."""
    LOWER_PRIORITY = "LowerPriority"
    """Only lower priorities, so that equal workloads cannot evict each other in turns."""
    LOWER_OR_NEWER_EQUAL_PRIORITY = "LowerOrNewerEqualPriority"
    """Also workloads of its own priority that were created later."""


class ReclaimWithinCohortPolicy(StrEnum):
    """The borrowing workloads of the cohort that a pending workload within its quota may preempt."""

    NEVER = "Never"
    """Lent quota returns only when its borrowers end."""
    LOWER_PRIORITY = "LowerPriority"
    """A borrower keeps lent quota against workloads of at most its priority."""
    ANY = "Any"
    """The owner gets its quota back, regardless of the borrower's priority."""


class BorrowWithinCohortPolicy(StrEnum):
    """Whether a workload that has to borrow may preempt workloads of the cohort."""

    NEVER = "Never"
    """A workload that has to borrow waits until quota is free."""
    LOWER_PRIORITY = "LowerPriority"
    """It may preempt lower priorities, up to the threshold if there is one."""


class FungibilityPolicy(StrEnum):
    """Whether the search ends at a flavor that fits by borrowing (or by preempting), or continues."""

    MAY_STOP_SEARCH = "MayStopSearch"
    """The first such flavor is taken: the order of flavors matters more than borrowing or victims."""
    TRY_NEXT_FLAVOR = "TryNextFlavor"
    """A later flavor may fit without them."""


class FungibilityPreference(StrEnum):
    """The preference between two flavors if one needs borrowing and the other preemption."""

    BORROWING_OVER_PREEMPTION = "BorrowingOverPreemption"
    """Borrow rather than stop running workloads."""
    PREEMPTION_OVER_BORROWING = "PreemptionOverBorrowing"
    """Stop workloads rather than borrow quota that its owner may reclaim."""


class PreemptionStrategy(StrEnum):
    """Fair sharing: the comparison of shares that allows preemption of a workload of another queue."""

    LESS_THAN_OR_EQUAL_TO_FINAL_SHARE = "LessThanOrEqualToFinalShare"
    """The preemptor's share with the workload is at most the victim queue's share without its workload, so that the two
    cannot preempt each other in turns."""
    LESS_THAN_INITIAL_SHARE = "LessThanInitialShare"
    """The preemptor's share with the workload is below the victim queue's share before: also evens out shares that
    differ by less than one workload."""


class AdmissionMode(StrEnum):
    """Whether a ClusterQueue orders its LocalQueues by their past usage."""

    USAGE_BASED_ADMISSION_FAIR_SHARING = "UsageBasedAdmissionFairSharing"
    """The LocalQueue with the least past usage goes first, so that one tenant cannot crowd out the others."""
    NO_ADMISSION_FAIR_SHARING = "NoAdmissionFairSharing"
    """Only priority and time decide."""


class QuotaCheckStrategy(StrEnum):
    """The treatment of a requested resource that no resource group covers."""

    BLOCK_UNDECLARED = "BlockUndeclared"
    """The workload is refused, because an admission would not limit the resource."""
    IGNORE_UNDECLARED = "IgnoreUndeclared"
    """The resource is not limited."""


class TransformationStrategy(StrEnum):
    """Whether a transformed resource is kept beside its outputs."""

    RETAIN = "Retain"
    """The input is charged as well."""
    REPLACE = "Replace"
    """Only the outputs are charged."""


class PlacementScope(StrEnum):
    """The pods that are placed on named nodes; the cluster's own scheduler places all others, by quota alone as in
    Kueue."""

    DEVICES = "devices"
    """Pods of workloads that request devices."""
    TOPOLOGY = "topology"
    """Also pods in flavors with a topology."""
    ALL = "all"
    """All pods, if nodes are known."""


class RequeuingTimestamp(StrEnum):
    """The time that orders a workload that WaitForPodsReady evicted."""

    EVICTION = "Eviction"
    """Behind the workloads that were queued before its eviction, so that it does not block them again."""
    CREATION = "Creation"
    """In its old place."""


class ClusterQueueReason(StrEnum):
    """The reason why a ClusterQueue is Active or not."""

    READY = "Ready"
    """It can admit workloads."""
    TERMINATING = "Terminating"
    """It is deleted once its workloads have ended."""
    STOPPED = "Stopped"
    """Its stopPolicy is not None."""
    FLAVOR_NOT_FOUND = "FlavorNotFound"
    """It names a flavor that does not exist."""
    ADMISSION_CHECK_NOT_FOUND = "AdmissionCheckNotFound"
    """It names a check that does not exist."""
    ADMISSION_CHECK_INACTIVE = "AdmissionCheckInactive"
    """The controller of a check is not ready to answer."""
    MULTIPLE_MULTIKUEUE_ADMISSION_CHECKS = "MultipleMultiKueueAdmissionChecks"
    """Two checks would choose a worker cluster each."""
    MULTIKUEUE_ADMISSION_CHECK_APPLIED_PER_FLAVOR = "MultiKueueAdmissionCheckAppliedPerFlavor"
    """The worker cluster chooses the flavor, so its check cannot depend on one."""
    MULTIKUEUE_WITH_PROVISIONING_REQUEST = "MultiKueueWithProvisioningRequest"
    """Nodes would be provisioned here for pods that run in a worker cluster."""
    TOPOLOGY_NOT_FOUND = "TopologyNotFound"
    """A flavor names a topology that does not exist."""
    COHORT_CYCLE = "CohortCycle"
    """Its cohorts are parents of each other, so that no tree of quotas exists."""


class LocalQueueReason(StrEnum):
    """The reason why a LocalQueue is Active or not."""

    READY = "Ready"
    """Its workloads can be admitted."""
    STOPPED = "Stopped"
    """Its stopPolicy is not None."""
    CLUSTER_QUEUE_DOES_NOT_EXIST = "ClusterQueueDoesNotExist"
    """Its workloads wait until the ClusterQueue is created."""
    CLUSTER_QUEUE_IS_INACTIVE = "ClusterQueueIsInactive"
    """Its workloads wait for the same as the ClusterQueue."""


class DecisionKind(StrEnum):
    """The decision of a cycle about one workload."""

    ADMIT = "Admit"
    """It gets its quota, and its devices if it requests any."""
    PREEMPT = "Preempt"
    """Its victims are evicted; it is admitted in a later cycle, when they have stopped."""
    EVICT = "Evict"
    """It is asked to stop, for another reason than a preemption."""
    INADMISSIBLE = "Inadmissible"
    """It does not fit, and is not tried again until a change may let it start."""
    SKIP = "Skip"
    """It does not fit now, and is tried again in the next cycle."""
    REPLACE_NODE = "ReplaceNode"
    """A pod of an admitted workload gets another node for a failed one."""


class Unscaled(StrEnum):
    """A factor that is used as it is, instead of relative to the highest value or the total."""

    ASSOCIATION = "association"
    """The priority of the association, in Slurm the account of a user."""
    PARTITION = "queue"
    """The queue_priority of the ClusterQueue."""
    QOS = "class"
    """The priority of the workload's class."""
    RESOURCES = "resources"
    """The requested amounts."""
