"""Kueue's own command line, `kueuectl`, against the web process."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from queues.models import ClusterQueue, LocalQueue, ResourceFlavor, Workload
from tests.kubernetes.test_kubectl import Kubectl, start_pod, table
from tests.kubernetes_clients.conftest import run

pytestmark = pytest.mark.django_db(transaction=True)

Kueuectl = Callable[[str, str], str]


@pytest.fixture
def kueuectl(kubectl: Kubectl, program: Callable[[str], str], tmp_path: Path) -> Kueuectl:
    """Runs kueuectl as a user and returns its output."""
    options = ["--kubeconfig", str(tmp_path / "kubeconfig"), "--cache-dir", str(tmp_path / "cache")]

    def ask(user: str, words: str) -> str:
        done = run([program("kueuectl"), *options, "--context", user, *words.split()], tmp_path)
        if done.returncode:
            raise subprocess.CalledProcessError(done.returncode, words, done.stdout, done.stderr)
        return done.stdout

    return ask


def refusal(kueuectl: Kueuectl, user: str, words: str) -> str:
    """The words of a refusal."""
    with pytest.raises(subprocess.CalledProcessError) as refused:
        kueuectl(user, words)
    return str(refused.value.stderr)


def test_list(kueuectl: Kueuectl) -> None:
    [header, row] = table(kueuectl("alice", "list clusterqueue"))
    assert header[:4] == ["NAME", "COHORT", "PENDING WORKLOADS", "ADMITTED WORKLOADS"]
    assert row[:5] == ["research", "company", "1", "2", "true"]
    assert table(kueuectl("bob", "list localqueue -c research"))[1][:4] == ["main", "research", "1", "2"]
    assert table(kueuectl("alice", "list resourceflavor"))[1][0] == "on-demand"


def test_list_workloads_with_their_positions(kueuectl: Kueuectl) -> None:
    lines = kueuectl("bob", "list workload").splitlines()
    begin, end = lines[0].index("STATUS"), lines[0].index("EXEC TIME")
    found = {line.split()[2]: line[begin:end].split() for line in lines[1:]}
    assert found == {"first": ["ADMITTED"], "second": ["ADMITTED"], "third": ["PENDING", "0"]}
    assert len(kueuectl("bob", "list workload --status=pending").splitlines()) == 2
    assert "third" in kueuectl("alice", "list workload --for job/third")
    assert kueuectl("charlie", "list workload -A").strip() == ""


def test_list_pods_of_a_job(kueuectl: Kueuectl) -> None:
    start_pod("first")
    start_pod("second")
    lines = kueuectl("bob", "list pods --for job/first").splitlines()
    assert [line.split()[:3] for line in lines] == [["NAME", "READY", "STATUS"], ["first-0", "1/1", "Running"]]


def test_create_and_delete(kueuectl: Kueuectl) -> None:
    kueuectl("alice", "create resourceflavor spot --node-labels tier=spot --dry-run=server")
    assert not ResourceFlavor.objects.filter(name="spot").exists()
    kueuectl("alice", "create resourceflavor spot --node-labels tier=spot")
    quota = "--nominal-quota spot:cpu=3;memory=1Gi --borrowing-limit spot:cpu=1;memory=1Gi"
    kueuectl("alice", f"create clusterqueue training --cohort company --queuing-strategy StrictFIFO {quota}")
    kueuectl("alice", "create localqueue second -c training")
    made = ClusterQueue.objects.get(name="training")
    assert (made.queueing_strategy, made.cohort_name) == ("StrictFIFO", "company")
    assert LocalQueue.objects.get(name="second").cluster_queue_name == "training"
    assert 'cannot create resource "localqueues"' in refusal(kueuectl, "bob", "create localqueue mine -c training")
    for words in ("localqueue second", "clusterqueue training", "resourceflavor spot"):
        assert "deleted" in kueuectl("alice", f"delete {words}")
    assert not ClusterQueue.objects.filter(name="training").exists()


def test_stop_and_resume(kueuectl: Kueuectl) -> None:
    def policy() -> str:
        return ClusterQueue.objects.get(name="research").stop_policy

    kueuectl("alice", "stop clusterqueue research --keep-already-running")
    assert policy() == "Hold"
    kueuectl("alice", "resume clusterqueue research")
    assert policy() == "None"
    name = Workload.objects.get(job__name="third").name
    kueuectl("bob", f"stop workload {name}")
    assert not Workload.objects.get(name=name).active
    kueuectl("bob", f"resume workload {name}")
    assert Workload.objects.get(name=name).active


def test_what_it_passes_to_kubectl(kueuectl: Kueuectl) -> None:
    assert "research" in kueuectl("bob", "get clusterqueue research")
    assert "Cohort Name:  company" in kueuectl("alice", "describe clusterqueue research")
    kueuectl("alice", 'patch clusterqueue research --type merge -p {"spec":{"stopPolicy":"Hold"}}')
    assert ClusterQueue.objects.get(name="research").stop_policy == "Hold"
