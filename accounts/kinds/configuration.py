"""Kueue's Configuration (config.kueue.x-k8s.io), as far as it decides anything."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Final

from scheduling.manifest import Fields, MistakeReason, read_metadata
from scheduling.manifest.syntax import qualified_name
from scheduling.model.duration import duration_seconds
from scheduling.model.vocabulary import (
    PreemptionStrategy,
    QuotaCheckStrategy,
    RequeuingTimestamp,
    TransformationStrategy,
)

API_VERSION: Final = "config.kueue.x-k8s.io/v1beta2"
STRATEGY_LISTS: Final = (
    ["LessThanOrEqualToFinalShare"],
    ["LessThanInitialShare"],
    ["LessThanOrEqualToFinalShare", "LessThanInitialShare"],
)
_NOT_OURS: Final = (
    "namespace", "health", "metrics", "webhook", "leaderElection", "controller", "clientConnection", "tls",
    "multiKueue", "manageJobsWithoutQueueName", "managedJobsNamespaceSelector", "internalCertManagement",
    "visibilityServer", "queueVisibility", "gracefulShutDown", "cacheNamespace", "syncPeriod", "pprofBindAddress",
)  # fmt: skip


class _Version(StrEnum):
    V1BETA1 = "v1beta1"
    V1BETA2 = "v1beta2"


def read_configuration(top: Fields, version: str) -> dict[str, Any]:
    """The Configuration in its v1beta2 form, with apiVersion and kind: blocks that v1beta1 switches off are left out.

    What is about Kueue's own process (ports, certificates, leader election ...) is kept and has no effect here.
    """
    read_metadata(top, namespaced=False, nameless=True)
    top.ignore(*_NOT_OURS)
    old = version == _Version.V1BETA1
    _read_integrations(top, old)
    found = {key: value for key, value in top.content.items() if value is not None}
    for key, reader in (("waitForPodsReady", _read_pods_ready), ("fairSharing", _read_fair_sharing)):
        block = top.fields(key)
        if block is not None and not reader(block, old):
            del found[key]
        elif block is not None and old:
            found[key] = {name: value for name, value in block.content.items() if name != "enable"}
    _read_admission_fair_sharing(top)
    _read_resources(top)
    _read_retention(top)
    gates = top.mapping("featureGates")
    for gate, on in gates.items():
        if not isinstance(on, bool):
            top.report.error(f"featureGates.{gate}", on, "must be true or false", "", MistakeReason.WRONG_TYPE)
    found.pop("metadata", None)
    found.pop("queueVisibility", None)
    return {**found, "apiVersion": API_VERSION, "kind": "Configuration"}


def write_configuration(configuration: Mapping[str, Any]) -> dict[str, Any]:
    """The manifest of a stored Configuration."""
    return {"apiVersion": API_VERSION, "kind": "Configuration"} | dict(configuration)


def _read_integrations(top: Fields, old: bool) -> None:
    block = top.fields("integrations")
    if block is None:
        return
    block.texts("frameworks")
    block.texts("externalFrameworks")
    block.texts("labelKeysToCopy", syntax=qualified_name)
    if old:
        block.ignore("podOptions")
    block.close()


def _read_pods_ready(block: Fields, old: bool) -> bool:
    """Whether the block switches the feature on."""
    enabled = block.boolean("enable", default=False) if old else True
    for key in ("timeout", "recoveryTimeout"):
        _duration(block, key)
    block.boolean("blockAdmission")
    strategy = block.fields("requeuingStrategy")
    if strategy:
        strategy.choice("timestamp", RequeuingTimestamp.EVICTION)
        for key in ("backoffLimitCount", "backoffBaseSeconds", "backoffMaxSeconds"):
            strategy.optional_integer(key)
        strategy.close()
    block.close()
    return enabled


def _read_fair_sharing(block: Fields, old: bool) -> bool:
    """Whether the block switches the feature on."""
    enabled = block.boolean("enable", default=False) if old else True
    strategies = block.texts("preemptionStrategies")
    if strategies and strategies not in STRATEGY_LISTS:
        block.error(
            "preemptionStrategies",
            f"must be one of {'; '.join(', '.join(words) for words in STRATEGY_LISTS)}",
            f"Known are {', '.join(PreemptionStrategy)}.",
            MistakeReason.NOT_SUPPORTED,
        )
    elif not strategies and not old:
        block.require("preemptionStrategies", f"Use {PreemptionStrategy.LESS_THAN_OR_EQUAL_TO_FINAL_SHARE}.")
        if block.has("preemptionStrategies"):
            block.error("preemptionStrategies", "must not be empty", "", MistakeReason.REQUIRED)
    block.close()
    return enabled


def _read_admission_fair_sharing(top: Fields) -> None:
    block = top.fields("admissionFairSharing")
    if block is None:
        return
    _duration(block, "usageHalfLifeTime")
    if _duration(block, "usageSamplingInterval") == 0:
        block.error("usageSamplingInterval", "must be above 0")
    weights = block.fields("resourceWeights")
    for name in weights.content if weights else ():
        weight = weights.take(name) if weights else None
        if isinstance(weight, bool) or not isinstance(weight, int | float) or weight < 0:
            block.report.error(f"{block.at('resourceWeights')}.{name}", weight, "must be a number of at least 0")
    block.close()


def _read_resources(top: Fields) -> None:
    block = top.fields("resources")
    if block is None:
        return
    prefixes = block.texts("excludeResourcePrefixes")
    check = block.choice("quotaCheckStrategy", QuotaCheckStrategy.BLOCK_UNDECLARED)
    if prefixes and check is QuotaCheckStrategy.IGNORE_UNDECLARED:
        block.error(
            "quotaCheckStrategy",
            "can't be IgnoreUndeclared beside excludeResourcePrefixes",
            "Keep one of the two.",
            MistakeReason.FORBIDDEN,
        )
    inputs: set[str] = set()
    for item in block.items("transformations"):
        name = item.text("input", required=True, syntax=qualified_name)
        if name in inputs:
            item.error("input", "has a transformation already", "Join their outputs.", MistakeReason.DUPLICATE)
        inputs.add(name)
        item.choice("strategy", TransformationStrategy.RETAIN)
        item.text("multiplyBy", syntax=qualified_name)
        outputs = item.fields("outputs")
        for resource in outputs.content if outputs else ():
            if outputs:
                outputs.quantity(resource)
        item.close()
    block.ignore("deviceClassMappings")
    block.close()


def _read_retention(top: Fields) -> None:
    block = top.fields("objectRetentionPolicies")
    if block is None:
        return
    workloads = block.fields("workloads")
    if workloads:
        _duration(workloads, "afterFinished")
        _duration(workloads, "afterDeactivatedByKueue")
        workloads.close()
    block.close()


def _duration(block: Fields, key: str) -> float | None:
    text = block.text(key)
    if not text:
        return None
    try:
        return duration_seconds(text)
    except ValueError as mistake:
        block.error(key, str(mistake))
        return None
