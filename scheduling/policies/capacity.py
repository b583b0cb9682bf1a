"""Shares of queues by declaration: Volcano's plugin capacity, flat and with a tree of queues.

A queue owns its deserved quota and lends the unused part, except its guarantee. It may borrow up to its capability. In
a tree, the deserved quota of an inner queue contains that of its children, and its capability bounds theirs.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from scheduling.policies.proportion import real_capability
from scheduling.policies.resource_vector import Vector, capped, raised, total_of


@dataclass(frozen=True, slots=True)
class CapacityQueue:
    """The declaration of a queue. `parent` None: it is the root, whose capability is the total to divide. `capability`:
    a resource that it lacks has the limit of the parent, at the root none.
    """

    parent: str | None
    deserved: Vector = field(default_factory=dict)
    guarantee: Vector = field(default_factory=dict)
    capability: Vector = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Entitlement:
    """The amounts that a queue owns, the part that is never lent, its limit, and the maximum that it may use besides
    the guarantees of others.
    """

    deserved: Vector
    guarantee: Vector
    capability: Vector
    real_capability: Vector


def capacity(
    queues: Mapping[str, CapacityQueue], resources: Iterable[Any], *, bounded: bool = True
) -> dict[str, Entitlement]:
    """Return the entitlement of each queue.

    A parent must precede its children. `resources` are the resources to divide. The deserved quota and the guarantee of
    the root are the sums over its children. `bounded`: a queue deserves at most the quota that it may use. Volcano
    applies this bound to queues without a tree, and does not apply it in a tree.
    """
    below: dict[str | None, list[CapacityQueue]] = {}
    for queue in queues.values():
        below.setdefault(queue.parent, []).append(queue)
    guaranteed = {key: total_of(child.guarantee for child in below.get(key, ())) for key in queues}
    unlimited = dict.fromkeys(resources, math.inf)
    found: dict[str, Entitlement] = {}
    for key, queue in queues.items():
        if queue.parent is None:
            limits = {**unlimited, **queue.capability}
            owned = total_of(raised(child.deserved, child.guarantee) for child in below.get(key, ()))
            found[key] = Entitlement(owned, guaranteed[key], limits, limits)
            continue
        above = found[queue.parent]
        limits = {**above.capability, **queue.capability}
        most = real_capability(above.real_capability, guaranteed[queue.parent], queue.guarantee, limits)
        owned = capped(queue.deserved, most, absent=math.inf) if bounded else dict(queue.deserved)
        found[key] = Entitlement(raised(owned, queue.guarantee), queue.guarantee, limits, most)
    return found
