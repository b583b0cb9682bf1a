"""Compares the decisions of our rules with those of another scheduler that runs the cluster, decision by decision.

A World follows the other scheduler's workloads, change by change, in the order in which its cluster had them. A change
that is a decision (quota given, or a preemption) is held back for a moment: our cycles run first, and are undone. So
each comparison starts from the real state, one difference causes no later ones, and the time of the comparison does not
matter.

A scheduler decides on the changes that it has heard so far, and its decision is written a moment later. If our decision
differs, the comparison is repeated without the latest changes, leaving out one more each time; and, as a scheduler
knows its own decisions before they are written, without only those changes that it did not decide. How long a moment is
follows from how long its latest decisions took.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from scheduling.model.decisions import CycleResult
from scheduling.model.vocabulary import ConditionType, EvictionReason
from scheduling.model.workload import Admission, PodSetAssignment, Workload
from scheduling.run_until_idle import run_until_idle
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
_NOT_EVALUATED: Final = "PendingEvaluation"
"""Kueue's reason of QuotaReserved from an eviction to the next evaluation."""
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


class Act(StrEnum):
    RESERVE = "Reserve"
    PREEMPT = "Preempt"
    WAIT = "Wait"


@dataclass(frozen=True, slots=True)
class Choice:
    """The decision of one scheduler about one workload, and its reason."""

    act: Act
    cluster_queue: str = ""
    flavors: tuple[tuple[str, int, tuple[tuple[str, str], ...]], ...] = ()
    """(pod set, count, (resource, flavor) ...) of a reservation."""
    reason: str = ""
    message: str = ""

    @property
    def what(self) -> tuple[object, ...]:
        """The decision without its message."""
        return self.act, self.cluster_queue, self.flavors


@dataclass(frozen=True, slots=True)
class Comparison:
    """Both choices about one workload. `unheard`: our choice agrees if this number of latest changes is left out."""

    workload: str
    uid: str
    verdict: Verdict
    theirs: Choice
    ours: Choice
    unheard: int = 0


@dataclass(frozen=True, slots=True)
class _Change:
    """The state of a workload before a change; `decided` by the other scheduler itself. `preempts`: it came first in
    its ClusterQueue, because workloads were preempted for it."""

    key: str
    was: Workload | None
    at: float
    decided: bool = False
    preempts: bool = False


_WAITING: Final = Choice(Act.WAIT, message="Not evaluated yet.")
_Choices = dict[str, Choice]


class Shadow:
    """Decides in parallel to another scheduler. Initially `world` equals the other scheduler's state.

    * go_on: called between cycles; a comparison that it cuts short has no result, and counts as `unfinished`.
    """

    def __init__(self, world: World, go_on: Callable[[], bool] = lambda: True) -> None:
        self._world = world
        self._go_on = go_on
        self._latest: deque[_Change] = deque(maxlen=_MAX_UNHEARD)
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
        if workload is None:
            self._world.finish_workload(key, now)
        else:
            self._world.set_workload(workload, now)

    def hear(self, key: str, workload: Workload | None, now: float) -> list[Comparison]:
        """Process the next change of a workload in the other scheduler's cluster; None: the workload has ended or is
        deleted."""
        was = self._world.workload(key)
        theirs = _their_choice(was, workload)
        if theirs is None or workload is None:
            self._note(key, was, workload, now)
            return []
        if was is None or (theirs.act is Act.RESERVE and was.holds_quota):
            self.take(key, _waiting(workload), now)
        found = self._ask(key, workload.uid, theirs, now)
        preempts = self._world.is_preemptor(key)
        self._latest.append(_Change(key, self._world.workload(key), now, decided=True, preempts=preempts))
        self.take(key, workload, now)
        if theirs.act is Act.PREEMPT:
            self._note_preemptor_of(theirs.message)
        self._settle(now)
        since, wanted = self._wanted.pop(key, (now, _WAITING))
        if wanted.act is theirs.act:
            self._paces.append(now - since)
        self._told.pop(key, None)
        self._evaluated.pop(key, None)
        return found

    def _note_preemptor_of(self, message: str) -> None:
        """Put the workload for which another one was preempted first in its queue, as Kueue does until it gets quota.
        Kueue writes its uid into the victim's conditions only.
        """
        named = _PREEMPTOR.search(message)
        preemptor = self._world.workload_by_uid(named[1]) if named else None
        if preemptor is not None:
            self._world.set_preemptor(preemptor.key)

    def rest(self, now: float) -> list[Comparison]:
        """Record that there was no change until now: a decision that our rules would have made for too long is a
        difference.
        """
        self._world.advance(now)
        choices, _ = self._our_choices(now)
        return self._missed(choices, now)

    def _note(self, key: str, was: Workload | None, workload: Workload | None, now: float) -> None:
        """Record a change that was not decided: a workload was created, ended, stopped or edited."""
        if was is workload is None or (was is not None and workload is not None and _says_the_same(was, workload)):
            self._note_evaluation(key, workload, now)
            return
        if was is None or workload is None or _counts_for(was) != _counts_for(workload):
            self._latest.append(_Change(key, was, now))
        self.take(key, workload, now)
        self._note_evaluation(key, workload, now)
        self._settle(now)

    def _note_evaluation(self, key: str, workload: Workload | None, now: float) -> None:
        """Record that the other scheduler wrote why a workload waits. A workload that waits for preempted workloads to
        stop comes first in its queue, although they may have been preempted for another one.
        """
        reason = _refusal(workload)
        if not reason:
            self._evaluated.pop(key, None)
        elif self._evaluated.get(key, ("", 0.0))[0] != reason:
            self._evaluated[key] = (reason, now)
            if _FOR_VICTIMS in reason:
                self._world.set_preemptor(key)

    def _ask(self, key: str, uid: str, theirs: Choice, now: float) -> list[Comparison]:
        """Return whether kueueweb would have made the decision now, or before the latest changes."""
        self._world.advance(now)
        choices, complete = self._our_choices(now)
        missed = [found for found in self._missed(choices, now) if found.workload != key]
        if key not in choices and not complete:
            self.unfinished += 1
            return missed
        verdict = _verdict(theirs, choices.get(key, _WAITING))
        if verdict is Verdict.AGREE:
            return [*missed, Comparison(key, uid, verdict, theirs, choices[key])]
        for unheard, ours in self._earlier(key, now):
            if _verdict(theirs, ours) is Verdict.AGREE:
                return [*missed, Comparison(key, uid, Verdict.AGREE, theirs, ours, unheard)]
        if not self._go_on():  # it may agree as of a moment that was not tried any more
            self.unfinished += 1
            return missed
        return [*missed, Comparison(key, uid, verdict, theirs, self._explained(key, choices))]

    @property
    def _patience(self) -> float:
        return min(max(PATIENCE_SECONDS, 2 * max(self._paces, default=0.0)), MAX_PATIENCE_SECONDS)

    def _earlier(self, key: str, now: float) -> Iterator[tuple[int, Choice]]:
        """Our choice about the workload if it were tried again without the latest changes: none, one, two ...; and
        without only those changes that the other scheduler did not decide itself.
        """
        if self._latest and now - self._latest[-1].at <= self._patience:
            yield from self._tried_again(0, (), key, now)
        else:
            yield 0, self._without((), key, now)
        unheard: list[_Change] = []
        decided: set[str] = set()
        for change in reversed(self._latest):
            is_asked = change.key == key and (change.was is None or change.was.holds_quota)
            if is_asked or now - change.at > self._patience or not self._go_on():
                return
            unheard.append(change)
            yield from self._tried_again(len(unheard), unheard, key, now)
            if change.decided:
                decided.add(change.key)
            elif decided and change.key not in decided:  # the scheduler knows each workload that it decided on
                others = [each for each in unheard if each.key not in decided]
                yield from self._tried_again(len(others), others, key, now)

    def _tried_again(
        self, number: int, unheard: Sequence[_Change], key: str, now: float
    ) -> Iterator[tuple[int, Choice]]:
        """Our choice without some changes; and before those workloads return to their queues that freed quota may
        make admissible."""
        yield number, self._without(unheard, key, now)
        yield number, self._without(unheard, key, now, are_woken=False)

    def _without(self, unheard: Sequence[_Change], key: str, now: float, *, are_woken: bool = True) -> Choice:
        point = self._world.savepoint()
        for change in unheard:
            self.take(change.key, change.was, now)
            if change.preempts:
                self._world.set_preemptor(change.key)
        workload = self._world.workload(key)
        if workload is not None and not workload.holds_quota:
            preempts = self._world.is_preemptor(key)
            self._world.delete_workload(key)
            self._world.set_workload(workload, now)
            if preempts:
                self._world.set_preemptor(key)
        if not are_woken:
            self._world.delay_wakes()
        choices: _Choices = {}
        for result in cycles_until_rest(self._world, now):
            self._note_choices(result, choices)
            if choices.get(key, _WAITING).act is not Act.WAIT or not self._go_on():
                break
        self._world.undo(point)
        return choices.get(key, _WAITING)

    def _our_choices(self, now: float) -> tuple[_Choices, bool]:
        """Return the present choices of our cycles for each workload, and whether the cycles became idle. Everything
        is undone."""
        found: _Choices = {}
        point = self._world.savepoint()
        for result in cycles_until_rest(self._world, now):
            self._note_choices(result, found)
            if not self._go_on():
                break
        else:
            self._world.undo(point)
            return found, True
        self._world.undo(point)
        return found, False

    def _settle(self, now: float) -> None:
        """Run our cycles up to the first one that decides something, which is undone: the queues remember that their
        waiting workloads were tried, as the other scheduler's queues do.
        """
        point = self._world.savepoint()
        for result in cycles_until_rest(self._world, now):
            if result.decided or not self._go_on():
                break
            self._world.commit(point)
            point = self._world.savepoint()
        self._world.undo(point)

    def _note_choices(self, result: CycleResult, found: _Choices) -> None:
        """Preempted workloads do not stop meanwhile: the next comparison is about the workload that gets the quota."""
        for said in result.outcomes:
            if found.get(said.workload, _WAITING).act is Act.WAIT:
                found[said.workload] = Choice(Act.WAIT, said.cluster_queue, (), str(said.reason), said.message)
        for admission in result.admissions:
            if not admission.second_pass:
                found[admission.workload] = self._reserved(admission.workload, admission.cluster_queue)
        for victim in result.preemptions:
            choice = Choice(Act.PREEMPT, victim.cluster_queue, (), str(victim.reason), victim.message)
            found.setdefault(victim.workload, choice)

    def _reserved(self, key: str, cluster_queue: str) -> Choice:
        workload = self._world.workload(key)
        condition = workload.condition(ConditionType.QUOTA_RESERVED) if workload else None
        admission = (workload.admission if workload else None) or Admission(cluster_queue, ())
        message = condition.message if condition else ""
        return _reservation(cluster_queue, admission.pod_set_assignments, "QuotaReserved", message)

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
            return _left(workload)
        reason, _, message = self._evaluated.get(workload.key, ("", 0.0))[0].partition(": ")
        return Choice(Act.WAIT, "", (), reason, message) if message else _WAITING

    def unanswered(self, now: float) -> list[Comparison]:
        """Return the decisions that our rules make now, and that the other scheduler may still make."""
        self._world.advance(now)
        choices, _ = self._our_choices(now)
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
            ours = _WAITING if workload is None else _left(workload)
        first = [each for each, choice in choices.items() if choice.act is Act.RESERVE and each != key]
        if ours.act is not Act.WAIT or not first:
            return ours
        names = ", ".join(first[:_MAX_NAMED]) + (f" and {len(first) - _MAX_NAMED} more" if first[_MAX_NAMED:] else "")
        return replace(ours, message=f"{ours.message} (quota first to {names})".strip())


def cycles_until_rest(world: World, now: float) -> Iterator[CycleResult]:
    """Run cycles until a whole run of them changes nothing. One run ends at a workload that has flavors left to try;
    the next run tries them, as a scheduler that never stops does.
    """
    waiting: set[str] = set()
    while True:
        tried: set[str] = set()
        for result in run_until_idle(world, now):
            yield result
            tried.update(said.workload for said in result.outcomes)
            if result.decided:
                waiting.clear()
        if tried <= waiting:
            return
        waiting |= tried


def _counts_for(workload: Workload) -> tuple[object, ...]:
    """Return the fields of a workload that affect decisions about other workloads: the quota it holds or requests,
    and its queue."""
    asked = workload.queue_name, workload.pod_sets, workload.priority, workload.active, workload.requeue_state
    held = workload.admission, workload.holds_quota, workload.is_true(ConditionType.EVICTED)
    is_complete = not workload.is_true(ConditionType.WAITING_FOR_REPLACEMENT_PODS)
    return (*asked, *held, is_complete, workload.reclaimable_pods)


def _says_the_same(was: Workload, is_now: Workload) -> bool:
    """Return whether only the reason for waiting changed. Reasons are worded by each scheduler, so they are not
    compared."""
    if was.holds_quota or is_now.holds_quota:
        return was == is_now
    return _without_reasons(was) == _without_reasons(is_now)


def _without_reasons(workload: Workload) -> Workload:
    kept = dict(workload.conditions)
    kept.pop(ConditionType.QUOTA_RESERVED, None)
    return replace(workload, conditions=kept)


def _their_choice(was: Workload | None, now_is: Workload | None) -> Choice | None:
    """Return the other scheduler's decision about a workload; None if it made none or the workload has finished."""
    if now_is is None:
        return None
    condition = now_is.condition(ConditionType.QUOTA_RESERVED)
    if now_is.holds_quota and now_is.admission is not None and not now_is.is_true(ConditionType.EVICTED):
        if was is not None and was.holds_quota and _since(was) == _since(now_is):
            return None
        reason, message = (str(condition.reason), condition.message) if condition else ("", "")
        return _reservation(now_is.admission.cluster_queue, now_is.admission.pod_set_assignments, reason, message)
    evicted = now_is.condition(ConditionType.EVICTED)
    held = was is not None and was.holds_quota and not was.is_true(ConditionType.EVICTED)
    if held and evicted is not None and evicted.reason == EvictionReason.PREEMPTED:
        preempted = now_is.condition(ConditionType.PREEMPTED)
        queue = was.admission.cluster_queue if was is not None and was.admission else ""
        return Choice(Act.PREEMPT, queue, (), str(preempted.reason) if preempted else "", evicted.message)
    return None


def _refusal(workload: Workload | None) -> str:
    """Return why a workload waits, as the other scheduler wrote it; empty if it did not evaluate the workload since the
    last eviction."""
    condition = workload.condition(ConditionType.QUOTA_RESERVED) if workload is not None else None
    if workload is None or condition is None or workload.holds_quota or condition.reason == _NOT_EVALUATED:
        return ""
    return f"{condition.reason}: {condition.message}"


def _since(workload: Workload) -> float:
    condition = workload.condition(ConditionType.QUOTA_RESERVED)
    return condition.last_transition_time if condition else 0.0


def _waiting(workload: Workload) -> Workload:
    """Return a workload that got quota in the state in which it waited before."""
    return replace(workload, admission=None, placement=None, conditions={}, admission_checks=())


def _reservation(queue: str, pod_sets: tuple[PodSetAssignment, ...], reason: str, message: str) -> Choice:
    flavors = tuple(sorted((each.name, each.count, tuple(sorted(each.flavors.items()))) for each in pod_sets))
    return Choice(Act.RESERVE, queue, flavors, reason, message)


def _left(workload: Workload) -> Choice:
    """Return the choice that follows when a scheduler made no decision: the workload stays in its state."""
    if workload.holds_quota and workload.admission is not None:
        given = workload.admission.pod_set_assignments
        return _reservation(workload.admission.cluster_queue, given, "", "Keeps its quota.")
    condition = workload.condition(ConditionType.QUOTA_RESERVED)
    return Choice(Act.WAIT, "", (), str(condition.reason), condition.message) if condition else _WAITING


def _verdict(their: Choice, our: Choice) -> Verdict:
    """Compare a decision of the other scheduler with our choice."""
    if their.what == our.what:
        return Verdict.AGREE
    if their.act is our.act:
        return Verdict.OTHER_FLAVORS if their.act is Act.RESERVE else Verdict.AGREE
    return Verdict.ONLY_THEIRS
