"""How fast the cluster's client reads what a cluster says, beside the typed models of the `kubernetes` package.

    python tests/benchmarks/benchmark_client.py [PODS]

A simulated cluster, in a process of its own, holds PODS pods (2,000). Prints pods listed and events watched per second,
and the ratio to the package's own way of reading the same.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

from kubernetes import client as package
from kubernetes import watch as package_watch

from clusters.api_objects import PODS
from clusters.client import ClusterClient, TokenBucket
from clusters.client_credentials import connect
from tests.simulated_cluster import pod

ROOT = Path(__file__).parents[2]
ROUNDS = 3


@contextmanager
def served() -> Iterator[str]:
    """The URL of a simulated cluster."""
    command = [sys.executable, "manage.py", "simulated_cluster", "--port", "0", "--virtual-clock"]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield process.stdout.readline().split()[-1]
    finally:
        process.terminate()
        process.wait()


def best(function: Callable[[], int]) -> float:
    """Items per second in the best of some rounds."""
    rates = []
    for _ in range(ROUNDS):
        started = time.perf_counter()
        count = function()
        rates.append(count / (time.perf_counter() - started))
    return max(rates)


def fill(client: ClusterClient, count: int) -> str:
    """Creates pods that nobody binds; the version before them."""
    version = client.list(PODS).resource_version
    labels = {f"label-{number}": "value" for number in range(10)}
    for number in range(count):
        body = pod(f"pod-{number:05}", schedulerName="nobody", requests={"cpu": "1", "memory": "1Gi"})
        body["metadata"]["labels"] = labels
        client.create(PODS, body)
    return version


def watched(client: ClusterClient, version: str, count: int) -> int:
    seen = 0
    for _ in client.watch(PODS, version, timeout_seconds=60):
        seen += 1
        if seen == count:
            break
    return seen


def watched_by_package(core: Any, version: str, count: int) -> int:
    reader: Any = package_watch.Watch
    seen = 0
    for _ in reader().stream(core.list_pod_for_all_namespaces, resource_version=version, timeout_seconds=60):
        seen += 1
        if seen == count:
            break
    return seen


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 2000
    with served() as url:
        client = connect(url, TokenBucket(1e9, 1e9))
        core: Any = package.CoreV1Api(package.ApiClient(package.Configuration(host=url)))
        started = time.perf_counter()
        version = fill(client, count)
        print(f"created   {count / (time.perf_counter() - started):10,.0f} pods/s")
        rows = (
            (
                "listed",
                best(lambda: len(client.list(PODS).items)),
                best(lambda: len(core.list_pod_for_all_namespaces().items)),
            ),
            (
                "watched",
                best(lambda: watched(client, version, count)),
                best(lambda: watched_by_package(core, version, count)),
            ),
        )
    for name, ours, theirs in rows:
        print(f"{name:9} {ours:10,.0f} pods/s, {ours / theirs:5.1f} times the package's {theirs:,.0f}")


if __name__ == "__main__":
    main()
