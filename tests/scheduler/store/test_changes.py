"""The engine's to-do list is taken in turns: one tenant's flood does not hold up another's note."""

from __future__ import annotations

from collections import Counter

import pytest
from django.utils import timezone

from queues.models import Workload
from scheduler.models import Change
from scheduler.store.changes import read_changes
from tests.factories import make_cluster, make_workload

pytestmark = pytest.mark.django_db


def test_each_tenant_gets_its_turn_in_every_batch() -> None:
    cluster = make_cluster()
    Change.objects.all().delete()
    flood = [Change(cluster_id=cluster.pk, kind="workload", object_id=n, key=f"flood/w-{n}") for n in range(1000)]
    Change.objects.bulk_create(flood)
    Change.objects.create(cluster_id=cluster.pk, kind="workload", object_id=5000, key="other/w")
    nodes = [Change(cluster_id=cluster.pk, kind="node", object_id=n, key=f"node-{n}") for n in range(600)]
    Change.objects.bulk_create(nodes)

    taken = read_changes(cluster.pk, 250)
    assert set(taken.by_kind) == {"workload", "node"}
    assert len(taken.by_kind["node"]) == 600  # everybody's: all at once
    assert list(taken.by_kind["workload"]) == [*range(250), 5000]

    seen = 0
    while changes := read_changes(cluster.pk, 250):
        seen += len(changes.ids)
        Change.objects.filter(pk__in=changes.ids).delete()
    assert seen == 1601


def test_many_tenants_together_do_not_make_a_long_batch() -> None:
    """Two hundred tenants with a flood each: a few notes of each, where it was 250 of each."""
    cluster = make_cluster()
    Change.objects.all().delete()
    flood = [
        Change(cluster_id=cluster.pk, kind="workload", object_id=n, key=f"tenant-{n % 200}/w-{n}") for n in range(4000)
    ]
    Change.objects.bulk_create(flood)
    taken = read_changes(cluster.pk, 250).by_kind["workload"]
    assert Counter(key.partition("/")[0] for key in taken.values()) == {f"tenant-{n}": 5 for n in range(200)}


def test_a_flood_of_submissions_holds_up_no_workload_of_its_tenant_that_ends() -> None:
    cluster = make_cluster()
    held = make_workload(cluster, "held")
    Workload.objects.filter(pk=held.pk).update(quota_reserved_at=timezone.now())
    Change.objects.all().delete()
    flood = [
        Workload(cluster=cluster, namespace=held.namespace, name=f"w-{n}", created_at=timezone.now()) for n in range(30)
    ]
    first = [workload.pk for workload in Workload.objects.bulk_create(flood)][:20]
    Workload.objects.filter(pk=held.pk).update(status="Finished")
    assert list(read_changes(cluster.pk, 20).by_kind["workload"]) == [*first, held.pk]
