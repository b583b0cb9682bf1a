"""Nodes as the core sees them: what others hold counts as it was found."""

from __future__ import annotations

import pytest

from accounts.models import Cluster
from gpus.models import Device, DeviceAllocation
from scheduler.store.node_rows import read_nodes
from scheduling.model.device import DeviceSlice, MigInstance, MigPlacement
from tests.factories import START, make_cluster, make_node


@pytest.fixture
def cluster(db: None) -> Cluster:
    return make_cluster()


def found(cluster: Cluster, **fields: object) -> DeviceSlice:
    make_node(cluster, "n1", [{}])
    device = Device.objects.get()
    DeviceAllocation.objects.create(
        cluster=cluster, node=device.node, device=device, source="external", created_at=START,
        **{"memory_mib": 10, "cores_percent": 5, **fields},
    )  # fmt: skip
    [(_, node)] = read_nodes(cluster.pk)
    [held] = node.found
    return held


def test_a_found_slice_takes_its_pods_slots(cluster: Cluster) -> None:
    held = found(cluster, slots=3)
    assert (held.slots, held.memory_mib, held.cores_percent, held.mig) == (3, 10, 5, None)


def test_and_its_mig_instance(cluster: Cluster) -> None:
    held = found(cluster, mig_instance={"profile": "1g.5gb", "start": 2, "size": 1})
    assert held.mig == MigInstance("1g.5gb", MigPlacement(2, 1))


def test_what_could_not_be_read_takes_the_whole_device(cluster: Cluster) -> None:
    held = found(cluster, malformed="?", mig_instance={"profile": "1g.5gb", "start": 2, "size": 1})
    assert (held.slots, held.memory_mib, held.cores_percent, held.mig) == (4, 16_000, 100, None)


def test_what_others_hold_counts_in_their_namespace(cluster: Cluster) -> None:
    make_node(cluster, "n1", [{}, {}])
    common = {"cluster": cluster, "source": "external", "created_at": START, "cores_percent": 5}
    for device in Device.objects.select_related("node"):
        for namespace, malformed in (("team", ""), ("others", ""), ("team", "?")):
            DeviceAllocation.objects.create(
                device=device, node=device.node, namespace=namespace, malformed=malformed, memory_mib=10, **common
            )
    [(_, node)] = read_nodes(cluster.pk)
    assert node.external_usage == {("team", "NVIDIA"): (20, 10), ("others", "NVIDIA"): (20, 10)}
