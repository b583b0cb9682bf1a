"""Which of the fitting cards belong together by their links, for NVIDIA's topology-aware policy."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from math import comb

from scheduling.devices.fit.device_state import DeviceState, Pick

_MAX_COMBINATIONS = 20_000


def choose_linked_devices(fitting: Sequence[Pick], count: int) -> list[Pick]:
    """`count` of the fitting cards, given in the order in which they were tried.

    For one card: the one whose links to the other fitting cards are worth least, so that good groups stay whole. For
    several: the combination with the highest sum of pair scores; the first in the order of trying wins ties. Beyond
    20,000 combinations the group is grown card by card from the best pair.
    """
    if len(fitting) == count:
        return list(fitting)
    states = [state for state, _ in fitting]
    scores = [[_pair_score(left, right) for right in states] for left in states]
    if count == 1:
        totals = [sum(row) for row in scores]
        return [fitting[totals.index(min(totals))]]
    if comb(len(fitting), count) <= _MAX_COMBINATIONS:
        best = max(
            combinations(range(len(fitting)), count),
            key=lambda group: sum(scores[left][right] for left, right in combinations(group, 2)),
        )
        return [fitting[number] for number in best]
    return [fitting[number] for number in sorted(_grow(scores, count))]


def _grow(scores: Sequence[Sequence[int]], count: int) -> list[int]:
    everyone = range(len(scores))
    first, second = max(combinations(everyone, 2), key=lambda pair: scores[pair[0]][pair[1]])
    group = [first, second]
    while len(group) < count:
        rest = (number for number in everyone if number not in group)
        group.append(max(rest, key=lambda number: sum(scores[number][member] for member in group)))
    return group


def _pair_score(left: DeviceState, right: DeviceState) -> int:
    return 0 if left is right else left.device.pair_scores.get(right.device.uuid, 0)
