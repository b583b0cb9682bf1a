"""The first page's numbers."""

from django.utils import timezone

from accounts.models import Cluster
from gpus.models import Device, Node
from queues.manifests.workload import PodSetSpec, WorkloadSpec
from queues.models import Workload
from queues.services.submission import create_workloads
from queues.services.workloads import record_finished
from scheduler.models import Lease
from tests.api_client import SchemaClient
from tests.users import EPOCH

URL = "/api/v1/overview/"


def test_empty(alice: SchemaClient) -> None:
    body = alice.get(URL).json()
    assert set(body["totals"].values()) == {0}
    assert body["health"]["scheduler"] == {"alive": False, "holder": "", "epoch": 0, "heartbeat_at": None}
    assert body["pending_by_reason"] == []


def test_counts_what_the_user_may_see(alice: SchemaClient, bob: SchemaClient, cluster: Cluster) -> None:
    pod_sets = (PodSetSpec("main", 1, {}, {"cpu": 1}),)
    specs = [
        WorkloadSpec(namespace, f"w{index}", "main", pod_sets)
        for namespace in ("team-a", "team-b")
        for index in range(5)
    ]
    create_workloads(cluster, specs, actor="alice")
    Workload.objects.filter(name="w0").update(status="Admitted", quota_reserved_at=EPOCH, admitted_at=EPOCH)
    Workload.objects.filter(name="w1").update(active=False, reason="Deactivated")
    Workload.objects.filter(name="w2").update(reason="WaitingForQuota")
    record_finished(cluster, [("team-a", "w3"), ("team-b", "w3")])
    node = Node.objects.create(cluster=cluster, name="n1", created_at=EPOCH)
    Device.objects.create(
        node=node, uuid="GPU-1", index=0, slots=10, memory_mib=100, used_slots=2, external_memory_mib=7
    )
    Lease.objects.create(cluster=cluster, epoch=2, holder="host:1", renewed_at=timezone.now())

    body = alice.get(URL).json()
    totals = body["totals"]
    assert {name: totals[name] for name in ("pending", "held", "reserving", "admitted", "finished")} == {
        "pending": 4,
        "held": 2,
        "reserving": 2,
        "admitted": 2,
        "finished": 2,
    }
    assert (totals["nodes"], totals["devices"], totals["devices_in_use"], totals["used_memory_mib"]) == (1, 1, 1, 7)
    assert body["health"]["scheduler"]["alive"] is True
    assert body["pending_by_reason"] == [
        {"reason": "PendingEvaluation", "count": 2},
        {"reason": "WaitingForQuota", "count": 2},
    ]
    mine = bob.get(URL).json()
    assert (mine["totals"]["pending"], mine["totals"]["devices"]) == (2, 1)
    assert mine["health"]["scheduler"]["holder"] == ""


def test_another_kueueweb_that_pushes_there(alice: SchemaClient, bob: SchemaClient, cluster: Cluster) -> None:
    assert alice.get(URL).json()["health"]["other_kueueweb"] == ""
    Cluster.objects.filter(pk=cluster.pk).update(lease_holder="kueueweb-7-db")
    assert alice.get(URL).json()["health"]["other_kueueweb"] == "kueueweb-7-db"
    assert bob.get(URL).json()["health"]["other_kueueweb"] == "another installation"
