"""What a workload holds is not free while a pod of it lives; a pod that outlives its workload is seen at once."""

from __future__ import annotations

import pytest

from clusters.api_objects import NAMESPACES, PODS
from foundation.exceptions import Conflict
from gpus.api.reads import drifts
from gpus.models import DeviceAllocation
from queues.models import Pod
from queues.services.workloads import delete_workloads, hold, record_finished, require_no_jobs
from tests.cluster_kinds import JOBS
from tests.clusters.system import System, gpu_job
from tests.simulated_cluster import pod

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_workload_with_a_job_is_not_finished_by_hand(system: System) -> None:
    system.submit(gpu_job(run_seconds=1000))
    system.turn()
    row = system.workload()
    with pytest.raises(Conflict, match=f"Workload {row.key} belongs to a Job and ends with it"):
        require_no_jobs(system.cluster, [(row.namespace, row.name)])
    assert system.workload().status == "Admitted"


def test_a_job_that_is_gone_frees_nothing_before_its_pods_are_gone(system: System) -> None:
    system.client.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}})
    system.client.create(JOBS, gpu_job(suspend=True, run_seconds=1000))
    system.watcher.resync()
    for _ in range(2):
        system.turn()
    assert [pod["status"]["phase"] for pod in system.pods()] == ["Running"]
    system.client.delete(JOBS, "team", "train", propagation="Orphan")
    system.watcher.resync()
    system.engine.run()
    assert (system.workload().status, system.workload().ending) == (
        "Admitted",
        {"reason": "OwnerNotFound", "message": "The workload's owner no longer exists", "actor": "watcher"},
    )
    assert DeviceAllocation.objects.get().source == "decided"
    for _ in range(20):
        system.turn(5)
    assert "Running" not in {pod["status"]["phase"] for pod in system.pods()}
    assert (system.workload().status, system.workload().reason) == ("Finished", "OwnerNotFound")
    assert not DeviceAllocation.objects.exists()


def test_a_pod_that_outlives_its_workload_counts_as_external_at_once(system: System) -> None:
    system.submit(gpu_job(run_seconds=1000))
    for _ in range(2):
        system.turn()
    assert [drift.kind for drift in drifts(system.cluster.pk)] == []
    row = system.workload()
    Pod.objects.all().delete()  # as if the pod had been seen too late
    assert record_finished(system.cluster, [(row.namespace, row.name)])
    system.engine.run()
    system.watcher.tick()
    [held] = DeviceAllocation.objects.all()
    assert (held.source, held.memory_mib) == ("external", 4000)
    assert held.device is not None
    assert (held.device.used_slots, held.device.external_slots) == (0, 1)
    system.watcher.resync()
    assert [drift.kind for drift in drifts(system.cluster.pk)] == ["leftover"]
    assert delete_workloads(system.cluster, [(row.namespace, row.name)], actor="alice") == []


def test_a_pod_that_never_gets_a_node_keeps_no_quota_and_no_devices(system: System) -> None:
    system.submit(gpu_job(run_seconds=1000))
    for _ in range(2):
        system.turn()
    row = system.workload()
    stray = pod("stray", schedulingGates=[{"name": "example.com/never"}])
    labels = {"kueueweb.io/managed": "true", "kueueweb.io/workload-uid": str(row.uid)}
    stray["metadata"] |= {"namespace": "team", "labels": labels}
    system.client.create(PODS, stray)
    hold(system.cluster, [(row.namespace, row.name)], actor="admin")
    for _ in range(4):
        system.turn()
    assert (system.workload().quota_reserved_at, DeviceAllocation.objects.exists()) == (None, False)
    assert [each["metadata"]["name"] for each in system.pods()] == []
