"""LimitRange: defaults for containers of a namespace, and bounds for its pods.

Several LimitRanges of a namespace apply together, in the order of their names: the smallest maximum and ratio, the
largest minimum, the first default.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple, Self

from scheduling.model.pod import PodTemplate, Quantities
from scheduling.model.quantity import parse_quantity, to_amount

Texts = Mapping[str, Any]
"""Resource name -> quantity as written."""


class LimitType(StrEnum):
    """The objects that a LimitRange's bounds apply to."""

    CONTAINER = "Container"
    POD = "Pod"
    PERSISTENT_VOLUME_CLAIM = "PersistentVolumeClaim"
    """Ignored by the scheduler."""


@dataclass(frozen=True, slots=True)
class LimitRangeItem:
    """One entry of `spec.limits`, quantities as written."""

    type: str
    maximum: Texts = field(default_factory=dict)
    minimum: Texts = field(default_factory=dict)
    default: Texts = field(default_factory=dict)
    default_request: Texts = field(default_factory=dict)
    max_limit_request_ratio: Texts = field(default_factory=dict)

    @classmethod
    def from_manifest(cls, manifest: Mapping[str, Any]) -> Self:
        """Read an entry. Missing values are completed as by the API server."""
        filled = with_api_defaults(manifest)
        return cls(
            filled["type"],
            filled.get("max") or {},
            filled.get("min") or {},
            filled.get("default") or {},
            filled.get("defaultRequest") or {},
            filled.get("maxLimitRequestRatio") or {},
        )


@dataclass(frozen=True, slots=True)
class LimitRange:
    namespace: str
    name: str
    limits: tuple[LimitRangeItem, ...] = ()

    @property
    def key(self) -> str:
        """`namespace/name`."""
        return f"{self.namespace}/{self.name}"


def with_api_defaults(item: Mapping[str, Any]) -> dict[str, Any]:
    """Return an entry of `spec.limits` completed as by the API server. For containers, the default limit falls back
    to the maximum, and the default request to the default limit, else to the minimum."""
    filled = {key: value for key, value in item.items() if value is not None}
    if filled.get("type") != LimitType.CONTAINER:
        return filled
    default = {**(filled.get("max") or {}), **(filled.get("default") or {})}
    request = {**(filled.get("min") or {}), **default, **(filled.get("defaultRequest") or {})}
    return {**filled, **({"default": default} if default else {}), **({"defaultRequest": request} if request else {})}


class Bound(NamedTuple):
    """A bound in nano units, as written, and the LimitRange that sets it."""

    nanos: int
    text: str
    limit_range: str


@dataclass(slots=True)
class Limits:
    """The bounds and defaults of all LimitRanges of a namespace for one type."""

    maximum: dict[str, Bound] = field(default_factory=dict)
    minimum: dict[str, Bound] = field(default_factory=dict)
    ratio: dict[str, Bound] = field(default_factory=dict)
    default: dict[str, Any] = field(default_factory=dict)
    default_request: dict[str, Any] = field(default_factory=dict)

    def add(self, item: LimitRangeItem, limit_range: str) -> None:
        for bounds, texts, keep in (
            (self.maximum, item.maximum, min),
            (self.minimum, item.minimum, max),
            (self.ratio, item.max_limit_request_ratio, min),
        ):
            for name, text in texts.items():
                bound = Bound(parse_quantity(text), str(text), limit_range)
                # Among equal bounds the first stays: only amounts are compared.
                bounds[name] = keep(bounds.get(name, bound), bound, key=lambda each: each.nanos)
        self.default = {**item.default, **self.default}
        self.default_request = {**item.default_request, **self.default_request}


def summarize(ranges: Iterable[LimitRange]) -> dict[str, Limits]:
    """Combine the LimitRanges of a namespace into one set of limits per type."""
    found: dict[str, Limits] = {}
    for limit_range in sorted(ranges, key=lambda each: each.name):
        for item in limit_range.limits:
            found.setdefault(item.type, Limits()).add(item, limit_range.key)
    return found


def violations(limits: Mapping[str, Limits], template: PodTemplate) -> Iterator[str]:
    """Return the violations of a completed template, as messages.

    As in Kueue, the smaller of request and limit is compared with the minimum, the larger with the maximum, and the
    pod's effective request with the bounds of pods. The ratio of limit to request is checked beyond Kueue: Kubernetes
    would refuse the pod, and the workload would hold quota in vain.
    """
    of_container = limits.get(LimitType.CONTAINER)
    if of_container is not None:
        for container in (*template.init_containers, *template.containers):
            who = f"container {container.name}"
            yield from _below(who, _either(container.requests, container.limits, min), of_container)
            yield from _above(who, _either(container.requests, container.limits, max), of_container)
            yield from _ratios(who, container.requests, container.limits, of_container)
    of_pod = limits.get(LimitType.POD)
    if of_pod is not None:
        requests = template.effective_requests()
        yield from _below("the pod", requests, of_pod)
        yield from _above("the pod", requests, of_pod)
        yield from _ratios("the pod", requests, template.effective_limits(), of_pod)


def _either(requests: Quantities, limits: Quantities, choose: Any) -> dict[str, int]:
    both = {name: choose(value, limits[name]) for name, value in requests.items() if name in limits}
    return {**limits, **requests, **both}


def _above(who: str, amounts: Quantities, limits: Limits) -> Iterator[str]:
    for name, bound in limits.maximum.items():
        if name in amounts and to_amount(name, amounts[name]) > to_amount(name, bound.nanos):
            yield f"{who} requests more {name} than the maximum {bound.text} of LimitRange {bound.limit_range}"


def _below(who: str, amounts: Quantities, limits: Limits) -> Iterator[str]:
    for name, bound in limits.minimum.items():
        if name in amounts and to_amount(name, amounts[name]) < to_amount(name, bound.nanos):
            yield f"{who} requests less {name} than the minimum {bound.text} of LimitRange {bound.limit_range}"


def _ratios(who: str, requests: Quantities, limits: Quantities, of: Limits) -> Iterator[str]:
    for name, bound in of.ratio.items():
        request, limit = requests.get(name, 0), limits.get(name, 0)
        rule = f"LimitRange {bound.limit_range} allows a limit of at most {bound.text} times the request"
        if not request or not limit:
            yield f"{who} needs both a request and a limit of {name}: {rule}"
        elif limit * 10**9 > bound.nanos * request:
            yield f"{who} has a limit of {name} that is too far above its request: {rule}"
