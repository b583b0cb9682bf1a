"""One change that would start a waiting workload, and its side effects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from scheduling.outlook import Effects
from scheduling.studio.trials import Trials
from scheduling.studio.world_changes import Change

Amount = int | str


class RemedyKind(StrEnum):
    """The side that acts: the workload's owner, the owner of quota, or an operator."""

    LESS = "Less"
    """The workload requests less."""
    ELSEWHERE = "Elsewhere"
    """It selects another queue, flavor, topology or priority."""
    QUOTA = "Quota"
    """An owner of quota raises a nominal quota or a borrowing limit."""
    OTHERS_END = "OthersEnd"
    """Other workloads finish or are cancelled."""
    MOVES = "Moves"
    """Running workloads move to other nodes or devices."""
    BACK_IN_SERVICE = "BackInService"
    """A node or device that is out of service returns."""


@dataclass(frozen=True, slots=True)
class Remedy:
    """A change that was tried with cycles: the workload then starts at once, and with the next smaller change it does
    not. Amounts are integers in base units.

    `field_name` is the field that changes on `subject`: `count`, `requests`, `queueName`, `nominalQuota` and so on.
    `before` and `after` are by resource, or under "" if the field is one value. `workloads` end or move.
    """

    kind: RemedyKind
    field_name: str
    subject: str
    changes: tuple[Change, ...]
    effects: Effects
    before: Mapping[str, Amount] = field(default_factory=dict)
    after: Mapping[str, Amount] = field(default_factory=dict)
    workloads: tuple[str, ...] = ()
    at_least: int = 0
    """The bound where workloads end: no fewer would do. Equal to their number where that is the least."""
    monotone: bool = True
    """False where larger amounts were seen to start it as well, with amounts between them that do not."""


def tried(
    trials: Trials,
    kind: RemedyKind,
    name: str,
    subject: str,
    changes: Sequence[Change],
    *,
    before: Mapping[str, Amount] | None = None,
    after: Mapping[str, Amount] | None = None,
    workloads: Sequence[str] = (),
    at_least: int = 0,
    monotone: bool = True,
) -> Remedy | None:
    """Try the remedy, and return it with its effects; None if the workload does not start."""
    effects = trials.effects(changes)
    if effects is None:
        return None
    return Remedy(
        kind,
        name,
        subject,
        tuple(changes),
        effects,
        before or {},
        after or {},
        tuple(workloads),
        at_least,
        monotone,
    )
