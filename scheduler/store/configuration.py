"""Reads Kueue's Configuration, as stored with a cluster, into the settings of the rules."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from accounts.kinds import feature_gates as gates
from accounts.kinds.feature_gates import is_on
from accounts.models import Cluster
from scheduling.model.configuration import (
    DEFAULT_PREEMPTION_STRATEGIES,
    AdmissionFairSharing,
    CapacitySource,
    Configuration,
    CounterSource,
    DeviceClassMapping,
    FairSharing,
    Features,
    RequeuingStrategy,
    WaitForPodsReady,
)
from scheduling.model.quantity import parse_quantity
from scheduling.model.resources import Transformation
from scheduling.model.times import duration_seconds
from scheduling.model.vocabulary import (
    PlacementScope,
    PreemptionStrategy,
    QuotaCheckStrategy,
    RequeuingTimestamp,
    TransformationStrategy,
)


def cluster_configuration(cluster: Cluster) -> Configuration:
    """Return how the rules decide in a cluster: its Configuration, and which pods it places."""
    return replace(read_configuration(cluster.configuration), placement=PlacementScope(cluster.placement))


def read_configuration(manifest: Mapping[str, Any]) -> Configuration:
    """Read Kueue's Configuration.

    An empty one means Kueue's defaults, without fair sharing and without pods-ready. Kueue's main program enables
    waitForPodsReady if the block is absent (T64); kueueweb waits for pods only if the block is present, or with
    StrictKueueLifecycle.
    """
    resources = manifest.get("resources") or {}
    strict = is_on(manifest, gates.STRICT_KUEUE_LIFECYCLE)
    by_usage = manifest.get("admissionFairSharing") if is_on(manifest, gates.ADMISSION_FAIR_SHARING) else None
    check = resources.get("quotaCheckStrategy") if is_on(manifest, gates.QUOTA_CHECK_STRATEGY) else None
    return Configuration(
        fair_sharing=_fair_sharing(manifest.get("fairSharing")),
        admission_fair_sharing=_admission_fair_sharing(by_usage),
        wait_for_pods_ready=_wait_for_pods_ready(_pods_ready_block(manifest, strict=strict)),
        transformations=tuple(_transformation(rule) for rule in resources.get("transformations") or ()),
        exclude_resource_prefixes=tuple(resources.get("excludeResourcePrefixes") or ()),
        quota_check_strategy=QuotaCheckStrategy(check or QuotaCheckStrategy.BLOCK_UNDECLARED),
        balanced_placement=is_on(manifest, gates.BALANCED_PLACEMENT),
        strict_kueue_lifecycle=strict,
        device_class_mappings=tuple(_device_classes(each) for each in resources.get("deviceClassMappings") or ()),
        integrates_claims=is_on(manifest, gates.CLAIMS_INTEGRATED),
        rejects_claims=is_on(manifest, gates.CLAIMS_REJECTED),
        features=Features(
            priority_sorting=is_on(manifest, gates.PRIORITY_SORTING),
            prefers_non_borrowing=is_on(manifest, gates.PREFER_NON_BORROWING),
            preempts_within_nominal=is_on(manifest, gates.PREEMPT_WITHIN_NOMINAL),
            flavor_fungibility=is_on(manifest, gates.FLAVOR_FUNGIBILITY),
            partial_admission=is_on(manifest, gates.PARTIAL_ADMISSION),
            reclaimable_pods=is_on(manifest, gates.RECLAIMABLE_PODS),
            admission_gates=is_on(manifest, gates.ADMISSION_GATED_BY),
            priority_boost=is_on(manifest, gates.PRIORITY_BOOST),
            concurrent_admission=is_on(manifest, gates.CONCURRENT_ADMISSION),
        ),
    )


def _pods_ready_block(manifest: Mapping[str, Any], *, strict: bool) -> Mapping[str, Any] | None:
    """Return the block, unless the gate DisableWaitForPodsReady is on."""
    if is_on(manifest, gates.DISABLE_WAIT_FOR_PODS_READY):
        return None
    block: Mapping[str, Any] | None = manifest.get("waitForPodsReady")
    return {} if block is None and strict else block


def _seconds(block: Mapping[str, Any], key: str, default: float) -> float:
    value = block.get(key)
    return default if value is None else duration_seconds(str(value))


def _fair_sharing(block: Mapping[str, Any] | None) -> FairSharing | None:
    if block is None or block.get("enable") is False:  # `enable` exists in v1beta1
        return None
    strategies = tuple(PreemptionStrategy(word) for word in block.get("preemptionStrategies") or ())
    return FairSharing(strategies or DEFAULT_PREEMPTION_STRATEGIES)


def _admission_fair_sharing(block: Mapping[str, Any] | None) -> AdmissionFairSharing | None:
    if block is None:
        return None
    return AdmissionFairSharing(
        usage_half_life_seconds=_seconds(block, "usageHalfLifeTime", 0.0),
        usage_sampling_interval_seconds=_seconds(block, "usageSamplingInterval", 300.0),
        resource_weights={name: float(weight) for name, weight in (block.get("resourceWeights") or {}).items()},
    )


def _wait_for_pods_ready(block: Mapping[str, Any] | None) -> WaitForPodsReady | None:
    if block is None or block.get("enable") is False:
        return None
    timeout = _seconds(block, "timeout", 1800.0)
    strategy = block.get("requeuingStrategy") or {}
    return WaitForPodsReady(
        timeout_seconds=timeout,
        recovery_timeout_seconds=_seconds(block, "recoveryTimeout", timeout),
        block_admission=bool(block.get("blockAdmission", False)),
        requeuing_strategy=RequeuingStrategy(
            timestamp=RequeuingTimestamp(strategy.get("timestamp") or RequeuingTimestamp.EVICTION),
            backoff_limit_count=strategy.get("backoffLimitCount"),
            backoff_base_seconds=float(strategy.get("backoffBaseSeconds", 60)),
            backoff_max_seconds=float(strategy.get("backoffMaxSeconds", 3600)),
        ),
    )


def _transformation(rule: Mapping[str, Any]) -> Transformation:
    return Transformation(
        input=rule["input"],
        strategy=TransformationStrategy(rule.get("strategy") or TransformationStrategy.RETAIN),
        multiply_by=rule.get("multiplyBy") or None,
        outputs={name: parse_quantity(quantity) for name, quantity in (rule.get("outputs") or {}).items()},
    )


def _device_classes(mapping: Mapping[str, Any]) -> DeviceClassMapping:
    return DeviceClassMapping(
        mapping["name"],
        tuple(mapping.get("deviceClassNames") or ()),
        tuple(CounterSource(*each) for each in _sources(mapping, "counter")),
        tuple(CapacitySource(*each) for each in _sources(mapping, "capacity")),
    )


def _sources(mapping: Mapping[str, Any], kind: str) -> Iterator[tuple[str, str, str]]:
    """Yield the driver, name and selector of each source of a kind."""
    for each in (source[kind] for source in mapping.get("sources") or () if source.get(kind)):
        yield each["driver"], each["name"], each["deviceSelector"]["cel"]["expression"]
