"""A list leaves out jobs over which a pass changed nothing, until they, their rows or the looked-up objects change."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from accounts.models import Cluster
from clusters.api_objects import NAMESPACES
from clusters.connection import watching_client_for
from clusters.sync.watcher import Watcher
from queues.manifests.workload import PodSetSpec, WorkloadSpec
from queues.models import Job, PodSet, Workload
from queues.services.submission import create_workloads
from queues.services.workloads import delete_workloads
from tests.cluster_kinds import JOBS
from tests.clusters.system import System, gpu_job, queued
from tests.simulated_cluster import job

pytestmark = pytest.mark.django_db(transaction=True)

KUEUE_IS_FOR = {"managedJobsNamespaceSelector": {"matchLabels": {"managed": "yes"}}}


@pytest.fixture
def running(system: System) -> System:
    """A system with two jobs that run, and that a list has settled."""
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team", "labels": {"managed": "yes"}}}
    system.client.create(NAMESPACES, namespace)
    for name in ("first", "second"):
        system.client.create(JOBS, gpu_job(name, suspend=True, run_seconds=1000))
    system.watcher.resync()
    for _ in range(4):
        system.turn()
    assert [row.status for row in Workload.objects.all()] == ["Admitted", "Admitted"]
    system.watcher.resync()
    return system


def looked_at(system: System) -> int:
    """How many workloads' pod sets a list reads: a pass over a job reads those of its workloads."""
    with CaptureQueriesContext(connection) as queries:
        system.watcher.resync()
    reads = [each["sql"] for each in queries if "FROM queues_podset WHERE" in each["sql"] and "position" in each["sql"]]
    return sum(sql.partition("ANY(")[2].partition(")")[0].count(",") + 1 for sql in reads)


def test_jobs_that_stay_as_they_are_are_not_looked_at(running: System) -> None:
    assert looked_at(running) == 0
    assert looked_at(running) == 0


def test_a_job_that_changed_is(running: System) -> None:
    running.client.patch(JOBS, "team", "first", {"metadata": {"annotations": {"note": "seen"}}})
    assert looked_at(running) == 1
    assert looked_at(running) == 0


@pytest.mark.parametrize(
    "change",
    [
        lambda: Job.objects.filter(name="first").update(labels={"other": "label"}),
        lambda: Workload.objects.filter(job__name="first").update(priority=7),
        lambda: PodSet.objects.filter(workload__job__name="first").update(reclaimable_count=1),
    ],
    ids=["its row", "its workload", "its pod sets"],
)
def test_a_job_whose_rows_changed_is(running: System, change: Callable[[], object]) -> None:
    change()
    assert looked_at(running) >= 1
    running.watcher.resync()  # settles what the pass has changed
    assert looked_at(running) == 0


@pytest.mark.parametrize(
    "change",
    [
        {"configuration": KUEUE_IS_FOR},
        {"configuration": {"featureGates": {"WorkloadPriorityClassDefaulting": False}}},
    ],
    ids=["a selector", "a feature gate"],
)
def test_all_jobs_are_after_a_change_of_the_policy(running: System, change: dict[str, object]) -> None:
    Cluster.objects.update(**change)
    assert looked_at(running) == 2
    assert looked_at(running) == 0


def test_all_jobs_are_after_a_restart(running: System) -> None:
    running.watcher = Watcher(
        running.cluster, watching_client_for(running.cluster), clock=running.now, steady=running.now
    )
    assert looked_at(running) == 2
    assert looked_at(running) == 0


def test_a_watched_change_is_passed_over_though_a_list_left_its_job_out(running: System) -> None:
    """The job's owner suspends it between two lists: its quota goes back as before."""
    assert looked_at(running) == 0
    running.client.patch(JOBS, "team", "first", {"spec": {"suspend": True}})
    assert looked_at(running) >= 1


def test_jobs_are_when_an_object_that_their_pass_looks_up_changes(running: System) -> None:
    Cluster.objects.update(configuration=KUEUE_IS_FOR)
    running.watcher.resync()
    running.watcher.resync()
    assert looked_at(running) == 0
    running.client.patch(NAMESPACES, "", "team", {"metadata": {"labels": {"managed": "no"}}})
    assert looked_at(running) == 2


def test_a_workload_that_vanished_is_made_again(running: System) -> None:
    """As by hand in the database: the list still mends it."""
    running.client.create(JOBS, queued(job("third", suspend=True, run_seconds=1000, requests={"cpu": "1"})))
    for _ in range(3):
        running.turn()
    running.watcher.resync()
    assert looked_at(running) == 0
    Workload.objects.filter(job__name="third").delete()
    running.watcher.resync()
    assert Workload.objects.filter(job__name="third").exists()


def test_a_new_list_costs_as_many_statements_for_many_jobs_as_for_two(running: System) -> None:
    def statements() -> int:
        with CaptureQueriesContext(connection) as queries:
            running.watcher.resync()
        return len(queries)

    two = statements()
    for number in range(6):
        running.client.create(JOBS, gpu_job(f"more-{number}", suspend=True, run_seconds=1000))
    for _ in range(3):
        running.turn()
    running.watcher.resync()
    assert statements() <= two


def test_a_finished_job_ends_a_workload_that_it_names_and_that_is_made_again(system: System) -> None:
    system.client.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}})
    named = queued(job("train", parallelism=1, completions=1, run_seconds=20, suspend=True))
    named["metadata"]["labels"]["kueue.x-k8s.io/prebuilt-workload-name"] = "mine"
    template = deepcopy(named["spec"]["template"])
    template["spec"]["containers"][0]["imagePullPolicy"] = "IfNotPresent"
    spec = WorkloadSpec("team", "mine", "queue", (PodSetSpec("main", 1, template, {"cpu": 1000}),))
    create_workloads(system.cluster, [spec], actor="kubectl in the cluster")
    system.client.create(JOBS, named)
    for _ in range(3):
        system.turn()
    system.advance(100)
    for _ in range(4):
        system.turn()
    assert Workload.objects.get().status == "Finished"
    delete_workloads(system.cluster, [("team", "mine")], actor="alice")
    for _ in range(2):
        system.turn()
    create_workloads(system.cluster, [spec], actor="kubectl in the cluster")
    for _ in range(5):
        system.turn()
    assert Workload.objects.get().status == "Finished"
