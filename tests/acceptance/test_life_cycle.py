"""A workload's whole life against PostgreSQL and a simulated cluster whose clock stands still until it is moved."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from queues.models import AdmissionCheck, Cluster, ClusterQueue, LocalQueue, Workload, WorkloadEvent
from queues.services.admission_checks import CheckAnswer, set_check_state
from queues.services.workloads import change_priority, hold, release
from scheduler.cluster.simulated.server import ServerThread
from scheduler.core.decisions import AdmissionCheckStatus
from tests.factories import START
from tests.scheduler.cluster.system import System, gpu_job
from tests.simulated_cluster import make_simulated

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def slow_start() -> Iterator[System]:
    """A cluster whose pods take an hour to get ready."""
    with ServerThread(make_simulated(start_seconds=3600.0)) as server:
        yield System(server)


@pytest.fixture
def system() -> Iterator[System]:
    """A cluster whose pods start in seconds."""
    with ServerThread(make_simulated()) as server:
        yield System(server)


def configure(system: System, **configuration: Any) -> None:
    Cluster.objects.update(configuration=configuration)
    system.engine.run()


def condition(name: str, workload: Workload | None = None) -> tuple[str, str]:
    row = workload or Workload.objects.get()
    found = next(entry for entry in row.conditions if entry["type"] == name)
    return found["status"], found["reason"]


def events() -> list[str]:
    return list(WorkloadEvent.objects.order_by("id").values_list("reason", flat=True))


def running_pods(system: System) -> int:
    return sum(pod["status"]["phase"] in ("Pending", "Running") for pod in system.pods())


def test_pods_that_never_get_ready_are_requeued_with_a_back_off_and_given_up_in_the_end(slow_start: System) -> None:
    system = slow_start
    strategy = {"backoffLimitCount": 1, "backoffBaseSeconds": 60}
    configure(system, waitForPodsReady={"timeout": "5m", "requeuingStrategy": strategy})
    system.submit(gpu_job(run_seconds=10))
    system.turn()
    assert (system.workload().status, running_pods(system)) == ("Admitted", 1)
    system.turn(301)
    system.turn(5)
    waiting = system.workload()
    assert (waiting.status, waiting.requeue_count, running_pods(system)) == ("Pending", 1, 0)
    assert condition("Evicted", waiting) == ("True", "PodsReadyTimeout")
    assert condition("Requeued", waiting) == ("False", "PodsReadyTimeout")
    assert waiting.requeue_at is not None
    assert waiting.eviction_counts == [{"reason": "PodsReadyTimeout", "underlyingCause": "WaitForStart", "count": 1}]
    system.advance(max(0.0, waiting.requeue_at.timestamp() - system.now()))
    system.turn()
    assert (system.workload().status, condition("Requeued")) == ("Admitted", ("True", "BackoffFinished"))
    system.turn(301)
    system.turn(5)
    given_up = system.workload()
    assert (given_up.status, given_up.active, running_pods(system)) == ("Pending", False, 0)
    assert condition("Evicted", given_up) == ("True", "DeactivatedDueToRequeuingLimitExceeded")
    release(system.cluster, [(given_up.namespace, given_up.name)], actor="alice")
    system.turn()
    assert (system.workload().status, condition("Requeued")) == ("Admitted", ("True", "Reactivated"))


def test_execution_time_adds_up_over_runs_and_ends_the_workload(system: System) -> None:
    system.submit(gpu_job(run_seconds=10_000))
    Workload.objects.update(maximum_execution_seconds=100)
    system.turn(40)
    row = system.workload()
    assert row.status == "Admitted"
    hold(system.cluster, [(row.namespace, row.name)], actor="alice")
    system.turn(5)
    system.turn(5)
    held = system.workload()
    assert (held.status, running_pods(system)) == ("Pending", 0)
    assert 40 <= held.accumulated_execution_seconds < 100
    release(system.cluster, [(row.namespace, row.name)], actor="alice")
    system.turn(5)
    assert system.workload().status == "Admitted"
    system.turn(70)
    system.turn(5)
    ended = system.workload()
    assert (ended.status, ended.active, running_pods(system)) == ("Pending", False, 0)
    assert condition("Evicted", ended) == ("True", "DeactivatedDueToMaximumExecutionTimeExceeded")


@pytest.mark.parametrize("queue", [ClusterQueue, LocalQueue])
def test_a_queue_is_drained_and_opened_again(system: System, queue: type[ClusterQueue | LocalQueue]) -> None:
    system.submit(gpu_job(run_seconds=10_000))
    system.turn()
    queue._default_manager.update(stop_policy="HoldAndDrain")
    system.engine.run()
    stopping = system.workload()
    assert (stopping.status, condition("QuotaReserved", stopping)[0]) == ("Evicted", "True")
    system.turn(5)
    system.turn(5)
    assert (system.workload().status, system.workload().reason, running_pods(system)) == ("Pending", "Suspended", 0)
    queue._default_manager.update(stop_policy="None")
    system.turn()
    assert (system.workload().status, running_pods(system)) == ("Admitted", 1)
    assert condition("Requeued") == ("True", f"{queue.__name__}Restarted")


def test_hold_lets_run_what_runs_and_admits_nothing(system: System) -> None:
    system.submit(gpu_job("first", run_seconds=10_000))
    system.turn()
    ClusterQueue.objects.update(stop_policy="Hold")
    system.submit(gpu_job("second"))
    system.turn()
    assert (system.workload("first").status, system.workload("second").status) == ("Admitted", "Pending")
    assert system.workload("second").reason == "Suspended"
    ClusterQueue.objects.update(stop_policy="None")
    system.turn()
    assert system.workload("second").status == "Admitted"


class TestAdmissionChecks:
    @pytest.fixture(autouse=True)
    def checked(self, system: System) -> None:
        AdmissionCheck.objects.create(
            cluster=system.cluster, name="billing", controller_name="example.com/billing", created_at=START
        )
        ClusterQueue.objects.update(admission_checks=[{"name": "billing", "onFlavors": []}])
        system.submit(gpu_job(run_seconds=10_000))
        system.turn()

    def answer(self, system: System, state: AdmissionCheckStatus, **fields: Any) -> None:
        row = system.workload()
        moment = datetime.fromtimestamp(system.now(), UTC)
        set_check_state(
            system.cluster,
            row.namespace,
            row.name,
            "billing",
            CheckAnswer(state, **fields),
            actor="billing",
            now=moment,
        )
        system.turn()

    def test_quota_is_held_and_nothing_runs_before_the_answer(self, system: System) -> None:
        assert (system.workload().status, running_pods(system)) == ("QuotaReserved", 0)
        assert condition("Admitted") == ("False", "UnsatisfiedAdmissionChecks")
        self.answer(system, AdmissionCheckStatus.READY)
        assert (system.workload().status, running_pods(system)) == ("Admitted", 1)

    def test_retry_gives_the_quota_back_and_asks_again_later(self, system: System) -> None:
        self.answer(system, AdmissionCheckStatus.RETRY, requeue_after_seconds=600)
        waiting = system.workload()
        assert (waiting.status, condition("Evicted", waiting)) == ("Pending", ("True", "AdmissionCheck"))
        assert waiting.admission_check_states[0]["retryCount"] == 1
        system.turn(500)
        assert system.workload().status == "Pending"
        system.turn(200)
        system.turn()
        assert (system.workload().status, condition("Requeued")) == ("QuotaReserved", ("True", "BackoffFinished"))

    def test_rejected_deactivates(self, system: System) -> None:
        self.answer(system, AdmissionCheckStatus.REJECTED, message="no money")
        row = system.workload()
        assert (row.status, row.active) == ("Pending", False)
        assert condition("Evicted", row) == ("True", "DeactivatedDueToAdmissionCheck")
        assert "AdmissionCheckRejected" in events()


def test_a_higher_priority_moves_ahead(system: System) -> None:
    ClusterQueue.objects.update(stop_policy="Hold")
    for name in ("first", "second"):
        system.submit(gpu_job(name, mib=30_000, run_seconds=10_000, parallelism=4, completions=4))
    second = system.workload("second")
    change_priority(system.cluster, [(second.namespace, second.name)], 100, actor="alice")
    ClusterQueue.objects.update(stop_policy="None")
    system.turn()
    assert (system.workload("first").status, system.workload("second").status) == ("Pending", "Admitted")


def test_every_step_is_told_and_outlives_the_workload(system: System) -> None:
    system.submit(gpu_job(run_seconds=20))
    system.turn()
    system.turn()
    system.turn(60)
    row = system.workload()
    assert (row.status, row.reason) == ("Finished", "Succeeded")
    told = list(WorkloadEvent.objects.order_by("id").values_list("reason", "actor"))
    assert told == [
        ("Created", "alice"),
        ("QuotaReserved", "scheduler"),
        ("Admitted", "scheduler"),
        ("PodsReady", "watcher"),
        ("Finished", "watcher"),
    ]
    uid = row.uid
    row.delete()
    assert WorkloadEvent.objects.filter(workload_uid=uid).count() == len(told)
