"""Shares of queues by weight: the water-filling of Volcano's plugin proportion.

Each round divides the rest by weight among the queues that are not met. A queue gets at most its request and its
capability, and at least its guarantee; its unneeded share goes to the other queues in the next round.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from scheduling.policies.resource_vector import PODS, Vector, capped, excess, is_within, is_zero, raised, total_of

_IGNORED: Final = frozenset({PODS})


@dataclass(frozen=True, slots=True)
class WeightedQueue:
    """A queue's claim to a total. `request`: its usage and its pending requests. `guarantee` is kept for it, used or
    not; `capability` is its limit, none for a resource that it lacks."""

    weight: float
    request: Vector
    guarantee: Vector = field(default_factory=dict)
    capability: Vector = field(default_factory=dict)


def real_capability(total: Vector, guaranteed: Vector, guarantee: Vector, capability: Vector) -> dict[Any, float]:
    """Return the most that a queue may ever use: the total without the guarantees of others, at most its capability.
    `guaranteed`: the sum of all guarantees."""
    free = excess(total, guaranteed)
    own = {name: amount + guarantee.get(name, 0.0) for name, amount in free.items()}
    return capped(own, capability, absent=math.inf)


def proportion(total: Vector, queues: Mapping[str, WeightedQueue], guaranteed: Vector) -> dict[str, dict[Any, float]]:
    """Divide the total by weight. Return the amount of each resource that each queue deserves.

    `guaranteed`: the sum of the guarantees of all queues, including those that do not take part here.
    """
    most = {key: real_capability(total, guaranteed, q.guarantee, q.capability) for key, q in queues.items()}
    deserved: dict[str, dict[Any, float]] = {key: dict.fromkeys(total, 0.0) for key in queues}
    unmet = list(queues)
    rest: dict[Any, float] = dict(total)
    while unmet:
        weights = sum(queues[key].weight for key in unmet)
        if weights <= 0:
            break
        given, taken = [], []
        left = []
        for key in unmet:
            queue, before = queues[key], deserved[key]
            part = queue.weight / weights
            found = {name: before.get(name, 0.0) + amount * part for name, amount in total_of([rest]).items()}
            found = capped(found, most[key], absent=math.inf)
            found = capped(found, queue.request, absent=0.0)
            found = raised(found, queue.guarantee)
            if not (is_within(queue.request, found) or found == before):
                left.append(key)
            given.append(excess(found, before))
            taken.append(excess(before, found))
            deserved[key] = found
        unmet = left
        last, rest = rest, excess(total_of([rest, *taken]), total_of(given))
        if is_zero(rest, ignored=_IGNORED) or rest == last:
            break
    # In Volcano, no round reaches a queue of weight 0, so it has none here either.
    return {key: raised(found, queues[key].guarantee) for key, found in deserved.items()}
