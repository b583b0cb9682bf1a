"""Limits by user on ClusterQueues and Cohorts, an extension of ours that is off by default."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

ANYONE: Final = "*"
"""The name of a limit for each user, or of one for all groups together, without an entry of their own."""


@dataclass(frozen=True, slots=True)
class UserLimit:
    """A limit of some users and groups on a queue, as in YuniKorn.

    `workloads` is the number of workloads that may hold quota at the same time, 0 for any number (YuniKorn's
    maxapplications). `resources` is the amount that they may hold of each resource, in any unit that all amounts share;
    a resource without an amount is not limited.
    """

    users: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    workloads: int = 0
    resources: Mapping[str, float] = field(default_factory=dict)
