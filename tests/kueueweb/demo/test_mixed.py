"""The demo's mixed fleet: devices of every vendor, and jobs that find a place on them."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
import yaml

from gpus.annotations import node_devices
from gpus.services import observed_node
from gpus.vendors import VENDORS
from kueueweb import demo
from kueueweb.demo.mixed import SHAPES, mixed_job
from scheduling.devices.requests.requests import pod_device_request
from scheduling.devices.search.fleet import Fleet
from scheduling.model.node import Node
from scheduling.model.placement import Placement, PodSetToPlace
from simulation.fleet import MIXED
from simulation.mixed_fleet import mixed_fleet

NO_NODE = {"Ascend910A", "Ascend910B2", "Ascend910B4", "Ascend910B4-1", "Ascend310P", "MR-V100", "MR-V50", "BI-V100"}
NO_NODE |= {"Metax-GPU", "GCU", "XPU"}  # the same devices in their other mode


def nodes() -> list[Node]:
    found = []
    for manifest in mixed_fleet():
        node = observed_node(manifest)
        read = node_devices(node.name, node.annotations, node.capacity, {}, VENDORS, 0, node.labels)
        assert not read.problems, (node.name, read.problems)
        assert read.devices, node.name
        found.append(Node(node.name, labels=node.labels, devices=read.devices))
    return found


def test_every_vendor_has_a_node() -> None:
    vendors = {device.vendor for node in nodes() for device in node.devices}
    assert vendors == {vendor.common_word for vendor in VENDORS} - NO_NODE


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: "-".join(shape[1].values()) + shape[0])
def test_every_job_finds_a_place(shape: tuple[str, dict[str, str]]) -> None:
    fleet = Fleet(VENDORS)
    for node in nodes():
        fleet.set_node(node)
    pod = {"spec": {"containers": [{"name": "main", "resources": {"limits": shape[1]}}]}}
    request = pod_device_request(pod, VENDORS)
    assert not request.problems
    assert isinstance(fleet.place([PodSetToPlace("main", 1, devices=request)]), Placement)


def test_the_queue_covers_what_jobs_ask_for() -> None:
    text = (Path(demo.__file__).parent / "mixed.yaml").read_text()
    (queue,) = [each for each in yaml.safe_load_all(text) if each["kind"] == "ClusterQueue"]
    covered = {name for group in queue["spec"]["resourceGroups"] for name in group["coveredResources"]}
    asked = {name.replace("nvidia.com/gpumem", "nvidia.com/total-gpumem") for _, limits in SHAPES for name in limits}
    assert asked <= covered


def test_a_job_is_of_the_queue() -> None:
    job = mixed_job(MIXED, 10, random.Random(1))
    assert job["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] == "accelerators-queue"
