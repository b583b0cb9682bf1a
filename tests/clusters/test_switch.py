"""From a Kueue to us, and back: the procedure of docs/switching.md, with a job that runs all the while."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError

from accounts.models import Cluster
from clusters.api_objects import LEASES, MUTATING_WEBHOOKS, PODS, JsonObject
from clusters.client import ClusterClient, TokenBucket
from clusters.client_credentials import connect
from clusters.jobs.registry import JOB_KINDS
from clusters.leases import KUEUES_LEASE, KUEUES_NAMESPACE, holder_of
from clusters.push.installation import identity
from clusters.push.kueue_objects.serving import forget
from clusters.push.kueues_lease import take, taking_over
from clusters.push.sweep import push_pending
from clusters.sync.watcher import Watcher
from clusters.takeover.kueues_webhooks import switch_off
from clusters.takeover.witness import Witness
from clusters.tasks import push_cluster
from queues.models import Job, Workload
from scheduler.leader.engine import Engine
from scheduler.leader.observer import Observer
from tests.clusters.kueue_cluster import PENDING, KueueCluster, admitted, configure, workload
from tests.simulated_cluster import ServerThread, fetch, job, make_simulated

pytestmark = pytest.mark.django_db(transaction=True)

JOBS = JOB_KINDS["Job"].resource


@pytest.fixture
def server() -> Iterator[ServerThread]:
    with ServerThread(make_simulated()) as server:
        yield server


def queued(kueue: KueueCluster, name: str, status: JsonObject, *, suspend: bool) -> None:
    """A Job as Kueue has it, and its Workload."""
    manifest = job(name, run_seconds=6000, suspend=suspend, parallelism=2, completions=2)
    containers = [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}]
    manifest["spec"]["template"]["spec"]["containers"] = containers
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


WEBHOOKS: JsonObject = {
    "apiVersion": MUTATING_WEBHOOKS.api_version,
    "kind": MUTATING_WEBHOOKS.kind,
    "metadata": {"name": "kueue-mutating-webhook-configuration"},
    "webhooks": [
        {
            "name": name,
            "clientConfig": {"url": "https://127.0.0.1:9/mutate"},
            "rules": [{"apiGroups": ["batch"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["jobs"]}],
            "failurePolicy": "Fail",
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
            **selector,
        }
        for name, selector in (
            ("mjob.kb.io", {}),
            ("mpod.kb.io", {"objectSelector": {"matchLabels": {"managed": "yes"}}}),
        )
    ],
}


@pytest.fixture
def kueue(server: ServerThread) -> KueueCluster:
    """A Kueue that has let go of its lease: one job runs, one waits, and its webhooks are registered."""
    found = KueueCluster(server)
    server.guard.closed = False
    configure(found)
    found.write({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": KUEUES_NAMESPACE}})
    queued(found, "runs", admitted(found, with_topology=False), suspend=False)
    queued(found, "waits", PENDING, suspend=True)
    found.write(WEBHOOKS)
    found.advance(5)
    found.look()
    return found


def holder(kueue: KueueCluster) -> str:
    return holder_of(kueue.client.get(LEASES, KUEUES_NAMESPACE, KUEUES_LEASE))


def selectors(kueue: KueueCluster) -> list[JsonObject | None]:
    found = kueue.client.get(MUTATING_WEBHOOKS, "", WEBHOOKS["metadata"]["name"])
    assert found is not None
    return [each.get("objectSelector") for each in found["webhooks"]]


def decide(kueue: KueueCluster) -> ClusterClient:
    """Some turns of our watcher, engine and push."""
    kueue.cluster.refresh_from_db()
    client = connect(kueue.server.url, TokenBucket(10_000, 10_000))
    forget()
    watcher = Watcher(kueue.cluster, client, clock=kueue.now)
    engine = Engine(kueue.cluster, "test", clock=kueue.now)
    for _ in range(3):
        watcher.resync()
        engine.run()
        push_pending(kueue.cluster, client, kueue.now)
        kueue.advance(5)
    return client


def is_suspended(kueue: KueueCluster, name: str) -> bool:
    return bool(
        next(each for each in kueue.client.list(JOBS).items if each["metadata"]["name"] == name)["spec"]["suspend"]
    )


@pytest.mark.parametrize("serve", [False, True])
def test_the_switch_and_back_leaves_running_jobs_alone(
    kueue: KueueCluster, serve: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    """Workloads that nobody has served are written by the handover, before it lets go."""
    before = untouched(kueue)
    assert len(before) == 3
    call_command("set_cluster", mode="shadow")
    kueue.look()
    call_command("takeover", wait=0)
    if not serve:
        call_command("set_cluster", serve_kueue_objects=False)
    kueue.cluster.refresh_from_db()
    assert (kueue.cluster.mode, kueue.cluster.serves_kueue_objects) == ("schedule", serve)
    decide(kueue)
    assert untouched(kueue) == before
    assert holder(kueue) == identity()
    runs, waits = (Workload.objects.get(name=f"job-{name}") for name in ("runs", "waits"))
    assert (runs.status, runs.evicted_at, waits.status) == ("Admitted", None, "Admitted")
    assert not is_suspended(kueue, "waits")
    assert Job.objects.filter(found_in_cluster=True).count() == 2

    if not serve:
        with pytest.raises(CommandError, match=r"would stop 1 jobs.*Job team/waits.*manage\.py handover"):
            call_command("set_cluster", mode="observe")
    after = [each["metadata"]["generation"] for each in kueue.client.list(JOBS).items]
    capsys.readouterr()
    call_command("handover", wait=30)
    assert "Jobs and pods that have changed since: 0" in capsys.readouterr().out
    kueue.cluster.refresh_from_db()
    assert (kueue.cluster.mode, holder(kueue)) == ("observe", "")
    assert [each["metadata"]["generation"] for each in kueue.client.list(JOBS).items] == after
    kueue.server.guard.closed = True
    kueue.watcher = Watcher(kueue.cluster, kueue.client, clock=kueue.now)
    kueue.observer = Observer(kueue.cluster, "test", clock=kueue.now)
    kueue.look()
    assert untouched(kueue) == before
    assert Workload.objects.get(name="job-waits").status == "Admitted"
    assert kueue.server.guard.refused == []


def test_webhooks_are_off_while_we_decide_and_as_they_were_afterwards(kueue: KueueCluster) -> None:
    call_command("takeover", wait=0)
    for selector in selectors(kueue):
        assert [each["operator"] for each in (selector or {})["matchExpressions"]] == ["Exists", "DoesNotExist"]
    call_command("takeover", wait=0)  # again: what they were is not forgotten
    kueue.write(job("goes-by", suspend=True))  # no webhook is asked: theirs is not there
    call_command("handover", wait=30)
    assert selectors(kueue) == [{}, {"matchLabels": {"managed": "yes"}}]
    found = kueue.client.get(MUTATING_WEBHOOKS, "", WEBHOOKS["metadata"]["name"])
    assert found is not None
    assert not found["metadata"].get("annotations")


def test_a_dry_run_names_everything_and_writes_nothing(kueue: KueueCluster, capsys: pytest.CaptureFixture[str]) -> None:
    kueue.server.guard.closed = True
    call_command("takeover", dry_run=True)
    said = capsys.readouterr().out
    for name in (
        "Job team/runs",
        "Job team/waits",
        KUEUES_LEASE,
        "mutating",
        "ClusterQueue main",
        "LocalQueue team/local",
    ):
        assert name in said
    kueue.server.guard.closed = False
    call_command("takeover", wait=0)
    decide(kueue)
    kueue.server.guard.closed = True
    capsys.readouterr()
    call_command("handover", dry_run=True)
    said = capsys.readouterr().out
    assert "Running jobs, not touched: 2" in said
    assert "would be refused" not in said
    assert kueue.server.guard.refused == []
    assert Cluster.objects.get().mode == "schedule"


def test_a_kueue_that_leads_is_waited_for_unless_its_lease_is_to_be_taken(kueue: KueueCluster) -> None:
    spec = {"holderIdentity": "kueue-0", "renewTime": "2026-01-01T00:00:00.000000Z", "leaseDurationSeconds": 1}
    metadata = {"name": KUEUES_LEASE, "namespace": KUEUES_NAMESPACE}
    kueue.write({"apiVersion": LEASES.api_version, "kind": LEASES.kind, "metadata": metadata, "spec": spec})
    with pytest.raises(CommandError, match="kueue-0 holds the lease"):
        call_command("takeover", wait=0)
    assert (holder(kueue), Cluster.objects.get().mode) == ("kueue-0", "observe")
    call_command("takeover", wait=0, take_lease=True)
    assert (holder(kueue), Cluster.objects.get().mode) == (taking_over(), "schedule")


def test_an_interrupted_takeover_is_completed_or_undone(kueue: KueueCluster) -> None:
    """It ended after the lease was taken and the webhooks were off; the watcher goes on all the while."""
    client = connect(kueue.server.url, TokenBucket(10_000, 10_000))
    take(kueue.cluster, client, None, taking_over())
    switch_off(client)
    kueue.look()
    push_cluster("default")
    assert holder(kueue) == taking_over(), "a push worker gives back what it holds itself"
    call_command("handover", wait=0)
    assert (holder(kueue), selectors(kueue)[0], Cluster.objects.get().mode) == ("", {}, "observe")
    take(kueue.cluster, client, client.get(LEASES, KUEUES_NAMESPACE, KUEUES_LEASE), taking_over())
    switch_off(client)
    call_command("takeover", wait=0)
    assert Cluster.objects.get().mode == "schedule"
    assert Workload.objects.get(name="job-runs").status == "Admitted"


def test_a_job_that_kueue_would_not_leave_alone_is_named_and_keeps_the_cluster(kueue: KueueCluster) -> None:
    """Its Workload there is of another shape than the Job: a Kueue would stop it."""
    call_command("takeover", wait=0)
    client = decide(kueue)
    found = fetch(f"{kueue.server.url}/apis/{kueue.version}/namespaces/team/workloads/job-runs")
    found["spec"]["podSets"][0]["template"]["spec"]["containers"][0]["image"] = "another"
    kueue.write(found)
    before = untouched(kueue)
    with pytest.raises(CommandError, match=r"Job team/runs: Kueue stops it: it does not match its Workload job-runs"):
        call_command("handover", wait=0)
    assert (Cluster.objects.get().mode, holder(kueue)) == ("schedule", identity())
    assert untouched(kueue) == before
    assert client.get(LEASES, KUEUES_NAMESPACE, KUEUES_LEASE)


def test_a_witness_names_jobs_and_pods_that_are_others_by_now(kueue: KueueCluster) -> None:
    witness = Witness(kueue.client, ["Job team/runs"])
    assert witness.changed() == []
    before, *_ = kueue.client.list(JOBS).items
    gone = kueue.client.list(PODS, "team").items[0]
    connect(kueue.server.url, TokenBucket(10_000, 10_000)).delete(PODS, "team", gone["metadata"]["name"])
    kueue.write({**before, "spec": {**before["spec"], "parallelism": 1}})
    kueue.advance(60)
    generation = before["metadata"]["generation"]
    assert [line for line in witness.changed() if "Job" in line] == [
        f"Job team/runs: its generation is {generation + 1} in place of {generation}"
    ]
    assert f"Pod team/{gone['metadata']['name']}: it was deleted" in witness.changed()
