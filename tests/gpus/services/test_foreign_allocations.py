"""Slices of others: always stored, above what a device has, and counted on it."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from accounts.models import Cluster
from gpus.annotations import FoundAllocation
from gpus.models import Device, DeviceAllocation
from gpus.services import ExternalPod, forget_external, keep_external, observed_node, record_external, sync_node
from scheduling.model.device import DeviceSlice, MigInstance, MigPlacement
from tests.factories import make_cluster, make_node
from tests.gpus.services.test_nodes import gpu, manifest

NOW = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
def cluster(db: None) -> Cluster:
    cluster = make_cluster()
    make_node(cluster, "n1", [{"uuid": "GPU-a"}, {"uuid": "GPU-b"}])
    return cluster


def pod(uid: str, *slices: DeviceSlice, malformed: str = "", node: str = "n1") -> ExternalPod:
    return ExternalPod("team", f"pod-{uid}", uid, FoundAllocation(node, slices, malformed))


def part(uuid: str = "GPU-a", memory_mib: int = 10_000, cores_percent: int = 40) -> DeviceSlice:
    return DeviceSlice(uuid, "n1", memory_mib, cores_percent)


def counted(uuid: str = "GPU-a") -> tuple[int, int, int]:
    device = Device.objects.get(uuid=uuid)
    return device.external_slots, device.external_memory_mib, device.external_cores_percent


def test_slices_add_up_on_their_device_beyond_what_it_has(cluster: Cluster) -> None:
    assert record_external(cluster.pk, [pod("1", part()), pod("2", part(), part("GPU-b", 1, 1))], NOW)
    assert (counted(), counted("GPU-b")) == ((2, 20_000, 80), (1, 1, 1))
    assert Device.objects.get(uuid="GPU-a").memory_mib == 16_000


def test_the_same_again_writes_nothing_and_a_change_replaces(cluster: Cluster) -> None:
    record_external(cluster.pk, [pod("1", part())], NOW)
    before = DeviceAllocation.objects.get().pk
    assert record_external(cluster.pk, [pod("1", part())], NOW) is False
    assert DeviceAllocation.objects.get().pk == before
    assert record_external(cluster.pk, [pod("1", part("GPU-b"))], NOW)
    assert (counted(), counted("GPU-b")) == ((0, 0, 0), (1, 10_000, 40))


def test_pods_that_ended_are_forgotten(cluster: Cluster) -> None:
    record_external(cluster.pk, [pod("1", part()), pod("2", part()), pod("3", part())], NOW)
    assert forget_external(cluster.pk, ["1", "unknown"])
    assert counted() == (2, 20_000, 80)
    assert keep_external(cluster.pk, ["2"])
    assert counted() == (1, 10_000, 40)
    assert keep_external(cluster.pk, ["2"]) is False


def test_what_can_not_be_read_counts_as_every_device_of_its_node(cluster: Cluster) -> None:
    record_external(cluster.pk, [pod("1", malformed="4 fields, not 3")], NOW)
    assert (counted(), counted("GPU-b")) == ((4, 16_000, 100), (4, 16_000, 100))
    assert set(DeviceAllocation.objects.values_list("malformed", flat=True)) == {"4 fields, not 3"}
    record_external(cluster.pk, [pod("1", part())], NOW)
    assert (counted(), counted("GPU-b")) == ((1, 10_000, 40), (0, 0, 0))


@pytest.mark.parametrize(
    "held", [part(memory_mib=10**30), part(cores_percent=-1), part("GPU-" + "a" * 200), part(memory_mib=-5)]
)
def test_what_no_device_can_be_counts_as_every_device_too(cluster: Cluster, held: DeviceSlice) -> None:
    record_external(cluster.pk, [pod("1", held)], NOW)
    assert (counted(), counted("GPU-b")) == ((4, 16_000, 100), (4, 16_000, 100))
    assert "out of range" in DeviceAllocation.objects.all()[0].malformed


def test_a_slice_of_an_unlisted_device_is_kept_and_linked_when_the_device_appears(cluster: Cluster) -> None:
    record_external(cluster.pk, [pod("1", part("GPU-c"))], NOW)
    assert DeviceAllocation.objects.get().device is None
    devices = [gpu("GPU-a"), gpu("GPU-b", 1), gpu("GPU-c", 2)]
    sync_node(cluster.pk, observed_node(manifest(*devices)), now=NOW)
    assert (DeviceAllocation.objects.get().device, counted("GPU-c")) == (
        Device.objects.get(uuid="GPU-c"),
        (1, 10_000, 40),
    )


def test_a_pod_of_an_unknown_node_is_passed_over(cluster: Cluster) -> None:
    assert record_external(cluster.pk, [pod("1", part(), node="elsewhere")], NOW) is False


def test_all_mig_instances_of_a_device_are_kept_and_the_amounts_counted_once(cluster: Cluster) -> None:
    first, *others = (MigInstance("1g.5gb", MigPlacement(start, 1)) for start in (6, 5, 4))
    mig = DeviceSlice("GPU-a", "n1", 14_592, 45, mig=first, slots=3, further_mig=tuple(others))
    record_external(cluster.pk, [pod("1", mig)], NOW)
    rows = DeviceAllocation.objects.order_by("id")
    assert [(row.mig_instance, row.slots, row.memory_mib) for row in rows] == [
        ({"profile": "1g.5gb", "start": 6, "size": 1}, 3, 14_592),
        ({"profile": "1g.5gb", "start": 5, "size": 1}, 0, 0),
        ({"profile": "1g.5gb", "start": 4, "size": 1}, 0, 0),
    ]
    assert counted() == (3, 14_592, 45)
    assert record_external(cluster.pk, [pod("1", mig)], NOW) is False


def test_a_mig_instance_is_kept(cluster: Cluster) -> None:
    mig = DeviceSlice("GPU-a", "n1", 9728, 28, mig=MigInstance("2g.10gb", MigPlacement(2, 2)))
    record_external(cluster.pk, [pod("1", mig)], NOW)
    assert DeviceAllocation.objects.get().mig_instance == {"profile": "2g.10gb", "start": 2, "size": 2}
    assert record_external(cluster.pk, [pod("1", mig)], NOW) is False
