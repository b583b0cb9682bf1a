"""Configuration kinds over REST: who sees what."""

from typing import Any

import pytest

from accounts.models import Cluster
from queues.models import (
    AdmissionCheck,
    LimitRange,
    MultiKueueCluster,
    MultiKueueConfig,
    PriorityClass,
    ProvisioningRequestConfig,
    ResourceFlavor,
    ResourceQuota,
    RuntimeClass,
    Topology,
    WorkloadPriorityClass,
)
from tests.api_client import SchemaClient
from tests.users import EPOCH

OPEN: dict[str, tuple[Any, dict[str, Any]]] = {
    "admission-checks": (AdmissionCheck, {"controller_name": "example.com/budget"}),
    "priority-classes": (PriorityClass, {"value": 10}),
    "runtime-classes": (RuntimeClass, {"handler": "kata", "pod_overhead": {"cpu": "250m"}, "scheduling": {}}),
    "provisioning-request-configs": (ProvisioningRequestConfig, {"provisioning_class_name": "check-capacity"}),
    "multikueue-clusters": (MultiKueueCluster, {"cluster_profile": "east"}),
    "multikueue-configs": (MultiKueueConfig, {"clusters": ["east", "west"]}),
    "resource-flavors": (ResourceFlavor, {"node_labels": {"gpu": "v100"}, "tolerations": [{"key": "gpu"}]}),
    "topologies": (Topology, {"levels": ["rack", "host"]}),
    "workload-priority-classes": (WorkloadPriorityClass, {"value": 100}),
}


@pytest.mark.parametrize("kind", OPEN)
def test_what_everybody_with_a_role_may_read(
    kind: str, cluster: Cluster, bob: SchemaClient, nobody: SchemaClient
) -> None:
    model, fields = OPEN[kind]
    other = Cluster.objects.create(name="other")
    for name in ("b", "a", "c"):
        model.objects.create(cluster=cluster, name=name, created_at=EPOCH, **fields)
    model.objects.create(cluster=other, name="elsewhere", created_at=EPOCH, **fields)
    url = f"/api/v1/{kind}/"
    page = bob.get(url, {"limit": 2}).json()
    assert [row["name"] for row in page["results"]] == ["a", "b"]
    rest = bob.get(url, {"after": page["next"]}).json()
    assert ([row["name"] for row in rest["results"]], rest["next"]) == (["c"], None)
    one: dict[str, Any] = bob.get(f"{url}b/").json()
    assert {name: one[name] for name in fields} == fields
    assert bob.get(f"{url}elsewhere/").status_code == 404
    assert bob.get(f"{url}elsewhere/", {"cluster": "other"}).status_code == 200
    assert nobody.get(url).status_code == 403


NAMESPACED: dict[str, tuple[Any, dict[str, Any]]] = {
    "limit-ranges": (LimitRange, {"limits": [{"type": "Container", "max": {"cpu": "4"}}]}),
    "resource-quotas": (ResourceQuota, {"hard": {"limits.nvidia.com/gpumem": "10000"}, "scopes": ["BestEffort"]}),
}


@pytest.mark.parametrize("kind", NAMESPACED)
def test_what_is_in_a_namespace_is_for_those_in_it(
    kind: str, cluster: Cluster, alice: SchemaClient, bob: SchemaClient
) -> None:
    model, fields = NAMESPACED[kind]
    for namespace in ("team-b", "team-a"):
        for name in ("y", "x"):
            model.objects.create(cluster=cluster, namespace=namespace, name=name, created_at=EPOCH, **fields)
    url = f"/api/v1/{kind}/"
    rows = alice.get(url).json()["results"]
    assert [(row["namespace"], row["name"]) for row in rows] == [
        ("team-a", "x"), ("team-a", "y"), ("team-b", "x"), ("team-b", "y")
    ]  # fmt: skip
    page = alice.get(url, {"limit": 3}).json()
    assert [row["name"] for row in alice.get(url, {"after": page["next"]}).json()["results"]] == ["y"]
    assert len(alice.get(url, {"namespace": "team-b"}).json()["results"]) == 2
    assert {row["namespace"] for row in bob.get(url).json()["results"]} == {"team-a"}
    one: dict[str, Any] = bob.get(f"{url}team-a/x/").json()
    assert {name: one[name] for name in fields} == fields
    assert bob.get(f"{url}team-b/x/").status_code == 404
    assert alice.get(f"{url}team-a/z/").status_code == 404


def test_namespaces(alice: SchemaClient, bob: SchemaClient) -> None:
    url = "/api/v1/namespaces/"
    assert [row["name"] for row in alice.get(url).json()["results"]] == ["team-a", "team-b"]
    assert [row["name"] for row in bob.get(url).json()["results"]] == ["team-a"]
    assert bob.get(f"{url}team-a/").status_code == 200
    assert bob.get(f"{url}team-b/").status_code == 404


def test_clusters(alice: SchemaClient, bob: SchemaClient, cluster: Cluster) -> None:
    Cluster.objects.filter(pk=cluster.pk).update(
        server_url="https://10.0.0.1:6443",
        configuration={"kind": "Configuration"},
        telemetry_urls=["http://me:secret@10.0.0.7/metrics"],
    )
    url = "/api/v1/clusters/"
    assert alice.get(url).json()["results"][0]["server_url"] == "https://10.0.0.1:6443"
    assert alice.get(url).json()["results"][0]["telemetry_urls"] == ["http://***@10.0.0.7/metrics"]
    assert bob.get(url).json()["results"][0]["server_url"] == ""
    assert bob.get(url).json()["results"][0]["telemetry_urls"] == []
    assert bob.get(f"{url}default/").json()["configuration"] == {}
    assert bob.get(f"{url}nowhere/").status_code == 404


def test_where_telemetry_is_read(alice: SchemaClient, bob: SchemaClient, cluster: Cluster) -> None:
    """What is sent as it was shown keeps its credentials, also where two addresses look alike."""
    stored = ["http://me:secret@10.0.0.7/metrics", "http://you:other@10.0.0.7/metrics", "http://10.0.0.8/metrics"]
    Cluster.objects.filter(pk=cluster.pk).update(telemetry_urls=stored)
    url = "/api/v1/clusters/default/"
    read = alice.get(url)
    shown = read.json()["telemetry_urls"]
    assert shown == ["http://***@10.0.0.7/metrics", "http://***@10.0.0.7/metrics", "http://10.0.0.8/metrics"]
    added = [*shown, "https://[fd00::1]:9394/metrics"]
    answer = alice.patch(url, {"telemetry_urls": added}, format="json", headers={"If-Match": read.headers["ETag"]})
    assert (answer.status_code, answer.json()["telemetry_urls"]) == (200, added)
    cluster.refresh_from_db()
    assert cluster.telemetry_urls == [*stored, "https://[fd00::1]:9394/metrics"]
    assert answer.headers["ETag"] != read.headers["ETag"]
    late = alice.patch(url, {"telemetry_urls": []}, format="json", headers={"If-Match": read.headers["ETag"]})
    assert late.status_code == 412
    assert bob.patch(url, {"telemetry_urls": []}, format="json").status_code == 403
    cluster.refresh_from_db()
    assert len(cluster.telemetry_urls) == 4


@pytest.mark.parametrize(
    ("wrong", "path"),
    [
        (["http://10.0.0.8/metrics", "file:///etc/passwd"], "telemetry_urls[1]"),
        (["http://***@10.0.0.9/metrics"], "telemetry_urls[0]"),
        (["http://a b/"], "telemetry_urls[0]"),
        (["http://me:pass@word@host/"], "telemetry_urls[0]"),
        (['http://me:pass"word@host/'], "telemetry_urls[0]"),
        (["http://me:pass\\word@host/"], "telemetry_urls[0]"),
        (["http://host:port/"], "telemetry_urls[0]"),
        (["http://[::1/"], "telemetry_urls[0]"),
        (["http:///metrics"], "telemetry_urls[0]"),
        ([7], "telemetry_urls[0]"),
    ],
)
def test_addresses_that_cannot_be_asked(wrong: list[Any], path: str, alice: SchemaClient, cluster: Cluster) -> None:
    answer = alice.patch("/api/v1/clusters/default/", {"telemetry_urls": wrong}, format="json")
    assert (answer.status_code, answer.json()["errors"][0]["path"]) == (400, path)
    cluster.refresh_from_db()
    assert cluster.telemetry_urls == []
