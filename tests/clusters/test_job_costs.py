"""What a Job costs on its way through a cluster: SQL statements, requests to the API server, and Celery messages.

Ten more Jobs in a batch cost a request each, to start, and nothing else: the statements and messages are those of the
batch.
"""

from __future__ import annotations

import cProfile
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from clusters.api_objects import NAMESPACES
from foundation import wake_ups
from foundation.redis_client import redis_client
from queues.models import Workload
from tests.cluster_kinds import JOBS
from tests.clusters.system import System, queued
from tests.patience import PATIENCE_SECONDS
from tests.simulated_cluster import job

pytestmark = pytest.mark.django_db(transaction=True)

FEW, MANY = 2, 12
STATEMENTS: Final = {"found": 92, "decided": 24, "started": 14, "running": 83, "ended": 91}
"""At most, of each step of a batch: most of a Job's cost where few arrive together. Lower them with the code; a higher
one needs a reason."""
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
