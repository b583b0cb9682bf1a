"""Workload rows as the core sees them."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection

from accounts.models import Cluster
from gpus.models import AllocationSource, Device, DeviceAllocation
from queues.models import Job, PodSet, Workload
from queues.services.admission_rows import read_check_state, write_check_states
from scheduler.store.workloads import read_workloads
from scheduling.model.admission_check import AdmissionCheckState, PodSetUpdate
from scheduling.model.vocabulary import AdmissionCheckStatus
from tests.factories import START, make_cluster, make_node, make_workload

pytestmark = pytest.mark.django_db


def test_a_pod_that_others_made_is_a_single_pod() -> None:
    cluster = make_cluster()
    for name, kind, found in (("ours", "Pod", False), ("theirs", "Pod", True), ("job", "Job", True)):
        job = Job.objects.create(
            cluster=cluster, kind=kind, namespace="team", name=name, manifest={}, found_in_cluster=found,
            created_at=START,
        )  # fmt: skip
        make_workload(cluster, name, job=job)
    make_workload(cluster, "alone")
    read = {stored.workload.name: stored.workload.single_pod for stored in read_workloads(cluster.pk)}
    assert read == {"ours": False, "theirs": True, "job": False, "alone": False}


def test_reading_a_few_workloads_reads_their_rows_alone() -> None:
    """Behind a flood the planner's statistics are of the time before it: each batch read every workload."""
    cluster = make_cluster()
    few = [make_workload(cluster, f"first-{number}").pk for number in range(3)]
    Workload.objects.bulk_create(
        Workload(cluster=cluster, namespace="flood", name=f"w-{number}", queue_name="a", created_at=START)
        for number in range(3_000)
    )
    before = rows_fetched()
    assert [stored.id for stored in read_workloads(cluster.pk, few)] == few
    assert rows_fetched() - before < 100


def test_a_finished_workload_is_read_only_while_it_holds_slices() -> None:
    cluster = make_cluster()
    ended = make_workload(cluster, "ended")
    holding = placed(cluster, ["n1"])
    Workload.objects.update(status="Finished", finished_at=START)
    assert [stored.id for stored in read_workloads(cluster.pk, [ended.pk, holding.pk])] == [holding.pk]


def rows_fetched() -> int:
    """The rows of workloads that this transaction has read."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT seq_tup_read + idx_tup_fetch FROM pg_stat_xact_user_tables WHERE relname = 'queues_workload'"
        )
        return int(cursor.fetchone()[0])


def placed(cluster: Cluster, nodes: list[str | None]) -> Workload:
    """A workload that holds quota and a slice of one device for each of its replicas."""
    node = make_node(cluster, "n1", [{}])
    row = make_workload(
        cluster, "job", {"nvidia.com/gpu": "1"}, count=len(nodes), quota_reserved_at=START, status="Admitted",
        cluster_queue_name="main", conditions=[{"type": "QuotaReserved", "status": "True"}],
    )  # fmt: skip
    PodSet.objects.filter(workload=row).update(nodes=nodes, admitted_count=sum(found is not None for found in nodes))
    for replica in range(len(nodes)):
        DeviceAllocation.objects.create(
            cluster=cluster, node=node, device=Device.objects.get(), device_uuid="n1-0", workload=row, pod_set="main",
            source=AllocationSource.DECIDED, replica=replica, container="main", container_index=0, memory_mib=1_000,
            cores_percent=0,
            namespace="team", created_at=START,
        )  # fmt: skip
    return row


@pytest.mark.parametrize(
    ("nodes", "held", "gone"),
    [
        (["n1", "n1", "n1"], [0, 1, 2], []),
        (["n1", None, "n1"], [0, 2], [1]),
        ([None, None, None], [], [0, 1, 2]),
    ],
)
def test_a_replica_without_a_node_is_given_up(nodes: list[str | None], held: list[int], gone: list[int]) -> None:
    cluster = make_cluster()
    placed(cluster, nodes)
    (stored,) = read_workloads(cluster.pk)
    placement = stored.workload.placement
    assert [pod.replica for pod in placement.pods] == held if placement is not None else not held
    assert [pod.replica for pod in stored.left_over] == gone
    assert all(part.uuid == "n1-0" for pod in stored.left_over for part in pod.slices)


def test_what_a_check_adds_goes_around() -> None:
    update: dict[str, Any] = {
        "name": "main",
        "labels": {"a": "b"},
        "nodeSelector": {"pool": "new"},
        "tolerations": [{"key": "new", "operator": "Exists"}],
    }
    state = AdmissionCheckState(
        "nodes", AdmissionCheckStatus.READY, pod_set_updates=(PodSetUpdate.from_manifest(update),)
    )
    (written,) = write_check_states([state])
    assert written["podSetUpdates"] == [update]
    assert read_check_state(written) == state
