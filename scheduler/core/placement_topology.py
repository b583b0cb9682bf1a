"""Which of the fitting cards belong together: by their links, or by how their vendor builds them in."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import combinations
from math import comb
from typing import TYPE_CHECKING

from scheduler.core.device import DeviceSlice
from scheduler.core.device_vendor import CardGroups, DeviceVendor, FitRules

if TYPE_CHECKING:
    from scheduler.core.placement_fit import Card

_MAX_COMBINATIONS = 20_000
_HALF = 4

Pick = tuple["Card", DeviceSlice]


def choose_linked_cards(fitting: Sequence[Pick], count: int) -> list[Pick]:
    """`count` of the fitting cards, given in the order in which they were tried.

    For one card: the one whose links to the other fitting cards are worth least, so that good groups stay whole. For
    several: the combination with the highest sum of pair scores; the first in the order of trying wins ties. Beyond
    20,000 combinations the group is grown card by card from the best pair.
    """
    if len(fitting) == count:
        return list(fitting)
    cards = [card for card, _ in fitting]
    scores = [[_pair_score(left, right) for right in cards] for left in cards]
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


def choose_grouped_cards(fitting: Sequence[Pick], count: int, rules: FitRules) -> list[Pick] | None:
    """`count` of the fitting cards, given in the order in which they were tried, by the vendor's rule of groups.

    None where the rule leaves no choice.
    """
    match rules.groups:
        case CardGroups.MODULES:
            return _whole_modules(fitting, count, rules.module_size)
        case CardGroups.ATTRIBUTE:
            return _same_attribute_first(fitting, count, rules.group_attribute)
        case CardGroups.CONSECUTIVE:
            return _consecutive(fitting, count)
        case CardGroups.HALVES:
            return _within_halves(fitting, count)
        case CardGroups.ANY:
            return list(fitting[:count])


def group_bonus(containers: Iterable[Sequence[DeviceSlice]], cards: Iterable[Card], vendor: DeviceVendor) -> float:
    """What a node's score gains from keeping each container's cards of a vendor in one group (HAMi's ScoreNode)."""
    groups = {card.device.uuid: card.device.attributes.get(vendor.rules.group_attribute) for card in cards}
    bonus = 0.0
    for container in containers:
        held = Counter(groups[part.uuid] for part in container if part.vendor == vendor.word)
        if held and None in held:
            return 0.0
        if held:
            bonus += max(held.values()) / held.total()
    return bonus * vendor.rules.group_weight


def _whole_modules(fitting: Sequence[Pick], count: int, size: int) -> list[Pick] | None:
    modules: dict[int, list[Pick]] = {}
    for pick in fitting:
        modules.setdefault(pick[0].index // size, []).append(pick)
    chosen = [pick for module in modules.values() if len(module) == size for pick in module][:count]
    return chosen if len(chosen) == count else None


def _same_attribute_first(fitting: Sequence[Pick], count: int, attribute: str) -> list[Pick]:
    """The smallest group that has enough; without one, the largest groups first."""
    groups: dict[str | None, list[Pick]] = {}
    for pick in fitting:
        groups.setdefault(pick[0].device.attributes.get(attribute), []).append(pick)
    enough = [group for group in groups.values() if len(group) >= count]
    if enough:
        return min(enough, key=len)[:count]
    return [pick for group in sorted(groups.values(), key=len, reverse=True) for pick in group][:count]


def _consecutive(fitting: Sequence[Pick], count: int) -> list[Pick] | None:
    unused = {pick[0].index: pick for pick in fitting if not pick[0].used_slots}
    for start in sorted(unused):
        run = range(start, start + count)
        if all(index in unused for index in run):
            return [unused[index] for index in run]
    return None


def _within_halves(fitting: Sequence[Pick], count: int) -> list[Pick] | None:
    """All eight; or from the half with the fewest fitting cards that has enough; or pairs that are linked across."""
    by_index = {pick[0].index: pick for pick in sorted(fitting, key=lambda pick: pick[0].index)}
    if count > _HALF:
        return list(by_index.values())[:count] if len(by_index) >= count else None
    halves = [[pick for index, pick in by_index.items() if index // _HALF == half] for half in (0, 1)]
    enough = [half for half in halves if len(half) >= count]
    if enough:
        return min(enough, key=len)[:count]
    linked = [index for index in by_index if index < _HALF and index + _HALF in by_index][: count // 2]
    if count % 2 or len(linked) * 2 < count:
        return None
    return [by_index[index] for low in linked for index in (low, low + _HALF)]


def _grow(scores: Sequence[Sequence[int]], count: int) -> list[int]:
    everyone = range(len(scores))
    first, second = max(combinations(everyone, 2), key=lambda pair: scores[pair[0]][pair[1]])
    group = [first, second]
    while len(group) < count:
        rest = (number for number in everyone if number not in group)
        group.append(max(rest, key=lambda number: sum(scores[number][member] for member in group)))
    return group


def _pair_score(left: Card, right: Card) -> int:
    return 0 if left is right else left.device.pair_scores.get(right.device.uuid, 0)
