"""Topology-aware scheduling: chooses the leaves for a group of pods.

Capacities of all domains are counted first (`capacities`). Then two steps follow. First, choose a level and domains
on it that together hold the group: a single domain if one holds it all; else, unless the level is required, try wider
levels, and combine several domains on the widest. Second, hand the pods down level by level, to as few domains as
possible (best fit) or to the fullest ones first (least free capacity, for unconstrained groups). The leader takes a
seat in the first domain that can spare it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from scheduling.topology.capacities import Capacities
from scheduling.topology.request import PlacementPlan
from scheduling.topology.tree import TopologyTree


@dataclass(slots=True)
class Candidate:
    """A domain that may take pods. Once the domain has taken pods, the counts are the taken ones.

    `units` are slices from the slice level upwards and pods below it; `units_with_leader` are the units that fit beside
    the leader; `leaders` is how many leaders it can seat.
    """

    number: int
    units: int
    units_with_leader: int
    leaders: int


@dataclass(frozen=True, slots=True)
class Placed:
    """The number of pods by leaf number, sorted by leaf; every number is positive."""

    workers: tuple[tuple[int, int], ...]
    leaders: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class TooSmall:
    """The group does not fit; `fitting` is the number of slices that would."""

    fitting: int


def place(plan: PlacementPlan, tree: TopologyTree, capacities: Capacities) -> Placed | TooSmall:
    """Choose leaves for the group; the tree must have leaves."""
    chosen = choose_domains(plan, capacities)
    if isinstance(chosen, TooSmall):
        return chosen
    level, domains = chosen
    taken = consume(domains, plan.wanted, plan.leaders, best_fit=not plan.least_free)
    return checked(plan, descend(plan, tree, capacities, level, taken))


def checked(plan: PlacementPlan, placed: Placed) -> Placed | TooSmall:
    """Return the placement if it is complete. Beside a leader, a domain's counts are only an upper bound, so fewer pods
    may have found room."""
    slices = sum(count for _, count in placed.workers) // plan.slices.size
    seated = sum(count for _, count in placed.leaders)
    return placed if slices == plan.wanted and seated == plan.leaders else TooSmall(min(slices, plan.wanted - 1))


def choose_domains(plan: PlacementPlan, capacities: Capacities) -> tuple[int, list[Candidate]] | TooSmall:
    """Choose the level, and the domains on it, that hold the group (Kueue's findLevelWithFitDomains)."""
    level = plan.level
    while True:
        single = _tightest_domain(plan, capacities, level)
        if single is not None:
            return level, [single]
        if plan.required:
            return TooSmall(_most_slices(plan, capacities, level))
        if level == 0 or plan.least_free:
            return _combine_domains(plan, capacities, level)
        level -= 1


def _tightest_domain(plan: PlacementPlan, capacities: Capacities, level: int) -> Candidate | None:
    """Return the domain that holds the whole group with the fewest slices left over; then the fewest pods left over,
    then the smallest level values."""
    slices, pods = capacities.slices_with_leader[level], capacities.pods_with_leader[level]
    leaders = capacities.leaders[level]
    numbers: Iterable[int] = range(len(slices))
    if plan.leaders:
        numbers = (number for number in numbers if leaders[number])
    number = _tightest_of(numbers, slices, pods, plan.wanted)
    if number is None:
        return None
    return Candidate(number, capacities.slices[level][number], slices[number], leaders[number])


def _most_slices(plan: PlacementPlan, capacities: Capacities, level: int) -> int:
    slices, leaders = capacities.slices_with_leader[level], capacities.leaders[level]
    return max((count for count, seat in zip(slices, leaders, strict=True) if seat >= plan.leaders), default=0)


def _combine_domains(plan: PlacementPlan, capacities: Capacities, level: int) -> tuple[int, list[Candidate]] | TooSmall:
    """Several domains of one level: first one that seats the leader, then as many others as needed."""
    best_fit = not plan.least_free
    rest, leaders = plan.wanted, plan.leaders
    domains = domains_with_leader(plan, capacities, level, range(len(capacities.slices[level])))
    _seat_first(domains, rest, leaders)
    chosen: list[Candidate] = []
    while leaders > 0 and len(chosen) < len(domains) and domains[len(chosen)].leaders > 0:
        domain = domains[len(chosen)]
        if best_fit and domain.units_with_leader >= rest:
            domain = _tightest_with_leader(domains[len(chosen) :], rest, leaders)
        chosen.append(domain)
        leaders -= domain.leaders
        rest -= domain.units_with_leader
    if leaders > 0:
        return TooSmall(0)
    others = domains[len(chosen) :]
    if chosen:
        others = in_order(plan, capacities, level, [domain.number for domain in others])
    for position, domain in enumerate(others):
        if rest <= 0:
            break
        if best_fit and domain.units >= rest:
            domain = _tightest(others[position:], rest)
        if domain.units > 0:
            chosen.append(domain)
            rest -= domain.units
    return TooSmall(plan.wanted - rest) if rest > 0 else (level, chosen)


def descend(
    plan: PlacementPlan,
    tree: TopologyTree,
    capacities: Capacities,
    level: int,
    taken: Sequence[Candidate],
    *,
    pool: bool = True,
) -> Placed:
    """Pass the pods of the chosen domains of `level` down to the leaves (Kueue's updateCountsToMinimum per level).

    Down to the slice level, the domains below all chosen ones are pooled, unless `pool` is off; from there on, the pods
    of each domain stay in it.
    """
    for lower in range(level + 1, tree.depth):
        if pool and lower <= plan.slices.level:
            children = tree.children[lower - 1]
            numbers = [number for domain in taken for number in children[domain.number]]
            taken = _fill(plan, capacities, lower, numbers, plan.wanted, plan.leaders)
        else:
            taken = _split_each(plan, tree, capacities, lower, taken)
    size = plan.slices.size if plan.slices.level == tree.last_level else 1
    leaves = sorted(taken, key=lambda domain: domain.number)
    return Placed(
        tuple((leaf.number, leaf.units * size) for leaf in leaves if leaf.units > 0),
        tuple((leaf.number, leaf.leaders) for leaf in leaves if leaf.leaders > 0),
    )


def _split_each(
    plan: PlacementPlan, tree: TopologyTree, capacities: Capacities, lower: int, taken: Sequence[Candidate]
) -> list[Candidate]:
    """Hand each domain's pods to its own children on the level `lower`."""
    size = plan.slices.size if lower - 1 == plan.slices.level else 1
    below: list[Candidate] = []
    for domain in taken:
        inside = tree.children[lower - 1][domain.number]
        below += _fill(plan, capacities, lower, inside, domain.units * size, domain.leaders)
    return below


def _fill(
    plan: PlacementPlan, capacities: Capacities, level: int, numbers: Sequence[int], need: int, leaders: int
) -> list[Candidate]:
    """Let the domains of a level take the needed pods, in order. If the first (with the most slices) could take all of
    it, the domain with the tightest fit does, which needs no sorting.
    """
    if not (leaders or plan.least_free or level > plan.slices.level):
        single = _tightest_of(numbers, capacities.slices[level], capacities.pods[level], need)
        if single is not None:
            return [Candidate(single, need, need, 0)]
    return consume(in_order(plan, capacities, level, numbers), need, leaders, not plan.least_free)


def _tightest_of(numbers: Iterable[int], slices: Sequence[int], pods: Sequence[int], need: int) -> int | None:
    fitting = [number for number in numbers if slices[number] >= need]
    return min(fitting, key=lambda number: (slices[number], pods[number])) if fitting else None


def in_order(plan: PlacementPlan, capacities: Capacities, level: int, numbers: Sequence[int]) -> list[Candidate]:
    """Sort the domains into the order in which they are filled, regardless of leaders.

    Best fit takes the most slices first, least free capacity the fewest; then fewer pods, then smaller values. Below
    the slice level there are no slices to count, and fewer pods come first in either case; they are counted in whole
    slices of the layer that applies at this level.
    """
    slices, pods, leaders = capacities.slices[level], capacities.pods[level], capacities.leaders[level]
    if level > plan.slices.level:
        beside, size = capacities.pods_with_leader[level], plan.slices.inner_sizes[level]
        order = sorted(numbers, key=lambda number: (pods[number], number))
        return [
            Candidate(
                number, pods[number] - pods[number] % size, beside[number] - beside[number] % size, leaders[number]
            )
            for number in order
        ]
    sign = 1 if plan.least_free else -1
    beside = capacities.slices_with_leader[level]
    order = sorted(numbers, key=lambda number: (sign * slices[number], pods[number], number))
    return [Candidate(number, slices[number], beside[number], leaders[number]) for number in order]


def domains_with_leader(
    plan: PlacementPlan, capacities: Capacities, level: int, numbers: Iterable[int]
) -> list[Candidate]:
    """Sort the domains into the order in which they are filled if there is a leader: domains that can hold the leader
    come first."""
    slices, leaders = capacities.slices[level], capacities.leaders[level]
    beside, pods = capacities.slices_with_leader[level], capacities.pods_with_leader[level]
    sign = 1 if plan.least_free else -1
    order = sorted(numbers, key=lambda number: (-leaders[number], sign * beside[number], pods[number], number))
    return [Candidate(number, slices[number], beside[number], leaders[number]) for number in order]


def consume(domains: list[Candidate], need: int, leaders: int, best_fit: bool) -> list[Candidate]:
    """Let the domains take `need` units and the leaders, in order.

    Returns the used domains with the counts that they took. With best fit, as soon as the current domain could hold the
    rest, the tightest domain that can hold the rest takes it instead.
    """
    _seat_first(domains, need, leaders)
    taken: list[Candidate] = []
    for position, domain in enumerate(domains):
        if leaders > 0:
            if best_fit and domain.units_with_leader >= need and domain.leaders >= leaders:
                domain = _tightest_with_leader(domains[position:], need, leaders)
            whole = domain.units_with_leader >= need and domain.leaders >= leaders
            domain.units = min(domain.units_with_leader, need)
            domain.leaders = min(domain.leaders, leaders)
            leaders -= domain.leaders
        else:
            if best_fit and domain.units >= need:
                domain = _tightest(domains[position:], need)
            whole = domain.units >= need
            domain.units = min(domain.units, need)
            domain.leaders = 0
        need -= domain.units
        taken.append(domain)
        if whole:
            break
    return taken


def _seat_first(domains: list[Candidate], need: int, leaders: int) -> None:
    """Move to the front the first domain that can seat the leader and leaves room for the need in all of them."""
    if leaders == 0:
        return
    total = sum(domain.units for domain in domains)
    for position, domain in enumerate(domains):
        if domain.leaders >= leaders and total - (domain.units - domain.units_with_leader) >= need:
            domains.insert(0, domains.pop(position))
            return


def _tightest(domains: Sequence[Candidate], need: int) -> Candidate:
    return min((domain for domain in domains if domain.units >= need), key=lambda domain: domain.units)


def _tightest_with_leader(domains: Sequence[Candidate], need: int, leaders: int) -> Candidate:
    fitting = (domain for domain in domains if domain.units_with_leader >= need and domain.leaders >= leaders)
    return min(fitting, key=lambda domain: domain.units_with_leader)
