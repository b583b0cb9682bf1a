"""What the simulated containers print, and the log endpoint's own ways."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from clusters.api_errors import ClusterError
from clusters.api_objects import PODS
from clusters.client import ClusterClient, TokenBucket
from clusters.client_credentials import connect
from tests.cluster_kinds import JOBS
from tests.simulated_cluster import ServerThread, job, make_simulated, pod, post


@pytest.fixture
def server() -> Iterator[ServerThread]:
    with ServerThread(make_simulated()) as running:
        yield running


@pytest.fixture
def client(server: ServerThread) -> ClusterClient:
    return connect(server.url, TokenBucket(1_000, 1_000))


def advance(server: ServerThread, seconds: float) -> None:
    post(f"{server.url}/_clock", {"advance": seconds})


def started(server: ServerThread, client: ClusterClient, **spec: Any) -> str:
    """The name of the pod of a Job that has just started."""
    manifest = job("train", run_seconds=100, backoffLimit=0, **spec)
    manifest["spec"]["template"]["spec"]["containers"][0]["command"] = ["python", "train.py"]
    client.create(JOBS, manifest)
    advance(server, 3)
    [found] = client.list(PODS).items
    return str(found["metadata"]["name"])


def log(client: ClusterClient, name: str, **asked: Any) -> list[str]:
    return b"".join(client.pod_log("default", name, **asked)).decode().splitlines()


def test_a_container_prints_its_start_its_progress_and_its_end(server: ServerThread, client: ClusterClient) -> None:
    name = started(server, client)
    assert log(client, name)[0].startswith("starting python train.py on node-0")
    advance(server, 50)
    lines = log(client, name)
    assert 20 <= len(lines) <= 27
    assert lines[-1].startswith(f"step {len(lines) - 1}/50 loss ")
    assert log(client, name, tail=2) == lines[-2:]
    assert log(client, name, tail=0) == []
    advance(server, 60)
    whole = log(client, name)
    assert whole[: len(lines)] == lines
    assert whole[-1] == "finished, exit code 0"
    assert log(client, name, limit_bytes=8) == ["starting"]


def test_one_that_fails_says_so(server: ServerThread, client: ClusterClient) -> None:
    name = started(server, client, annotations={"kueueweb.io/fail": "true"})
    advance(server, 110)
    assert log(client, name)[-1] == "failed: Error, exit code 1"


def test_lines_have_times_and_can_be_asked_for_from_one_on(server: ServerThread, client: ClusterClient) -> None:
    name = started(server, client)
    advance(server, 30)
    lines = log(client, name, timestamps=True)
    since = lines[5].partition(" ")[0]
    assert log(client, name, timestamps=True, since=since) == lines[5:]


def test_a_followed_log_streams_lines_and_ends(server: ServerThread, client: ClusterClient) -> None:
    name = started(server, client)
    pieces = client.pod_log("default", name, follow=True)
    heard = next(pieces)
    assert heard.startswith(b"starting ")
    advance(server, 150)
    heard += b"".join(pieces)
    assert heard.decode().splitlines() == log(client, name)


def test_following_a_log_can_be_stopped(server: ServerThread, client: ClusterClient) -> None:
    name = started(server, client)
    stop: list[Any] = []
    pieces = client.pod_log("default", name, follow=True, opened=stop.append)
    assert next(pieces)
    timer = threading.Timer(0.2, stop[0])
    timer.start()
    assert list(pieces) == []


def test_what_has_no_log_is_refused_in_kubernetes_words(server: ServerThread, client: ClusterClient) -> None:
    two = pod("two", schedulerName="nobody")
    two["spec"]["containers"].append({"name": "side", "image": "app"})
    client.create(PODS, two)
    for asked, status, words in (
        ({}, 400, "a container name must be specified for pod two, choose one of: [main side]"),
        ({"container": "none"}, 400, "container none is not valid for pod two"),
        ({"container": "side"}, 400, 'container "side" in pod "two" is waiting to start: ContainerCreating'),
    ):
        with pytest.raises(ClusterError) as refusal:
            log(client, "two", **asked)
        assert (refusal.value.status, refusal.value.message) == (status, words)
    with pytest.raises(ClusterError) as gone:
        log(client, "none")
    assert gone.value.not_found
