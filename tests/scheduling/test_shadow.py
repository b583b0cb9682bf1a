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

from scheduling.shadow import PATIENCE_SECONDS, Act, Comparison, Shadow, Verdict
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
    return found


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


def test_a_difference_is_told_with_both_reasons_and_does_not_spread() -> None:
    """The other scheduler starts what came later and leaves what came first; from there both go on together."""
    built = queue_of_three().pending("first", "q", 2).pending("second", "q", 2).world
    first, second = (built.workload(f"team/{name}") for name in ("first", "second"))
    assert first is not None
    assert second is not None
    shadow = Shadow(queue_of_three().world)
    assert shadow.hear(first.key, first, 0.0) == []
    assert shadow.hear(second.key, second, 100.0) == []
    [difference] = shadow.hear(second.key, admitted(second, "q", at=100.0), 100.0)
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
    assert shadow.rest(10.0 + PATIENCE_SECONDS - 1) == [], "it may decide in a moment"
    [difference] = shadow.rest(10.0 + PATIENCE_SECONDS)
    assert (difference.verdict, difference.ours.act) == (Verdict.ONLY_OURS, Act.RESERVE)
    assert difference.ours.message == "Quota reserved in ClusterQueue q"
    assert shadow.rest(10.0 + 2 * PATIENCE_SECONDS) == []


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
        [found] = [
            each for each in shadow.hear(low.key, admitted(low, "q", at=later), later) if each.workload == low.key
        ]
        return found

    at_once, much_later = heard(11.5), heard(60.0)
    assert (at_once.verdict, at_once.unheard) == (Verdict.AGREE, 1)
    assert (much_later.verdict, much_later.ours.act) == (Verdict.ONLY_THEIRS, Act.WAIT)


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


def test_a_scheduler_that_takes_longer_is_waited_for_longer() -> None:
    names = [f"w{number}" for number in range(4)]
    builder = Builder().queue("q", {"default": 9})
    for name in names:
        builder.pending(name, "q", 2)
    shadow, told = Shadow(Builder().queue("q", {"default": 9}).world), []
    for number, name in enumerate(names[:3]):
        workload = builder.world.workload(f"team/{name}")
        assert workload is not None
        at = 100.0 * number
        assert shadow.hear(workload.key, workload, at) == []
        for later in (0.0, 6.0, 19.0):
            told += shadow.rest(at + later)
        [agreed] = shadow.hear(workload.key, admitted(workload, "q", at=at + 20.0), at + 20.0)
        assert agreed.verdict is Verdict.AGREE
    assert [each.workload for each in told] == ["team/w0"], "by then it had taken 20 seconds"
    last = builder.world.workload("team/w3")
    assert last is not None
    assert shadow.hear(last.key, last, 500.0) == []
    assert [each.verdict for later in (0.0, 39.0, 40.0) for each in shadow.rest(500.0 + later)] == [Verdict.ONLY_OURS]


def test_a_workload_that_ours_had_tried_in_vain_is_seen_to_get_quota() -> None:
    """It waits as inadmissible in our queue when the other scheduler gives it quota after all."""
    shadow = Shadow(queue_of_three().world)
    large = queue_of_three().pending("large", "q", 4).world.workload("team/large")
    assert large is not None
    shadow.hear(large.key, large, 10.0)
    [found] = shadow.hear(large.key, admitted(large, "q", at=11.0), 11.0)
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
