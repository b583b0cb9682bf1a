"""Objects that only the cluster changes: a write to them over REST, a form or an apply is refused, with a reason."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import call_command
from django.test import Client

from accounts.models import Cluster, ClusterMode
from clusters.manifests import apply_manifests
from foundation.exceptions import MirroredFromCluster
from gpus.models import Node
from queues.models import ClusterQueue, Workload
from tests.kueueweb.test_write_paths import OPERATIONS, Write, cluster, prepare, rows, send, url_of
from tests.users import client_of

pytestmark = pytest.mark.django_db(transaction=True)
__all__ = ["cluster"]

OURS = (
    "auth/", "clusters/", "manifest-templates/", "notification-rules/", "notifications/", "prices/", "saved-views/",
    "service-accounts/", "studio/", "users/",
)  # fmt: skip
"""What is ours also there: who may do what, looks at what and is told what, what we do with the cluster, what its
resources cost."""
MIRRORED = {key: write for key, write in OPERATIONS.items() if not key[1].startswith(OURS)}
SETTINGS = b"""
apiVersion: config.kueue.x-k8s.io/v1beta2
kind: Configuration
resources: {excludeResourcePrefixes: [example.com]}
"""
FLAVOR = b"apiVersion: kueue.x-k8s.io/v1beta2\nkind: ResourceFlavor\nmetadata: {name: x}\n"


@pytest.mark.parametrize(("method", "path"), MIRRORED, ids=[" ".join(key) for key in MIRRORED])
def test_over_rest(cluster: Cluster, method: str, path: str) -> None:
    write: Write = OPERATIONS[method, path]
    prepare(cluster, path, write)
    Cluster.objects.update(mode=ClusterMode.OBSERVE)
    before = rows()
    answer = send(client_of(User.objects.get(username="alice")), method, url_of(path), write)
    body: dict[str, Any] = answer.json()
    assert (answer.status_code, body["reason"]) == (409, "MirroredFromCluster"), body
    assert "Cluster default is in mode observe" in body["message"]
    assert rows() == before


def test_by_an_apply(cluster: Cluster) -> None:
    """Our settings of how the cluster is read are applied all the same."""
    cluster.mode = ClusterMode.SHADOW
    with pytest.raises(MirroredFromCluster):
        apply_manifests(cluster, FLAVOR, user=None)
    with pytest.raises(MirroredFromCluster):
        apply_manifests(cluster, b"", user=None, applied_set="ours", prune=True)
    assert [found.action for found in apply_manifests(cluster, SETTINGS, user=None).objects] == ["created"]


def test_in_the_admin(cluster: Cluster) -> None:
    site = Client()
    site.force_login(User.objects.create_superuser("root"))
    Cluster.objects.update(mode=ClusterMode.OBSERVE)
    queue, node, workload = ClusterQueue.objects.get(), Node.objects.get(), Workload.objects.get()
    for address in (f"queues/clusterqueue/{queue.pk}", f"gpus/node/{node.pk}"):
        assert "is in mode observe" in site.get(f"/admin/{address}/change/").content.decode()
    assert site.post(f"/admin/gpus/node/{node.pk}/change/", {"cordoned": "on"}).status_code == 403
    edited = site.post(f"/admin/queues/clusterqueue/{queue.pk}/change/", {"stop_policy": "Hold"})
    assert "objects are read-only here" in edited.content.decode()
    assert site.post(f"/admin/queues/clusterqueue/{queue.pk}/delete/", {"post": "yes"}).status_code == 403
    added = site.post("/admin/queues/resourceflavor/add/", {"cluster": cluster.pk, "name": "x"})
    assert "is in mode observe" in added.content.decode()
    chosen = {"action": "hold", "_selected_action": [workload.pk]}
    assert "is in mode observe" in site.post("/admin/queues/workload/", chosen, follow=True).content.decode()
    workload.refresh_from_db()
    node.refresh_from_db()
    assert (workload.active, node.cordoned, ClusterQueue.objects.count()) == (True, False, 1)


def test_the_mode_is_set_by_cluster_admins(cluster: Cluster) -> None:
    url = "/api/v1/clusters/default/"
    assert client_of(User.objects.get(username="bob")).patch(url, {"mode": "observe"}).status_code == 403
    alice = client_of(User.objects.get(username="alice"))
    wrong = alice.patch(url, {"mode": "watch"})
    assert (wrong.status_code, wrong.json()["errors"][0]["path"]) == (400, "mode")
    assert alice.patch(url, {"mode": "observe"}).json()["mode"] == "observe"
    assert alice.get("/api/v1/session/").json()["clusters"] == [{"name": "default", "mode": "observe"}]
    call_command("set_cluster", mode="schedule")
    assert alice.get(url).json()["mode"] == "schedule"


def test_who_binds_pods_with_devices_is_set_by_cluster_admins(cluster: Cluster) -> None:
    url = "/api/v1/clusters/default/"
    assert client_of(User.objects.get(username="bob")).patch(url, {"device_binding": "pin"}).status_code == 403
    alice = client_of(User.objects.get(username="alice"))
    assert alice.get(url).json()["device_binding"] == "bind"
    wrong = alice.patch(url, {"device_binding": "hold"})
    assert (wrong.status_code, wrong.json()["errors"][0]["path"]) == (400, "device_binding")
    assert alice.patch(url, {"device_binding": "pin"}).json()["device_binding"] == "pin"
    call_command("set_cluster", device_binding="bind")
    assert alice.get(url).json()["device_binding"] == "bind"


def test_how_far_pods_are_placed_is_set_by_cluster_admins(cluster: Cluster) -> None:
    url = "/api/v1/clusters/default/"
    assert client_of(User.objects.get(username="bob")).patch(url, {"placement": "all"}).status_code == 403
    alice = client_of(User.objects.get(username="alice"))
    before = alice.get(url)
    assert before.json()["placement"] == "devices"  # a new cluster: nothing is tied to a host that Kueue would not tie
    assert alice.patch(url, {"placement": "everywhere"}).json()["errors"][0]["path"] == "placement"
    assert alice.patch(url, {"placement": "topology"}).json()["placement"] == "topology"
    call_command("set_cluster", placement="all")
    now = alice.get(url)
    assert now.json()["placement"] == "all"
    assert now.headers["ETag"] != before.headers["ETag"]


def test_settings_are_set_only_as_they_were_read(cluster: Cluster) -> None:
    url = "/api/v1/clusters/default/"
    alice = client_of(User.objects.get(username="alice"))
    read = alice.get(url).headers["ETag"]
    assert alice.patch(url, {"mode": "observe"}, headers={"If-Match": read}).status_code == 200
    late = alice.patch(url, {"device_binding": "pin"}, headers={"If-Match": read})
    assert (late.status_code, late.json()["current"]["mode"]) == (412, "observe")
    cluster.refresh_from_db()
    assert cluster.device_binding == "bind"
    again = alice.patch(url, {"device_binding": "pin"}, headers={"If-Match": alice.get(url).headers["ETag"]})
    assert again.json()["device_binding"] == "pin"
    assert alice.patch(url, {"mode": "schedule"}).status_code == 200
