"""Argo CD's engine against the web process: the objects of a folder, compared, stored and pruned."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from queues.models import ClusterQueue, Job, LocalQueue, ResourceFlavor
from tests.kubernetes.test_kubectl import Kubectl
from tests.kubernetes_clients.conftest import run

pytestmark = pytest.mark.django_db(transaction=True)

QUEUES: Final = """
apiVersion: kueue.x-k8s.io/v1beta2
kind: ResourceFlavor
metadata: {name: spot}
spec: {nodeLabels: {tier: spot}}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: training}
spec:
  cohortName: company
  namespaceSelector: {}
  resourceGroups:
  - coveredResources: [cpu]
    flavors: [{name: spot, resources: [{name: cpu, nominalQuota: "4"}]}]
"""
TEAM: Final = """
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: LocalQueue
metadata: {name: second, namespace: team-a}
spec: {clusterQueue: training}
---
apiVersion: batch/v1
kind: Job
metadata: {name: synced, namespace: team-a, labels: {kueue.x-k8s.io/queue-name: second}}
spec:
  template:
    spec:
      restartPolicy: Never
      containers: [{name: main, image: busybox, resources: {requests: {cpu: "1"}}}]
"""

Sync = Callable[[str, str], dict[str, str]]


@pytest.fixture
def sync(kubectl: Kubectl, program: Callable[[str], str], tmp_path: Path) -> Sync:
    """Brings the cluster into the state of a text as a user, and returns what the engine says of each object."""

    def bring(user: str, text: str) -> dict[str, str]:
        file = tmp_path / "manifests.yaml"
        file.write_text(text)
        done = run([program("gitops"), str(tmp_path / "kubeconfig"), user, "team-a", str(file)], tmp_path)
        if done.returncode:
            raise subprocess.CalledProcessError(done.returncode, text, done.stdout, done.stderr)
        return dict(line.split(" ", 1) for line in done.stdout.splitlines() if " modified=" not in line) | {
            f"modified {line.split()[0]}": line.split("=")[1]
            for line in done.stdout.splitlines()
            if " modified=" in line
        }

    return bring


def test_objects_are_stored_compared_and_pruned(sync: Sync) -> None:
    first = sync("alice", QUEUES + TEAM)
    assert first["modified ClusterQueue/training"] == "true"
    assert {name for name, said in first.items() if said.startswith("Synced")} == {
        "ResourceFlavor/spot", "ClusterQueue/training", "LocalQueue/second", "Job/synced",
    }  # fmt: skip
    made = ClusterQueue.objects.get(name="training")
    assert Job.objects.get(name="synced").workloads.count() == 1

    again = sync("alice", QUEUES + TEAM)
    assert {name: said for name, said in again.items() if name.startswith("modified")} == {
        "modified ResourceFlavor/spot": "false",
        "modified ClusterQueue/training": "false",
        "modified LocalQueue/second": "false",
        "modified Job/synced": "false",
    }
    more = QUEUES.replace('nominalQuota: "4"', 'nominalQuota: "6"')
    changed = sync("alice", more)
    assert (changed["modified ClusterQueue/training"], changed["modified ResourceFlavor/spot"]) == ("true", "false")
    assert changed["LocalQueue/second"].startswith("Pruned")
    assert ClusterQueue.objects.get(name="training").uid == made.uid
    assert not LocalQueue.objects.filter(name="second", deletion_requested_at=None).exists()
    assert ResourceFlavor.objects.filter(name="spot").exists()
