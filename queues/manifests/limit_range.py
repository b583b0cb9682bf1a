"""v1 LimitRange."""

from dataclasses import dataclass, field
from typing import Any, Final

from queues.manifests.quantities import read_quantities
from scheduling.manifest import Fields, MistakeReason, ObjectMeta, read_metadata, write_metadata
from scheduling.model.limit_range import LimitType, with_api_defaults
from scheduling.model.quantity import NANOS, parse_quantity

_ASCENDING: Final = ("min", "defaultRequest", "default", "max")
"""Of these, each amount is at most that of the later ones."""


@dataclass(frozen=True, slots=True)
class LimitRangeSpec:
    """Columns of LimitRange: the entries as the API server completes them."""

    meta: ObjectMeta
    limits: list[dict[str, Any]] = field(default_factory=list)


def read_limit_range(top: Fields, version: str) -> LimitRangeSpec:
    """Read a v1 LimitRange by Kubernetes' rules, its defaults filled in."""
    meta = read_metadata(top, namespaced=True)
    spec = top.required_fields("spec")
    limits: list[dict[str, Any]] = []
    for item in spec.items("limits", least=1):
        entry = _read_item(item)
        if entry["type"] and entry["type"] in [other["type"] for other in limits]:
            item.error("type", "has an entry already", "Put both into one.", MistakeReason.DUPLICATE)
        limits.append(entry)
    spec.close()
    return LimitRangeSpec(meta, [with_api_defaults(entry) for entry in limits])


def _read_item(item: Fields) -> dict[str, Any]:
    type_ = item.text("type", required=True)
    if type_ and type_ not in list(LimitType) and "/" not in type_:
        item.error("type", f"must be one of {', '.join(LimitType)}", "", MistakeReason.NOT_SUPPORTED)
    amounts = {key: read_quantities(item, key) for key in (*_ASCENDING, "maxLimitRequestRatio")}
    item.close()
    if type_ == LimitType.POD:
        for key in ("default", "defaultRequest"):
            if amounts[key]:
                item.error(key, "may not be set for Pod", "Set it for Container.", MistakeReason.FORBIDDEN)
    _check_order(item, amounts)
    for name, ratio in amounts["maxLimitRequestRatio"].items():
        if parse_quantity(ratio) < NANOS:
            item.error("maxLimitRequestRatio", f"must be at least 1: that of {name} is {ratio}")
    return {"type": type_, **{key: found for key, found in amounts.items() if found}}


def _check_order(item: Fields, amounts: dict[str, dict[str, str]]) -> None:
    for place, lower in enumerate(_ASCENDING):
        for upper in _ASCENDING[place + 1 :]:
            for name, text in amounts[lower].items():
                most = amounts[upper].get(name)
                if most is not None and parse_quantity(text) > parse_quantity(most):
                    item.error(lower, f"must be at most {upper}: of {name} it is {text} and {upper} is {most}")


def write_limit_range(spec: LimitRangeSpec) -> dict[str, Any]:
    """The manifest of a LimitRange."""
    return {
        "apiVersion": "v1",
        "kind": "LimitRange",
        "metadata": write_metadata(spec.meta),
        "spec": {"limits": [_ordered(entry) for entry in spec.limits]},
    }


def _ordered(entry: dict[str, Any]) -> dict[str, Any]:
    keys = ("type", *reversed(_ASCENDING), "maxLimitRequestRatio")
    return {key: entry[key] for key in keys if key in entry}
