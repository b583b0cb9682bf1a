"""Devices that drivers publish, and Kueue's objects that do not agree with ours, over REST."""

from __future__ import annotations

from accounts.models import Cluster
from queues.models import ServedObject
from queues.services.cluster_objects import store_cluster_objects
from tests.api_client import SchemaClient
from tests.claim_objects import DRIVER, claim, device, device_class, driver_class, resource_slice

URL = "/api/v1/published-devices/"


def store(cluster: Cluster, *objects: dict[str, object]) -> None:
    for each in objects:
        metadata = each["metadata"]
        assert isinstance(metadata, dict)
        key = (metadata.get("namespace", ""), metadata["name"])
        store_cluster_objects(cluster, str(each["kind"]), {key: each}, gone=())


def test_what_drivers_publish_and_who_holds_it(cluster: Cluster, alice: SchemaClient, bob: SchemaClient) -> None:
    tainted = device("gpu-1", taints=[{"key": "broken", "effect": "NoSchedule"}])
    store(
        cluster,
        driver_class(),
        device_class("none", "device.missing == 1"),
        resource_slice("n2", 1),
        resource_slice("n1", [device("gpu-0"), tainted]),
        claim("held", [("n1", "gpu-0")], namespace="team-b"),
    )
    found = alice.get(URL).json()["results"]
    assert [(each["node"], each["name"], each["claim"], each["usable"]) for each in found] == [
        ("n1", "gpu-0", "team-b/held", True),
        ("n1", "gpu-1", "", False),
        ("n2", "gpu-0", "", True),
    ]
    first = found[0]
    assert (first["driver"], first["pool"], first["device_classes"]) == (DRIVER, "n1", [DRIVER])
    assert (first["attributes"], first["capacity"]) == ({"model": "A100", "index": "0"}, {"memory": "40Gi"})
    assert len(alice.get(f"{URL}?node=n2").json()["results"]) == 1
    assert alice.get(f"{URL}?driver=other").json()["results"] == []
    assert bob.get(URL).json()["results"][0]["claim"] == "another namespace"


def test_objects_that_do_not_agree(cluster: Cluster, alice: SchemaClient, bob: SchemaClient) -> None:
    objects = [("ClusterQueue", "", "main", "spec.x: Unknown field"), ("LocalQueue", "team-b", "q", "refused"),
               ("Cohort", "", "fine", "")]  # fmt: skip
    for kind, namespace, name, problem in objects:
        ServedObject.objects.create(cluster=cluster, kind=kind, namespace=namespace, name=name, problem=problem)
    url = "/api/v1/served-objects/problems/"
    assert [(each["kind"], each["problem"]) for each in alice.get(url).json()["results"]] == [
        ("ClusterQueue", "spec.x: Unknown field"),
        ("LocalQueue", "refused"),
    ]
    assert [each["kind"] for each in bob.get(url).json()["results"]] == ["ClusterQueue"]
