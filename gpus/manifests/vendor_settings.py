"""Reads HAMi's device configuration per vendor: resource names, factors, modes, and additional chips.

It is stored as `{"vendors": {word: {setting: value}}}`, with NVIDIA's settings at the top; `configured_vendors`
turns it into rows of the vendor table.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any, Final

from scheduling.manifest import FieldReader
from scheduling.manifest.syntax import qualified_name
from scheduling.model.vendor import (
    NVIDIA,
    ChipModel,
    ChipTemplate,
    DeviceVendor,
    VendorAnnotations,
)

_COUNT, _MEMORY, _CORES = "resourceCountName", "resourceMemoryName", "resourceCoreName"

_SECTIONS: Final[Mapping[str, Mapping[str, Mapping[str, str]]]] = {
    "cambricon": {"MLU": {_COUNT: "count", _MEMORY: "memory", _CORES: "cores"}},
    "hygon": {"DCU": {_COUNT: "count", _MEMORY: "memory", _CORES: "cores", "memoryFactor": "memory_factor"}},
    "metax": {
        "Metax-GPU": {_COUNT: "count"},
        "Metax-SGPU": {
            "resourceVCountName": "count",
            "resourceVMemoryName": "memory",
            "resourceVCoreName": "cores",
            "sgpuTopologyAware": "zones",
        },
    },
    "enflame": {
        "GCU": {"resourceNameGCU": "count"},
        "Enflame": {
            "resourceNameDRSGCU": "count",
            "resourceNameGCUMemory": "memory",
            "resourceNameGCUCore": "cores",
        },
    },
    "mthreads": {"Mthreads": {_COUNT: "count", _MEMORY: "memory", _CORES: "cores"}},
    "kunlun": {
        "kunlun": {_COUNT: "count"},
        "XPU": {"resourceVCountName": "count", "resourceVMemoryName": "memory"},
    },
    "awsneuron": {"AWSNeuron": {_COUNT: "count", _CORES: "cores"}},
    "amd": {"AMD": {_COUNT: "count", _MEMORY: "memory", _CORES: "cores"}},
    "vastai": {"Vastai": {_COUNT: "count"}},
    "biren": {"Biren": {_COUNT: "count"}},
}
"""HAMi's section -> the vendor's word -> HAMi's setting -> our setting."""

_CHIP: Final = {_COUNT: "count", "resourceName": "count", _MEMORY: "memory", _CORES: "cores"}
_NPU: Final = {
    **_CHIP,
    "memoryFactor": "memory_factor",
    "runtimeClassName": "runtime_class",
    "overwriteEnv": "overwrite_env",
    "superPod": "modules",
    "memoryAllocatable": "memory_mib",
    "memoryCapacity": "capacity_mib",
    "aiCore": "chip_cores",
}
_ASCEND, _ILUVATAR = "Ascend910B3", "MR-V100"
"""The rows used as a model for chips that are not in the table."""
_SUPER_POD_CHIPS: Final = ("Ascend910C",)
_BOOLEANS: Final = ("zones", "overwrite_env", "modules")
_NUMBERS: Final = ("memory_factor", "memory_mib", "capacity_mib", "chip_cores")


def read_vendors(value: FieldReader) -> dict[str, dict[str, Any]]:
    """Read the settings of each vendor in a part of the device configuration, by the vendor's word."""
    found: dict[str, dict[str, Any]] = {}
    for section, words in _SECTIONS.items():
        holder = value.fields(section) if value.has(section) else None
        for word, names in words.items() if holder is not None else ():
            settings = _read(holder, names) if holder is not None else {}
            if settings:
                found[word] = settings
    for chip in value.items("iluvatars"):
        found[chip.text("commonWord", required=True)] = {**_read(chip, _CHIP), "like": _ILUVATAR}
    return found | _read_npus(value)


def _read_npus(value: FieldReader) -> dict[str, dict[str, Any]]:
    """Ascend's chips: a list, or in later versions `configs` beside settings for all of them."""
    if not value.has("vnpus"):
        return {}
    soft = None
    if isinstance(value.content["vnpus"], Mapping):
        holder = value.required_fields("vnpus")
        soft = holder.boolean("hamiVnpuCore") if holder.has("hamiVnpuCore") else None
        chips = holder.items("configs")
    else:
        chips = value.items("vnpus")
    found = {}
    for chip in chips:
        settings = {**_read(chip, _NPU), "like": _ASCEND, "chip": chip.text("chipName")}
        settings["templates"] = [
            [
                item.text("name", required=True),
                item.integer("memory", 0, minimum=1),
                item.integer("aiCore", 0),
            ]
            for item in chip.items("templates")
        ]
        if soft is not None:
            settings["soft_split"] = soft
        found[chip.text("commonWord", required=True)] = settings
    return found


def _read(holder: FieldReader, names: Mapping[str, str]) -> dict[str, Any]:
    return {ours: _read_one(holder, theirs, ours) for theirs, ours in names.items() if holder.has(theirs)}


def _read_one(holder: FieldReader, key: str, setting: str) -> Any:
    if setting in _BOOLEANS:
        return holder.boolean(key)
    if setting in _NUMBERS:
        return holder.integer(key, 1, minimum=1)
    return holder.text(key, syntax=None if setting == "runtime_class" else qualified_name)


def configured_vendors(settings: Mapping[str, Any], vendors: tuple[DeviceVendor, ...]) -> tuple[DeviceVendor, ...]:
    """Return the vendors with names, defaults and modes of the device configuration, and the chips that it adds."""
    of_vendors: Mapping[str, Mapping[str, Any]] = settings.get("vendors") or {}
    known = {vendor.common_word: vendor for vendor in vendors}
    added = tuple(
        _chip_like(known[found["like"]], word)
        for word, found in of_vendors.items()
        if word not in known and found.get("like") in known
    )
    rows = (
        _nvidia(vendor, settings) if vendor.common_word == NVIDIA.common_word else vendor
        for vendor in (*vendors, *added)
    )
    return tuple(
        _configured(row, of_vendors[row.common_word]) if row.common_word in of_vendors else row for row in rows
    )


def _chip_like(vendor: DeviceVendor, word: str) -> DeviceVendor:
    """Return a new chip like `vendor`, whose resource and annotation names contain `word` instead."""

    def renamed(name: str) -> str:
        return name.replace(vendor.common_word, word)

    names, keys = vendor.resources, vendor.annotations
    return replace(
        vendor,
        common_word=word,
        resources=replace(names, count=renamed(names.count), memory=renamed(names.memory), cores=renamed(names.cores)),
        annotations=VendorAnnotations(**{key.name: renamed(getattr(keys, key.name)) for key in fields(keys)}),
        model=None if vendor.model is None else ChipModel(word, 0, 0),
    )


def _configured(vendor: DeviceVendor, settings: Mapping[str, Any]) -> DeviceVendor:
    resources = replace(
        vendor.resources,
        count=settings.get("count") or vendor.resources.count,
        memory=settings.get("memory") or vendor.resources.memory,
        cores=settings.get("cores") or vendor.resources.cores,
        memory_unit_mib=settings.get("memory_factor") or vendor.resources.memory_unit_mib,
    )
    rules = replace(
        vendor.rules,
        soft_split=settings.get("soft_split", vendor.rules.soft_split),
        zones_by_default=settings.get("zones", vendor.rules.zones_by_default),
    )
    if vendor.common_word in _SUPER_POD_CHIPS and not settings.get("modules"):
        rules = replace(rules, module_size=1)
    additions = replace(
        vendor.additions,
        runtime_class=settings.get("runtime_class") or vendor.additions.runtime_class,
        overwrite_env=settings.get("overwrite_env", vendor.additions.overwrite_env),
    )
    return replace(vendor, resources=resources, rules=rules, additions=additions, model=_model(vendor.model, settings))


def _model(model: ChipModel | None, settings: Mapping[str, Any]) -> ChipModel | None:
    if model is None or "memory_mib" not in settings:
        return model
    capacity = settings.get("capacity_mib", 0)
    templates = tuple(ChipTemplate(*template) for template in settings.get("templates") or ())
    return replace(
        model,
        memory_mib=settings["memory_mib"],
        capacity_mib=capacity if capacity != settings["memory_mib"] else 0,
        cores=settings.get("chip_cores", model.cores),
        templates=tuple(sorted(templates, key=lambda template: template.memory_mib)),
    )


def _nvidia(vendor: DeviceVendor, settings: Mapping[str, Any]) -> DeviceVendor:
    names = vendor.resources
    resources = replace(
        names,
        count=settings.get("resource_count_name") or names.count,
        memory=settings.get("resource_memory_name") or names.memory,
        memory_percentage=settings.get("resource_memory_percentage_name") or names.memory_percentage,
        cores=settings.get("resource_core_name") or names.cores,
        priority=settings.get("resource_priority_name") or names.priority,
        memory_unit_mib=settings.get("memory_factor") or names.memory_unit_mib,
    )
    defaults = replace(
        vendor.defaults,
        count=settings.get("default_count", vendor.defaults.count),
        memory_mib=settings.get("default_memory_mib", vendor.defaults.memory_mib),
        cores_percent=settings.get("default_cores_percent", vendor.defaults.cores_percent),
    )
    additions = replace(
        vendor.additions,
        core_policy=settings.get("core_policy") or vendor.additions.core_policy,
        runtime_class=settings.get("runtime_class") or vendor.additions.runtime_class,
        overwrite_env=settings.get("overwrite_env", vendor.additions.overwrite_env),
    )
    return replace(vendor, resources=resources, defaults=defaults, additions=additions)
