"""A hostile tenant, and our own accounts, on a real API server: what the rights that we ship allow, and no more."""

from __future__ import annotations

from typing import Any, Final

import orjson
import pytest
from django.contrib.auth.models import User

from accounts.models import Namespace, Role, RoleBinding
from clusters.api_errors import ClusterError
from clusters.api_objects import NAMESPACES, NODES, PODS, JsonObject, Kind
from clusters.client import ClusterClient
from gpus.models import DeviceAllocation
from queues.models import Job, LocalQueue, Workload
from tests.api_client import SchemaClient
from tests.cluster_kinds import JOBS
from tests.clusters.system import gpu_job, queued
from tests.factories import START
from tests.kubernetes.control_plane import ControlPlane
from tests.kubernetes.system import System
from tests.simulated_cluster import job, pod
from tests.users import client_of

SECRETS: Final = Kind("v1", "Secret", "secrets")
ROLE_BINDINGS: Final = Kind("rbac.authorization.k8s.io/v1", "RoleBinding", "rolebindings")
CLUSTER_ROLES: Final = Kind("rbac.authorization.k8s.io/v1", "ClusterRole", "clusterroles", namespaced=False)
CLUSTER_ROLE_BINDINGS: Final = Kind(
    "rbac.authorization.k8s.io/v1", "ClusterRoleBinding", "clusterrolebindings", namespaced=False
)
REVIEWS: Final = Kind(
    "authorization.k8s.io/v1", "SelfSubjectAccessReview", "selfsubjectaccessreviews", namespaced=False
)
PUSH, WATCHER, WEB = "kueueweb-push", "kueueweb-watcher", "kueueweb-web"
ROOT: Final = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"}


def account(plane: ControlPlane, name: str) -> ClusterClient:
    """A client with the rights of one of our service accounts."""
    return plane.client(plane.token_of("kueueweb", name))


def may(client: ClusterClient, verb: str, resource: str, namespace: str = "", group: str = "") -> bool:
    """What the API server says that the client may do; "pods/log" is a resource and its subresource."""
    name, _, subresource = resource.partition("/")
    asked = {
        "verb": verb, "resource": name, "subresource": subresource, "namespace": namespace, "group": group,
    }  # fmt: skip
    review = {
        "apiVersion": REVIEWS.api_version, "kind": REVIEWS.kind, "metadata": {}, "spec": {"resourceAttributes": asked},
    }  # fmt: skip
    return bool(client.create(REVIEWS, review)["status"]["allowed"])


def refused(call: Any, *arguments: Any, **more: Any) -> None:
    with pytest.raises(ClusterError) as refusal:
        call(*arguments, **more)
    assert (refusal.value.status, refusal.value.reason) == (403, "Forbidden")


def in_namespace(manifest: JsonObject, namespace: str) -> JsonObject:
    return {**manifest, "metadata": {**manifest["metadata"], "namespace": namespace}}


def binding(kind: Kind, namespace: str = "") -> JsonObject:
    """Everything, for the push account."""
    subject = {"kind": "ServiceAccount", "name": PUSH, "namespace": "kueueweb"}
    metadata = {"name": "more", **({"namespace": namespace} if namespace else {})}
    return {
        "apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata, "roleRef": ROOT, "subjects": [subject],
    }  # fmt: skip


@pytest.mark.parametrize("namespace", ["default", "kube-system", "kueueweb"])
def test_push_makes_nothing_where_nobody_bound_it(system: System, plane: ControlPlane, namespace: str) -> None:
    push = account(plane, PUSH)
    refused(push.create, PODS, in_namespace(pod("stray"), namespace))
    refused(push.create, JOBS, in_namespace(job("stray"), namespace))
    refused(push.apply, JOBS, in_namespace(job("stray"), namespace))
    assert not system.admin.list(PODS, namespace).items
    assert not system.admin.list(JOBS, namespace).items


def test_push_makes_jobs_and_pods_where_it_is_bound(system: System, plane: ControlPlane) -> None:
    """The rights are not so few that nothing works: what the tests above see refused is allowed here."""
    push = account(plane, PUSH)
    assert may(push, "create", "pods", "team")
    assert may(push, "patch", "jobs", "team", "batch")
    assert may(push, "patch", "nodes")


@pytest.mark.parametrize("name", [PUSH, WATCHER, WEB])
def test_no_account_of_ours_reads_secrets_or_gets_more_rights(system: System, plane: ControlPlane, name: str) -> None:
    client = account(plane, name)
    for namespace in ("team", "kueueweb", "kube-system"):
        refused(client.list, SECRETS, namespace)
        refused(client.create, ROLE_BINDINGS, binding(ROLE_BINDINGS, namespace))
        assert not may(client, "create", "serviceaccounts/token", namespace)
        assert not may(client, "create", "pods/exec", namespace)
        assert not may(client, "create", "pods/attach", namespace)
    refused(client.create, CLUSTER_ROLE_BINDINGS, binding(CLUSTER_ROLE_BINDINGS))
    refused(client.patch, CLUSTER_ROLES, "", "kueueweb-tenant", {"rules": []})
    for verb in ("escalate", "bind"):
        assert not may(client, verb, "clusterroles", group="rbac.authorization.k8s.io")
    for resource in ("users", "groups", "serviceaccounts"):
        assert not may(client, "impersonate", resource)
    assert not may(client, "*", "*")


def test_the_watcher_suspends_jobs_and_marks_pods_of_tenants_and_writes_nothing_else(
    system: System, plane: ControlPlane
) -> None:
    watcher = account(plane, WATCHER)
    for namespace in ("team", "default"):
        system.admin.create(JOBS, in_namespace(job("theirs", parallelism=0), namespace))
    watcher.patch(JOBS, "team", "theirs", {"spec": {"suspend": True}})
    watcher.patch(JOBS, "team", "theirs", {"status": {"startTime": None}}, subresource="status")
    refused(watcher.patch, JOBS, "default", "theirs", {"spec": {"suspend": True}})
    with pytest.raises(ClusterError) as missing:  # it may be patched, and is not there
        watcher.patch(PODS, "team", "missing", {"metadata": {"labels": {"marked": "yes"}}})
    assert missing.value.not_found
    refused(watcher.patch, PODS, "default", "missing", {"metadata": {"labels": {"marked": "yes"}}})
    refused(watcher.create, PODS, in_namespace(pod("stray"), "team"))
    refused(watcher.create, JOBS, in_namespace(job("stray"), "team"))
    refused(watcher.delete, JOBS, "team", "theirs")
    refused(watcher.delete, PODS, "team", "theirs")
    system.admin.delete(JOBS, "default", "theirs")
    refused(watcher.patch, NODES, "", "node-01", {"metadata": {"annotations": {"hami.io/mutex.lock": "x"}}})
    assert watcher.get(JOBS, "team", "theirs") is not None


def test_web_reads_logs_of_tenants_and_nothing_else(system: System, plane: ControlPlane) -> None:
    web = account(plane, WEB)
    assert may(web, "get", "pods/log", "team")
    assert not may(web, "get", "pods/log", "default")
    assert not may(web, "get", "pods/log", "kueueweb")
    assert not may(web, "list", "pods", "team")
    refused(web.list, PODS, "team")
    refused(web.list, NODES)
    refused(web.create, PODS, in_namespace(pod("stray"), "team"))


@pytest.fixture
def mallory(system: System) -> SchemaClient:
    """A submitter of `team` and of `unbound`, a namespace that no RoleBinding of ours is in."""
    system.admin.apply(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "unbound"}})
    Namespace.objects.get_or_create(cluster=system.cluster, name="unbound", defaults={"created_at": START})
    LocalQueue.objects.create(
        cluster=system.cluster, namespace="unbound", name="queue", cluster_queue_name="main", created_at=START
    )
    user = User.objects.create_user("mallory")
    for namespace in ("team", "unbound"):
        RoleBinding.objects.create(username="mallory", role=Role.SUBMITTER, namespace=namespace)
    return client_of(user)


def apply(client: SchemaClient, manifest: JsonObject) -> Any:
    return client.post("/api/v1/manifests/", orjson.dumps(manifest), content_type="application/yaml")


def test_a_job_where_nobody_bound_us_makes_no_pod_and_says_why(system: System, mallory: SchemaClient) -> None:
    assert apply(mallory, in_namespace(queued(job("stray", run_seconds=60)), "unbound")).status_code == 200
    system.until("the refusal", lambda: Workload.objects.get(job__name="stray").push_error)
    said = Workload.objects.get(job__name="stray").push_error
    assert "is forbidden" in said
    assert "kueueweb-push" in said
    assert not system.admin.list(JOBS, "unbound").items
    assert not system.admin.list(PODS, "unbound").items
    mallory.post(f"/api/v1/workloads/unbound/{Workload.objects.get(job__name='stray').name}/cancel/")


def test_a_way_from_a_pod_to_its_node_is_refused_before_the_cluster_hears_of_it(
    system: System, mallory: SchemaClient
) -> None:
    root = queued(job("root", run_seconds=60))
    root["spec"]["template"]["spec"] |= {
        "hostNetwork": True,
        "hostPID": True,
        "serviceAccountName": "kueueweb-push",
        "priorityClassName": "system-node-critical",
        "tolerations": [{"operator": "Exists"}],
        "nodeName": "node-01",
        "volumes": [{"name": "host", "hostPath": {"path": "/"}}],
    }
    root["spec"]["template"]["spec"]["containers"][0]["securityContext"] = {"privileged": True}
    answer = apply(mallory, root)
    assert (answer.status_code, {each["reason"] for each in answer.json()["errors"]}) == (400, {"Forbidden"})
    for closed in ("kube-system", "kueueweb", "default"):
        assert apply(mallory, in_namespace(queued(job("root")), closed)).status_code in (400, 403)
    for _ in range(3):
        system.turn()
    assert not Job.objects.filter(name="root").exists()
    assert not system.admin.list(JOBS).items


def test_what_a_tenant_writes_in_our_name_is_not_told_and_not_believed(system: System, mallory: SchemaClient) -> None:
    liar = gpu_job("liar", run_seconds=1000)
    lies = {"hami.io/vgpu-node": "node-02", "hami.io/vgpu-devices-allocated": "garbage,x;", "kueueweb.io/replica": "7"}
    liar["spec"]["template"]["metadata"]["annotations"] |= lies
    liar["spec"]["template"]["metadata"]["labels"] = {
        "kueueweb.io/workload-uid": "11111111-1111-1111-1111-111111111111"
    }
    answer = apply(mallory, liar)
    assert answer.status_code == 200
    assert answer.json()["warnings"]
    system.until("its pod", lambda: system.phases("liar") == ["Running"])
    [running] = system.pods("liar")
    annotations, labels = running["metadata"]["annotations"], running["metadata"]["labels"]
    assert "garbage" not in str(annotations)
    assert annotations["kueueweb.io/replica"] == "0"
    assert labels["kueueweb.io/workload-uid"] == str(system.workload("liar").uid)
    assert DeviceAllocation.objects.filter(source="decided").count() == 1
    lie = {
        "metadata": {
            "annotations": {"hami.io/vgpu-devices-allocated": "garbage,x;", "hami.io/mlu-devices-allocated": "x"}
        }
    }
    system.admin.patch(PODS, "team", running["metadata"]["name"], lie)
    for _ in range(3):
        system.turn()
    assert not DeviceAllocation.objects.filter(source="external").exists()
    assert DeviceAllocation.objects.get().workload == system.workload("liar")


def test_the_policy_of_a_namespace_is_written_in_the_cluster_alone(system: System) -> None:
    key, url = "kueueweb.io/only-owners-change", "/api/v1/namespaces/team/"
    User.objects.create_user("ada")
    RoleBinding.objects.create(name="ada", username="ada", role=Role.ADMIN)
    ada = client_of(User.objects.get(username="ada"))
    system.watcher.resync()
    read = ada.get(url)
    wanted = {"labels": read.json()["labels"], "annotations": {**read.json()["annotations"], key: "true"}}
    refused = ada.put(url, wanted, format="json", headers={"If-Match": read.headers["ETag"]})
    assert refused.status_code == 400
    assert f"kubectl annotate namespace team {key}=true --overwrite" in refused.content.decode()
    system.admin.patch(NAMESPACES, "", "team", {"metadata": {"annotations": {key: "true"}}})
    system.watcher.resync()
    assert ada.get(url).json()["annotations"][key] == "true"
    system.admin.patch(NAMESPACES, "", "team", {"metadata": {"annotations": {key: None}}})
    system.watcher.resync()
    assert key not in ada.get(url).json()["annotations"]
