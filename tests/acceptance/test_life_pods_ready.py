"""Waiting for pods to be ready: time-outs, requeuing, giving up, and admitting one after the other."""

from __future__ import annotations

import pytest

from clusters.api_objects import PODS
from queues.models import ClusterQueue, Workload
from queues.services.workloads import release
from tests.acceptance.life import condition, configure, events, key, one_at_a_time, running_pods, statuses, submit
from tests.clusters.system import System

pytestmark = pytest.mark.django_db(transaction=True)


def wait_for_back_off(system: System) -> None:
    """Until the only workload's back-off is over."""
    at = system.workload().requeue_at
    assert at is not None
    system.advance(max(0.0, at.timestamp() - system.now()))
    system.turn()


def lose_a_pod(system: System) -> None:
    """A pod goes, and nobody binds the one that takes its place."""
    system.client.delete(PODS, "team", system.pods()[0]["metadata"]["name"])
    system.watcher.resync()
    assert condition("PodsReady") == ("False", "WaitForRecovery")


def test_pods_that_never_get_ready_are_requeued_with_a_back_off_and_given_up_in_the_end(slow_start: System) -> None:
    system = slow_start
    strategy = {"backoffLimitCount": 2, "backoffBaseSeconds": 60}
    configure(system, waitForPodsReady={"timeout": "5m", "requeuingStrategy": strategy})
    submit(system, "train")
    for attempt, back_off in ((1, 60), (2, 120)):
        system.turn()
        assert (system.workload().status, running_pods(system)) == ("Admitted", 1)
        assert condition("PodsReady") == ("False", "WaitForStart")
        before = system.now()
        system.turn(301)
        system.turn(5)
        waiting = system.workload()
        assert (waiting.status, waiting.requeue_count, running_pods(system)) == ("Pending", attempt, 0)
        assert condition("Evicted", waiting) == ("True", "PodsReadyTimeout")
        assert condition("Requeued", waiting) == ("False", "PodsReadyTimeout")
        assert waiting.eviction_counts == [
            {"reason": "PodsReadyTimeout", "underlyingCause": "WaitForStart", "count": attempt}
        ]
        assert waiting.requeue_at is not None
        assert waiting.requeue_at.timestamp() == pytest.approx(before + 301 + back_off, abs=10)
        system.turn(30)
        assert system.workload().status == "Pending", "its back-off is not over"
        wait_for_back_off(system)
        assert (system.workload().status, condition("Requeued")) == ("Admitted", ("True", "BackoffFinished"))
    system.turn(301)
    system.turn(5)
    given_up = system.workload()
    assert (given_up.status, given_up.active, running_pods(system)) == ("Pending", False, 0)
    assert condition("Evicted", given_up) == ("True", "DeactivatedDueToRequeuingLimitExceeded")
    assert (given_up.requeue_count, given_up.requeue_at) == (0, None)
    assert {"RequeuingLimitExceeded", "EvictedDueToDeactivatedDueToRequeuingLimitExceeded"} <= set(events())
    release(system.cluster, [key(given_up)], actor="alice")
    system.turn()
    assert (system.workload().status, condition("Requeued")) == ("Admitted", ("True", "Reactivated"))


def test_pods_that_do_not_recover_are_requeued_too(system: System) -> None:
    ready = {"timeout": "10m", "recoveryTimeout": "2m", "requeuingStrategy": {"backoffBaseSeconds": 30}}
    configure(system, waitForPodsReady=ready)
    submit(system, "train", parallelism=2, completions=2)
    for _ in range(2):
        system.turn()
    assert condition("PodsReady") == ("True", "Started")
    system.turn(3600)
    assert system.workload().status == "Admitted", "what is ready has no time-out"
    lose_a_pod(system)
    system.advance(119)
    system.engine.run()
    assert system.workload().status == "Admitted"
    system.advance(2)
    system.engine.run()
    stopping = system.workload()
    assert (stopping.status, condition("Evicted", stopping)) == ("Evicted", ("True", "PodsReadyTimeout"))
    assert stopping.eviction_counts == [
        {"reason": "PodsReadyTimeout", "underlyingCause": "WaitForRecovery", "count": 1}
    ]
    system.turn(5)
    system.turn(5)
    assert (system.workload().status, system.workload().requeue_count, running_pods(system)) == ("Pending", 1, 0)
    wait_for_back_off(system)
    system.turn()
    system.turn()
    assert (system.workload().status, condition("PodsReady")) == ("Admitted", ("True", "Started"))


def test_pods_that_recover_in_time_are_left_alone(system: System) -> None:
    configure(system, waitForPodsReady={"timeout": "10m", "recoveryTimeout": "2m"})
    submit(system, "train", parallelism=2, completions=2)
    for _ in range(2):
        system.turn()
    lose_a_pod(system)
    for _ in range(6):
        system.turn(10)
    assert condition("PodsReady") == ("True", "Recovered")
    system.turn(600)
    assert (system.workload().status, system.workload().eviction_counts) == ("Admitted", [])


def test_a_recovery_time_out_of_0_waits_for_ever(system: System) -> None:
    configure(system, waitForPodsReady={"timeout": "5m", "recoveryTimeout": "0s"})
    submit(system, "train", parallelism=2, completions=2)
    for _ in range(2):
        system.turn()
    lose_a_pod(system)
    system.advance(86_400)
    system.engine.run()
    assert (system.workload().status, condition("PodsReady")) == ("Admitted", ("False", "WaitForRecovery"))


def test_the_recovery_time_out_is_the_time_out_unless_said(system: System) -> None:
    configure(system, waitForPodsReady={"timeout": "5m"})
    submit(system, "train", parallelism=2, completions=2)
    for _ in range(2):
        system.turn()
    lose_a_pod(system)
    system.advance(299)
    system.engine.run()
    assert system.workload().status == "Admitted"
    system.advance(2)
    system.engine.run()
    assert system.workload().status == "Evicted"


def test_admission_is_blocked_until_the_pods_of_all_that_were_admitted_are_ready(system: System) -> None:
    configure(system, waitForPodsReady={"timeout": "5m", "blockAdmission": True})
    submit(system, "first")
    submit(system, "second")
    submit(system, "third")
    system.engine.run()
    assert statuses() == {"first": "Admitted", "second": "Pending", "third": "Pending"}
    assert system.workload("second").reason == "WaitingForPodsReady"
    for expected in ("second", "third"):
        for _ in range(2):
            system.turn()
        assert system.workload(expected).status == "Admitted"
    assert events("third").count("WaitingForPodsReady") == 1


def test_a_workload_that_never_gets_ready_blocks_no_longer_than_its_timeout(slow_start: System) -> None:
    system = slow_start
    configure(system, waitForPodsReady={"timeout": "5m", "blockAdmission": True})
    submit(system, "first")
    submit(system, "second")
    system.turn(299)
    assert statuses() == {"first": "Admitted", "second": "Pending"}
    system.turn(2)
    system.turn(5)
    system.turn(5)
    assert statuses() == {"first": "Pending", "second": "Admitted"}


@pytest.mark.parametrize(("timestamp", "next_one"), [("Eviction", "second"), ("Creation", "first")])
def test_a_timed_out_workload_queues_by_its_eviction_or_by_its_creation(
    slow_start: System, timestamp: str, next_one: str
) -> None:
    system = slow_start
    strategy = {"timestamp": timestamp, "backoffBaseSeconds": 10}
    configure(system, waitForPodsReady={"timeout": "5m", "requeuingStrategy": strategy})
    one_at_a_time()
    submit(system, "first")
    submit(system, "second")
    system.turn(301)
    assert statuses() == {"first": "Evicted", "second": "Pending"}
    ClusterQueue.objects.update(stop_policy="Hold")
    for _ in range(3):
        system.turn(60)
    assert statuses() == {"first": "Pending", "second": "Pending"}
    ClusterQueue.objects.update(stop_policy="None")
    system.engine.run()
    assert list(Workload.objects.filter(status="Admitted").values_list("job__name", flat=True)) == [next_one]
