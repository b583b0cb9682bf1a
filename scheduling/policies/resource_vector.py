"""Vectors of resources as Volcano compares them: floating point numbers by resource, equal within a tolerance.

Amounts are in Volcano's units: cpu in milli-cores, memory in bytes, `pods` in pods, everything else in milli-units. The
tolerance of 0.1 is in these units.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

Vector = Mapping[Any, float]
"""Resource -> amount. A resource is a name, or a name in a flavor."""
PODS: Final = "pods"
TOLERANCE: Final = 0.1


def total_of(vectors: Iterable[Vector]) -> dict[Any, float]:
    """Return the sum."""
    found: dict[Any, float] = {}
    for vector in vectors:
        for name, amount in vector.items():
            found[name] = found.get(name, 0.0) + amount
    return found


def excess(vector: Vector, other: Vector) -> dict[Any, float]:
    """Return how far each amount exceeds the other vector's, at least 0. A resource that the other vector lacks counts
    as 0."""
    return {name: max(0.0, amount - other.get(name, 0.0)) for name, amount in vector.items()}


def capped(vector: Vector, limits: Vector, *, absent: float) -> dict[Any, float]:
    """Return the vector with each amount at most its limit. `absent` is the limit of a resource that has none."""
    return {name: min(amount, limits.get(name, absent)) for name, amount in vector.items()}


def raised(vector: Vector, floor: Vector) -> dict[Any, float]:
    """Return the larger amount of each resource of either."""
    return {name: max(vector.get(name, 0.0), floor.get(name, 0.0)) for name in {**vector, **floor}}


def is_within(vector: Vector, bound: Vector) -> bool:
    """Return whether no amount exceeds the bound's by the tolerance or more. A missing resource is 0."""
    return all(amount - bound.get(name, 0.0) < TOLERANCE for name, amount in vector.items())


def is_zero(vector: Vector, *, ignored: frozenset[str] = frozenset()) -> bool:
    """Return whether every amount is below the tolerance. `ignored` resources do not count."""
    return all(amount < TOLERANCE for name, amount in vector.items() if name not in ignored)


def share_of(allocated: Vector, deserved: Vector) -> float:
    """Return the largest allocated fraction of a deserved resource. Resources that are not deserved do not count."""
    parts = (allocated.get(name, 0.0) / amount for name, amount in deserved.items() if amount >= TOLERANCE)
    return max(parts, default=0.0)
