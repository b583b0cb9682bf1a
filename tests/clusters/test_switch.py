"""From a Kueue to us, and back: the procedure of docs/switching.md, with a job that runs all the while."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.core.management import call_command

from clusters.client import PODS, JsonObject, TokenBucket, connect
from clusters.jobs.registry import JOB_KINDS
from clusters.push.serving import forget
from clusters.push.sweep import push_pending
from clusters.sync.watcher import Watcher
from queues.models import Job, Workload
from scheduler.leader.engine import Engine
from scheduler.leader.observer import Observer
from tests.clusters.kueue_cluster import PENDING, KueueCluster, admitted, configure, workload
from tests.simulated_cluster import ServerThread, job, make_simulated

pytestmark = pytest.mark.django_db(transaction=True)

JOBS = JOB_KINDS["Job"].resource


@pytest.fixture
def server() -> Iterator[ServerThread]:
    with ServerThread(make_simulated()) as server:
        yield server


def queued(kueue: KueueCluster, name: str, status: JsonObject, *, suspend: bool) -> None:
    """A Job as Kueue has it, and its Workload."""
    manifest = job(name, run_seconds=6000, suspend=suspend, parallelism=2, completions=2)
    manifest["metadata"] |= {"namespace": "team", "labels": {"kueue.x-k8s.io/queue-name": "local"}}
    made = kueue.write(manifest)
    uid = made["metadata"]["uid"]
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": name, "uid": uid, "controller": True}
    labels = {"kueue.x-k8s.io/job-uid": uid}
    template = {"spec": made["spec"]["template"]["spec"]}
    workload(kueue, f"job-{name}", status, template, metadata={"ownerReferences": [owner], "labels": labels})


def untouched(kueue: KueueCluster) -> list[tuple[str, str, int]]:
    """The Job that runs and its pods: whatever anybody would do to them changes one of these."""
    found = [each for each in kueue.client.list(JOBS).items if each["metadata"]["name"] == "runs"]
    pods = [pod for pod in kueue.client.list(PODS).items if pod["metadata"]["name"].startswith("runs")]
    objects = [*found, *pods]
    return [
        (each["metadata"]["uid"], str(each["spec"].get("suspend")), each["metadata"].get("generation", 0))
        for each in objects
    ]


@pytest.mark.parametrize("serve", [False, True])
def test_the_switch_and_back_leaves_running_jobs_alone(server: ServerThread, serve: bool) -> None:
    """With Kueue's objects served, its Workloads say at the way back what we have done with them."""
    kueue = KueueCluster(server)
    configure(kueue)
    queued(kueue, "runs", admitted(kueue, with_topology=False), suspend=False)
    queued(kueue, "waits", PENDING, suspend=True)
    kueue.advance(5)
    kueue.look()
    before = untouched(kueue)
    assert len(before) == 3

    call_command("set_cluster", mode="shadow")
    kueue.look()
    call_command("set_cluster", mode="schedule", serve_kueue_objects=serve)
    server.guard.closed = False
    kueue.cluster.refresh_from_db()
    client = connect(server.url, TokenBucket(10_000, 10_000))
    forget()
    watcher = Watcher(kueue.cluster, client, clock=kueue.now)
    engine = Engine(kueue.cluster, "test", clock=kueue.now)
    for _ in range(3):
        watcher.resync()
        engine.run()
        push_pending(kueue.cluster, client, kueue.now)
        kueue.advance(5)
    assert untouched(kueue) == before
    runs, waits = (Workload.objects.get(name=f"job-{name}") for name in ("runs", "waits"))
    assert (runs.status, runs.evicted_at, waits.status) == ("Admitted", None, "Admitted")
    assert not next(each for each in client.list(JOBS).items if each["metadata"]["name"] == "waits")["spec"]["suspend"]
    assert Job.objects.filter(found_in_cluster=True).count() == 2

    call_command("set_cluster", mode="observe")
    server.guard.closed = True
    kueue.watcher = Watcher(kueue.cluster, kueue.client, clock=kueue.now)
    kueue.observer = Observer(kueue.cluster, "test", clock=kueue.now)
    kueue.look()
    assert untouched(kueue) == before
    said = "Admitted" if serve else "Pending"  # what nobody has told is as Kueue left it
    assert Workload.objects.get(name="job-waits").status == said
    assert server.guard.refused == []
