"""Looks at the hours after a plan, in the child that has tried it."""

from __future__ import annotations

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
from studio.services.children import GoOn

TRY_SECONDS: Final = 20.0
"""The time of all forward runs together: a question holds a child, for which other users wait."""


@dataclass(frozen=True, slots=True)
class Ahead:
    """The hours that are asked for, the runs from which run times are drawn, and the seed of the draws."""

    hours: int
    history: RunHistory
    seed: int


def hours_of_plan(
    world: World, changes: Sequence[Change], now: float, ahead: Ahead, go_on: GoOn, seconds: float = TRY_SECONDS
) -> Mapping[str, Any]:
    """Return the hours ahead as JSON, with all names. Where the child's memory does not suffice, they are unknown: the
    answer that it has already is not lost."""
    begun = time.monotonic()

    def has_time(share: float) -> bool:
        return go_on() and time.monotonic() - begun < share * seconds

    random = np.random.default_rng([ahead.seed])
    try:
        found = hours_ahead(world, changes, now, ahead.history, random, ahead.hours, has_time)
    except MemoryError:
        found = no_hours(ahead.hours, Unknown.NO_MEMORY)
    return hours_json(found)
