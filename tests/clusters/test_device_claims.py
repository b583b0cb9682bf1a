"""Dynamic resource allocation in a cluster: what drivers publish becomes rows, and claims of pods that we bind are
allocated by us."""

from __future__ import annotations

from typing import Any

import pytest

from clusters.api_objects import (
    DEVICE_CLASSES,
    PODS,
    RESOURCE_CLAIM_TEMPLATES,
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
    JsonObject,
    Kind,
)
from clusters.push.claims import FINALIZER
from queues.models import ClusterObject, ClusterQueue, FlavorQuota, PodSet, ResourceGroup, Workload
from scheduler.store.device_objects import read_device_objects
from tests.claim_objects import DRIVER, claim, claim_template, driver_class, pod_spec, request, resource_slice
from tests.clusters.system import System, gpu_job, queued
from tests.simulated_cluster import job

pytestmark = pytest.mark.django_db(transaction=True)

NAMESPACES = Kind("v1", "Namespace", "namespaces", namespaced=False)
TEMPLATES = RESOURCE_CLAIM_TEMPLATES[0]
CLAIMS = RESOURCE_CLAIMS[0]
KINDS = {kind.kind: kind for kind in (DEVICE_CLASSES[0], RESOURCE_SLICES[0], TEMPLATES, CLAIMS)}


class Driver:
    """Stands in for a driver, and for the controller that makes claims from templates."""

    def __init__(self, system: System) -> None:
        self._client = system.client

    def publish(self, *objects: JsonObject) -> None:
        for each in objects:
            self._client.create(KINDS[each["kind"]], each)
            if each.get("status"):
                namespace, name = each["metadata"]["namespace"], each["metadata"]["name"]
                self._client.patch(CLAIMS, namespace, name, {"status": each["status"]}, subresource="status")

    def make_claims(self) -> None:
        for pod in self._client.list(PODS).items:
            if pod["spec"].get("resourceClaims") and not pod["status"].get("resourceClaimStatuses"):
                made = [self._make(pod, each) for each in pod["spec"]["resourceClaims"]]
                namespace, name = pod["metadata"]["namespace"], pod["metadata"]["name"]
                status = {"status": {"resourceClaimStatuses": made}}
                self._client.patch(PODS, namespace, name, status, subresource="status")

    def _make(self, pod: JsonObject, wanted: JsonObject) -> JsonObject:
        metadata = pod["metadata"]
        template = self._client.get(TEMPLATES, metadata["namespace"], wanted["resourceClaimTemplateName"])
        assert template is not None
        owner = {"apiVersion": "v1", "kind": "Pod", "name": metadata["name"], "uid": metadata["uid"]}
        name = f"{metadata['name']}-{wanted['name']}"
        made = {"name": name, "namespace": metadata["namespace"], "ownerReferences": [owner]}
        spec = template["spec"]["spec"]
        self._client.create(
            CLAIMS, {"apiVersion": CLAIMS.api_version, "kind": CLAIMS.kind, "metadata": made, "spec": spec}
        )
        return {"name": wanted["name"], "resourceClaimName": name}

    def claims(self) -> dict[str, JsonObject]:
        return {each["metadata"]["name"]: each for each in self._client.list(CLAIMS).items}


@pytest.fixture
def driver(system: System) -> Driver:
    system.client.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}})
    system.cluster.configuration = {
        "resources": {"deviceClassMappings": [{"name": "example.com/nics", "deviceClassNames": [DRIVER]}]}
    }
    system.cluster.save()
    group = ResourceGroup.objects.get(cluster_queue=ClusterQueue.objects.get())
    FlavorQuota.objects.create(
        resource_group=group, flavor="gpu-flavor", resource="example.com/nics", nominal_quota=100
    )
    ResourceGroup.objects.filter(pk=group.pk).update(covered_resources=[*group.covered_resources, "example.com/nics"])
    return Driver(system)


def with_claims(manifest: JsonObject, *templates: str) -> JsonObject:
    """The job, whose pods also use claims made from these templates."""
    spec = manifest["spec"]["template"]["spec"]
    claims = pod_spec(*templates)["resourceClaims"]
    spec["resourceClaims"] = claims
    spec["containers"][0]["resources"]["claims"] = [{"name": each["name"]} for each in claims]
    return manifest


def test_what_the_cluster_has_becomes_rows_and_goes_with_it(system: System, driver: Driver) -> None:
    driver.publish(
        driver_class(), resource_slice("node-01", 3), claim_template(), claim("held", [("node-01", "gpu-0")])
    )
    system.watcher.resync()
    objects = read_device_objects(system.cluster.pk)
    assert (list(objects.classes), [len(pool.devices) for pool in objects.pools]) == ([DRIVER], [3])
    assert list(objects.templates) == ["team/gpu"]
    assert [device.name for device in objects.taken] == ["gpu-0"]
    for kind, found in (("ResourceSlice", f"node-01-{DRIVER}"), ("ResourceClaim", "held")):
        system.client.delete(KINDS[kind], "team" if kind == "ResourceClaim" else "", found)
    system.watcher.resync()
    assert sorted(ClusterObject.objects.values_list("kind", flat=True)) == ["DeviceClass", "ResourceClaimTemplate"]


def test_an_object_that_cannot_be_read_is_left_out(
    system: System, driver: Driver, caplog: pytest.LogCaptureFixture
) -> None:
    driver.publish(driver_class(), resource_slice("node-01"))
    system.watcher.resync()
    broken: Any = {"kind": "ResourceSlice", "metadata": {"name": "x"}, "spec": {"pool": 3}}
    ClusterObject.objects.create(cluster=system.cluster, kind="ResourceSlice", name="x", manifest=broken)
    assert len(read_device_objects(system.cluster.pk).pools) == 1
    assert "ResourceSlice x cannot be read" in caplog.text


def test_pods_that_we_bind_get_their_claims_from_us(system: System, driver: Driver) -> None:
    driver.publish(driver_class(), claim_template("nic", request(2)))
    driver.publish(*(resource_slice(name, 4) for name in ("node-01", "node-02")))
    system.watcher.resync()
    system.apply(with_claims(gpu_job("train", parallelism=2, completions=2), "nic"))
    system.turn()
    assert Workload.objects.get().status == "Admitted"
    assert PodSet.objects.get().resource_usage["example.com/nics"] == 4
    waiting = system.pods()
    assert [pod["spec"].get("nodeName") for pod in waiting] == [None, None], "their claims are still to be made"
    driver.make_claims()
    system.push()
    system.push()
    system.advance(3)
    system.push()
    pods = {pod["metadata"]["name"]: pod for pod in system.pods()}
    assert all(pod["spec"].get("nodeName") for pod in pods.values())
    devices = []
    for name, found in driver.claims().items():
        pod = pods[name.removesuffix("-nic")]
        assert FINALIZER in found["metadata"]["finalizers"]
        assert found["status"]["reservedFor"] == [
            {"resource": "pods", "name": pod["metadata"]["name"], "uid": pod["metadata"]["uid"]}
        ]
        allocation = found["status"]["allocation"]
        assert allocation["nodeSelector"] == {
            "nodeSelectorTerms": [
                {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [pod["spec"]["nodeName"]]}]}
            ]
        }
        devices += [(each["pool"], each["device"]) for each in allocation["devices"]["results"]]
        assert {each["pool"] for each in allocation["devices"]["results"]} == {pod["spec"]["nodeName"]}
    assert len(devices) == len(set(devices)) == 4
    system.watcher.resync()
    assert read_device_objects(system.cluster.pk).taken == frozenset(), "what our own pods hold is counted once"


def test_a_pod_whose_devices_somebody_took_meanwhile_is_not_bound(
    system: System, driver: Driver, caplog: pytest.LogCaptureFixture
) -> None:
    driver.publish(driver_class(), claim_template("nic", request(2)), resource_slice("node-01", 2))
    system.watcher.resync()
    system.apply(with_claims(gpu_job("train"), "nic"))
    system.turn()
    driver.publish(claim("theirs", [("node-01", "gpu-1")]))
    driver.make_claims()
    system.push()
    assert "on node node-01, some devices that" in caplog.text
    assert [pod["spec"].get("nodeName") for pod in system.pods()] == [None]
    system.client.delete(CLAIMS, "team", "theirs")
    system.push()
    assert [pod["spec"].get("nodeName") for pod in system.pods()] == ["node-01"]


def test_where_the_cluster_s_scheduler_places_a_pod_it_allocates_too(system: System, driver: Driver) -> None:
    driver.publish(driver_class(), claim_template("nic"), resource_slice("node-02", 1))
    system.watcher.resync()
    system.apply(with_claims(queued(job("plain")), "nic"))
    system.turn()
    driver.make_claims()
    system.turn()
    (pod,) = system.pods()
    assert pod["spec"]["nodeSelector"]["kubernetes.io/hostname"] == "node-02"
    assert [found.get("status") for found in driver.claims().values()] in ([None], [{}])
