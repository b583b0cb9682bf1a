"""Reads HAMi's device ConfigMaps: the settings of its scheduler and device plugins."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from gpus.manifests.vendor_settings import read_vendors
from scheduling.devices.requests.policy import DEVICE_POLICIES, NODE_POLICIES, Policy
from scheduling.manifest import FieldReader, MistakeReason, ObjectMeta, read_metadata, write_metadata
from scheduling.manifest.field_reader import quoting
from scheduling.manifest.syntax import qualified_name

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
    "memoryFactor": "memory_factor",
    "gpuCorePolicy": "core_policy",
    "runtimeClassName": "runtime_class",
    "overwriteEnv": "overwrite_env",
    "migStrategy": "mig_strategy",
    "nodeSchedulerPolicy": "node_scheduler_policy",
    "gpuSchedulerPolicy": "gpu_scheduler_policy",
}
"""HAMi's NVIDIA setting -> ours. The chart writes `resourceCountName`; older versions write `resourceName`."""

_NODE_SETTINGS: Final = {
    "operatingmode": "mode",
    "devicememoryscaling": "memory_scaling",
    "devicecorescaling": "core_scaling",
    "devicesplitcount": "split_count",
    "migstrategy": "mig_strategy",
}

_POLICIES: Final = {"node_scheduler_policy": NODE_POLICIES, "gpu_scheduler_policy": DEVICE_POLICIES}


@dataclass(frozen=True, slots=True)
class DevicePluginConfigSpec:
    """A ConfigMap of HAMi: its data as submitted, and the settings found in it."""

    meta: ObjectMeta
    data: dict[str, str] = field(default_factory=dict)
    settings: dict[str, Any] = field(default_factory=dict)


def read_config_map(top: FieldReader, contents: Mapping[str, Mapping[str, Any]]) -> DevicePluginConfigSpec:
    """Read a v1 ConfigMap; `contents` are its data values that are YAML mappings.

    Accepted are HAMi's formats: settings at the top of a value, under `nvidia` and the other vendors' names (the
    scheduler's device configuration), and `nodeconfig`, a list with settings of single nodes. Any other ConfigMap is
    an unsupported kind, because nothing would use it.
    """
    meta = read_metadata(top, namespaced=True)
    data = top.text_map("data")
    top.ignore("binaryData", "immutable")
    settings: dict[str, Any] = {}
    for name, content in contents.items():
        value = FieldReader(top.report, f"{top.at('data')}[{name}]", content)
        for holder in (value, value.fields("nvidia") if "nvidia" in content else None):
            if holder is not None:
                settings |= _read_settings(holder, _SETTINGS)
        vendors = read_vendors(value)
        if vendors:
            settings["vendors"] = {**settings.get("vendors", {}), **vendors}
        nodes = _read_nodes(value)
        if nodes:
            settings["nodes"] = nodes
    if not settings:
        top.error(
            "kind",
            "Unsupported value: a ConfigMap without settings of HAMi's device plugin",
            f"Leave it out of this call, or put such settings into its data: {', '.join(_SETTINGS)}.",
            MistakeReason.UNSUPPORTED_KIND,
        )
    return DevicePluginConfigSpec(meta, data, settings)


def _read_settings(holder: FieldReader, names: Mapping[str, str]) -> dict[str, Any]:
    return {ours: _read_setting(holder, theirs, ours) for theirs, ours in names.items() if holder.has(theirs)}


def _read_setting(holder: FieldReader, key: str, setting: str) -> Any:
    if setting.startswith("resource_"):
        return holder.text(key, syntax=qualified_name)
    if setting in ("memory_scaling", "core_scaling"):
        value = holder.take(key)
        if isinstance(value, bool) or not isinstance(value, int | float) or value <= 0:
            holder.error(key, "must be a number above 0", quoting(None))
            return 1
        return value
    if setting in ("mig_strategy", "mode", "core_policy", "runtime_class"):
        return holder.text(key)
    if setting == "overwrite_env":
        return holder.boolean(key)
    if setting in _POLICIES:
        return _read_policy(holder, key, _POLICIES[setting])
    return holder.integer(key, 0, minimum=1 if setting in ("split_count", "memory_factor") else 0)


def _read_policy(holder: FieldReader, key: str, known: Sequence[str]) -> str:
    """Read the names of a policy; for devices separated by commas. HAMi silently replaces a misspelt one by its
    default."""
    text = holder.text(key)
    if any(word.strip() not in known for word in text.split(",")):
        holder.error(key, f"must be one of {', '.join(known)}", "Write one of these values.")
    return text


def _read_nodes(value: FieldReader) -> dict[str, dict[str, Any]]:
    return {
        item.text("name", required=True): _read_settings(item, _NODE_SETTINGS) for item in value.items("nodeconfig")
    }


def write_config_map(spec: DevicePluginConfigSpec) -> dict[str, Any]:
    """Write the manifest of the ConfigMap."""
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": write_metadata(spec.meta), "data": dict(spec.data)}


def configured_policies(settings: Mapping[str, Any]) -> tuple[str, str]:
    """Return the policies for nodes and devices in the settings, else HAMi's defaults."""
    return (
        settings.get("node_scheduler_policy") or Policy.BINPACK,
        settings.get("gpu_scheduler_policy") or Policy.SPREAD,
    )
