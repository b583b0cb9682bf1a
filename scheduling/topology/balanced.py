"""Balanced placement: spread a preferred group evenly over sibling domains (Kueue's alpha gate TASBalancedPlacement).

Best fit fills domains to the brim and leaves a remainder of any size in the last one. Balanced placement looks, among
the domains of the preferred level that share a parent, for the set in which the domain with the fewest slices has the
most (the threshold); each domain gets that many, and what is left over goes to the first ones. Where a single
domain holds the group, or no threshold is found, best fit decides.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from scheduling.topology.best_fit import Candidate, Placed, checked, descend, in_order
from scheduling.topology.capacities import Capacities
from scheduling.topology.request import PlacementPlan
from scheduling.topology.tree import TopologyTree


@dataclass(frozen=True, slots=True)
class _Siblings:
    """Sibling domains and the largest threshold that a greedy choice of `domain_count` of them reaches."""

    domains: tuple[Candidate, ...]
    threshold: int
    domain_count: int


def place_balanced(plan: PlacementPlan, tree: TopologyTree, capacities: Capacities) -> Placed | None:
    """Choose leaves for a preferred group evenly; None when best fit decides."""
    shares = balance(plan, tree, capacities)
    if shares is None:
        return None
    placed = checked(plan, descend(plan, tree, capacities, plan.level, shares, pool=False))
    return placed if isinstance(placed, Placed) else None


def balance(plan: PlacementPlan, tree: TopologyTree, capacities: Capacities) -> list[Candidate] | None:
    """Domains of the preferred level with the slices and leaders that each takes; None when best fit decides."""
    if not plan.preferred or plan.wanted < 2:
        return None
    families = [_siblings(plan, capacities, numbers) for numbers in _families(plan.level, tree)]
    possible = [family for family in families if family is not None]
    if not possible or any(family.domain_count == 1 for family in possible):
        return None
    best = min(possible, key=lambda family: (-family.threshold, family.domain_count))
    evenness = {domain.number: _entropy(plan, tree, capacities, domain) for domain in best.domains}
    preferred = sorted(best.domains, key=lambda domain: (-evenness[domain.number], domain.number))
    chosen = _smallest_set(preferred, plan.wanted, plan.leaders, best.threshold)
    if chosen is None or best.threshold * len(chosen) > plan.wanted:
        return None
    return _share_out(chosen, plan, best.threshold)


def _families(level: int, tree: TopologyTree) -> Iterable[Sequence[int]]:
    return tree.children[level - 1] if level > 0 else [range(len(tree.values[0]))]


def _siblings(plan: PlacementPlan, capacities: Capacities, numbers: Sequence[int]) -> _Siblings | None:
    """Fill siblings greedily, the leader's domain first, then the largest; None if they do not hold the group."""
    domains = in_order(plan, capacities, plan.level, numbers)
    picked: list[int] = []
    others = list(domains)
    if plan.leaders:
        seats = [domain for domain in domains if domain.leaders >= plan.leaders]
        if not seats:
            return None
        leading = max(seats, key=lambda domain: domain.units_with_leader)
        others.remove(leading)
        picked.append(leading.units_with_leader)
    for domain in others:
        if sum(picked) >= plan.wanted:
            break
        picked.append(domain.units)
    if sum(picked) < plan.wanted:
        return None
    threshold = min(plan.wanted // len(picked), *picked)
    if threshold < 1:
        return None
    return _Siblings(tuple(domain for domain in domains if domain.units >= threshold), threshold, len(picked))


def _entropy(plan: PlacementPlan, tree: TopologyTree, capacities: Capacities, domain: Candidate) -> float:
    """How evenly the domain's room is spread over its children, in bits."""
    if plan.level == tree.last_level:
        return 0.0
    room = [capacities.pods[plan.level + 1][child] for child in tree.children[plan.level][domain.number]]
    total = sum(room)
    return -sum(part / total * math.log2(part / total) for part in room if part)


def _smallest_set(
    domains: Sequence[Candidate], wanted: int, leaders: int, threshold: int
) -> list[tuple[Candidate, int]] | None:
    """The fewest domains that hold the group, with the least room left over; earlier domains where that is equal.

    Returns each domain with the number of leaders it seats. The sums that are reachable are kept as bits of an
    integer, by the number of domains and of leaders; `reachable[i]` uses the domains from the i-th on.
    """
    size = len(domains)
    empty = [[0] * (leaders + 1) for _ in range(size + 1)]
    empty[0][0] = 1
    reachable = [empty]
    for domain in reversed(domains):
        before = reachable[-1]
        after = [list(row) for row in before]
        for count in range(size):
            for seated in range(leaders + 1):
                after[count + 1][seated] |= before[count][seated] << domain.units
                if seated < leaders and _may_lead(domain, threshold):
                    after[count + 1][seated + 1] |= before[count][seated] << domain.units_with_leader
        reachable.append(after)
    reachable.reverse()
    for count in range(1, size + 1):
        enough = reachable[0][count][leaders] >> wanted
        if enough:
            total = wanted + (enough & -enough).bit_length() - 1
            return _trace(domains, reachable, count, total, leaders, threshold)
    return None


def _trace(
    domains: Sequence[Candidate],
    reachable: Sequence[Sequence[Sequence[int]]],
    count: int,
    total: int,
    leaders: int,
    threshold: int,
) -> list[tuple[Candidate, int]]:
    chosen: list[tuple[Candidate, int]] = []
    for position, domain in enumerate(domains):
        if count == 0:
            break
        rest = reachable[position + 1][count - 1]
        left = total - domain.units_with_leader
        if leaders and _may_lead(domain, threshold) and left >= 0 and rest[leaders - 1] >> left & 1:
            chosen.append((domain, 1))
            count, total, leaders = count - 1, left, leaders - 1
            continue
        left = total - domain.units
        if left >= 0 and rest[leaders] >> left & 1:
            chosen.append((domain, 0))
            count, total = count - 1, left
    return chosen


def _may_lead(domain: Candidate, threshold: int) -> bool:
    return domain.leaders > 0 and domain.units_with_leader >= threshold


def _share_out(chosen: Sequence[tuple[Candidate, int]], plan: PlacementPlan, threshold: int) -> list[Candidate]:
    """The threshold for each domain, and what remains for the first ones."""
    extra = plan.wanted - threshold * len(chosen)
    shares: list[Candidate] = []
    for domain, leaders in chosen:
        room = domain.units_with_leader if leaders else domain.units
        more = min(room - threshold, extra)
        extra -= more
        shares.append(Candidate(domain.number, threshold + more, threshold + more, leaders))
    return shares
