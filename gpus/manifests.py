"""v1 Node and HAMi's device-plugin ConfigMap <-> rows; every error located."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from scheduler.core.device_vendor import NVIDIA, DeviceVendor
from scheduler.core.manifest import Fields, MistakeReason, ObjectMeta, read_metadata, write_metadata
from scheduler.core.manifest.fields import quoting
from scheduler.core.manifest.syntax import qualified_name
from scheduler.core.manifest.taints import read_taints
from scheduler.core.placement_policy import DEVICE_POLICIES, NODE_POLICIES, Policy
from scheduler.core.quantity import format_amount

_READY: Final = "Ready"

_SETTINGS: Final = {
    "resourceName": "resource_count_name",
    "resourceCountName": "resource_count_name",
    "resourceMemoryName": "resource_memory_name",
    "resourceMemoryPercentageName": "resource_memory_percentage_name",
    "resourceCoreName": "resource_core_name",
    "resourcePriorityName": "resource_priority_name",
    "deviceSplitCount": "split_count",
    "deviceMemoryScaling": "memory_scaling",
    "deviceCoreScaling": "core_scaling",
    "defaultMemory": "default_memory_mib",
    "defaultCores": "default_cores_percent",
    "defaultGPUNum": "default_count",
    "migStrategy": "mig_strategy",
    "nodeSchedulerPolicy": "node_scheduler_policy",
    "gpuSchedulerPolicy": "gpu_scheduler_policy",
}
"""HAMi's words for its NVIDIA settings -> ours. The chart writes `resourceCountName`, older ones `resourceName`."""

_NODE_SETTINGS: Final = {
    "operatingmode": "mode",
    "devicememoryscaling": "memory_scaling",
    "devicecorescaling": "core_scaling",
    "devicesplitcount": "split_count",
    "migstrategy": "mig_strategy",
}

_POLICIES: Final = {"node_scheduler_policy": NODE_POLICIES, "gpu_scheduler_policy": DEVICE_POLICIES}


@dataclass(frozen=True, slots=True)
class NodeSpec:
    """A node as a manifest describes it. Amounts are in base units; None: the manifest has no status, which is kept."""

    meta: ObjectMeta
    uid: str = ""
    taints: list[dict[str, Any]] = field(default_factory=list)
    unschedulable: bool = False
    allocatable: dict[str, int] | None = None
    capacity: dict[str, int] | None = None
    ready: bool | None = None


def read_node(top: Fields, version: str) -> NodeSpec:
    """Read a v1 Node: labels, annotations (HAMi registers devices there), taints, and its status if it has one."""
    meta = read_metadata(top, namespaced=False)
    metadata = top.content.get("metadata")
    uid = metadata.get("uid") if isinstance(metadata, Mapping) else None
    taints: list[dict[str, Any]] = []
    unschedulable = False
    spec = top.fields("spec")
    if spec:
        spec.ignore("podCIDR", "podCIDRs", "providerID", "configSource", "externalID", "podPreemptionPolicy")
        taints = read_taints(spec, "taints")
        unschedulable = spec.boolean("unschedulable")
        spec.close()
    status = top.fields("status")
    allocatable = capacity = ready = None
    if status:
        allocatable = _read_amounts(status, "allocatable")
        capacity = _read_amounts(status, "capacity")
        ready = _read_ready(status)
    return NodeSpec(meta, uid if isinstance(uid, str) else "", taints, unschedulable, allocatable, capacity, ready)


def _read_amounts(status: Fields, key: str) -> dict[str, int] | None:
    amounts = status.fields(key)
    if amounts is None:
        return None
    found: dict[str, int] = {}
    for resource in amounts.content:
        broken = qualified_name(resource)
        if broken:
            amounts.error(resource, f"as a resource name {broken}")
            continue
        amount = amounts.amount(resource, resource)
        if amount is not None:
            found[resource] = amount
    return found


def _read_ready(status: Fields) -> bool | None:
    for condition in status.items("conditions"):
        if condition.text("type") == _READY:
            return condition.text("status") == "True"
    return None


def write_node(spec: NodeSpec) -> dict[str, Any]:
    """The manifest of a node."""
    body: dict[str, Any] = {}
    if spec.taints:
        body["taints"] = list(spec.taints)
    if spec.unschedulable:
        body["unschedulable"] = True
    status: dict[str, Any] = {}
    for key, amounts in (("allocatable", spec.allocatable), ("capacity", spec.capacity)):
        if amounts:
            status[key] = {resource: format_amount(resource, amount) for resource, amount in amounts.items()}
    if spec.ready is not None:
        status["conditions"] = [{"type": _READY, "status": str(spec.ready)}]
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": write_metadata(spec.meta),
        "spec": body,
        "status": status,
    }


@dataclass(frozen=True, slots=True)
class DevicePluginConfigSpec:
    """A ConfigMap of HAMi: its data as submitted, and the settings that were found there."""

    meta: ObjectMeta
    data: dict[str, str] = field(default_factory=dict)
    settings: dict[str, Any] = field(default_factory=dict)


def read_config_map(top: Fields, contents: Mapping[str, Mapping[str, Any]]) -> DevicePluginConfigSpec:
    """Read a v1 ConfigMap; `contents` are those of its data values that are YAML mappings.

    Three forms are HAMi's: the settings at the top of a value, under `nvidia` (the scheduler's device configuration),
    and `nodeconfig`, a list with settings of single nodes. Any other ConfigMap is refused: we have no use for it.
    """
    meta = read_metadata(top, namespaced=True)
    data = top.text_map("data")
    top.ignore("binaryData", "immutable")
    settings: dict[str, Any] = {}
    for name, content in contents.items():
        value = Fields(top.report, f"{top.at('data')}[{name}]", content)
        for holder in (value, value.fields("nvidia") if "nvidia" in content else None):
            if holder is not None:
                settings |= _read_settings(holder, _SETTINGS)
        nodes = _read_nodes(value)
        if nodes:
            settings["nodes"] = nodes
    if not settings:
        top.report.error(
            top.at("data"),
            sorted(data),
            "of all ConfigMaps only those of HAMi's device plugin are taken, and this one sets nothing of it",
            f"Known settings: {', '.join(_SETTINGS)}.",
            MistakeReason.UNSUPPORTED_KIND,
        )
    return DevicePluginConfigSpec(meta, data, settings)


def _read_settings(holder: Fields, names: Mapping[str, str]) -> dict[str, Any]:
    return {ours: _read_setting(holder, theirs, ours) for theirs, ours in names.items() if holder.has(theirs)}


def _read_setting(holder: Fields, key: str, setting: str) -> Any:
    if setting.startswith("resource_"):
        return holder.text(key, syntax=qualified_name)
    if setting in ("memory_scaling", "core_scaling"):
        value = holder.take(key)
        if isinstance(value, bool) or not isinstance(value, int | float) or value <= 0:
            holder.error(key, "must be a number above 0", quoting(None))
            return 1
        return value
    if setting in ("mig_strategy", "mode"):
        return holder.text(key)
    if setting in _POLICIES:
        return _read_policy(holder, key, _POLICIES[setting])
    return holder.integer(key, 0, minimum=1 if setting == "split_count" else 0)


def _read_policy(holder: Fields, key: str, known: Sequence[str]) -> str:
    """A policy's words, separated by commas for cards. HAMi takes a misspelt one for its default, silently."""
    text = holder.text(key)
    if any(word.strip() not in known for word in text.split(",")):
        holder.error(key, f"must be of {', '.join(known)}", "Write one of these words.")
    return text


def _read_nodes(value: Fields) -> dict[str, dict[str, Any]]:
    return {
        item.text("name", required=True): _read_settings(item, _NODE_SETTINGS) for item in value.items("nodeconfig")
    }


def write_config_map(spec: DevicePluginConfigSpec) -> dict[str, Any]:
    """The manifest of the ConfigMap."""
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": write_metadata(spec.meta), "data": dict(spec.data)}


def configured_policies(settings: Mapping[str, Any]) -> tuple[str, str]:
    """The policies for nodes and for cards as the settings say, else HAMi's defaults."""
    return (
        settings.get("node_scheduler_policy") or Policy.BINPACK,
        settings.get("gpu_scheduler_policy") or Policy.SPREAD,
    )


def configured_vendors(settings: Mapping[str, Any], vendors: tuple[DeviceVendor, ...]) -> tuple[DeviceVendor, ...]:
    """The vendors with NVIDIA's resource names and defaults as the device plugin's settings say."""
    return tuple(_configured(vendor, settings) if vendor.word == NVIDIA.word else vendor for vendor in vendors)


def _configured(vendor: DeviceVendor, settings: Mapping[str, Any]) -> DeviceVendor:
    resources = replace(
        vendor.resources,
        count=settings.get("resource_count_name") or vendor.resources.count,
        memory=settings.get("resource_memory_name") or vendor.resources.memory,
        memory_percentage=settings.get("resource_memory_percentage_name") or vendor.resources.memory_percentage,
        cores=settings.get("resource_core_name") or vendor.resources.cores,
        priority=settings.get("resource_priority_name") or vendor.resources.priority,
    )
    defaults = replace(
        vendor.defaults,
        count=settings.get("default_count", vendor.defaults.count),
        memory_mib=settings.get("default_memory_mib", vendor.defaults.memory_mib),
        cores_percent=settings.get("default_cores_percent", vendor.defaults.cores_percent),
    )
    return replace(vendor, resources=resources, defaults=defaults)
