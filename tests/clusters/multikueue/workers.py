"""A manager whose workers are run by a Kueue: the test writes into their Workloads what Kueue would."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime

from accounts.models import Cluster
from clusters.api_objects import NAMESPACES, PODS, JsonObject, Kind
from clusters.client import TokenBucket
from clusters.client_credentials import connect
from clusters.jobs.registry import JOB_KINDS
from clusters.manifests import apply_manifests
from clusters.multikueue.controller import follow_multikueue
from clusters.multikueue.workers import Workers
from clusters.push.sweep import push_pending
from queues.manifests.job_workloads import workload_specs
from queues.models import Workload
from queues.services.submission import create_workloads
from scheduler.leader.engine import Engine
from simulation.api.resources import RESOURCES, crd_of
from tests.factories import START, make_cluster, make_cluster_queue
from tests.simulated_cluster import ServerThread, job, make_simulated

JOBS = JOB_KINDS["Job"].resource
CRDS = Kind("apiextensions.k8s.io/v1", "CustomResourceDefinition", "customresourcedefinitions", namespaced=False)
V1BETA2 = "kueue.x-k8s.io/v1beta2"


class KueueWorker:
    """A cluster with Workloads of Kueue, and namespace `team`."""

    def __init__(self, name: str, server: ServerThread, version: str = V1BETA2) -> None:
        self.name = name
        self.server = server
        self.client = connect(server.url, TokenBucket(10_000, 10_000))
        self.workloads = Kind(version, "Workload", "workloads")
        found = next(each for each in RESOURCES if (each.api_version, each.kind) == (version, "Workload"))
        self.client.create(CRDS, crd_of(found))
        self.client.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}})

    def copies(self) -> list[JsonObject]:
        return list(self.client.list(self.workloads).items)

    def jobs(self) -> list[str]:
        return [each["metadata"]["name"] for each in self.client.list(JOBS).items]

    def say(self, at: datetime, **conditions: str) -> None:
        """Condition = reason, of all its Workloads; an empty reason: it is False."""
        text = at.isoformat().replace("+00:00", "Z")
        for copy in self.copies():
            known = {each["type"]: each for each in (copy.get("status") or {}).get("conditions") or ()}
            for type_, reason in conditions.items():
                status = {"status": "True" if reason else "False", "reason": reason or "Pending", "message": "m"}
                known[type_] = {"type": type_, "lastTransitionTime": text, **status}
            metadata = copy["metadata"]
            self.client.patch(
                self.workloads, metadata["namespace"], metadata["name"],
                {"status": {"conditions": list(known.values())}}, subresource="status",
            )  # fmt: skip


class Manager:
    """A cluster of ours with a ClusterQueue whose workloads go to the workers."""

    def __init__(self, server: ServerThread, workers: Sequence[KueueWorker]) -> None:
        self.server = server
        self.workers = {worker.name: worker for worker in workers}
        self.cluster = make_cluster("manager", server_url=server.url)
        self.client = connect(server.url, TokenBucket(10_000, 10_000))
        self.seconds = START.timestamp()
        self.engine = Engine(self.cluster, "test", clock=self.now)
        self.known = Workers()
        quotas = {"default-flavor": {"cpu": 10_000, "nvidia.com/gpu": 10}}
        make_cluster_queue(self.cluster, quotas=quotas, admission_checks=[{"name": "workers", "onFlavors": []}])
        apply_manifests(self.cluster, self._manifests(), user=None)
        for worker in workers:
            make_cluster(worker.name, server_url=worker.server.url, accepts_workloads_from=["manager"])

    def _manifests(self) -> str:
        clusters = "".join(
            f"---\napiVersion: {V1BETA2}\nkind: MultiKueueCluster\nmetadata: {{name: {name}}}\n"
            f"spec: {{clusterSource: {{clusterProfileRef: {{name: {name}}}}}}}\n"
            for name in self.workers
        )
        return f"""
apiVersion: {V1BETA2}
kind: MultiKueueConfig
metadata: {{name: all}}
spec: {{clusters: [{", ".join(self.workers)}]}}
---
apiVersion: {V1BETA2}
kind: AdmissionCheck
metadata: {{name: workers}}
spec:
  controllerName: kueue.x-k8s.io/multikueue
  parameters: {{apiGroup: kueue.x-k8s.io, kind: MultiKueueConfig, name: all}}
{clusters}"""

    def now(self) -> float:
        return self.seconds

    @property
    def moment(self) -> datetime:
        return datetime.fromtimestamp(self.seconds, UTC)

    def configuration(self, **block: object) -> None:
        Cluster.objects.filter(pk=self.cluster.pk).update(configuration={"multiKueue": block})
        self.cluster.refresh_from_db()

    def push(self) -> None:
        push_pending(self.cluster, clock=self.now)

    def follow(self) -> None:
        follow_multikueue(self.cluster, clock=self.now, workers=self.known)

    def turn(self, turns: int = 1, seconds: float = 2.0) -> None:
        for _ in range(turns):
            self.engine.run()
            self.push()
            self.follow()
            self.seconds += seconds

    def restart(self) -> None:
        """Another process goes on: nothing but the rows is known."""
        self.known = Workers()

    def submit(self, manifest: JsonObject | None = None) -> None:
        manifest = manifest or job("train", run_seconds=600, suspend=True)
        metadata = {**manifest["metadata"], "namespace": "team"}
        metadata["labels"] = {**(metadata.get("labels") or {}), "kueue.x-k8s.io/queue-name": "queue"}
        specs = workload_specs({**manifest, "metadata": metadata})
        create_workloads(self.cluster, specs, actor="alice", now=self.moment)

    def say(self, *names: str, **conditions: str) -> None:
        for name in names:
            self.workers[name].say(self.moment, **conditions)

    def admit(self, *names: str) -> None:
        self.say(*names, QuotaReserved="QuotaReserved", Admitted="Admitted")

    @property
    def row(self) -> Workload:
        return Workload.objects.get(cluster=self.cluster)

    @property
    def check(self) -> tuple[str, str]:
        (state,) = self.row.admission_check_states
        return state["state"], state["message"]

    def with_copy(self) -> set[str]:
        return {worker.name for worker in self._answering() if worker.copies()}

    def with_job(self) -> set[str]:
        return {worker.name for worker in self._answering() if worker.jobs()}

    def _answering(self) -> list[KueueWorker]:
        return [worker for worker in self.workers.values() if not worker.server.guard.away]

    def pods(self) -> list[JsonObject]:
        return [pod for pod in self.client.list(PODS).items if pod["metadata"]["namespace"] == "team"]

    def kill(self, name: str) -> None:
        self.workers[name].server.guard.away = True

    def revive(self, name: str) -> None:
        self.workers[name].server.guard.away = False


@contextmanager
def manager_of(*names: str, **versions: str) -> Iterator[Manager]:
    """A manager with workers of these names; `versions`: of Kueue's API, by worker."""
    with ExitStack() as servers:

        def server() -> ServerThread:
            return servers.enter_context(ServerThread(make_simulated(nodes=None)))

        workers = [KueueWorker(name, server(), versions.get(name, V1BETA2)) for name in (*names, *versions)]
        yield Manager(server(), workers)
