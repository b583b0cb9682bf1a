"""Advice about devices over REST: fragmentation, and moves that would let a workload in."""

from __future__ import annotations

import pytest

from accounts.models import Cluster
from queues.models import LocalQueue, PodSet, Workload
from scheduler.leader.engine import Engine
from tests.api_client import SchemaClient
from tests.factories import START, make_cluster_queue, make_namespace, make_node, make_workload

pytestmark = pytest.mark.django_db(transaction=True)

GPU, MEMORY = "nvidia.com/gpu", "nvidia.com/gpumem"


def gpu_job(cluster: Cluster, name: str, memory: int, node_policy: str = "binpack") -> None:
    """A waiting workload of one pod with a slice of that size."""
    container = {"name": "main", "image": "busybox", "resources": {"limits": {GPU: "1", MEMORY: str(memory)}}}
    metadata = {"annotations": {"hami.io/node-scheduler-policy": node_policy}}
    workload = make_workload(cluster, name)
    PodSet.objects.filter(workload=workload).update(
        template={"metadata": metadata, "spec": {"containers": [container]}}
    )


def run(cluster: Cluster) -> None:
    """Decide what there is to decide."""
    Engine(cluster, "test", clock=lambda: START.timestamp() + 1000).run()


@pytest.fixture
def fragmented(cluster: Cluster) -> Cluster:
    """Two devices of 16,000 MiB: 10,000 MiB of one and 4,000 MiB of the other are in use, and a job wants 13,000."""
    make_namespace(cluster, "team")
    make_cluster_queue(cluster, quotas={"default-flavor": {GPU: 10, MEMORY: 1_000_000}})
    make_node(cluster, "n1", [{}])
    make_node(cluster, "n2", [{}])
    for name, memory in (("big", 10_000), ("small", 4000), ("wide", 13_000)):
        gpu_job(cluster, name, memory, "spread")
        run(cluster)
    return cluster


def test_fragmentation(fragmented: Cluster, alice: SchemaClient) -> None:
    body = alice.get("/api/v1/fragmentation/").json()
    assert {name: node["idle_milli"] for name, node in body["nodes"].items()} == {"n1": 375, "n2": 750}
    assert (body["cluster"]["devices"], body["cluster"]["idle_milli"], body["cluster"]["unused_devices"]) == (
        2,
        1125,
        0,
    )
    # of big and small, which run: big fits on n2 only, small on both
    assert body["cluster"]["fragmented_milli"] == pytest.approx((375 + 0) / 2)
    assert body["flavors"] == {"default-flavor": body["cluster"]}
    (largest,) = body["cluster"]["largest"]
    assert (largest["count"], largest["memory_mib"], largest["cores_percent"], largest["node"]) == (
        1,
        12_000,
        100,
        "n2",
    )


def test_moves(fragmented: Cluster, alice: SchemaClient) -> None:
    assert Workload.objects.get(name="wide").reason == "WaitingForDevices"
    assert alice.get("/api/v1/workloads/team/wide/moves/").json() == {
        "outcome": "Moves",
        "message": "After these moves, the workload fits.",
        "moves": [
            {
                "workload": "team/small",
                "current": {"pod_set": "main", "replica": 0, "node": "n2", "devices": ["n2-0"]},
                "proposed": {"pod_set": "main", "replica": 0, "node": "n1", "devices": ["n1-0"]},
            }
        ],
        "placement": [{"pod_set": "main", "replica": 0, "node": "n2", "devices": ["n2-0"]}],
    }
    held = alice.get("/api/v1/workloads/team/big/moves/").json()
    assert (held["outcome"], held["moves"], held["placement"]) == ("HoldsQuota", [], [])
    assert alice.get("/api/v1/workloads/team/nobody/moves/").status_code == 404


def test_an_empty_cluster(cluster: Cluster, alice: SchemaClient) -> None:
    body = alice.get("/api/v1/fragmentation/").json()
    assert body["cluster"] == {
        "devices": 0,
        "idle_milli": 0,
        "fragmented_milli": None,
        "unused_devices": 0,
        "largest": [],
    }


def test_tenants_see_their_own_and_that_a_place_is_occupied(
    fragmented: Cluster, bob: SchemaClient, vera: SchemaClient, nobody: SchemaClient
) -> None:
    assert bob.get("/api/v1/fragmentation/").json()["cluster"]["devices"] == 2
    assert bob.get("/api/v1/workloads/team/wide/moves/").status_code == 404
    Workload.objects.filter(name="wide").delete()
    LocalQueue.objects.create(
        cluster=fragmented, namespace="team-a", name="queue", cluster_queue_name="main", created_at=START
    )
    gpu_job(fragmented, "mine", 13_000)
    Workload.objects.filter(name="mine").update(namespace="team-a")
    run(fragmented)
    url = "/api/v1/workloads/team-a/mine/moves/"
    (move,) = vera.get(url).json()["moves"]
    assert (move["workload"], move["current"]["pod_set"]) == ("team/small", "main")
    (hidden,) = bob.get(url).json()["moves"]
    assert (hidden["workload"], hidden["current"]["pod_set"], hidden["current"]["node"]) == ("", "", "n2")
    for address in ("fragmentation/", "workloads/team-a/mine/moves/"):
        assert nobody.get(f"/api/v1/{address}").status_code == 403
