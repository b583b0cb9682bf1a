"""Remedies of a waiting workload: each is one change that would start it, tried with cycles on the World and undone."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain

from scheduling.advice.waiting_rules import WaitState
from scheduling.model.workload import Workload
from scheduling.studio.fewest_ends import fewest_ends
from scheduling.studio.other_places import back_in_service, moves, other_places
from scheduling.studio.quota_raises import quota_raises
from scheduling.studio.remedy import Remedy
from scheduling.studio.smaller_requests import smaller_requests
from scheduling.studio.trials import Trials
from scheduling.world import World


@dataclass(frozen=True, slots=True)
class Remedies:
    """The remedies of one workload. If there are none and `complete` is set, none of the tried changes would start it.

    `starts_now`: the next cycles start it anyway. `trials` counts how often cycles were tried.
    """

    state: WaitState
    remedies: tuple[Remedy, ...] = ()
    starts_now: bool = False
    complete: bool = True
    trials: int = 0


def find_remedies(
    world: World,
    key: str,
    now: float,
    priorities: Mapping[str, int] | None = None,
    go_on: Callable[[], bool] = lambda: True,
) -> Remedies:
    """Find changes that would start the workload at once. The World is unchanged afterwards. Raises KeyError if it is
    unknown.

    `priorities` are the priority classes that its owner may use. When `go_on` returns False, the remedies found so far
    are returned, and `complete` is False.
    """
    state = world.explain(key).state
    waiting = world.workload(key)
    if waiting is None or state in (WaitState.HOLDS_QUOTA, WaitState.NOT_QUEUED):
        return Remedies(state)
    trials = Trials(world, key, now, go_on)
    if key in trials.before.starts:
        return Remedies(state, starts_now=True, trials=trials.count)
    found: list[Remedy] = []
    for remedy in _all(trials, waiting, priorities or {}):
        found.append(remedy)
        if not trials.has_time():
            break
    return Remedies(state, tuple(found), complete=trials.has_time(), trials=trials.count)


def _all(trials: Trials, waiting: Workload, priorities: Mapping[str, int]) -> Iterator[Remedy]:
    return chain(
        smaller_requests(trials, waiting),
        other_places(trials, waiting, priorities),
        back_in_service(trials),
        moves(trials),
        quota_raises(trials),
        fewest_ends(trials),
    )
