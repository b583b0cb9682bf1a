"""The part of a device that a claim consumes where a device can be allocated to several claims, by its driver's policy.

Sources: KEP-5075, `pkg/dra/capacity.go` of Kueue, and the allocator of Kubernetes' scheduler.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from scheduling.model.quantity import NANOS, UNLIMITED, InvalidQuantity, parse_quantity


@dataclass(frozen=True, slots=True)
class Dimension:
    """A dimension of a device's capacity, such as memory, and the amounts of it that one claim may consume.

    Amounts are in nano units. `default` is consumed by a claim that requests no amount; None: all of it is. A claim
    consumes one of `valid_values`, if there are any, or else an amount from `minimum` to `maximum` in steps.
    """

    value: int
    default: int | None = None
    valid_values: tuple[int, ...] = ()
    minimum: int | None = None
    maximum: int | None = None
    step: int | None = None

    def consumed(self, requested: int | None) -> int | None:
        """Return the amount that a claim consumes if it requests this amount, or no amount; None if no valid amount is
        large enough."""
        whole = self.value if self.default is None else self.default
        amount = whole if requested is None else requested
        if self.valid_values:
            return next((valid for valid in self.valid_values if valid >= amount), None)
        if self.minimum is not None:
            amount = max(amount, self.minimum)
            if self.step:
                amount = self.minimum - (self.minimum - amount) // self.step * self.step
        return None if self.maximum is not None and amount > self.maximum else amount


Dimensions = Mapping[str, Dimension]


def read_dimensions(capacity: Mapping[str, Any]) -> dict[str, Dimension]:
    """Read the dimensions of a published device's `capacity`; those with an invalid quantity are left out."""
    found: dict[str, Dimension] = {}
    for name, published in capacity.items():
        try:
            found[name] = _dimension(published or {})
        except (InvalidQuantity, AttributeError, TypeError):
            continue  # the API server validates quantities
    return found


def _dimension(published: Mapping[str, Any]) -> Dimension:
    policy = published.get("requestPolicy") or {}
    limits = policy.get("validRange") or {}
    minimum, maximum, step = (_whole(limits.get(name)) for name in ("min", "max", "step"))
    default = policy.get("default")
    return Dimension(
        parse_quantity(published.get("value") or 0),
        None if default is None else parse_quantity(default),
        tuple(parse_quantity(valid) for valid in policy.get("validValues") or ()),
        minimum,
        maximum,
        step,
    )


def _whole(text: str | float | None) -> int | None:
    """Limits of a range count in whole units, as in Kueue."""
    return None if text is None else -(-parse_quantity(text) // NANOS) * NANOS


def read_amounts(amounts: Mapping[str, Any] | None) -> dict[str, int]:
    """Quantities by dimension, in nano units, from zero to the largest that the API server stores.

    Raises InvalidQuantity.
    """
    limit = UNLIMITED * NANOS
    return {name: max(0, min(parse_quantity(amount), limit)) for name, amount in (amounts or {}).items()}


def consumed_by(dimensions: Dimensions, requested: Mapping[str, int]) -> dict[str, int] | None:
    """Return the amount of each dimension of a device that a claim with these requests consumes; None if the device
    lacks a requested dimension, or if its policy allows no amount large enough."""
    if not requested.keys() <= dimensions.keys():
        return None
    found: dict[str, int] = {}
    for name, dimension in dimensions.items():
        amount = dimension.consumed(requested.get(name))
        if amount is None or amount > dimension.value:
            return None
        found[name] = amount
    return found
