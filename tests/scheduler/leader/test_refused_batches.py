"""Batches that are refused while workloads end, move and change: the World is the one that the rows describe, and
decides the same."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from typing import Final
from uuid import UUID

import pytest
from django.db import transaction
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from accounts.models import Cluster
from queues.models import Workload
from queues.services import workloads
from scheduler.leader.engine import Engine
from scheduler.store.batch import Batch
from scheduler.store.saving import BatchRefused, save
from tests.engines import NOW, facts, read_anew
from tests.factories import make_cluster, make_cluster_queue, make_cohort, make_workload

pytestmark = pytest.mark.django_db(transaction=True)

EXAMPLES: Final = max(1, settings().max_examples // 4)
MAX_RUNS: Final = 60
QUEUES: Final = ("a", "b")
TOO_MUCH: Final = 5
"""More cpu than a ClusterQueue may use. An equal workload is refused as soon as it comes, outside of a cycle."""
_numbers = count(1)


@dataclass(frozen=True, slots=True)
class Edit:
    """What happens to the workload with that number, or which workload comes."""

    what: str
    workload: int
    cpu: int = 1
    queue: str = "a"
    priority: int = 0

    def __call__(self, cluster: Cluster) -> None:
        keys = [("team", f"w{self.workload}")]
        unfinished = Workload.objects.filter(cluster=cluster, name=keys[0][1]).exclude(status="Finished")
        edits: dict[str, Callable[[], object]] = {
            "come": lambda: self._come(cluster),
            "finish": lambda: workloads.record_finished(cluster, keys),
            "cancel": lambda: workloads.cancel(cluster, keys, actor="alice"),
            "delete": lambda: workloads.delete_workloads(cluster, keys, actor="alice"),
            "hold": lambda: workloads.hold(cluster, keys, actor="alice"),
            "release": lambda: workloads.release(cluster, keys, actor="alice"),
            "move": lambda: unfinished.filter(status="Pending").update(queue_name=self.queue),
            "priority": lambda: workloads.change_priority(cluster, keys, self.priority, actor="alice"),
        }
        edits[self.what]()

    def _come(self, cluster: Cluster) -> None:
        name = f"w{self.workload}"
        if not Workload.objects.filter(cluster=cluster, name=name).exists():
            # The last tie of an order is broken by uid: the same order in each cluster, and no uid twice.
            uid = UUID(int=cluster.pk << 64 | self.workload)
            make_workload(cluster, name, {"cpu": str(self.cpu)}, queue_name=self.queue, uid=uid)


edits = st.builds(
    Edit,
    what=st.sampled_from(["come"] * 5 + ["finish", "cancel", "delete", "hold", "release", "move", "priority"]),
    workload=st.integers(0, 5),
    cpu=st.sampled_from((TOO_MUCH, 1, 2)),
    queue=st.sampled_from(QUEUES),
    priority=st.integers(0, 2),
)
steps = st.lists(st.lists(st.lists(edits, max_size=5), min_size=1, max_size=3), min_size=1, max_size=3)
"""Steps; each is what happens before a batch is decided, and then what happens before each refusal of it."""


def new_cluster() -> Cluster:
    """Two ClusterQueues of one cohort, with quota for some of the workloads."""
    cluster = make_cluster(f"c{next(_numbers)}")
    make_cohort(cluster, "all")
    for name in QUEUES:
        make_cluster_queue(
            cluster,
            name,
            {"default-flavor": {"cpu": (2000, 1000, None)}},
            local_queue=name,
            cohort_name="all",
            within_cluster_queue="LowerPriority",
            reclaim_within_cohort="Any",
        )
        make_workload(cluster, f"large-{name}", {"cpu": str(TOO_MUCH)}, queue_name=name)
    return cluster


class Refusing:
    """Saves batches; each of them is refused for as long as edits are left, which happen before."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.edits: list[list[Edit]] = []
        self.refused = 0

    def __call__(self, batch: Batch) -> None:
        if not batch or not self.edits:
            save(batch)
            return
        for edit in self.edits.pop(0):
            edit(self.cluster)
        self.refused += 1
        with transaction.atomic():
            save(batch)  # refused already if a workload of the batch was edited
            raise BatchRefused("a row was locked for too long")


def come_to_rest(engine: Engine) -> None:
    assert any(not engine.run().more for _ in range(MAX_RUNS)), "it does not come to rest"


def standing(cluster: Cluster) -> dict[str, tuple[str, ...]]:
    rows = Workload.objects.filter(cluster=cluster)
    return {name: tuple(values) for name, *values in rows.values_list("name", "status", "reason", "queue_name")}


@given(steps)
@example([[[Edit("come", 0, TOO_MUCH), Edit("come", 1, TOO_MUCH)], [Edit("delete", 0), Edit("finish", 1)]]])
@settings(max_examples=EXAMPLES, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])
def test_a_world_that_was_undone_decides_as_one_that_is_read_anew(happens: list[list[list[Edit]]]) -> None:
    refused, anew = new_cluster(), new_cluster()
    saving = Refusing(refused)
    clock = [NOW]
    engine = Engine(refused, "test", clock=lambda: clock[0], save=saving)
    come_to_rest(engine)
    for before, *meanwhile in happens:
        clock[0] += 10.0
        for edit in before:
            edit(refused)
        saving.edits = list(meanwhile)
        come_to_rest(engine)
        for edit in [edit for edits in (before, *meanwhile[: len(meanwhile) - len(saving.edits)]) for edit in edits]:
            edit(anew)
        come_to_rest(Engine(anew, "test", clock=lambda: clock[0]))
        known, stored = facts(engine.world, engine.rows), facts(*read_anew(engine, clock[0]))
        assert {
            name: (known.get(name), stored.get(name)) for name in known | stored if known.get(name) != stored.get(name)
        } == {}
        assert standing(refused) == standing(anew)
