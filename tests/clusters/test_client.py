"""The client against a server that speaks Kubernetes' API."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import orjson
import pytest
from kubernetes.config import kube_config

from clusters.api_errors import ClusterError, ClusterUnreachable
from clusters.api_objects import NODES, PODS, Kind
from clusters.client import ClusterClient, TokenBucket, WatchEvent
from clusters.client_credentials import connect
from tests.cluster_kinds import JOBS
from tests.simulated_cluster import ServerThread, job, make_simulated, pod, post


@pytest.fixture
def server() -> Iterator[ServerThread]:
    with ServerThread(make_simulated()) as running:
        yield running


@pytest.fixture
def client(server: ServerThread) -> ClusterClient:
    return connect(server.url, TokenBucket(10_000, 10_000))


def test_paths() -> None:
    assert PODS.path("team", "a", "binding") == "/api/v1/namespaces/team/pods/a/binding"
    assert JOBS.path() == "/apis/batch/v1/jobs"
    assert NODES.path("ignored", "n") == "/api/v1/nodes/n"
    assert Kind("kueue.x-k8s.io/v1beta1", "Workload", "workloads").path("t") == (
        "/apis/kueue.x-k8s.io/v1beta1/namespaces/t/workloads"
    )


def test_get_list_apply_patch_delete(client: ClusterClient) -> None:
    assert client.get(JOBS, "default", "train") is None
    client.apply(JOBS, job(suspend=True))
    client.patch(JOBS, "default", "train", {"spec": {"suspend": False}})
    found = client.get(JOBS, "default", "train")
    assert found is not None
    assert found["spec"]["suspend"] is False
    assert len(client.list(PODS, label_selector="job-name=train").items) == 1
    assert client.list(PODS, field_selector="spec.nodeName=").items == ()
    assert client.delete(JOBS, "default", "train", uid="another") is False
    assert client.delete(JOBS, "default", "train") is True
    assert client.delete(JOBS, "default", "train") is False


def test_a_list_in_pages_is_whole(server: ServerThread) -> None:
    client = connect(server.url, TokenBucket(10_000, 10_000), page_size=3)
    for number in range(8):
        client.create(JOBS, job(f"job-{number}", suspend=True))
    listing = client.list(JOBS)
    assert [item["metadata"]["name"] for item in listing.items] == [f"job-{number}" for number in range(8)]
    assert listing.resource_version


def test_errors_say_what_they_are(client: ClusterClient) -> None:
    client.create(JOBS, job(suspend=True))
    with pytest.raises(ClusterError) as twice:
        client.create(JOBS, job(suspend=True))
    assert (twice.value.conflict, twice.value.reason) == (True, "AlreadyExists")
    with pytest.raises(ClusterError) as nowhere:
        client.create(JOBS, {**job(), "metadata": {"name": "a", "namespace": "nowhere"}})
    assert nowhere.value.not_found
    with pytest.raises(ClusterError) as invalid:
        client.patch(JOBS, "default", "train", {"spec": {"completions": 7}})
    assert (invalid.value.status, "immutable" in invalid.value.message) == (422, True)


def test_binding_twice_conflicts(client: ClusterClient) -> None:
    created = client.create(PODS, pod(schedulerName="kueueweb"))
    client.bind("default", "worker", created["metadata"]["uid"], "node-02")
    with pytest.raises(ClusterError) as twice:
        client.bind("default", "worker", created["metadata"]["uid"], "node-01")
    assert twice.value.conflict
    found = client.get(PODS, "default", "worker")
    assert found is not None
    assert found["spec"]["nodeName"] == "node-02"


def test_a_watch_hands_out_changes_and_can_be_ended(client: ClusterClient) -> None:
    version = client.list(JOBS).resource_version
    ends: list[Callable[[], None]] = []
    found: list[WatchEvent] = []

    def opened(end: Callable[[], None]) -> None:
        client.create(JOBS, job(suspend=True))
        ends.append(end)

    for event in client.watch(JOBS, version, timeout_seconds=30, opened=opened):
        found.append(event)
        ends[0]()
    assert found[0].type == "ADDED"


def test_a_watch_that_is_silent_counts_as_cut(client: ClusterClient) -> None:
    """A connection that a firewall has forgotten ends by nobody's hand: no bookmark came, and none will."""
    version = client.list(JOBS).resource_version
    with pytest.raises(ClusterUnreachable):
        list(client.watch(JOBS, version, timeout_seconds=30, silence_seconds=0.2))


def test_a_version_that_is_too_old_has_expired(server: ServerThread, client: ClusterClient) -> None:
    version = client.list(JOBS).resource_version
    client.create(JOBS, job(suspend=True))
    post(f"{server.url}/_chaos", {"compact": True})
    with pytest.raises(ClusterError) as gone:
        list(client.watch(JOBS, version, timeout_seconds=1))
    assert gone.value.expired


def test_no_answer_is_unreachable() -> None:
    with pytest.raises(ClusterUnreachable):
        connect("http://127.0.0.1:9").list(NODES)


def test_a_token_bucket_lets_bursts_through_and_then_paces() -> None:
    now = [0.0]
    slept: list[float] = []
    bucket = TokenBucket(10, 3, clock=lambda: now[0], sleep=slept.append)
    for _ in range(5):
        bucket.take()
    assert slept == pytest.approx([0.1, 0.2])
    now[0] = 10.0
    for _ in range(3):
        bucket.take()
    assert len(slept) == 2


KUBECONFIG = """
apiVersion: v1
kind: Config
current-context: lab
contexts: [{name: lab, context: {cluster: lab, user: me}}]
clusters: [{name: lab, cluster: {server: "https://lab.example:6443"}}]
users: [{name: me, user: {token: secret}}]
"""


def test_without_a_url_the_kubeconfig_says_where_and_who(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "config"
    path.write_text(KUBECONFIG)
    monkeypatch.setattr(kube_config, "KUBE_CONFIG_DEFAULT_LOCATION", str(path))
    client = connect()
    assert client.server == "https://lab.example:6443"
    assert "secret" in str(client._configuration.auth_settings())


def test_without_any_configuration_it_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kube_config, "KUBE_CONFIG_DEFAULT_LOCATION", str(tmp_path / "none"))
    with pytest.raises(ClusterUnreachable, match="no API server is configured"):
        connect()


class _Installing(BaseHTTPRequestHandler):
    """The API while the definition of a kind is being installed: its group is in the list, and not served yet."""

    def do_GET(self) -> None:
        versions = [{"groupVersion": "batch/v1"}, {"groupVersion": "jobset.x-k8s.io/v1alpha2"}]
        answers = {"/apis": {"groups": [{"versions": versions}]}, "/apis/batch/v1": {"resources": [{"name": "jobs"}]}}
        answer = answers.get(self.path.partition("?")[0])
        self.send_response(200 if answer else 404)
        self.end_headers()
        self.wfile.write(orjson.dumps(answer) if answer else b"404 page not found")

    def log_message(self, *args: object) -> None:
        """Nothing."""


def test_a_kind_that_is_being_installed_is_not_served_yet() -> None:
    with HTTPServer(("127.0.0.1", 0), _Installing) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        jobsets = Kind("jobset.x-k8s.io/v1alpha2", "JobSet", "jobsets")
        assert connect(f"http://127.0.0.1:{server.server_port}").served([JOBS, jobsets]) == {JOBS}
        server.shutdown()
