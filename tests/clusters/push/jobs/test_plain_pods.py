"""Plain pods that others made start as they were admitted, and not before their Workload says so."""

from __future__ import annotations

import pytest

from clusters.api_objects import NAMESPACES, PODS, JsonObject
from clusters.jobs.objects import CLUSTER_QUEUE_LABEL, HAMI_WEBHOOK_LABEL, WORKLOAD_UID_LABEL
from clusters.push.desired_state import surroundings_of
from clusters.push.sweep import PushReport, _Sweep
from scheduling.model.vocabulary import WorkloadStatus
from tests.clusters.group_pods import found_pod
from tests.clusters.system import System

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def admitted(system: System) -> System:
    """A system with a pod that waits at its gate and whose workload is admitted."""
    system.client.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}})
    system.client.create(PODS, found_pod("train"))
    system.watcher.resync()
    system.engine.run()
    assert system.workload().status == WorkloadStatus.ADMITTED
    return system


def labels(system: System) -> JsonObject:
    [pod] = system.pods()
    found: JsonObject = pod["metadata"]["labels"]
    return found


def sweep(system: System) -> _Sweep:
    return _Sweep(system.cluster, system.client, PushReport(), system.now, surroundings_of(system.cluster, ""))


def test_marks_of_an_earlier_admission_do_not_keep_a_pod_from_starting(admitted: System) -> None:
    marks = {WORKLOAD_UID_LABEL: "8a532403-a76a-4ada-a56e-d900841158d8", CLUSTER_QUEUE_LABEL: "earlier"}
    admitted.client.patch(PODS, "team", "train", {"metadata": {"labels": marks}})
    sweep(admitted).tell()
    workload = admitted.workload()
    assert workload.status == WorkloadStatus.ADMITTED
    assert labels(admitted).items() >= {
        WORKLOAD_UID_LABEL: str(workload.uid), CLUSTER_QUEUE_LABEL: workload.cluster_queue_name,
    }.items()  # fmt: skip


@pytest.mark.parametrize(("scheduler", "label"), [("default-scheduler", "ignore"), ("hami-scheduler", None)])
def test_a_pod_that_hamis_webhook_has_seen_is_left_to_hamis_scheduler(
    system: System, scheduler: str, label: str | None
) -> None:
    system.client.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}})
    system.client.create(PODS, found_pod("train", schedulerName=scheduler))
    system.watcher.resync()
    system.engine.run()
    sweep(system).tell()
    assert WORKLOAD_UID_LABEL in labels(system)
    assert labels(system).get(HAMI_WEBHOOK_LABEL) == label


def test_a_workload_that_is_admitted_during_a_sweep_starts_with_the_next(admitted: System) -> None:
    sweep(admitted).tell(may_start=())
    assert WORKLOAD_UID_LABEL not in labels(admitted)
    sweep(admitted).tell(may_start=[admitted.workload().pk])
    assert WORKLOAD_UID_LABEL in labels(admitted)
