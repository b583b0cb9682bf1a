"""Compares the decisions of our rules with those of another scheduler that runs the cluster, decision by decision.

A World follows the other scheduler's workloads, change by change, in the order in which its cluster had them. A change
that is a decision (quota given, or a preemption) is held back for a moment: our cycles run first, and are undone. So
each comparison starts from the real state, one difference causes no later ones, and the time of the comparison does not
matter.

A scheduler decides on the changes that it has heard so far, and its decision is written a moment later. If our decision
differs, the comparison is repeated without the latest changes, leaving out one more each time; and, as a scheduler
knows its own decisions before they are written, without only those changes that it did not decide. A workload that our
rules prefer does not count if they refused it a moment earlier: Kueue tries it again a second after quota became free,
and one workload of each queue at a time. Such decisions agree out of turn. A decision that still differs is compared
again once later decisions are known, which may have been made before it. How long a moment is follows from how long the
latest decisions took.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial
from typing import Final

from scheduling.model.workload import Workload
from scheduling.shadow.choices import (
    WAITING,
    Act,
    Choice,
    as_waiting,
    counts_for,
    left_as_it_is,
    refusal_of,
    says_the_same,
    their_choice,
)
from scheduling.shadow.trials import Answer, Change, Question, Trials
from scheduling.world import World

PATIENCE_SECONDS: Final = 5.0
"""When the other scheduler decided, changes younger than this may have been unknown to it. If its latest decisions took
long, this is twice that time.
"""
MAX_PATIENCE_SECONDS: Final = 60.0
"""kueueweb would have made the decision, and the other scheduler has not for this long: it will not. It may decide
earlier: by a later evaluation of the same workload with another result.
"""
_PACES: Final = 32
"""The number of its latest decisions whose duration is considered."""
_MAX_UNHEARD: Final = 64
_MAX_AGAIN: Final = 8
"""A difference is compared again after as many later decisions."""
_MAX_NAMED: Final = 3
_FOR_VICTIMS: Final = "Pending the preemption of"
_PREEMPTOR: Final = re.compile(r"\(UID: ([^,)]+)")
"""The preemptor's uid in the message of Kueue's conditions Evicted and Preempted."""


class Verdict(StrEnum):
    """The result of comparing two decisions about one workload."""

    AGREE = "Agree"
    OTHER_FLAVORS = "OtherFlavors"
    """Both give it quota, in other flavors or for another number of pods."""
    ONLY_THEIRS = "OnlyTheirs"
    """The other scheduler gave it quota, or preempted it; ours would not have preempted."""
    ONLY_OURS = "OnlyOurs"
    """Ours would have given it quota, or preempted it; the other scheduler did not."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """Both choices about one workload.

    `unheard`: our choice agrees if this number of latest changes is left out. `aside`: if not 0, our choice agrees out
    of turn: without this number of workloads that our rules would have tried before it and had refused a moment
    earlier.
    """

    workload: str
    uid: str
    verdict: Verdict
    theirs: Choice
    ours: Choice
    unheard: int = 0
    aside: int = 0


@dataclass(slots=True)
class _Difference:
    """A decision that kueueweb would not have made, as far as is known yet. `change` is the decision's change;
    `tried_again` counts how often it was compared again."""

    comparison: Comparison
    at: float
    change: Change
    tried_again: int = 0


class Shadow:
    """Decides in parallel to another scheduler. Initially `world` equals the other scheduler's state.

    * go_on: called between cycles; a comparison that it cuts short has no result, and counts as `unfinished`.

    A difference is returned a moment later than the decision: decisions that the other scheduler made before it may be
    written after it. `conclude` returns the last ones.
    """

    def __init__(self, world: World, go_on: Callable[[], bool] = lambda: True) -> None:
        self._world = world
        self._go_on = go_on
        self._trials = Trials(world, go_on)
        self._latest: deque[Change] = deque(maxlen=_MAX_UNHEARD)
        self._wanted: dict[str, tuple[float, Choice]] = {}
        """Decisions that kueueweb would make and the other scheduler has not made, and since when."""
        self._told: dict[str, Choice] = {}
        """Decisions that kueueweb would make differently: each is reported once."""
        self._evaluated: dict[str, tuple[str, float]] = {}
        """Why a workload waits, in the other scheduler's words, and when it wrote that."""
        self._paces: deque[float] = deque(maxlen=_PACES)
        """How long, in seconds, kueueweb would have made each of the other scheduler's latest decisions."""
        self._differences: list[_Difference] = []
        self.unfinished = 0

    def take(self, key: str, workload: Workload | None, now: float) -> None:
        """Set a workload, or forget it (None), without a comparison."""
        self._trials.take(key, workload, now)

    def hear(self, key: str, workload: Workload | None, now: float) -> list[Comparison]:
        """Process the next change of a workload in the other scheduler's cluster; None if the workload has ended or is
        deleted."""
        was = self._world.workload(key)
        theirs = their_choice(was, workload)
        if theirs is None or workload is None:
            self._note(key, was, workload, now)
            return self._due(now)
        if was is None or (theirs.act is Act.RESERVE and was.holds_quota):
            self._trials.take(key, as_waiting(workload), now)
        found = self._ask(key, workload.uid, theirs, now)
        preempts = self._world.objects.is_preemptor(key)
        change = Change(key, self._world.workload(key), now, decided=True, preempts=preempts)
        self._latest.append(change)
        self._trials.take(key, workload, now)
        earlier = self._agreed_meanwhile(now) + self._due(now)
        if found and found[0].workload == key and found[0].verdict is not Verdict.AGREE:
            self._differences.append(_Difference(found.pop(0), now, change))
        if theirs.act is Act.PREEMPT:
            self._note_preemptor_of(theirs.message)
        self._trials.settle(now)
        since, wanted = self._wanted.pop(key, (now, WAITING))
        if wanted.act is theirs.act:
            self._paces.append(now - since)
        self._told.pop(key, None)
        self._evaluated.pop(key, None)
        return found + earlier

    def _note_preemptor_of(self, message: str) -> None:
        """Put the workload for which another one was preempted first in its queue, as Kueue does until it gets quota.
        Kueue writes its uid into the victim's conditions only.
        """
        preemptor = self._preemptor_in(message)
        if preemptor is not None:
            self._world.set_preemptor(preemptor.key)

    def _preemptor_in(self, message: str) -> Workload | None:
        named = _PREEMPTOR.search(message)
        return self._world.objects.workload_by_uid(named[1]) if named else None

    def rest(self, now: float) -> list[Comparison]:
        """Record that nothing has changed until now. A decision that our rules would have made for too long is a
        difference."""
        self._world.advance(now)
        choices, _ = self._trials.now(now)
        return self._missed(choices, now) + self._due(now)

    def conclude(self) -> list[Comparison]:
        """Return the differences that no later change can explain, because no further change comes."""
        found, self._differences = self._differences, []
        return [each.comparison for each in found]

    def _due(self, now: float) -> list[Comparison]:
        """Return the differences that decisions written from now on do not explain any more."""
        due = [each for each in self._differences if now - each.at > self._patience]
        self._differences = [each for each in self._differences if now - each.at <= self._patience]
        return [each.comparison for each in due]

    def _agreed_meanwhile(self, now: float) -> list[Comparison]:
        """Return the earlier decisions that our rules would have made with the later decisions already known: of the
        decisions that a scheduler makes one after the other, some are written sooner than others.
        """
        found = []
        for difference in [*self._differences]:
            since = next((n for n, each in enumerate(reversed(self._latest)) if each is difference.change), None)
            if since is None or difference.tried_again >= _MAX_AGAIN or not self._go_on():
                continue
            difference.tried_again += 1
            key, theirs = difference.comparison.workload, difference.comparison.theirs
            answer = self._trials.answer(self._question(key, theirs, difference.at, since + 1), now)
            if answer is not None:
                self._differences.remove(difference)
                found.append(_agreement(key, difference.comparison.uid, theirs, answer))
        return found

    def _note(self, key: str, was: Workload | None, workload: Workload | None, now: float) -> None:
        """Record a change that was not decided: a workload was created, ended, stopped or edited."""
        if was is workload is None or (was is not None and workload is not None and says_the_same(was, workload)):
            self._note_evaluation(key, workload, now)
            return
        if was is None or workload is None or counts_for(was) != counts_for(workload):
            self._latest.append(Change(key, was, now, frees=self._freed(was, workload)))
        self._trials.take(key, workload, now)
        self._note_evaluation(key, workload, now)
        self._trials.settle(now)

    def _freed(self, was: Workload | None, workload: Workload | None) -> frozenset[str]:
        """Return the ClusterQueues that may use the quota that a workload no longer holds."""
        if was is None or not was.holds_quota or was.admission is None:
            return frozenset()
        if workload is not None and workload.holds_quota and workload.reclaimable_pods == was.reclaimable_pods:
            return frozenset()
        return self._world.objects.queues_beside(was.admission.cluster_queue)

    def _note_evaluation(self, key: str, workload: Workload | None, now: float) -> None:
        """Record that the other scheduler wrote why a workload waits. A workload that waits for preempted workloads to
        stop comes first in its queue, although they may have been preempted for another one.
        """
        reason = refusal_of(workload)
        if not reason:
            self._evaluated.pop(key, None)
        elif self._evaluated.get(key, ("", 0.0))[0] != reason:
            self._evaluated[key] = (reason, now)
            if _FOR_VICTIMS in reason:
                self._world.set_preemptor(key)

    def _ask(self, key: str, uid: str, theirs: Choice, now: float) -> list[Comparison]:
        """Return whether kueueweb would have made the decision now, or before the latest changes."""
        self._world.advance(now)
        choices, complete = self._trials.now(now)
        missed = [found for found in self._missed(choices, now) if found.workload != key]
        if key not in choices and not complete:
            self.unfinished += 1
            return missed
        verdict = _verdict(theirs, choices.get(key, WAITING))
        if verdict is Verdict.AGREE:
            return [Comparison(key, uid, verdict, theirs, choices[key]), *missed]
        answer = self._trials.answer(self._question(key, theirs, now), now)
        if answer is not None:
            return [_agreement(key, uid, theirs, answer), *missed]
        if not self._go_on():  # it may agree as of a moment that was not tried any more
            self.unfinished += 1
            return missed
        return [Comparison(key, uid, verdict, theirs, self._explained(key, choices)), *missed]

    @property
    def _patience(self) -> float:
        return min(max(PATIENCE_SECONDS, 2 * max(self._paces, default=0.0)), MAX_PATIENCE_SECONDS)

    def _question(self, key: str, theirs: Choice, now: float, since: int = 0) -> Question:
        """Ask about a decision made `now`. `since`: the number of changes from the decision's own on, if known."""
        tried = key
        if theirs.act is Act.PREEMPT:
            preemptor = self._preemptor_in(theirs.message)
            tried = preemptor.key if preemptor is not None and not preemptor.holds_quota else ""
        changes = [*reversed(self._latest)]
        later = [*_later_than_decided(changes[: since - 1]), changes[since - 1]] if since else []
        untold = [change for change in changes[since:] if now - change.at <= self._patience]
        # A scheduler knows of the arrival, and of the end, of the workload that it decides on.
        own = next((number for number, change in enumerate(untold) if change.brings(key)), len(untold))
        agrees = partial(_agrees, theirs)
        delay = max(PATIENCE_SECONDS / 5, *self._paces) if self._paces else PATIENCE_SECONDS / 5
        return Question(key, tried, agrees, untold[:own], untold, now, delay, later)

    def _missed(self, choices: Mapping[str, Choice], now: float) -> list[Comparison]:
        """Return the decisions that our rules would have made, and that the other scheduler will not make."""
        wanted = {key: choice for key, choice in choices.items() if choice.act is not Act.WAIT}
        since = {key: at for key, (at, choice) in self._wanted.items()}
        self._wanted = {key: (since.get(key, now), choice) for key, choice in wanted.items()}
        self._told = {key: choice for key, choice in self._told.items() if key in wanted}
        found = []
        for key, (at, choice) in self._wanted.items():
            workload = self._world.workload(key)
            told = self._told.get(key)
            _, evaluated_at = self._evaluated.get(key, ("", at))
            is_refused = evaluated_at - at >= self._patience
            if workload is None or not (is_refused or now - at >= MAX_PATIENCE_SECONDS):
                continue
            if told is None or told.what != choice.what:
                self._told[key] = choice
                found.append(Comparison(key, workload.uid, Verdict.ONLY_OURS, self._left_by_them(workload), choice))
        return found

    def _left_by_them(self, workload: Workload) -> Choice:
        """Return the comparison for a moment without a decision of the other scheduler. It has the other scheduler's
        reasons; the World has ours.
        """
        if workload.holds_quota:
            return left_as_it_is(workload)
        reason, _, message = self._evaluated.get(workload.key, ("", 0.0))[0].partition(": ")
        return Choice(Act.WAIT, "", (), reason, message) if message else WAITING

    def unanswered(self, now: float) -> list[Comparison]:
        """Return the decisions that our rules make now, and that the other scheduler may still make."""
        self._world.advance(now)
        choices, _ = self._trials.now(now)
        found = []
        for key, choice in choices.items():
            workload = self._world.workload(key)
            if workload is not None and choice.act is not Act.WAIT and key not in self._told:
                found.append(Comparison(key, workload.uid, Verdict.ONLY_OURS, self._left_by_them(workload), choice))
        return found

    def _explained(self, key: str, choices: Mapping[str, Choice]) -> Choice:
        """Return our choice with its reason, if the workload waits: the words of an earlier cycle, and the workloads
        that would get quota before it."""
        ours = choices.get(key)
        workload = self._world.workload(key)
        if ours is None:
            ours = WAITING if workload is None else left_as_it_is(workload)
        first = [each for each, choice in choices.items() if choice.act is Act.RESERVE and each != key]
        if ours.act is not Act.WAIT or not first:
            return ours
        names = ", ".join(first[:_MAX_NAMED]) + (f" and {len(first) - _MAX_NAMED} more" if first[_MAX_NAMED:] else "")
        return replace(ours, message=f"{ours.message} (quota first to {names})".strip())


def _agreement(key: str, uid: str, theirs: Choice, answer: Answer) -> Comparison:
    return Comparison(key, uid, Verdict.AGREE, theirs, answer.ours, answer.unheard, answer.aside)


def _agrees(their: Choice, our: Choice) -> bool:
    return _verdict(their, our) is Verdict.AGREE


def _verdict(their: Choice, our: Choice) -> Verdict:
    """Compare a decision of the other scheduler with our choice."""
    if their.what == our.what:
        return Verdict.AGREE
    if their.act is our.act:
        return Verdict.OTHER_FLAVORS if their.act is Act.RESERVE else Verdict.AGREE
    return Verdict.ONLY_THEIRS


def _later_than_decided(changes: Sequence[Change]) -> list[Change]:
    """Leave out of some changes, the latest one first, those up to the other scheduler's first decision about each
    workload: it knew that decision before it was written."""
    decided: set[str] = set()
    found = []
    for change in reversed(changes):
        if change.key in decided or all(not each.decided for each in changes if each.key == change.key):
            found.append(change)
        elif change.decided:
            decided.add(change.key)
    return found[::-1]
