"""What our rules decide where another scheduler has decided, beside what it did.

A World of our own follows the one that repeats what the other scheduler did. At each comparison it hears what has
changed since the last one but the decisions, our cycles decide, and then it takes over what the other one made of it.
So each comparison starts from what is, and one difference makes no later ones; and who waits keeps what its queue
remembers of it (the flavors that it has tried), as in the other scheduler.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from scheduling.model.vocabulary import ConditionType, EvictionReason
from scheduling.model.workload import Admission, PodSetAssignment, Workload
from scheduling.run_until_idle import run_until_idle
from scheduling.world import World


class Verdict(StrEnum):
    """How two decisions about one workload compare."""

    AGREE = "Agree"
    OTHER_FLAVORS = "OtherFlavors"
    """Both give it quota, of other flavors or for another number of pods."""
    ONLY_THEIRS = "OnlyTheirs"
    """The other scheduler gave it quota, or preempted it; ours would not have."""
    ONLY_OURS = "OnlyOurs"
    """Ours would have given it quota, or preempted it; the other scheduler did not."""


class Act(StrEnum):
    RESERVE = "Reserve"
    PREEMPT = "Preempt"
    WAIT = "Wait"


@dataclass(frozen=True, slots=True)
class Choice:
    """What a scheduler made of one workload, and why."""

    act: Act
    cluster_queue: str = ""
    flavors: tuple[tuple[str, int, tuple[tuple[str, str], ...]], ...] = ()
    """(pod set, count, (resource, flavor) ...) of a reservation."""
    reason: str = ""
    message: str = ""

    @property
    def what(self) -> tuple[object, ...]:
        """What was decided, without the words."""
        return self.act, self.cluster_queue, self.flavors


@dataclass(frozen=True, slots=True)
class Comparison:
    """Both choices about one workload."""

    workload: str
    uid: str
    verdict: Verdict
    theirs: Choice
    ours: Choice


@dataclass(frozen=True, slots=True)
class ShadowResult:
    """`complete` is false where the time was over before our cycles came to rest: what they had not come to is left
    out of the comparisons."""

    comparisons: tuple[Comparison, ...]
    complete: bool


class Shadow:
    """Decides beside another scheduler. `world` is as that one's was when this began."""

    def __init__(self, world: World) -> None:
        self._world = world

    def compare(
        self,
        mirrored: World,
        before: Mapping[str, Workload | None],
        now: float,
        go_on: Callable[[], bool] = lambda: True,
    ) -> ShadowResult:
        """Compare what became of workloads since `before` (None: it was not there) with what our cycles make of them.

        `mirrored` is what the other scheduler made of it. `go_on` is asked between cycles.
        """
        theirs = {key: choice for key, was in before.items() if (choice := _their_choice(was, mirrored.workload(key)))}
        self._hear(mirrored, before, theirs, now)
        ours, complete = _our_choices(self._world, now, go_on)
        found = tuple(_compared(mirrored, theirs, ours, complete))
        decided = theirs.keys() | {key for key, choice in ours.items() if choice.act is not Act.WAIT}
        for key in sorted(decided):
            self._take_over(mirrored.workload(key), key, now)
        return ShadowResult(found, complete)

    def _hear(
        self, mirrored: World, before: Mapping[str, Workload | None], theirs: Mapping[str, Choice], now: float
    ) -> None:
        """What has changed but was not decided: workloads that came, ended or were edited."""
        changed = [(key, was, mirrored.workload(key)) for key, was in before.items()]
        for key, _, is_now in changed:
            if is_now is None:
                self._world.finish_workload(key, now)
        there = [(was, is_now) for _, was, is_now in changed if is_now is not None]
        for was, is_now in sorted(there, key=lambda pair: (pair[1].created_at, pair[1].key)):
            decided = theirs.get(is_now.key)
            known = self._world.workload(is_now.key)
            if decided is None:
                if known is None or was is None or not _says_the_same(was, is_now):
                    self._world.set_workload(is_now, now)
            elif decided.act is Act.RESERVE and (known is None or known.holds_quota):
                self._world.set_workload(_waiting(was, is_now), now)

    def _take_over(self, theirs: Workload | None, key: str, now: float) -> None:
        if theirs is None:
            self._world.finish_workload(key, now)
        elif self._world.workload(key) != theirs:
            self._world.set_workload(theirs, now)


def _says_the_same(was: Workload, is_now: Workload) -> bool:
    """Whether only the reasons changed for which a workload waits: they are the other scheduler's words."""
    if was.holds_quota or is_now.holds_quota:
        return False
    return _without_reasons(was) == _without_reasons(is_now)


def _without_reasons(workload: Workload) -> Workload:
    kept = dict(workload.conditions)
    kept.pop(ConditionType.QUOTA_RESERVED, None)
    return replace(workload, conditions=kept)


def _their_choice(was: Workload | None, now_is: Workload | None) -> Choice | None:
    """What the other scheduler decided about a workload; None where it decided nothing, or it has ended since."""
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


def _since(workload: Workload) -> float:
    condition = workload.condition(ConditionType.QUOTA_RESERVED)
    return condition.last_transition_time if condition else 0.0


def _waiting(was: Workload | None, is_now: Workload) -> Workload:
    """A workload that got quota, as it waited before that."""
    before = was if was is not None and not was.holds_quota else None
    return replace(
        is_now,
        admission=None,
        placement=None,
        conditions=before.conditions if before else {},
        requeue_state=before.requeue_state if before else None,
        admission_checks=before.admission_checks if before else (),
    )


def _our_choices(world: World, now: float, go_on: Callable[[], bool]) -> tuple[dict[str, Choice], bool]:
    """What our cycles make of each workload. A preempted workload has stopped by the next cycle."""
    found: dict[str, Choice] = {}
    for result in run_until_idle(world, now):
        for said in result.outcomes:
            if found.get(said.workload, _WAITING).act is Act.WAIT:
                found[said.workload] = Choice(Act.WAIT, said.cluster_queue, (), str(said.reason), said.message)
        for admission in result.admissions:
            if not admission.second_pass:
                reserved = world.workload(admission.workload)
                admitted = reserved.admission if reserved else None
                pod_sets = (admitted or Admission(admission.cluster_queue, admission.pod_sets)).pod_set_assignments
                message = admission.message
                found[admission.workload] = _reservation(admission.cluster_queue, pod_sets, "QuotaReserved", message)
        for victim in result.preemptions:
            held_before = found.pop(victim.workload, _WAITING).act is not Act.RESERVE
            if held_before:
                choice = Choice(Act.PREEMPT, victim.cluster_queue, (), str(victim.reason), victim.message)
                found[victim.workload] = choice
        stopped = [each.workload for each in result.preemptions] + [each.workload for each in result.evictions]
        for key in stopped:
            world.release_workload(key, now)
        if not go_on():
            return found, False
    return found, True


_WAITING = Choice(Act.WAIT)


def _reservation(queue: str, pod_sets: tuple[PodSetAssignment, ...], reason: str, message: str) -> Choice:
    flavors = tuple(sorted((each.name, each.count, tuple(sorted(each.flavors.items()))) for each in pod_sets))
    return Choice(Act.RESERVE, queue, flavors, reason, message)


def _compared(
    world: World, theirs: Mapping[str, Choice], ours: Mapping[str, Choice], complete: bool
) -> Iterator[Comparison]:
    for key in sorted(theirs.keys() | ours.keys()):
        workload = world.workload(key)
        if workload is None:
            continue
        their, our = theirs.get(key), ours.get(key)
        if our is None and not complete:
            continue
        if our is None:
            our = _WAITING if their is None or their.act is Act.RESERVE else Choice(Act.RESERVE)
        if their is None:
            their = _left(workload)
        verdict = _verdict(their, our)
        if verdict is not None:
            yield Comparison(key, workload.uid, verdict, their, our)


def _left(workload: Workload) -> Choice:
    """What it means that the other scheduler decided nothing: it left the workload where it was."""
    if workload.holds_quota and workload.admission is not None:
        return _reservation(workload.admission.cluster_queue, workload.admission.pod_set_assignments, "", "")
    condition = workload.condition(ConditionType.QUOTA_RESERVED)
    return Choice(Act.WAIT, "", (), str(condition.reason), condition.message) if condition else _WAITING


def _verdict(their: Choice, our: Choice) -> Verdict | None:
    """None where neither decided anything."""
    if their.act is our.act is Act.WAIT:
        return None
    if their.what == our.what:
        return Verdict.AGREE
    if their.act is our.act:
        return Verdict.OTHER_FLAVORS if their.act is Act.RESERVE else Verdict.AGREE
    moved_by_us = {(Act.WAIT, Act.RESERVE), (Act.RESERVE, Act.PREEMPT)}
    return Verdict.ONLY_OURS if (their.act, our.act) in moved_by_us else Verdict.ONLY_THEIRS
