"""Which of the fitting cards belong together by how they are built in: modules, networks, halves, neighbours."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from itertools import combinations
from typing import TypeVar

from scheduling.devices.fit.device_state import Pick
from scheduling.model.vendor import DeviceGroups, FitRules

HALF = 4
"""Kunlun's servers have two halves of four cards; each card has one link to the other half."""

_TASK_SIZES = (4, 2, 1)

_Item = TypeVar("_Item")


def choose_grouped_devices(
    fitting: Sequence[Pick], count: int, rules: FitRules, unused: Collection[int]
) -> list[Pick] | None:
    """`count` of the fitting cards, given in the order in which they were tried, by the vendor's rule of groups.

    `unused` are the indexes of the vendor's cards on the node that nobody holds. None where the rule leaves no choice.
    """
    match rules.groups:
        case DeviceGroups.MODULES:
            return _whole_modules(fitting, count, rules)
        case DeviceGroups.ATTRIBUTE | DeviceGroups.ZONES:
            return _same_attribute_first(fitting, count, rules.group_attribute)
        case DeviceGroups.CONSECUTIVE:
            return _consecutive(fitting, count)
        case DeviceGroups.HALVES:
            return _fewest_bubbles(fitting, count, unused)
        case DeviceGroups.ANY:
            return list(fitting[:count])


def tasks_to_fill(unused: Collection[int]) -> int:
    """The fewest tasks of 1, 2, 4 or 8 cards that take all the unused cards of a Kunlun server, none across its halves
    but one of all eight."""
    if len(unused) == 2 * HALF:
        return 1
    tasks = 0
    for half in (0, 1):
        left = sum(index // HALF == half for index in unused)
        for size in _TASK_SIZES:
            tasks, left = tasks + left // size, left % size
    return tasks


def _whole_modules(fitting: Sequence[Pick], count: int, rules: FitRules) -> list[Pick] | None:
    modules: dict[int, list[Pick]] = {}
    for pick in fitting:
        modules.setdefault(pick[0].index // rules.module_size, []).append(pick)
    whole = [tuple(module) for module in modules.values() if len(module) == rules.module_size]
    wanted = count // rules.module_size
    if len(whole) < wanted:
        return None
    groups = _grouped(whole, [_attribute(module[0], rules.group_attribute) for module in whole])
    return [pick for module in _together(groups, wanted) for pick in module]


def _same_attribute_first(fitting: Sequence[Pick], count: int, attribute: str) -> list[Pick]:
    return _together(_grouped(fitting, [_attribute(pick, attribute) for pick in fitting]), count)


def _attribute(pick: Pick, name: str) -> str | None:
    return pick[0].device.attributes.get(name)


def _grouped(items: Sequence[_Item], values: Iterable[str | None]) -> list[list[_Item]]:
    """The items by value; those without one come last."""
    groups: dict[str | None, list[_Item]] = {}
    for item, value in zip(items, values, strict=True):
        groups.setdefault(value, []).append(item)
    rest = groups.pop(None, [])
    return [*groups.values(), rest]


def _together(groups: Sequence[Sequence[_Item]], count: int) -> list[_Item]:
    """`count` items of the smallest group that has enough; without one, of the largest groups first.

    The last group holds the items without a value: they go with nobody.
    """
    named, rest = groups[:-1], groups[-1]
    enough = [group for group in named if len(group) >= count]
    if enough:
        return list(min(enough, key=len)[:count])
    by_size = sorted(named, key=len, reverse=True)
    return [item for group in (*by_size, rest) for item in group][:count]


def _consecutive(fitting: Sequence[Pick], count: int) -> list[Pick] | None:
    """The first run of neighbours that begins at a multiple of its length, else the first of all."""
    unused = {pick[0].index: pick for pick in fitting if not pick[0].used_slots}
    starts = [start for start in sorted(unused) if all(start + step in unused for step in range(count))]
    if not starts:
        return None
    start = next((start for start in starts if start % count == 0), starts[0])
    return [unused[start + step] for step in range(count)]


def _fewest_bubbles(fitting: Sequence[Pick], count: int, unused: Collection[int]) -> list[Pick] | None:
    """The linked cards after which the fewest tasks would fill the server; among equals those tried first."""
    by_index = {pick[0].index: pick for pick in fitting}
    sets = _linked_sets(list(by_index), count)
    if not sets:
        return None
    best = min(sets, key=lambda taken: tasks_to_fill(frozenset(unused).difference(taken)))
    return [by_index[index] for index in best]


def _linked_sets(indexes: Sequence[int], count: int) -> list[tuple[int, ...]]:
    """The sets of so many cards that are linked: within a half; without one, pairs across the halves."""
    if count > HALF:
        return [tuple(indexes[:count])] if len(indexes) >= count else []
    within = [
        group for half in (0, 1) for group in combinations([index for index in indexes if index // HALF == half], count)
    ]
    if within or count % 2:
        return within
    pairs = [(low, low + HALF) for low in indexes if low < HALF and low + HALF in indexes]
    return [tuple(index for pair in group for index in pair) for group in combinations(pairs, count // 2)]
