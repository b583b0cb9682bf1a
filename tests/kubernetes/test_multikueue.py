"""MultiKueue between real API servers: a manager and two workers, one of which is killed.

The manager reaches them as with Kueue, by kubeconfigs in Secrets, with the rights of deploy/kubernetes/multikueue.yaml
on both sides. The test is the Kueue of each worker.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import UTC, datetime
from typing import Final

import pytest
import yaml

from clusters.api_objects import NAMESPACES, PODS, SECRETS, JsonObject, Kind
from clusters.manifests import apply_manifests
from clusters.multikueue.controller import follow_multikueue
from clusters.multikueue.workers import Workers
from queues.models import ClusterQueue, MultiKueueCluster, Workload, WorkloadEvent
from tests.cluster_kinds import JOBS
from tests.clusters.multikueue.workers import V1BETA2, KueueWorker
from tests.clusters.system import queued
from tests.kubernetes.control_plane import ControlPlane, JobServer
from tests.kubernetes.operators import install_kueue
from tests.kubernetes.system import System, documents, kind_of
from tests.simulated_cluster import job

WORKERS: Final = ("east", "west")
ACCOUNTS: Final = Kind("v1", "ServiceAccount", "serviceaccounts")
_WORKER_ROLE: Final = "kueueweb-multikueue-worker"
_MINUTE: Final = 60.0


class RealWorker(KueueWorker):
    """A cluster with Kueue's own definitions; what its Kueue would do, the test does."""

    def __init__(self, name: str, server: JobServer) -> None:
        self.name = name
        self.api = server
        self.client = server.admin
        self.workloads = Kind(V1BETA2, "Workload", "workloads")
        install_kueue(self.client)
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}}
        self.client.create(NAMESPACES, namespace)

    def kubeconfig(self) -> str:
        """Of an account that may do what a manager does in a worker, and no more."""
        account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "manager", "namespace": "team"}}
        self.client.create(ACCOUNTS, account)
        role = next(each for each in documents("multikueue.yaml") if each["metadata"]["name"] == _WORKER_ROLE)
        binding = {
            "apiVersion": role["apiVersion"],
            "kind": "ClusterRoleBinding",
            "metadata": {"name": "manager"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": _WORKER_ROLE},
            "subjects": [{"kind": "ServiceAccount", "name": "manager", "namespace": "team"}],
        }
        for manifest in (role, binding):
            self.client.apply(kind_of(manifest), manifest)
        return yaml.safe_dump(self.api.kubeconfig(self.api.token_of("team", "manager")))

    def admit(self) -> None:
        self.say(datetime.now(UTC), QuotaReserved="QuotaReserved", Admitted="Admitted")

    def job(self) -> JsonObject:
        found = self.client.get(JOBS, "team", "train")
        assert found is not None
        return found

    def start_job(self) -> None:
        """Its Kueue starts what it has admitted."""
        self.client.patch(JOBS, "team", "train", {"spec": {"suspend": False}})

    def end_pods(self) -> None:
        """As their kubelet would."""
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        for pod in self.client.list(PODS, "team").items:
            metadata = pod["metadata"]
            done = {"terminated": {"exitCode": 0, "reason": "Completed", "startedAt": now, "finishedAt": now}}
            state = {"name": pod["spec"]["containers"][0]["name"], "image": "i", "imageID": "i", "ready": False,
                     "restartCount": 0, "state": done}  # fmt: skip
            status = {"status": {"phase": "Succeeded", "containerStatuses": [state]}}
            self.client.patch(PODS, metadata["namespace"], metadata["name"], status, subresource="status")


class Fleet:
    """The manager, whose clock may be set forward, and its workers."""

    def __init__(self, system: System, workers: dict[str, RealWorker]) -> None:
        self.system = system
        self.workers = workers
        self._known = Workers()
        self._ahead = 0.0
        for manifest in documents("multikueue.yaml"):
            if manifest["metadata"]["name"] != _WORKER_ROLE:
                self._manage(manifest)
        for name, worker in workers.items():
            secret = {"metadata": {"name": name, "namespace": "kueue-system"}}
            content = {"stringData": {"kubeconfig": worker.kubeconfig()}}
            system.admin.apply(SECRETS, {"apiVersion": "v1", "kind": "Secret", **secret, **content})
        apply_manifests(system.cluster, yaml.safe_dump_all(_configuration()), user=None)
        ClusterQueue.objects.update(admission_checks=[{"name": "workers", "onFlavors": []}])
        self.until("both workers are connected", lambda: all(row.is_active for row in MultiKueueCluster.objects.all()))

    def _manage(self, manifest: JsonObject) -> None:
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kueue-system"}}
        self.system.admin.apply(NAMESPACES, namespace)
        self.system.admin.apply(kind_of(manifest), manifest)

    def now(self) -> float:
        return time.time() + self._ahead

    def wait(self, minutes: float) -> None:
        """So much time passes for MultiKueue."""
        self._ahead += minutes * _MINUTE

    def until(self, what: str, condition: Callable[[], object]) -> None:
        def turned() -> object:
            follow_multikueue(self.system.cluster, self.system.client, self.now, self._known)
            return condition()

        self.system.until(what, turned, seconds=90)

    @property
    def row(self) -> Workload:
        return Workload.objects.get()

    @property
    def check(self) -> tuple[str, str]:
        (state,) = self.row.admission_check_states
        return state["state"], state["message"]

    def with_copy(self) -> set[str]:
        return {name for name, worker in self.workers.items() if worker.copies()}


def _configuration() -> list[JsonObject]:
    parameters = {"apiGroup": "kueue.x-k8s.io", "kind": "MultiKueueConfig", "name": "all"}
    check = {"controllerName": "kueue.x-k8s.io/multikueue", "parameters": parameters}
    sources = {name: {"kubeConfig": {"locationType": "Secret", "location": name}} for name in WORKERS}
    return [
        _object("MultiKueueConfig", "all", {"clusters": list(WORKERS)}),
        *(_object("MultiKueueCluster", name, {"clusterSource": source}) for name, source in sources.items()),
        _object("AdmissionCheck", "workers", check),
    ]


def _object(kind: str, name: str, spec: JsonObject) -> JsonObject:
    return {"apiVersion": V1BETA2, "kind": kind, "metadata": {"name": name}, "spec": spec}


@pytest.fixture
def fleet(plane: ControlPlane, system: System, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    """`plane` is the manager."""
    with ExitStack() as servers:
        workers = {
            name: RealWorker(name, servers.enter_context(JobServer(tmp_path_factory.mktemp(name)))) for name in WORKERS
        }
        yield Fleet(system, workers)


def test_a_worker_that_is_killed_hands_over_and_is_cleaned_when_it_is_back(fleet: Fleet) -> None:
    east, west = fleet.workers["east"], fleet.workers["west"]
    fleet.system.submit(queued(job("train", run_seconds=600, requests={"cpu": "1"})))
    fleet.until("it is sent to both", lambda: fleet.with_copy() == set(WORKERS))
    west.admit()
    fleet.until("its job is in the first that admits", lambda: west.jobs() == ["train"])
    fleet.until("the other is told", lambda: fleet.with_copy() == {"west"})
    assert fleet.check == ("Ready", 'The workload was admitted on "west"')
    assert "managedBy" not in west.job()["spec"]
    west.start_job()
    fleet.until("its job's status is here", lambda: fleet.system.job("train").get("status", {}).get("active") == 1)
    here = fleet.system.job("train")
    assert (here["spec"]["suspend"], here["spec"]["managedBy"]) == (False, "kueue.x-k8s.io/multikueue")
    assert not fleet.system.pods(), "no pods start on the manager"
    assert len(west.client.list(PODS, "team").items) == 1

    west.api.kill_api_server()
    fleet.until("its worker is not heard", lambda: not MultiKueueCluster.objects.get(name="west").is_active)
    fleet.wait(14)
    fleet.until("a pass", lambda: True)
    assert fleet.row.status == "Admitted", "it is left running for as long as it may be lost"
    fleet.wait(2)
    fleet.until("it goes elsewhere", lambda: len(east.copies()) == 1)
    assert WorkloadEvent.objects.filter(message="Reserving remote lost").exists()
    east.admit()
    fleet.until("the other runs it", lambda: east.jobs() == ["train"])

    west.api.start_api_server()
    assert (west.jobs(), len(west.copies())) == (["train"], 1), "what is left there"
    fleet.wait(6)
    fleet.until("it is cleaned", lambda: not west.copies() and not west.jobs())
    fleet.until("its pods are gone", lambda: not west.client.list(PODS, "team").items)
    assert (fleet.row.status, fleet.with_copy()) == ("Admitted", {"east"})

    east.start_job()
    fleet.until("its pod is there", lambda: len(east.client.list(PODS, "team").items) == 1)
    east.end_pods()
    fleet.until("it is over there", lambda: east.job()["status"].get("succeeded") == 1)
    east.say(datetime.now(UTC), Finished="Succeeded")
    fleet.until("it is over here", lambda: fleet.row.status == "Finished")
    fleet.until("its job says so", lambda: fleet.system.job("train")["status"].get("succeeded") == 1)
    conditions = {each["type"]: each["status"] for each in fleet.system.job("train")["status"]["conditions"]}
    assert conditions["Complete"] == "True"
    fleet.until("the worker is cleaned", lambda: not east.copies() and not east.jobs())
    assert Workload.objects.count() == 1
