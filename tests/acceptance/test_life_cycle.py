"""A workload's life from the first word to the last, and what stays of it when it is gone."""

from __future__ import annotations

import pytest

from gpus.models import DeviceAllocation
from queues.models import ClusterQueue, Workload, WorkloadEvent
from queues.services.workloads import cancel, hold, release
from scheduler.housekeeping.retention import delete_expired_workloads
from scheduler.models import Decision
from tests.acceptance.life import (
    condition,
    configure,
    endless,
    events,
    key,
    one_at_a_time,
    running_pods,
    statuses,
    submit,
)
from tests.cluster_kinds import JOBS
from tests.clusters.system import System, gpu_job
from tests.factories import make_cluster_queue

pytestmark = pytest.mark.django_db(transaction=True)

GATE = "kueue.x-k8s.io/admission-gated-by"


def told(job: str) -> list[tuple[str, str]]:
    """What happened to a job's workload, and who did it; by its name, so also when it is gone."""
    rows = WorkloadEvent.objects.filter(workload_name__startswith=f"job-{job}").order_by("id")
    return list(rows.values_list("reason", "actor"))


def test_every_event_names_its_actor_and_outlives_the_workload(system: System) -> None:
    one_at_a_time(within_cluster_queue="LowerPriority")
    system.submit(gpu_job("first", run_seconds=20))
    system.turn()
    system.turn()
    system.submit(gpu_job("second", run_seconds=20))
    Workload.objects.filter(job__name="second").update(priority=10)
    for _ in range(2):
        system.turn(3)
    for _ in range(5):
        system.turn(20)
    assert statuses() == {"first": "Finished", "second": "Finished"}
    steps = told("first")
    assert steps == [
        ("Created", "alice"),
        ("QuotaReserved", "scheduler"),
        ("Admitted", "scheduler"),
        ("PodsReady", "watcher"),
        ("EvictedDueToPreempted", "scheduler"),
        ("Preempted", "scheduler"),
        ("Stopped", "watcher"),
        ("QuotaReleased", "scheduler"),
        ("WaitingForQuota", "scheduler"),
        ("QuotaReserved", "scheduler"),
        ("Admitted", "scheduler"),
        ("PodsReady", "watcher"),
        ("Ending", "watcher"),
        ("Finished", "watcher"),
    ]
    rows = WorkloadEvent.objects.filter(workload_name__startswith="job-first").order_by("id")
    assert [row.at for row in rows] == sorted(row.at for row in rows), "by the cluster's clock, one after the other"
    assert all(row.message for row in rows if row.reason != "Created")
    row = system.workload("first")
    assert (row.reason, condition("Evicted", row)) == ("Succeeded", ("False", "QuotaReserved"))
    assert condition("Preempted", row) == ("False", "QuotaReserved")
    uid = row.uid
    row.delete()
    assert WorkloadEvent.objects.filter(workload_uid=uid).count() == len(steps)


def test_retention_deletes_what_ended_and_keeps_its_history(system: System) -> None:
    configure(system, objectRetentionPolicies={"workloads": {"afterFinished": "1h"}})
    system.submit(gpu_job("done", run_seconds=20))
    submit(system, "running")
    for _ in range(4):
        system.turn(20)
    assert statuses() == {"done": "Finished", "running": "Admitted"}
    system.advance(3500)
    assert delete_expired_workloads(system.cluster, system.moment()) == 0
    system.advance(100)
    assert delete_expired_workloads(system.cluster, system.moment()) == 1
    system.turn()
    assert statuses() == {"running": "Admitted"}
    assert told("done")[-2:] == [("Finished", "watcher"), ("Deleted", "retention")]
    assert Decision.objects.filter(workload_name__startswith="job-done", action="Admit").exists()


def test_retention_ends_what_kueue_deactivated_and_nothing_that_a_user_held(system: System) -> None:
    configure(system, objectRetentionPolicies={"workloads": {"afterDeactivatedByKueue": "10m"}})
    for name in ("over", "held"):
        submit(system, name)
    Workload.objects.filter(job__name="over").update(maximum_execution_seconds=60)
    system.turn()
    hold(system.cluster, [key(system.workload("held"))], actor="alice")
    system.turn(61)
    for _ in range(2):
        system.turn(5)
    assert condition("Evicted", system.workload("over"))[1] == "DeactivatedDueToMaximumExecutionTimeExceeded"
    assert condition("Evicted", system.workload("held"))[1] == "Deactivated"
    system.advance(500)
    assert delete_expired_workloads(system.cluster, system.moment()) == 0
    system.advance(100)
    assert delete_expired_workloads(system.cluster, system.moment()) == 1
    for _ in range(2):
        system.turn(5)
    assert statuses()["held"] == "Pending"
    left = [item["metadata"]["name"] for item in system.client.list(JOBS).items]
    assert left == ["held"], "its job leaves the cluster"
    assert ("Finished", "retention") in told("over")


class TestDeactivation:
    def test_what_waits_is_held_and_comes_back(self, system: System) -> None:
        one_at_a_time()
        submit(system, "first")
        submit(system, "second")
        system.turn()
        second = system.workload("second")
        hold(system.cluster, [key(second)], actor="alice")
        system.turn()
        held = system.workload("second")
        assert (held.status, held.reason) == ("Pending", "Deactivated")
        assert condition("Evicted", held) == ("True", "Deactivated")
        cancel(system.cluster, [key(system.workload("first"))], actor="alice")
        for _ in range(3):
            system.turn(5)
        assert statuses() == {"first": "Finished", "second": "Pending"}
        release(system.cluster, [key(second)], actor="alice")
        system.turn()
        back = system.workload("second")
        assert back.status == "Admitted"
        assert condition("Evicted", back) == ("False", "QuotaReserved")

    def test_what_runs_stops_and_keeps_its_device_until_it_has(self, system: System) -> None:
        one_at_a_time()
        submit(system, "first")
        submit(system, "second")
        system.turn()
        hold(system.cluster, [key(system.workload("first"))], actor="alice")
        system.engine.run()
        assert statuses() == {"first": "Evicted", "second": "Pending"}
        for _ in range(2):
            system.turn(5)
        assert statuses() == {"first": "Pending", "second": "Admitted"}
        assert running_pods(system) == 1

    def test_what_was_preempted_and_then_held_keeps_that_eviction(self, system: System) -> None:
        one_at_a_time(within_cluster_queue="LowerPriority")
        submit(system, "low")
        system.turn()
        submit(system, "high", priority=10)
        for _ in range(2):
            system.turn(5)
        low = system.workload("low")
        assert (low.status, condition("Evicted", low)) == ("Pending", ("True", "Preempted"))
        hold(system.cluster, [key(low)], actor="alice")
        system.turn()
        low = system.workload("low")
        assert (low.reason, condition("Evicted", low)) == ("Deactivated", ("True", "Preempted"))
        release(system.cluster, [key(low)], actor="alice")
        system.turn()
        assert system.workload("low").reason == "WaitingForQuota"


def test_a_gated_job_waits_until_its_gates_are_cleared(system: System) -> None:
    manifest = endless("train")
    manifest["metadata"]["annotations"] = {GATE: "example.com/budget,example.com/audit"}
    system.apply(manifest)
    system.turn()
    assert (system.workload().status, system.workload().reason) == ("Pending", "AdmissionGated")
    manifest["metadata"]["annotations"] = {GATE: "example.com/audit"}
    system.apply(manifest)
    system.turn()
    assert system.workload().reason == "AdmissionGated"
    del manifest["metadata"]["annotations"]
    system.apply(manifest)
    system.turn()
    assert system.workload().status == "Admitted"
    assert {"AdmissionGated", "AdmissionGateCleared"} <= set(events())


def test_a_failed_node_evicts_and_the_workload_starts_elsewhere(system: System) -> None:
    submit(system, "train")
    for _ in range(2):
        system.turn()
    before = DeviceAllocation.objects.get(source="decided").node.name
    system.chaos(nodes={before: "not-ready"})
    system.watcher.resync()
    system.advance(60)
    system.watcher.tick()
    system.engine.run()
    assert condition("Evicted") == ("True", "NodeFailures")
    for _ in range(3):
        system.turn(60)
    assert system.workload().status == "Evicted", "nobody knows whether the pod on the lost node has stopped"
    system.chaos(nodes={before: "gone"})
    for _ in range(3):
        system.turn(60)
    moved = system.workload()
    assert (moved.status, condition("Requeued", moved)) == ("Admitted", ("True", "NodeFailures"))
    assert DeviceAllocation.objects.get(source="decided").node.name != before
    assert moved.unhealthy_nodes == []


class TestProtection:
    def test_a_minimum_run_comes_before_a_preemption(self, system: System) -> None:
        one_at_a_time(within_cluster_queue="LowerPriority")
        ClusterQueue.objects.update(minimum_run_seconds=600)
        submit(system, "low")
        system.turn()
        submit(system, "high", priority=10)
        system.turn(500)
        assert statuses() == {"high": "Pending", "low": "Admitted"}
        since = system.workload("low").quota_reserved_at
        assert since is not None
        system.advance(since.timestamp() + 599 - system.now())
        system.engine.run()
        assert system.workload("low").status == "Admitted"
        system.advance(1)
        system.engine.run()
        assert system.workload("low").status == "Evicted"
        for _ in range(2):
            system.turn(5)
        assert statuses() == {"high": "Admitted", "low": "Pending"}

    def test_a_preempted_workload_is_protected_for_a_while(self, system: System) -> None:
        one_at_a_time(within_cluster_queue="LowerPriority")
        ClusterQueue.objects.update(cool_down_seconds=600)
        submit(system, "low")
        system.turn()
        system.submit(gpu_job("first", run_seconds=20))
        Workload.objects.filter(job__name="first").update(priority=10)
        for _ in range(4):
            system.turn(10)
        assert statuses() == {"first": "Finished", "low": "Admitted"}
        at = system.workload("low").last_preempted_at
        assert at is not None
        submit(system, "second", priority=10)
        system.turn()
        assert statuses()["low"] == "Admitted"
        system.advance(at.timestamp() + 599 - system.now())
        system.engine.run()
        assert statuses()["low"] == "Admitted"
        system.advance(1)
        system.engine.run()
        assert statuses()["low"] == "Evicted"

    @pytest.mark.parametrize("protected", [False, True])
    def test_what_is_marked_so_is_never_reclaimed(self, system: System, protected: bool) -> None:
        cells = {"cpu": 0, "nvidia.com/gpu": 0, "nvidia.com/gpumem": 0, "nvidia.com/gpucores": 0}
        one_at_a_time(reclaim_within_cohort="Any", cohort_name="all")
        make_cluster_queue(system.cluster, "guest", {"gpu-flavor": cells}, local_queue="guest", cohort_name="all")
        borrower = endless("borrower")
        borrower["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] = "guest"
        system.submit(borrower)
        system.turn()
        assert statuses() == {"borrower": "Admitted"}
        Workload.objects.update(never_preempt=protected)  # marked before, it would not borrow (T80)
        submit(system, "owner")
        for _ in range(3):
            system.turn(60)
        expected = "Admitted" if protected else "Pending"
        assert statuses()["borrower"] == expected
        assert statuses()["owner"] == ("Pending" if protected else "Admitted")
