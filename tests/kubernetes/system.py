"""kueueweb's engine, push and watcher around a real API server, with no rights but those of its own service account."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import orjson
import yaml

from clusters.api_errors import ClusterError
from clusters.api_objects import NAMESPACES, NODES, PODS, JsonObject, Kind
from clusters.manifests import apply_manifests
from clusters.push.sweep import push_pending
from clusters.sync.watcher import Watcher
from queues.manifests.job_workloads import workload_specs
from queues.models import Workload
from queues.services.submission import create_workloads
from scheduler.leader.engine import Engine
from simulation.fleet import GpuNodes
from tests.acceptance.processes import wait_for
from tests.cluster_kinds import DEPLOYMENTS, JOBS
from tests.factories import make_cluster, make_cluster_queue, make_resource_flavor
from tests.kubernetes.control_plane import ControlPlane

DEPLOY: Final = Path(__file__).resolve().parents[2] / "deploy" / "kubernetes"
NODE_SHAPE: Final = GpuNodes("node", 2, "V100", "NVIDIA-V100", devices=2, memory_mib=32_768, cpu="8", memory="64Gi")
QUOTAS: Final = {
    "gpu-flavor": {
        "cpu": 100_000,
        "nvidia.com/gpu": 16,
        "nvidia.com/gpumem": 131_072,
        "nvidia.com/gpucores": 1_000,
    }
}
_PATIENCE_SECONDS: Final = 40.0
_KINDS: Final = {
    "ServiceAccount": "serviceaccounts", "ClusterRole": "clusterroles", "ClusterRoleBinding": "clusterrolebindings",
    "Namespace": "namespaces", "Deployment": "deployments", "Service": "services", "Secret": "secrets",
    "ConfigMap": "configmaps", "Role": "roles", "RoleBinding": "rolebindings",
    "NetworkPolicy": "networkpolicies",
}  # fmt: skip
_CLUSTER_WIDE: Final = ("Namespace", "ClusterRole", "ClusterRoleBinding")


def documents(file: str) -> list[JsonObject]:
    """The manifests of a file of deploy/kubernetes."""
    return [item for item in yaml.safe_load_all((DEPLOY / file).read_text()) if item]


def kind_of(manifest: JsonObject) -> Kind:
    """Where the API has objects of the manifest's kind."""
    kind = manifest["kind"]
    return Kind(manifest["apiVersion"], kind, _KINDS[kind], namespaced=kind not in _CLUSTER_WIDE)


class System:
    """Rows, an engine, a pusher and a watcher; `until` lets all of them work until something is so."""

    def __init__(self, plane: ControlPlane) -> None:
        self.admin = plane.admin
        self.cluster = make_cluster(mode="schedule", server_url=plane.url)
        make_resource_flavor(self.cluster, "gpu-flavor", node_labels={"gpu": "on"})
        make_cluster_queue(self.cluster, quotas=QUOTAS, within_cluster_queue="LowerPriority")
        for manifest in (*documents("namespace.yaml"), *documents("rbac.yaml")):
            self.admin.apply(kind_of(manifest), manifest)
        self.client = plane.client(plane.token_of("kueueweb", "kueueweb-push"))
        self.watcher = Watcher(self.cluster, plane.client(plane.token_of("kueueweb", "kueueweb-watcher")))
        self.engine = Engine(self.cluster, "test")
        self._add_nodes()

    def _add_nodes(self) -> None:
        for node in NODE_SHAPE.manifests():
            self.admin.apply(NODES, node)
            status = {"status": node["status"]}
            self.admin.patch(NODES, "", node["metadata"]["name"], status, subresource="status")
        self.admin.apply(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}})
        for binding in documents("tenant.yaml"):
            self.admin.apply(kind_of(binding), {**binding, "metadata": {**binding["metadata"], "namespace": "team"}})
        self.until("the nodes are ready", lambda: all(_is_ready(node) for node in self.admin.list(NODES).items))

    def clear(self) -> None:
        """No job and no pod is left; nobody makes them anew meanwhile."""
        for kind in (DEPLOYMENTS, JOBS, PODS):
            for item in self.admin.list(kind, "team").items:
                name = item["metadata"]["name"]
                if item["metadata"].get("finalizers"):
                    try:
                        self.admin.patch(kind, "team", name, {"metadata": {"finalizers": None}})
                    except ClusterError as error:
                        if not error.not_found:  # a controller may delete it meanwhile
                            raise
                self.admin.delete(kind, "team", name)
        wait_for("the end of all pods", lambda: not self.pods(), _PATIENCE_SECONDS)

    def submit(self, manifest: JsonObject) -> None:
        """As POST workloads/ does."""
        create_workloads(self.cluster, workload_specs(manifest), actor="alice")

    def apply(self, manifest: JsonObject) -> None:
        """As `manage.py apply` does."""
        apply_manifests(self.cluster, orjson.dumps(manifest), user=None)

    def turn(self) -> None:
        """Everybody does their part once."""
        self.watcher.resync()
        self.engine.run()
        push_pending(self.cluster, self.client, time.time)

    def until(self, what: str, condition: Callable[[], object], seconds: float = _PATIENCE_SECONDS) -> None:
        """Turns until the condition holds; fails with `what` when it does not in time."""
        deadline = time.monotonic() + seconds
        while True:
            self.turn()
            if condition():
                return
            if time.monotonic() > deadline:
                rows = [(row.name, row.status, row.message, row.push_error) for row in Workload.objects.all()]
                raise AssertionError(f"not so: {what}; workloads: {rows}; pods: {self.pods()}")
            time.sleep(0.1)

    def pods(self, job: str = "") -> list[JsonObject]:
        """The pods of the namespace `team`, or of one job there."""
        return list(self.admin.list(PODS, "team", label_selector=f"job-name={job}" if job else "").items)

    def phases(self, job: str = "") -> list[str]:
        """The phase of each pod, sorted."""
        return sorted(pod["status"]["phase"] for pod in self.pods(job))

    def job(self, name: str) -> JsonObject:
        """A Job of the namespace `team`."""
        found = self.admin.get(JOBS, "team", name)
        assert found is not None
        return found

    def workload(self, job: str) -> Workload:
        """The workload of that job."""
        return Workload.objects.get(job__name=job)

    def status(self, job: str) -> str:
        """The status of a job's workload; "" while it has none."""
        return next(iter(Workload.objects.filter(job__name=job).values_list("status", flat=True)), "")


def _is_ready(node: JsonObject) -> bool:
    conditions: list[Any] = node["status"].get("conditions", [])
    taints = [taint["key"] for taint in node["spec"].get("taints", [])]
    return not taints and any(item["type"] == "Ready" and item["status"] == "True" for item in conditions)
