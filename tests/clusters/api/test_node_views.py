"""Nodes over REST, with what runs there."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import User

from accounts.models import Cluster, Role, RoleBinding
from gpus.models import Node
from queues.manifests.workload import PodSetSpec, WorkloadSpec
from queues.models import Pod, ResourceFlavor, Workload
from queues.services.submission import create_workloads
from tests.api_client import SchemaClient
from tests.factories import make_cluster_queue
from tests.users import EPOCH, client_of

pytestmark = pytest.mark.django_db


@pytest.fixture
def node(cluster: Cluster) -> Node:
    """8 cpus, of which somebody else's pod asks for one."""
    return Node.objects.create(
        cluster=cluster,
        name="n1",
        labels={"zone": "a"},
        allocatable={"cpu": 8000, "pods": 110},
        foreign_usage={"cpu": 1000, "pods": 1},
        conditions=[
            {
                "type": "Ready",
                "status": "True",
                "reason": "KubeletReady",
                "message": "kubelet is posting ready status",
                "last_transition_time": "2026-01-01T00:00:00Z",
            }
        ],
        created_at=EPOCH,
    )


@pytest.fixture
def pods(cluster: Cluster, node: Node) -> dict[str, Pod]:
    """One running pod of each of two namespaces, of 2 cpus; one that has ended; one elsewhere."""
    make_cluster_queue(cluster, "queue", local_queue="main")
    found: dict[str, Pod] = {}
    for namespace in ("team-a", "team-b"):
        spec = WorkloadSpec(namespace, "w", "main", (PodSetSpec("main", 2, {}, {"cpu": 2000}),))
        create_workloads(cluster, [spec], actor="x")
        workload = Workload.objects.get(namespace=namespace, name="w")
        found[namespace] = Pod.objects.create(
            workload=workload, pod_set="main", replica=0, namespace=namespace, name=f"w-{namespace}-0", uid=namespace,
            phase="Running", ready=True, node_name=node.name,
        )  # fmt: skip
    rest = {"workload": found["team-b"].workload, "pod_set": "main", "namespace": "team-b"}
    Pod.objects.create(replica=1, name="ended", uid="e", phase="Succeeded", node_name=node.name, **rest)
    Pod.objects.create(replica=1, name="elsewhere", uid="o", phase="Running", node_name="n2", **rest)
    return found


def test_a_node_says_what_is_asked_of_it_and_by_which_flavors_it_is_reached(
    bob: SchemaClient, cluster: Cluster, pods: Any
) -> None:
    ResourceFlavor.objects.create(cluster=cluster, name="everywhere", created_at=EPOCH)
    ResourceFlavor.objects.create(cluster=cluster, name="zone-a", node_labels={"zone": "a"}, created_at=EPOCH)
    ResourceFlavor.objects.create(cluster=cluster, name="zone-b", node_labels={"zone": "b"}, created_at=EPOCH)
    ResourceFlavor.objects.create(
        cluster=cluster, name="by-name", node_labels={"kubernetes.io/hostname": "n1"}, created_at=EPOCH
    )
    [listed] = bob.get("/api/v1/nodes/").json()["results"]
    assert listed["requested"] == {"cpu": "5", "pods": "3"}
    assert listed["flavors"] == ["by-name", "default-flavor", "everywhere", "zone-a"]
    assert listed["conditions"][0]["reason"] == "KubeletReady"
    alone = bob.get("/api/v1/nodes/n1/").json()
    assert {name: alone[name] for name in listed} == listed
    assert alone["devices"] == []


def test_a_node_without_pods_asks_nothing(bob: SchemaClient, cluster: Cluster) -> None:
    Node.objects.create(cluster=cluster, name="idle", created_at=EPOCH)
    [listed] = bob.get("/api/v1/nodes/").json()["results"]
    assert (listed["requested"], listed["flavors"], listed["conditions"]) == ({}, [], [])


def test_pods_on_a_node_are_shown_to_users_who_may_see_them(node: Node, pods: dict[str, Pod]) -> None:
    user = User.objects.create_user("reader")
    RoleBinding.objects.create(username=user.username, role=Role.VIEWER, namespace="team-a")
    [mine] = client_of(user).get("/api/v1/nodes/n1/pods/").json()["results"]
    assert (mine["namespace"], mine["workload"], mine["name"]) == ("team-a", "w", "w-team-a-0")
    assert (mine["phase"], mine["ready"], mine["requests"]) == ("Running", True, {"cpu": "2"})
    RoleBinding.objects.create(username=user.username, role=Role.VIEWER, namespace="")
    both = client_of(user).get("/api/v1/nodes/n1/pods/").json()["results"]
    assert [each["namespace"] for each in both] == ["team-a", "team-b"]


def test_pods_of_a_node_that_is_not_there(bob: SchemaClient, cluster: Cluster) -> None:
    answer = bob.get("/api/v1/nodes/n9/pods/")
    assert (answer.status_code, answer.json()["reason"]) == (404, "NotFound")
