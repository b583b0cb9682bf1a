"""Discovery: both forms name the same resources, and each of them is served."""

from __future__ import annotations

from typing import Any

from rest_framework.test import APIClient

from accounts.models import Cluster
from kueueweb.wire.resources import RESOURCES

AGGREGATED = (
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,"
    "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json"
)


def plain(alice: APIClient) -> dict[tuple[str, str], set[tuple[str, bool]]]:
    """Group and version -> the resources and whether they have a namespace, by the older form."""
    groups = [("", version) for version in alice.get("/api").json()["versions"]]
    for group in alice.get("/apis").json()["groups"]:
        assert alice.get(f"/apis/{group['name']}").json()["versions"] == group["versions"]
        groups += [(group["name"], version["version"]) for version in group["versions"]]
    found = {}
    for group, version in groups:
        body = alice.get(f"/apis/{group}/{version}" if group else f"/api/{version}").json()
        assert body["kind"] == "APIResourceList"
        assert body["groupVersion"] == (f"{group}/{version}" if group else version)
        found[group, version] = {(entry["name"], entry["namespaced"]) for entry in body["resources"]}
    return found


def aggregated(alice: APIClient) -> dict[tuple[str, str], set[tuple[str, bool]]]:
    """The same by one request for each of both roots."""
    found = {}
    for root in ("/api", "/apis"):
        answer = alice.get(root, headers={"Accept": AGGREGATED})
        assert answer.headers["Content-Type"] == AGGREGATED.partition(",")[0]
        body: dict[str, Any] = answer.json()
        assert (body["kind"], body["apiVersion"]) == ("APIGroupDiscoveryList", "apidiscovery.k8s.io/v2")
        for item in body["items"]:
            for version in item["versions"]:
                names = set()
                for resource in version["resources"]:
                    namespaced = resource["scope"] == "Namespaced"
                    names.add((resource["resource"], namespaced))
                    names |= {
                        (f"{resource['resource']}/{each['subresource']}", namespaced)
                        for each in resource.get("subresources", ())
                    }
                found[item["metadata"]["name"], version["version"]] = names
    return found


def test_both_forms_name_the_same(alice: APIClient) -> None:
    assert plain(alice) == aggregated(alice)


def test_what_discovery_names_is_served(alice: APIClient, cluster: Cluster) -> None:
    for (group, version), resources in plain(alice).items():
        for name, _ in resources:
            if "/" in name or group.startswith("auth"):
                continue
            address = f"/apis/{group}/{version}/{name}" if group else f"/api/{version}/{name}"
            assert alice.get(address).status_code == 200, address


def test_each_kind_of_kueue_is_there(alice: APIClient) -> None:
    kinds = {resource.kind for resource in RESOURCES}
    assert {
        "ClusterQueue", "LocalQueue", "Cohort", "ResourceFlavor", "Topology", "AdmissionCheck",
        "WorkloadPriorityClass", "Workload", "Job", "Namespace",
    } <= kinds  # fmt: skip


def test_other_groups_and_versions_are_a_status(alice: APIClient) -> None:
    for address in ("/apis/apps", "/apis/kueue.x-k8s.io/v1alpha1", "/api/v2", "/openapi/v9", "/apis/a/b/c/d/e"):
        answer = alice.get(address)
        assert (answer.status_code, answer.json()["reason"]) == (404, "NotFound"), address


def test_the_version_is_kubernetes(alice: APIClient) -> None:
    found = alice.get("/version").json()
    assert (found["major"], found["minor"]) == ("1", "36")
