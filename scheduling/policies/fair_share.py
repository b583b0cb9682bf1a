"""The fair shares of KAI's queues: quotas first, then the rest by priority and over-quota weight.

Every resource is divided separately. A queue gets its quota as far as it requests it; the rest is given to the queues
of the highest priority by weight, in whole units, then to those of the next priority. The remainder of whole units is
given to the queues that lost the largest fractions.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import Final

_NONE_ALLOCATABLE: Final = 1000.0


@dataclass(frozen=True, slots=True)
class QueueClaim:
    """A queue's claim to one resource, in units of it. `limit` and `quota` infinite: unlimited. `created`: smaller for
    an older queue. `usage`: its past usage as a part of the total, 0 without a history."""

    name: str
    priority: int
    created: float
    quota: float
    limit: float
    weight: float
    request: float
    usage: float = 0.0

    @property
    def requestable(self) -> float:
        """The amount that it requests within its limit."""
        return min(self.request, self.limit)


def fair_shares(total: float, claims: Iterable[QueueClaim], usage_factor: float = 1.0) -> dict[str, float]:
    """Divide a total among sibling queues. `usage_factor`: KAI's kValue, the weight of past usage."""
    queues = list(claims)
    found = {queue.name: min(queue.requestable, total if math.isinf(queue.quota) else queue.quota) for queue in queues}
    rest = total - sum(found.values())
    lost: list[tuple[QueueClaim, float]] = []
    for _, members in groupby(sorted(queues, key=lambda queue: -queue.priority), key=lambda queue: queue.priority):
        if rest <= 0:
            break
        rest, fractions = _divide(rest, list(members), found, usage_factor)
        lost += sorted(fractions, key=lambda each: (-each[1], each[0].created, each[0].name))
    for queue, _ in lost:
        if rest <= 0:
            break
        unit = min(1.0, rest)
        found[queue.name] += unit
        rest -= unit
    return found


def allocatable(claim: QueueClaim, share: float, total: float) -> float:
    """Return the amount that a queue may use before it exceeds its share: the larger of its quota and its fair share,
    within its limit. An unlimited amount is the total."""
    found = min(max(claim.quota, share), claim.limit)
    return total if math.isinf(found) else found


def dominant_share(uses: Iterable[tuple[float, float]]) -> float:
    """Return the largest fraction of its entitlement that a queue uses; the queue with the smaller fraction goes first.

    `uses`: per resource, the allocated and the allocatable amount. Each unit of a resource that the queue may not use
    at all counts as a thousand.
    """
    return max((_part(allocated, most) for allocated, most in uses), default=0.0)


def _part(allocated: float, most: float) -> float:
    return allocated / most if most > 0 else allocated * _NONE_ALLOCATABLE


def _divide(
    rest: float, queues: list[QueueClaim], found: dict[str, float], usage_factor: float
) -> tuple[float, list[tuple[QueueClaim, float]]]:
    """Divide the rest among queues of one priority, adding to `found`. Return what is left, and the fraction of a unit
    that each queue lost in its last round."""
    fractions: dict[str, tuple[QueueClaim, float]] = {}
    while rest > 0:
        weights = _weights(queues, found, usage_factor)
        total = sum(weights.values())
        if total <= 0:
            break
        amount, again = rest, False
        for queue in queues:
            weight = weights.get(queue.name, 0.0)
            if weight <= 0:
                continue
            share = amount * weight / total
            missing = queue.requestable - found[queue.name]
            if missing <= share:
                given = missing
                fractions.pop(queue.name, None)
                again = again or missing < share
            else:
                given = float(math.floor(share))
                if share > given:  # as in KAI, a fraction of an earlier round counts where the last one had none
                    fractions[queue.name] = (queue, share - given)
            found[queue.name] += given
            rest -= given
        if not again:
            break
    return rest, list(fractions.values())


def _weights(queues: list[QueueClaim], found: Mapping[str, float], usage_factor: float) -> dict[str, float]:
    """Return the weight of each queue that requests more: its over-quota weight, reduced by its past usage."""
    wanting = [queue for queue in queues if queue.requestable > found[queue.name]]
    total = sum(queue.weight for queue in wanting)
    if total <= 0:
        return {}
    normal = {queue.name: (queue.weight / total, queue.usage) for queue in wanting}
    return {name: max(0.0, part + usage_factor * (part - usage)) for name, (part, usage) in normal.items()}
