"""The triggers: what is noted, what is not, and what the database refuses."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db import IntegrityError, connection, transaction
from django.utils import timezone

from accounts.models import AuditRecord, Cluster
from gpus.models import Device
from queues.models import FlavorQuota, LimitRange, PodSet, Reservation, ResourceQuota, RuntimeClass, Workload
from scheduler.models import Change
from tests.factories import make_cluster, make_cluster_queue, make_node, make_workload

pytestmark = pytest.mark.django_db


def noted() -> set[tuple[str, str]]:
    found = set(Change.objects.values_list("kind", "key"))
    Change.objects.all().delete()
    return found


def generation() -> int:
    return Cluster.objects.get().configuration_generation


def test_it_notes_every_kind_of_write() -> None:
    cluster = make_cluster()
    make_cluster_queue(cluster)
    workload = make_workload(cluster, "one")
    assert noted() == {
        ("namespace", "team"),
        ("resourceflavor", "default-flavor"),
        ("clusterqueue", "main"),
        ("localqueue", "team/queue"),
        ("workload", "team/one"),
    }
    with connection.cursor() as cursor:
        cursor.execute("UPDATE queues_workload SET priority = 5")
    assert noted() == {("workload", "team/one")}
    PodSet.objects.all().delete()
    workload.delete()
    assert noted() == {("workload", "team/one")}


def test_it_raises_the_generations() -> None:
    cluster = make_cluster()
    queue = make_cluster_queue(cluster)
    workload = make_workload(cluster, "one")
    before, configuration = workload.generation, generation()
    Workload.objects.filter(pk=workload.pk).update(priority=1)
    PodSet.objects.filter(workload=workload).update(count=2)
    workload.refresh_from_db()
    assert workload.generation == before + 2
    assert generation() == configuration
    queue.refresh_from_db()
    before = queue.generation
    FlavorQuota.objects.update(nominal_quota=5)
    queue.refresh_from_db()
    assert (queue.generation, generation()) == (before + 1, configuration + 1)


def test_a_quota_row_notes_the_queue_that_owns_it() -> None:
    make_cluster_queue(make_cluster())
    noted()
    FlavorQuota.objects.update(nominal_quota=5)
    assert noted() == {("clusterqueue", "main")}


def test_a_device_notes_its_node() -> None:
    make_node(make_cluster(), "n1", [{}])
    noted()
    Device.objects.update(cordoned=True)
    assert noted() == {("node", "n1")}


def test_a_change_of_the_configuration_is_noted_and_a_bump_of_the_generation_is_not() -> None:
    cluster = make_cluster()
    noted()
    Cluster.objects.update(configuration={"fairSharing": {}})
    assert noted() == {("cluster", "default")}
    before = generation()
    make_workload(cluster, "one")
    assert generation() == before


def test_the_engines_own_writes_are_not_noted() -> None:
    workload = make_workload(make_cluster(), "one")
    noted()
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET LOCAL kueueweb.unnoticed = 'on'")
        Workload.objects.filter(pk=workload.pk).update(status="Admitted")
    before = workload.generation
    workload.refresh_from_db()
    assert noted() == set()
    assert workload.generation == before


@pytest.mark.parametrize(
    ("column", "value"), [("used_slots", 5), ("used_memory_mib", 16_001), ("used_cores_percent", 101)]
)
def test_a_decided_slice_never_exceeds_its_device(column: str, value: int) -> None:
    make_node(make_cluster(), "n1", [{}])
    with pytest.raises(IntegrityError, match="cannot hold another slice"), transaction.atomic():
        Device.objects.update(**{column: value})


def test_what_others_hold_counts_against_the_device_and_is_always_stored() -> None:
    make_node(make_cluster(), "n1", [{}])
    Device.objects.update(external_memory_mib=20_000)
    with pytest.raises(IntegrityError, match="cannot hold another slice"), transaction.atomic():
        Device.objects.update(used_memory_mib=1)


def test_a_device_may_shrink_below_what_it_holds() -> None:
    make_node(make_cluster(), "n1", [{}])
    Device.objects.update(used_memory_mib=16_000)
    Device.objects.update(memory_mib=8_000)
    Device.objects.update(used_memory_mib=12_000)
    assert Device.objects.get().used_memory_mib == 12_000


def test_it_notes_reservations() -> None:
    cluster = make_cluster()
    noted()
    now = timezone.now()
    row = Reservation.objects.create(
        cluster=cluster, name="r", node_names=["a"], starts_at=now, ends_at=now + timedelta(hours=1), created_at=now
    )
    assert noted() == {("reservation", "r")}
    before = generation()
    Reservation.objects.update(comment="x")
    row.refresh_from_db()
    assert (row.generation, generation()) == (2, before + 1)
    assert noted() == {("reservation", "r")}
    with pytest.raises(IntegrityError, match="reservation_ends_after_its_start"), transaction.atomic():
        Reservation.objects.update(ends_at=now)
    row.delete()
    assert noted() == {("reservation", "r")}
    assert set(AuditRecord.objects.filter(kind="Reservation").values_list("verb", flat=True)) >= {"create", "delete"}


def test_it_notes_what_limits_a_namespace() -> None:
    cluster = make_cluster()
    noted()
    common: dict[str, Any] = {"cluster": cluster, "created_at": timezone.now()}
    quota = ResourceQuota.objects.create(namespace="team", name="gpus", **common)
    LimitRange.objects.create(namespace="team", name="sizes", **common)
    RuntimeClass.objects.create(name="kata", handler="kata", **common)
    assert noted() == {("resourcequota", "team/gpus"), ("limitrange", "team/sizes"), ("runtimeclass", "kata")}
    before = generation()
    ResourceQuota.objects.update(hard={"limits.nvidia.com/gpumem": "10"})
    quota.refresh_from_db()
    assert (quota.generation, generation()) == (2, before + 1)
    quota.delete()
    assert noted() == {("resourcequota", "team/gpus")}
