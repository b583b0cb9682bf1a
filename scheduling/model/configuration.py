"""The parts of Kueue's Configuration that affect decisions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from scheduling.model.resources import Transformation
from scheduling.model.vocabulary import PlacementScope, PreemptionStrategy, QuotaCheckStrategy, RequeuingTimestamp
from scheduling.model.workload import JOB_GATE, Workload

DEFAULT_PREEMPTION_STRATEGIES = (
    PreemptionStrategy.LESS_THAN_OR_EQUAL_TO_FINAL_SHARE,
    PreemptionStrategy.LESS_THAN_INITIAL_SHARE,
)


@dataclass(frozen=True, slots=True)
class FairSharing:
    """If present, queues of a cohort are ordered, and preempt, by their dominant resource share."""

    preemption_strategies: tuple[PreemptionStrategy, ...] = DEFAULT_PREEMPTION_STRATEGIES


@dataclass(frozen=True, slots=True)
class AdmissionFairSharing:
    """If present, LocalQueues of usage-based ClusterQueues are ordered by decayed past usage.

    With `usage_half_life_seconds` 0, usage is forgotten at every sample. `resource_weights` default to 1.
    """

    usage_half_life_seconds: float = 0.0
    usage_sampling_interval_seconds: float = 300.0
    resource_weights: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RequeuingStrategy:
    """The rule by which a workload whose pods were not ready in time is requeued. Without a limit count it is
    requeued without end."""

    timestamp: RequeuingTimestamp = RequeuingTimestamp.EVICTION
    backoff_limit_count: int | None = None
    backoff_base_seconds: float = 60.0
    backoff_max_seconds: float = 3600.0

    def backoff_seconds(self, count: int) -> float:
        """Return the delay before attempt `count` (from 1), without jitter: base * 2^(count-1), from the second
        attempt on at most the maximum. A maximum of 0 sets no upper bound, as in Kueue."""
        delay = self.backoff_base_seconds * 2.0 ** (min(count, 64) - 1)
        return min(self.backoff_max_seconds or delay, delay) if count > 1 else delay


@dataclass(frozen=True, slots=True)
class WaitForPodsReady:
    """Kueue's `waitForPodsReady`; `recovery_timeout_seconds` 0 switches the recovery timeout off."""

    timeout_seconds: float = 1800.0
    recovery_timeout_seconds: float = 1800.0
    block_admission: bool = False
    requeuing_strategy: RequeuingStrategy = RequeuingStrategy()


@dataclass(frozen=True, slots=True)
class CounterSource:
    """A quota counted by a shared counter of partitionable devices."""

    driver: str
    name: str
    selector: str


@dataclass(frozen=True, slots=True)
class CapacitySource:
    """A quota counted by the part of a device's capacity that a claim consumes, for devices with several claims."""

    driver: str
    name: str
    selector: str


@dataclass(frozen=True, slots=True)
class DeviceClassMapping:
    """Kueue's `deviceClassMappings`: devices of these classes are charged as the resource `name`."""

    name: str
    device_class_names: tuple[str, ...]
    counters: tuple[CounterSource, ...] = ()
    capacities: tuple[CapacitySource, ...] = ()


@dataclass(frozen=True, slots=True)
class Features:
    """Kueue's feature gates that change decisions and have no other setting, with Kueue's defaults.

    * priority_sorting (PrioritySortingWithinCohort): at the same borrowing level, higher priority comes first; if off,
      the older workload does.
    * prefers_non_borrowing (FairSharingPrioritizeNonBorrowing): under fair sharing, workloads that need not borrow come
      first.
    * preempts_within_nominal (FairSharingPreemptWithinNominal): under fair sharing, a workload within its own quota
      gets that quota back regardless of shares.
    * flavor_fungibility (FlavorFungibility): if off, the first flavor that fits is taken, or else the first with the
      best mode, regardless of the ClusterQueue's fungibility.
    * concurrent_admission (ConcurrentAdmission): if off, the policies of ClusterQueues are ignored.
    * partial_admission, reclaimable_pods, admission_gates, priority_boost: if off, the minimum counts, reclaimable
      pods, gates (except ours for earlier jobs) or priority boost of a workload are ignored.
    """

    priority_sorting: bool = True
    prefers_non_borrowing: bool = True
    preempts_within_nominal: bool = True
    flavor_fungibility: bool = True
    partial_admission: bool = True
    reclaimable_pods: bool = True
    admission_gates: bool = True
    priority_boost: bool = False
    concurrent_admission: bool = False

    def counted(self, workload: Workload) -> Workload:
        """Return the workload without the fields that the gates ignore."""
        gates, boost, reclaimable = workload.admission_gates, workload.priority_boost, workload.reclaimable_pods
        pod_sets = workload.pod_sets
        if not self.partial_admission and any(pod_set.min_count is not None for pod_set in pod_sets):
            pod_sets = tuple(replace(pod_set, min_count=None) for pod_set in pod_sets)
        if not self.admission_gates:
            gates = tuple(gate for gate in gates if gate.startswith(JOB_GATE))
        boost = boost if self.priority_boost else 0
        reclaimable = reclaimable if self.reclaimable_pods else {}
        now = (pod_sets, gates, boost, reclaimable)
        if now == (workload.pod_sets, workload.admission_gates, workload.priority_boost, workload.reclaimable_pods):
            return workload
        return replace(
            workload, pod_sets=pod_sets, admission_gates=gates, priority_boost=boost, reclaimable_pods=reclaimable
        )


@dataclass(frozen=True, slots=True)
class Configuration:
    """Kueue's Configuration. An absent block is None, and its feature is off.

    `balanced_placement` is Kueue's gate TASBalancedPlacement. `strict_kueue_lifecycle` is a gate of kueueweb
    (StrictKueueLifecycle) for Kueue's life cycle, even where kueueweb's is better for users. `placement` is no part of
    Kueue's Configuration: the cluster's setting decides which pods are placed on nodes.

    `integrates_claims` is Kueue's gate KueueDRAIntegration. Without it `rejects_claims`
    (KueueDRARejectWorkloadsWhenDRADisabled) keeps workloads with claims out; without both, claims count nothing.
    `features` are the gates without a setting of their own.
    """

    fair_sharing: FairSharing | None = None
    admission_fair_sharing: AdmissionFairSharing | None = None
    wait_for_pods_ready: WaitForPodsReady | None = None
    transformations: tuple[Transformation, ...] = ()
    exclude_resource_prefixes: tuple[str, ...] = ()
    quota_check_strategy: QuotaCheckStrategy = QuotaCheckStrategy.BLOCK_UNDECLARED
    balanced_placement: bool = False
    strict_kueue_lifecycle: bool = False
    placement: PlacementScope = PlacementScope.DEVICES
    device_class_mappings: tuple[DeviceClassMapping, ...] = ()
    integrates_claims: bool = True
    rejects_claims: bool = True
    features: Features = field(default_factory=Features)
