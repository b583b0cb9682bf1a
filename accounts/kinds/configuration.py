"""Kueue's Configuration (config.kueue.x-k8s.io): the fields that affect our behaviour."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Final

from accounts.kinds.device_classes import read_device_class_mappings
from accounts.kinds.feature_gates import (
    CAPACITY_INTEGRATED,
    COUNTERS_INTEGRATED,
    DEPENDENCIES,
    GATES,
    SPARK_APPLICATIONS,
    is_on,
)
from accounts.kinds.frameworks import read_frameworks
from accounts.kinds.metrics_settings import read_metrics
from accounts.kinds.process_settings import read_process_settings
from kinds.label_selector import read_label_selector
from scheduling.manifest import FieldReader, MistakeReason, read_metadata
from scheduling.manifest.field_reader import suggestion
from scheduling.manifest.syntax import label_value, qualified_name
from scheduling.model.configuration import DEFAULT_PREEMPTION_STRATEGIES
from scheduling.model.times import duration_seconds
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
_REMOVE_IT: Final = "Remove it."
DISPATCHERS: Final = (
    "kueue.x-k8s.io/multikueue-dispatcher-all-at-once", "kueue.x-k8s.io/multikueue-dispatcher-incremental",
)  # fmt: skip
_MULTIKUEUE_WITHOUT: Final[Mapping[str, str]] = {
    "externalFrameworks": "jobs of unknown kinds are not sent to other clusters",
    "clusterProfile": "a clusterProfileRef must name a registered cluster",
}


class _Version(StrEnum):
    V1BETA1 = "v1beta1"
    V1BETA2 = "v1beta2"


def read_configuration(top: FieldReader, version: str) -> dict[str, Any]:
    """Return the Configuration in its v1beta2 form, with apiVersion and kind.

    Blocks that v1beta1 switches off are left out. Each field either has an effect or is refused by its name; settings
    of Kueue's own Deployment are accepted without effect.
    """
    read_metadata(top, namespaced=False, nameless=True)
    old = version == _Version.V1BETA1
    read_process_settings(top, old=old)
    read_metrics(top)
    _read_integrations(top, old)
    top.boolean("manageJobsWithoutQueueName")
    selector = read_label_selector(top, "managedJobsNamespaceSelector")
    found = {key: value for key, value in top.content.items() if value is not None}
    for key, reader in (("waitForPodsReady", _read_pods_ready), ("fairSharing", _read_fair_sharing)):
        block = top.fields(key)
        if block is not None and not reader(block, old):
            del found[key]
        elif block is not None and old:
            found[key] = {name: value for name, value in block.content.items() if name != "enable"}
            if key == "waitForPodsReady":  # which the old API enabled by its presence
                said = {name: value for name, value in found[key].items() if value is not None}
                found[key] = {"timeout": "5m", "blockAdmission": True} | said
            if key == "fairSharing" and not found[key].get("preemptionStrategies"):
                found[key]["preemptionStrategies"] = list(DEFAULT_PREEMPTION_STRATEGIES)  # as v1beta2 has to say it
    _read_admission_fair_sharing(top)
    _read_resources(top)
    _read_retention(top)
    _read_multikueue(top)
    _read_feature_gates(top)
    if selector is not None:
        found["managedJobsNamespaceSelector"] = selector
    found.pop("metadata", None)
    found.pop("queueVisibility", None)
    return {**found, "apiVersion": API_VERSION, "kind": "Configuration"}


def write_configuration(configuration: Mapping[str, Any]) -> dict[str, Any]:
    """Write the manifest of a stored Configuration."""
    return {"apiVersion": API_VERSION, "kind": "Configuration"} | dict(configuration)


def _read_feature_gates(top: FieldReader) -> None:
    gates = top.fields("featureGates")
    if gates is None:
        return
    for name in gates.content:
        gate = GATES.get(name)
        if gate is None:
            rule = "is not a feature gate of Kueue"
            gates.error(name, rule, suggestion(name, GATES), MistakeReason.NOT_SUPPORTED)
            continue
        on, above = gates.boolean(name, default=gate.default), DEPENDENCIES.get(name)
        above_is_on = above is None or is_on(top.content, above)
        if on and gates.has(name) and not above_is_on:
            gates.error(name, f"requires {above}, which is off", f"Switch {above} on as well.", MistakeReason.REQUIRED)
        elif above_is_on and not gate.allows(on=on):
            word, other = ("true", "false") if on else ("false", "true")
            rule = f"Unsupported value: {word}: the feature is always {'off' if on else 'on'} here"
            gates.error(name, rule, f"Write {other}, or remove it.", MistakeReason.NOT_SUPPORTED)


def _read_integrations(top: FieldReader, old: bool) -> None:
    block = top.fields("integrations")
    if block is None:
        return
    read_frameworks(block, with_spark=is_on(top.content, SPARK_APPLICATIONS))
    block.texts("labelKeysToCopy", syntax=qualified_name)
    if old and block.take("podOptions"):
        rule = "Unsupported value: newer versions have dropped it"
        block.error("podOptions", rule, "Use managedJobsNamespaceSelector.", MistakeReason.NOT_SUPPORTED)
    block.close()


def _read_pods_ready(block: FieldReader, old: bool) -> bool:
    """Return whether the block enables the feature."""
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


def _read_fair_sharing(block: FieldReader, old: bool) -> bool:
    """Return whether the block enables the feature."""
    enabled = block.boolean("enable", default=False) if old else True
    strategies = block.texts("preemptionStrategies")
    if strategies and strategies not in STRATEGY_LISTS:
        block.error(
            "preemptionStrategies",
            f"must be one of {'; '.join(', '.join(words) for words in STRATEGY_LISTS)}",
            f"Supported values: {', '.join(PreemptionStrategy)}.",
            MistakeReason.NOT_SUPPORTED,
        )
    elif not strategies and not old:
        block.require("preemptionStrategies", f"Use {PreemptionStrategy.LESS_THAN_OR_EQUAL_TO_FINAL_SHARE}.")
        if block.has("preemptionStrategies"):
            block.error("preemptionStrategies", "must not be empty", "", MistakeReason.REQUIRED)
    block.close()
    return enabled


def _read_admission_fair_sharing(top: FieldReader) -> None:
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


def _read_resources(top: FieldReader) -> None:
    block = top.fields("resources")
    if block is None:
        return
    prefixes = block.texts("excludeResourcePrefixes")
    check = block.choice("quotaCheckStrategy", QuotaCheckStrategy.BLOCK_UNDECLARED)
    if prefixes and check is QuotaCheckStrategy.IGNORE_UNDECLARED:
        block.error(
            "quotaCheckStrategy",
            "must not be IgnoreUndeclared together with excludeResourcePrefixes",
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
    gates = {gate: is_on(top.content, gate) for gate in (CAPACITY_INTEGRATED, COUNTERS_INTEGRATED)}
    read_device_class_mappings(block, gates)
    block.close()


def _read_retention(top: FieldReader) -> None:
    block = top.fields("objectRetentionPolicies")
    if block is None:
        return
    workloads = block.fields("workloads")
    if workloads:
        _duration(workloads, "afterFinished")
        _duration(workloads, "afterDeactivatedByKueue")
        workloads.close()
    block.close()


def _read_multikueue(top: FieldReader) -> None:
    block = top.fields("multiKueue")
    if block is None:
        return
    for key in ("gcInterval", "workerLostTimeout"):
        _duration(block, key)
    block.text("origin", max_length=63, syntax=label_value)
    dispatcher = block.text("dispatcherName")
    if dispatcher and dispatcher not in DISPATCHERS:
        block.error(
            "dispatcherName",
            f"unsupported value: supported values: {', '.join(DISPATCHERS)}",
            "Leave it out to use the first of them.",
            MistakeReason.NOT_SUPPORTED,
        )
    incremental = block.fields("incrementalDispatcherConfig")
    if incremental is not None:
        incremental.optional_integer("stepSize", minimum=1)
        incremental.close()
    for key in ("externalFrameworks", "clusterProfile"):
        if block.take(key):
            rule = f"Unsupported value: {_MULTIKUEUE_WITHOUT[key]}"
            block.error(key, rule, _REMOVE_IT, MistakeReason.NOT_SUPPORTED)
    block.close()


def _duration(block: FieldReader, key: str) -> float | None:
    text = block.text(key)
    if not text:
        return None
    try:
        return duration_seconds(text)
    except ValueError as mistake:
        block.error(key, str(mistake))
        return None
