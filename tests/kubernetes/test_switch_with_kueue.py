"""docs/switching.md with the real Kueue: there and back, with jobs that run all the while, and a Kueue by mistake."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import pytest
import yaml
from django.core.management import call_command
from django.core.management.base import CommandError
from kubernetes.config import kube_config

from clusters.api_objects import LEASES, NAMESPACES, NODES, PODS, JsonObject, Kind
from clusters.jobs.registry import JOB_KINDS
from clusters.leases import KUEUES_LEASE, KUEUES_NAMESPACE, holder_of
from clusters.push.installation import identity
from clusters.push.sweep import push_pending
from clusters.sync.watcher import Watcher
from queues.models import Workload
from scheduler.leader.engine import Engine
from tests.cluster_kinds import JOBS
from tests.clusters.every_kind import POD_GROUP, jobs_of, pods_of
from tests.clusters.system import queued
from tests.factories import make_cluster
from tests.kubernetes.control_plane import ControlPlane
from tests.kubernetes.operators import Operators, install_definitions
from tests.kubernetes.our_webhook import our_webhook
from tests.kubernetes.real_kueue import RealKueue, missing
from tests.kubernetes.system import documents
from tests.simulated_cluster import job, pod

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.skipif(bool(missing()), reason=missing())]

WORKLOADS: Final = Kind("kueue.x-k8s.io/v1beta2", "Workload", "workloads")
QUEUES: Final = """
apiVersion: kueue.x-k8s.io/v1beta2
kind: ResourceFlavor
metadata: {name: plain}
spec: {nodeLabels: {pool: plain}}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: main}
spec:
  namespaceSelector: {}
  resourceGroups:
  - coveredResources: [cpu]
    flavors: [{name: plain, resources: [{name: cpu, nominalQuota: 10}]}]
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: LocalQueue
metadata: {name: queue, namespace: team}
spec: {clusterQueue: main}
"""
SUSPENDED: Final = ("Job", "JobSet", "PyTorchJob", "RayCluster")
"""Kinds that can be created suspended."""
KINDS: Final = (*SUSPENDED, "Pod", POD_GROUP, "Deployment")
THEIRS: Final = tuple(f"theirs-{number}" for number in range(12))
OURS: Final = tuple(f"ours-{number}" for number in range(8))
PATIENCE_SECONDS: Final = 300.0
_LONG: Final = 36_000


def kind_of(name: str) -> str:
    """The kinds take turns."""
    return KINDS[int(name.rpartition("-")[2]) % len(KINDS)]


def pods_in(*names: str) -> int:
    return sum(pods_of(kind_of(name)) for name in names)


def manifests_of(name: str) -> list[JsonObject]:
    """The job of that name, as its user writes it."""
    kind = kind_of(name)
    if kind not in ("Pod", POD_GROUP):
        return [queued(manifest) for manifest in jobs_of(kind, name, run_seconds=_LONG, cpu="250m")]
    if kind == "Pod":
        return [_pod(name, {}, {})]
    group = {"kueue.x-k8s.io/pod-group-name": name}
    return [_pod(f"{name}-{n}", group, {"kueue.x-k8s.io/pod-group-total-count": "2"}) for n in range(2)]


def _pod(name: str, labels: dict[str, str], annotations: dict[str, str]) -> JsonObject:
    made = pod(name, annotations={**annotations, "kueueweb.io/run-seconds": str(_LONG)}, requests={"cpu": "250m"})
    made["metadata"]["labels"] = labels
    return queued(made)


class Both:
    """The real Kueue and kueueweb on one cluster."""

    def __init__(self, plane: ControlPlane, kueue: RealKueue) -> None:
        self.admin = plane.admin
        self.plane = plane
        self.kueue = kueue
        self.cluster = make_cluster(mode="observe", server_url=plane.url, placement="devices")
        self.push = plane.client(plane.token_of("kueueweb", "kueueweb-push"))
        self.reader = plane.client(plane.token_of("kueueweb", "kueueweb-watcher"))
        self.engine: Engine | None = None

    def submit(self, *manifests: JsonObject) -> None:
        self.plane.kubectl("create", "-f", "-", manifests=manifests)

    def running(self, prefix: str) -> int:
        """How many pods of jobs of such names run."""
        pods = self.admin.list(PODS, "team").items
        return sum(each["status"]["phase"] == "Running" for each in pods if each["metadata"]["name"].startswith(prefix))

    def state(self, *prefixes: str) -> list[tuple[str, str, str, int]]:
        """Of each job and its pods: whatever is done to them changes one of these."""
        kinds = {JOB_KINDS[kind].resource for kind in KINDS if kind != POD_GROUP} | {PODS}
        return sorted(
            (kind.kind, each["metadata"]["name"], each["metadata"]["uid"], each["metadata"].get("generation", 0))
            for kind in kinds
            for each in self.admin.list(kind, "team").items
            if each["metadata"]["name"].startswith(prefixes)
        )

    def holder(self) -> str:
        return holder_of(self.admin.get(LEASES, KUEUES_NAMESPACE, KUEUES_LEASE))

    def workload_of(self, name: str) -> JsonObject:
        owned = (each for each in self.admin.list(WORKLOADS, "team").items if each["metadata"].get("ownerReferences"))
        return next(each for each in owned if each["metadata"]["ownerReferences"][0]["name"] == name)

    def conditions(self) -> dict[str, set[str]]:
        """What is true of each Workload that holds quota."""
        found = {}
        for each in self.admin.list(WORKLOADS, "team").items:
            status = each.get("status") or {}
            true = {entry["type"] for entry in status.get("conditions") or () if entry["status"] == "True"}
            if status.get("admission"):
                found[each["metadata"]["name"]] = true
        return found

    def job(self, name: str) -> JsonObject:
        found = self.admin.get(JOBS, "team", name)
        assert found is not None
        return found

    def turn(self) -> None:
        """What our processes do in mode schedule."""
        self.cluster.refresh_from_db()
        self.engine = self.engine or Engine(self.cluster, "test")
        Watcher(self.cluster, self.reader).resync()
        self.engine.run()
        push_pending(self.cluster, self.push)

    def until(self, what: str, condition: Callable[[], object], *, decide: bool = False) -> None:
        end = time.monotonic() + PATIENCE_SECONDS
        while not condition():
            assert time.monotonic() < end, f"not so: {what}; {self.state('theirs', 'ours')}"
            if decide:
                self.turn()
            time.sleep(0.5)


@pytest.fixture
def both(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Iterator[Both]:
    """A control plane of its own, because a Kueue that is gone leaves webhooks and definitions behind."""
    with ControlPlane(tmp_path_factory.mktemp("plane")) as plane:
        install_definitions(plane.admin)
        kueue = RealKueue(plane, tmp_path / "kueue")
        kueue.install()
        _give_rights(plane)
        _add_node(plane)
        kubeconfig = tmp_path / "push.kubeconfig"
        kubeconfig.write_text(yaml.safe_dump(plane.kubeconfig(plane.token_of("kueueweb", "kueueweb-push"))))
        monkeypatch.setattr(kube_config, "KUBE_CONFIG_DEFAULT_LOCATION", str(kubeconfig))
        with Operators(plane.admin) as operators:
            try:
                kueue.start()
                plane.kubectl("apply", "-f", "-", manifests=yaml.safe_load_all(QUEUES))
                yield Both(plane, kueue)
            finally:
                kueue.stop()
        assert operators.faults == []


def _give_rights(plane: ControlPlane) -> None:
    plane.admin.apply(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}})
    files = ("namespace.yaml", "rbac.yaml", "observer.yaml", "served.yaml", "switch.yaml")
    ours = [each for file in files for each in documents(file)]
    tenant = [{**each, "metadata": {**each["metadata"], "namespace": "team"}} for each in documents("tenant.yaml")]
    plane.kubectl("apply", "--server-side", "-f", "-", manifests=[*ours, *tenant])


def _add_node(plane: ControlPlane) -> None:
    amounts = {"cpu": "32", "memory": "64Gi", "pods": "110"}
    labels = {"kubernetes.io/hostname": "plain-node", "pool": "plain"}
    plane.admin.apply(NODES, {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "plain-node", "labels": labels}})
    status = {"capacity": amounts, "allocatable": amounts}
    plane.admin.patch(NODES, "", "plain-node", {"status": status}, subresource="status")


def test_there_and_back_with_the_real_kueue(both: Both, capsys: pytest.CaptureFixture[str]) -> None:
    # 1. Look: Kueue runs twelve jobs of seven kinds, and one is too large to run beside them.
    for name in THEIRS:
        both.submit(*manifests_of(name))
    both.until("Kueue starts the jobs", lambda: both.running("theirs") == pods_in(*THEIRS))
    both.submit(queued(job("waits", parallelism=8, completions=8, suspend=True)))
    both.until("Kueue knows all of them", lambda: len(both.admin.list(WORKLOADS, "team").items) == len(THEIRS) + 1)
    theirs = both.state("theirs")
    Watcher(both.cluster, both.reader).resync()
    assert Workload.objects.filter(quota_reserved_at__isnull=False).count() == len(THEIRS)

    # 3. Switch.
    with pytest.raises(CommandError, match="holds the lease"):
        call_command("takeover", wait=0)
    call_command("takeover", dry_run=True)
    said = capsys.readouterr().out
    assert [name for name in (*THEIRS, "waits", KUEUES_LEASE, "kueue-mutating-webhook") if name not in said] == []
    both.kueue.stop()
    call_command("takeover", wait=60)
    assert "Jobs and pods that have changed since: 0" in capsys.readouterr().out
    assert both.state("theirs") == theirs
    with our_webhook(both.plane, both.cluster):
        for name in OURS:
            both.submit(*manifests_of(name))
        both.until("we start the jobs", lambda: both.running("ours") == pods_in(*OURS), decide=True)
        assert both.holder() == identity()
        for _ in range(3):
            both.turn()
        mine = both.state("theirs", "ours")

        # A Kueue by mistake: it waits.
        both.kueue.start()
        for _ in range(10):
            both.turn()
            time.sleep(2)
        assert both.holder() == identity()
        assert both.state("theirs", "ours") == mine

        # 4. Back: that Kueue leads within seconds, and decides; what runs is as it was.
        call_command("handover", dry_run=True)
        assert "would be refused" not in capsys.readouterr().out
        call_command("handover", wait=120)
        assert "Jobs and pods that have changed since: 0" in capsys.readouterr().out
        both.until("Kueue leads", lambda: both.holder() not in ("", identity()))
        both.submit(queued(job("after", suspend=False, run_seconds=_LONG)))
        both.until("Kueue decides", lambda: both.running("after") == 1)
    held = both.conditions()
    assert len(held) == len(THEIRS) + len(OURS) + 1
    assert [name for name, true in held.items() if "Admitted" not in true or true & {"Evicted", "Finished"}] == []
    assert both.state("theirs", "ours") == mine

    # What it took over is its own: it stops with the template that its owner wrote, and starts again.
    ours = next(name for name in OURS if kind_of(name) == "Job")
    name = both.workload_of(ours)["metadata"]["name"]
    both.admin.patch(WORKLOADS, "team", name, {"spec": {"active": False}})
    both.until("Kueue stops the job", lambda: both.job(ours)["spec"]["suspend"])
    both.until(
        "its template is its owner's again", lambda: "nodeSelector" not in both.job(ours)["spec"]["template"]["spec"]
    )
    template = both.job(ours)["spec"]["template"]
    assert "kueue.x-k8s.io/workload" not in (template["metadata"].get("annotations") or {})
    both.until("its pods are gone", lambda: both.running(ours) == 0)
    both.admin.patch(WORKLOADS, "team", name, {"spec": {"active": True}})
    both.until("Kueue starts it again", lambda: both.running(ours) == 1)
