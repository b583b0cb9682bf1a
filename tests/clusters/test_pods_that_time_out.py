"""waitForPodsReady where Kueue's objects are served: each of its fields as kubectl sees it in Workloads and jobs."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from accounts.models import Cluster
from clusters.api_objects import PODS, JsonObject
from clusters.manifests import apply_manifests
from queues.models import Workload
from scheduler.housekeeping.retention import delete_expired_workloads
from scheduling.model.vocabulary import WorkloadStatus
from tests.cluster_kinds import JOBS
from tests.clusters.served_cluster import ServedCluster, configure
from tests.simulated_cluster import ServerThread, fetch, job, make_simulated

pytestmark = pytest.mark.django_db(transaction=True)

CONFIGURATION = "apiVersion: config.kueue.x-k8s.io/v1beta2\nkind: Configuration\n"
TINY = """waitForPodsReady:
  timeout: 10ms
  blockAdmission: true
  requeuingStrategy: {timestamp: Eviction, backoffBaseSeconds: 10, backoffLimitCount: 1}
"""


@pytest.fixture
def served() -> Iterator[ServedCluster]:
    with ServerThread(make_simulated()) as server:
        cluster = ServedCluster(server)
        configure(cluster)
        cluster.settle()
        yield cluster


def set_up(served: ServedCluster, text: str) -> None:
    apply_manifests(Cluster.objects.get(pk=served.cluster.pk), f"{CONFIGURATION}{text}".encode(), user=None)


def queue_job(served: ServedCluster, name: str, cpu: str = "1") -> None:
    manifest = job(name, run_seconds=6000, suspend=True, requests={"cpu": cpu})
    labels = {"kueue.x-k8s.io/queue-name": "local"}
    manifest["metadata"] = {"name": name, "namespace": "team", "labels": labels}
    served.send("POST", "/apis/batch/v1/namespaces/team/jobs", manifest)


def turn(served: ServedCluster, seconds: float = 0.05) -> None:
    served.watch()
    served.engine.run()
    served.push()
    served.advance(seconds)


def until(served: ServedCluster, status: WorkloadStatus, name: str = "late") -> None:
    """Turns until the workload of a job has a status, short enough that no pod gets ready between two of them."""
    for _ in range(20):
        turn(served)
        if Workload.objects.get(job__name=name).status == status:
            return
        served.advance(2.0)
    raise AssertionError(f"{name} never was {status}")


def workload_of(served: ServedCluster, name: str) -> JsonObject:
    row = Workload.objects.get(job__name=name)
    return served.get("Workload", row.name, "team")


def condition(obj: JsonObject, name: str) -> tuple[str, str]:
    found = (obj.get("status") or {}).get("conditions") or ()
    return next(((each["status"], each["reason"]) for each in found if each["type"] == name), ("", ""))


def job_of(served: ServedCluster, name: str) -> Any:
    return fetch(f"{served.server.url}/apis/batch/v1/namespaces/team/jobs/{name}")


def test_a_job_whose_pods_are_late_twice_is_deactivated_in_the_cluster(served: ServedCluster) -> None:
    set_up(served, TINY)
    queue_job(served, "late")
    until(served, WorkloadStatus.ADMITTED)
    turn(served)
    served.advance(4)
    turn(served)
    there = workload_of(served, "late")
    assert condition(there, "PodsReady") == ("False", "WaitForStart")
    assert condition(there, "Evicted") == ("True", "PodsReadyTimeout")
    [counted] = there["status"]["schedulingStats"]["evictions"]
    assert counted == {"reason": "PodsReadyTimeout", "underlyingCause": "WaitForStart", "count": 1}
    assert there["status"]["requeueState"]["count"] == 1
    assert job_of(served, "late")["spec"]["suspend"] is True
    until(served, WorkloadStatus.ADMITTED)
    for _ in range(4):
        turn(served)
        served.advance(2)
    there = workload_of(served, "late")
    assert there["spec"]["active"] is False
    assert condition(there, "Evicted") == ("True", "DeactivatedDueToRequeuingLimitExceeded")
    assert job_of(served, "late")["spec"]["suspend"] is True


def test_the_job_of_a_deactivated_workload_goes_after_its_retention(served: ServedCluster) -> None:
    kept = "objectRetentionPolicies: {workloads: {afterDeactivatedByKueue: 10ms}}\n"
    set_up(served, TINY + kept)
    queue_job(served, "late")
    for _ in range(2):
        until(served, WorkloadStatus.ADMITTED)
        turn(served)
        served.advance(4)
    for _ in range(10):
        turn(served)
        served.advance(2)
        delete_expired_workloads(Cluster.objects.get(pk=served.cluster.pk), datetime.fromtimestamp(served.now(), UTC))
    assert not served.client.list(JOBS).items
    assert fetch(f"{served.server.url}/apis/{served.version}/workloads")["items"] == [], list(Workload.objects.values())


def test_nothing_else_is_admitted_until_the_pods_of_what_was_are_ready(served: ServedCluster) -> None:
    set_up(served, "waitForPodsReady: {timeout: 5m, blockAdmission: true}\n")
    queue_job(served, "late")
    until(served, WorkloadStatus.ADMITTED)
    queue_job(served, "other")
    turn(served)
    assert Workload.objects.get(job__name="other").status == WorkloadStatus.PENDING
    served.settle(4)  # the pods of the first are ready
    assert condition(workload_of(served, "late"), "PodsReady") == ("True", "Started")
    assert condition(workload_of(served, "other"), "Admitted") == ("True", "Admitted")


def test_a_job_that_does_not_recover_is_evicted_after_its_recovery_timeout(served: ServedCluster) -> None:
    set_up(served, "waitForPodsReady: {timeout: 5m, recoveryTimeout: 10s}\n")
    queue_job(served, "late")
    served.settle(5)
    assert condition(workload_of(served, "late"), "PodsReady") == ("True", "Started")
    [pod] = served.client.list(PODS).items
    failed = {"status": {"conditions": [{"type": "Ready", "status": "False"}]}}
    namespace, name = pod["metadata"]["namespace"], pod["metadata"]["name"]
    served.client.patch(PODS, namespace, name, failed, subresource="status")
    turn(served)
    assert condition_of_row("PodsReady") == ("False", "WaitForRecovery")
    served.advance(11)
    served.engine.run()
    assert condition_of_row("Evicted") == ("True", "PodsReadyTimeout")


def condition_of_row(name: str) -> tuple[str, str]:
    return condition({"status": {"conditions": Workload.objects.get().conditions}}, name)
