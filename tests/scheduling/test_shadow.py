"""Our cycles beside another scheduler: on recorded scenarios they decide as it did, and differences do not spread."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from scheduling.model.workload import Workload
from scheduling.shadow import Act, Comparison, Shadow, Verdict
from scheduling.simulator.simulator import EPOCH, build_simulator
from scheduling.state.workload_info import QueueState
from scheduling.world import World
from tests.scheduling.world_helpers import Builder, admitted

RECORDED = Path(__file__).resolve().parents[1] / "conformance" / "kueue"
FAMILIES = sorted(path.name.removesuffix(".json.gz") for path in RECORDED.glob("*.json.gz"))
_EACH = 8


def recorded(family: str) -> list[dict[str, Any]]:
    """The first scenarios of a family."""
    with gzip.open(RECORDED / f"{family}.json.gz") as file:
        found: list[dict[str, Any]] = json.load(file)
    return [each for each in found if "singleCycles" not in each["scenario"]][:_EACH]


class Mirror:
    """A World that repeats another one, as an observed cluster's repeats what its Kueue wrote."""

    def __init__(self, scenario: dict[str, Any]) -> None:
        self.world = build_simulator({**scenario, "workloads": []}).world
        names = [
            (each["metadata"].get("namespace", "default"), each["metadata"]["name"]) for each in scenario["workloads"]
        ]
        self.keys = ["/".join(name) for name in names]

    def follow(self, other: World, now: float) -> dict[str, Workload | None]:
        """Takes over what differs; returns how that was before."""
        before: dict[str, Workload | None] = {}
        for key in self.keys:
            was, is_now = self.world.workload(key), other.workload(key)
            if was == is_now:
                continue
            before[key] = was
            if is_now is None:
                self.world.finish_workload(key, now)
            else:
                self.world.set_workload(is_now, now)
        return before

    def follow_all(self, other: World) -> World:
        """The World itself, when it is as the other one is at the beginning."""
        self.follow(other, EPOCH)
        return self.world


def is_unreached(theirs: World, found: Comparison) -> bool:
    """A recorded run stops after some cycles in which nothing happened: whom it has not come to it has not left."""
    return found.verdict is Verdict.ONLY_OURS and theirs.queue_state(found.workload) is QueueState.ACTIVE


@pytest.mark.parametrize("family", FAMILIES)
def test_on_recorded_scenarios_it_agrees_with_kueue(family: str) -> None:
    verdicts: Counter[Verdict] = Counter()
    for found in recorded(family):
        simulator, mirror = build_simulator(found["scenario"]), Mirror(found["scenario"])
        shadow = Shadow(Mirror(found["scenario"]).follow_all(simulator.world))
        mirror.follow(simulator.world, EPOCH)
        for seconds in simulator.instants():
            now = EPOCH + seconds
            before = mirror.follow(simulator.world, now)
            result = shadow.compare(mirror.world, before, now)
            wrong = [each for each in result.comparisons if each.verdict is not Verdict.AGREE]
            wrong = [each for each in wrong if not is_unreached(simulator.world, each)]
            assert not wrong, (found["name"], seconds, wrong)
            assert result.complete
            verdicts.update(each.verdict for each in result.comparisons)
    assert verdicts[Verdict.AGREE] > 0


def test_a_difference_is_told_with_both_reasons_and_does_not_spread() -> None:
    """The other scheduler starts what came later and leaves what came first; from there both go on together."""

    def world() -> World:
        return Builder().queue("q", {"default": 3}).pending("first", "q", 2).pending("second", "q", 2).world

    theirs, shadow = world(), Shadow(world())
    before = {key: theirs.workload(key) for key in ("team/first", "team/second")}
    waiting = before["team/second"]
    assert waiting is not None
    theirs.set_workload(admitted(waiting, "q", at=2.0), 2.0)
    found = {each.workload: each for each in shadow.compare(theirs, before, 2.0).comparisons}
    assert found["team/first"].verdict is Verdict.ONLY_OURS
    assert (found["team/first"].theirs.act, found["team/first"].ours.act) == (Act.WAIT, Act.RESERVE)
    assert found["team/second"].verdict is Verdict.ONLY_THEIRS
    assert "1 core more needed" in found["team/second"].ours.message

    held = theirs.workload("team/second")
    theirs.finish_workload("team/second", 3.0)
    left = theirs.workload("team/first")
    assert left is not None
    theirs.set_workload(admitted(left, "q", at=3.0), 3.0)
    later = shadow.compare(theirs, {"team/second": held, "team/first": left}, 3.0).comparisons
    assert [(each.workload, each.verdict) for each in later] == [("team/first", Verdict.AGREE)]
