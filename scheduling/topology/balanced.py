"""Balanced placement: spread a preferred group evenly over sibling domains (Kueue's alpha gate TASBalancedPlacement).

Best fit fills domains to the brim and leaves a remainder of any size in the last one. Balanced placement looks at the
domains of the preferred level that share a parent, one level below (at the preferred level itself where slices are that
wide), and finds the largest share that each domain used can have: the threshold. Domains below it are left alone, the
smallest set of the others is chosen, and each gets the threshold, the first ones what is left over. Where there is no
threshold, or the shares do not add up, best fit decides.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from scheduling.topology.best_fit import Candidate, Placed, checked, descend, domains_with_leader, in_order
from scheduling.topology.capacities import Capacities
from scheduling.topology.request import PlacementPlan
from scheduling.topology.tree import TopologyTree


@dataclass(frozen=True, slots=True)
class _Balance:
    """Siblings on the preferred level, the counts without domains below the threshold, and how many domains the
    greedy choice takes."""

    siblings: Sequence[int]
    capacities: Capacities
    threshold: int
    domain_count: int


@dataclass(frozen=True, slots=True)
class _Greedy:
    """The domains that hold the group when filled one after the other, largest first, the leader's before them.

    `threshold` is the largest share that each of them can have. `beside_leader` is the capacity of the last one beside
    the leader, if it does not seat the leader.
    """

    count: int
    threshold: int
    beside_leader: int


def place_balanced(plan: PlacementPlan, tree: TopologyTree, capacities: Capacities) -> Placed | None:
    """Choose leaves for a preferred group, spread evenly; None when best fit decides."""
    if not plan.preferred or plan.wanted < 1:
        return None
    best: _Balance | None = None
    for siblings in _families(plan.level, tree):
        found = _balance(plan, tree, capacities, siblings, best.threshold if best is not None else 1)
        if found is not None and (best is None or _rank(found) < _rank(best)):
            best = found
    if best is None:
        return None
    level, numbers = _chosen_level(plan, tree, best)
    shares = _share_out(plan, best, level, numbers)
    if not shares:
        return None
    placed = checked(plan, descend(plan, tree, best.capacities, level, shares, pool=False))
    return placed if isinstance(placed, Placed) else None


def _families(level: int, tree: TopologyTree) -> Iterable[Sequence[int]]:
    return tree.children[level - 1] if level > 0 else [range(len(tree.values[0]))]


def _rank(balance: _Balance) -> tuple[int, int]:
    return (-balance.threshold, balance.domain_count)


def _balance(
    plan: PlacementPlan, tree: TopologyTree, capacities: Capacities, siblings: Sequence[int], least: int
) -> _Balance | None:
    """Return the siblings with their threshold; None if they cannot hold the group with a threshold of at least
    `least`."""
    level, numbers = plan.level, siblings
    if level < plan.slices.level:
        level, numbers = level + 1, _children(tree, level, siblings)
    greedy = _fill_greedily(plan, capacities, level, numbers)
    if greedy is None:
        return None
    thresholds = [greedy.threshold]
    if greedy.beside_leader < greedy.threshold:
        thresholds.append(greedy.beside_leader)  # leave room for the leader in the last domain
    for threshold in thresholds:
        if threshold < least:
            return None
        pruned = _without_smaller(plan, tree, capacities, siblings, threshold)
        held = _fill_greedily(plan, pruned, plan.level, siblings)
        if held is not None:
            return _Balance(siblings, pruned, threshold, held.count)
    return None


def _children(tree: TopologyTree, level: int, numbers: Iterable[int]) -> list[int]:
    return list(chain.from_iterable(tree.children[level][number] for number in numbers))


def _fill_greedily(plan: PlacementPlan, capacities: Capacities, level: int, numbers: Sequence[int]) -> _Greedy | None:
    """Fill the fullest domains first; None if all of them together do not hold the group."""
    if plan.leaders:
        return _fill_beside_leader(plan, capacities, level, numbers)
    slices = capacities.slices[level]
    left = plan.wanted
    for count, units in enumerate(sorted((slices[number] for number in numbers), reverse=True), 1):
        left -= units
        if left <= 0:
            threshold = min(plan.wanted // count, units)
            return _Greedy(count, threshold, threshold)
    return None


def _fill_beside_leader(
    plan: PlacementPlan, capacities: Capacities, level: int, numbers: Sequence[int]
) -> _Greedy | None:
    leading = domains_with_leader(plan, capacities, level, numbers)[0]
    if not leading.leaders:
        return None
    left, count = plan.wanted - leading.units_with_leader, 1
    last: Candidate | None = None
    for domain in in_order(plan, capacities, level, [number for number in numbers if number != leading.number]):
        if left <= 0 or domain.units == 0:
            break
        left, count, last = left - domain.units, count + 1, domain
    if left > 0:
        return None
    threshold = min(plan.wanted // count, leading.units_with_leader)
    if last is None:
        return _Greedy(count, threshold, threshold)
    threshold = min(threshold, last.units)
    return _Greedy(count, threshold, min(threshold, last.units_with_leader))


def _without_smaller(
    plan: PlacementPlan, tree: TopologyTree, capacities: Capacities, siblings: Sequence[int], threshold: int
) -> Capacities:
    """Return the counts without domains that hold less than the threshold. A domain that reaches it only without the
    leader seats no leader."""
    if plan.level < tree.last_level:
        children = _children(tree, plan.level, siblings)
        capacities = _pruned(plan, tree, capacities, plan.level + 1, children, threshold)
    return _pruned(plan, tree, capacities, plan.level, siblings, threshold)


def _pruned(
    plan: PlacementPlan,
    tree: TopologyTree,
    capacities: Capacities,
    level: int,
    numbers: Iterable[int],
    threshold: int,
) -> Capacities:
    slices, beside, leaders = (
        counts[level] for counts in (capacities.slices, capacities.slices_with_leader, capacities.leaders)
    )
    smaller = [number for number in numbers if slices[number] < threshold]
    without_leader = [
        number
        for number in (numbers if plan.leaders else ())
        if slices[number] >= threshold > beside[number] and leaders[number]
    ]
    if not smaller and not without_leader:
        return capacities
    found = capacities.copy()
    cleared, seatless = (
        list(chain.from_iterable(tree.leaves_below(level, number) for number in each))
        for each in (smaller, without_leader)
    )
    found.clear(cleared)
    found.clear_leaders(seatless)
    found.sum_up(cleared + seatless)
    return found


def _chosen_level(plan: PlacementPlan, tree: TopologyTree, best: _Balance) -> tuple[int, Sequence[int]]:
    """Return the level whose domains share the group, and the candidates on it: those below the smallest set of
    siblings; among equal sets, the one with the most even free room."""
    if plan.level >= plan.slices.level:
        return plan.level, best.siblings
    capacities, level = best.capacities, plan.level
    leaders, beside = capacities.leaders[level], capacities.slices_with_leader[level]

    def rank(number: int) -> tuple[float, ...]:
        return (-leaders[number], -beside[number], -_evenness(tree, capacities, level, number), number)

    return level + 1, _children(tree, level, _smallest_set(plan, capacities, level, best.siblings, rank))


def _evenness(tree: TopologyTree, capacities: Capacities, level: int, number: int) -> float:
    """Return how evenly the domain's room is spread over its children, in bits."""
    children = tree.children[level][number]
    room = capacities.pods[level + 1][children.start : children.stop]
    total = sum(room)
    return -sum(part / total * math.log2(part / total) for part in room if part)


def _smallest_set(
    plan: PlacementPlan, capacities: Capacities, level: int, numbers: Sequence[int], rank: Callable[[int], Any]
) -> list[int]:
    """Return the fewest domains that hold the group; among those the set with the least room left over, then the lowest
    rank. Empty if no set holds it."""
    held = _fill_greedily(plan, capacities, level, numbers)
    if held is None:
        return []
    need = plan.wanted * plan.slices.size
    if held.count == 1:
        return _smallest_domain(plan, capacities, level, numbers, need, rank)
    return _smallest_combination(plan, capacities, level, sorted(numbers, key=rank), need, held.count)


def _smallest_domain(
    plan: PlacementPlan,
    capacities: Capacities,
    level: int,
    numbers: Sequence[int],
    need: int,
    rank: Callable[[int], Any],
) -> list[int]:
    seats = capacities.leaders[level] if plan.leaders else capacities.slices[level]
    pods = capacities.pods_with_leader[level]
    enough = [number for number in numbers if seats[number] and pods[number] >= need]
    least = min((pods[number] for number in enough), default=0)
    tied = [number for number in enough if pods[number] == least]
    return [min(tied, key=rank)] if len(tied) > 1 else tied


def _smallest_combination(
    plan: PlacementPlan, capacities: Capacities, level: int, order: Sequence[int], need: int, size: int
) -> list[int]:
    """`_smallest_set` for several domains, taken in this order.

    The sums of pods that sets of domains can hold are bits of an integer, indexed by the number of domains and of
    seated leaders. `reached[i]` are the sums that the first i domains can reach. A set that holds the group is not
    extended.
    """
    sums = [[0] * (plan.leaders + 1) for _ in range(size + 1)]
    sums[0][0] = 1
    reached = [sums]
    for number in order:
        before = reached[-1]
        after = [list(row) for row in before]
        for count in range(size):
            for seated, rest, pods in _ways(plan, capacities, level, number):
                after[count + 1][seated] |= _unfinished(plan, before, count, rest, need) << pods
        reached.append(after)
    enough = reached[-1][size][plan.leaders] >> need
    if not enough:
        return []
    total = need + (enough & -enough).bit_length() - 1
    return _trace(plan, capacities, level, order, reached, total)


def _ways(plan: PlacementPlan, capacities: Capacities, level: int, number: int) -> list[tuple[int, int, int]]:
    """Return the ways to take a domain: (leaders seated, pods held) with and without a leader."""
    ways: list[tuple[int, int, int]] = []
    if capacities.slices[level][number]:
        ways += [(seated, seated, capacities.pods[level][number]) for seated in range(plan.leaders, -1, -1)]
    if plan.leaders and capacities.leaders[level][number]:
        ways.append((1, 0, capacities.pods_with_leader[level][number]))
    return ways


def _unfinished(plan: PlacementPlan, sums: Sequence[Sequence[int]], count: int, seated: int, need: int) -> int:
    """Return the sums of sets that do not hold the group yet, as bits."""
    row = sums[count][seated]
    return row & ((1 << need) - 1) if seated == plan.leaders else row


def _trace(
    plan: PlacementPlan,
    capacities: Capacities,
    level: int,
    order: Sequence[int],
    reached: Sequence[Sequence[Sequence[int]]],
    total: int,
) -> list[int]:
    """Return the first set that reached the total: its last domain is the first one with which the total was
    reached."""
    chosen: list[int] = []
    need, seated = plan.wanted * plan.slices.size, plan.leaders
    for count in range(len(reached[0]) - 1, 0, -1):
        position = next(i for i, sums in enumerate(reached) if sums[count][seated] >> total & 1) - 1
        number = order[position]
        chosen.append(number)
        total, seated = next(
            (total - pods, before)
            for after, before, pods in _ways(plan, capacities, level, number)
            if after == seated and pods <= total
            if _unfinished(plan, reached[position], count - 1, before, need) >> (total - pods) & 1
        )
    return chosen


def _share_out(plan: PlacementPlan, best: _Balance, level: int, numbers: Sequence[int]) -> list[Candidate]:
    """Give each domain of the smallest set the threshold, and the rest to the first ones; empty if that does not add
    up to the group."""
    chosen = _smallest_set(plan, best.capacities, level, numbers, lambda number: number)
    extra = plan.wanted - best.threshold * len(chosen)
    if not chosen or extra < 0:
        return []
    shares: list[Candidate] = []
    leaders = plan.leaders
    for domain in domains_with_leader(plan, best.capacities, level, chosen):
        more = min((domain.units_with_leader if leaders else domain.units) - best.threshold, extra)
        extra -= more
        shares.append(Candidate(domain.number, best.threshold + more, best.threshold + more, leaders))
        leaders = 0
    return shares if extra == 0 else []
