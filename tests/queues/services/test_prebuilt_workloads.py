"""Workloads that are there before their job: whose job may take one over."""

from __future__ import annotations

import pytest

from accounts.models import Cluster
from foundation.exceptions import Conflict
from queues.manifests.job_workloads import workload_specs
from queues.manifests.workload import WorkloadSpec
from queues.models import Job, Workload
from queues.services.submission import create_workloads
from tests.clusters.system import queued
from tests.factories import make_cluster, make_cluster_queue
from tests.simulated_cluster import job
from tests.users import make_user

pytestmark = pytest.mark.django_db

ORIGIN = {"kueue.x-k8s.io/multikueue-origin": "manager"}


def named_job() -> list[WorkloadSpec]:
    """A job that says of itself that a manager sent it, and names the workload `mine`."""
    manifest = queued(job("train"))
    manifest["metadata"]["labels"] |= {**ORIGIN, "kueue.x-k8s.io/prebuilt-workload-name": "mine"}
    return workload_specs(manifest)


def prebuilt(cluster: Cluster, submitted_by: str) -> Workload:
    pod_sets = named_job()[0].pod_sets
    spec = WorkloadSpec("team", "mine", "queue", pod_sets, labels=ORIGIN)
    create_workloads(cluster, [spec], actor=submitted_by, submitted_by=submitted_by)
    return Workload.objects.get(name="mine")


@pytest.fixture
def cluster() -> Cluster:
    cluster = make_cluster()
    make_cluster_queue(cluster)
    for name in ("researcher", "mallory"):
        make_user(name)
    return cluster


def test_a_job_of_its_own_submitter_takes_a_workload_over(cluster: Cluster) -> None:
    row = prebuilt(cluster, "researcher")
    create_workloads(cluster, named_job(), actor="researcher", submitted_by="researcher")
    row.refresh_from_db()
    assert row.job == Job.objects.get(name="train")


def test_a_job_of_another_user_takes_none_over(cluster: Cluster) -> None:
    row = prebuilt(cluster, "researcher")
    with pytest.raises(Conflict, match="was submitted by researcher"):
        create_workloads(cluster, named_job(), actor="mallory", submitted_by="mallory")
    row.refresh_from_db()
    assert (row.job, Job.objects.exists()) == (None, False)
