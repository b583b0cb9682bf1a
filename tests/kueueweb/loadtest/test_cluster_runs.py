"""A load test through an API server: its Jobs, its figures, and all that it leaves behind or refuses."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from clusters.api_errors import ClusterError
from clusters.api_objects import CUSTOM_RESOURCES, NAMESPACES, NODES
from clusters.client import ClusterClient, TokenBucket
from clusters.client_credentials import connect
from kueueweb.loadtest import cluster_run
from kueueweb.loadtest.api_server import ServerCounts, server_counts
from kueueweb.loadtest.job_report import figures, job_lines
from kueueweb.loadtest.job_runner import JobLife, JobRun
from kueueweb.loadtest.shape import FLAVOR, NAMESPACE, Arrival, arrivals, read_shape
from kueueweb.loadtest.shape_jobs import JOBS, MARK, job_of
from queues.manifests.job_workloads import workload_specs
from simulation.api.resources import KUEUE_GROUP, RESOURCES, crd_of
from tests.simulated_cluster import ServerThread, make_simulated, post

SHAPES = Path(__file__).resolve().parents[2] / "load"


def shape_file(folder: Path, **changes: Any) -> Path:
    content = json.loads((SHAPES / "baseline.json").read_text()) | {"cohorts": 1, "clusterQueuesPerCohort": 2}
    content["sets"] = [{**entry, "count": 2, "intervalMs": 10} for entry in content["sets"]]
    path = folder / "shape.json"
    path.write_text(json.dumps(content | changes))
    return path


class PlainScheduler:
    """Makes every ClusterQueue active and starts every Job; the cluster's time passes meanwhile."""

    def __init__(self, url: str, client: ClusterClient) -> None:
        self._url = url
        self._client = client
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._decide)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        self._thread.join()

    def _decide(self) -> None:
        active = {"status": {"conditions": [{"type": "Active", "status": "True"}]}}
        while not self._stopped.wait(0.05):
            for queue in self._client.list(cluster_run.CLUSTER_QUEUES).items:
                if not queue.get("status"):
                    name = queue["metadata"]["name"]
                    self._client.patch(cluster_run.CLUSTER_QUEUES, "", name, active, subresource="status")
            for job in self._client.list(JOBS, NAMESPACE).items:
                if job["spec"].get("suspend"):
                    self._client.patch(JOBS, NAMESPACE, job["metadata"]["name"], {"spec": {"suspend": False}})
            post(f"{self._url}/_clock", {"advance": 1.0})


@pytest.fixture
def server() -> Iterator[ServerThread]:
    with ServerThread(make_simulated(nodes=None)) as running:
        yield running


@pytest.fixture
def client(server: ServerThread) -> ClusterClient:
    found = connect(server.url, TokenBucket(10_000, 10_000))
    for resource in RESOURCES:
        if resource.group == KUEUE_GROUP and resource.version == "v1beta2":
            found.create(CUSTOM_RESOURCES, crd_of(resource))
    return found


def test_each_job_starts_and_ends_and_nothing_is_left(
    server: ServerThread, client: ClusterClient, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with PlainScheduler(server.url, client):
        call_command("loadtest", str(shape_file(tmp_path)), "--cluster", server.url, "--nodes", "2", "--json")
    said = capsys.readouterr().out
    assert "12 Jobs, 0 failed, 0 times one was stopped after its start" in said
    found = json.loads(said.splitlines()[-1])
    assert found["jobs"] == 12
    assert found["medianSecondsToStart"] > 0
    assert found["requestsPerJob"] is None  # a simulated API server has no metrics
    assert "requests to the API server: not known" in said
    assert client.list(cluster_run.CLUSTER_QUEUES).items == ()
    assert client.list(NODES).items == ()


def test_a_run_may_end_with_the_last_start_and_keep_its_objects(
    server: ServerThread, client: ClusterClient, tmp_path: Path
) -> None:
    with PlainScheduler(server.url, client):
        call_command("loadtest", str(shape_file(tmp_path)), "--cluster", server.url, "--until", "started", "--keep")
    jobs = client.list(JOBS, NAMESPACE).items
    assert len(jobs) == 12
    assert all(not job["spec"]["suspend"] for job in jobs)
    assert {queue["metadata"]["labels"][MARK] for queue in client.list(cluster_run.CLUSTER_QUEUES).items} == {"true"}


def test_a_namespace_of_others_is_not_touched(server: ServerThread, client: ClusterClient, tmp_path: Path) -> None:
    client.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
    with pytest.raises(CommandError, match=f"Invalid value: '{NAMESPACE}': the cluster has a namespace of that name"):
        call_command("loadtest", str(shape_file(tmp_path)), "--cluster", server.url)
    assert client.get(NAMESPACES, "", NAMESPACE) is not None


@pytest.mark.parametrize("kind", ["ResourceFlavor", "Node"])
def test_an_object_of_others_is_neither_overwritten_nor_deleted(
    server: ServerThread, client: ClusterClient, tmp_path: Path, kind: str
) -> None:
    version, name = ("v1", "load-node-0") if kind == "Node" else ("kueue.x-k8s.io/v1beta2", FLAVOR)
    served = client.kind_named(version, kind)
    assert served is not None
    spec = {"spec": {"nodeLabels": {"gpu": "a100"}}} if kind == "ResourceFlavor" else {}
    before = client.create(served, {"apiVersion": version, "kind": kind, "metadata": {"name": name}, **spec})
    with pytest.raises(CommandError, match=f"Invalid value: '{name}': the cluster has a {kind} of that name"):
        call_command("loadtest", str(shape_file(tmp_path)), "--cluster", server.url, "--nodes", "1")
    after = client.get(served, "", name)
    assert after is not None
    assert (after["metadata"]["uid"], after["metadata"].get("labels")) == (before["metadata"]["uid"], None)
    assert client.get(NAMESPACES, "", NAMESPACE) is None


def test_a_cluster_without_a_scheduler_is_said_and_cleaned(
    server: ServerThread, client: ClusterClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster_run, "_ACTIVE_SECONDS", 0.1)
    with pytest.raises(CommandError, match="start kueueweb or Kueue for this cluster"):
        call_command("loadtest", str(shape_file(tmp_path)), "--cluster", server.url)
    assert client.list(cluster_run.CLUSTER_QUEUES).items == ()


def test_a_cluster_without_kueues_objects_needs_a_server_for_the_queues(server: ServerThread, tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="name its server with --server"):
        call_command("loadtest", str(shape_file(tmp_path)), "--cluster", server.url)


def test_a_shape_with_a_topology_needs_its_nodes(server: ServerThread) -> None:
    with pytest.raises(CommandError, match="create them with --nodes 1"):
        call_command("loadtest", str(SHAPES / "tas.json"), "--cluster", server.url)


@pytest.mark.parametrize("text", ["kueue", "=12", "kueue=twelve"])
def test_a_process_is_a_name_and_a_pid(server: ServerThread, tmp_path: Path, text: str) -> None:
    with pytest.raises(CommandError, match="must be NAME=PID"):
        call_command("loadtest", str(shape_file(tmp_path)), "--cluster", server.url, "--process", text)


@pytest.mark.parametrize("path", sorted(SHAPES.glob("*.json")), ids=lambda path: path.stem)
def test_kueueweb_takes_the_jobs_of_every_shape(path: Path) -> None:
    shape = read_shape(path)
    for arrival in {arrival.set_index: arrival for arrival in arrivals(shape)}.values():
        (spec,) = workload_specs(job_of(shape, arrival, "app"))
        entry = shape.sets[arrival.set_index]
        (pod_set,) = spec.pod_sets
        assert (spec.queue_name, pod_set.count) == (arrival.cluster_queue, entry.pods)
        asked = {"required", "preferred", "unconstrained"} & (pod_set.topology_request or {}).keys()
        assert bool(asked) == bool(entry.topology)


def test_staggered_queues_take_turns(tmp_path: Path) -> None:
    entry = {"class": "small", "count": 2, "intervalMs": 1000, "runtimeMs": 1, "priority": 0, "request": 1}
    shape = read_shape(shape_file(tmp_path, sets=[entry], staggered=True))
    assert [arrival.at_seconds for arrival in arrivals(shape)] == [0.0, 0.5, 1.0, 1.5]


METRICS = """# TYPE apiserver_request_total counter
apiserver_request_total{{verb="POST",resource="jobs",subresource="",code="201"}} {jobs}
apiserver_request_total{{verb="PATCH",resource="jobs",subresource="status",code="200"}} {patches}
apiserver_request_total{{verb="PATCH",resource="jobs",subresource="status",code="409"}} 1
apiserver_request_total{{verb="WATCH",resource="jobs",subresource="",code="200"}} {jobs}
# TYPE process_cpu_seconds_total counter
process_cpu_seconds_total {seconds}
"""


def counts_of(jobs: int, patches: int, seconds: float) -> ServerCounts:
    text = METRICS.format(jobs=jobs, patches=patches, seconds=seconds)
    client: Any = SimpleNamespace(metrics=lambda: text)
    found = server_counts(client)
    assert found is not None
    return found


def test_the_load_tests_own_requests_are_not_counted() -> None:
    counts = counts_of(jobs=12, patches=7, seconds=4.5).since(counts_of(jobs=2, patches=2, seconds=3.0))
    assert counts == ServerCounts({("POST", "jobs"): 10, ("PATCH", "jobs/status"): 5, ("WATCH", "jobs"): 10}, 1.5)
    found = figures(run_of_ten(), counts, {"kueue": 0.2})
    assert found.requests_per_job == {("PATCH", "jobs/status"): 0.5}
    assert found.processor == pytest.approx({"kueue": 20.0, "API server": 150.0})


def test_figures_count_the_last_start() -> None:
    run = run_of_ten()
    found = figures(run, None, {})
    assert (found.jobs, found.failed, found.stops) == (10, 1, 2)
    assert found.starts_per_second == pytest.approx(10 / 11.0)
    assert found.wait(0.5) == pytest.approx(2.0)
    shape = read_shape(SHAPES / "baseline.json")
    said = "\n".join(job_lines(shape, run, found))
    assert "10 Jobs, 1 failed, 2 times one was stopped after its start" in said
    assert "name processes of this machine with --process NAME=PID" in said


def test_an_account_that_may_not_read_metrics_gets_no_counts() -> None:
    def refuse() -> str:
        raise ClusterError(403, "Forbidden", "no")

    client: Any = SimpleNamespace(metrics=refuse)
    assert server_counts(client) is None


def run_of_ten() -> JobRun:
    lives = {}
    for number in range(10):
        arrival = Arrival(float(number), "queue", 0, number)
        lives[arrival.name] = JobLife(arrival, 100.0 + number, 102.0 + number, 105.0 + number, failed=number == 3)
    lives["queue-0-0"].stops = 2
    return JobRun(began_at=100.0, ended_at=115.0, lives=lives)
