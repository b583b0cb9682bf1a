"""Remedies of the kind OthersEnd: the fewest workloads whose end starts another one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations
from math import comb

from scheduling.model.vocabulary import ConditionType
from scheduling.studio.remedy import Remedy, RemedyKind, tried
from scheduling.studio.trials import Trials
from scheduling.studio.world_changes import EndWorkload

MAX_EXACT = 3
"""Sets of up to this many workloads are all tried, in the order of the work that is lost."""
MAX_TRIALS = 400
"""Larger numbers of sets are not all tried: the answer is then greedy, with a lower bound."""


def fewest_ends(trials: Trials) -> Iterator[Remedy]:
    """Return the fewest running workloads whose end starts the workload. Among equal numbers, return the workloads that
    lose the least work: seconds since they got their quota, times their devices."""
    queue = trials.world.explain(trials.key).cluster_queue
    if trials.world.objects.cluster_queue(queue) is None:
        return
    lost = {key: _work(trials, key) for key in trials.world.objects.holders(queue)}
    ranked = sorted(lost, key=lambda key: (lost[key], key))
    found, at_least = _exact(trials, ranked, lost)
    if found is None and at_least <= len(ranked):
        found = _greedy(trials, ranked)
    if found is None:
        return
    changes = [EndWorkload(key) for key in found]
    bound = min(at_least, len(found))
    remedy = tried(trials, RemedyKind.OTHERS_END, "workloads", "", changes, workloads=found, at_least=bound)
    if remedy is not None:
        yield remedy


def _exact(trials: Trials, ranked: Sequence[str], lost: dict[str, float]) -> tuple[tuple[str, ...] | None, int]:
    """Return the best set of the least size; or None and the size that it has at least."""
    for size in range(1, MAX_EXACT + 1):
        if comb(len(ranked), size) > MAX_TRIALS:
            return None, size
        for keys in sorted(combinations(ranked, size), key=lambda keys: (sum(map(lost.__getitem__, keys)), keys)):
            if not trials.has_time():
                return None, size
            if trials.starts([EndWorkload(key) for key in keys]):
                return keys, size
    return None, MAX_EXACT + 1


def _greedy(trials: Trials, ranked: Sequence[str]) -> tuple[str, ...] | None:
    """End workloads in the order of lost work until the workload starts, then leave out each one that is not needed,
    beginning with the one that loses most. A binary search finds the first number that starts it.
    """
    low, high = 0, len(ranked)
    if not trials.has_time() or not trials.starts([EndWorkload(key) for key in ranked]):
        return None
    while high - low > 1:
        middle = (low + high) // 2
        if trials.starts([EndWorkload(key) for key in ranked[:middle]]):
            high = middle
        else:
            low = middle
    chosen = [*ranked[:high]]
    for key in reversed(ranked[:high]):
        rest = [other for other in chosen if other != key]
        if trials.has_time() and trials.starts([EndWorkload(other) for other in rest]):
            chosen = rest
    return tuple(chosen)


def _work(trials: Trials, key: str) -> float:
    found = trials.world.workload(key)
    reserved = found.condition(ConditionType.QUOTA_RESERVED) if found is not None else None
    since = reserved.last_transition_time if reserved is not None else trials.now
    return max(0.0, trials.now - since) * max(1, trials.world.objects.device_count(key))
