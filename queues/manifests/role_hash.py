"""The hash that identifies the roles of a pod group: pods with equal specs, as far as scheduling is concerned, have
equal hashes.

It is computed over the JSON that Go's encoder produces of those parts of the spec, so fields are in the order of the
API's structures and quantities in Kubernetes' form.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any, Final

from scheduling.model.quantity import parse_quantity

JsonObject = dict[str, Any]

_LENGTH: Final = 8
_SELECTOR: Final = ("matchLabels", "matchExpressions")
_ORDERS: Final = (
    ("key", "operator", "values"),
    ("key", "operator", "value", "effect", "tolerationSeconds"),
    ("name", "hostPort", "containerPort", "protocol", "hostIP"),
    ("name", "resourceClaimName", "resourceClaimTemplateName"),
    (
        "maxSkew", "topologyKey", "whenUnsatisfiable", "labelSelector", "minDomains", "nodeAffinityPolicy",
        "nodeTaintsPolicy", "matchLabelKeys",
    ),
    ("labelSelector", "namespaces", "topologyKey", "namespaceSelector", "matchLabelKeys", "mismatchLabelKeys"),
    _SELECTOR,
    ("matchExpressions", "matchFields"),
    ("nodeAffinity", "podAffinity", "podAntiAffinity"),
    ("requiredDuringSchedulingIgnoredDuringExecution", "preferredDuringSchedulingIgnoredDuringExecution"),
    ("weight", "preference", "podAffinityTerm"),
    ("nodeSelectorTerms",),
)  # fmt: skip
"""The fields of each structure in the order of its declaration; one fits that has all of a value's fields."""
_MAPS: Final = ("matchLabels",)
_DECIMAL: Final = {-9: "n", -6: "u", -3: "m", 0: "", 3: "k", 6: "M", 9: "G", 12: "T", 15: "P", 18: "E"}
_BINARY: Final = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
_NANO: Final = -9


def role_hash(spec: Mapping[str, Any], decisive: Mapping[str, str] | None = None) -> str:
    """Return the role of a pod with this spec. `decisive` are annotations that Kueue ignores but that determine the
    pod's devices here; without such annotations, the hash is Kueue's."""
    shape = {"spec": role_shape(spec), **({"annotations": _sorted(decisive)} if decisive else {})}
    text = json.dumps(shape, separators=(",", ":"), ensure_ascii=False)
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return hashlib.sha256(text.encode()).hexdigest()[:_LENGTH]


def role_shape(spec: Mapping[str, Any]) -> JsonObject:
    """Return the part of a pod's spec that determines its role, in the order of its JSON."""
    shape: JsonObject = {
        "affinity": _ordered(spec.get("affinity")),
        "containers": _containers(spec.get("containers")),
        "initContainers": _containers(spec.get("initContainers")),
        "nodeSelector": _sorted(spec.get("nodeSelector")),
        "overhead": _amounts(spec.get("overhead")),
        "priority": spec.get("priority"),
        "resourceClaims": _ordered(spec.get("resourceClaims")),
    }
    if spec.get("resources") is not None:
        shape["resources"] = _amounts(spec["resources"].get("requests"))
    return shape | {
        "runtimeClassName": spec.get("runtimeClassName"),
        "tolerations": _ordered(spec.get("tolerations")),
        "topologySpreadConstraints": _ordered(spec.get("topologySpreadConstraints")),
    }


def _containers(containers: Any) -> list[JsonObject] | None:
    if not containers:
        return None
    return [
        {
            "ports": _ordered(container.get("ports")),
            "resources": {"requests": _amounts((container.get("resources") or {}).get("requests"))},
        }
        for container in containers
    ]


def _sorted(values: Mapping[str, Any] | None) -> JsonObject | None:
    return None if values is None else {key: values[key] for key in sorted(values)}


def _amounts(values: Mapping[str, Any] | None) -> JsonObject | None:
    return None if values is None else {key: canonical_quantity(values[key]) for key in sorted(values)}


def _ordered(value: Any, field: str = "") -> Any:
    if isinstance(value, list):
        return [_ordered(item) for item in value]
    if not isinstance(value, dict):
        return value
    present = {key: item for key, item in value.items() if item not in (None, "", [], {})}
    if field in _MAPS:
        return _sorted(present)
    order = next((order for order in _ORDERS if present.keys() <= set(order)), tuple(sorted(present)))
    return {key: _ordered(present[key], key) for key in order if key in present}


def canonical_quantity(value: Any) -> str:
    """Return a quantity as Kubernetes writes it: the largest suffix of its kind that leaves a whole number."""
    text = str(value).strip()
    nanos = parse_quantity(value)
    if text.endswith("i") and abs(nanos) >= 1024 * 10**9:
        return _binary(-(-nanos // 10**9))
    if "e" in text.lower() and not text.endswith("E"):
        number, exponent = _decimal(nanos)
        return f"{number}e{exponent}" if exponent else str(number)
    number, exponent = _decimal(nanos)
    return f"{number}{_DECIMAL[exponent]}"


def _binary(number: int) -> str:
    power = 0
    while number % 1024 == 0 and power < len(_BINARY) - 1:
        number, power = number // 1024, power + 1
    return f"{number}{_BINARY[power]}"


def _decimal(nanos: int) -> tuple[int, int]:
    number, exponent = nanos, _NANO
    while number and number % 1000 == 0 and exponent < max(_DECIMAL):
        number, exponent = number // 1000, exponent + 3
    return (number, exponent) if number else (0, 0)
