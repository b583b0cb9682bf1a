"""The openb trace with a backlog: which of the waiting pods goes first is chosen, instead of the one that came first.

What differs from the published protocol: the same pods come in the same order, but pods wait. There are always as many
waiting as the backlog holds, as in a cluster that is never idle. In rounds, a sixteenth of them is placed, those that
waste least (`choose_next`) first, and those that came next join; after the last arrival the backlog is emptied in the
same way. Who saw eight times as many placed as the backlog holds since it joined goes first, so nobody waits forever.
Who fits on no node is dropped as in the published protocol: nothing ends in it, so it never would.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tests.benchmarks.openb.choose_next import waste
from tests.benchmarks.openb.protocol import Outcome, TraceNode, TracePod, Trial

ROUND = 16
PATIENCE = 8


@dataclass(frozen=True, slots=True)
class _Waiting:
    pod: TracePod
    placed_before: int
    """How many had been placed when it joined."""


def run_with_backlog(
    nodes: Sequence[TraceNode],
    pods: Sequence[TracePod],
    policy: str,
    seed: int,
    backlog: int,
    patience: int = PATIENCE,
) -> Outcome:
    """One run of one policy with a backlog of so many pods; nobody waits for more than `patience` times as many. The
    allocation is that at the end."""
    trial = Trial(nodes, pods, policy, seed)
    coming = iter(trial.arriving)
    waiting = _joined(trial, [], coming, backlog)
    while waiting:
        ordered = _ordered(trial, waiting, patience * backlog)
        first = max(1, len(ordered) // ROUND)
        for each in ordered[:first]:
            trial.place(each.pod)
        left = set(map(id, ordered[first:]))
        waiting = _joined(trial, [each for each in waiting if id(each) in left], coming, backlog)
    return trial.outcome(trial.allocated)


def _joined(trial: Trial, waiting: list[_Waiting], coming: Iterator[TracePod], backlog: int) -> list[_Waiting]:
    """The waiting and those that came, until the backlog is full."""
    joined = [*waiting]
    while len(joined) < backlog:
        pod = next(coming, None)
        if pod is None:
            break
        joined.append(_Waiting(pod, trial.placed))
    return joined


def _ordered(trial: Trial, waiting: Sequence[_Waiting], patience: int) -> list[_Waiting]:
    """Who waited too long, then who wastes least; of equal ones who came first. Who fits nowhere is left out."""
    kinds = {each.pod.kind: each.pod for each in waiting}
    wastes = {kind: waste(trial.fleet, [trial.pod_sets[pod]]) for kind, pod in kinds.items()}
    keys = [
        (trial.placed - each.placed_before < patience, found, number)
        for number, each in enumerate(waiting)
        if (found := wastes[each.pod.kind]) is not None
    ]
    return [waiting[number] for *_, number in sorted(keys)]
