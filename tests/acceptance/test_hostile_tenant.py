"""A tenant who tries everything that a submitter of one namespace can, on the simulated cluster; then an audit.

What belongs to others must stay theirs, nothing may run unaccounted, and the books must agree at the end.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import orjson
import pytest
from django.contrib.auth.models import User
from django.db.models import Sum

from accounts.models import Namespace, Role, RoleBinding
from clusters.api_objects import PODS
from clusters.audit.auditor import audit
from gpus.models import Device, DeviceAllocation, Node
from queues.models import Job, Workload, WorkloadPriorityClass
from tests.api_client import SchemaClient
from tests.cluster_kinds import JOBS
from tests.clusters.system import System, deployment, gpu_job, queued
from tests.simulated_cluster import job
from tests.users import client_of

pytestmark = pytest.mark.django_db(transaction=True)

URL = "/api/v1/"


class Tenant:
    """A submitter of the namespace `team`, over REST."""

    def __init__(self, system: System, client: SchemaClient) -> None:
        self.system = system
        self.client = client

    def apply(self, *manifests: dict[str, Any]) -> Any:
        text = b"\n---\n".join(orjson.dumps(manifest) for manifest in manifests)
        return self.client.post(f"{URL}manifests/", text, content_type="application/yaml")

    def turns(self, count: int = 3) -> None:
        for _ in range(count):
            self.system.turn()

    def running(self) -> list[dict[str, Any]]:
        return [pod for pod in self.system.pods() if pod["status"]["phase"] == "Running"]


@pytest.fixture
def tenant(system: System) -> Iterator[Tenant]:
    """The tenant beside another one, whose Job runs; at the end the books agree, and the other one's Job still runs."""
    Namespace.objects.get_or_create(cluster=system.cluster, name="others", defaults={"created_at": system.moment()})
    WorkloadPriorityClass.objects.create(cluster=system.cluster, name="usual", value=10, created_at=system.moment())
    user = User.objects.create_user("mallory")
    RoleBinding.objects.create(username=user.username, role=Role.SUBMITTER, namespace="team")
    system.submit(gpu_job("theirs", run_seconds=100_000))
    found = Tenant(system, client_of(user))
    found.turns(2)
    [theirs] = [pod["metadata"]["uid"] for pod in found.running()]
    yield found
    found.turns(2)
    assert theirs in {pod["metadata"]["uid"] for pod in found.running()}
    later = datetime.now(UTC) + timedelta(hours=1)
    assert audit(system.cluster, system.client, later) == []


def granted(tenant: Tenant) -> dict[str, int]:
    """MiB per device that running pods were told they hold."""
    held: dict[str, int] = {}
    for pod in tenant.running():
        text = pod["metadata"].get("annotations", {}).get("hami.io/vgpu-devices-allocated", "")
        for entry in (piece.split(",") for piece in text.replace(";", "").split(":")):
            if len(entry) > 3:
                held[entry[0]] = held.get(entry[0], 0) + int(entry[2])
    return held


def test_s1_finish_frees_nothing_of_a_job_that_runs(tenant: Tenant) -> None:
    for number in range(4):
        name = f"free-{number}"
        assert tenant.apply(gpu_job(name, mib=16_000, run_seconds=100_000)).status_code == 200
        tenant.turns(2)
        row = Workload.objects.get(job__name=name)
        key = {"namespace": "team", "name": row.name}
        answer = tenant.client.post(f"{URL}workloads/finish/", {"workloads": [key]})
        assert (answer.status_code, answer.json()["reason"]) == (409, "Conflict")
    sizes = dict(Device.objects.values_list("uuid", "memory_mib"))
    assert all(mib <= sizes[uuid] for uuid, mib in granted(tenant).items())


def test_s1_a_deleted_workload_holds_what_its_pods_use(tenant: Tenant) -> None:
    tenant.apply(gpu_job("mine", run_seconds=100_000))
    tenant.turns(2)
    row = Workload.objects.get(job__name="mine")
    assert tenant.client.delete(f"{URL}workloads/team/{row.name}/").status_code == 202
    assert DeviceAllocation.objects.filter(workload=row).exists()
    tenant.turns(4)
    assert not DeviceAllocation.objects.filter(workload__namespace="team", workload__name=row.name).exists()
    assert len(tenant.running()) == 1


def test_s2_annotations_close_no_device(tenant: Tenant) -> None:
    for number, node in enumerate(Node.objects.values_list("name", flat=True)):
        plain = queued(job(f"close-{number}", run_seconds=100_000))
        plain["spec"]["template"]["metadata"]["annotations"] |= {
            "hami.io/vgpu-node": node,
            "hami.io/vgpu-devices-allocated": "garbage,x;",
            "hami.io/mlu-devices-allocated": "garbage,x;",
            "hami.io/enflame-vgpu-devices-allocated": "garbage,x;",
            "hami.io/kunlun-allocated": "garbage,x;",
        }
        assert tenant.apply(plain).json()["warnings"]
    tenant.turns(3)
    assert not DeviceAllocation.objects.filter(source="external").exists()
    mine = [pod for pod in tenant.running() if pod["metadata"]["name"].startswith("close-")]
    assert mine
    assert not any("hami.io/" in key for pod in mine for key in pod["metadata"].get("annotations") or {})
    for pod in mine:
        lie = {"hami.io/vgpu-node": pod["spec"]["nodeName"], "hami.io/vgpu-devices-allocated": "garbage,x;"}
        key = pod["metadata"]["namespace"], pod["metadata"]["name"]
        tenant.system.client.patch(PODS, *key, {"metadata": {"annotations": lie}})
    tenant.turns(2)
    assert not DeviceAllocation.objects.filter(source="external").exists()


def test_s2_another_s_workload_is_not_named_by_a_label(tenant: Tenant) -> None:
    other = Workload.objects.get(job__name="theirs")
    liar = gpu_job("liar", run_seconds=100_000)
    liar["spec"]["template"]["metadata"]["labels"] = {"kueueweb.io/workload-uid": str(other.uid)}
    tenant.apply(liar)
    tenant.turns(3)
    uids = [pod["metadata"]["labels"]["kueueweb.io/workload-uid"] for pod in tenant.running()]
    assert sorted(uids) == sorted(str(uid) for uid in Workload.objects.values_list("uid", flat=True))


def test_s3_no_way_from_a_pod_to_its_node(tenant: Tenant) -> None:
    root = queued(job("root", run_seconds=100_000))
    root["spec"]["template"]["spec"] |= {
        "hostNetwork": True,
        "hostPID": True,
        "serviceAccountName": "cluster-admin-sa",
        "priorityClassName": "system-node-critical",
        "tolerations": [{"operator": "Exists"}],
        "nodeName": "node-01",
        "volumes": [{"name": "host", "hostPath": {"path": "/"}}],
    }
    root["spec"]["template"]["spec"]["containers"][0]["securityContext"] = {"privileged": True}
    answer = tenant.apply(root)
    assert answer.status_code == 400
    assert len(answer.json()["errors"]) == 8
    assert {each["reason"] for each in answer.json()["errors"]} == {"Forbidden"}
    assert not Job.objects.filter(name="root").exists()


@pytest.mark.parametrize("namespace", ["kube-system", "kueueweb", "others"])
def test_s3_no_job_in_a_namespace_of_others(tenant: Tenant, namespace: str) -> None:
    stray = gpu_job("stray")
    stray["metadata"]["namespace"] = namespace
    assert tenant.apply(stray).status_code in (400, 403)
    assert not Job.objects.filter(namespace=namespace).exists()
    assert not tenant.system.client.list(JOBS, namespace).items


def test_s5_a_priority_number_cannot_outrank_other_tenants(tenant: Tenant) -> None:
    workload = {"namespace": "team", "name": "first", "pod_sets": [{"requests": {"cpu": "1"}}]}
    assert tenant.client.post(f"{URL}workloads/", {**workload, "priority": 2_147_483_647}).status_code == 400
    assert tenant.client.post(f"{URL}workloads/", {**workload, "priority_class": "usual"}).status_code == 201
    answer = tenant.client.post(f"{URL}workloads/team/first/priority/", {"priority": 2_147_483_647})
    assert answer.status_code in (400, 403)
    boosted = gpu_job("boosted")
    boosted["metadata"]["annotations"] = {"kueue.x-k8s.io/priority-boost": "1000000"}
    assert tenant.apply(boosted).status_code == 400
    assert set(Workload.objects.values_list("priority", flat=True)) == {0, 10}


def test_s18_sizes_have_bounds(tenant: Tenant) -> None:
    workload = {"namespace": "team", "name": "large", "pod_sets": [{"requests": {"cpu": "1"}}]}
    large = {**workload, "annotations": {"a": "x" * 5_000_000}}
    assert tenant.client.post(f"{URL}workloads/", large).status_code in (400, 413)
    manifest = gpu_job("large")
    manifest["spec"]["template"]["metadata"]["annotations"] |= {"a": "x" * 300_000}
    assert tenant.apply(manifest).status_code == 400


def test_j1_a_cancelled_replica_frees_its_own_slice_alone(tenant: Tenant) -> None:
    web = deployment(2)
    tenant.apply(web)
    tenant.turns(3)
    first = Workload.objects.filter(job__name="web").order_by("pk")[0]
    assert tenant.client.post(f"{URL}workloads/team/{first.name}/cancel/").status_code == 200
    tenant.turns(4)
    assert Workload.objects.filter(job__name="web", status="Admitted").count() == 1
    assert DeviceAllocation.objects.filter(workload__job__name="web").count() == 1


def test_j4_what_the_cluster_refuses_holds_nothing(tenant: Tenant) -> None:
    refused = gpu_job("refused")
    refused["spec"]["template"]["spec"]["restartPolicy"] = "NaN"
    tenant.apply(refused)
    tenant.turns(2)
    assert not Workload.objects.filter(job__name="refused", quota_reserved_at__isnull=False, status="Admitted").exists()
    assert Device.objects.aggregate(used=Sum("used_slots"))["used"] == 1
