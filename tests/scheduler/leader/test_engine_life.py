"""The engine and a workload's life: what rows, events and counts say of holding, gates and deactivation."""

from __future__ import annotations

import pytest

from accounts.models import Cluster
from gpus.models import DeviceAllocation
from queues.models import Job, Workload, WorkloadEvent
from queues.services.workloads import cancel, hold, record_stopped, release
from scheduler.models import Decision
from tests.engines import reasons, start, statuses
from tests.factories import START, make_cluster, make_cluster_queue, make_node, make_workload

pytestmark = pytest.mark.django_db(transaction=True)

GPU = {"cpu": "1", "nvidia.com/gpu": "1", "nvidia.com/gpumem": "1000"}
GPU_QUOTAS = {"default-flavor": {"cpu": 1000, "nvidia.com/gpu": 8, "nvidia.com/gpumem": 64_000}}


@pytest.fixture
def cluster() -> Cluster:
    return make_cluster()


def give_job(name: str) -> None:
    """From here on something of the workload runs in the cluster."""
    workload = Workload.objects.get(name=name)
    job = Job.objects.create(
        cluster=workload.cluster, namespace="team", name=name, kind="Job", manifest={}, created_at=START
    )
    Workload.objects.filter(pk=workload.pk).update(job=job)


def condition(name: str, type_: str) -> tuple[str, str]:
    row = Workload.objects.get(name=name)
    found = next(entry for entry in row.conditions if entry["type"] == type_)
    return found["status"], found["reason"]


def told(name: str) -> list[tuple[str, str]]:
    rows = WorkloadEvent.objects.filter(workload_name=name, actor="scheduler").order_by("id")
    return list(rows.values_list("reason", "type"))


class TestDeactivation:
    def test_a_waiting_workload_is_counted_as_evicted_and_comes_back(self, cluster: Cluster) -> None:
        make_cluster_queue(cluster, quotas={"default-flavor": {"cpu": 1000}})
        make_workload(cluster, "one")
        make_workload(cluster, "two")
        engine = start(cluster)
        engine.run()
        hold(cluster, [("team", "two")], actor="alice")
        engine.run()
        assert (statuses()["two"], reasons()["two"]) == ("Pending", "Deactivated")
        assert condition("two", "Evicted") == ("True", "Deactivated")
        row = Workload.objects.get(name="two")
        assert row.eviction_counts == [{"reason": "Deactivated", "underlyingCause": "", "count": 1}]
        assert row.pods_stopped_at is None
        assert record_stopped(cluster, [("team", "two")]) == [], "nothing of it ever ran"
        assert not Decision.objects.filter(action="Evict").exists(), "it held nothing"
        release(cluster, [("team", "two")], actor="alice")
        engine.run()
        assert (statuses()["two"], reasons()["two"]) == ("Pending", "WaitingForQuota")
        expected = [("WaitingForQuota", "Warning"), ("Deactivated", "Warning"), ("WaitingForQuota", "Warning")]
        assert told("two") == expected

    def test_quota_alone_is_free_at_once(self, cluster: Cluster) -> None:  # T56b
        make_cluster_queue(cluster, quotas={"default-flavor": {"cpu": 1000}})
        make_workload(cluster, "one")
        engine = start(cluster)
        engine.run()
        give_job("one")
        make_workload(cluster, "two")
        engine.run()
        hold(cluster, [("team", "one")], actor="alice")
        engine.run()
        assert statuses() == {"one": "Evicted", "two": "Admitted"}
        record_stopped(cluster, [("team", "one")])
        engine.run()
        assert (statuses()["one"], reasons()["one"]) == ("Pending", "Deactivated")
        assert start(cluster).world.cluster_queue_status("main").reserving == 1

    def test_one_that_is_reactivated_before_its_pods_stopped_counts_again_until_they_have(
        self, cluster: Cluster
    ) -> None:
        make_cluster_queue(cluster, quotas={"default-flavor": {"cpu": 1000}})
        make_workload(cluster, "one")
        engine = start(cluster)
        engine.run()
        give_job("one")
        hold(cluster, [("team", "one")], actor="alice")
        engine.run()
        release(cluster, [("team", "one")], actor="alice")
        make_workload(cluster, "two", priority=-1)
        engine.run()
        assert statuses() == {"one": "Evicted", "two": "Pending"}
        record_stopped(cluster, [("team", "one")])
        engine.run()
        assert statuses() == {"one": "Admitted", "two": "Pending"}

    def test_a_cancelled_one_gives_quota_alone_back_at_once_and_ends_with_its_pods(self, cluster: Cluster) -> None:
        make_cluster_queue(cluster, quotas={"default-flavor": {"cpu": 1000}})
        make_workload(cluster, "one")
        engine = start(cluster)
        engine.run()
        give_job("one")
        make_workload(cluster, "two")
        cancel(cluster, [("team", "one")], actor="alice")
        engine.run()
        assert statuses() == {"one": "Evicted", "two": "Admitted"}
        record_stopped(cluster, [("team", "one")])
        engine.run()
        assert statuses() == {"one": "Finished", "two": "Admitted"}

    def test_devices_are_free_when_the_pods_stopped(self, cluster: Cluster) -> None:
        make_cluster_queue(cluster, quotas=GPU_QUOTAS)
        make_node(cluster, "node-1", [{}], allocatable={"cpu": 8000, "pods": 10})
        make_workload(cluster, "one", GPU)
        engine = start(cluster)
        engine.run()
        assert DeviceAllocation.objects.filter(workload__name="one").count() == 1
        give_job("one")
        make_workload(cluster, "two", GPU)
        hold(cluster, [("team", "one")], actor="alice")
        engine.run()
        assert statuses() == {"one": "Evicted", "two": "Pending"}
        record_stopped(cluster, [("team", "one")])
        engine.run()
        assert statuses() == {"one": "Pending", "two": "Admitted"}


def test_closed_preemption_gates_are_read_and_said(cluster: Cluster) -> None:
    make_cluster_queue(cluster, quotas={"default-flavor": {"cpu": 1000}}, within_cluster_queue="LowerPriority")
    make_workload(cluster, "low")
    engine = start(cluster)
    engine.run()
    make_workload(cluster, "gated", priority=10, preemption_gates=["example.com/later"])
    engine.run()
    assert (statuses()["gated"], reasons()["gated"]) == ("Pending", "AdmissionGated")
    assert condition("gated", "BlockedOnPreemptionGates") == ("True", "PreemptionGated")
    Workload.objects.filter(name="gated").update(preemption_gates=[])
    engine.run()
    assert statuses() == {"low": "Pending", "gated": "Admitted"}
    assert condition("gated", "BlockedOnPreemptionGates") == ("False", "QuotaReserved")


def test_a_preemption_has_the_events_of_kueue(cluster: Cluster) -> None:
    make_cluster_queue(cluster, quotas={"default-flavor": {"cpu": 1000}}, within_cluster_queue="LowerPriority")
    make_workload(cluster, "low")
    engine = start(cluster)
    engine.run()
    make_workload(cluster, "high", priority=10)
    engine.run()
    assert told("low") == [
        ("QuotaReserved", "Normal"), ("Admitted", "Normal"), ("EvictedDueToPreempted", "Normal"),
        ("Preempted", "Normal"), ("QuotaReleased", "Normal"), ("WaitingForQuota", "Warning"),
    ]  # fmt: skip
    assert told("high") == [
        ("PreemptedWorkload", "Normal"), ("WaitingForPreemptedWorkloads", "Warning"), ("QuotaReserved", "Normal"),
        ("Admitted", "Normal"),
    ]  # fmt: skip
    preempted = WorkloadEvent.objects.get(reason="Preempted").message
    assert preempted.endswith(
        "; preemptor effective priority: 10 (base: 10, boost: 0); preemptee effective priority: 0 (base: 0, boost: 0)"
    )
    message = WorkloadEvent.objects.get(workload_name="high", reason="QuotaReserved").message
    assert message == (
        "Quota reserved in ClusterQueue main, wait time since queued was 999s; main (1): cpu in default-flavor"
    )


def test_messages_are_as_long_as_kubernetes_keeps_them(cluster: Cluster) -> None:
    make_cluster_queue(cluster)
    gates = ",".join(f"example.com/gate-{number}" for number in range(2500))
    make_workload(cluster, "gated", annotations={"kueue.x-k8s.io/admission-gated-by": gates})
    start(cluster).run()
    message = WorkloadEvent.objects.get(reason="AdmissionGated").message
    assert (len(message), message[-1]) == (1024, "…")
    reserved = next(each for each in Workload.objects.get().conditions if each["type"] == "QuotaReserved")
    assert (len(reserved["message"]), reserved["message"][-1]) == (32_768, "…")
