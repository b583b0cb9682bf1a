"""Headroom: the amount that a queue, and a user in it, may still request, as YuniKorn computes it.

A path is a leaf queue and its parents, up to the root. A maximum limits only the resources that it names. Limits of
users and groups can be on any queue of the path, and count the usage of the user or the group below that queue.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from scheduling.model.cohort import ANYONE, UserLimit

Amounts = Mapping[str, float]
"""Resource -> amount, in any unit that all amounts share."""


@dataclass(frozen=True, slots=True)
class Holding:
    """The resources that a user or a group holds below a queue, and how many of its workloads hold them."""

    resources: Amounts = field(default_factory=dict)
    workloads: int = 0


NOTHING: Final = Holding()


@dataclass(frozen=True, slots=True)
class QueueLevel:
    """A queue of a path.

    * maximum, allocated: by resource.
    * limits: of users and groups, in their order. users, groups: the usage of each of them here.
    """

    name: str
    maximum: Amounts = field(default_factory=dict)
    allocated: Amounts = field(default_factory=dict)
    limits: tuple[UserLimit, ...] = ()
    users: Mapping[str, Holding] = field(default_factory=dict)
    groups: Mapping[str, Holding] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Excess:
    """A limit of a queue that a request exceeds: the amounts of the resource, or, for resource "", numbers of
    workloads. `group`: the group whose limit it is; "" for a limit of the user."""

    level: str
    resource: str
    limit: float
    held: float
    wanted: float
    group: str = ""


Path = Sequence[QueueLevel]
"""A leaf queue first, the root last."""


def queue_headroom(path: Path) -> dict[str, float]:
    """Return the remaining amount of each resource that a queue of the path limits: the minimum over these queues."""
    return _least(_left(level.maximum, level.allocated) for level in path)


def user_headroom(path: Path, user: str, groups: Sequence[str] = ()) -> dict[str, float] | None:
    """Return a user's remaining amount of each resource that is limited for the user or the group; None: no limit."""
    return headroom_left(path, user, group_of(path, groups))


def headroom_left(path: Path, user: str, group: str) -> dict[str, float] | None:
    """Return the same for a user who counts in a known group; "" for no group."""
    limited = [
        _left(limit.resources, holding.resources)
        for level in path
        for _, limit, holding in _limits_at(level, user, group)
        if limit.resources
    ]
    return _least(limited) if limited else None


def workloads_left(path: Path, user: str, group: str = "") -> int | None:
    """Return how many more workloads the limits of the user and of the group allow, at least 0; None if no limit counts
    workloads."""
    left = [
        max(0, limit.workloads - holding.workloads)
        for level in path
        for _, limit, holding in _limits_at(level, user, group)
        if limit.workloads
    ]
    return min(left) if left else None


def user_may_start(path: Path, user: str, group: str) -> bool:
    """Return whether the limits of the user and of the group allow one more workload."""
    return workloads_left(path, user, group) != 0


def first_exceeded(path: Path, user: str, request: Amounts, group: str = "") -> Excess | None:
    """Return the first limit, from the leaf up, that the user or the group would exceed with one more workload of this
    request; None if there is no such limit."""
    for level in path:
        for limited, limit, holding in _limits_at(level, user, group):
            if limit.workloads and holding.workloads >= limit.workloads:
                return Excess(level.name, "", limit.workloads, holding.workloads, 1, limited)
            for resource, most in limit.resources.items():
                held, wanted = holding.resources.get(resource, 0), request.get(resource, 0)
                if wanted > 0 and held + wanted > most:
                    return Excess(level.name, resource, most, held, wanted, limited)
    return None


def limit_of(level: QueueLevel, user: str) -> UserLimit | None:
    """Return the limit of a user on a queue: the limit that names the user, or else the limit for all other users."""
    return _entry(level, user, users=True) or _entry(level, ANYONE, users=True)


def group_limit_of(level: QueueLevel, group: str) -> UserLimit | None:
    """Return the limit of a group on a queue; None if the queue does not limit it by this name."""
    return _entry(level, group, users=False) if group else None


def group_of(path: Path, groups: Sequence[str]) -> str:
    """Return the one group of a user that limits count: the first group that the leaf has a limit for, else the leaf's
    limit for all groups, else the same one queue higher; "" if no group counts."""
    for level in path:
        named = [name for limit in level.limits for name in limit.groups]
        found = next((group for group in groups if group in named), ANYONE if ANYONE in named and groups else "")
        if found:
            return found
    return ""


def _limits_at(level: QueueLevel, user: str, group: str) -> Iterable[tuple[str, UserLimit, Holding]]:
    """Yield the limit of the user on a queue, with "", and that of the group, with its name; each with the usage
    there."""
    own = limit_of(level, user)
    if own is not None:
        yield "", own, level.users.get(user, NOTHING)
    shared = group_limit_of(level, group)
    if shared is not None:
        yield group, shared, level.groups.get(group, NOTHING)


def _entry(level: QueueLevel, name: str, *, users: bool) -> UserLimit | None:
    return next((limit for limit in level.limits if name in (limit.users if users else limit.groups)), None)


def _left(maximum: Amounts, held: Amounts) -> dict[str, float]:
    return {resource: amount - held.get(resource, 0) for resource, amount in maximum.items()}


def _least(all_left: Iterable[Amounts]) -> dict[str, float]:
    least: dict[str, float] = {}
    for left in all_left:
        for resource, amount in left.items():
            least[resource] = min(least.get(resource, amount), amount)
    return least
