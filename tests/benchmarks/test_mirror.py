"""10,000 workloads that a Kueue runs, mirrored, and 10,000 that are ours to serve.

`pytest tests/benchmarks/test_mirror.py -s`. The cluster is a process of its own. Beside each size stands a tenth of it:
what grows with the cluster should grow as it does, and what one change costs should not. MIRRORED=2000 takes fewer.
"""

from __future__ import annotations

import gc
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import psutil
import pytest
from rest_framework.test import APIClient

from clusters.api_objects import JsonObject, Kind
from clusters.client import ClusterClient, TokenBucket, WatchEvent
from clusters.client_credentials import connect
from queues.models import Workload
from tests.clusters.kueue_cluster import PENDING, V1BETA2, KueueCluster, admitted
from tests.clusters.kueue_cluster import configure as configure_kueue
from tests.clusters.served_cluster import ServedCluster
from tests.clusters.served_cluster import configure as configure_served
from tests.users import client_of, make_user

SIZE = int(os.environ.get("MIRRORED", "10000"))
CHANGES = 100
WORKLOADS = Kind(V1BETA2, "Workload", "workloads")
START_SECONDS = 60
LIMIT_GROWTH_OF_A_CHANGE = 4.0
"""How much more a change may cost among ten times as many workloads."""

pytestmark = pytest.mark.django_db(transaction=True)


@dataclass(frozen=True, slots=True)
class Figures:
    """What one size costs."""

    size: int
    memory_mib: float
    list_seconds: float
    page_seconds: float
    cpu_per_change_ms: float

    def told(self, name: str) -> str:
        page = 1000 * self.page_seconds
        return (
            f"{name:<10}{self.size:>8}{self.memory_mib:>12.1f}{self.list_seconds:>12.1f}{page:>12.0f}"
            f"{self.cpu_per_change_ms:>15.1f}"
        )


HEAD = f"{'':<10}{'':>8}{'memory MiB':>12}{'listed s':>12}{'page ms':>12}{'change CPU ms':>15}"


@pytest.fixture
def url() -> Iterator[str]:
    """A simulated API server in a process of its own, whose memory and CPU are not ours."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "manage.py", "simulated_cluster", "--port", str(port), "--virtual-clock", "--seed", "1"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    try:
        until = time.monotonic() + START_SECONDS
        while time.monotonic() < until:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            assert process.poll() is None, "the simulated cluster has ended"
            time.sleep(0.2)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(timeout=30)


def server(url: str) -> Any:
    return SimpleNamespace(url=url, guard=SimpleNamespace(closed=False))


def make(url: str, first: int, last: int, status: JsonObject | None) -> None:
    """Workload objects as Kueue has them, or as users apply them."""
    client = connect(url, TokenBucket(100_000, 100_000))

    def one(number: int) -> None:
        name = f"w-{number:05}"
        client.create(WORKLOADS, manifest(name))
        if status is not None:
            client.patch(WORKLOADS, "team", name, {"status": status}, subresource="status")

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(one, range(first, last)))


def manifest(name: str) -> JsonObject:
    template = {"spec": {"containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}]}}
    spec = {"queueName": "local", "active": True, "podSets": [{"name": "main", "count": 1, "template": template}]}
    return {"apiVersion": V1BETA2, "kind": "Workload", "metadata": {"name": name, "namespace": "team"}, "spec": spec}


def measure(system: KueueCluster | ServedCluster, client: ClusterClient, size: int, page: APIClient) -> Figures:
    gc.collect()
    process = psutil.Process()
    before, began = process.memory_info().rss, time.perf_counter()
    system.watcher.resync()
    listed = time.perf_counter() - began
    began = time.perf_counter()
    answer = page.get("/api/v1/workloads/?limit=100")
    shown = time.perf_counter() - began
    assert len(answer.json()["results"]) == 100
    gc.collect()
    grown = (process.memory_info().rss - before) / 2**20
    changed = [client.get(WORKLOADS, "team", f"w-{number:05}") for number in range(CHANGES)]
    began = time.process_time()
    for found in changed:
        assert found is not None
        labels = {"turn": f"{size}-{began}"}
        found["metadata"] |= {"labels": labels, "resourceVersion": str(int(found["metadata"]["resourceVersion"]) + 1)}
        found["spec"]["priority"] = size
        system.watcher.apply([(WORKLOADS, WatchEvent("MODIFIED", found))])
    spent = time.process_time() - began
    return Figures(size, grown, listed, shown, 1000 * spent / CHANGES)


def report(name: str, small: Figures, large: Figures) -> None:
    print(f"\n{HEAD}\n{small.told(name)}\n{large.told(name)}")
    growth = large.size / small.size
    per_change = large.cpu_per_change_ms / small.cpu_per_change_ms
    print(
        f"with {growth:.0f} times as many: listed in {large.list_seconds / small.list_seconds:.1f} times, page "
        f"{large.page_seconds / small.page_seconds:.1f} times, a change {per_change:.1f} times"
    )
    assert per_change <= LIMIT_GROWTH_OF_A_CHANGE


def test_mirrored(url: str) -> None:
    kueue = KueueCluster(server(url))
    configure_kueue(kueue)
    page = client_of(make_user("alice"))
    client = connect(url, TokenBucket(100_000, 100_000))
    make(url, 0, SIZE // 20, admitted(kueue, with_topology=False))
    make(url, SIZE // 20, SIZE // 10, PENDING)
    small = measure(kueue, client, SIZE // 10, page)
    make(url, SIZE // 10, SIZE // 2, admitted(kueue, with_topology=False))
    make(url, SIZE // 2, SIZE, PENDING)
    large = measure(kueue, client, SIZE, page)
    assert Workload.objects.count() == SIZE
    report("mirrored", small, large)


def test_served(url: str) -> None:
    served = ServedCluster(server(url))
    configure_served(served)
    served.settle()
    page = client_of(make_user("alice"))
    client = connect(url, TokenBucket(100_000, 100_000))
    make(url, 0, SIZE // 10, None)
    small = measure(served, client, SIZE // 10, page)
    make(url, SIZE // 10, SIZE, None)
    large = measure(served, client, SIZE, page)
    assert Workload.objects.count() == SIZE
    report("served", small, large)
    served.engine.run()
    began, spent = time.perf_counter(), time.process_time()
    served.push()
    seconds, cpu = time.perf_counter() - began, time.process_time() - spent
    print(f"a sweep that tells statuses: {seconds:.1f} s, {1000 * cpu / SIZE:.2f} ms of CPU for each of {SIZE}")
