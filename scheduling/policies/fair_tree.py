"""Slurm's Fair Tree: users in the order of their accounts' fair shares, level by level from the root.

At each level an association's level is its part of the shares over its part of the usage. The tree is walked depth
first, the highest level first, and users are ranked in the order in which the walk meets them. So no user of an account
comes before a user of a sibling account with a higher level.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Association:
    """A user or an account. `shares` None: a user is ranked as if it had not used anything, and the children of an
    account count as children of the account above."""

    key: str
    parent: str | None
    is_user: bool
    shares: float | None = 1.0
    usage: float = 0.0
    """Its own, without that of the associations below."""


@dataclass(frozen=True, slots=True)
class Standing:
    """The level of an association (infinite without usage) and, for a user, its factor: its rank over the number of
    users, 1 for the first.
    """

    level: float
    factor: float | None = None


def fair_tree(associations: Iterable[Association]) -> dict[str, Standing]:
    """Return the standing of every association but the root, which has no parent. Equal siblings keep their order."""
    tree = _Tree(associations)
    tree.walk(tree.roots, tied=False)
    return tree.standings


class _Tree:
    """The associations by their parents, and the ranks given so far."""

    def __init__(self, associations: Iterable[Association]) -> None:
        self._known = {found.key: found for found in associations}
        self._children: dict[str | None, list[Association]] = {}
        for found in self._known.values():
            self._children.setdefault(found.parent, []).append(found)
        self._usage: dict[str, float] = {}
        self.users = sum(found.is_user for found in self._known.values())
        self._rank = self._next_rank = self.users
        self.standings: dict[str, Standing] = {}

    @property
    def roots(self) -> Association:
        """The root."""
        return self._children[None][0]

    def walk(self, parent: Association, *, tied: bool) -> None:
        """Rank the users below an account. `tied`: the account has the level of the sibling before it, so that its
        first user shares the last rank."""
        siblings = sorted(
            ((self._level(found, parent), found) for found in self._below(parent)),
            key=lambda each: (-each[0], not each[1].is_user),
        )
        previous: float | None = None
        for number, (level, found) in enumerate(siblings):
            is_tied = tied if number == 0 else level == previous
            previous = level
            if not found.is_user:
                self.standings[found.key] = Standing(level)
                self.walk(found, tied=is_tied)
                continue
            if not is_tied:
                self._rank = self._next_rank
            self._next_rank -= 1
            self.standings[found.key] = Standing(level, self._rank / self.users)

    def _below(self, parent: Association) -> Iterator[Association]:
        for found in self._children.get(parent.key, ()):
            if found.shares is None and not found.is_user:
                self.standings[found.key] = Standing(math.inf)
                yield from self._below(found)
            else:
                yield found

    def _level(self, found: Association, parent: Association) -> float:
        if found.shares is None:
            return math.inf
        siblings = self._children[found.parent]
        all_shares = sum(each.shares for each in siblings if each.shares is not None)
        share = found.shares / all_shares if all_shares else 0.0
        if share == 0:
            return 0.0
        above = self._used(self._known[found.parent]) if found.parent is not None else 0.0
        used = self._used(found) / above if above else 0.0
        return share / used if used else math.inf

    def _used(self, found: Association) -> float:
        """Return the usage of an association and of all below."""
        total = self._usage.get(found.key)
        if total is None:
            below = self._children.get(found.key, ())
            total = self._usage[found.key] = found.usage + sum(map(self._used, below))
        return total
