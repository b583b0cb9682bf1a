"""The words of a workload's life are Kueue's, and those that are ours are known by name."""

from __future__ import annotations

from enum import StrEnum

import pytest

from scheduling.lifecycle import conditions
from scheduling.model.vocabulary import (
    AdmissionCheckStatus,
    ConditionType,
    DeactivationCause,
    EvictionReason,
    FinishedReason,
    PendingReason,
    PodsReadyReason,
    PreemptionReason,
    RequeuedReason,
    StopPolicy,
)

KUEUE: dict[type[StrEnum], str] = {
    ConditionType: "QuotaReserved Admitted Evicted Preempted Requeued Finished PodsReady DeactivationTarget "
    "BlockedOnPreemptionGates WaitingForReplacementPods",
    PendingReason: "PendingEvaluation NoMatchingFlavor ExceedsMaxQuota WaitingForQuota TopologyPlacementFailed "
    "WaitingForPreemptedWorkloads Misconfigured Suspended WaitingForPodsReady AdmissionGated OnHold Deactivated",
    EvictionReason: "Preempted PodsReadyTimeout AdmissionCheck ClusterQueueStopped LocalQueueStopped NodeFailures "
    "FlavorMigration VariantEvicted ConcurrentAdmission Deactivated",
    PreemptionReason: "InClusterQueue InCohortReclamation InCohortFairSharing InCohortReclaimWhileBorrowing",
    RequeuedReason: "Reactivated BackoffFinished ClusterQueueRestarted LocalQueueRestarted Inadmissible",
    FinishedReason: "Succeeded Failed OutOfSync OwnerNotFound WorkloadSliceReplaced FailedToStart",
    PodsReadyReason: "WaitForStart WaitForRecovery Started Recovered",
    DeactivationCause: "AdmissionCheck RequeuingLimitExceeded MaximumExecutionTimeExceeded EvictedOnManagerCluster",
    AdmissionCheckStatus: "Pending Ready Retry Rejected",
    StopPolicy: "None Hold HoldAndDrain",
}
OURS = {
    PendingReason: {
        "WaitingForDevices",
        "WaitingForNodes",
        "WaitingForUserLimit",
        "WaitingForPlannedStart",
        "WaitingForReservation",
        "PodGroupIncomplete",
    },
    EvictionReason: {"DevicesNotAssigned", "Drained", "RequeueRequested", "ReservationStarted"},
    FinishedReason: {"Cancelled"},
}


@pytest.mark.parametrize("words", KUEUE)
def test_every_word_of_kueue_is_there_and_no_other(words: type[StrEnum]) -> None:
    assert {word.value for word in words} - OURS.get(words, set()) == set(KUEUE[words].split())


def test_reasons_of_admitted() -> None:
    assert (
        conditions.ADMITTED, conditions.NO_RESERVATION, conditions.UNSATISFIED_CHECKS, conditions.PENDING_TOPOLOGY,
        conditions.QUOTA_RESERVED, conditions.PREEMPTION_GATED,
    ) == (
        "Admitted", "NoReservation", "UnsatisfiedAdmissionChecks", "PendingDelayedTopologyRequests", "QuotaReserved",
        "PreemptionGated",
    )  # fmt: skip


@pytest.mark.parametrize("cause", DeactivationCause)
def test_a_deactivation_names_its_cause(cause: DeactivationCause) -> None:
    assert conditions.eviction_reason(EvictionReason.DEACTIVATED, cause) == f"DeactivatedDueTo{cause}"
    assert conditions.eviction_event(EvictionReason.DEACTIVATED, cause) == f"EvictedDueToDeactivatedDueTo{cause}"
