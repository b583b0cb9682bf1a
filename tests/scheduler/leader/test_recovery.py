"""Errors that are not expected: scheduling goes on, with all that was committed and without what fails again."""

from __future__ import annotations

import json
import random
import sys
from collections import Counter
from collections.abc import Callable, Collection
from itertools import count
from pathlib import Path
from types import FrameType
from typing import Any, Final

import pytest
from django.core.management import call_command
from hypothesis import settings as hypothesis_settings

from accounts.models import Cluster
from queues.models import Workload, WorkloadEvent
from queues.services.workloads import cancel, change_priority, record_finished, requeue
from scheduler.leader.engine import Engine
from scheduler.leader.recovery import FIRST_PAUSE_SECONDS, MAX_FAILURES, Recovery, SchedulingFailed
from scheduler.models import Change, Decision
from scheduler.store.batch import Batch
from scheduler.store.saving import save
from tests.engines import NOW, facts, read_anew, statuses
from tests.factories import make_cluster, make_cluster_queue, make_workload

pytestmark = pytest.mark.django_db(transaction=True)

MAX_RUNS: Final = 200
MAX_TICKS: Final = 5
SEEDS: Final = max(10, hypothesis_settings().max_examples // 10)
OURS: Final = ("/scheduler/leader/engine.py", "/scheduler/store/", "/scheduling/")


class Leader:
    """The scheduling of a cluster whose batches fail as told."""

    def __init__(self, cluster: Cluster, fails: Callable[[Batch], bool]) -> None:
        self.now = NOW
        self.fails = fails
        self.loads = 0
        self.recovery = Recovery(cluster, self._start, clock=lambda: self.now)
        self._cluster = cluster

    def _start(self, aside: Collection[str]) -> Engine:
        self.loads += 1
        return Engine(self._cluster, "test", clock=lambda: self.now, save=self._save, aside=aside)

    def _save(self, batch: Batch) -> None:
        if batch and self.fails(batch):
            raise RuntimeError("the batch failed")
        save(batch)

    def come_to_rest(self) -> int:
        """Run until nothing is left; answer how often it had to wait for the next tick, which is a second away."""
        ticks = 0
        for _ in range(MAX_RUNS):
            if self.recovery.run():
                continue
            if not Change.objects.exists():
                return ticks
            ticks += 1
        raise AssertionError("it does not come to rest")


@pytest.fixture(autouse=True)
def folder(settings: Any, tmp_path: Path) -> Path:
    """Where failed batches are written."""
    settings.FAILED_BATCH_FOLDER = str(tmp_path / "batches")
    return tmp_path / "batches"


@pytest.fixture
def cluster() -> Cluster:
    return make_cluster()


def names(*numbers: int) -> set[str]:
    return {f"team/w{number}" for number in numbers}


def writes(keys: set[str]) -> Callable[[Batch], bool]:
    return lambda batch: any(write.workload.key in keys for write in batch.workloads)


def test_an_error_that_happens_once_costs_one_load(cluster: Cluster) -> None:
    make_cluster_queue(cluster)
    make_workload(cluster, "w0")
    failures = count()
    leader = Leader(cluster, lambda batch: next(failures) == 0)
    leader.come_to_rest()
    assert (statuses(), leader.loads) == ({"w0": "Admitted"}, 2)
    assert not WorkloadEvent.objects.filter(reason="SetAside").exists()


def test_workloads_that_fail_again_are_set_aside_and_all_others_are_decided(cluster: Cluster) -> None:
    make_cluster_queue(cluster, quotas={"default-flavor": {"cpu": 30_000}})
    for number in range(20):
        make_workload(cluster, f"w{number}")
    poisoned = names(3, 11)
    leader = Leader(cluster, writes(poisoned))
    leader.come_to_rest()
    assert {name for name, status in statuses().items() if status != "Admitted"} == {"w3", "w11"}
    assert set(WorkloadEvent.objects.filter(reason="SetAside").values_list("workload_name", flat=True)) == {"w3", "w11"}
    row = Workload.objects.get(name="w3")
    (condition,) = row.conditions
    assert (condition["type"], condition["status"], condition["reason"]) == (
        "QuotaReserved", "False", "PendingEvaluation"
    )  # fmt: skip
    assert "RuntimeError: the batch failed" in condition["message"]
    assert (row.reason, row.message) == ("PendingEvaluation", condition["message"])
    make_workload(cluster, "late")
    leader.come_to_rest()
    assert statuses()["late"] == "Admitted", "decisions go on while others are set aside"

    leader.now += FIRST_PAUSE_SECONDS + 1
    poisoned.discard("team/w3")
    leader.come_to_rest()
    assert {name for name, status in statuses().items() if status != "Admitted"} == {"w11"}
    assert WorkloadEvent.objects.filter(reason="SetAside", workload_name="w11").count() == 2

    leader.now += FIRST_PAUSE_SECONDS + 1
    poisoned.clear()
    leader.come_to_rest()
    assert statuses()["w11"] == "Pending", "the second pause is twice as long"
    leader.now += FIRST_PAUSE_SECONDS
    leader.come_to_rest()
    assert statuses()["w11"] == "Admitted"


def test_a_workload_with_quota_that_fails_keeps_it_and_holds_up_no_other(cluster: Cluster) -> None:
    make_cluster_queue(cluster, quotas={"default-flavor": {"cpu": 2000}})
    make_workload(cluster, "w0")
    leader = Leader(cluster, lambda batch: False)
    leader.come_to_rest()
    leader.fails = writes(names(0))
    requeue(cluster, [("team", "w0")], actor="alice")
    make_workload(cluster, "w1")
    make_workload(cluster, "w2")
    leader.come_to_rest()
    assert statuses() == {"w0": "Admitted", "w1": "Admitted", "w2": "Pending"}
    assert WorkloadEvent.objects.filter(reason="SetAside").values_list("workload_name", flat=True)[0] == "w0"
    leader.fails = lambda batch: False
    leader.now += FIRST_PAUSE_SECONDS + 1
    leader.come_to_rest()
    assert Decision.objects.get(action="Evict").workload_name == "w0"


def test_simulate_replays_the_batch_that_failed(cluster: Cluster, folder: Path) -> None:
    make_cluster_queue(cluster, quotas={"default-flavor": {"cpu": 5000}})
    make_workload(cluster, "large", {"cpu": "3"})
    leader = Leader(cluster, lambda batch: False)
    leader.come_to_rest()
    leader.now += 100.0
    for number in range(3):
        make_workload(cluster, f"w{number}", {"cpu": "1"}, priority=number)
    failed: list[Batch] = []

    def fails_once(batch: Batch) -> bool:
        failed.append(batch)
        return len(failed) == 1

    leader.fails = fails_once
    leader.come_to_rest()

    [written] = folder.iterdir()
    call_command("simulate", written, output=folder / "result")
    [replayed] = json.loads((folder / "result").read_text())
    admitted = [found["workload"] for cycle in replayed["result"]["cycles"] for found in cycle["admitted"]]
    assert admitted == ["team/w2", "team/w1"]
    decided = {write.workload.key for write in failed[0].workloads if write.workload.admission is not None}
    assert decided == set(admitted)


def test_where_loads_fail_the_process_is_told_to_end(cluster: Cluster) -> None:
    def start(aside: Collection[str]) -> Engine:
        raise RuntimeError("cannot load")

    recovery = Recovery(cluster, start)
    for _ in range(MAX_FAILURES - 1):
        assert not recovery.run()
    with pytest.raises(SchedulingFailed, match="cannot load"):
        recovery.run()


class Fault:
    """Raises an error at the n-th call of a function of ours, once."""

    def __init__(self, at: int) -> None:
        self.at = at
        self.calls = 0

    def __call__(self, frame: FrameType, event: str, argument: Any) -> None:
        if event == "call" and any(part in frame.f_code.co_filename for part in OURS):
            self.calls += 1
            if self.calls == self.at:
                sys.settrace(None)
                raise RuntimeError(f"injected in {frame.f_code.co_qualname}")

    def __enter__(self) -> None:
        sys.settrace(self)

    def __exit__(self, *error: object) -> None:
        sys.settrace(None)


def happen(cluster: Cluster, chance: random.Random, numbers: Any) -> None:
    """Workloads come, end and change."""
    for _ in range(chance.randint(1, 4)):
        make_workload(
            cluster, f"w{next(numbers)}", {"cpu": str(chance.choice([1, 2, 20]))}, priority=chance.randint(0, 2)
        )
    unfinished = Workload.objects.exclude(status="Finished").order_by("pk")
    keys = list(unfinished.values_list("namespace", "name"))
    record_finished(cluster, [chance.choice(keys)])
    cancel(cluster, [chance.choice(keys)], actor="alice")
    change_priority(cluster, [chance.choice(keys)], chance.randint(0, 2), actor="alice")


@pytest.mark.parametrize("seed", range(SEEDS))
def test_an_error_anywhere_in_a_batch_loses_nothing_and_decides_nothing_twice(cluster: Cluster, seed: int) -> None:
    chance, numbers = random.Random(seed), count()
    make_cluster_queue(cluster, quotas={"default-flavor": {"cpu": 4000}}, within_cluster_queue="LowerPriority")
    leader = Leader(cluster, lambda batch: False)
    leader.come_to_rest()
    for _ in range(6):
        leader.now += 100.0
        happen(cluster, chance, numbers)
        fault = Fault(chance.randint(1, 3000))
        with fault:
            leader.recovery.run()
        assert leader.come_to_rest() < MAX_TICKS
        engine = leader.recovery.engine
        assert engine is not None
        known, stored = facts(engine.world, engine.rows), facts(*read_anew(engine, leader.now))
        differ = {key for key in known | stored if known.get(key) != stored.get(key)}
        assert differ == set()
        assert not Change.objects.exists()
        waiting = [row.name for row in Workload.objects.filter(status="Pending", reason__in=("", "PendingEvaluation"))]
        assert waiting == []
    assert not WorkloadEvent.objects.filter(reason="SetAside").exists()
    admitted = Counter(Decision.objects.filter(action="Admit").values_list("workload_name", flat=True))
    stopped = Counter(
        Decision.objects.exclude(action__in=("Admit", "Inadmissible", "Skip")).values_list("workload_name", flat=True)
    )
    assert all(times <= 1 + stopped[name] for name, times in admitted.items())
