"""ClusterQueue: its quota, the order of its pending workloads, and its preemption rules."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from scheduling.model.admission_check import AdmissionCheckRule
from scheduling.model.cohort import NO_PROTECTION, PreemptionProtection, PriorityWeights, ResourceGroup, UserLimit
from scheduling.model.selectors import LabelSelector
from scheduling.model.vocabulary import (
    AdmissionMode,
    BackfillPolicy,
    BorrowWithinCohortPolicy,
    FungibilityPolicy,
    FungibilityPreference,
    MigrationMode,
    QueueingStrategy,
    ReclaimWithinCohortPolicy,
    StopPolicy,
    WithinClusterQueuePolicy,
)


@dataclass(frozen=True, slots=True)
class BorrowWithinCohort:
    """Preemption while borrowing: only of workloads with lower priority, and at or below the threshold if there is
    one."""

    policy: BorrowWithinCohortPolicy = BorrowWithinCohortPolicy.NEVER
    max_priority_threshold: int | None = None


@dataclass(frozen=True, slots=True)
class ClusterQueuePreemption:
    """Kueue's `spec.preemption`."""

    within_cluster_queue: WithinClusterQueuePolicy = WithinClusterQueuePolicy.NEVER
    reclaim_within_cohort: ReclaimWithinCohortPolicy = ReclaimWithinCohortPolicy.NEVER
    borrow_within_cohort: BorrowWithinCohort = BorrowWithinCohort()


@dataclass(frozen=True, slots=True)
class FlavorFungibility:
    """Kueue's `spec.flavorFungibility`."""

    when_can_borrow: FungibilityPolicy = FungibilityPolicy.MAY_STOP_SEARCH
    when_can_preempt: FungibilityPolicy = FungibilityPolicy.TRY_NEXT_FLAVOR
    preference: FungibilityPreference | None = None


@dataclass(frozen=True, slots=True)
class ConcurrentAdmission:
    """Kueue's `spec.concurrentAdmissionPolicy`: each workload has a variant for each flavor, which pursue quota at the
    same time. `last_acceptable_flavor`: a workload that runs moves to no flavor after this one."""

    mode: MigrationMode = MigrationMode.TRY_PREFERRED_FLAVORS
    last_acceptable_flavor: str = ""


@dataclass(frozen=True, slots=True)
class ClusterQueue:
    """Kueue's ClusterQueue, defaulted. `namespace_selector` None selects no namespace.

    Our own, and off by default: `preempt_for_devices` preempts when quota is free and only devices are full;
    `priority_weights` order pending workloads by a multifactor priority, of which `queue_priority` is a factor;
    `queue_priority` also orders the queues of a cohort with a sharing policy. `never_reclaimed`: no other queue
    preempts its workloads. `user_limits` limit what each user holds. `backfill`: a workload that must wait gets a
    planned start, which later ones must not delay.
    """

    name: str
    cohort_name: str = ""
    resource_groups: tuple[ResourceGroup, ...] = ()
    queueing_strategy: QueueingStrategy = QueueingStrategy.BEST_EFFORT_FIFO
    namespace_selector: LabelSelector | None = None
    preemption: ClusterQueuePreemption = ClusterQueuePreemption()
    flavor_fungibility: FlavorFungibility = FlavorFungibility()
    fair_weight: float = 1.0
    stop_policy: StopPolicy = StopPolicy.NONE
    admission_checks: tuple[AdmissionCheckRule, ...] = ()
    admission_mode: AdmissionMode = AdmissionMode.NO_ADMISSION_FAIR_SHARING
    labels: Mapping[str, str] = field(default_factory=dict)
    preempt_for_devices: bool = False
    protection: PreemptionProtection = NO_PROTECTION
    priority_weights: PriorityWeights | None = None
    queue_priority: int = 0
    never_reclaimed: bool = False
    user_limits: tuple[UserLimit, ...] = ()
    terminating: bool = False
    concurrent_admission: ConcurrentAdmission | None = None
    backfill: BackfillPolicy | None = None

    @property
    def flavor_order(self) -> tuple[str, ...]:
        """The flavors of the first resource group, the preferred first."""
        return tuple(flavor.name for flavor in self.resource_groups[0].flavors) if self.resource_groups else ()
