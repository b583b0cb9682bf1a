"""One tenant's flood does not hold up another, counted and not timed: what the other's workload costs the engine
does not grow with the flood. `tests/benchmarks/test_isolation.py` measures the same."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any, Self

import pytest
from django.db import connection
from django.utils import timezone

from accounts.models import Cluster, Namespace
from queues.api.workload_input import read_workload
from queues.models import ClusterObject, LimitRange, LocalQueue, Workload
from queues.services.submission import create_workloads
from queues.services.workloads import hold, record_finished, release
from scheduler.leader.engine import Engine
from scheduler.leader.pace import ALONE, SHARED, SHARED_SECONDS, Pacing
from scheduler.store.changes import Changes
from scheduler.store.device_objects import read_device_objects
from tests.factories import make_cluster, make_cluster_queue

pytestmark = pytest.mark.django_db(transaction=True)


class Work:
    """Counts the Python functions that are called, and the rows that are read."""

    def __init__(self) -> None:
        self.calls = self.rows = 0

    def __enter__(self) -> Self:
        self._wrapper = connection.execute_wrapper(self._count_rows)
        self._wrapper.__enter__()
        sys.setprofile(self._count_call)
        return self

    def __exit__(self, *_: object) -> None:
        sys.setprofile(None)
        self._wrapper.__exit__(None, None, None)

    def _count_call(self, frame: object, event: str, argument: object) -> None:
        self.calls += event == "call"

    def _count_rows(self, execute: Any, sql: str, parameters: object, many: bool, context: Any) -> Any:
        result = execute(sql, parameters, many, context)
        self.rows += max(0, context["cursor"].rowcount)
        return result


def submit(cluster: Cluster, team: str, names: list[str], cpu: str) -> None:
    fields = {"namespace": f"team-{team}", "local_queue": team, "pod_sets": [{"count": 1, "requests": {"cpu": cpu}}]}
    create_workloads(
        cluster, [read_workload({**fields, "name": name}, index) for index, name in enumerate(names)], actor="test"
    )


def two_tenants() -> Cluster:
    cluster = make_cluster()
    for team in "ab":
        Namespace.objects.get_or_create(cluster=cluster, name=f"team-{team}", defaults={"created_at": timezone.now()})
        make_cluster_queue(
            cluster, team, {"default-flavor": {"cpu": (400_000, 0, None)}}, local_queue="", cohort_name="all"
        )
        LocalQueue.objects.create(
            cluster=cluster, namespace=f"team-{team}", name=team, cluster_queue_name=team, created_at=timezone.now()
        )
    return cluster


def settle(engine: Engine) -> None:
    while engine.run().more:
        pass


def cost(cluster: Cluster, engine: Engine, name: str) -> Work:
    """What it takes to admit a small workload of the other tenant, right after one of its own has ended."""
    submit(cluster, "b", [name], "10m")
    with Work() as work:
        engine.run(0.0)
    assert Workload.objects.get(name=name).status == "Admitted"
    record_finished(cluster, [("team-b", name)], actor="test")
    return work


def least(cluster: Cluster, engine: Engine, label: str) -> tuple[int, int]:
    """Calls and rows of the cheapest of three: in the others a frame or the housekeeping may have been due."""
    works = [cost(cluster, engine, f"{label}-{number}") for number in range(3)]
    return min(work.calls for work in works), min(work.rows for work in works)


def costs_beside_more(cluster: Cluster, engine: Engine, label: str, flood: int) -> list[tuple[int, int]]:
    """With so many more of a flood: while it is being taken in, and when all of it waits."""
    submit(cluster, "a", [f"flood-{label}-{number}" for number in range(flood)], "100")
    coming = least(cluster, engine, f"{label}-coming")
    settle(engine)
    return [coming, least(cluster, engine, f"{label}-waiting")]


def test_what_a_workload_costs_does_not_grow_with_the_flood_of_another_tenant() -> None:
    cluster = two_tenants()
    later = time.time() + 600
    engine = Engine(cluster, "test", clock=lambda: later)  # the pace follows the clock, which stands still
    # From now on the quota of the first tenant is full, and two tenants were heard of.
    submit(cluster, "a", [f"full-{number}" for number in range(5)], "100")
    for name in ("before-1", "before-2"):
        cost(cluster, engine, name)
    settle(engine)
    beside_few = costs_beside_more(cluster, engine, "few", 200)
    beside_many = costs_beside_more(cluster, engine, "many", 1000)
    assert Workload.objects.filter(namespace="team-a", reason="WaitingForQuota").count() == 1201
    for (calls, rows), (more_calls, more_rows) in zip(beside_few, beside_many, strict=True):
        assert more_calls < 1.2 * calls
        assert more_rows <= rows + 5


def change_limit_range(cpu: str) -> None:
    item = {"type": "Container", "max": {"cpu": cpu}}
    fields = {"created_at": timezone.now(), "limits": [item]}
    cluster = Cluster.objects.get()
    LimitRange.objects.update_or_create(cluster=cluster, namespace="team-a", name="sizes", defaults=fields)


def change_local_queue(cpu: str) -> None:
    LocalQueue.objects.filter(name="a").update(fair_sharing_weight=cpu)


@pytest.mark.parametrize("change", [change_limit_range, change_local_queue])
def test_what_a_workload_costs_beside_a_change_of_a_namespace_does_not_grow_with_those_that_wait_in_it(
    change: Callable[[str], None],
) -> None:
    cluster = two_tenants()
    later = time.time() + 600
    engine = Engine(cluster, "test", clock=lambda: later, steady=lambda: 0.0)  # no frame and no housekeeping is due
    submit(cluster, "a", [f"full-{number}" for number in range(5)], "100")
    cost(cluster, engine, "before")
    calls = []
    for flood in (400, 1200):
        submit(cluster, "a", [f"flood-{flood}-{number}" for number in range(flood)], "100")
        settle(engine)
        change(str(200 + flood))
        calls.append(cost(cluster, engine, f"beside-{flood}").calls)
        settle(engine)
    assert calls[1] < 1.2 * calls[0]


def settling(engine: Engine) -> Work:
    with Work() as work:
        settle(engine)
    return work


def test_what_an_edit_of_a_local_queue_costs_does_not_grow_with_the_workloads_of_others() -> None:
    cluster = two_tenants()
    later = time.time() + 600
    engine = Engine(cluster, "test", clock=lambda: later, steady=lambda: 0.0)
    calls = []
    for flood in (100, 700):
        submit(cluster, "a", [f"flood-{flood}-{number}" for number in range(flood)], "100")
        settle(engine)
        LocalQueue.objects.filter(name="b").update(fair_sharing_weight=flood)
        calls.append(settling(engine).calls)
    assert calls[1] < 1.2 * calls[0]


def make_templates(cluster: Cluster, count: int, label: str) -> None:
    manifest: Any = {
        "spec": {"spec": {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "g"}}]}}}
    }
    kind = {"kind": "ResourceClaimTemplate", "namespace": "team-a", "manifest": manifest}
    names = [f"{label}-{number}" for number in range(count)]
    ClusterObject.objects.bulk_create([ClusterObject(cluster=cluster, name=name, **kind) for name in names])


def test_what_a_claim_template_costs_does_not_grow_with_the_others() -> None:
    cluster = two_tenants()
    engine = Engine(cluster, "test", steady=lambda: 0.0)
    costs = []
    for others in (50, 500):
        make_templates(cluster, others, f"others-{others}")
        settle(engine)
        make_templates(cluster, 1, f"one-{others}")
        costs.append(settling(engine))
    few, many = costs
    assert many.rows == few.rows
    assert many.calls < 1.2 * few.calls
    ClusterObject.objects.filter(name="one-50-0").delete()
    settle(engine)
    assert engine.rows._device_objects.templates.keys() == read_device_objects(cluster.pk).templates.keys()
    assert len(read_device_objects(cluster.pk).templates) == 551


def test_an_edit_of_a_limit_range_reaches_the_last_workload() -> None:
    cluster = two_tenants()
    engine = Engine(cluster, "test")
    change_limit_range("50")
    submit(cluster, "a", [f"w-{number}" for number in range(404)], "100")
    settle(engine)
    assert Workload.objects.filter(reason="Misconfigured").count() == 404
    change_limit_range("200")
    settle(engine)
    assert Workload.objects.filter(status="Admitted").count() == 4
    assert Workload.objects.filter(reason="WaitingForQuota").count() == 400


def test_batches_are_short_for_a_while_after_two_tenants_were_heard_of() -> None:
    pacing = Pacing()
    pacing.hear(Changes(1, (1, 2), {"workload": {1: "a/x", 2: "a/y"}, "node": {1: "n"}}), 0.0)
    assert pacing.pace(1.0) is ALONE
    pacing.hear(Changes(1, (3,), {"workload": {3: "b/x"}}), 2.0)
    pacing.hear(Changes(1, (4,), {"workload": {1: "a/x"}}), 50.0)
    assert pacing.pace(2.0 + SHARED_SECONDS - 1) is SHARED
    assert pacing.pace(2.0 + SHARED_SECONDS) is ALONE


def test_a_change_of_configuration_reaches_everybody_in_short_batches() -> None:
    cluster = two_tenants()
    engine = Engine(cluster, "test")
    submit(cluster, "a", [f"w-{number}" for number in range(ALONE.steps + 200)], "100")
    settle(engine)
    LocalQueue.objects.filter(name="a").update(stop_policy="Hold")
    engine.run(0.0)
    told = Workload.objects.filter(reason="Suspended").count()
    assert 0 < told < ALONE.steps + 200
    settle(engine)
    assert Workload.objects.filter(reason="Suspended").count() == ALONE.steps + 196  # four found room


def test_a_workload_says_at_once_that_it_is_pending_evaluation() -> None:
    """A submitted or released one said nothing until a backlog was worked off."""
    cluster = two_tenants()
    submit(cluster, "a", ["w"], "1")
    said = ("Pending", "PendingEvaluation", "Workload is pending evaluation in the scheduling queue")
    row = Workload.objects.filter(name="w").values_list("status", "reason", "message")
    assert row.get() == said
    hold(cluster, [("team-a", "w")], actor="test")
    settle(Engine(cluster, "test"))
    assert row.get()[1] == "Deactivated"
    release(cluster, [("team-a", "w")], actor="test")
    assert row.get() == said
