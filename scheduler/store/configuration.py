"""Reads Kueue's Configuration, as stored with a cluster, into the settings of the rules."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from accounts.kinds.feature_gates import (
    BALANCED_PLACEMENT,
    CLAIMS_INTEGRATED,
    CLAIMS_REJECTED,
    DISABLE_WAIT_FOR_PODS_READY,
    PLACE_ALL_PODS,
    STRICT_KUEUE_LIFECYCLE,
)
from scheduling.lifecycle.retention import Retention
from scheduling.model.configuration import (
    DEFAULT_PREEMPTION_STRATEGIES,
    AdmissionFairSharing,
    Configuration,
    CounterSource,
    DeviceClassMapping,
    FairSharing,
    RequeuingStrategy,
    WaitForPodsReady,
)
from scheduling.model.quantity import parse_quantity
from scheduling.model.resources import Transformation
from scheduling.model.times import duration_seconds
from scheduling.model.vocabulary import (
    PreemptionStrategy,
    QuotaCheckStrategy,
    RequeuingTimestamp,
    TransformationStrategy,
)


def read_configuration(manifest: Mapping[str, Any]) -> Configuration:
    """The Configuration of a cluster. An empty one means Kueue's defaults, without fair sharing and without
    pods-ready.

    Kueue's main program enables waitForPodsReady if the block is absent (T64); we wait for pods only if it is
    configured, or with StrictKueueLifecycle.
    """
    resources = manifest.get("resources") or {}
    gates = manifest.get("featureGates") or {}
    strict = bool(gates.get(STRICT_KUEUE_LIFECYCLE, False))
    return Configuration(
        fair_sharing=_fair_sharing(manifest.get("fairSharing")),
        admission_fair_sharing=_admission_fair_sharing(manifest.get("admissionFairSharing")),
        wait_for_pods_ready=_wait_for_pods_ready(_pods_ready_block(manifest, gates, strict=strict)),
        transformations=tuple(_transformation(rule) for rule in resources.get("transformations") or ()),
        exclude_resource_prefixes=tuple(resources.get("excludeResourcePrefixes") or ()),
        quota_check_strategy=QuotaCheckStrategy(
            resources.get("quotaCheckStrategy") or QuotaCheckStrategy.BLOCK_UNDECLARED
        ),
        balanced_placement=bool(gates.get(BALANCED_PLACEMENT, False)),
        strict_kueue_lifecycle=strict,
        places_all_pods=bool(gates.get(PLACE_ALL_PODS, True)),
        device_class_mappings=tuple(_device_classes(each) for each in resources.get("deviceClassMappings") or ()),
        integrates_claims=bool(gates.get(CLAIMS_INTEGRATED, True)),
        rejects_claims=bool(gates.get(CLAIMS_REJECTED, True)),
    )


def read_retention(manifest: Mapping[str, Any]) -> Retention:
    """How long a cluster keeps finished workloads, and jobs of workloads that Kueue's rules deactivated."""
    policies = (manifest.get("objectRetentionPolicies") or {}).get("workloads") or {}
    return Retention(_age(policies, "afterFinished"), _age(policies, "afterDeactivatedByKueue"))


def _age(policies: Mapping[str, Any], key: str) -> float | None:
    value = policies.get(key)
    return None if value is None else duration_seconds(str(value))


def _pods_ready_block(
    manifest: Mapping[str, Any], gates: Mapping[str, Any], *, strict: bool
) -> Mapping[str, Any] | None:
    block: Mapping[str, Any] | None = manifest.get("waitForPodsReady")
    on_by_default = strict and not gates.get(DISABLE_WAIT_FOR_PODS_READY, False)
    return {} if block is None and on_by_default else block


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
    counters = (source["counter"] for source in mapping.get("sources") or () if source.get("counter"))
    return DeviceClassMapping(
        mapping["name"],
        tuple(mapping.get("deviceClassNames") or ()),
        tuple(
            CounterSource(each["driver"], each["name"], each["deviceSelector"]["cel"]["expression"])
            for each in counters
        ),
    )
