"""What the pods of tenants may ask of a cluster, and which priorities their workloads may have."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from accounts.models import Cluster, Namespace
from queues.manifests.pod_security import Level, violations
from queues.models import Job, LocalQueue, Workload, WorkloadPriorityClass
from tests.api_client import SchemaClient
from tests.users import EPOCH

MANIFESTS, WORKLOADS = "/api/v1/manifests/", "/api/v1/workloads/"
HARDENED = {
    "allowPrivilegeEscalation": False,
    "runAsNonRoot": True,
    "capabilities": {"drop": ["ALL"]},
    "seccompProfile": {"type": "RuntimeDefault"},
}


def job(namespace: str = "team-a", *, container: Any = None, **spec: Any) -> dict[str, Any]:
    main = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}, **(container or {})}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "j", "namespace": namespace, "labels": {"kueue.x-k8s.io/queue-name": "queue"}},
        "spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [main], **spec}}},
    }


def apply(client: SchemaClient, manifest: dict[str, Any]) -> Any:
    return client.post(MANIFESTS, yaml.safe_dump(manifest), content_type="application/yaml")


def allow(namespace: str = "team-a", level: str = "", **annotations: str) -> None:
    row = Namespace.objects.get(name=namespace)
    row.labels = {"pod-security.kubernetes.io/enforce": level} if level else {}
    row.annotations = {f"kueueweb.io/{key.replace('_', '-')}": value for key, value in annotations.items()}
    row.save()


FORBIDDEN: list[tuple[dict[str, Any], str]] = [
    ({"hostNetwork": True}, "hostNetwork"),
    ({"hostPID": True}, "hostPID"),
    ({"hostIPC": True}, "hostIPC"),
    ({"volumes": [{"name": "h", "hostPath": {"path": "/"}}]}, "volumes[0].hostPath"),
    ({"container": {"securityContext": {"privileged": True}}}, "containers[0].securityContext.privileged"),
    (
        {"container": {"securityContext": {"capabilities": {"add": ["SYS_ADMIN"]}}}},
        "containers[0].securityContext.capabilities.add",
    ),
    ({"container": {"ports": [{"containerPort": 1, "hostPort": 22}]}}, "containers[0].ports[0].hostPort"),
    ({"securityContext": {"seccompProfile": {"type": "Unconfined"}}}, "securityContext.seccompProfile.type"),
    ({"securityContext": {"sysctls": [{"name": "kernel.msgmax", "value": "1"}]}}, "securityContext.sysctls[0].name"),
    ({"serviceAccountName": "cluster-admin-sa"}, "serviceAccountName"),
    ({"serviceAccount": "cluster-admin-sa"}, "serviceAccountName"),
    ({"priorityClassName": "system-node-critical"}, "priorityClassName"),
    ({"priority": 2_000_000_000}, "priority"),
    ({"tolerations": [{"operator": "Exists"}]}, "tolerations[0]"),
    ({"tolerations": [{"key": "node-role.kubernetes.io/control-plane", "operator": "Exists"}]}, "tolerations[0]"),
    ({"nodeName": "gpu-a100-01"}, "nodeName"),
]


@pytest.mark.parametrize(("spec", "path"), FORBIDDEN, ids=[path for _, path in FORBIDDEN])
def test_what_no_tenant_s_pod_may_say(bob: SchemaClient, spec: dict[str, Any], path: str) -> None:
    answer = apply(bob, job(**spec))
    assert answer.status_code == 400
    assert (f"spec.template.spec.{path}", "Forbidden") in [
        (each["path"], each["reason"]) for each in answer.json()["errors"]
    ]
    assert bob.post(WORKLOADS, job(**spec)).status_code == 400
    assert not Job.objects.exists()


def test_an_admin_is_held_to_the_namespace_s_level_too(alice: SchemaClient) -> None:
    assert apply(alice, job(hostNetwork=True)).status_code == 400
    allow(level="privileged")
    assert apply(alice, job(hostNetwork=True)).status_code == 200


def test_a_namespace_may_ask_for_more(bob: SchemaClient, settings: Any) -> None:
    allow(level="restricted")
    answer = apply(bob, job())
    assert {each["path"].rpartition(".securityContext.")[2] for each in answer.json()["errors"]} == {
        "allowPrivilegeEscalation", "runAsNonRoot", "seccompProfile.type", "capabilities.drop",
    }  # fmt: skip
    assert apply(bob, job(container={"securityContext": HARDENED})).status_code == 200
    allow()
    settings.POD_SECURITY_LEVEL = "restricted"
    assert apply(bob, job("team-a")).status_code == 400


def test_what_a_namespace_allows(bob: SchemaClient) -> None:
    asks = job(
        serviceAccountName="trainer",
        nodeName="n1",
        priorityClassName="system-x",
        tolerations=[{"key": "node.kubernetes.io/x"}],
    )
    assert len(apply(bob, asks).json()["errors"]) == 4
    allow(
        allowed_service_accounts="default, trainer", allow_node_names="true", allowed_pod_priority_classes="system-x",
        allowed_tolerations="node.kubernetes.io/x",
    )  # fmt: skip
    assert apply(bob, asks).status_code == 200
    assert apply(bob, job(tolerations=[{"key": "gpu", "operator": "Exists"}])).status_code == 400


@pytest.mark.parametrize("namespace", ["kube-system", "kube-public", "kueueweb"])
def test_namespaces_of_the_system_take_no_jobs(alice: SchemaClient, namespace: str) -> None:
    for answer in (apply(alice, job(namespace)), alice.post(WORKLOADS, job(namespace))):
        assert (answer.status_code, answer.json()["errors"][0]["reason"]) == (400, "Forbidden")


def test_levels_leave_out_what_they_allow() -> None:
    spec: dict[str, Any] = {"hostNetwork": True, "containers": [{"name": "c", "securityContext": {"privileged": True}}]}
    assert not list(violations(Level.PRIVILEGED, spec))
    assert [found.path for found in violations(Level.BASELINE, spec)] == [
        "hostNetwork", "containers[0].securityContext.privileged",
    ]  # fmt: skip


class TestPriorities:
    """A submitter outranked everybody with a number."""

    WORKLOAD: dict[str, Any] = {"namespace": "team-a", "name": "w", "pod_sets": [{"requests": {"cpu": "1"}}]}

    @pytest.fixture(autouse=True)
    def classes(self, cluster: Cluster) -> None:
        for name, value in (("low", 1), ("high", 1000)):
            WorkloadPriorityClass.objects.create(cluster=cluster, name=name, value=value, created_at=EPOCH)

    def test_numbers_are_for_admins(self, alice: SchemaClient, bob: SchemaClient) -> None:
        for priority in (2_147_483_647, 1):
            answer = bob.post(WORKLOADS, {**self.WORKLOAD, "priority": priority})
            assert (answer.status_code, answer.json()["errors"][0]["path"]) == (400, "priority")
        boosted = {**self.WORKLOAD, "annotations": {"kueue.x-k8s.io/priority-boost": "100"}}
        assert bob.post(WORKLOADS, boosted).status_code == 400
        assert alice.post(WORKLOADS, {**self.WORKLOAD, "priority": 2_147_483_647}).status_code == 400
        assert alice.post(WORKLOADS, {**self.WORKLOAD, "priority": 7}).status_code == 201
        assert bob.post(WORKLOADS, {**self.WORKLOAD, "name": "x", "priority_class": "high"}).status_code == 201
        lie = {**self.WORKLOAD, "name": "y", "priority_class": "low", "priority": 5000}
        assert bob.post(WORKLOADS, lie).status_code == 400
        assert Workload.objects.get(name="x").priority == 1000

    def test_a_manifest_of_a_workload_is_held_to_it_too(self, bob: SchemaClient) -> None:
        spec = {"priority": 5000, "podSets": [{"name": "main", "count": 1, "template": job()["spec"]["template"]}]}
        metadata = {"name": "w", "namespace": "team-a"}
        manifest = {"apiVersion": "kueue.x-k8s.io/v1beta1", "kind": "Workload", "metadata": metadata, "spec": spec}
        assert apply(bob, manifest).json()["errors"][0]["path"] == "priority"

    def test_classes_are_what_namespace_and_queue_allow(self, cluster: Cluster, bob: SchemaClient) -> None:
        labelled = job()
        labelled["metadata"]["labels"]["kueue.x-k8s.io/priority-class"] = "high"
        allow(allowed_priority_classes="low")
        refused = apply(bob, labelled)
        assert "allowed are low" in refused.json()["errors"][0]["rule"]
        bob.post(WORKLOADS, self.WORKLOAD)
        named = bob.post(f"{WORKLOADS}team-a/w/priority/", {"priority_class": "high"})
        assert (named.status_code, "allowed are low" in named.json()["message"]) == (403, True)
        LocalQueue.objects.create(
            cluster=cluster, namespace="team-a", name="queue", cluster_queue_name="cq", created_at=EPOCH,
            annotations={"kueueweb.io/allowed-priority-classes": "low,high"},
        )  # fmt: skip
        assert apply(bob, labelled).status_code == 200


def test_annotations_are_as_large_as_kubernetes_takes_them(bob: SchemaClient) -> None:
    """Five megabytes were stored."""
    large = {"a": "x" * 300_000}
    assert bob.post(WORKLOADS, {**TestPriorities.WORKLOAD, "annotations": large}).status_code == 400
    manifest = job()
    manifest["spec"]["template"]["metadata"] = {"annotations": large}
    assert apply(bob, manifest).status_code == 400
