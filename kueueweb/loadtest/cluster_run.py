"""A load test through the API server of a cluster, whichever scheduler decides there."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from clusters.api_objects import JsonObject, Kind
from clusters.client import ClusterClient, TokenBucket
from clusters.client_credentials import connect_kubeconfig
from kueueweb.loadtest.api_server import server_counts
from kueueweb.loadtest.client import Client
from kueueweb.loadtest.job_report import Figures, figures
from kueueweb.loadtest.job_runner import JobRun, JobRunner
from kueueweb.loadtest.processor import Clock
from kueueweb.loadtest.runner import StalledRun
from kueueweb.loadtest.shape import Shape
from kueueweb.loadtest.shape_jobs import create_objects, delete_objects, queue_objects, require_free_names

NO_LIMIT: Final = 100_000.0
"""Requests a second: the shape sets the pace, not the client."""
CLUSTER_QUEUES: Final = Kind("kueue.x-k8s.io/v1beta2", "ClusterQueue", "clusterqueues", namespaced=False)
_ACTIVE_SECONDS: Final = 60.0
_LOOK_SECONDS: Final = 0.5


def queues_client(server: str, username: str, password: str) -> ClusterClient:
    """Return a client of Kubernetes' wire format that kueueweb's web process speaks. Raises RequestRefused, OSError."""
    token = Client(server, username, password).token
    content = {
        "clusters": [{"name": "kueueweb", "cluster": {"server": server.rstrip("/")}}],
        "users": [{"name": "user", "user": {"token": token}}],
        "contexts": [{"name": "kueueweb", "context": {"cluster": "kueueweb", "user": "user"}}],
        "current-context": "kueueweb",
    }
    return connect_kubeconfig(content)


@contextlib.contextmanager
def prepared(
    cluster: ClusterClient, queues: ClusterClient, shape: Shape, *, node_count: int, keep: bool
) -> Iterator[None]:
    """Create the shape's objects, and delete them at the end of the context.

    * queues: the client of the server that has the objects of Kueue's API; often the cluster itself.
    * keep: leave the objects and the Jobs in place.

    Raises ClusterError, and `InvalidShape` for objects that the servers refuse.
    """
    objects = queue_objects(shape, node_count)
    parts: list[tuple[ClusterClient, list[JsonObject]]] = [(cluster, objects)]
    if queues is not cluster:
        # kueueweb hears of nodes from the cluster, but a LocalQueue needs its namespace there at once.
        parts = [
            (cluster, [item for item in objects if not _is_kueues(item)]),
            (queues, [item for item in objects if _is_kueues(item) or item["kind"] == "Namespace"]),
        ]
    for client, items in parts:
        require_free_names(client, items)
    try:
        for client, items in parts:
            create_objects(client, items)
        _await_active(queues, shape)
        yield
    finally:
        if not keep:
            for client, items in parts:
                delete_objects(client, items)


def run_in_cluster(
    cluster: ClusterClient,
    shape: Shape,
    say: Callable[[str], None],
    clock: Clock,
    **options: Any,
) -> tuple[JobRun, Figures]:
    """Run the shape, whose objects exist. `options` are those of JobRunner. Raises StalledRun, ClusterError."""
    before, spent = server_counts(cluster), clock()
    run = JobRunner(cluster, shape, say, **options).run()
    after = server_counts(cluster)
    taken = _difference(clock(), spent)
    counts = after.since(before) if after is not None and before is not None else None
    return run, figures(run, counts, taken)


def unpaced() -> TokenBucket:
    """Return a pace that never makes a request wait."""
    return TokenBucket(NO_LIMIT, NO_LIMIT)


def _difference(after: Mapping[str, float], before: Mapping[str, float]) -> dict[str, float]:
    return {name: seconds - before.get(name, 0.0) for name, seconds in after.items()}


def _is_kueues(item: JsonObject) -> bool:
    return str(item["apiVersion"]).startswith("kueue.x-k8s.io/")


def _await_active(client: ClusterClient, shape: Shape) -> None:
    """Wait until a scheduler says that it takes jobs for each of the shape's ClusterQueues."""
    wanted = {name for _, name in shape.cluster_queues}
    deadline = time.monotonic() + _ACTIVE_SECONDS
    while missing := wanted - {
        item["metadata"]["name"] for item in client.list(CLUSTER_QUEUES).items if _is_active(item)
    }:
        if time.monotonic() > deadline:
            raise StalledRun(
                f"no scheduler made the ClusterQueue {min(missing)!r} active within {_ACTIVE_SECONDS:.0f} s: start "
                "kueueweb or Kueue for this cluster"
            )
        time.sleep(_LOOK_SECONDS)


def _is_active(queue: JsonObject) -> bool:
    conditions = (queue.get("status") or {}).get("conditions") or ()
    return any(item["type"] == "Active" and item["status"] == "True" for item in conditions)
