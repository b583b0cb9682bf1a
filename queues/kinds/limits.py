"""The limits of pods in a namespace: LimitRange and ResourceQuota."""

from enum import StrEnum
from typing import Any, Final

from kinds import openapi
from kinds.declaration import Field, Kind, Reading
from kinds.field_types import Quantities, Structure, read_quantities
from queues.models import LimitRange, ResourceQuota
from scheduling.devices.search.namespace_quota import NamespaceQuota, whole_amounts
from scheduling.manifest import FieldReader, MistakeReason
from scheduling.model import limit_range
from scheduling.model.limit_range import LimitRangeItem, LimitType, with_api_defaults
from scheduling.model.quantity import NANOS, parse_quantity

_ASCENDING: Final = ("min", "defaultRequest", "default", "max")
"""Bounds of a LimitRange in ascending order: each is at most the next."""
_LIMITS: Final = "limits."


class ResourceQuotaScope(StrEnum):
    """The scope of a ResourceQuota: the pods that it counts."""

    TERMINATING = "Terminating"
    NOT_TERMINATING = "NotTerminating"
    BEST_EFFORT = "BestEffort"
    NOT_BEST_EFFORT = "NotBestEffort"
    PRIORITY_CLASS = "PriorityClass"
    CROSS_NAMESPACE_POD_AFFINITY = "CrossNamespacePodAffinity"
    VOLUME_ATTRIBUTES_CLASS = "VolumeAttributesClass"


def _read_limits(holder: FieldReader, key: str) -> list[dict[str, Any]]:
    """Read the entries as the API server completes them."""
    limits: list[dict[str, Any]] = []
    for item in holder.items(key, min_items=1):
        entry = _read_item(item)
        if entry["type"] and entry["type"] in [other["type"] for other in limits]:
            item.error("type", "already has an entry", "Combine the two entries.", MistakeReason.DUPLICATE)
        limits.append(entry)
    return [with_api_defaults(entry) for entry in limits]


def _read_item(item: FieldReader) -> dict[str, Any]:
    type_ = item.text("type", required=True)
    if type_ and type_ not in list(LimitType) and "/" not in type_:
        item.error("type", f"must be one of {', '.join(LimitType)}", "", MistakeReason.NOT_SUPPORTED)
    amounts = {key: read_quantities(item, key) for key in (*_ASCENDING, "maxLimitRequestRatio")}
    item.close()
    if type_ == LimitType.POD:
        for key in ("default", "defaultRequest"):
            if amounts[key]:
                item.error(key, "may not be set for Pod", "Set it for type Container.", MistakeReason.FORBIDDEN)
    _check_order(item, amounts)
    for name, ratio in amounts["maxLimitRequestRatio"].items():
        if parse_quantity(ratio) < NANOS:
            item.error("maxLimitRequestRatio", f"must be at least 1: that of {name} is {ratio}")
    return {"type": type_, **{key: found for key, found in amounts.items() if found}}


def _check_order(item: FieldReader, amounts: dict[str, dict[str, str]]) -> None:
    for place, lower in enumerate(_ASCENDING):
        for upper in _ASCENDING[place + 1 :]:
            for name, text in amounts[lower].items():
                most = amounts[upper].get(name)
                if most is not None and parse_quantity(text) > parse_quantity(most):
                    item.error(lower, f"must be at most {upper}: of {name} it is {text} and {upper} is {most}")


def _write_limits(limits: list[dict[str, Any]]) -> list[dict[str, Any]]:
    keys = ("type", *reversed(_ASCENDING), "maxLimitRequestRatio")
    return [{key: entry[key] for key in keys if key in entry} for entry in limits]


_LIMITS_SCHEMA: Final = openapi.listing(
    openapi.tree(
        {
            "type": openapi.text("The kind of object that is limited: Container, Pod or PersistentVolumeClaim."),
            "max": openapi.mapping(openapi.quantity(), "The highest amounts."),
            "min": openapi.mapping(openapi.quantity(), "The lowest amounts."),
            "default": openapi.mapping(openapi.quantity(), "The limits of containers that set none."),
            "defaultRequest": openapi.mapping(openapi.quantity(), "The requests of containers that set none."),
            "maxLimitRequestRatio": openapi.mapping(openapi.quantity(), "The highest ratios of limit to request."),
        },
        ("type",),
    )
)

LIMIT_RANGE: Final = Kind(
    "LimitRange",
    ("v1",),
    "limit-ranges",
    ("limits",),
    namespaced=True,
    description="A LimitRange.",
    model=LimitRange,
    spec_required=True,
    fields=(
        Field(
            "limits",
            "spec.limits",
            Structure(
                _read_limits,
                list,
                lambda limits: tuple(LimitRangeItem.from_manifest(item) for item in limits),
                _write_limits,
                shape=_LIMITS_SCHEMA,
            ),
            required=True,
            always=True,
            help="`spec.limits` of Kubernetes with its defaults filled in.",
        ),
    ),
    core=lambda row, known: limit_range.LimitRange(row.namespace, row.name, known["limits"]),
)


def _read_scopes(holder: FieldReader, key: str) -> list[str]:
    scopes = holder.texts(key)
    known = list(ResourceQuotaScope)
    for index, scope in enumerate(scopes):
        if scope not in known:
            holder.report.error(
                f"{holder.at(key)}[{index}]",
                scope,
                f"must be one of {', '.join(known)}",
                "",
                MistakeReason.NOT_SUPPORTED,
            )
    return scopes


def _warn_of_devices(reading: Reading) -> None:
    hard = reading.values["hard"]
    devices = [name for name in hard if name.startswith(_LIMITS) and "/" in name]
    for name in devices:
        if parse_quantity(hard[name]) % NANOS:
            reading.warn("hard", "is not a whole number and therefore limits nothing, as in HAMi", entry=name)
    for name in ("scopes", "scope_selector"):
        if devices and reading.values[name]:
            reading.warn(name, "device limits apply to all pods, as in HAMi")
            break


RESOURCE_QUOTA: Final = Kind(
    "ResourceQuota",
    ("v1",),
    "resource-quotas",
    ("quota",),
    namespaced=True,
    description="A ResourceQuota. kueueweb enforces its limits of device memory and cores.",
    model=ResourceQuota,
    fields=(
        Field("hard", "spec.hard", Quantities(), help="{resource: quantity}"),
        Field(
            "scopes",
            "spec.scopes",
            Structure(_read_scopes, list, of_texts=True, shape=openapi.listing(openapi.text())),
            core=None,
            help="The quota counts only pods that match all of these.",
        ),
        Field(
            "scope_selector",
            "spec.scopeSelector",
            Structure(lambda holder, key: holder.mapping(key), dict),
            core=None,
            help="Kubernetes' scopeSelector.",
        ),
    ),
    check=_warn_of_devices,
    core=lambda row, known: NamespaceQuota(row.namespace, row.name, whole_amounts(known["hard"])),
)
