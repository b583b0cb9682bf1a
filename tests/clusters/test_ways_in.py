"""Kinds of which one job is several objects, or needs others: by whichever way it comes, it goes the whole path."""

from __future__ import annotations

import orjson
import pytest
from django.contrib.auth.models import User

from clusters.api_objects import NAMESPACES, PODS, JsonObject
from clusters.jobs.framework.context import IntegrationSettings, JobContext
from clusters.jobs.framework.store import ObjectStore
from clusters.jobs.registry import JOB_KINDS, KINDS
from gpus.models import DeviceAllocation
from queues.models import Workload
from queues.services.workloads import cancel, hold, release
from scheduling.model.vocabulary import WorkloadStatus
from tests.clusters.every_kind import POD_GROUP, RUN_SECONDS, jobs_of, pods_of, with_values
from tests.clusters.group_pods import KUEUE
from tests.clusters.system import System
from tests.clusters.test_pods_that_wait import RUNTIME, RUNTIMES
from tests.kubernetes.device_plugin import slices_of
from tests.users import client_of

pytestmark = pytest.mark.django_db(transaction=True)

NAME = "several"


def come_in(system: System, way: str, manifests: list[JsonObject]) -> None:
    """Applied, submitted over REST, or made in the cluster by somebody else."""
    if way == "apply":
        system.apply_text(b"\n---\n".join(map(orjson.dumps, manifests)))
        return
    if way == "rest":
        user = User.objects.create_user("root", is_superuser=True)
        answer = client_of(user).post("/api/v1/workloads/", manifests, format="json")
        assert answer.status_code == 201, answer.content
        return
    if system.client.get(NAMESPACES, "", "team") is None:
        system.client.create(NAMESPACES, {"metadata": {"name": "team"}})
    for manifest in manifests:
        rules = JOB_KINDS[manifest["kind"]]
        system.client.create(rules.resource, as_kueue_leaves_it(manifest))
    system.watcher.resync()


def as_kueue_leaves_it(manifest: JsonObject) -> JsonObject:
    """Suspended, or gated."""
    if manifest["kind"] == "Pod":
        manifest["spec"]["schedulingGates"] = [{"name": f"{KUEUE}/admission"}]
        manifest["metadata"]["labels"][f"{KUEUE}/managed"] = "true"
    elif manifest["kind"] == "TrainJob":
        rules = JOB_KINDS["TrainJob"]
        rules.complete(manifest, JobContext(IntegrationSettings(), ObjectStore(), KINDS))
        rules.suspend(manifest)
    return manifest


def running(system: System) -> int:
    return sum(pod["status"]["phase"] == "Running" for pod in system.pods())


def turns(system: System, number: int = 6) -> None:
    for _ in range(number):
        system.turn()


@pytest.mark.parametrize("way", ["apply", "rest", "watcher"])
@pytest.mark.parametrize("kind", ["TrainJob", "LeaderWorkerSet", POD_GROUP])
def test_it_is_admitted_evicted_admitted_again_and_ends(system: System, kind: str, way: str) -> None:
    if kind != POD_GROUP:
        system.install_operator(kind)
    if kind == "TrainJob":
        system.client.create(RUNTIMES, with_values(RUNTIME, {RUN_SECONDS: "60"}))
        system.watcher.resync()
    come_in(system, way, jobs_of(kind, NAME, run_seconds=60, mib=1000))
    turns(system)
    assert running(system) == pods_of(kind)
    workload = Workload.objects.get()
    assert workload.status == WorkloadStatus.ADMITTED
    held = DeviceAllocation.objects.filter(workload=workload).values_list("node__name", "device_uuid")
    assert sorted(held) == sorted(item for pod in system.pods() for item in slices_of(pod))
    assert len(held) == pods_of(kind)

    key = (workload.namespace, workload.name)
    hold(system.cluster, [key], actor="alice", now=system.moment())
    turns(system)
    assert (running(system), DeviceAllocation.objects.count()) == (0, 0)
    release(system.cluster, [key], actor="alice", now=system.moment())
    if kind == POD_GROUP and way == "watcher":  # whoever made the pods makes others
        come_in(system, way, jobs_of(kind, NAME, run_seconds=60, mib=1000))
    turns(system)
    assert running(system) == pods_of(kind)
    workload.refresh_from_db()
    assert workload.status == WorkloadStatus.ADMITTED

    if kind == "LeaderWorkerSet" and way == "watcher":
        system.client.delete(JOB_KINDS[kind].resource, "team", NAME)
    elif kind == "LeaderWorkerSet":
        cancel(system.cluster, [key], actor="alice", now=system.moment())
    else:
        system.turn(60)
    turns(system, 3)
    workload.refresh_from_db()
    assert workload.status == WorkloadStatus.FINISHED
    assert not DeviceAllocation.objects.exists()
    assert not [pod for pod in system.client.list(PODS).items if pod["status"]["phase"] == "Running"]
