"""MIG devices through the engine: several instances for one container, and all that a device can be cut into."""

from __future__ import annotations

import json

import pytest

from accounts.models import Cluster
from gpus.api.reads import drifts
from gpus.models import Device, DeviceAllocation
from gpus.services import ObservedNode, sync_node
from scheduler.live.publisher import numbers
from tests.engines import start, statuses
from tests.factories import make_cluster, make_cluster_queue, make_workload

pytestmark = pytest.mark.django_db(transaction=True)

PROFILES = [
    {
        "name": "1g.5gb", "memoryMB": 4864, "core": 15, "sliceCount": 1,
        "placements": [{"start": start, "size": 1} for start in range(7)],
    },
    {
        "name": "2g.10gb", "memoryMB": 9856, "core": 29, "sliceCount": 2,
        "placements": [{"start": start, "size": 2} for start in (0, 2, 4)],
    },
]  # fmt: skip


@pytest.fixture
def mig() -> Cluster:
    """One A100 of 40 GiB in MIG mode."""
    cluster = make_cluster()
    make_cluster_queue(cluster, quotas={"default-flavor": {"nvidia.com/gpu": 100, "nvidia.com/gpumem": 10**6}})
    device = {
        "id": "GPU-m", "count": 7, "devmem": 40960, "devcore": 100, "type": "NVIDIA A100", "mode": "mig",
        "health": True, "migProfiles": PROFILES,
    }  # fmt: skip
    amounts = {"cpu": 64_000, "pods": 110}
    annotations = {"hami.io/node-nvidia-register": json.dumps([device])}
    sync_node(cluster.pk, ObservedNode("n1", "n1", {}, annotations, (), amounts, amounts, True, False))
    return cluster


def starts() -> list[int]:
    instances = DeviceAllocation.objects.values_list("mig_instance__start", flat=True)
    return sorted(instances)


def test_two_instances_of_one_device_for_one_container(mig: Cluster) -> None:
    make_workload(mig, "two", {"nvidia.com/gpu": "2", "nvidia.com/gpumem": "9000"})
    make_workload(mig, "one", {"nvidia.com/gpu": "1", "nvidia.com/gpumem": "9000"})
    engine = start(mig)
    engine.run()
    (shown,) = numbers(engine.world, engine.rows)["devices"].values()
    assert shown["mig_places"] == 7
    instances = [each for held in shown["slices"] for each in held["mig"]]
    assert sorted((each["profile"], each["start"], each["size"]) for each in instances) == [
        ("2g.10gb", 0, 2),
        ("2g.10gb", 2, 2),
        ("2g.10gb", 4, 2),
    ]
    assert statuses() == {"two": "Admitted", "one": "Admitted"}
    assert starts() == [0, 2, 4]
    make_workload(mig, "more", {"nvidia.com/gpu": "1", "nvidia.com/gpumem": "9000"})
    start(mig).run()
    assert statuses()["more"] == "Pending", "a new leader knows every instance"


def test_all_instances_that_a_device_can_be_cut_into(mig: Cluster) -> None:
    """Seven times 15 % are 105 %: the plugin rounds a profile's share of the device up."""
    for number in range(8):
        make_workload(mig, f"w{number}", {"nvidia.com/gpu": "1", "nvidia.com/gpumem": "4000"})
    start(mig).run()
    assert starts() == list(range(7))
    assert list(statuses().values()).count("Admitted") == 7
    assert (Device.objects.get().used_slots, Device.objects.get().used_cores_percent) == (7, 105)
    assert not list(drifts(mig.pk)), "and that is no drift"
