"""Batches that the database refuses when it checks foreign keys: nothing of them is stored."""

from __future__ import annotations

from contextlib import nullcontext

import pytest

from gpus.models import AllocationSource, DeviceAllocation
from queues.models import Workload
from scheduler.store.batch import Batch
from scheduler.store.lease import begin_epoch
from scheduler.store.saving import BatchRefused, hold_rows, save
from tests.factories import START, make_cluster, make_node, make_workload

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.parametrize("holds_rows", [False, True])
def test_a_batch_that_deletes_a_workload_to_which_a_row_refers_is_refused(*, holds_rows: bool) -> None:
    cluster = make_cluster()
    row, node = make_workload(cluster, "held"), make_node(cluster, "node")
    DeviceAllocation.objects.create(
        cluster=cluster, node=node, workload=row, source=AllocationSource.EXTERNAL, device_uuid="device",
        memory_mib=1, cores_percent=0, created_at=START,
    )  # fmt: skip
    epoch = begin_epoch(cluster.pk, "leader")
    cluster.refresh_from_db()
    batch = Batch(cluster.pk, cluster.name, epoch, cluster.configuration_generation, deleted_ids=[row.pk])
    with hold_rows(cluster.pk, [row.pk]) if holds_rows else nullcontext(), pytest.raises(BatchRefused) as refused:
        save(batch)
    assert refused.value.by_rule
    assert Workload.objects.get().pod_sets.count() == 1
