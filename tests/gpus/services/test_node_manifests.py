"""Nodes that come as manifests."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from accounts.models import Cluster
from gpus.manifests import NodeSpec
from gpus.models import Device, DeviceAllocation, Node
from gpus.services import apply_nodes, delete_nodes
from scheduling.manifest import ObjectMeta
from tests.factories import START, make_cluster, make_workload
from tests.gpus.services.test_nodes import gpu


@pytest.fixture
def cluster(db: None) -> Cluster:
    return make_cluster()


def spec(name: str = "n1", **fields: Any) -> NodeSpec:
    register = {"hami.io/node-nvidia-register": orjson.dumps([gpu("GPU-a")]).decode()}
    return NodeSpec(ObjectMeta(name=name, annotations=register), **fields)


def test_a_node_without_status_keeps_what_is_known_of_it(cluster: Cluster) -> None:
    assert apply_nodes(cluster.pk, [spec(allocatable={"cpu": 8000}, ready=False)]) == {"n1": "created"}
    assert apply_nodes(cluster.pk, [spec()]) == {"n1": "unchanged"}
    node = Node.objects.get()
    assert (node.allocatable, node.ready, node.api_version) == ({"cpu": 8000}, False, "v1")
    assert apply_nodes(cluster.pk, [spec(ready=True)], applied_set="lab") == {"n1": "configured"}
    node.refresh_from_db()
    assert (node.ready, node.applied_set, Device.objects.count()) == (True, "lab", 1)


def test_a_node_with_decided_slices_stays(cluster: Cluster) -> None:
    apply_nodes(cluster.pk, [spec("n1"), spec("n2")])
    device = Device.objects.get(node__name="n1")
    DeviceAllocation.objects.create(
        cluster=cluster, node=device.node, device=device, device_uuid="GPU-a", workload=make_workload(cluster, "w"),
        pod_set="main", memory_mib=1, cores_percent=1, created_at=START,
    )  # fmt: skip
    assert delete_nodes(cluster.pk, ["n1", "n2"]) == ["n2"]
    assert list(Node.objects.values_list("name", "ready")) == [("n1", False)]
