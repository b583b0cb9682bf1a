"""A checkpoint holds what a new leader reads from the rows at its moment, whatever happens to them afterwards. With
recorded changes, so does each moment between two.

The length follows the Hypothesis profile: 1 run each, and 20 with `--hypothesis-profile=long`.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson
import pytest
from django.utils import timezone
from hypothesis import settings

from accounts.models import Cluster
from clusters.manifests import apply_manifests
from history.models import Checkpoint
from history.services.checkpoints.change_recording import record_changes
from history.services.checkpoints.checkpoint_tables import read_tables, tables_in
from history.services.checkpoints.checkpoint_taking import take_checkpoint
from history.services.checkpoints.following_decisions import decisions_json, following_decisions
from history.services.checkpoints.past_moments import cluster_at, find_moment, showing_moment
from history.services.checkpoints.past_rows import cluster_then, showing_rows
from queues.models import ClusterQueue, ResourceFlavor
from scheduler.leader.engine import Engine
from scheduler.store.world_reading import read_whole_world
from scheduling.run_until_idle import run_until_idle
from tests.acceptance.device_operations import make_queues
from tests.acceptance.processes import database_url
from tests.acceptance.test_new_leader import CHECK, MAX_RUNS, TOPOLOGY, WAIT, Life
from tests.engines import facts
from tests.factories import START, make_cluster

pytestmark = pytest.mark.django_db(transaction=True)

ROOT = Path(__file__).resolve().parents[2]
RUNS = 20 if settings().max_examples >= 2_000 else 1
ROUNDS, ROUNDS_AFTER = 25, 10


def decided_in_another_process(at: datetime, hash_seed: str) -> list[dict[str, Any]]:
    """The decisions that `manage.py decide_again` prints, with this seed of Python's hashes."""
    done = subprocess.run(
        [sys.executable, "manage.py", "decide_again", "--at", at.isoformat()],
        cwd=ROOT,
        env={**os.environ, "DATABASE_URL": database_url(), "PYTHONHASHSEED": hash_seed},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return [orjson.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.parametrize("topology", [False, True], ids=["", "topology"])
@pytest.mark.parametrize("waits", [False, True], ids=["", "waitForPodsReady"])
@pytest.mark.parametrize("seed", range(RUNS))
def test_a_checkpoint_decides_as_a_new_leader_did(seed: int, waits: bool, topology: bool) -> None:
    chance, now = random.Random(seed), START.timestamp() + 1000
    cluster = make_cluster(configuration={"waitForPodsReady": WAIT} if waits else {})
    make_queues(cluster)
    apply_manifests(cluster, TOPOLOGY if topology else CHECK, user=None)
    ResourceFlavor.objects.update(topology_name="hosts" if topology else "")
    ClusterQueue.objects.filter(name="b").update(admission_checks=[{"name": "approval", "onFlavors": []}])
    life, engine = Life(cluster, chance), Engine(cluster, "test", clock=lambda: now)
    kept: list[tuple[Checkpoint, dict[str, Any], list[dict[str, Any]]]] = []
    for number in range(ROUNDS + ROUNDS_AFTER):
        life.now = datetime.fromtimestamp(now, UTC)
        for _ in range(chance.randint(1, 8)):
            life.take()
        if number % 5 == 0 and number < ROUNDS:
            found = take_checkpoint(cluster)
            at = found.taken_at.timestamp()
            known = facts(*read_whole_world(Cluster.objects.get(pk=cluster.pk), at))
            world, _ = read_whole_world(Cluster.objects.get(pk=cluster.pk), at)
            kept.append((found, known, list(decisions_json(run_until_idle(world, at)))))
        assert any(not engine.run().more for _ in range(MAX_RUNS)), "it does not come to rest"
        now += chance.choice([1, 60])
    cluster.configuration = {"fairSharing": {"enable": True}}
    cluster.save()
    for stored, known, decided in kept:
        found = Checkpoint.objects.get(pk=stored.pk)
        with showing_rows(found):
            then = facts(*read_whole_world(cluster_then(found), found.taken_at.timestamp()))
        assert {
            name: (known.get(name), then.get(name)) for name in known | then if known.get(name) != then.get(name)
        } == {}
        assert following_decisions(find_moment(cluster, found.taken_at)) == decided
    assert any(decided for _, _, decided in kept)
    last, _, decided = kept[-1]
    assert decided_in_another_process(last.taken_at, "7") == decided
    assert decided_in_another_process(last.taken_at, "8") == decided


@pytest.fixture
def recording() -> Iterator[None]:
    record_changes(True)
    yield
    record_changes(False)


def rows_shown(cluster: Cluster, now: datetime) -> dict[str, list[bytes]]:
    """The lines of each table, as a checkpoint of now would have them; estimates are not recorded."""
    tables = tables_in(read_tables(cluster.pk, now))
    return {found.table: sorted(found.rows.splitlines()) for found in tables if found.table != "queues_startestimate"}


def differences(known: dict[str, list[bytes]], then: dict[str, list[bytes]]) -> dict[str, Any]:
    """By table, the lines that only one of them has."""
    return {
        name: (
            [line for line in known[name] if line not in then[name]],
            [line for line in then[name] if line not in known[name]],
        )
        for name in known
        if known[name] != then[name]
    }


@pytest.mark.parametrize("topology", [False, True], ids=["", "topology"])
@pytest.mark.parametrize("seed", range(RUNS))
@pytest.mark.usefixtures("recording")
def test_each_moment_shows_its_rows_and_decides_as_it_did(seed: int, topology: bool) -> None:
    """Between, before and after checkpoints."""
    chance, now = random.Random(seed), timezone.now().timestamp()  # a checkpoint has finished workloads for an hour
    cluster = make_cluster()
    make_queues(cluster)
    apply_manifests(cluster, TOPOLOGY if topology else CHECK, user=None)
    ResourceFlavor.objects.update(topology_name="hosts" if topology else "")
    life, engine = Life(cluster, chance), Engine(cluster, "test", clock=lambda: now)
    kept: list[tuple[datetime, dict[str, Any], list[dict[str, Any]]]] = []
    for number in range(ROUNDS + ROUNDS_AFTER):
        life.now = datetime.fromtimestamp(now, UTC)
        for _ in range(chance.randint(1, 8)):
            life.take()
        if number == ROUNDS // 2:
            Cluster.objects.filter(pk=cluster.pk).update(configuration={"fairSharing": {"enable": True}})
        at = timezone.now()
        world, _ = read_whole_world(Cluster.objects.get(pk=cluster.pk), at.timestamp())
        kept.append((at, rows_shown(cluster, at), list(decisions_json(run_until_idle(world, at.timestamp())))))
        assert any(not engine.run().more for _ in range(MAX_RUNS)), "it does not come to rest"
        if number % 8 == 5:
            take_checkpoint(cluster)
        now += chance.choice([1, 60])
    assert Checkpoint.objects.filter(changes_since__isnull=False).count() > 3
    for at, known, decided in kept:
        moment = find_moment(Cluster.objects.get(pk=cluster.pk), at)
        assert moment.exact
        with showing_moment(moment) as settings:
            assert differences(known, rows_shown(cluster, at)) == {}
            configuration = cluster_at(moment, settings).configuration
        assert configuration == ({} if at < kept[ROUNDS // 2][0] else {"fairSharing": {"enable": True}})
        assert following_decisions(moment) == decided
    assert sum(bool(decided) for _, _, decided in kept) > 5
    for at, _, decided in kept[3 : ROUNDS : ROUNDS // 2]:
        assert decided_in_another_process(at, "7") == decided == decided_in_another_process(at, "8")
