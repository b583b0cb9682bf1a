"""Our cycles beside another scheduler, change by change: they agree with it where it has their rules, whenever its
decisions are written, and a difference does not spread."""

from __future__ import annotations

import gzip
import json
import random
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from scheduling.model.cluster_queue import ClusterQueuePreemption
from scheduling.model.vocabulary import ConditionStatus, ConditionType, WithinClusterQueuePolicy
from scheduling.model.workload import Condition, Workload
from scheduling.shadow.choices import Act
from scheduling.shadow.comparisons import MAX_PATIENCE_SECONDS, PATIENCE_SECONDS, Comparison, Shadow, Verdict
from scheduling.simulator.simulator import EPOCH
from tests.scheduling.other_scheduler import OtherScheduler, new_world
from tests.scheduling.world_helpers import Builder, admitted

RECORDED = Path(__file__).resolve().parents[1] / "conformance" / "kueue"
FAMILIES = sorted(path.name.removesuffix(".json.gz") for path in RECORDED.glob("*.json.gz"))
_EACH = 8


def recorded(family: str) -> list[dict[str, Any]]:
    """The first scenarios of a family."""
    with gzip.open(RECORDED / f"{family}.json.gz") as file:
        found: list[dict[str, Any]] = json.load(file)
    return [each["scenario"] for each in found if "cycles" not in each["scenario"]][:_EACH]


def compare(scenario: Mapping[str, Any], late: random.Random | None = None) -> list[Comparison]:
    """What the shadow says of another scheduler that has our rules."""
    shadow, last = Shadow(new_world(scenario)), EPOCH
    found: list[Comparison] = []
    for now, key, workload in OtherScheduler(scenario, late).changes():
        if now - last >= PATIENCE_SECONDS:
            found += shadow.rest(last) + shadow.rest(last + PATIENCE_SECONDS)
        found += shadow.hear(key, workload, now)
        last = now
    return found + shadow.conclude()


@pytest.mark.parametrize("family", FAMILIES)
def test_it_agrees_with_a_scheduler_of_the_same_rules(family: str) -> None:
    found = [each for scenario in recorded(family) for each in compare(scenario)]
    verdicts = Counter(each.verdict for each in found)
    assert verdicts[Verdict.AGREE] > 0
    assert verdicts[Verdict.AGREE] >= 0.97 * verdicts.total(), [
        each for each in found if each.verdict is not Verdict.AGREE
    ]


def test_it_agrees_whenever_decisions_are_written() -> None:
    """Behind arrivals and ends that the scheduler had not heard of, and in another order than they were made."""
    scenarios = [scenario for family in FAMILIES for scenario in recorded(family)[:2]]
    found = [each for number, scenario in enumerate(scenarios) for each in compare(scenario, random.Random(number))]
    verdicts = Counter(each.verdict for each in found)
    assert sum(each.unheard > 0 for each in found) > 5
    assert verdicts[Verdict.AGREE] >= 0.99 * verdicts.total(), verdicts


def queue_of_three() -> Builder:
    return Builder().queue("q", {"default": 3})


def workloads_of(builder: Builder, *names: str) -> list[Workload]:
    """The workloads of those names, in their order."""
    found = [builder.world.workload(f"team/{name}") for name in names]
    return [workload for workload in found if workload is not None]


def decided(shadow: Shadow, workload: Workload, now: float) -> list[Comparison]:
    """The comparisons of that workload's change, of which no later change follows."""
    found = [*shadow.hear(workload.key, workload, now), *shadow.conclude()]
    return [each for each in found if each.workload == workload.key]


def test_a_difference_is_told_with_both_reasons_and_does_not_spread() -> None:
    """The other scheduler starts what came later and leaves what came first; from there both go on together."""
    built = queue_of_three().pending("first", "q", 2).pending("second", "q", 2).world
    first, second = (built.workload(f"team/{name}") for name in ("first", "second"))
    assert first is not None
    assert second is not None
    shadow = Shadow(queue_of_three().world)
    assert shadow.hear(first.key, first, 0.0) == []
    assert shadow.hear(second.key, second, 100.0) == []
    assert shadow.hear(second.key, admitted(second, "q", at=100.0), 100.0) == [], "a later decision may explain it"
    assert shadow.rest(100.0 + PATIENCE_SECONDS) == []
    [difference] = shadow.rest(100.5 + PATIENCE_SECONDS)
    assert (difference.workload, difference.verdict) == ("team/second", Verdict.ONLY_THEIRS)
    assert (difference.theirs.act, difference.ours.act) == (Act.RESERVE, Act.WAIT)
    assert "1 core more needed" in difference.ours.message
    assert "quota first to team/first" in difference.ours.message
    assert shadow.rest(100.0 + 10 * PATIENCE_SECONDS) == []

    assert shadow.hear(second.key, None, 200.0) == []
    [agreed] = shadow.hear(first.key, admitted(first, "q", at=200.0), 200.0)
    assert (agreed.workload, agreed.verdict) == ("team/first", Verdict.AGREE)


def test_a_decision_that_the_other_scheduler_does_not_make_is_told_once() -> None:
    shadow = Shadow(queue_of_three().world)
    waits = queue_of_three().pending("waits", "q", 2).world.workload("team/waits")
    assert waits is not None
    assert shadow.hear(waits.key, waits, 10.0) == []
    assert shadow.rest(10.0) == []
    assert shadow.rest(10.0 + MAX_PATIENCE_SECONDS - 1) == [], "it may decide in a moment"
    [difference] = shadow.rest(10.0 + MAX_PATIENCE_SECONDS)
    assert (difference.verdict, difference.ours.act) == (Verdict.ONLY_OURS, Act.RESERVE)
    assert difference.ours.message == "Quota reserved in ClusterQueue q"
    assert difference.theirs.message == "Not evaluated yet."
    assert shadow.rest(10.0 + 2 * MAX_PATIENCE_SECONDS) == []


def refused(workload: Workload, message: str, reason: str = "WaitingForQuota") -> Workload:
    """The workload once Kueue has evaluated it in vain."""
    condition = Condition(ConditionType.QUOTA_RESERVED, ConditionStatus.FALSE, reason, message, workload.created_at)
    return replace(workload, conditions={**workload.conditions, ConditionType.QUOTA_RESERVED: condition})


def test_a_workload_that_the_other_scheduler_evaluates_and_leaves_waiting_is_told_at_once() -> None:
    shadow = Shadow(queue_of_three().world)
    waits = queue_of_three().pending("waits", "q", 2).world.workload("team/waits")
    assert waits is not None
    assert shadow.hear(waits.key, waits, 10.0) == []
    assert shadow.rest(10.0) == []
    assert shadow.hear(waits.key, refused(waits, "too soon"), 11.0) == []
    assert shadow.rest(11.0 + PATIENCE_SECONDS) == [], "it may have been evaluated before its quota was free"
    assert shadow.hear(waits.key, refused(waits, "no"), 20.0) == []
    [difference] = shadow.rest(20.0)
    assert (difference.verdict, difference.ours.act) == (Verdict.ONLY_OURS, Act.RESERVE)
    assert (difference.theirs.reason, difference.theirs.message) == ("WaitingForQuota", "no")


def test_a_decision_that_is_only_late_is_no_difference() -> None:
    shadow = Shadow(queue_of_three().world)
    waits = queue_of_three().pending("waits", "q", 2).world.workload("team/waits")
    assert waits is not None
    told = [*shadow.hear(waits.key, waits, 10.0), *shadow.rest(10.0), *shadow.rest(10.0 + 5 * PATIENCE_SECONDS)]
    [agreed] = [*told, *shadow.hear(waits.key, admitted(waits, "q", at=40.0), 40.0)]
    assert agreed.verdict is Verdict.AGREE


def test_a_decision_that_was_made_before_the_latest_arrival_agrees() -> None:
    """The one that came meanwhile has the higher priority, and both do not fit."""
    built = queue_of_three().pending("low", "q", 2).pending("high", "q", 2, priority=100).world
    low, high = built.workload("team/low"), built.workload("team/high")
    assert low is not None
    assert high is not None

    def heard(later: float) -> Comparison:
        shadow = Shadow(queue_of_three().world)
        shadow.hear(low.key, low, 10.0)
        shadow.hear(high.key, high, 11.0)
        [found] = decided(shadow, admitted(low, "q", at=later), later)
        return found

    at_once, much_later = heard(11.5), heard(60.0)
    assert (at_once.verdict, at_once.unheard) == (Verdict.AGREE, 1)
    assert (much_later.verdict, much_later.ours.act) == (Verdict.ONLY_THEIRS, Act.WAIT)


def test_a_decision_that_was_made_before_inadmissible_workloads_returned_to_their_queue_agrees() -> None:
    """Kueue returns them a moment after quota became free; a new arrival gets it first."""
    built = queue_of_three().pending("holder", "q", 3).pending("large", "q", 3, priority=100).pending("small", "q", 1)
    holder, large, small = workloads_of(built, "holder", "large", "small")

    def heard(later: float) -> Comparison:
        shadow = Shadow(queue_of_three().world)
        shadow.take(holder.key, admitted(holder, "q", at=1.0), 1.0)
        shadow.hear(large.key, large, 10.0)
        shadow.hear(holder.key, None, 20.0)
        shadow.hear(small.key, small, 20.2)
        [found] = decided(shadow, admitted(small, "q", at=later), later)
        return found

    assert heard(20.5).verdict is Verdict.AGREE
    assert heard(60.0).verdict is Verdict.ONLY_THEIRS


def test_a_decision_that_was_made_on_an_earlier_one_and_before_the_latest_arrival_agrees() -> None:
    """The other scheduler knows its own decision before it is written, and not the arrival before that."""
    builder = queue_of_three().pending("whole", "q", 3, priority=50).pending("part", "q", 2).pending("rest", "q", 1)
    built = builder.pending("urgent", "q", 1, priority=100).world
    whole, part, rest, urgent = (built.workload(f"team/{name}") for name in ("whole", "part", "rest", "urgent"))
    assert whole is not None
    assert part is not None
    assert rest is not None
    assert urgent is not None
    shadow = Shadow(queue_of_three().world)
    for each in (whole, part, rest, urgent):
        assert shadow.hear(each.key, each, 10.0) == []
    [behind] = shadow.hear(part.key, admitted(part, "q", at=10.5), 10.5)
    assert (behind.verdict, behind.unheard) == (Verdict.AGREE, 0)
    [found] = shadow.hear(rest.key, admitted(rest, "q", at=11.0), 11.0)
    assert (found.verdict, found.unheard) == (Verdict.AGREE, 1)


def test_a_scheduler_that_takes_longer_may_have_heard_less() -> None:
    """An arrival that would have gone first was unknown to it 15 seconds ago: it takes 20 seconds for a decision."""

    def heard(*, slow: bool) -> Comparison:
        builder = Builder().queue("q", {"default": 3}).pending("early", "q", 1)
        builder.pending("low", "q", 2).pending("high", "q", 2, priority=100)
        early, low, high = workloads_of(builder, "early", "low", "high")
        shadow = Shadow(queue_of_three().world)
        shadow.hear(early.key, early, 10.0)
        shadow.rest(10.0)
        at = 30.0 if slow else 11.0
        [first] = shadow.hear(early.key, admitted(early, "q", at=at), at)
        assert first.verdict is Verdict.AGREE
        shadow.hear(low.key, low, 40.0)
        shadow.hear(high.key, high, 45.0)
        [found] = decided(shadow, admitted(low, "q", at=60.0), 60.0)
        return found

    assert (heard(slow=True).verdict, heard(slow=True).unheard) == (Verdict.AGREE, 1)
    assert heard(slow=False).verdict is Verdict.ONLY_THEIRS


def preempted(workload: Workload, by: str, at: float) -> Workload:
    """The workload that holds quota, preempted in Kueue's words for the workload with the uid `by`."""
    message = f"Preempted to accommodate a workload (UID: {by}, JobUID: UNKNOWN) due to prioritization"
    evicted = Condition(ConditionType.EVICTED, ConditionStatus.TRUE, "Preempted", message, at)
    why = Condition(ConditionType.PREEMPTED, ConditionStatus.TRUE, "InClusterQueue", message, at)
    return replace(
        workload, conditions={**workload.conditions, ConditionType.EVICTED: evicted, ConditionType.PREEMPTED: why}
    )


@pytest.mark.parametrize("told_by", ["the victim", "its own condition", None])
def test_a_workload_that_waits_for_its_victims_comes_first_in_its_queue(told_by: str | None) -> None:
    """A workload of a higher priority, which arrived before the victim's eviction was written, waits behind it."""
    builder = queue_of_three().pending("victim", "q", 2).pending("preemptor", "q", 2, priority=10)
    builder.pending("urgent", "q", 2, priority=100)
    victim, preemptor, urgent = workloads_of(builder, "victim", "preemptor", "urgent")
    preemption = ClusterQueuePreemption(WithinClusterQueuePolicy.LOWER_PRIORITY)
    shadow = Shadow(Builder().queue("q", {"default": 3}, preemption=preemption).world)
    holds = admitted(victim, "q", at=1.0)
    shadow.take(victim.key, holds, 1.0)
    shadow.hear(preemptor.key, preemptor, 10.0)
    shadow.hear(urgent.key, urgent, 10.5)
    uid = preemptor.uid if told_by == "the victim" else "unknown"
    [agreed] = shadow.hear(victim.key, preempted(holds, uid, 11.0), 11.0)
    assert agreed.verdict is Verdict.AGREE
    if told_by == "its own condition":
        waiting = refused(preemptor, "insufficient. Pending the preemption of 1 workload(s)")
        assert shadow.hear(preemptor.key, waiting, 11.5) == []
    shadow.hear(victim.key, None, 30.0)
    [found] = decided(shadow, admitted(preemptor, "q", at=100.0), 100.0)
    assert found.verdict is (Verdict.AGREE if told_by else Verdict.ONLY_THEIRS)


def test_a_workload_that_ours_had_tried_in_vain_is_seen_to_get_quota() -> None:
    """It waits as inadmissible in our queue when the other scheduler gives it quota after all."""
    shadow = Shadow(queue_of_three().world)
    large = queue_of_three().pending("large", "q", 4).world.workload("team/large")
    assert large is not None
    shadow.hear(large.key, large, 10.0)
    [found] = decided(shadow, admitted(large, "q", at=11.0), 11.0)
    assert found.verdict is Verdict.ONLY_THEIRS
    assert shadow.rest(12.0) == []
    held = shadow.hear(large.key, replace(admitted(large, "q", at=11.0), active=False), 20.0)
    assert held == []


def test_a_question_that_is_cut_short_has_no_answer() -> None:
    """The time is over after the first cycle, which another workload of the queue heads."""
    built = queue_of_three().pending("low", "q", 1).pending("high", "q", 1, priority=100).world
    low, high = built.workload("team/low"), built.workload("team/high")
    assert low is not None
    assert high is not None
    shadow = Shadow(queue_of_three().world, lambda: False)
    shadow.hear(low.key, low, 10.0)
    shadow.hear(high.key, high, 10.0)
    assert shadow.hear(low.key, admitted(low, "q", at=11.0), 11.0) == []
    assert shadow.unfinished == 1


def test_a_comparison_that_is_cut_short_is_no_difference() -> None:
    """It agrees as of before the latest arrival, wherever the time ends."""
    builder = queue_of_three().pending("low", "q", 2).pending("high", "q", 2, priority=100)
    low, high = builder.world.workload("team/low"), builder.world.workload("team/high")
    assert low is not None
    assert high is not None
    ends: set[tuple[int, int]] = set()
    for steps in range(30):
        left = [1_000]

        def go_on(left: list[int] = left) -> bool:
            left[0] -= 1
            return left[0] >= 0

        shadow = Shadow(queue_of_three().world, go_on)
        shadow.hear(low.key, low, 10.0)
        shadow.hear(high.key, high, 10.5)
        left[0] = steps
        found = [each.verdict for each in shadow.hear(low.key, admitted(low, "q", at=11.0), 11.0)]
        assert found in ([], [Verdict.AGREE])
        ends.add((len(found), shadow.unfinished))
    assert ends == {(0, 1), (1, 0)}


@pytest.mark.parametrize(
    ("strict", "between", "at", "verdict", "is_in_turn"),
    [
        (False, None, 40.5, Verdict.ONLY_THEIRS, True),
        (False, "elsewhere", 40.5, Verdict.ONLY_THEIRS, True),
        (False, "q", 40.5, Verdict.AGREE, False),
        (False, "q", 44.8, Verdict.ONLY_THEIRS, True),
        (True, "q", 40.5, Verdict.ONLY_THEIRS, True),
    ],
)
def test_the_order_of_evaluations_must_allow_for_a_decision_out_of_turn(
    strict: bool, between: str | None, at: float, verdict: Verdict, is_in_turn: bool
) -> None:
    """The large workload, which fits, comes first; but Kueue may have refused it before its quota became free, if other
    quota of its queue had become free a moment before: then it tries the small one next."""

    def world() -> Builder:
        return Builder().queue("q", {"default": 4}, strict=strict).queue("elsewhere", {"default": 4})

    builder = world().pending("holder", "q", 3).pending("other", between or "q", 1)
    builder.pending("large", "q", 4 if between == "q" else 3, priority=100).pending("small", "q", 2)
    holder, other, large, small = workloads_of(builder, "holder", "other", "large", "small")
    shadow = Shadow(world().world)
    shadow.take(holder.key, admitted(holder, "q", at=1.0), 1.0)
    shadow.take(other.key, admitted(other, between or "q", at=1.0), 1.0)
    shadow.hear(large.key, large, 2.0)
    shadow.hear(small.key, small, 3.0)
    if between is not None:
        shadow.hear(other.key, None, 39.5)
    shadow.hear(holder.key, None, 40.0)
    [found] = decided(shadow, admitted(small, "q", at=at), at)
    assert (found.verdict, found.aside == 0) == (verdict, is_in_turn)


@pytest.mark.parametrize("ends_a_second", [0.1, 0.3, 1.0, 4.0])
@pytest.mark.parametrize("rule", ["lowest priority", "random"])
def test_a_scheduler_of_another_order_is_found_out_on_a_busy_queue(rule: str, ends_a_second: float) -> None:
    """Its decisions differ, or agree out of turn: one in four may agree by chance."""
    chosen = random.Random(1)
    builder = Builder().queue("q", {"default": 10})
    for number in range(10):
        builder.pending(f"holder-{number}", "q", 1)
    for number in range(40):
        builder.pending(f"waits-{number}", "q", 1, priority=chosen.randrange(1000))
    shadow = Shadow(Builder().queue("q", {"default": 10}).world)
    names = [f"holder-{number}" for number in range(10)], [f"waits-{number}" for number in range(40)]
    holders, waiting = ([builder.world.workload(f"team/{name}") for name in each] for each in names)
    for workload in filter(None, holders):
        shadow.take(workload.key, admitted(workload, "q", at=1.0), 1.0)
    for workload in filter(None, waiting):
        shadow.hear(workload.key, workload, 10.0)
    verdicts: Counter[str] = Counter()
    now = 100.0
    for _ in range(20):
        now += 1 / ends_a_second
        ended = holders.pop(0)
        assert ended is not None
        shadow.hear(ended.key, None, now)
        left = [*filter(None, waiting)]
        next_one = min(left, key=lambda each: each.priority) if rule == "lowest priority" else chosen.choice(left)
        waiting.remove(next_one)
        holders.append(next_one)
        at = now + 0.1
        found = [*shadow.hear(next_one.key, admitted(next_one, "q", at=at), at), *shadow.rest(at + 0.1)]
        verdicts.update("in turn" if each.verdict is Verdict.AGREE and not each.aside else "not" for each in found)
    assert verdicts["in turn"] <= 5, verdicts


def test_what_was_preempted_for_a_workload_is_not_given_to_another() -> None:
    preemption = ClusterQueuePreemption(WithinClusterQueuePolicy.LOWER_PRIORITY)

    def world() -> Builder:
        return Builder().queue("q", {"default": 3}, preemption=preemption)

    builder = world().pending("victim", "q", 2).pending("preemptor", "q", 2, priority=10)
    builder.pending("low", "q", 2, priority=-5).pending("other", "q", 1)
    victim, preemptor, low, other = workloads_of(builder, "victim", "preemptor", "low", "other")
    shadow = Shadow(world().world)
    holds = admitted(victim, "q", at=1.0)
    shadow.take(victim.key, holds, 1.0)
    shadow.take(other.key, admitted(other, "q", at=1.0), 1.0)
    shadow.hear(low.key, low, 5.0)
    shadow.hear(preemptor.key, preemptor, 10.0)
    shadow.hear(victim.key, preempted(holds, preemptor.uid, 11.0), 11.0)
    shadow.hear(other.key, None, 29.5)
    shadow.hear(victim.key, None, 30.0)
    [found] = decided(shadow, admitted(low, "q", at=30.5), 30.5)
    assert found.verdict is Verdict.ONLY_THEIRS


@pytest.mark.parametrize("rests", [True, False])
def test_a_preemptor_is_passed_only_once_it_was_refused(*, rests: bool) -> None:
    """Kueue tries a preemptor in each cycle while workloads stop for it. If another workload takes their quota, and
    there is nothing more to preempt, it rests like any refused workload."""
    preemption = ClusterQueuePreemption(WithinClusterQueuePolicy.LOWER_PRIORITY)

    def world() -> Builder:
        return Builder().queue("q", {"default": 4}, preemption=preemption)

    builder = world().pending("victim", "q", 2).pending("preemptor", "q", 2, priority=10)
    builder.pending("urgent", "q", 2, priority=20).pending("other", "q", 2, priority=20).pending("late", "q", 2)
    victim, preemptor, urgent, other, late = workloads_of(builder, "victim", "preemptor", "urgent", "other", "late")
    shadow = Shadow(world().world)
    holds = admitted(victim, "q", at=1.0)
    shadow.take(victim.key, holds, 1.0)
    shadow.take(other.key, admitted(other, "q", at=1.0), 1.0)
    shadow.hear(preemptor.key, preemptor, 10.0)
    shadow.hear(victim.key, preempted(holds, preemptor.uid, 11.0), 11.0)
    if rests:
        shadow.hear(urgent.key, urgent, 12.0)
        shadow.hear(victim.key, None, 20.0)
        assert decided(shadow, admitted(urgent, "q", at=20.5), 20.5)
    shadow.hear(late.key, late, 29.5)
    shadow.hear(other.key, None, 30.0)
    [found] = [each for each in decided(shadow, admitted(late, "q", at=30.5), 30.5) if each.workload == late.key]
    assert (found.verdict is Verdict.AGREE, found.aside) == (rests, int(rests))


def test_a_decision_made_after_one_that_is_written_later_agrees() -> None:
    """The other scheduler gave the first workload the first flavor, and the second one the other flavor; it wrote the
    second decision first."""

    def world() -> Builder:
        return Builder().queue("q", {"one": 2, "two": 2})

    builder = world().pending("first", "q", 2, priority=100).pending("second", "q", 2)
    first, second = workloads_of(builder, "first", "second")
    shadow = Shadow(world().world)
    shadow.hear(second.key, second, 10.0)
    assert shadow.hear(second.key, admitted(second, "q", at=20.0, flavor="two"), 20.0) == []
    shadow.hear(first.key, first, 20.1)
    found = shadow.hear(first.key, admitted(first, "q", at=20.2, flavor="one"), 20.2)
    assert {(each.workload, each.verdict) for each in found} == {
        (first.key, Verdict.AGREE), (second.key, Verdict.AGREE),
    }  # fmt: skip


def test_a_scheduler_of_other_rules_is_found_out() -> None:
    """It prefers the workloads of the lowest priority, and is compared at each of its decisions."""
    verdicts: Counter[str] = Counter()
    for scenario in recorded("preempt"):
        turned = json.loads(json.dumps(scenario))
        for manifest in turned["workloads"]:
            manifest["spec"]["priority"] = -manifest["spec"].get("priority", 0)
        shadow = Shadow(new_world(scenario))
        found: list[Comparison] = []
        for now, key, workload in OtherScheduler(turned).changes():
            known = None if workload is None else replace(workload, priority=-workload.priority)
            found += shadow.hear(key, known, now)
        found += shadow.conclude()
        verdicts.update("in turn" if each.verdict is Verdict.AGREE and not each.aside else "not" for each in found)
    assert verdicts["in turn"] < 0.65 * verdicts.total(), verdicts


def test_a_question_without_an_answer_does_not_delay_an_earlier_difference() -> None:
    has_time = [True]
    shadow = Shadow(queue_of_three().world, lambda: has_time[0])
    builder = queue_of_three().pending("large", "q", 4).pending("other", "q", 1, priority=100)
    large, other = workloads_of(builder, "large", "other")
    shadow.hear(large.key, large, 10.0)
    assert shadow.hear(large.key, admitted(large, "q", at=11.0), 11.0) == []
    shadow.take(large.key, large, 12.0)
    shadow.take(other.key, other, 12.0)
    has_time[0] = False
    [first] = shadow.hear(large.key, admitted(large, "q", at=20.0), 20.0)
    assert (first.verdict, shadow.unfinished) == (Verdict.ONLY_THEIRS, 1)
