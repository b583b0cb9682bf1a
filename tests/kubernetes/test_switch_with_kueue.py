"""docs/switching.md with the real Kueue: there and back, with jobs that run all the while, and a Kueue by mistake."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml
from django.core.management import call_command
from django.core.management.base import CommandError
from kubernetes.config import kube_config

from clusters.client import LEASES, MUTATING_WEBHOOKS, NAMESPACES, NODES, PODS, JsonObject, Kind
from clusters.leases import KUEUES_LEASE, KUEUES_NAMESPACE, holder_of
from clusters.push.installation import identity
from clusters.push.sweep import push_pending
from clusters.sync.watcher import Watcher
from queues.models import Workload
from scheduler.leader.engine import Engine
from tests.cluster_kinds import JOBS
from tests.factories import make_cluster
from tests.kubernetes.control_plane import ControlPlane
from tests.kubernetes.real_kueue import RealKueue, missing
from tests.kubernetes.system import documents

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.skipif(bool(missing()), reason=missing())]

WORKLOADS = Kind("kueue.x-k8s.io/v1beta2", "Workload", "workloads")
QUEUES = """
apiVersion: kueue.x-k8s.io/v1beta2
kind: ResourceFlavor
metadata: {name: plain}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: main}
spec:
  namespaceSelector: {}
  resourceGroups:
  - coveredResources: [cpu]
    flavors: [{name: plain, resources: [{name: cpu, nominalQuota: 6}]}]
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: LocalQueue
metadata: {name: local, namespace: team}
spec: {clusterQueue: main}
"""
PATIENCE_SECONDS = 300.0


class Both:
    """The real Kueue and kueueweb on one cluster."""

    def __init__(self, plane: ControlPlane, kueue: RealKueue) -> None:
        self.admin = plane.admin
        self.plane = plane
        self.kueue = kueue
        self.cluster = make_cluster(mode="observe", server_url=plane.url)
        self.push = plane.client(plane.token_of("kueueweb", "kueueweb-push"))
        self.reader = plane.client(plane.token_of("kueueweb", "kueueweb-watcher"))
        self.engine: Engine | None = None

    def job(self, name: str, pods: int = 1, **spec: object) -> None:
        container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}
        template = {"spec": {"restartPolicy": "Never", "containers": [container]}}
        metadata = {"name": name, "namespace": "team", "labels": {"kueue.x-k8s.io/queue-name": "local"}}
        spec = {"parallelism": pods, "completions": pods, "template": template, **spec}
        self.admin.create(JOBS, {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec})

    def runs(self, name: str, pods: int = 1) -> bool:
        found = self.admin.get(JOBS, "team", name)
        return found is not None and (found.get("status") or {}).get("ready") == pods

    def state(self, *names: str) -> list[tuple[str, str, int]]:
        """Of each Job and its pods: whatever is done to them changes one of these."""
        jobs = [self.admin.get(JOBS, "team", name) for name in names]
        pods = [pod for name in names for pod in self.admin.list(PODS, "team", label_selector=f"job-name={name}").items]
        found = [each for each in (*jobs, *pods) if each is not None]
        return sorted(
            (each["metadata"]["name"], each["metadata"]["uid"], each["metadata"].get("generation", 0)) for each in found
        )

    def holder(self) -> str:
        return holder_of(self.admin.get(LEASES, KUEUES_NAMESPACE, KUEUES_LEASE))

    def workload(self, job: str) -> JsonObject:
        owned = (each for each in self.admin.list(WORKLOADS, "team").items)
        return next(each for each in owned if each["metadata"]["ownerReferences"][0]["name"] == job)

    def template(self, name: str) -> JsonObject:
        found: JsonObject = (self.admin.get(JOBS, "team", name) or {})["spec"]["template"]
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
            assert time.monotonic() < end, f"not so: {what}"
            if decide:
                self.turn()
            time.sleep(0.5)


@pytest.fixture
def both(plane: ControlPlane, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Both]:
    kueue = RealKueue(plane, tmp_path / "kueue")
    kueue.install()
    plane.admin.apply(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}})
    files = ("namespace.yaml", "rbac.yaml", "observer.yaml", "served.yaml", "switch.yaml")
    ours = [each for file in files for each in documents(file)]
    tenant = [{**each, "metadata": {**each["metadata"], "namespace": "team"}} for each in documents("tenant.yaml")]
    plane.kubectl("apply", "--server-side", "-f", "-", manifests=[*ours, *tenant])
    amounts = {"cpu": "8", "memory": "64Gi", "pods": "110"}
    metadata = {"name": "plain-node", "labels": {"kubernetes.io/hostname": "plain-node"}}
    plane.admin.apply(NODES, {"apiVersion": "v1", "kind": "Node", "metadata": metadata})
    status = {"capacity": amounts, "allocatable": amounts}
    plane.admin.patch(NODES, "", "plain-node", {"status": status}, subresource="status")
    kubeconfig = tmp_path / "push.kubeconfig"
    kubeconfig.write_text(yaml.safe_dump(plane.kubeconfig(plane.token_of("kueueweb", "kueueweb-push"))))
    monkeypatch.setattr(kube_config, "KUBE_CONFIG_DEFAULT_LOCATION", str(kubeconfig))
    try:
        kueue.start()
        plane.kubectl("apply", "-f", "-", manifests=yaml.safe_load_all(QUEUES))
        yield Both(plane, kueue)
    finally:
        kueue.stop()
        for kind in (
            MUTATING_WEBHOOKS,
            Kind(MUTATING_WEBHOOKS.api_version, "", "validatingwebhookconfigurations", False),
        ):
            for item in plane.admin.list(kind).items:
                plane.admin.delete(kind, "", item["metadata"]["name"])
        for kind in (JOBS, PODS):
            for item in plane.admin.list(kind, "team").items:
                plane.admin.patch(kind, "team", item["metadata"]["name"], {"metadata": {"finalizers": None}})
                plane.admin.delete(kind, "team", item["metadata"]["name"])


def test_there_and_back_with_the_real_kueue(both: Both, capsys: pytest.CaptureFixture[str]) -> None:
    # 1. Look: Kueue runs one job, and one is too large to run beside it.
    both.job("theirs", 2)
    both.until("Kueue starts the job", lambda: both.runs("theirs", 2))
    both.job("waits", 6)
    theirs = both.state("theirs")
    assert len(theirs) == 3
    Watcher(both.cluster, both.reader).resync()
    assert Workload.objects.filter(quota_reserved_at__isnull=False).count() == 1

    # 3. Switch.
    with pytest.raises(CommandError, match="holds the lease"):
        call_command("takeover", wait=0)
    call_command("takeover", dry_run=True)
    said = capsys.readouterr().out
    assert all(name in said for name in ("Job team/theirs", "Job team/waits", KUEUES_LEASE, "kueue-mutating-webhook"))
    both.kueue.stop()
    call_command("takeover", wait=60)
    assert both.state("theirs") == theirs
    both.job("ours", 2, suspend=True)
    both.until("we start the job", lambda: both.runs("ours", 2), decide=True)
    assert both.holder() == identity()
    mine = both.state("theirs", "ours")
    assert len(mine) == 6

    # A Kueue by mistake: it waits.
    both.kueue.start()
    for _ in range(10):
        both.turn()
        time.sleep(2)
    assert both.holder() == identity()
    assert both.state("theirs", "ours") == mine

    # 4. Back: that Kueue leads within seconds, and decides; what runs is as it was.
    call_command("handover", wait=60)
    both.until("Kueue leads", lambda: both.holder() not in ("", identity()))
    both.job("after")
    both.until("Kueue decides", lambda: both.runs("after"))
    assert both.state("theirs", "ours") == mine
    assert [both.workload(name)["spec"].get("active", True) for name in ("theirs", "ours")] == [True, True]

    # What it took over is its own: it stops with the template that its owner wrote, and starts again.
    name = both.workload("ours")["metadata"]["name"]
    both.admin.patch(WORKLOADS, "team", name, {"spec": {"active": False}})
    both.until("Kueue stops the job", lambda: (both.admin.get(JOBS, "team", "ours") or {})["spec"]["suspend"])
    both.until("its template is its owner's again", lambda: "nodeSelector" not in both.template("ours")["spec"])
    assert "kueue.x-k8s.io/workload" not in (both.template("ours")["metadata"].get("annotations") or {})
    both.until("its pods are gone", lambda: len(both.state("ours")) == 1)
    both.admin.patch(WORKLOADS, "team", name, {"spec": {"active": True}})
    both.until("Kueue starts it again", lambda: both.runs("ours", 2))
