"""Compares the decisions of our rules with those of another scheduler that runs the cluster, decision by decision.

A World follows the other scheduler's workloads, change by change, in the order in which its cluster had them. A change
that is a decision (quota given, or a preemption) is held back for a moment: our cycles run first, and are undone. So
each comparison starts from the real state, one difference causes no later ones, and the time of the comparison does not
matter.

A scheduler decides on the changes that it has heard so far, and its decision is written a moment later. If our decision
differs, the comparison is repeated without the latest changes, leaving out one more each time; and, as a scheduler
knows its own decisions before they are written, without only those changes that it did not decide. A workload that our
rules prefer does not count if they refuse it a moment earlier: Kueue tries it again once a second, and one workload of
each queue at a time. How long a moment is follows from how long its latest decisions took.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
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
from scheduling.shadow.trials import Change, Question, Trials
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
    """Both choices about one workload. `unheard`: our choice agrees if this number of latest changes is left out."""

    workload: str
    uid: str
    verdict: Verdict
    theirs: Choice
    ours: Choice
    unheard: int = 0


class Shadow:
    """Decides in parallel to another scheduler. Initially `world` equals the other scheduler's state.

    * go_on: called between cycles; a comparison that it cuts short has no result, and counts as `unfinished`.
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
        self.unfinished = 0

    def take(self, key: str, workload: Workload | None, now: float) -> None:
        """Set a workload, or forget it (None), without a comparison."""
        self._trials.take(key, workload, now)

    def hear(self, key: str, workload: Workload | None, now: float) -> list[Comparison]:
        """Process the next change of a workload in the other scheduler's cluster; None: the workload has ended or is
        deleted."""
        was = self._world.workload(key)
        theirs = their_choice(was, workload)
        if theirs is None or workload is None:
            self._note(key, was, workload, now)
            return []
        if was is None or (theirs.act is Act.RESERVE and was.holds_quota):
            self._trials.take(key, as_waiting(workload), now)
        found = self._ask(key, workload.uid, theirs, now)
        preempts = self._world.is_preemptor(key)
        self._latest.append(Change(key, self._world.workload(key), now, decided=True, preempts=preempts))
        self._trials.take(key, workload, now)
        if theirs.act is Act.PREEMPT:
            self._note_preemptor_of(theirs.message)
        self._trials.settle(now)
        since, wanted = self._wanted.pop(key, (now, WAITING))
        if wanted.act is theirs.act:
            self._paces.append(now - since)
        self._told.pop(key, None)
        self._evaluated.pop(key, None)
        return found

    def _note_preemptor_of(self, message: str) -> None:
        """Put the workload for which another one was preempted first in its queue, as Kueue does until it gets quota.
        Kueue writes its uid into the victim's conditions only.
        """
        preemptor = self._preemptor_in(message)
        if preemptor is not None:
            self._world.set_preemptor(preemptor.key)

    def _preemptor_in(self, message: str) -> Workload | None:
        named = _PREEMPTOR.search(message)
        return self._world.workload_by_uid(named[1]) if named else None

    def rest(self, now: float) -> list[Comparison]:
        """Record that there was no change until now: a decision that our rules would have made for too long is a
        difference.
        """
        self._world.advance(now)
        choices, _ = self._trials.now(now)
        return self._missed(choices, now)

    def _note(self, key: str, was: Workload | None, workload: Workload | None, now: float) -> None:
        """Record a change that was not decided: a workload was created, ended, stopped or edited."""
        if was is workload is None or (was is not None and workload is not None and says_the_same(was, workload)):
            self._note_evaluation(key, workload, now)
            return
        if was is None or workload is None or counts_for(was) != counts_for(workload):
            self._latest.append(Change(key, was, now))
        self._trials.take(key, workload, now)
        self._note_evaluation(key, workload, now)
        self._trials.settle(now)

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
            return [*missed, Comparison(key, uid, verdict, theirs, choices[key])]
        answer = self._trials.answer(self._question(key, theirs, now), now)
        if answer is not None:
            unheard, ours = answer
            return [*missed, Comparison(key, uid, Verdict.AGREE, theirs, ours, unheard)]
        if not self._go_on():  # it may agree as of a moment that was not tried any more
            self.unfinished += 1
            return missed
        return [*missed, Comparison(key, uid, verdict, theirs, self._explained(key, choices))]

    @property
    def _patience(self) -> float:
        return min(max(PATIENCE_SECONDS, 2 * max(self._paces, default=0.0)), MAX_PATIENCE_SECONDS)

    def _question(self, key: str, theirs: Choice, now: float) -> Question:
        tried = key
        if theirs.act is Act.PREEMPT:
            preemptor = self._preemptor_in(theirs.message)
            tried = preemptor.key if preemptor is not None and not preemptor.holds_quota else ""
        untold = [change for change in reversed(self._latest) if now - change.at <= self._patience]
        # A scheduler knows of the arrival, and of the end, of the workload that it decides on.
        own = next((number for number, change in enumerate(untold) if change.brings(key)), len(untold))
        has_come = any(change.brings(tried) for change in untold)
        return Question(
            key, tried, lambda ours: _verdict(theirs, ours) is Verdict.AGREE, untold[:own], untold, has_come
        )

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
        """Our choice with its reason, if the workload waits: the words of an earlier cycle, and the workloads that
        would get quota before it.
        """
        ours = choices.get(key)
        workload = self._world.workload(key)
        if ours is None:
            ours = WAITING if workload is None else left_as_it_is(workload)
        first = [each for each, choice in choices.items() if choice.act is Act.RESERVE and each != key]
        if ours.act is not Act.WAIT or not first:
            return ours
        names = ", ".join(first[:_MAX_NAMED]) + (f" and {len(first) - _MAX_NAMED} more" if first[_MAX_NAMED:] else "")
        return replace(ours, message=f"{ours.message} (quota first to {names})".strip())


def _verdict(their: Choice, our: Choice) -> Verdict:
    """Compare a decision of the other scheduler with our choice."""
    if their.what == our.what:
        return Verdict.AGREE
    if their.act is our.act:
        return Verdict.OTHER_FLAVORS if their.act is Act.RESERVE else Verdict.AGREE
    return Verdict.ONLY_THEIRS
