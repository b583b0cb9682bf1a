"""Queues that are held, drained, deleted and changed, and priorities that change, on both kinds of queue."""

from __future__ import annotations

import pytest

from queues.models import AdmissionCheck, ClusterQueue, LocalQueue, Workload
from queues.services.workloads import cancel
from tests import manifest_texts as texts
from tests.acceptance.life import condition, endless, events, key, one_at_a_time, running_pods, statuses, submit
from tests.clusters.system import System
from tests.factories import START

pytestmark = pytest.mark.django_db(transaction=True)

Queue = type[ClusterQueue] | type[LocalQueue]
KINDS = pytest.mark.parametrize("queue", [ClusterQueue, LocalQueue])


def stop(queue: Queue, policy: str) -> None:
    queue._default_manager.filter(name__in=("main", "queue")).update(stop_policy=policy)


@KINDS
def test_a_queue_is_drained_and_opened_again(system: System, queue: Queue) -> None:
    submit(system, "train")
    system.turn()
    stop(queue, "HoldAndDrain")
    system.engine.run()
    stopping = system.workload()
    assert (stopping.status, condition("QuotaReserved", stopping)[0]) == ("Evicted", "True")
    assert condition("Evicted", stopping) == ("True", f"{queue.__name__}Stopped")
    system.turn(5)
    system.turn(5)
    assert (system.workload().status, system.workload().reason, running_pods(system)) == ("Pending", "Suspended", 0)
    assert condition("Requeued") == ("False", f"{queue.__name__}Stopped")
    stop(queue, "None")
    system.turn()
    assert (system.workload().status, running_pods(system)) == ("Admitted", 1)
    assert condition("Requeued") == ("True", f"{queue.__name__}Restarted")


@KINDS
def test_hold_lets_run_what_runs_and_admits_nothing(system: System, queue: Queue) -> None:
    submit(system, "first")
    system.turn()
    stop(queue, "Hold")
    submit(system, "second")
    system.turn()
    assert statuses() == {"first": "Admitted", "second": "Pending"}
    assert system.workload("second").reason == "Suspended"
    stop(queue, "None")
    system.turn()
    assert system.workload("second").status == "Admitted"


@KINDS
@pytest.mark.parametrize("policy", ["Hold", "HoldAndDrain"])
def test_what_is_reserved_and_not_admitted_is_taken_back(system: System, queue: Queue, policy: str) -> None:
    AdmissionCheck.objects.create(
        cluster=system.cluster, name="billing", controller_name="example.com/billing", created_at=START
    )
    ClusterQueue.objects.update(admission_checks=[{"name": "billing", "onFlavors": []}])
    submit(system, "train")
    system.turn()
    assert system.workload().status == "QuotaReserved"
    stop(queue, policy)
    system.engine.run()
    row = system.workload()
    assert (row.status, row.reason, row.evicted_at) == ("Pending", "Suspended", None), "nothing ran, nothing is evicted"
    stop(queue, "None")
    system.engine.run()
    assert system.workload().status == "QuotaReserved"


def test_a_stopped_local_queue_stops_no_other(system: System) -> None:
    LocalQueue.objects.create(
        cluster=system.cluster, namespace="team", name="other", cluster_queue_name="main", created_at=START
    )
    submit(system, "first")
    other = endless("second")
    other["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] = "other"
    system.submit(other)
    system.turn()
    stop(LocalQueue, "HoldAndDrain")
    for _ in range(2):
        system.turn(5)
    assert statuses() == {"first": "Pending", "second": "Admitted"}


def test_a_local_queue_that_goes_takes_no_running_workload_with_it(system: System) -> None:
    one_at_a_time()
    submit(system, "first")
    submit(system, "second")
    system.turn()
    LocalQueue.objects.all().delete()
    system.turn()
    assert statuses() == {"first": "Admitted", "second": "Pending"}
    assert system.workload("second").reason == "Misconfigured"
    LocalQueue.objects.create(
        cluster=system.cluster, namespace="team", name="queue", cluster_queue_name="main", created_at=START
    )
    system.engine.run()
    assert system.workload("second").reason == "WaitingForQuota"


def test_a_workload_that_changes_its_queue_keeps_its_age(system: System) -> None:
    one_at_a_time()
    LocalQueue.objects.create(
        cluster=system.cluster, namespace="team", name="side", cluster_queue_name="elsewhere", created_at=START
    )
    submit(system, "running")
    system.engine.run()
    moving = endless("old")
    moving["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] = "side"
    system.advance(1)
    system.apply(moving)
    Workload.objects.filter(job__name="old").update(created_at=system.moment())  # applying goes by the machine's clock
    submit(system, "young")
    system.turn()
    assert system.workload("old").reason == "Misconfigured"
    moving["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] = "queue"
    system.apply(moving)
    system.engine.run()
    assert system.workload("old").reason == "WaitingForQuota"
    cancel(system.cluster, [key(system.workload("running"))], actor="alice")
    for _ in range(3):
        system.turn(5)
    assert (system.workload("old").status, system.workload("young").status) == ("Admitted", "Pending")


def test_a_higher_priority_moves_ahead(system: System) -> None:
    ClusterQueue.objects.update(stop_policy="Hold")
    for name in ("first", "second"):
        submit(system, name, mib=30_000, parallelism=4, completions=4)
    Workload.objects.filter(job__name="second").update(priority=100)
    ClusterQueue.objects.update(stop_policy="None")
    system.turn()
    assert statuses() == {"first": "Pending", "second": "Admitted"}


def test_another_value_of_a_class_reaches_what_waits_and_what_runs(system: System) -> None:
    one_at_a_time(within_cluster_queue="LowerPriority")
    for name, value in (("low", 1), ("high", 1)):
        system.apply_text(texts.workload_priority_class(name, value))
    for name, of_class in (("first", "low"), ("second", "high")):
        manifest = endless(name)
        manifest["metadata"]["labels"]["kueue.x-k8s.io/priority-class"] = of_class
        system.advance(1)
        system.apply(manifest)
    system.turn()
    assert statuses() == {"first": "Admitted", "second": "Pending"}
    system.apply_text(texts.workload_priority_class("low", 0))
    system.engine.run()
    assert (system.workload("first").priority, system.workload("first").status) == (0, "Evicted")
    for _ in range(2):
        system.turn(5)
    assert statuses() == {"first": "Pending", "second": "Admitted"}
    assert {"PriorityChanged", "EvictedDueToPreempted", "Preempted"} <= set(events("first"))
