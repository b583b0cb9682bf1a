"""A manager and its workers, each a simulated cluster with Kueue's CRDs that we serve: all talk over HTTP alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager

from accounts.services.cluster_settings import set_accepted_managers
from clusters.api_objects import PODS, JsonObject
from clusters.jobs.registry import JOB_KINDS
from clusters.multikueue.controller import follow_multikueue
from clusters.multikueue.workers import Workers
from clusters.served.kueue_kinds import KUEUE_KINDS
from queues.models import Workload
from tests.clusters.served_cluster import ServedCluster, configure, queue_spec
from tests.simulated_cluster import ServerThread, job, make_simulated

JOBS = JOB_KINDS["Job"].resource
CHECK = "workers"


class Fleet:
    """`manager`, and `workers` by name. The manager has as much quota as all of them."""

    def __init__(self, manager: ServedCluster, workers: Mapping[str, ServedCluster]) -> None:
        self.manager = manager
        self.workers = workers
        self.known = Workers()
        configure(manager)
        manager.apply("MultiKueueConfig", "all", {"spec": {"clusters": list(workers)}})
        for name, worker in workers.items():
            configure(worker)
            set_accepted_managers(worker.cluster, [manager.cluster.name])
            source = {"clusterProfileRef": {"name": worker.cluster.name}}
            manager.apply("MultiKueueCluster", name, {"spec": {"clusterSource": source}})
        parameters = {"apiGroup": "kueue.x-k8s.io", "kind": "MultiKueueConfig", "name": "all"}
        spec = {"controllerName": "kueue.x-k8s.io/multikueue", "parameters": parameters}
        manager.apply("AdmissionCheck", CHECK, {"spec": spec})
        checks = {"admissionChecks": [{"name": CHECK}]}
        manager.apply("ClusterQueue", "main", queue_spec("40", admissionChecksStrategy=checks))
        self.turn(2)

    def follow(self) -> None:
        follow_multikueue(self.manager.cluster, self.manager.client, self.manager.now, self.known)

    def turn(self, turns: int = 1) -> None:
        """Everybody does their part."""
        for _ in range(turns):
            self.manager.turn()
            self.follow()
            for worker in self.workers.values():
                worker.turn()
            self.follow()

    def advance(self, seconds: float) -> None:
        for cluster in (self.manager, *self.workers.values()):
            cluster.advance(seconds)

    def close(self, *names: str) -> None:
        """Their queues admit nothing."""
        for name in names:
            self.workers[name].apply("ClusterQueue", "main", queue_spec("0"))
            self.workers[name].turn()

    def submit(self, name: str = "train", cpu: str = "1") -> JsonObject:
        """A job for the manager's queue, as its webhook leaves it."""
        manager = "kueue.x-k8s.io/multikueue"
        manifest = job(name, run_seconds=600, suspend=True, requests={"cpu": cpu}, managedBy=manager)
        manifest["metadata"] = {"name": name, "namespace": "team", "labels": {"kueue.x-k8s.io/queue-name": "local"}}
        return self.manager.send("POST", "/apis/batch/v1/namespaces/team/jobs", manifest)

    @property
    def row(self) -> Workload:
        """The only workload of the manager."""
        return Workload.objects.get(cluster=self.manager.cluster)

    @property
    def check(self) -> tuple[str, str]:
        (state,) = self.row.admission_check_states
        return state["state"], state["message"]

    def copies(self) -> dict[str, list[str]]:
        """The names of the Workload objects of each worker."""
        return {
            name: [each["metadata"]["name"] for each in worker.client.list(KUEUE_KINDS["Workload"][0]).items]
            for name, worker in self.workers.items()
        }

    def with_copy(self) -> set[str]:
        return {name for name, found in self.copies().items() if found}

    def jobs(self) -> dict[str, list[str]]:
        return {
            name: [each["metadata"]["name"] for each in worker.client.list(JOBS).items]
            for name, worker in self.workers.items()
        }

    def pods(self, cluster: ServedCluster) -> list[JsonObject]:
        return [pod for pod in cluster.client.list(PODS).items if pod["metadata"]["namespace"] == "team"]


@contextmanager
def fleet_of(*names: str) -> Iterator[Fleet]:
    """A manager with workers of these names."""
    with ExitStack() as servers:
        manager, *workers = (
            ServedCluster(servers.enter_context(ServerThread(make_simulated())), name=name)
            for name in ("manager", *names)
        )
        yield Fleet(manager, dict(zip(names, workers, strict=True)))
