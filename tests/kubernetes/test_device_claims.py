"""Dynamic resource allocation through a real API server, with the rights that we ship: what a driver
publishes, what claims count against quota, and who allocates them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Final

import pytest

from accounts.kinds.feature_gates import CAPACITY_INTEGRATED
from clusters.api_objects import (
    DEVICE_CLASSES,
    NODES,
    RESOURCE_CLAIM_TEMPLATES,
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
    JsonObject,
)
from clusters.push.claims import FINALIZER
from queues.models import ClusterQueue, FlavorQuota, PodSet, ResourceGroup
from scheduler.store.device_objects import read_device_objects
from tests.claim_objects import DRIVER, claim_template, device, driver_class, request, resource_slice
from tests.clusters.system import gpu_job, queued
from tests.clusters.test_device_claims import with_claims
from tests.kubernetes.system import System
from tests.simulated_cluster import job

COUNTED: Final = "example.com/nics"
MEMORY: Final = "example.com/memory"
CLAIMS: Final = RESOURCE_CLAIMS[0]
PUBLISHED: Final = {kinds[0].kind: kinds[0] for kinds in (DEVICE_CLASSES, RESOURCE_SLICES, RESOURCE_CLAIM_TEMPLATES)}
_OF_THE_SCHEDULER: Final = "kube-scheduler"


@pytest.fixture
def driver(system: System) -> Iterator[System]:
    """Each node has four devices of a driver, which count as a resource of the queue: there is quota for six."""
    mapping = {"name": COUNTED, "deviceClassNames": [DRIVER]}
    count(system, {"resources": {"deviceClassMappings": [mapping]}}, COUNTED, 6)
    yield from published(system, 4, claim_template("nic", request(2)))


@pytest.fixture
def shared_driver(system: System) -> Iterator[System]:
    """Each node has one device of 80 GiB, which several claims can share; there is quota for 100 GiB."""
    selector = {"cel": {"expression": f'device.driver == "{DRIVER}"'}}
    source = {"capacity": {"name": "memory", "driver": DRIVER, "deviceSelector": selector}}
    mapping = {"name": MEMORY, "deviceClassNames": [DRIVER], "sources": [source]}
    gates = {CAPACITY_INTEGRATED: True}
    count(system, {"featureGates": gates, "resources": {"deviceClassMappings": [mapping]}}, MEMORY, 100 * 2**30)
    policy = {"default": "80Gi", "validRange": {"min": "1Gi", "step": "1Gi"}}
    capacity = {"memory": {"value": "80Gi", "requestPolicy": policy}}
    part = request(1, capacity={"requests": {"memory": "30Gi"}})
    yield from published(
        system, [device("gpu-0", capacity=capacity, allowMultipleAllocations=True)], claim_template("part", part)
    )


def count(system: System, configuration: JsonObject, resource: str, quota: int) -> None:
    """Give the queue a quota of a resource that claims count as."""
    system.cluster.configuration = configuration
    system.cluster.save()
    group = ResourceGroup.objects.get(cluster_queue=ClusterQueue.objects.get())
    FlavorQuota.objects.create(resource_group=group, flavor="gpu-flavor", resource=resource, nominal_quota=quota)
    ResourceGroup.objects.filter(pk=group.pk).update(covered_resources=[*group.covered_resources, resource])


def published(system: System, devices: int | list[JsonObject], template: JsonObject) -> Iterator[System]:
    """Have the driver publish these devices on each node, and a tenant the template."""
    nodes = [node["metadata"]["name"] for node in system.client.list(NODES).items]
    published = [driver_class(), template, *(resource_slice(name, devices) for name in nodes)]
    for each in published:
        system.admin.create(PUBLISHED[each["kind"]], each)
    yield system
    for each in published:
        namespace = each["metadata"].get("namespace", "")
        system.admin.delete(PUBLISHED[each["kind"]], namespace, each["metadata"]["name"])


def claims(system: System) -> list[JsonObject]:
    return list(system.admin.list(CLAIMS, "team").items)


def results(claim: JsonObject) -> list[tuple[str, str]]:
    """What it holds, as (pool, device)."""
    listed = claim["status"]["allocation"]["devices"]["results"]
    return [(each["pool"], each["device"]) for each in listed]


def test_claims_of_pods_that_we_bind_are_counted_and_allocated_by_us(driver: System) -> None:
    system = driver
    system.turn()
    objects = read_device_objects(system.cluster.pk)
    assert list(objects.classes) == [DRIVER]
    assert sorted(len(pool.devices) for pool in objects.pools) == [4, 4]

    system.submit(with_claims(gpu_job("train", parallelism=2, completions=2, run_seconds=None), "nic"))
    system.until("both pods run", lambda: system.phases("train") == ["Running", "Running"])
    assert PodSet.objects.get().resource_usage[COUNTED] == 4
    nodes = {pod["metadata"]["uid"]: pod["spec"]["nodeName"] for pod in system.pods("train")}
    held = []
    for found in claims(system):
        assert FINALIZER in found["metadata"]["finalizers"]
        (holder,) = found["status"]["reservedFor"]
        assert {pool for pool, _ in results(found)} == {nodes[holder["uid"]]}, "the devices of its pod's node"
        held += results(found)
    assert len(held) == len(set(held)) == 4

    system.submit(with_claims(gpu_job("more", parallelism=2, completions=2, run_seconds=None), "nic"))
    system.until("it waits for quota of claims", lambda: COUNTED in system.workload("more").message)
    assert system.status("more") == "Pending", "six are promised, four are held, four are asked for"


def test_claims_of_pods_that_we_bind_share_a_device(shared_driver: System) -> None:
    """The API server takes what we write of a part, and two parts of 30 GiB fit on a device of 80 GiB."""
    system = shared_driver
    system.submit(with_claims(gpu_job("train", parallelism=3, completions=3, run_seconds=None), "part"))
    system.until("all pods run", lambda: system.phases("train") == ["Running"] * 3)
    assert PodSet.objects.get().resource_usage[MEMORY] == 90 * 2**30
    parts = [each for found in claims(system) for each in found["status"]["allocation"]["devices"]["results"]]
    assert [each["consumedCapacity"] for each in parts] == [{"memory": "30Gi"}] * 3
    assert len({each["shareID"] for each in parts}) == 3
    assert sorted(Counter(each["pool"] for each in parts).values()) == [1, 2]

    system.submit(with_claims(gpu_job("more", run_seconds=None), "part"))
    system.until("it waits for quota of claims", lambda: MEMORY in system.workload("more").message)


def test_claims_of_pods_that_the_scheduler_places_are_allocated_by_it(driver: System) -> None:
    system = driver
    system.submit(with_claims(queued(job("plain", run_seconds=5, requests={"cpu": "1"})), "nic"))
    system.until("it runs", lambda: system.phases("plain") == ["Running"])
    assert PodSet.objects.get().resource_usage[COUNTED] == 2
    (found,) = claims(system)
    assert len(results(found)) == 2
    writers = {
        each["manager"]
        for each in found["metadata"]["managedFields"]
        if each.get("subresource") == "status" and "f:allocation" in str(each["fieldsV1"])
    }
    assert writers == {_OF_THE_SCHEDULER}
    system.until("it is over", lambda: system.status("plain") == "Finished")
    system.until(
        "nothing is held any more", lambda: not any(each["status"].get("allocation") for each in claims(system))
    )
