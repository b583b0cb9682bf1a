"""What a Job costs on its way through a cluster: SQL statements, requests to the API server, and Celery messages.

Ten more Jobs in a batch cost a request each, to start, and nothing else: the statements and messages are those of the
batch.
"""

from __future__ import annotations

import cProfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from threading import Event
from typing import Final

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from accounts.models import Cluster, Namespace
from clusters.api_objects import NAMESPACES, PODS, JsonObject, Kind
from clusters.client import Listing, WatchEvent
from clusters.inbox import Inbox
from clusters.sync.watcher import _Reflectors
from foundation import wake_ups
from foundation.redis_client import redis_client
from queues.models import Workload, WorkloadEvent
from tests.cluster_kinds import JOBS
from tests.clusters.system import System, queued
from tests.patience import PATIENCE_SECONDS
from tests.simulated_cluster import job

pytestmark = pytest.mark.django_db(transaction=True)

FEW, MANY = 2, 12
STATEMENTS: Final = {"found": 46, "decided": 9, "started": 14, "running": 37, "ended": 39}
"""At most, of each step of a batch: most of a Job's cost where few arrive together. Lower them with the code; a higher
one needs a reason."""
STATEMENTS_OF_EVENTS: Final = {"found": 16, "running": 10, "ended": 10}
"""The same, of a watcher that gets events: lists come once a minute."""
QUEUES: Final = ("kueueweb:celery:push", "kueueweb:celery:scheduler")


@pytest.fixture(autouse=True)
def one_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    """A step may take longer than the second for which wake-ups count as one."""
    monkeypatch.setattr(wake_ups, "_JOINED_SECONDS", PATIENCE_SECONDS)
    monkeypatch.setattr(wake_ups, "_COLLAPSE_MILLISECONDS", int(1000 * PATIENCE_SECONDS))


@dataclass(frozen=True, slots=True)
class Cost:
    """Of one step for a batch."""

    statements: int
    requests: int
    messages: int

    def per_job(self, few: Cost) -> tuple[float, float, float]:
        """Beyond a batch of few."""
        jobs = MANY - FEW
        return (
            (self.statements - few.statements) / jobs,
            (self.requests - few.requests) / jobs,
            (self.messages - few.messages) / jobs,
        )


def cost_of(system: System, step: Callable[[], object]) -> Cost:
    system.guard.requests.clear()
    redis_client().delete(*QUEUES, *redis_client().keys("kueueweb:wake:*"))
    with CaptureQueriesContext(connection) as queries:
        step()
    messages = sum(redis_client().llen(queue) for queue in QUEUES)
    return Cost(len(queries), len(system.guard.requests), messages)


def costs(system: System, prefix: str, count: int) -> dict[str, Cost]:
    """The costs of so many Jobs, from their creation to their end."""
    for number in range(count):
        small = job(f"{prefix}-{number}", suspend=True, run_seconds=30, requests={"cpu": "100m"})
        system.client.create(JOBS, queued(small))
    found = {
        "found": cost_of(system, system.watcher.resync),
        "decided": cost_of(system, system.engine.run),
        "started": cost_of(system, system.push),
    }
    system.advance(3)
    system.push()
    found["running"] = cost_of(system, system.watcher.resync)
    system.advance(60)
    found["ended"] = cost_of(system, system.watcher.resync)
    for _ in range(2):
        system.turn()
    assert Workload.objects.filter(job__name__startswith=f"{prefix}-", reason="Succeeded").count() == count
    return found


def test_ten_more_jobs_cost_one_request_each_and_no_statement(system: System) -> None:
    system.client.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}})
    costs(system, "warm", FEW)
    few = costs(system, "few", FEW)
    many = costs(system, "many", MANY)
    per_job = {step: many[step].per_job(few[step]) for step in many}
    statements = {step: cost[0] for step, cost in per_job.items()}
    requests = {step: cost[1] for step, cost in per_job.items()}
    assert max(statements.values()) < 1.0, statements
    assert requests == {"found": 0.0, "decided": 0.0, "started": 1.0, "running": 0.0, "ended": 0.0}


def test_ten_more_jobs_cost_no_message(system: System) -> None:
    system.client.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}})
    found = costs(system, "many", MANY)
    assert all(cost.messages <= len(QUEUES) for cost in found.values()), found


def test_the_steps_of_a_batch_ask_no_more_statements_than_they_did(system: System) -> None:
    system.client.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}})
    costs(system, "warm", FEW)
    statements = {step: cost.statements for step, cost in costs(system, "few", FEW).items()}
    assert {step: count for step, count in statements.items() if count > STATEMENTS[step]} == {}


def test_a_job_that_starts_as_the_watcher_saw_it_gets_one_pass(system: System) -> None:
    """The cluster then has the job as the pass wrote it, so another pass would change nothing."""
    system.client.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}})
    for number in range(FEW):
        system.client.create(JOBS, queued(job(f"few-{number}", suspend=True, requests={"cpu": "100m"})))
    system.watcher.resync()
    system.engine.run()
    with cProfile.Profile() as profile:
        system.push()
    passes = [entry.callcount for entry in profile.getstats() if getattr(entry.code, "co_name", "") == "look_at"]
    assert sum(passes) == FEW
    assert [each["spec"]["suspend"] for each in system.client.list(JOBS).items] == [False] * FEW


def changed(system: System, kind: Kind, before: Sequence[JsonObject]) -> list[tuple[Kind, Listing | WatchEvent]]:
    """The events of the objects of a kind that changed since they were listed."""
    versions = {each["metadata"]["uid"]: each["metadata"]["resourceVersion"] for each in before}
    now = [{"apiVersion": kind.api_version, "kind": kind.kind, **each} for each in system.client.list(kind).items]
    found: list[tuple[Kind, Listing | WatchEvent]] = []
    for each in now:
        version = versions.get(each["metadata"]["uid"])
        if version != each["metadata"]["resourceVersion"]:
            found.append((kind, WatchEvent("MODIFIED" if version else "ADDED", each)))
    return found


def turn(system: System, items: list[tuple[Kind, Listing | WatchEvent]]) -> None:
    """A turn of the running watcher, which listed the kinds before."""
    reflectors = _Reflectors(system.client, 60.0, Inbox(1))
    system.watcher._turn(items, reflectors, Event())


def costs_of_events(system: System, prefix: str, count: int) -> dict[str, int]:
    """The statements of the turns in which so many Jobs are found, start to run and end."""
    jobs, pods = system.client.list(JOBS).items, system.client.list(PODS).items

    def cost() -> int:
        nonlocal jobs, pods
        items = [*changed(system, JOBS, jobs), *changed(system, PODS, pods)]
        jobs, pods = system.client.list(JOBS).items, system.client.list(PODS).items
        return cost_of(system, lambda: turn(system, items)).statements

    for number in range(count):
        small = job(f"{prefix}-{number}", suspend=True, run_seconds=30, requests={"cpu": "100m"})
        system.client.create(JOBS, queued(small))
    found = {"found": cost()}
    system.engine.run()
    system.push()
    system.advance(3)
    system.push()
    found["running"] = cost()
    system.engine.run()
    system.advance(60)
    found["ended"] = cost()
    assert Workload.objects.filter(job__name__startswith=f"{prefix}-", reason="Succeeded").count() == count
    return found


def test_the_turns_of_a_running_watcher_ask_no_more_statements_than_they_did(system: System) -> None:
    system.client.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}})
    system.watcher.resync()
    costs_of_events(system, "warm", FEW)
    few, many = costs_of_events(system, "few", FEW), costs_of_events(system, "many", MANY)
    assert {step: count for step, count in few.items() if count > STATEMENTS_OF_EVENTS[step]} == {}
    assert many == few


def test_a_turn_follows_an_edit_of_rows_that_it_keeps(system: System) -> None:
    system.client.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}})
    selector = {"matchExpressions": [{"key": "managed", "operator": "NotIn", "values": ["no"]}]}
    Cluster.objects.update(configuration={"managedJobsNamespaceSelector": selector})
    system.watcher.resync()
    for name, managed in (("first", ""), ("second", "no"), ("third", "yes")):
        Namespace.objects.filter(name="team").update(labels={"managed": managed})
        before = system.client.list(JOBS).items
        system.client.create(JOBS, queued(job(name, suspend=True, requests={"cpu": "100m"})))
        turn(system, changed(system, JOBS, before))
    assert {*Workload.objects.values_list("job__name", flat=True)} == {"first", "third"}


def test_a_job_that_ends_with_its_pods_ends_by_one_statement(system: System) -> None:
    """Its pods are stored first, so the workload need not wait for them, and no push looks for pods that are left."""
    system.client.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}})
    small = job("alone", suspend=True, run_seconds=30, requests={"cpu": "100m"})
    system.client.create(JOBS, queued(small))
    for _ in range(2):
        system.watcher.resync()
        system.turn()
    system.watcher.resync()
    jobs, pods = system.client.list(JOBS).items, system.client.list(PODS).items
    before = system.workload("alone")
    system.advance(60)
    system.watcher.apply([*changed(system, JOBS, jobs), *changed(system, PODS, pods)])
    after = system.workload("alone")
    assert (before.status, after.status, after.reason) == ("Admitted", "Finished", "Succeeded")
    assert after.push_sequence == before.push_sequence
    assert not WorkloadEvent.objects.filter(reason="Ending").exists()
