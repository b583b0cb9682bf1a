"""Lives of workloads that pursue several flavors at once: checks, preemption, drained queues, limits of time."""

from __future__ import annotations

from datetime import timedelta

import pytest

from accounts.models import Cluster
from queues.models import AdmissionCheck, ClusterQueue, FlavorQuota, Workload
from queues.services.admission_checks import CheckAnswer, set_check_state
from queues.services.workloads import requeue
from scheduling.model.vocabulary import AdmissionCheckStatus
from tests.factories import START, make_cluster_queue, make_workload
from tests.scheduler.leader.test_engine_variants import Installation, charged

pytestmark = pytest.mark.django_db(transaction=True)


def with_check() -> Installation:
    """A job in a queue whose flavors have room, and an admission check."""
    there = Installation(reservation=5000, spot=5000)
    AdmissionCheck.objects.create(
        cluster=there.cluster, name="nodes", controller_name="example.org/nodes", created_at=START
    )
    ClusterQueue.objects.update(admission_checks=[{"name": "nodes", "onFlavors": []}])
    there.submit()
    there.turn(3)
    return there


def answer(there: Installation, flavor: str, state: AdmissionCheckStatus) -> None:
    name = there.variants()[flavor].name
    set_check_state(there.cluster, "team", name, "nodes", CheckAnswer(state, "said"), actor="nodes")
    there.turn()


def test_the_checks_of_all_flavors_run_at_once_and_the_first_that_is_ready_starts_it() -> None:
    there = with_check()
    assert {row.status for row in there.variants().values()} == {"QuotaReserved"}
    assert (there.parent.status, there.parent.admission_check_states) == ("Pending", [])
    answer(there, "spot", AdmissionCheckStatus.READY)
    assert there.parent.status == "Admitted"
    assert there.parent.pod_sets.get().flavors == {"cpu": "spot"}
    assert there.faults() == []
    answer(there, "reservation", AdmissionCheckStatus.READY)
    assert there.parent.evicted_at is not None, "the preferred flavor is ready too"
    there.stop()
    there.turn()
    assert there.parent.pod_sets.get().flavors == {"cpu": "reservation"}
    assert charged() == {"reservation": 1000}
    assert there.faults() == []


@pytest.mark.parametrize("state", [AdmissionCheckStatus.REJECTED, AdmissionCheckStatus.RETRY])
def test_a_check_that_refuses_a_flavor_leaves_the_others_alone(state: AdmissionCheckStatus) -> None:
    there = with_check()
    answer(there, "reservation", state)
    answer(there, "spot", AdmissionCheckStatus.READY)
    assert there.parent.status == "Admitted"
    assert there.parent.pod_sets.get().flavors == {"cpu": "spot"}
    assert there.faults() == []


def test_what_preempts_a_variant_waits_for_the_pods_of_its_parent() -> None:
    there = Installation(reservation=0, spot=1000)
    ClusterQueue.objects.update(within_cluster_queue="LowerPriority")
    there.submit()
    there.turn(3)
    there.submit("urgent", priority=9)
    there.turn(4)
    first, urgent = (Workload.objects.get(name=f"job-{name}-abcde") for name in ("train", "urgent"))
    assert (first.evicted_at is not None, urgent.status) == (True, "Pending")
    assert first.last_preempted_at is not None
    assert "Preempted" in {each["type"] for each in first.conditions if each["status"] == "True"}
    assert urgent.reason == "WaitingForPreemptedWorkloads"
    assert urgent.message.startswith("reservation: cpu in flavor reservation: 1 core requested, at most 0 cores")
    assert charged() == {"spot": 1000}
    there.stop_of(first)
    assert Workload.objects.get(pk=urgent.pk).status == "Admitted"
    assert charged() == {"spot": 1000}
    assert there.faults() == []


def test_a_drained_queue_stops_it_and_it_starts_again() -> None:
    there = Installation(reservation=0, spot=5000)
    there.submit()
    there.turn(3)
    ClusterQueue.objects.update(stop_policy="HoldAndDrain")
    there.turn()
    there.stop()
    assert (there.parent.status, charged()) == ("Pending", {})
    ClusterQueue.objects.update(stop_policy="None")
    there.turn(3)
    assert (there.parent.status, charged()) == ("Admitted", {"spot": 1000})


def test_it_is_requeued_and_its_time_is_limited_once() -> None:
    there = Installation(reservation=0, spot=5000)
    there.submit(maximum_execution_seconds=60)
    there.turn(3)
    requeue(there.cluster, [there.key], actor="alice")
    there.turn()
    there.stop()
    there.turn()
    assert there.parent.status == "Admitted"
    there.seconds += 61
    there.turn(2)
    there.stop()
    assert (there.parent.active, there.parent.status, charged()) == (False, "Pending", {})
    assert there.faults() == []


def test_jobs_keep_their_order() -> None:
    there = Installation(reservation=0, spot=0)
    for number in range(5):
        there.submit(f"j{number}", created_at=START + timedelta(minutes=number))
    there.turn(4)
    FlavorQuota.objects.filter(flavor="spot").update(nominal_quota=2000)
    there.turn(2)
    running = Workload.objects.filter(parent_name="", status="Admitted")
    assert sorted(running.values_list("name", flat=True)) == ["job-j0-abcde", "job-j1-abcde"]


def test_a_job_before_one_without_variants_goes_first() -> None:
    there = Installation(reservation=0, spot=0)
    Cluster.objects.update(configuration={})
    make_workload(there.cluster, "plain")
    there.set_gate(True)
    there.submit()
    there.turn(4)
    FlavorQuota.objects.filter(flavor="spot").update(nominal_quota=1000)
    there.turn(2)
    assert Workload.objects.get(name="plain").status == "Admitted"


def test_a_queue_that_is_made_anew_without_a_policy_has_the_jobs_themselves() -> None:
    there = Installation(reservation=0, spot=0)
    there.submit()
    there.turn(3)
    ClusterQueue.objects.all().delete()
    make_cluster_queue(there.cluster, quotas={"spot": {"cpu": 5000}}, local_queue="")
    there.turn(3)
    assert (there.parent.status, there.variants(), charged()) == ("Admitted", {}, {"spot": 1000})
