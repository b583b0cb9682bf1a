"""ResourceQuotas, LimitRanges and RuntimeClasses as the cluster has them, and what follows for workloads."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import StringIO
from typing import Any

import orjson
import pytest
from django.core.management import call_command

from accounts.models import Namespace
from clusters.api_errors import ClusterError
from clusters.api_objects import LIMIT_RANGES, NAMESPACES, RESOURCE_QUOTAS, RUNTIME_CLASSES, JsonObject
from clusters.client import Listing, TokenBucket, WatchEvent
from clusters.client_credentials import connect
from clusters.manifests import apply_manifests
from clusters.push.namespaces import make_namespace
from clusters.sync.configuration import ConfigurationSync
from clusters.sync.watcher import Watcher
from foundation.exceptions import ManifestErrors
from gpus.models import Node
from queues.models import LimitRange, ResourceQuota, RuntimeClass
from tests.api_client import SchemaClient
from tests.clusters.system import System, gpu_job, queued
from tests.factories import make_cluster, make_node
from tests.simulated_cluster import job
from tests.users import client_of, make_user

pytestmark = pytest.mark.django_db(transaction=True)

MEMORY = "limits.nvidia.com/gpumem"


def quota(mib: int, namespace: str = "team") -> JsonObject:
    return {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "gpus", "namespace": namespace},
        "spec": {"hard": {MEMORY: str(mib), "requests.cpu": "1"}},
    }


def limit_range(**item: Any) -> JsonObject:
    return {
        "apiVersion": "v1",
        "kind": "LimitRange",
        "metadata": {"name": "sizes", "namespace": "team"},
        "spec": {"limits": [{"type": "Container", **item}]},
    }


def runtime_class(cpu: str) -> JsonObject:
    return {
        "apiVersion": "node.k8s.io/v1",
        "kind": "RuntimeClass",
        "metadata": {"name": "kata"},
        "handler": "kata",
        "overhead": {"podFixed": {"cpu": cpu}},
    }


@pytest.fixture
def team(system: System) -> System:
    """With the namespace in the cluster too."""
    system.client.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}})
    return system


@contextmanager
def refusing(*plurals: str) -> Iterator[str]:
    """An API server without objects, some of whose kinds this account may not list; its URL."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            allowed = not self.path.partition("?")[0].endswith(plurals)
            body = orjson.dumps(
                {"metadata": {"resourceVersion": "1"}, "items": []}
                if allowed
                else {"kind": "Status", "reason": "Forbidden", "message": "not for you", "code": 403}
            )
            self.send_response(200 if allowed else 403)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args: object) -> None:
            """Silent."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


def test_an_account_that_may_not_read_them_still_reads_the_rest(caplog: pytest.LogCaptureFixture) -> None:
    cluster = make_cluster()
    make_node(cluster, "gone", [])
    with refusing("resourcequotas", "limitranges") as url:
        Watcher(cluster, connect(url, TokenBucket(1000, 1000))).resync()
    assert not Node.objects.exists(), "nodes come before, and those that are not listed go"
    assert "resourcequotas of http" in caplog.text
    with refusing("pods") as url, pytest.raises(ClusterError, match="Forbidden"):
        Watcher(cluster, connect(url, TokenBucket(1000, 1000))).resync()


class TestRows:
    def test_they_follow_the_cluster(self, team: System) -> None:
        team.client.create(RESOURCE_QUOTAS, quota(10_000))
        team.client.create(LIMIT_RANGES, limit_range(max={"cpu": "4"}))
        team.client.create(RUNTIME_CLASSES, runtime_class("250m"))
        team.watcher.resync()
        row = ResourceQuota.objects.get()
        assert (row.key, row.hard, row.api_version) == ("team/gpus", {MEMORY: "10000", "requests.cpu": "1"}, "")
        assert LimitRange.objects.get().limits == [
            {"type": "Container", "max": {"cpu": "4"}, "default": {"cpu": "4"}, "defaultRequest": {"cpu": "4"}}
        ]
        assert RuntimeClass.objects.get().pod_overhead == {"cpu": "250m"}
        team.client.patch(RESOURCE_QUOTAS, "team", "gpus", {"spec": {"hard": {MEMORY: "5"}}})
        team.client.delete(LIMIT_RANGES, "team", "sizes")
        team.watcher.resync()
        assert ResourceQuota.objects.get().hard[MEMORY] == "5"
        assert not LimitRange.objects.exists()

    def test_events_are_enough(self, team: System) -> None:
        sync = ConfigurationSync(team.cluster, RESOURCE_QUOTAS)
        sync.apply([Listing((), "1"), WatchEvent("ADDED", quota(1)), WatchEvent("ADDED", quota(1, "others"))], 0.0)
        assert ResourceQuota.objects.count() == 2
        sync.apply([WatchEvent("MODIFIED", quota(2)), WatchEvent("DELETED", quota(1, "others"))], 1.0)
        assert ResourceQuota.objects.get().hard[MEMORY] == "2"
        sync.apply([WatchEvent("DELETED", quota(2)), WatchEvent("ADDED", quota(3))], 2.0)
        assert ResourceQuota.objects.get().hard[MEMORY] == "3"

    def test_a_status_alone_is_no_news(self, team: System) -> None:
        sync = ConfigurationSync(team.cluster, RESOURCE_QUOTAS)
        sync.apply([WatchEvent("ADDED", quota(1))], 0.0)
        ResourceQuota.objects.update(hard={MEMORY: "7"})
        sync.apply([WatchEvent("MODIFIED", {**quota(1), "status": {"used": {}}})], 1.0)
        assert ResourceQuota.objects.get().hard == {MEMORY: "7"}
        sync.apply([Listing((quota(1),), "2")], 2.0)
        assert ResourceQuota.objects.get().hard[MEMORY] == "1", "a list heals it"

    def test_what_a_manifest_made_follows_the_cluster_and_stays(self, team: System) -> None:
        apply_manifests(team.cluster, orjson.dumps(quota(1)), user=None)
        team.watcher.resync()
        assert ResourceQuota.objects.get().hard[MEMORY] == "1"
        team.client.create(RESOURCE_QUOTAS, quota(2))
        team.watcher.resync()
        row = ResourceQuota.objects.get()
        assert (row.hard[MEMORY], row.api_version) == ("2", "v1")
        team.client.delete(RESOURCE_QUOTAS, "team", "gpus")
        team.watcher.resync()
        assert ResourceQuota.objects.count() == 1

    def test_what_can_not_be_stored_is_logged_and_the_others_are(
        self, team: System, caplog: pytest.LogCaptureFixture
    ) -> None:
        apply_manifests(team.cluster, orjson.dumps(runtime_class("1") | {"handler": "other"}), user=None)
        good = {**runtime_class("1"), "metadata": {"name": "gvisor"}}
        unreadable = {**runtime_class("lots"), "metadata": {"name": "broken"}}
        sync = ConfigurationSync(team.cluster, RUNTIME_CLASSES)
        with caplog.at_level(logging.ERROR):
            sync.apply([Listing((runtime_class("1"), good, unreadable), "1")], 0.0)
        assert set(RuntimeClass.objects.values_list("name", "handler")) == {("kata", "other"), ("gvisor", "kata")}
        assert "handler" in caplog.text
        assert "overhead.podFixed.cpu" in caplog.text

    def test_the_command_stores_them(self, team: System) -> None:
        team.client.create(RESOURCE_QUOTAS, quota(1))
        call_command("watch_cluster", cluster="default", once=True, stdout=StringIO())
        assert ResourceQuota.objects.count() == 1


class TestWorkloads:
    def test_a_quota_edited_in_the_cluster_lets_a_waiting_workload_in(self, team: System) -> None:
        team.client.create(RESOURCE_QUOTAS, quota(6000))
        team.watcher.resync()
        for name in ("first", "second"):
            team.submit(gpu_job(name, mib=4000))
            team.engine.run()
        team.turn()
        assert team.workload("first").status == "Admitted"
        second = team.workload("second")
        assert (second.status, second.reason) == ("Pending", "WaitingForDevices")
        assert "ResourceQuota team/gpus allows its namespace 6000" in second.message
        team.client.patch(RESOURCE_QUOTAS, "team", "gpus", {"spec": {"hard": {MEMORY: "8000"}}})
        team.turn()
        team.turn()
        assert team.workload("second").status == "Admitted"
        assert {pod["status"]["phase"] for pod in team.pods()} == {"Running"}

    def test_the_quota_comes_free_when_a_job_ends(self, team: System) -> None:
        team.client.create(RESOURCE_QUOTAS, quota(6000))
        team.watcher.resync()
        for name in ("first", "second"):
            team.submit(gpu_job(name, mib=4000, run_seconds=10))
            team.engine.run()
        team.turn()
        assert team.workload("second").status == "Pending"
        for _ in range(8):
            if team.workload("second").status == "Finished":
                break
            team.turn(12)
        assert team.workload("first").status == "Finished"
        assert team.workload("second").status == "Finished"

    def test_what_a_limit_range_adds_is_counted_and_is_what_the_pods_have(self, team: System) -> None:
        team.client.create(LIMIT_RANGES, limit_range(defaultRequest={"cpu": "3"}, default={"cpu": "4"}))
        team.watcher.resync()
        team.submit(queued(job("plain", requests={})))
        team.turn()
        team.turn()
        (pod_set,) = team.workload("plain").pod_sets.all()
        assert pod_set.resource_usage == {"cpu": 3000}
        (pod,) = team.pods()
        assert pod["spec"]["containers"][0]["resources"] == {"requests": {"cpu": "3"}, "limits": {"cpu": "4"}}

    def test_a_job_that_the_cluster_would_refuse_waits_until_the_bounds_move(self, team: System) -> None:
        team.client.create(LIMIT_RANGES, limit_range(max={"cpu": "2"}))
        team.watcher.resync()
        team.submit(queued(job("large", requests={"cpu": "3"})))
        team.turn()
        row = team.workload("large")
        assert (row.status, row.reason) == ("Pending", "Misconfigured")
        assert "LimitRange team/sizes" in row.message
        assert not team.pods()
        team.client.delete(LIMIT_RANGES, "team", "sizes")
        team.turn()
        team.turn()
        assert team.workload("large").status == "Admitted"

    def test_an_overhead_is_counted(self, team: System) -> None:
        team.client.create(RUNTIME_CLASSES, runtime_class("500m"))
        team.watcher.resync()
        body = queued(job("boxed"))
        body["spec"]["template"]["spec"]["runtimeClassName"] = "kata"
        team.submit(body)
        team.turn()
        team.turn()
        (pod_set,) = team.workload("boxed").pod_sets.all()
        assert pod_set.resource_usage == {"cpu": 1500}
        (pod,) = team.pods()
        assert pod["spec"]["overhead"] == {"cpu": "500m"}


ONLY_OWNERS = "kueueweb.io/only-owners-change"
URL = "/api/v1/namespaces/team/"


def annotate(client: SchemaClient, **annotations: str) -> Any:
    """Write the policy of the namespace over REST, as a form of the browser does."""
    read = client.get(URL)
    body = {"labels": read.json()["labels"], "annotations": annotations}
    return client.put(URL, body, format="json", headers={"If-Match": read.headers["ETag"]})


class TestNamespaces:
    """The policy of a namespace has one author: the cluster, once it has the namespace."""

    @pytest.fixture
    def admin(self, system: System) -> SchemaClient:
        return client_of(make_user("alice"))

    def test_a_policy_over_rest_is_refused_where_the_cluster_has_the_namespace(
        self, team: System, admin: SchemaClient
    ) -> None:
        team.watcher.resync()
        refused = annotate(admin, **{ONLY_OWNERS: "true"})
        assert refused.status_code == 400, refused.json()
        (error,) = refused.json()["errors"]
        assert (error["path"], error["reason"]) == ("annotations", "Forbidden")
        command = f"kubectl annotate namespace team {ONLY_OWNERS}=true --overwrite"
        assert command in error["remedy"]
        assert Namespace.objects.get(name="team").annotations == {}
        team.client.patch(NAMESPACES, "", "team", {"metadata": {"annotations": {ONLY_OWNERS: "true"}}})
        team.watcher.resync()
        assert Namespace.objects.get(name="team").annotations == {ONLY_OWNERS: "true"}, "as the remedy says"
        removed = annotate(admin).json()["errors"][0]
        assert f"kubectl annotate namespace team {ONLY_OWNERS}-" in removed["remedy"]
        assert annotate(admin, **{ONLY_OWNERS: "true"}).status_code == 200, "nothing changes"

    def test_a_policy_that_is_written_before_the_cluster_has_the_namespace_gets_there(
        self, system: System, admin: SchemaClient
    ) -> None:
        assert annotate(admin, **{ONLY_OWNERS: "true"}).status_code == 200
        system.watcher.resync()
        assert annotate(admin, **{ONLY_OWNERS: "true", "team": "vision"}).status_code == 200
        make_namespace(system.cluster, system.client, "team")
        assert annotate(admin).status_code == 400, "no edit is lost between creation and the next list"
        system.watcher.resync()
        there = system.client.get(NAMESPACES, "", "team")
        assert there is not None
        assert there["metadata"]["annotations"] == {ONLY_OWNERS: "true", "team": "vision"}
        assert Namespace.objects.get(name="team").annotations == {ONLY_OWNERS: "true", "team": "vision"}

    def test_manifests_may_name_a_namespace_of_the_cluster_and_not_change_it(
        self, team: System, admin: SchemaClient
    ) -> None:
        team.client.patch(NAMESPACES, "", "team", {"metadata": {"labels": {"of": "vision"}}})
        team.watcher.resync()
        manifest = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}}
        team.apply(manifest)
        assert Namespace.objects.get(name="team").labels["of"] == "vision"
        with pytest.raises(ManifestErrors, match="kubectl label namespace team of=speech --overwrite"):
            team.apply({**manifest, "metadata": {"name": "team", "labels": {"of": "speech"}}})

    def test_a_namespace_is_deleted_where_it_is(self, team: System, admin: SchemaClient) -> None:
        Namespace.objects.filter(name="team").update(api_version="v1")
        team.watcher.resync()
        etag = admin.get(URL).headers["ETag"]
        refused = admin.delete(URL, headers={"If-Match": etag})
        assert (refused.status_code, "kubectl delete namespace team" in refused.content.decode()) == (409, True)
        team.client.delete(NAMESPACES, "", "team")
        team.watcher.resync()
        row = Namespace.objects.get(name="team")
        assert not row.in_cluster, "a row that was written here stays, and may be deleted here"
        etag = admin.get(URL).headers["ETag"]
        assert admin.delete(URL, headers={"If-Match": etag}).status_code in (202, 204)

    def test_a_tenant_writes_no_policy(self, team: System) -> None:
        for name in ("bob", "vera"):
            client = client_of(make_user(name))
            assert client.put(URL, {"annotations": {ONLY_OWNERS: "true"}}, format="json").status_code in (403, 404)
