"""Tries our cycles on the state of a World, or on the state before its latest changes, and undoes them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

from scheduling.model.decisions import CycleResult
from scheduling.model.vocabulary import ConditionType
from scheduling.model.workload import Admission, Workload
from scheduling.run_until_idle import run_until_idle
from scheduling.shadow.choices import WAITING, Act, Choice, reservation
from scheduling.world import World

RETRY_SECONDS: Final = 1.0
"""How long refused workloads rest after quota became free (Kueue's `requeueBatchPeriod`)."""
Choices = dict[str, Choice]
"""Our choice for each workload that the cycles tried."""


@dataclass(frozen=True, slots=True)
class Change:
    """The state of a workload before a change; `decided` by the other scheduler itself. `preempts`: it came first in
    its ClusterQueue, because workloads were preempted for it. `frees`: the ClusterQueues that share the quota that the
    change made free."""

    key: str
    was: Workload | None
    at: float
    decided: bool = False
    preempts: bool = False
    frees: frozenset[str] = frozenset()

    def brings(self, key: str) -> bool:
        """Return whether the workload with that key arrived or lost its quota."""
        return self.key == key and (self.was is None or self.was.holds_quota)


@dataclass(frozen=True, slots=True)
class Question:
    """Would our rules make another scheduler's decision about the workload `key`?

    * tried: the workload whose evaluation led to the decision: `key`, or the preemptor of `key`; "" if it is unknown.
    * agrees: whether a choice about `key` is that decision.
    * unheard: the latest changes, the latest one first, that the scheduler may not have known when it decided.
    * untold: the latest changes, as above, that it may not have known when it evaluated other workloads before.
    * now: the time of the decision, in seconds since the epoch.
    * delay: how long, in seconds, a decision takes to be written.
    """

    key: str
    tried: str
    agrees: Callable[[Choice], bool]
    unheard: Sequence[Change]
    untold: Sequence[Change]
    now: float
    delay: float
    later: Sequence[Change] = ()
    """The decision itself and later changes: they are always left out."""
    refusals: dict[tuple[str, int], bool] = field(default_factory=dict)
    """(workload, number of changes left out) of the trials of rivals so far: whether our rules refuse it."""

    def may_come_before(self, rival_queue: str, number: int) -> bool:
        """Return whether `tried` may have been evaluated before a rival in `rival_queue` that was refused before this
        number of changes. Kueue returns refused workloads to their queue a second after quota became free, all
        together, and then tries one of them in each cycle. Quota that was free for longer is therefore offered to the
        rival first, and so is quota that became free while both rested. `tried` must have arrived a moment earlier, or
        an earlier change must have returned both, so that the rival was tried before the quota was free."""
        left_out = self.untold[:number]
        if not left_out or self.now - left_out[-1].at > RETRY_SECONDS + self.delay:
            return False
        recent = [change for change in self.untold if self.now - change.at <= 2 * RETRY_SECONDS + self.delay]
        return any(change.brings(self.tried) for change in recent) or any(
            rival_queue in change.frees for change in recent[number:]
        )


@dataclass(frozen=True, slots=True)
class Answer:
    """Our choice, if it agrees without this number of latest changes. `aside`: the number of workloads that our rules
    would have tried before it, and refused a moment earlier."""

    ours: Choice
    unheard: int
    aside: int = 0


class Trials:
    """Runs cycles of `world` and undoes them. `go_on` is called between cycles; False ends the trials."""

    def __init__(self, world: World, go_on: Callable[[], bool]) -> None:
        self._world = world
        self._go_on = go_on

    def take(self, key: str, workload: Workload | None, now: float) -> None:
        """Set a workload, or forget it (None)."""
        if workload is None:
            self._world.finish_workload(key, now)
        else:
            self._world.set_workload(workload, now)

    def now(self, now: float) -> tuple[Choices, bool]:
        """Return the present choices of our cycles for each workload, and whether the cycles became idle. Everything
        is undone."""
        found: Choices = {}
        point = self._world.savepoint()
        for result in cycles_until_rest(self._world, now):
            self._note(result, found)
            if not self._go_on():
                self._world.undo(point)
                return found, False
        self._world.undo(point)
        return found, True

    def settle(self, now: float) -> None:
        """Run our cycles up to the first one that decides something, and undo that one. The queues then remember that
        their waiting workloads were tried, as the other scheduler's queues do."""
        point = self._world.savepoint()
        for result in cycles_until_rest(self._world, now):
            if result.decided or not self._go_on():
                break
            self._world.commit(point)
            point = self._world.savepoint()
        self._world.undo(point)

    def answer(self, question: Question, now: float) -> Answer | None:
        """Return our choice if there is a moment at which our rules make the decision; otherwise None.

        A choice also counts if our rules would try other workloads first that they refused a moment earlier, where
        that moment and the order of evaluations allow for it (`Question.may_come_before`).
        """
        possible: list[tuple[Sequence[Change], frozenset[str]]] = []
        for left_out in _moments(question.unheard):
            if not self._go_on():
                return None
            ours, rivals = self._beside(question, left_out, (), now)
            if question.agrees(ours):
                return Answer(ours, len(left_out))
            possible.append((left_out, rivals))
        answers = (self._in_turn(question, left_out, rivals, now) for left_out, rivals in possible)
        return next((answer for answer in answers if answer is not None), None)

    def _in_turn(
        self, question: Question, left_out: Sequence[Change], rivals: frozenset[str], now: float
    ) -> Answer | None:
        """Return our choice, if it agrees once those workloads before it are set aside that were refused a moment
        earlier."""
        if not self._go_on():
            return None
        if question.tried and not question.agrees(self._alone(question, question.tried, left_out, now)[0]):
            return None
        aside: dict[str, int] = {}
        while self._go_on():
            refused = {rival: self._refused_without(question, rival, len(left_out), now) for rival in rivals}
            found = {rival: number for rival, number in refused.items() if number is not None}
            if not found:
                return None
            aside |= found
            ours, rivals = self._beside(question, left_out, aside, now)
            if question.agrees(ours):
                return Answer(ours, max((len(left_out), *aside.values())), len(aside))
        return None

    def _refused_without(self, question: Question, rival: str, least: int, now: float) -> int | None:
        """Return the least number of latest changes, `least` or more, without which our rules refused the workload.

        Return None if there is none: a workload that is tried in each cycle has no such moment.
        """
        queue = self._world.objects.cluster_queue_of(rival)
        if not queue:
            return None
        for number in range(max(least, 1), len(question.untold) + 1):
            if not question.may_come_before(queue, number):
                continue
            known = question.refusals.get((rival, number))
            if known is None:
                known = self._lets_rest(question, rival, question.untold[:number], now)
                question.refusals[rival, number] = known
            if known:
                return number
            if not self._go_on():
                return None
        return None

    def _lets_rest(self, question: Question, rival: str, left_out: Sequence[Change], now: float) -> bool:
        """Return whether our rules refuse a workload until quota becomes free.

        The first workload of a StrictFIFO queue does not rest, and neither does one that waits for preempted workloads
        to stop: each cycle tries them again.
        """
        with self._only(question, rival, left_out, now):
            _, rivals = self._run(rival, rival, now)
            return rival not in rivals

    def _alone(
        self, question: Question, tried: str, left_out: Sequence[Change], now: float
    ) -> tuple[Choice, frozenset[str]]:
        """Return our choice, and the workloads that prevent another one, if only one workload waited."""
        with self._only(question, tried, left_out, now):
            return self._run(question.key, tried, now)

    @contextmanager
    def _only(self, question: Question, tried: str, left_out: Sequence[Change], now: float) -> Iterator[None]:
        """A moment at which only one workload waits."""
        point = self._world.savepoint()
        self._leave_out((*question.later, *left_out), now)
        for name in self._world.cluster_queue_names():
            for waiting in self._world.objects.pending_keys(name):
                if waiting != tried:
                    self._world.delete_workload(waiting)
        yield
        self._world.undo(point)

    def _beside(
        self, question: Question, left_out: Sequence[Change], aside: Iterable[str], now: float
    ) -> tuple[Choice, frozenset[str]]:
        """Return our choice, and the other workloads that prevent it, without those set aside."""
        point = self._world.savepoint()
        self._leave_out((*question.later, *left_out), now)
        for key in aside:
            self._world.delete_workload(key)
        ours, chosen = self._run(question.key, question.tried, now)
        self._world.undo(point)
        return ours, chosen - {question.key, question.tried}

    def _leave_out(self, changes: Sequence[Change], now: float) -> None:
        for change in changes:
            self.take(change.key, change.was, now)
            if change.preempts:
                self._world.set_preemptor(change.key)

    def _run(self, key: str, tried: str, now: float) -> tuple[Choice, frozenset[str]]:
        """Try a workload as if it had just come, until there is a choice about `key`. Return the choice, and the
        workloads that prevent another one: they get quota, preempt others, or stay first in the queue of `tried`.
        """
        workload = self._world.workload(tried)
        if workload is not None and not workload.holds_quota:
            preempts = self._world.objects.is_preemptor(tried)
            self._world.delete_workload(tried)
            self._world.set_workload(workload, now)
            if preempts:
                self._world.set_preemptor(tried)
        choices: Choices = {}
        preemptors: set[str] = set()
        for result in cycles_until_rest(self._world, now):
            self._note(result, choices)
            preemptors.update(victim.preemptor for victim in result.preemptions)
            if choices.get(key, WAITING).act is not Act.WAIT or not self._go_on():
                break
        reserved = {each for each, choice in choices.items() if choice.act is Act.RESERVE}
        first = self._world.objects.head_of(self._world.objects.cluster_queue_of(tried))
        return choices.get(key, WAITING), frozenset(reserved | preemptors | ({first} if first else set()))

    def _note(self, result: CycleResult, found: Choices) -> None:
        """Preempted workloads do not stop meanwhile: the next comparison is about the workload that gets the quota."""
        for said in result.outcomes:
            if found.get(said.workload, WAITING).act is Act.WAIT:
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
        return reservation(cluster_queue, admission.pod_set_assignments, "QuotaReserved", message)


def _moments(changes: Sequence[Change]) -> Iterator[Sequence[Change]]:
    """Yield the sets of changes to leave out: no change, the latest change, the latest two changes, and so on.

    Each larger set is also yielded without the other scheduler's own decisions, which it knows before they are written.
    """
    yield ()
    decided: set[str] = set()
    for number, change in enumerate(changes, 1):
        yield changes[:number]
        if change.decided:
            decided.add(change.key)
        elif decided and change.key not in decided:
            yield [each for each in changes[:number] if each.key not in decided]


def cycles_until_rest(world: World, now: float) -> Iterator[CycleResult]:
    """Run cycles until a whole run of them changes nothing. A run ends at a workload that has flavors left to try; the
    next run tries them, as a scheduler that never stops would."""
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
