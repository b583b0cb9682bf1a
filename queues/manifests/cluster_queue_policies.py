"""Flavor fungibility, preemption and concurrent admission of a ClusterQueue, with the rules that join them."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from queues.manifests.resource_groups import ResourceGroupSpec
from scheduling.manifest import Fields, MistakeReason
from scheduling.manifest.fields import INT32_MIN, suggestion
from scheduling.model.vocabulary import (
    BorrowWithinCohortPolicy,
    FungibilityPolicy,
    FungibilityPreference,
    QueueingStrategy,
    ReclaimWithinCohortPolicy,
    WithinClusterQueuePolicy,
)

ConcurrentAdmission = dict[str, Any]
_MOST_CONCURRENT_FLAVORS: Final = 16


class MigrationMode(StrEnum):
    """How a workload that several flavors admit at once settles on one."""

    TRY_PREFERRED_FLAVORS = "TryPreferredFlavors"
    RETAIN_FIRST_ADMISSION = "RetainFirstAdmission"


class _OldBorrow(StrEnum):
    """`whenCanBorrow` in v1beta1, which still knows the old word."""

    BORROW = "Borrow"
    MAY_STOP_SEARCH = "MayStopSearch"
    TRY_NEXT_FLAVOR = "TryNextFlavor"


class _OldPreempt(StrEnum):
    """`whenCanPreempt` in v1beta1, which still knows the old word."""

    PREEMPT = "Preempt"
    MAY_STOP_SEARCH = "MayStopSearch"
    TRY_NEXT_FLAVOR = "TryNextFlavor"


@dataclass(frozen=True)
class Fungibility:
    """Columns of flavorFungibility, with Kueue's defaults."""

    when_can_borrow: str = FungibilityPolicy.MAY_STOP_SEARCH.value
    when_can_preempt: str = FungibilityPolicy.TRY_NEXT_FLAVOR.value
    flavor_preference: str = ""


@dataclass(frozen=True)
class Preemption:
    """Columns of preemption, with Kueue's defaults."""

    within_cluster_queue: str = WithinClusterQueuePolicy.NEVER.value
    reclaim_within_cohort: str = ReclaimWithinCohortPolicy.NEVER.value
    borrow_within_cohort_policy: str = BorrowWithinCohortPolicy.NEVER.value
    borrow_within_cohort_max_priority_threshold: int | None = None


def read_fungibility(spec: Fields, version: str) -> Fungibility:
    """`flavorFungibility`; a preference needs both `when*` to be TryNextFlavor."""
    fields = spec.fields("flavorFungibility")
    if fields is None:
        return Fungibility()
    if version == "v1beta1":
        borrow = _modern(fields.choice("whenCanBorrow", _OldBorrow.MAY_STOP_SEARCH))
        preempt = _modern(fields.choice("whenCanPreempt", _OldPreempt.TRY_NEXT_FLAVOR))
    else:
        borrow = fields.choice("whenCanBorrow", FungibilityPolicy.MAY_STOP_SEARCH)
        preempt = fields.choice("whenCanPreempt", FungibilityPolicy.TRY_NEXT_FLAVOR)
    preference = fields.optional_choice("preference", list(FungibilityPreference))
    fields.close()
    if preference and {borrow, preempt} != {FungibilityPolicy.TRY_NEXT_FLAVOR}:
        fields.error(
            "preference",
            "needs whenCanBorrow and whenCanPreempt to be TryNextFlavor",
            "Set both, or remove the preference.",
        )
    return Fungibility(borrow.value, preempt.value, preference.value if preference else "")


def _modern(word: _OldBorrow | _OldPreempt) -> FungibilityPolicy:
    if word.value == FungibilityPolicy.TRY_NEXT_FLAVOR:
        return FungibilityPolicy.TRY_NEXT_FLAVOR
    return FungibilityPolicy.MAY_STOP_SEARCH


def read_preemption(spec: Fields, version: str) -> Preemption:
    """`preemption`; borrowing by preemption needs reclaiming. v1alpha2 has no borrowWithinCohort."""
    fields = spec.fields("preemption")
    if fields is None:
        return Preemption()
    within = fields.choice("withinClusterQueue", WithinClusterQueuePolicy.NEVER)
    reclaim = fields.choice("reclaimWithinCohort", ReclaimWithinCohortPolicy.NEVER)
    borrow = fields.fields("borrowWithinCohort") if version != "v1alpha2" else None
    policy, threshold = BorrowWithinCohortPolicy.NEVER, None
    if borrow:
        policy = borrow.choice("policy", BorrowWithinCohortPolicy.NEVER)
        threshold = borrow.optional_integer("maxPriorityThreshold", minimum=INT32_MIN)
        borrow.close()
        if reclaim is ReclaimWithinCohortPolicy.NEVER and policy is not BorrowWithinCohortPolicy.NEVER:
            fields.error(
                "reclaimWithinCohort",
                f"must not be Never when borrowWithinCohort.policy is {policy}",
                "Set reclaimWithinCohort to LowerPriority or Any, or the policy to Never.",
            )
    fields.close()
    return Preemption(within.value, reclaim.value, policy.value, threshold)


def read_concurrent_admission(
    spec: Fields, version: str, strategy: str, groups: tuple[ResourceGroupSpec, ...]
) -> ConcurrentAdmission:
    """`concurrentAdmissionPolicy` (v1beta2): one resource group, at most 16 flavors, not StrictFIFO."""
    fields = spec.fields("concurrentAdmissionPolicy") if version == "v1beta2" else None
    if fields is None:
        return {}
    found: ConcurrentAdmission = {}
    migration = fields.fields("migration")
    if migration:
        found["migration"] = _read_migration(migration, groups)
    fields.close()
    spec.warn(
        "concurrentAdmissionPolicy", "has no effect: a workload is tried in one flavor after the other. Remove it."
    )
    for broken, rule, remedy in (
        (len(groups) != 1, "needs exactly one resource group", ""),
        (len(groups) == 1 and len(groups[0].flavors) > _MOST_CONCURRENT_FLAVORS, "needs at most 16 flavors", ""),
        (strategy == QueueingStrategy.STRICT_FIFO, "can't be used with StrictFIFO", "Use BestEffortFIFO."),
    ):
        if broken:
            spec.error("concurrentAdmissionPolicy", rule, remedy, MistakeReason.FORBIDDEN)
    return found


def _read_migration(migration: Fields, groups: tuple[ResourceGroupSpec, ...]) -> dict[str, Any]:
    mode = migration.optional_choice("mode", list(MigrationMode))
    found: dict[str, Any] = {"mode": mode.value} if mode else {}
    constraints = migration.fields("constraints")
    if constraints:
        flavor = constraints.text("lastAcceptableFlavorName")
        flavors = [name for group in groups for name in group.flavors]
        if flavor and flavor not in flavors:
            constraints.error(
                "lastAcceptableFlavorName", "must be a flavor of this ClusterQueue", suggestion(flavor, flavors)
            )
        if mode is not MigrationMode.TRY_PREFERRED_FLAVORS:
            migration.error("constraints", "needs mode TryPreferredFlavors", "", MistakeReason.FORBIDDEN)
        constraints.close()
        found["constraints"] = {"lastAcceptableFlavorName": flavor} if flavor else {}
    migration.close()
    return found
