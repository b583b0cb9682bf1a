"""Everything around one simulated cluster: rows, an engine, the push and the watcher, on the cluster's own clock."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import orjson

from accounts.models import Cluster
from clusters.api_objects import PODS, JsonObject, Kind
from clusters.client import TokenBucket
from clusters.client_credentials import connect
from clusters.connection import watching_client_for
from clusters.jobs.registry import JOB_KINDS
from clusters.manifests import apply_manifests
from clusters.push.sweep import PushReport, push_pending
from clusters.sync.watcher import Watcher
from queues.manifests.job_workloads import workload_specs
from queues.models import Workload
from queues.services.submission import create_workloads
from scheduler.leader.engine import Engine
from simulation.api.resources import BY_KIND, crd_of
from tests.factories import make_cluster, make_cluster_queue, make_resource_flavor
from tests.simulated_cluster import ServerThread, job, post

CRDS = Kind("apiextensions.k8s.io/v1", "CustomResourceDefinition", "customresourcedefinitions", namespaced=False)
QUOTAS = {
    "gpu-flavor": {
        "cpu": 100_000,
        "nvidia.com/gpu": 16,
        "nvidia.com/gpumem": 200_000,
        "nvidia.com/gpucores": 1_000,
    }
}


class System:
    """A database, an engine, a pusher and a watcher around one simulated cluster.

    Its watcher and its push have the clients of the processes; `client` is for tests, who may do everything.
    """

    def __init__(self, server: ServerThread) -> None:
        self._url = server.url
        self.guard = server.guard
        self._server = server
        self.cluster = make_cluster(server_url=server.url)
        make_resource_flavor(self.cluster, "gpu-flavor", node_labels={"gpu": "on"})
        make_cluster_queue(self.cluster, quotas=QUOTAS)
        self.client = connect(server.url, TokenBucket(10_000, 10_000))
        self.watcher = Watcher(self.cluster, watching_client_for(self.cluster), clock=self.now, steady=self.now)
        self.engine = Engine(self.cluster, "test", clock=self.now)
        self.watcher.resync()

    def now(self) -> float:
        return self._server.now()

    def moment(self) -> datetime:
        """The cluster's time."""
        return datetime.fromtimestamp(self.now(), UTC)

    def advance(self, seconds: float) -> None:
        post(f"{self._url}/_clock", {"advance": seconds})

    def chaos(self, **changes: Any) -> None:
        post(f"{self._url}/_chaos", changes)

    def install_operator(self, kind: str) -> None:
        """As its installation does: the API serves the kind from now on."""
        for resource in (JOB_KINDS[kind].resource, *JOB_KINDS[kind].refers_to):
            self.client.create(CRDS, crd_of(BY_KIND[resource.api_version, resource.kind]))

    def submit(self, manifest: JsonObject) -> None:
        create_workloads(self.cluster, workload_specs(manifest), actor="alice", now=self.moment())

    def apply(self, manifest: JsonObject) -> None:
        """As `manage.py apply` does: the object of that name becomes this one."""
        self.apply_text(orjson.dumps(manifest))

    def apply_text(self, text: str | bytes) -> None:
        """The same, of manifests in YAML."""
        apply_manifests(self.cluster, text.encode() if isinstance(text, str) else text, user=None)

    def push(self) -> PushReport:
        return push_pending(self.cluster, clock=self.now)

    def turn(self, seconds: float = 3.0) -> None:
        """Everybody does their part once, then time passes."""
        self.engine.run()
        self.push()
        self.push()
        self.advance(seconds)
        self.push()
        self.watcher.resync()
        self.engine.run()

    def watched(self) -> Cluster:
        """The cluster's row as it is now."""
        return Cluster.objects.get(pk=self.cluster.pk)

    def pods(self) -> list[JsonObject]:
        return list(self.client.list(PODS).items)

    def workload(self, name: str = "") -> Workload:
        rows = Workload.objects.filter(job__name=name) if name else Workload.objects.all()
        return rows.get()


def queued(manifest: JsonObject) -> JsonObject:
    """The same manifest in namespace `team`, labelled for its LocalQueue."""
    labels = {"kueue.x-k8s.io/queue-name": "queue", **(manifest["metadata"].get("labels") or {})}
    return {**manifest, "metadata": {**manifest["metadata"], "namespace": "team", "labels": labels}}


def gpu_job(name: str = "train", *, mib: int = 4000, cores: int = 30, **spec: Any) -> JsonObject:
    limits = {"nvidia.com/gpu": "1", "nvidia.com/gpumem": str(mib), "nvidia.com/gpucores": str(cores)}
    return queued(job(name, limits=limits, **spec))


def deployment(replicas: int) -> JsonObject:
    """A Deployment in namespace `team` each of whose pods takes almost all of a device."""
    labels = {"app": "web"}
    limits = {"nvidia.com/gpu": "1", "nvidia.com/gpumem": "30000"}
    spec = {"containers": [{"name": "main", "image": "web", "resources": {"limits": limits}}]}
    return queued(
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": "web"},
            "spec": {
                "replicas": replicas,
                "selector": {"matchLabels": labels},
                "template": {"metadata": {"labels": labels}, "spec": spec},
            },
        }
    )
