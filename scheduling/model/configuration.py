"""The parts of Kueue's Configuration that affect decisions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from scheduling.model.features import Features
from scheduling.model.resources import Transformation
from scheduling.model.vocabulary import PlacementScope, PreemptionStrategy, QuotaCheckStrategy, RequeuingTimestamp

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
    """How a workload whose pods were not ready in time is requeued. Without a limit count it is requeued for ever."""

    timestamp: RequeuingTimestamp = RequeuingTimestamp.EVICTION
    backoff_limit_count: int | None = None
    backoff_base_seconds: float = 60.0
    backoff_max_seconds: float = 3600.0

    def backoff_seconds(self, count: int) -> float:
        """The delay before attempt `count` (from 1), without jitter: base * 2^(count-1), from the second on at most the
        maximum. A maximum of 0 is none, as in Kueue."""
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
class DeviceClassMapping:
    """Kueue's `deviceClassMappings`: devices of these classes are charged as the resource `name`."""

    name: str
    device_class_names: tuple[str, ...]
    counters: tuple[CounterSource, ...] = ()


@dataclass(frozen=True, slots=True)
class Configuration:
    """Kueue's Configuration. An absent block is None, and its feature is off.

    `balanced_placement` is Kueue's gate TASBalancedPlacement. `strict_kueue_lifecycle` is a gate of ours
    (StrictKueueLifecycle) that follows Kueue's lifecycle even where ours is better for users. `placement` is no part
    of Kueue's Configuration: the cluster says which pods are placed on nodes.

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
