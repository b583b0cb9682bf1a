"""Every admin page opens; workloads are acted on by the services; nobody edits what others write."""

from datetime import UTC, datetime

import pytest
from django.apps import apps
from django.contrib import admin
from django.contrib.auth.models import User
from django.test import Client

from accounts.models import Cluster, RoleBinding
from gpus.models import Device, DeviceAllocation, Node
from queues.manifests.workload import JobSpec, PodSetSpec, WorkloadSpec
from queues.models import Job, Workload
from queues.services.submission import create_workloads
from scheduler.models import Lease, SchedulingCycle
from tests.factories import make_cluster, make_cluster_queue

NOW = datetime(2026, 1, 5, tzinfo=UTC)


@pytest.fixture
def cluster(db: None) -> Cluster:
    """A row of everything."""
    cluster = make_cluster()
    make_cluster_queue(cluster)
    pod_sets = (PodSetSpec("main", 1, {}, {"cpu": 1}),)
    job = JobSpec("Job", "train", "team", {"kind": "Job"})
    create_workloads(cluster, [WorkloadSpec("team", "train", "queue", pod_sets, job=job)], actor="x")
    node = Node.objects.create(cluster=cluster, name="n1", created_at=NOW)
    device = Device.objects.create(node=node, uuid="GPU-1", index=0, slots=10, memory_mib=100)
    DeviceAllocation.objects.create(
        cluster=cluster, node=node, device=device, device_uuid="GPU-1", source="external", memory_mib=1,
        cores_percent=1,
        created_at=NOW,
    )  # fmt: skip
    Lease.objects.create(cluster=cluster)
    SchedulingCycle.objects.create(
        cluster=cluster, epoch=1, number=1, started_at=NOW, duration_seconds=1, heads=1, admitted=1, preempted=0,
        inadmissible=0,
    )  # fmt: skip
    return cluster


@pytest.fixture
def site(cluster: Cluster) -> Client:
    client = Client()
    client.force_login(User.objects.create_superuser("root"))
    return client


def pages() -> list[str]:
    ours = {"accounts", "queues", "gpus", "scheduler"}
    return sorted(
        model._meta.label_lower.replace(".", "/") for model in admin.site._registry if model._meta.app_label in ours
    )


@pytest.mark.parametrize("page", pages())
def test_lists_and_rows_open(site: Client, page: str) -> None:
    listed = site.get(f"/admin/{page}/", {"q": "x"} if "lease" not in page and "cycle" not in page else {})
    assert listed.status_code in {200, 302}
    assert site.get(f"/admin/{page}/").status_code == 200
    app, _, model = page.partition("/")
    row = apps.get_model(app, model)._default_manager.first()
    if row is not None:
        assert site.get(f"/admin/{page}/{row.pk}/change/").status_code == 200


def test_the_catalogue_is_whole() -> None:
    assert set(pages()) >= {"queues/clusterqueue", "queues/cohort", "accounts/rolebinding", "gpus/device"}


def test_actions_on_workloads(site: Client) -> None:
    row = Workload.objects.get()
    url = "/admin/queues/workload/"
    site.post(url, {"action": "hold", "_selected_action": [row.pk]})
    assert not Workload.objects.get().active
    site.post(url, {"action": "release", "_selected_action": [row.pk]})
    assert Workload.objects.get().active
    response = site.post(url, {"action": "cancel", "_selected_action": [row.pk]}, follow=True)
    assert "1 workload changed." in response.content.decode()
    assert Workload.objects.get().status == "Finished"


def test_of_a_node_too_and_draining_cordons(site: Client) -> None:
    node = Node.objects.get()
    site.post(f"/admin/gpus/node/{node.pk}/change/", {"draining": "on", "name": "other"})
    node.refresh_from_db()
    assert (node.cordoned, node.draining, node.name != "other") == (True, True, True)
    assert site.get("/admin/gpus/node/add/").status_code == 403


def test_a_cordon_is_all_that_is_written_of_a_device(site: Client) -> None:
    device = Device.objects.get()
    site.post(f"/admin/gpus/device/{device.pk}/change/", {"cordoned": "on", "slots": "1"})
    device.refresh_from_db()
    assert (device.cordoned, device.slots) == (True, 10)
    assert site.get("/admin/gpus/device/add/").status_code == 403
    assert site.post(f"/admin/queues/job/{Job.objects.get().pk}/change/", {"kind": "x"}).status_code == 403


def test_role_bindings(site: Client) -> None:
    url = "/admin/accounts/rolebinding/add/"
    site.post(url, {"name": "bob-in-team", "username": "bob", "role": "submitter", "namespace": "team"})
    assert RoleBinding.objects.get().namespace == "team"


def test_clusters(site: Client, cluster: Cluster) -> None:
    url = f"/admin/accounts/cluster/{cluster.pk}/change/"
    fields = {"mode": "observe", "device_binding": "bind", "placement": "topology", "server_url": "https://x"}
    site.post(url, {**fields, "name": "other"})
    cluster.refresh_from_db()
    assert (cluster.mode, cluster.placement, cluster.name) == ("observe", "topology", "default")


def test_monitors_are_http_addresses(site: Client, cluster: Cluster) -> None:
    url = f"/admin/accounts/cluster/{cluster.pk}/change/"
    fields = {"mode": "schedule", "device_binding": "bind", "placement": "all", "server_url": ""}
    site.post(url, {**fields, "telemetry_urls": '["http://monitor:9394/metrics"]'})
    for wrong in ('["file:///etc/passwd"]', '["http://"]', '"http://x"', "[1]"):
        page = site.post(url, {**fields, "telemetry_urls": wrong}).content.decode()
        assert "not an http(s) URL" in page or "Expected a list of addresses" in page
    cluster.refresh_from_db()
    assert cluster.telemetry_urls == ["http://monitor:9394/metrics"]


def test_not_for_submitters(cluster: Cluster) -> None:
    client = Client()
    client.force_login(User.objects.create_user("bob"))
    assert client.get("/admin/queues/clusterqueue/").status_code == 302  # to the login page
