"""Decisions that other programs write into the status of a Workload that is ours to serve."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from accounts.models import AuditRecord
from clusters.api_objects import JsonObject
from queues.models import Workload, WorkloadEvent
from scheduler.models import Decision
from tests.clusters.served_cluster import ServedCluster, configure
from tests.clusters.test_served_workloads import conditions, queued
from tests.simulated_cluster import ServerThread, make_simulated

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def served() -> Iterator[ServedCluster]:
    with ServerThread(make_simulated()) as server:
        served = ServedCluster(server)
        configure(served)
        yield served


def say(
    served: ServedCluster, name: str, type_: str, reason: str, message: str = "By test", status: str = "True"
) -> None:
    """As Kueue's `SetConditionAndUpdate`: an apply of this condition alone, by a manager of its own."""
    condition: dict[str, Any] = {"type": type_, "status": status, "reason": reason, "message": message}
    condition |= {"lastTransitionTime": "2026-01-02T00:00:00Z", "observedGeneration": 1}
    version = served.resource("Workload").api_version
    body = {"apiVersion": version, "kind": "Workload", "metadata": {"name": name, "namespace": "team"}}
    path = f"{served.path('Workload', name, 'team')}/status?fieldManager=evict&force=true"
    served.send("PATCH", path, {**body, "status": {"conditions": [condition]}}, "application/apply-patch+yaml")


def clear_admission(served: ServedCluster, name: str) -> None:
    path = f"{served.path('Workload', name, 'team')}/status?fieldManager=evict"
    served.send("PATCH", path, {"status": {"admission": None}}, "application/merge-patch+json")


def running(served: ServedCluster, *names: str, cpu: str = "1") -> list[Workload]:
    for name in names:
        queued(served, name, cpu)
    served.settle(4)
    rows = list(Workload.objects.select_related("job").order_by("pk"))
    assert [row.status for row in rows] == ["Admitted"] * len(names)
    return rows


def there(served: ServedCluster, row: Workload) -> dict[str, tuple[str, str]]:
    return conditions(served.get("Workload", row.name, "team"))


def full_queue_of(served: ServedCluster, cpu: str) -> None:
    """Nothing of that size fits any more."""
    served.patch("ClusterQueue", "main", {"spec": {"resourceGroups": [_group(cpu)]}})


def _group(cpu: str) -> JsonObject:
    quota = {"name": "plain", "resources": [{"name": "cpu", "nominalQuota": cpu}]}
    return {"coveredResources": ["cpu"], "flavors": [quota]}


def test_evicted_by_another_program_stops_the_job_and_queues_it_again(served: ServedCluster) -> None:
    [row] = running(served, "runs", cpu="3")
    full_queue_of(served, "2")
    served.watch()
    say(served, row.name, "Evicted", "Preempted")
    served.settle(4)
    row.refresh_from_db()
    assert (row.status, row.requeue_requested_by, row.requeue_reason, row.requeue_message) == ("Pending", "", "", "")
    found = there(served, row)
    assert found["Evicted"] == ("True", "Preempted")
    assert found["Requeued"] == ("True", "Preempted")
    assert found["QuotaReserved"][0] == "False"
    assert served.send("GET", "/apis/batch/v1/namespaces/team/jobs/runs", None)["spec"]["suspend"] is True
    decision = Decision.objects.get(action="Evict", workload_name=row.name)
    assert (decision.reason, decision.message) == ("Preempted", "By test (asked for by evict in the cluster)")
    assert WorkloadEvent.objects.get(reason="RequeueRequested").actor == "evict in the cluster"
    full_queue_of(served, "4")
    served.settle(4)
    row.refresh_from_db()
    assert row.status == "Admitted"
    assert there(served, row)["Evicted"] == ("False", "QuotaReserved")
    versions = served.versions()
    served.settle()
    assert served.versions() == versions


@pytest.mark.parametrize("look_first", [False, True])
def test_evicted_stays_whatever_is_pushed_meanwhile(served: ServedCluster, look_first: bool) -> None:
    """Neither a push before the watcher has seen it nor one before the engine has decided takes it away."""
    [row] = running(served, "runs", cpu="3")
    full_queue_of(served, "2")
    served.watch()
    served.push()
    say(served, row.name, "Evicted", "Preempted")
    if look_first:
        served.watch()
    Workload.objects.update(eviction_counts=[{"reason": "Drained", "underlyingCause": "", "count": 1}])
    served.advance(2)
    served.push()
    assert there(served, row)["Evicted"] == ("True", "Preempted")
    served.settle(4)
    row.refresh_from_db()
    assert row.status == "Pending"
    assert there(served, row)["Evicted"] == ("True", "Preempted")


def test_two_evictions_and_a_deletion_in_one_batch(served: ServedCluster) -> None:
    rows = running(served, "a", "b", "c", "d")
    full_queue_of(served, "0")
    served.watch()
    for row in rows[:3]:
        say(served, row.name, "Evicted", "Preempted")
    served.patch("Workload", rows[1].name, {"metadata": {"labels": {"seen": "later"}}}, "team")
    served.send("DELETE", "/apis/batch/v1/namespaces/team/jobs/c", None)
    served.settle(5)
    status = {row.job.name: row.status for row in Workload.objects.select_related("job") if row.job is not None}
    assert (status["a"], status["b"], status["d"]) == ("Pending", "Pending", "Admitted")
    assert status.get("c", "Finished") == "Finished"


def test_evicted_and_withdrawn_before_it_was_seen_is_nothing(served: ServedCluster) -> None:
    [row] = running(served, "runs")
    say(served, row.name, "Evicted", "Preempted")
    say(served, row.name, "Evicted", "Preempted", status="False")
    served.settle()
    row.refresh_from_db()
    assert row.status == "Admitted"


def test_a_reason_that_no_rule_knows_is_kept_in_the_message(served: ServedCluster) -> None:
    """Kueue would leave the workload out of its queue for good."""
    [row] = running(served, "runs")
    full_queue_of(served, "0")
    served.watch()
    say(served, row.name, "Evicted", "ByOperator" + "x" * 900, "m" * 30_000)
    served.settle(4)
    row.refresh_from_db()
    assert row.status == "Pending"
    evicted = next(each for each in row.conditions if each["type"] == "Evicted")
    assert evicted["reason"] == "RequeueRequested"
    assert evicted["message"].startswith("ByOperatorxxx")


def test_a_deactivation_target_deactivates_with_its_cause(served: ServedCluster) -> None:
    [row] = running(served, "runs")
    say(served, row.name, "DeactivationTarget", "Billing", "the budget is spent")
    served.settle(4)
    row.refresh_from_db()
    assert (row.status, row.active) == ("Pending", False)
    evicted = next(each for each in row.conditions if each["type"] == "Evicted")
    assert evicted["reason"] == "DeactivatedDueToBilling"
    assert evicted["message"] == "The workload is deactivated due to the budget is spent"
    found = served.get("Workload", row.name, "team")
    assert found["spec"]["active"] is False
    assert "DeactivationTarget" not in conditions(found)
    assert WorkloadEvent.objects.get(reason="DeactivationRequested").actor == "evict in the cluster"


def test_a_cleared_admission_is_a_return_to_the_queue(served: ServedCluster) -> None:
    [row] = running(served, "runs", cpu="3")
    full_queue_of(served, "2")
    served.watch()
    clear_admission(served, row.name)
    served.settle(4)
    row.refresh_from_db()
    assert row.status == "Pending"
    assert Decision.objects.get(action="Evict").reason == "RequeueRequested"
    assert there(served, row)["QuotaReserved"][0] == "False"


def test_finished_ends_a_workload_without_a_job_only(served: ServedCluster) -> None:
    template = {"spec": {"containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}]}}
    spec = {"queueName": "local", "podSets": [{"name": "main", "count": 1, "template": template}]}
    [row] = running(served, "runs")
    served.apply("Workload", "mine", {"spec": spec}, "team")
    served.settle(4)
    for name in ("mine", row.name):
        say(served, name, "Finished", "Succeeded")
    served.settle(4)
    mine = Workload.objects.get(name="mine")
    assert (mine.status, mine.reason, mine.quota_reserved_at is None) == ("Finished", "Succeeded", False)
    row.refresh_from_db()
    assert row.status == "Admitted"
    assert "Finished" not in there(served, row)
    [refused] = AuditRecord.objects.filter(verb="refused", kind="Workload")
    assert "ends with its job" in refused.message


def test_other_conditions_are_written_back(served: ServedCluster) -> None:
    [row] = running(served, "runs")
    before = there(served, row)
    for type_ in ("Preempted", "BlockedOnPreemptionGates", "PodsReady"):
        say(served, row.name, type_, "ByTest", status="True" if before.get(type_, ("",))[0] != "True" else "False")
    say(served, row.name, "Admitted", "ByTest", status="False")
    say(served, row.name, "example.com/Billed", "ByTest")
    served.settle(4)
    row.refresh_from_db()
    assert row.status == "Admitted"
    found = there(served, row)
    assert found.pop("example.com/Billed") == ("True", "ByTest")  # another controller's own
    assert found["Admitted"] == ("True", "Admitted")
    assert "Preempted" not in found
    assert "BlockedOnPreemptionGates" not in found
