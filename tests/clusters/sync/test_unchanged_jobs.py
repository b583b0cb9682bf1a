"""Jobs that a list shows as they were: the watcher looks at them again only for a reason."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from clusters.client import NAMESPACES, JsonObject, Listing, WatchEvent
from queues.models import Workload
from queues.services.workloads import hold
from tests.cluster_kinds import JOBS
from tests.clusters.system import System, queued
from tests.simulated_cluster import job

pytestmark = pytest.mark.django_db(transaction=True)

LISTS = 10


@pytest.fixture
def running(system: System) -> System:
    """A system with two running jobs that were made in the cluster, and one that waits."""
    system.client.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}})
    for name, cpu in (("first", "1"), ("second", "1"), ("large", "200")):
        system.client.create(JOBS, queued(job(name, suspend=True, run_seconds=100_000, requests={"cpu": cpu})))
    system.turn()
    system.turn()
    listed(system)
    return system


def listed(system: System) -> int:
    """How many workloads of jobs were read when all jobs were listed again."""
    return applied(system, system.client.list(JOBS))


def applied(system: System, *items: Listing | WatchEvent) -> int:
    with CaptureQueriesContext(connection) as queries:
        system.watcher.apply([(JOBS, item) for item in items])
    read = [query["sql"] for query in queries if 'FROM "queues_podset"' in query["sql"]]
    assert len(read) <= 1
    return read[0].partition(" IN (")[2].partition(")")[0].count(",") + 1 if read else 0


def settle(system: System) -> None:
    """Lists jobs until none is looked at."""
    assert any(listed(system) == 0 for _ in range(LISTS))


def live(system: System, name: str = "first") -> JsonObject:
    found = system.client.get(JOBS, "team", name)
    assert found is not None
    return found


def test_jobs_without_changes_are_looked_at_with_one_list_in_ten(running: System) -> None:
    assert [*Workload.objects.order_by("name").values_list("status", flat=True)] == ["Admitted", "Pending", "Admitted"]
    counts = [listed(running) for _ in range(LISTS * 12)]
    assert counts.count(0) > len(counts) / 3
    assert all(any(counts[at : at + LISTS + 1]) for at in range(len(counts) - LISTS))


def test_a_job_whose_row_has_changed_is_looked_at(running: System) -> None:
    """Its event was lost, or there was none: the row alone has changed."""
    settle(running)
    Workload.objects.filter(job__name="first").update(pushed_sequence=100, push_sequence=100)
    assert listed(running) == 1


def test_a_job_that_has_changed_is_looked_at(running: System) -> None:
    settle(running)
    running.client.patch(JOBS, "team", "second", {"metadata": {"annotations": {"note": "its event was lost"}}})
    assert listed(running) == 1


def test_an_admitted_job_that_another_suspends_is_looked_at_until_it_runs(running: System) -> None:
    settle(running)
    running.client.patch(JOBS, "team", "first", {"spec": {"suspend": True}})
    assert listed(running) == 1
    assert all(listed(running) for _ in range(LISTS))
    running.turn()
    assert not live(running)["spec"]["suspend"]


def test_a_restarted_watcher_looks_at_all_jobs(running: System) -> None:
    settle(running)
    running.watcher._follow_mode()
    assert listed(running) == 3


def test_the_last_of_two_events_of_a_job_in_one_batch_counts(running: System) -> None:
    before = live(running)
    hold(running.cluster, [("team", Workload.objects.get(job__name="first").name)], actor="alice")
    running.engine.run()
    running.push()
    after = live(running)
    assert (before["spec"]["suspend"], after["spec"]["suspend"]) == (False, True)
    assert applied(running, WatchEvent("MODIFIED", before), WatchEvent("MODIFIED", after)) == 1
    running.turn()
    assert Workload.objects.get(job__name="first").quota_reserved_at is None


def test_a_job_that_is_made_and_deleted_in_one_batch_leaves_no_workload(running: System) -> None:
    made = running.client.create(JOBS, queued(job("short", suspend=True)))
    applied(running, WatchEvent("ADDED", made), WatchEvent("DELETED", made))
    assert not Workload.objects.filter(job__name="short").exists()
