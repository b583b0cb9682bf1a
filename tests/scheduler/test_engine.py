"""The engine on a real database: it decides what rows say, and what moves meanwhile never gets past it."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest
from django.db import connection, transaction

from gpus.models import Device, DeviceAllocation
from gpus.services.cordon import close_device, close_node
from queues.models import Cluster, FlavorQuota, PodSet, ResourceGroup, Workload, WorkloadEvent
from queues.services.workloads import cancel, hold, record_finished, record_stopped, release
from scheduler.engine import Engine
from scheduler.lease import LeaseLost, begin_epoch
from scheduler.models import Change, Decision, SchedulingCycle
from scheduler.store.batch import Batch
from scheduler.store.saving import save
from tests.factories import START, make_cluster, make_cluster_queue, make_cohort, make_node, make_workload

pytestmark = pytest.mark.django_db(transaction=True)

NOW = START.timestamp() + 1000


@pytest.fixture
def cluster() -> Cluster:
    return make_cluster()


def start(cluster: Cluster, *, meanwhile: Callable[[], object] | None = None) -> Engine:
    """An engine whose first batch finds that something happened between deciding and COMMIT."""
    pending = [meanwhile] if meanwhile else []

    def save_after_that(batch: Batch) -> None:
        if batch and pending:
            in_another_session(pending.pop())
        save(batch)

    return Engine(cluster, "test", clock=lambda: NOW, save=save_after_that)


def in_another_session(function: Callable[[], object]) -> None:
    """Run with a connection of its own, as another process would."""

    def run() -> None:
        try:
            function()
        finally:
            connection.close()

    thread = threading.Thread(target=run)
    thread.start()
    thread.join(timeout=30)
    assert not thread.is_alive()


def statuses() -> dict[str, str]:
    return dict(Workload.objects.values_list("name", "status"))


def reasons() -> dict[str, str]:
    return dict(Workload.objects.values_list("name", "reason"))


def circling(cluster: Cluster) -> None:
    """Three workloads that would preempt each other for ever."""
    policy = {
        "within_cluster_queue": "LowerPriority", "reclaim_within_cohort": "Any",
        "borrow_within_cohort_policy": "LowerPriority", "cohort_name": "all",
    }  # fmt: skip
    cohort = make_cohort(cluster, "all")
    make_cluster_queue(cluster, "q2", {"default-flavor": {"cpu": 4000}}, local_queue="q2", **policy)
    make_cluster_queue(cluster, "q0", {"default-flavor": {"cpu": 0}}, local_queue="q0", **policy)
    group = ResourceGroup.objects.create(
        cohort=cohort, position=0, covered_resources=["cpu"], flavors=["default-flavor"]
    )
    FlavorQuota.objects.create(resource_group=group, flavor="default-flavor", resource="cpu", nominal_quota=2000)
    make_workload(cluster, "x", {"cpu": "3"}, queue_name="q0", priority=100)
    make_workload(cluster, "l", {"cpu": "4"}, queue_name="q2", priority=50)
    make_workload(cluster, "h", {"cpu": "6"}, queue_name="q2", priority=100)


class TestDeciding:
    def test_it_admits_what_fits_and_says_why_the_rest_waits(self, cluster: Cluster) -> None:
        make_cluster_queue(cluster, quotas={"default-flavor": {"cpu": 3000}})
        for name in ("one", "two", "three"):
            make_workload(cluster, name, {"cpu": "2" if name == "two" else "1"})
        make_workload(cluster, "huge", {"cpu": "4"})
        run = start(cluster).run()
        assert (run.admitted, run.refused, run.more) == (2, 0, False)
        assert statuses() == {"one": "Admitted", "two": "Admitted", "three": "Pending", "huge": "Pending"}
        assert reasons() == {
            "one": "Admitted", "two": "Admitted", "three": "WaitingForQuota", "huge": "ExceedsMaxQuota"
        }  # fmt: skip
        two = Workload.objects.get(name="two")
        assert (two.cluster_queue_name, two.admitted_at.timestamp() if two.admitted_at else None) == ("main", NOW)
        pod_set = PodSet.objects.get(workload=two)
        assert (pod_set.admitted_count, pod_set.flavors, pod_set.resource_usage) == (
            1, {"cpu": "default-flavor"}, {"cpu": 2000}
        )  # fmt: skip
        assert {condition["type"]: condition["status"] for condition in two.conditions} == {
            "QuotaReserved": "True", "Admitted": "True"
        }  # fmt: skip

    def test_it_logs_events_decisions_and_cycles_and_clears_the_notes(self, cluster: Cluster) -> None:
        make_cluster_queue(cluster)
        make_workload(cluster, "one")
        start(cluster).run()
        assert list(WorkloadEvent.objects.values_list("reason", "actor")) == [
            ("QuotaReserved", "scheduler"), ("Admitted", "scheduler")
        ]  # fmt: skip
        decision = Decision.objects.get()
        assert (decision.action, decision.workload_name, decision.cluster_queue_name) == ("Admit", "one", "main")
        assert decision.detail["pod_sets"] == [{"name": "main", "count": 1, "flavors": {"cpu": "default-flavor"}}]
        assert SchedulingCycle.objects.get().admitted == 1
        assert not Change.objects.exists()

    def test_a_second_run_writes_nothing(self, cluster: Cluster) -> None:
        make_cluster_queue(cluster, quotas={"default-flavor": {"cpu": 1000}})
        make_workload(cluster, "one")
        make_workload(cluster, "two")
        engine = start(cluster)
        engine.run()
        before = (Decision.objects.count(), WorkloadEvent.objects.count())
        engine.run()
        assert (Decision.objects.count(), WorkloadEvent.objects.count()) == before

    def test_it_follows_what_happens(self, cluster: Cluster) -> None:
        make_cluster_queue(cluster, quotas={"default-flavor": {"cpu": 1000}})
        make_workload(cluster, "one")
        make_workload(cluster, "two")
        engine = start(cluster)
        engine.run()
        record_finished(cluster, [("team", "one")])
        engine.run()
        assert statuses() == {"one": "Finished", "two": "Admitted"}
        make_workload(cluster, "three")
        FlavorQuota.objects.update(nominal_quota=2000)
        engine.run()
        assert statuses()["three"] == "Admitted"
        Workload.objects.filter(name="two").delete()
        make_workload(cluster, "four")
        engine.run()
        assert statuses()["four"] == "Admitted"

    def test_a_new_leader_goes_on_where_the_old_one_stopped(self, cluster: Cluster) -> None:
        make_cluster_queue(cluster, quotas={"default-flavor": {"cpu": 2000}})
        make_workload(cluster, "one")
        start(cluster).run()
        make_workload(cluster, "two")
        make_workload(cluster, "three")
        start(cluster).run()
        assert statuses() == {"one": "Admitted", "two": "Admitted", "three": "Pending"}

    def test_a_held_workload_stops_and_comes_back(self, cluster: Cluster) -> None:
        make_cluster_queue(cluster)
        make_workload(cluster, "one")
        engine = start(cluster)
        engine.run()
        hold(cluster, [("team", "one")], actor="alice")
        engine.run()
        assert (statuses(), reasons()) == ({"one": "Pending"}, {"one": "Deactivated"})
        release(cluster, [("team", "one")], actor="alice")
        engine.run()
        assert statuses() == {"one": "Admitted"}

    def test_a_cancelled_workload_ends_and_frees_its_quota(self, cluster: Cluster) -> None:
        make_cluster_queue(cluster, quotas={"default-flavor": {"cpu": 1000}})
        make_workload(cluster, "one")
        make_workload(cluster, "two")
        engine = start(cluster)
        engine.run()
        cancel(cluster, [("team", "one")], actor="alice")
        engine.run()
        engine.run()
        assert statuses() == {"one": "Finished", "two": "Admitted"}
        assert reasons()["one"] == "Cancelled"


class TestMeanwhile:
    def test_transactions_that_commit_in_reverse_order(self, cluster: Cluster) -> None:
        make_cluster_queue(cluster)
        engine = start(cluster)
        with transaction.atomic():
            make_workload(cluster, "first")  # its note has the smaller id and is not visible yet
            in_another_session(lambda: make_workload(cluster, "second"))
            in_another_session(engine.run)
            in_another_session(lambda: check_statuses({"second": "Admitted"}))
        engine.run()
        assert statuses() == {"first": "Admitted", "second": "Admitted"}
        assert not Change.objects.exists()

    def test_a_transaction_that_rolls_back(self, cluster: Cluster) -> None:
        make_cluster_queue(cluster)
        engine = start(cluster)
        with transaction.atomic():
            make_workload(cluster, "never")
            transaction.set_rollback(True)
        make_workload(cluster, "one")
        assert engine.run().admitted == 1
        assert statuses() == {"one": "Admitted"}

    def test_a_quota_that_was_cut(self, cluster: Cluster) -> None:
        make_cluster_queue(cluster, quotas={"default-flavor": {"cpu": 2000}})
        make_workload(cluster, "one")
        make_workload(cluster, "two")
        engine = start(cluster, meanwhile=lambda: FlavorQuota.objects.update(nominal_quota=1000))
        run = engine.run()
        assert (run.refused, run.admitted) == (1, 1)
        assert statuses() == {"one": "Admitted", "two": "Pending"}

    def test_a_workload_that_was_cancelled(self, cluster: Cluster) -> None:
        make_cluster_queue(cluster, quotas={"default-flavor": {"cpu": 1000}})
        make_workload(cluster, "one")
        make_workload(cluster, "two")
        engine = start(cluster, meanwhile=lambda: cancel(cluster, [("team", "one")], actor="alice"))
        run = engine.run()
        assert run.refused == 1
        assert statuses() == {"one": "Finished", "two": "Admitted"}

    def test_a_preemptor_that_was_cancelled_preempts_nobody(self, cluster: Cluster) -> None:
        make_cluster_queue(cluster, quotas={"default-flavor": {"cpu": 1000}}, within_cluster_queue="LowerPriority")
        make_workload(cluster, "victim")
        start(cluster).run()
        make_workload(cluster, "preemptor", priority=10)
        engine = start(cluster, meanwhile=lambda: cancel(cluster, [("team", "preemptor")], actor="alice"))
        run = engine.run()
        assert (run.refused, run.preempted) == (1, 0)
        assert statuses() == {"victim": "Admitted", "preemptor": "Finished"}
        assert not Decision.objects.filter(action="Preempt").exists()

    def test_an_old_leader_that_was_paused_before_its_commit_writes_nothing(self, cluster: Cluster) -> None:
        make_cluster_queue(cluster)
        make_workload(cluster, "one")
        old = start(cluster, meanwhile=lambda: begin_epoch(cluster.pk, "new"))
        with pytest.raises(LeaseLost):
            old.run()
        assert statuses() == {"one": "Pending"}
        assert not Decision.objects.exists()
        assert start(cluster).run().admitted == 1


def check_statuses(wanted: dict[str, str]) -> None:
    assert statuses() == wanted


class TestPreemption:
    def test_a_victim_keeps_its_quota_until_its_pods_stopped(self, cluster: Cluster) -> None:
        make_cluster_queue(cluster, quotas={"default-flavor": {"cpu": 1000}}, within_cluster_queue="LowerPriority")
        make_workload(cluster, "victim")
        engine = start(cluster)
        engine.run()
        give_job("victim")
        make_workload(cluster, "preemptor", priority=10)
        engine.run()
        assert statuses() == {"victim": "Evicted", "preemptor": "Pending"}
        assert reasons()["preemptor"] == "WaitingForPreemptedWorkloads"
        victim = Workload.objects.get(name="victim")
        assert victim.push_sequence > victim.pushed_sequence
        engine.run()
        assert statuses()["preemptor"] == "Pending"
        record_stopped(cluster, [("team", "victim")])
        engine.run()
        assert statuses() == {"victim": "Pending", "preemptor": "Admitted"}
        assert Workload.objects.get(name="victim").eviction_counts == [
            {"reason": "Preempted", "underlyingCause": "", "count": 1}
        ]

    def test_a_victim_of_which_nothing_runs_stops_at_once(self, cluster: Cluster) -> None:
        make_cluster_queue(cluster, quotas={"default-flavor": {"cpu": 1000}}, within_cluster_queue="LowerPriority")
        make_workload(cluster, "victim")
        engine = start(cluster)
        engine.run()
        make_workload(cluster, "preemptor", priority=10)
        engine.run()
        assert statuses() == {"victim": "Pending", "preemptor": "Admitted"}

    def test_circles_end_however_short_its_batches_are(self, cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("scheduler.engine.BATCH_SECONDS", 0.0)
        circling(cluster)
        engine = start(cluster)
        run = engine.run(run_seconds=30)
        assert (run.more, run.preempted) == (False, 31)
        assert "in circles" in " ".join(Workload.objects.values_list("message", flat=True))

    def test_each_eviction_of_a_batch_is_counted(self, cluster: Cluster) -> None:
        circling(cluster)
        run = start(cluster).run(run_seconds=30)
        counted = [count for row in Workload.objects.all() for count in row.eviction_counts]
        assert {count["reason"] for count in counted} == {"Preempted"}
        assert sum(count["count"] for count in counted) == run.preempted > 2


def give_job(name: str) -> None:
    """From here on something of the workload runs in the cluster."""
    from queues.models import Job

    workload = Workload.objects.get(name=name)
    job = Job.objects.create(
        cluster=workload.cluster, namespace="team", name=name, kind="Job", manifest={}, created_at=START
    )
    Workload.objects.filter(pk=workload.pk).update(job=job)


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

    def test_what_ended_while_nobody_led_gives_its_slices_back(self, gpus: Cluster) -> None:
        make_workload(gpus, "one", self.GPU)
        start(gpus).run()
        record_finished(gpus, [("team", "one")])
        start(gpus).run()
        assert not DeviceAllocation.objects.exists()
        assert set(Device.objects.values_list("used_slots", "used_memory_mib")) == {(0, 0)}

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
            cluster=gpus, node=device.node, device=device, device_uuid=device.uuid, source="found",
            memory_mib=12_000, cores_percent=0, created_at=START,
        )  # fmt: skip
        Device.objects.filter(pk=device.pk).update(found_memory_mib=12_000, found_slots=1)
        make_workload(gpus, "one", self.GPU)
        make_workload(gpus, "two", self.GPU)
        start(gpus).run()
        assert statuses() == {"one": "Admitted", "two": "Pending"}
        assert DeviceAllocation.objects.get(source="decided").device_uuid == "n1-1"

    def test_who_was_admitted_before_devices_were_known_is_placed_when_they_are(self, cluster: Cluster) -> None:
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
        """Its slices are those of the new place, and the old cards are free."""
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
        held = DeviceAllocation.objects.order_by("replica")
        assert [allocation.workload.name for allocation in held if allocation.workload] == ["large", "large"]
        assert held[0].device_uuid == before
        assert sorted(Device.objects.values_list("used_memory_mib", flat=True)) == [10_000, 10_000]

    def test_a_drained_card_is_emptied_and_a_drained_node_too(self, gpus: Cluster) -> None:
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
