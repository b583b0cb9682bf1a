"""Looks at the hours after a plan, in the child that has tried it."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from scheduling.estimates.run_times import RunHistory
from scheduling.estimates.snapshot import Unknown
from scheduling.studio.hours_ahead import hours_ahead, no_hours
from scheduling.studio.plan_effects_json import hours_json
from scheduling.studio.world_changes import Change
from scheduling.world import World
from studio.services.children import GoOn, Outcome

TRY_SECONDS: Final = 20.0
"""The time of all forward runs together: a question holds a child, for which other users wait."""
MAX_SHOWN_QUEUES: Final = 50
"""A page, and a terminal, show this many ClusterQueues, and the number of the others."""
_WHY: Final = {"MemoryLimit": Unknown.NO_MEMORY, "Killed": Unknown.NO_MEMORY, "TimeLimit": Unknown.BEYOND_REACH}
"""By the reason for which a child ended."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Ahead:
    """The hours that are asked for, the runs from which run times are drawn, and the seed of the draws."""

    hours: int
    history: RunHistory
    seed: int


def hours_of_plan(
    world: World, changes: Sequence[Change], now: float, ahead: Ahead, go_on: GoOn, seconds: float = TRY_SECONDS
) -> Mapping[str, Any]:
    """Return the hours ahead as JSON, with all names. Where they fail, they are unknown: the answer that the child has
    already is not lost."""
    begun = time.monotonic()

    def has_time(share: float) -> bool:
        return go_on() and time.monotonic() - begun < share * seconds

    random = np.random.default_rng([ahead.seed])
    try:
        found = hours_ahead(world, changes, now, ahead.history, random, ahead.hours, has_time)
    except MemoryError:
        found = no_hours(ahead.hours, Unknown.NO_MEMORY)
    except Exception:  # noqa: BLE001 (the whole answer is there already)
        _log.exception("The hours ahead of a plan failed")
        found = no_hours(ahead.hours, Unknown.ERROR)
    return hours_json(found)


def without_hours(told: Mapping[str, Any], asked_hours: int, outcome: Outcome) -> Outcome:
    """Return the outcome of a child that ended without one in the hours: the whole answer that it has told, without
    hours. Before its whole answer, the outcome is unchanged."""
    if not asked_hours or told.get("whole") is None:
        return outcome
    _log.warning("The hours ahead of a plan failed: %s: %s", outcome.reason, outcome.message)
    unknown = _WHY.get(outcome.reason, Unknown.ERROR)
    return Outcome({**told, "hours": hours_json(no_hours(asked_hours, unknown))})
