"""The engine and devices: slices of named devices come with the quota, move with it and go with it."""

from __future__ import annotations

import pytest

from accounts.models import Cluster
from gpus.models import Device, DeviceAllocation
from gpus.services.cordon import close_device, close_node
from gpus.services.counters import recount
from queues.models import PodSet, Workload, WorkloadEvent
from queues.services.workloads import record_finished, requeue
from tests.engines import reasons, start, statuses
from tests.factories import START, make_cluster, make_cluster_queue, make_node, make_workload

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def cluster() -> Cluster:
    return make_cluster()


class TestDevices:
    GPU = {"nvidia.com/gpu": "1", "nvidia.com/gpumem": "10000"}

    @pytest.fixture
    def gpus(self, cluster: Cluster) -> Cluster:
        make_cluster_queue(cluster, quotas={"default-flavor": {"nvidia.com/gpu": 8, "nvidia.com/gpumem": 10**6}})
        make_node(cluster, "n1", [{}, {}])
        return cluster

    def test_a_slice_of_a_named_device_comes_with_the_quota(self, gpus: Cluster) -> None:
        make_workload(gpus, "one", self.GPU)
        start(gpus).run()
        held = DeviceAllocation.objects.get()
        assert (held.workload.name if held.workload else "", held.container, held.memory_mib) == ("one", "main", 10_000)
        assert held.device is not None
        assert (held.device.used_slots, held.device.used_memory_mib) == (1, 10_000)
        assert PodSet.objects.get().nodes == ["n1"]

    def test_workloads_that_ended_without_a_leader_release_their_slices(self, gpus: Cluster) -> None:
        make_workload(gpus, "one", self.GPU)
        start(gpus).run()
        record_finished(gpus, [("team", "one")])
        start(gpus).run()
        assert not DeviceAllocation.objects.exists()
        assert set(Device.objects.values_list("used_slots", "used_memory_mib")) == {(0, 0)}

    def test_what_a_replica_gave_up_before_the_end_is_counted_no_more(self, gpus: Cluster) -> None:
        """The slices of a replica that was gone when its workload ended were deleted, and their counters stayed."""
        make_workload(gpus, "one", self.GPU)
        engine = start(gpus)
        engine.run()
        PodSet.objects.update(nodes=[None])
        record_finished(gpus, [("team", "one")])
        engine.run()
        assert not DeviceAllocation.objects.exists()
        assert set(Device.objects.values_list("used_slots", "used_memory_mib")) == {(0, 0)}

    def test_counters_follow_from_what_is_stored(self, gpus: Cluster) -> None:
        """A counter that was wrong stayed wrong by as much forever."""
        Device.objects.update(used_slots=3, used_memory_mib=500)
        make_workload(gpus, "one", self.GPU)
        start(gpus).run()
        held = DeviceAllocation.objects.select_related("device").get().device
        assert held is not None
        assert (held.used_slots, held.used_memory_mib) == (1, 10_000)

    def test_init_containers_count_as_hami_counts_them(self, gpus: Cluster) -> None:
        """A pod holds the larger of its largest init container and the sum of the others."""
        make_workload(gpus, "one", self.GPU)
        start(gpus).run()
        pod_set, slice_ = PodSet.objects.get(), DeviceAllocation.objects.get()
        pod_set.template["spec"]["initContainers"] = [{"name": "a"}, {"name": "b"}]
        pod_set.save()
        DeviceAllocation.objects.update(container_index=2)
        for index, memory in ((0, 12_000), (1, 8_000)):
            slice_.pk, slice_.container_index, slice_.memory_mib = None, index, memory
            slice_.save()
        recount([slice_.device_id or 0])
        device = Device.objects.get(pk=slice_.device_id or 0)
        assert (device.used_slots, device.used_memory_mib) == (1, 12_000)

    def test_quota_there_but_no_device(self, gpus: Cluster) -> None:
        for name in ("one", "two", "three"):
            make_workload(gpus, name, self.GPU)
        engine = start(gpus)
        engine.run()
        assert statuses() == {"one": "Admitted", "two": "Admitted", "three": "Pending"}
        three = Workload.objects.get(name="three")
        assert three.reason == "WaitingForDevices"
        assert "n1" in three.message
        assert "2/2 CardInsufficientMemory" in three.message
        record_finished(gpus, [("team", "one")])
        engine.run()
        assert statuses()["three"] == "Admitted"
        assert sorted(Device.objects.values_list("used_memory_mib", flat=True)) == [10_000, 10_000]

    def test_a_new_leader_knows_who_holds_which_slice(self, gpus: Cluster) -> None:
        for name in ("one", "two"):
            make_workload(gpus, name, self.GPU)
        start(gpus).run()
        make_workload(gpus, "three", self.GPU)
        start(gpus).run()
        assert statuses()["three"] == "Pending"
        assert Device.objects.filter(used_memory_mib=10_000).count() == 2

    def test_a_slice_that_others_hold_is_respected(self, gpus: Cluster) -> None:
        device = Device.objects.get(uuid="n1-0")
        DeviceAllocation.objects.create(
            cluster=gpus, node=device.node, device=device, device_uuid=device.uuid, source="external",
            memory_mib=12_000, cores_percent=0, created_at=START,
        )  # fmt: skip
        Device.objects.filter(pk=device.pk).update(external_memory_mib=12_000, external_slots=1)
        make_workload(gpus, "one", self.GPU)
        make_workload(gpus, "two", self.GPU)
        start(gpus).run()
        assert statuses() == {"one": "Admitted", "two": "Pending"}
        assert DeviceAllocation.objects.get(source="decided").device_uuid == "n1-1"

    def test_a_workload_admitted_before_devices_were_known_is_placed_later(self, cluster: Cluster) -> None:
        make_cluster_queue(cluster, quotas={"default-flavor": {"nvidia.com/gpu": 8, "nvidia.com/gpumem": 10**6}})
        make_workload(cluster, "early", self.GPU)
        engine = start(cluster)
        engine.run()
        assert statuses() == {"early": "Admitted"}
        make_node(cluster, "n1", [{}])
        engine.run()
        assert statuses() == {"early": "Admitted"}
        assert DeviceAllocation.objects.get().device_uuid == "n1-0"
        assert Workload.objects.get().eviction_counts[0]["reason"] == "DevicesNotAssigned"

    def test_released_and_admitted_elsewhere_within_one_batch(self, gpus: Cluster) -> None:
        """Its slices are those of the new place, and the old devices are free."""
        make_workload(gpus, "one", self.GPU)
        engine = start(gpus)
        engine.run()
        before = DeviceAllocation.objects.get().device_uuid
        node = Device.objects.get(uuid=before)
        Device.objects.filter(pk=node.pk).update(cordoned=True)
        Workload.objects.update(unhealthy_nodes=["n1"])
        engine.run()
        held = DeviceAllocation.objects.get()
        assert held.device_uuid != before
        assert dict(Device.objects.values_list("uuid", "used_memory_mib")) == {before: 0, held.device_uuid: 10_000}

    def test_a_replaced_slice_hands_over_quota_and_devices(self, gpus: Cluster) -> None:
        make_workload(gpus, "small", self.GPU)
        engine = start(gpus)
        engine.run()
        before = DeviceAllocation.objects.get().device_uuid
        replaces = {"kueue.x-k8s.io/workload-slice-replacement-for": "team/small"}
        make_workload(gpus, "large", self.GPU, count=2, annotations=replaces)
        engine.run()
        assert statuses() == {"small": "Finished", "large": "Admitted"}
        assert reasons()["small"] == "WorkloadSliceReplaced"
        assert WorkloadEvent.objects.get(workload_name="small", reason="WorkloadSliceReplaced").type == "Normal"
        held = DeviceAllocation.objects.order_by("replica")
        assert [allocation.workload.name for allocation in held if allocation.workload] == ["large", "large"]
        assert held[0].device_uuid == before
        assert sorted(Device.objects.values_list("used_memory_mib", flat=True)) == [10_000, 10_000]

    def test_who_is_requeued_stops_once_and_comes_back(self, gpus: Cluster) -> None:
        for name in ("one", "waits"):
            make_workload(gpus, name, self.GPU, priority=10 if name == "waits" else 0)
        Workload.objects.filter(name="waits").update(active=False)
        engine = start(gpus)
        engine.run()
        assert statuses() == {"one": "Admitted", "waits": "Pending"}
        assert requeue(gpus, [("team", "one"), ("team", "waits"), ("team", "gone")], actor="alice") == [("team", "one")]
        assert requeue(gpus, [("team", "one")], actor="bob") == []
        engine.run()
        row = Workload.objects.get(name="one")
        assert row.eviction_counts == [{"reason": "RequeueRequested", "underlyingCause": "", "count": 1}]
        assert (row.status, row.requeue_requested_by) == ("Admitted", "")
        again = start(gpus)
        for leader in (engine, again):
            Workload.objects.filter(name="one").update(priority=row.priority + leader.epoch)
        again.run()
        assert Workload.objects.get(name="one").eviction_counts == row.eviction_counts
        assert "Requeued by alice" in set(WorkloadEvent.objects.values_list("message", flat=True))

    def test_a_drained_device_is_emptied_and_a_drained_node_too(self, gpus: Cluster) -> None:
        make_node(gpus, "n2", [{}])
        make_workload(gpus, "one", self.GPU)
        engine = start(gpus)
        engine.run()
        first = DeviceAllocation.objects.get().device_uuid
        close_device(gpus.pk, first, cordoned=True, draining=True)
        engine.run()
        second = DeviceAllocation.objects.select_related("node").get()
        assert second.device_uuid != first
        assert Workload.objects.get().eviction_counts == [{"reason": "Drained", "underlyingCause": "", "count": 1}]
        close_node(gpus.pk, second.node.name, cordoned=True, draining=True)
        engine.run()
        assert DeviceAllocation.objects.get().device_uuid not in {first, second.device_uuid}
        assert statuses() == {"one": "Admitted"}
