"""Elastic jobs that grow and shrink while their pods run: what the cluster is told, and what becomes of the slices."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime

import pytest

from clusters.api_objects import NAMESPACES, PODS, JsonObject
from clusters.push.workload_slices import handed_over
from gpus.models import Device, DeviceAllocation
from queues.models import ClusterQueue, Pod, PodSet, Workload
from queues.services.admission_checks import CheckAnswer, set_check_state
from queues.services.workloads import hold
from scheduler.leader.engine import Engine
from scheduling.model.vocabulary import AdmissionCheckStatus
from tests.cluster_kinds import JOBS
from tests.clusters.system import System, gpu_job, queued
from tests.simulated_cluster import TWO_NODES, ServerThread, job, make_simulated

pytestmark = pytest.mark.django_db(transaction=True)

ELASTIC = {"kueue.x-k8s.io/elastic-job": "true"}


@pytest.fixture
def system() -> Iterator[System]:
    """Two nodes with two devices of four slots each."""
    with ServerThread(make_simulated(nodes=TWO_NODES)) as server:
        system = System(server)
        system.client.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}})
        yield system


def elastic(parallelism: int, *, mib: int = 4000) -> JsonObject:
    manifest = gpu_job(mib=mib, parallelism=parallelism, run_seconds=10_000)
    return {**manifest, "metadata": {**manifest["metadata"], "annotations": dict(ELASTIC)}}


def plain(parallelism: int) -> JsonObject:
    manifest = queued(job("train", requests={"cpu": "1"}, parallelism=parallelism, run_seconds=10_000))
    return {**manifest, "metadata": {**manifest["metadata"], "annotations": dict(ELASTIC)}}


def live(system: System) -> JsonObject:
    found = system.client.get(JOBS, "team", "train")
    assert found is not None
    return found


def replicas(system: System) -> dict[str, int]:
    """Live pods: name -> replica."""
    return {
        pod["metadata"]["name"]: int(pod["metadata"]["annotations"]["kueueweb.io/replica"])
        for pod in system.pods()
        if "nodeName" in pod["spec"]
    }


def held(system: System) -> list[int]:
    return sorted(DeviceAllocation.objects.values_list("replica", flat=True))


def slots() -> int:
    return sum(Device.objects.values_list("used_slots", flat=True))


def holder() -> Workload:
    return Workload.objects.exclude(status="Finished").get(quota_reserved_at__isnull=False)


def delete_first_when_shrinking(system: System, replica: int) -> None:
    """Make a pod the one that the Job controller ends first: it is not ready."""
    name = next(name for name, number in replicas(system).items() if number == replica)
    condition = {"type": "Ready", "status": "False"}
    system.client.patch(PODS, "team", name, {"status": {"conditions": [condition]}}, subresource="status")


def turns(system: System, count: int = 4) -> None:
    for _ in range(count):
        system.turn()


def test_a_slice_is_held_until_its_pod_is_gone(system: System) -> None:
    system.apply(elastic(4))
    turns(system)
    assert (held(system), slots()) == ([0, 1, 2, 3], 4)
    system.apply(elastic(2))
    system.engine.run()
    pod_set = PodSet.objects.get()
    assert (pod_set.count, pod_set.admitted_count) == (2, 2), "the quota is free"
    assert (held(system), slots()) == ([0, 1, 2, 3], 4), "the pods run still"
    system.push()
    assert live(system)["spec"]["parallelism"] == 2
    turns(system)
    assert held(system) == sorted(replicas(system).values())
    assert (len(held(system)), slots()) == (2, 2)


def test_the_replicas_that_the_job_controller_ended_are_given_up(system: System) -> None:
    system.apply(elastic(4))
    turns(system)
    delete_first_when_shrinking(system, 1)
    system.apply(elastic(3))
    turns(system)
    assert sorted(replicas(system).values()) == [0, 2, 3]
    assert (held(system), slots()) == ([0, 2, 3], 3)
    nodes = PodSet.objects.get().nodes
    assert [node is None for node in nodes] == [False, True, False, False]
    placement = Engine(system.cluster, "next", clock=system.now).world.workload(holder().key)
    assert placement is not None
    assert placement.placement is not None
    assert [pod.replica for pod in placement.placement.pods] == [0, 2, 3]


def test_it_grows_into_the_numbers_that_are_free(system: System) -> None:
    system.apply(elastic(4))
    turns(system)
    delete_first_when_shrinking(system, 1)
    system.apply(elastic(3))
    turns(system)
    before = {
        allocation.replica: (allocation.node_id, allocation.device_uuid)
        for allocation in DeviceAllocation.objects.all()
    }
    system.apply(elastic(5))
    turns(system)
    assert live(system)["spec"]["parallelism"] == 5
    row = holder()
    assert (row.push_error, row.pushed_sequence) == ("", row.push_sequence)
    assert sorted(replicas(system).values()) == held(system) == [0, 1, 2, 3, 4]
    assert slots() == 5
    after = {
        allocation.replica: (allocation.node_id, allocation.device_uuid)
        for allocation in DeviceAllocation.objects.filter(replica__in=before)
    }
    assert after == before, "pods that run keep their devices"
    told = {pod["metadata"]["labels"]["kueueweb.io/workload-uid"] for pod in system.pods()}
    assert told == {str(row.uid)}
    assert set(Pod.objects.values_list("workload_id", flat=True)) == {row.pk}
    assert row.pods_ready_at is not None
    assert not DeviceAllocation.objects.filter(source="external").exists()


def test_it_shrinks_and_grows_again_before_any_pod_has_gone(system: System) -> None:
    system.apply(elastic(4))
    turns(system)
    system.apply(elastic(2))
    system.engine.run()
    system.apply(elastic(3))
    system.engine.run()
    assert holder().pod_sets.get().admitted_count == 3
    assert held(system) == [0, 1, 2, 3]
    turns(system)
    assert (len(system.pods()), len(held(system)), slots()) == (3, 3, 3)
    assert held(system) == sorted(replicas(system).values())


def test_an_eviction_while_it_shrinks_frees_everything(system: System) -> None:
    system.apply(elastic(4))
    turns(system)
    system.apply(elastic(2))
    system.engine.run()
    row = holder()
    hold(system.cluster, [(row.namespace, row.name)], actor="alice")
    turns(system)
    assert (system.pods(), held(system), slots()) == ([], [], 0)


def test_others_get_what_it_gave_up(system: System) -> None:
    system.apply(elastic(4, mib=30_000))
    turns(system)
    system.apply(gpu_job("other", mib=30_000, run_seconds=1_000))
    turns(system)
    assert system.workload("other").status == "Pending"
    system.apply(elastic(3, mib=30_000))
    turns(system)
    assert system.workload("other").status == "Admitted"
    holders = DeviceAllocation.objects.values_list("workload__job__name", flat=True)
    assert sorted(holders) == ["other", "train", "train", "train"]


def test_a_job_without_devices_grows_and_shrinks(system: System) -> None:
    system.apply(plain(2))
    turns(system)
    system.apply(plain(4))
    turns(system)
    assert (live(system)["spec"]["parallelism"], len(system.pods())) == (4, 4)
    assert Pod.objects.filter(workload=holder()).count() == 4
    system.apply(plain(1))
    turns(system)
    assert (live(system)["spec"]["parallelism"], len(system.pods())) == (1, 1)
    assert PodSet.objects.get(workload=holder()).resource_usage == {"cpu": 1000}


class TestFound:
    """Elastic jobs that others made in the cluster, and resize there."""

    def create(self, system: System, manifest: JsonObject) -> None:
        system.client.create(JOBS, {**manifest, "spec": {**manifest["spec"], "suspend": True}})
        system.watcher.resync()
        turns(system)

    def scale(self, system: System, parallelism: int) -> None:
        system.client.patch(JOBS, "team", "train", {"spec": {"parallelism": parallelism}})
        turns(system)

    def test_it_shrinks(self, system: System) -> None:
        self.create(system, elastic(4))
        assert held(system) == [0, 1, 2, 3]
        self.scale(system, 2)
        assert PodSet.objects.get().admitted_count == 2
        assert held(system) == sorted(replicas(system).values())
        assert slots() == 2

    @pytest.mark.parametrize("make", [elastic, plain])
    def test_more_pods_wait_at_the_gate_until_they_are_admitted(
        self, system: System, make: Callable[[int], JsonObject]
    ) -> None:
        self.create(system, make(2))
        self.scale(system, 200)
        assert live(system)["spec"]["parallelism"] == 200, "its size is its owner's"
        assert len([pod for pod in system.pods() if "nodeName" in pod["spec"]]) == 2
        assert sorted(Workload.objects.values_list("status", flat=True)) == ["Admitted", "Pending"]
        self.scale(system, 4)
        assert len([pod for pod in system.pods() if "nodeName" in pod["spec"]]) == 4
        assert sorted(Workload.objects.values_list("status", flat=True)) == ["Admitted", "Finished"]

    def test_others_stop_and_start_again_with_their_new_size(self, system: System) -> None:
        manifest = elastic(2)
        manifest["metadata"]["annotations"] = {}
        self.create(system, manifest)
        before = {pod["metadata"]["uid"] for pod in system.pods()}
        self.scale(system, 1)
        turns(system)
        assert PodSet.objects.get().admitted_count == 1
        (pod,) = [pod for pod in system.pods() if pod["status"]["phase"] == "Running"]
        assert pod["metadata"]["uid"] not in before


class TestChecks:
    """A slice that took over and waits for an admission check: the job goes on as it was."""

    def grow(self, system: System) -> Workload:
        system.apply(elastic(2))
        turns(system)
        check = {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "AdmissionCheck", "metadata": {"name": "billing"}}
        system.apply({**check, "spec": {"controllerName": "example.com/billing"}})
        ClusterQueue.objects.update(admission_checks=[{"name": "billing", "onFlavors": []}])
        system.apply(elastic(3))
        turns(system)
        row = holder()
        assert row.status == "QuotaReserved"
        assert (live(system)["spec"]["suspend"], live(system)["spec"]["parallelism"]) == (False, 2)
        assert (sorted(replicas(system).values()), held(system)) == ([0, 1], [0, 1, 2])
        return row

    def answer(self, system: System, row: Workload, state: AdmissionCheckStatus) -> None:
        now = datetime.fromtimestamp(system.now(), UTC)
        set_check_state(system.cluster, "team", row.name, "billing", CheckAnswer(state), actor="billing", now=now)

    def test_more_pods_come_when_it_is_ready(self, system: System) -> None:
        self.answer(system, self.grow(system), AdmissionCheckStatus.READY)
        turns(system)
        assert (holder().status, live(system)["spec"]["parallelism"]) == ("Admitted", 3)
        assert sorted(replicas(system).values()) == held(system) == [0, 1, 2]

    def test_its_pods_must_stop_before_anything_is_free(self, system: System) -> None:
        row = self.grow(system)
        self.answer(system, row, AdmissionCheckStatus.REJECTED)
        system.engine.run()
        row.refresh_from_db()
        assert (row.status, held(system)) == ("Evicted", [0, 1, 2])
        turns(system)
        assert (system.pods(), held(system), slots()) == ([], [], 0)
        assert live(system)["spec"]["suspend"] is True


def test_to_no_pods_and_back(system: System) -> None:
    system.apply(elastic(2))
    turns(system)
    system.apply(elastic(0))
    turns(system)
    assert (system.pods(), held(system), slots()) == ([], [], 0)
    assert holder().status == "Admitted"
    system.apply(elastic(2))
    turns(system)
    assert (held(system), len(replicas(system)), slots()) == ([0, 1], 2, 2)


def test_a_pod_deleted_during_its_relabelling_does_not_stop_the_sweep(system: System) -> None:
    system.apply(elastic(2))
    turns(system)
    system.apply(elastic(3))
    system.engine.run()
    pods = system.pods()
    system.client.delete(PODS, "team", pods[0]["metadata"]["name"], uid=pods[0]["metadata"]["uid"])
    system.advance(60)
    named = handed_over(system.cluster, system.client, pods)
    assert {pod["metadata"]["labels"]["kueueweb.io/workload-uid"] for pod in named} == {str(holder().uid)}
