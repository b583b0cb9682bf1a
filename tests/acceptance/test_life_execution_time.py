"""Maximum execution time: what a workload ran before counts, whatever ended that run."""

from __future__ import annotations

import pytest

from queues.models import Workload
from queues.services.workloads import hold, release
from tests.acceptance.life import condition, events, key, one_at_a_time, running_pods, statuses, submit
from tests.clusters.system import System, gpu_job

pytestmark = pytest.mark.django_db(transaction=True)


def limit(name: str, seconds: int) -> None:
    Workload.objects.filter(job__name=name).update(maximum_execution_seconds=seconds)


def test_it_adds_up_over_runs_and_ends_the_workload(system: System) -> None:
    submit(system, "train")
    limit("train", 100)
    system.turn(40)
    row = system.workload()
    assert row.status == "Admitted"
    hold(system.cluster, [key(row)], actor="alice")
    system.turn(5)
    system.turn(5)
    held = system.workload()
    assert (held.status, running_pods(system)) == ("Pending", 0)
    assert 40 <= held.accumulated_execution_seconds < 100
    release(system.cluster, [key(row)], actor="alice")
    system.turn(5)
    assert system.workload().status == "Admitted"
    system.turn(70)
    system.turn(5)
    ended = system.workload()
    assert (ended.status, ended.active, running_pods(system)) == ("Pending", False, 0)
    assert condition("Evicted", ended) == ("True", "DeactivatedDueToMaximumExecutionTimeExceeded")


def test_it_adds_up_across_a_preemption(system: System) -> None:
    one_at_a_time(within_cluster_queue="LowerPriority")
    submit(system, "low")
    limit("low", 100)
    system.turn(60)
    system.submit(gpu_job("high", run_seconds=200))
    Workload.objects.filter(job__name="high").update(priority=10)
    system.turn(3)
    system.turn(3)
    assert statuses() == {"high": "Admitted", "low": "Pending"}
    ran = system.workload("low").accumulated_execution_seconds
    assert 60 <= ran < 70
    assert condition("Preempted", system.workload("low")) == ("True", "InClusterQueue")
    system.turn(210)
    system.turn(1)
    assert statuses() == {"high": "Finished", "low": "Admitted"}, "the time in the queue does not count"
    admitted = system.workload("low").admitted_at
    assert admitted is not None
    system.advance(admitted.timestamp() + 100 - ran - system.now() - 1)
    system.engine.run()
    assert system.workload("low").status == "Admitted"
    system.advance(1)
    system.engine.run()
    assert condition("Evicted", system.workload("low")) == ("True", "DeactivatedDueToMaximumExecutionTimeExceeded")
    assert "MaximumExecutionTimeExceeded" in events("low")
    system.turn(5)
    system.turn(5)
    ended = system.workload("low")
    assert (ended.status, ended.reason, ended.active, running_pods(system)) == ("Pending", "Deactivated", False, 0)
