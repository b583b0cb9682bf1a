"""ResourceQuotas, LimitRanges and RuntimeClasses as rows: who waits for them, what is said, and what an edit does."""

from __future__ import annotations

import pytest

from accounts.models import Cluster
from gpus.models import Device, DeviceAllocation
from queues.models import LimitRange, PodSet, ResourceQuota, RuntimeClass, Workload
from queues.services.workloads import record_finished
from tests.engines import start, statuses
from tests.factories import START, make_cluster, make_cluster_queue, make_node, make_workload

pytestmark = pytest.mark.django_db(transaction=True)

GPU = {"nvidia.com/gpu": "1", "nvidia.com/gpumem": "10000"}


@pytest.fixture
def cluster() -> Cluster:
    return make_cluster()


@pytest.fixture
def gpus(cluster: Cluster) -> Cluster:
    make_cluster_queue(cluster, quotas={"default-flavor": {"nvidia.com/gpu": 8, "nvidia.com/gpumem": 10**6}})
    make_node(cluster, "n1", [{}, {}, {}])
    return cluster


def quota(cluster: Cluster, mib: int | str) -> ResourceQuota:
    return ResourceQuota.objects.create(
        cluster=cluster, namespace="team", name="gpus", created_at=START, hard={"limits.nvidia.com/gpumem": str(mib)}
    )


def limit_range(cluster: Cluster, **item: object) -> LimitRange:
    limits = [{"type": "Container", **item}]
    return LimitRange.objects.create(cluster=cluster, namespace="team", name="sizes", created_at=START, limits=limits)


def message(name: str) -> tuple[str, str]:
    row = Workload.objects.get(name=name)
    return row.reason, row.message


class TestResourceQuota:
    def test_a_workload_waits_for_its_namespace_s_quota_and_gets_it_back(self, gpus: Cluster) -> None:
        quota(gpus, 15_000)
        make_workload(gpus, "one", GPU)
        make_workload(gpus, "two", GPU)
        engine = start(gpus)
        engine.run()
        assert statuses() == {"one": "Admitted", "two": "Pending"}
        reason, said = message("two")
        assert reason == "WaitingForDevices"
        assert "3/3 ResourceQuotaNotFit" in said
        assert "ResourceQuota team/gpus allows its namespace 15000 of limits.nvidia.com/gpumem: 10000 are used" in said
        record_finished(gpus, [("team", "one")])
        engine.run()
        assert statuses()["two"] == "Admitted"

    @pytest.mark.parametrize("deleted", [False, True])
    def test_an_edit_of_the_quota_lets_a_workload_in(self, gpus: Cluster, deleted: bool) -> None:
        row = quota(gpus, 1)
        make_workload(gpus, "one", GPU)
        engine = start(gpus)
        engine.run()
        assert statuses() == {"one": "Pending"}
        if deleted:
            row.delete()
        else:
            ResourceQuota.objects.update(hard={"limits.nvidia.com/gpumem": "10k"})
        engine.run()
        assert statuses() == {"one": "Admitted"}

    def test_a_new_leader_counts_what_is_held(self, gpus: Cluster) -> None:
        quota(gpus, 15_000)
        make_workload(gpus, "one", GPU)
        start(gpus).run()
        make_workload(gpus, "two", GPU)
        start(gpus).run()
        assert statuses() == {"one": "Admitted", "two": "Pending"}

    def test_what_others_hold_in_the_namespace_counts(self, gpus: Cluster) -> None:
        quota(gpus, 15_000)
        device = Device.objects.get(uuid="n1-0")
        found = DeviceAllocation.objects.create(
            cluster=gpus, node=device.node, device=device, device_uuid=device.uuid, source="external", namespace="team",
            memory_mib=6000, cores_percent=0, created_at=START,
        )  # fmt: skip
        make_workload(gpus, "one", GPU)
        engine = start(gpus)
        engine.run()
        assert statuses() == {"one": "Pending"}
        found.delete()
        engine.run()
        assert statuses() == {"one": "Admitted"}

    def test_an_edit_between_deciding_and_commit_is_seen(self, gpus: Cluster) -> None:
        make_workload(gpus, "one", GPU)
        run = start(gpus, meanwhile=lambda: quota(gpus, 1)).run()
        assert run.refused == 1
        assert statuses() == {"one": "Pending"}


class TestLimitRange:
    def test_defaults_are_charged_and_an_edit_leaves_the_admitted_alone(self, cluster: Cluster) -> None:
        make_cluster_queue(cluster)
        limit_range(cluster, default={"cpu": "8"}, defaultRequest={"cpu": "6"})
        for name in ("one", "two"):
            make_workload(cluster, name, {"memory": "1"})
        PodSet.objects.update(template={"spec": {"containers": [{"name": "main"}]}})
        engine = start(cluster)
        engine.run()
        assert statuses() == {"one": "Admitted", "two": "Pending"}
        assert PodSet.objects.get(workload__name="one").resource_usage == {"cpu": 6000}
        LimitRange.objects.update(limits=[{"type": "Container", "defaultRequest": {"cpu": "3"}}])
        engine.run()
        assert statuses()["two"] == "Admitted"
        usage = dict(PodSet.objects.values_list("workload__name", "resource_usage"))
        assert usage == {"one": {"cpu": 6000}, "two": {"cpu": 3000}}

    def test_out_of_bounds_waits_as_misconfigured_until_the_bounds_move(self, cluster: Cluster) -> None:
        make_cluster_queue(cluster)
        row = limit_range(cluster, max={"cpu": "2"}, default={"cpu": "2"}, defaultRequest={"cpu": "2"})
        make_workload(cluster, "one", {"cpu": "3"})
        engine = start(cluster)
        engine.run()
        reason, said = message("one")
        assert reason == "Misconfigured"
        assert said == (
            "didn't satisfy LimitRange constraints: pod set main: container main requests more cpu than the maximum 2 "
            "of LimitRange team/sizes"
        )
        row.delete()
        engine.run()
        assert statuses() == {"one": "Admitted"}


def test_an_overhead_is_charged(cluster: Cluster) -> None:
    make_cluster_queue(cluster)
    RuntimeClass.objects.create(
        cluster=cluster, name="kata", handler="kata", pod_overhead={"cpu": "10"}, created_at=START
    )
    make_workload(cluster, "one")
    template = PodSet.objects.get().template
    PodSet.objects.update(template={"spec": {**template["spec"], "runtimeClassName": "kata"}})
    engine = start(cluster)
    engine.run()
    assert message("one")[0] == "ExceedsMaxQuota"
    RuntimeClass.objects.update(pod_overhead={"cpu": "1"})
    engine.run()
    assert statuses() == {"one": "Admitted"}
