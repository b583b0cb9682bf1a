"""Claims of queues and cohorts to a cohort's quota, and its division among them by a sharing policy.

A queue states its claim in Kueue's fields:

    weight       fairSharing.weight
    deserved     nominalQuota (capacity), quota (fair-share)
    guarantee    nominalQuota - lendingLimit, 0 without a lendingLimit
    capability   nominalQuota + borrowingLimit, without limit if there is no borrowingLimit

A cohort's claim is the sum of those below and its own quota. Demand is the usage of a queue plus the requests of its
pending workloads. Pending requests count in the first flavor that suits them; the part that finds no quota there counts
in the next one.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from scheduling.model.cohort import ResourceQuota
from scheduling.model.resources import PODS, FlavorResource
from scheduling.model.vocabulary import SharingPolicy
from scheduling.policies.capacity import CapacityQueue, capacity
from scheduling.policies.fair_share import QueueClaim, allocatable, dominant_share, fair_shares
from scheduling.policies.proportion import WeightedQueue, proportion, real_capability
from scheduling.policies.queue_order import Standing
from scheduling.policies.resource_vector import TOLERANCE, is_zero, share_of
from scheduling.quota.cells import Cell, QuotaNode

Amounts = dict[FlavorResource, float]
"""Amounts in the units of the policies' vectors."""
_BASE_UNITS: Final = frozenset({"cpu", "memory", PODS})
_MILLI: Final = 1000
_SEVERAL: Final = 2


@dataclass(slots=True)
class PendingRequests:
    """Requests of pending workloads: resource -> amount, in the first of the flavors."""

    amounts: dict[str, float]
    flavors: tuple[str, ...]


@dataclass(slots=True)
class QuotaClaim:
    """A queue's or cohort's claim: its quota in the sense of the policy, its usage and its demand, below it too."""

    node: QuotaNode
    priority: int
    owned: Amounts = field(default_factory=dict)
    guarantee: Amounts = field(default_factory=dict)
    capability: Amounts = field(default_factory=dict)
    used: Amounts = field(default_factory=dict)
    request: Amounts = field(default_factory=dict)
    children: list[QuotaClaim] = field(default_factory=list)
    pending: list[PendingRequests] = field(default_factory=list)
    policy: SharingPolicy | None = None
    rule: SharingPolicy | None = None
    """The policy that divides among it and its siblings; None for the cohort at the top."""
    deserved: Amounts = field(default_factory=dict)
    most: Amounts = field(default_factory=dict)

    @property
    def key(self) -> str:
        return f"{type(self.node).__name__}/{self.node.name}"

    def walk(self) -> Iterator[QuotaClaim]:
        """This claim and all below, parents first."""
        yield self
        for child in self.children:
            yield from child.walk()


def scaled(key: FlavorResource, amount: int) -> float:
    """Convert base units to the units of the policies' vectors."""
    return float(amount) if key.resource in _BASE_UNITS else float(amount * _MILLI)


def base_amount(key: FlavorResource, amount: float) -> int:
    """Return the whole base units within an amount. An amount that falls short of a unit by less than the tolerance
    counts as the unit."""
    return int((amount + TOLERANCE) // (1 if key.resource in _BASE_UNITS else _MILLI))


def set_limits(claim: QuotaClaim, key: FlavorResource, cell: Cell) -> None:
    quota = cell.declared
    if quota is None:
        return
    if quota.lending_limit is not None:
        claim.guarantee[key] = max(0.0, claim.owned[key] - scaled(key, quota.lending_limit))
    if quota.borrowing_limit is not None:
        claim.capability[key] = claim.owned[key] + scaled(key, quota.borrowing_limit)


def sum_requests(claim: QuotaClaim) -> None:
    """Compute the usage and demand of a claim from the claims below it."""
    for child in claim.children:
        sum_requests(child)
    if claim.children:
        keys = {key: None for child in claim.children for key in child.used}
        claim.used = {key: sum(child.used.get(key, 0.0) for child in claim.children) for key in keys}
        claim.request = {key: sum(child.request.get(key, 0.0) for child in claim.children) for key in keys}
        return
    claim.request = dict(claim.used)
    for pending in claim.pending:
        for name, amount in pending.amounts.items():
            key = FlavorResource(pending.flavors[0], name)
            if key in claim.request:
                claim.request[key] += amount


def share_out(claim: QuotaClaim, above: SharingPolicy | None) -> None:
    """Divide the deserved quota of a cohort among its children, and theirs among their own children. `above`: the
    policy that a cohort without its own policy inherits."""
    policy = claim.policy or above
    if policy is None or not claim.children:
        return
    _DIVIDE[policy](claim)
    for child in claim.children:
        child.rule = policy
        share_out(child, policy)


def _guaranteed(claim: QuotaClaim) -> Amounts:
    return {key: sum(child.guarantee.get(key, 0.0) for child in claim.children) for key in claim.owned}


def _by_proportion(claim: QuotaClaim) -> None:
    guaranteed = _guaranteed(claim)
    claims = {
        child.key: WeightedQueue(child.node.weight, child.request, child.guarantee, child.capability)
        for child in claim.children
    }
    found = proportion(claim.deserved, claims, guaranteed)
    for child in claim.children:
        child.deserved = found[child.key]
        child.most = real_capability(claim.most, guaranteed, child.guarantee, child.capability)


def _by_capacity(claim: QuotaClaim) -> None:
    top = {"": CapacityQueue(None, capability=claim.most)}
    below = {child.key: CapacityQueue("", child.owned, child.guarantee, child.capability) for child in claim.children}
    found = capacity(top | below, claim.most)
    for child in claim.children:
        child.deserved = dict(found[child.key].deserved)
        child.most = dict(found[child.key].real_capability)


def _by_fair_share(claim: QuotaClaim) -> None:
    guaranteed = _guaranteed(claim)
    for child in claim.children:
        child.deserved = {}
        child.most = real_capability(claim.most, guaranteed, child.guarantee, child.capability)
    for key, total in claim.deserved.items():
        unit = scaled(key, 1)
        shares = fair_shares(total / unit, [_fair_claim(child, key) for child in claim.children])
        for child in claim.children:
            child.deserved[key] = max(shares[child.key] * unit, child.guarantee.get(key, 0.0))


def _fair_claim(child: QuotaClaim, key: FlavorResource) -> QueueClaim:
    unit = scaled(key, 1)
    return QueueClaim(
        child.key,
        child.priority,
        0.0,
        child.owned.get(key, 0.0) / unit,
        child.capability.get(key, math.inf) / unit,
        child.node.weight,
        child.request.get(key, 0.0) / unit,
    )


_DIVIDE: Final = {
    SharingPolicy.PROPORTION: _by_proportion,
    SharingPolicy.CAPACITY: _by_capacity,
    SharingPolicy.FAIR_SHARE: _by_fair_share,
}


def overflow(claim: QuotaClaim) -> bool:
    """Move pending requests that a flavor cannot serve to the next suitable flavor, for all queues below. Return
    whether any moved.
    """
    moved = [_move_on(each) for each in claim.walk() if each.pending]
    return any(moved)


def _move_on(claim: QuotaClaim) -> bool:
    moved: list[PendingRequests] = []
    for pending in claim.pending:
        amounts = {name: amount for name, amount in pending.amounts.items() if amount}
        if len(pending.flavors) < _SEVERAL or not amounts:
            continue
        # All pods of a workload get one flavor for all resources of a group, so move them together.
        part = max(_missing(claim, pending, name) / amount for name, amount in amounts.items())
        if part > 0:
            moved.append(
                PendingRequests({name: part * amount for name, amount in amounts.items()}, pending.flavors[1:])
            )
            pending.amounts = {name: (1 - part) * amount for name, amount in amounts.items()}
    claim.pending += moved
    return bool(moved)


def _missing(claim: QuotaClaim, pending: PendingRequests, resource: str) -> float:
    key = FlavorResource(pending.flavors[0], resource)
    if key not in claim.request:
        return 0.0
    given = max(claim.deserved.get(key, 0.0), claim.used[key])
    missing = claim.request[key] - given
    return min(missing, pending.amounts[resource]) if missing >= TOLERANCE else 0.0


def standing_of(claim: QuotaClaim) -> Standing:
    if claim.rule is SharingPolicy.FAIR_SHARE:
        uses = [(claim.used.get(key, 0.0), _allocatable(claim, key)) for key in claim.deserved]
        return Standing(claim.key, claim.priority, dominant_share(uses), best_effort=False, share_first=True)
    best_effort = is_zero(claim.deserved)
    share = 1.0 if best_effort and claim.rule is SharingPolicy.CAPACITY else share_of(claim.used, claim.deserved)
    return Standing(claim.key, claim.priority, share, best_effort)


def _allocatable(claim: QuotaClaim, key: FlavorResource) -> float:
    unit = scaled(key, 1)
    found = allocatable(_fair_claim(claim, key), claim.deserved[key] / unit, math.inf)
    return found * unit


def entitled_quota(claim: QuotaClaim, key: FlavorResource, cell: Cell) -> ResourceQuota:
    """Return the amounts with which the cycle decides. The cohort at the top keeps its limits towards its parent."""
    below = sum(base_amount(key, child.deserved.get(key, 0.0)) for child in claim.children)
    deserved = base_amount(key, claim.deserved.get(key, 0.0))
    if claim.rule is None:
        declared = cell.declared or ResourceQuota(0)
        return ResourceQuota(deserved - below, declared.borrowing_limit, declared.lending_limit)
    borrowing: int | None = 0  # by weight, a queue gets no more than it both requests and deserves
    if claim.rule is not SharingPolicy.PROPORTION:
        limit = claim.capability.get(key)
        borrowing = None if limit is None else max(0, base_amount(key, limit) - deserved)
    guarantee = base_amount(key, claim.guarantee.get(key, 0.0))
    return ResourceQuota(deserved - below, borrowing, max(0, deserved - guarantee) if guarantee else None)
