"""Ray's elastic jobs of all three kinds: more workers are another slice, and fewer give back at once what they held."""

from __future__ import annotations

import pytest

from clusters.api_objects import JsonObject
from clusters.jobs.registry import JOB_KINDS
from queues.models import Workload
from scheduling.model.vocabulary import WorkloadStatus
from tests.clusters.every_kind import RUN_SECONDS, with_values
from tests.clusters.operated_jobs import operated_job
from tests.clusters.system import System

pytestmark = pytest.mark.django_db(transaction=True)

CLUSTER = {"RayCluster": None, "RayJob": "rayClusterSpec", "RayService": "rayClusterConfig"}


def elastic(kind: str, workers: int) -> JsonObject:
    """So many workers beside one head."""
    job = operated_job(kind)
    job["metadata"]["annotations"] = {"kueue.x-k8s.io/elastic-job": "true"}
    field = CLUSTER[kind]
    cluster = job["spec"] if field is None else job["spec"][field]
    sized = {**cluster, "workerGroupSpecs": [{**cluster["workerGroupSpecs"][0], "replicas": workers}]}
    job = {**job, "spec": sized if field is None else {**job["spec"], field: sized}}
    lasting: JsonObject = with_values(job, {RUN_SECONDS: "1000"})
    return lasting


def running(system: System) -> int:
    return sum(pod["status"]["phase"] == "Running" for pod in system.pods())


def held(system: System) -> int:
    """How many pods have quota."""
    (holder,) = Workload.objects.filter(status=WorkloadStatus.ADMITTED)
    return sum(pod_set.admitted_count or 0 for pod_set in holder.pod_sets.all())


def scaled(system: System, kind: str, workers: int) -> None:
    system.apply(elastic(kind, workers))
    for _ in range(3):
        system.turn()
    assert (running(system), held(system)) == (workers + 1, workers + 1)


@pytest.mark.parametrize("kind", CLUSTER)
def test_it_grows_and_shrinks_without_a_stop(system: System, kind: str) -> None:
    system.install_operator(kind)
    scaled(system, kind, 1)
    first = Workload.objects.get()
    started = {pod["metadata"]["uid"] for pod in system.pods()}
    scaled(system, kind, 3)
    first.refresh_from_db()
    assert (first.status, first.reason) == (WorkloadStatus.FINISHED, "WorkloadSliceReplaced")
    assert started <= {pod["metadata"]["uid"] for pod in system.pods()}, "what ran runs on"
    scaled(system, kind, 2)
    rules = JOB_KINDS[kind]
    there = system.client.get(rules.resource, "team", "train")
    assert there is not None
    assert not rules.is_suspended(there)
