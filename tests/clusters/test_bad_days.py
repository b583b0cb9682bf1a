"""What an API server does on bad days: nothing is lost, nothing is done twice, and it is left alone as it asks."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from typing import Any

import orjson
import pytest

from accounts.models import Cluster, ClusterMode
from clusters.api_errors import ClusterError
from clusters.api_objects import NODES, PODS, JsonObject
from clusters.client import ClusterClient, Listing, TokenBucket
from clusters.client_credentials import connect
from clusters.jobs.reading import NO_CLUSTER
from clusters.jobs.registry import JOB_KINDS
from clusters.leases import LeaseWatch
from clusters.reflector import Reflector
from clusters.sync.watcher import Watcher
from clusters.webhook.admission import Admission
from clusters.webhook.application import ANSWER_SECONDS, WebhookApplication
from clusters.webhook.configurations import TIMEOUT_SECONDS
from queues.models import ClusterQueue, Cohort, Workload
from simulation.api.resources import RESOURCES, crd_of
from tests.clusters.kueue_cluster import KueueCluster
from tests.clusters.kueue_cluster import configure as configure_kueue
from tests.clusters.served_cluster import ServedCluster, configure
from tests.clusters.system import System, gpu_job
from tests.clusters.webhook.served import FixedSurroundings
from tests.simulated_cluster import ServerThread, make_simulated

JOBS = JOB_KINDS["Job"].resource


@pytest.fixture
def server() -> Iterator[ServerThread]:
    with ServerThread(make_simulated()) as server:
        yield server


def paced(server: ServerThread, waits: list[float]) -> ClusterClient:
    """A client that notes how long it would wait, and does not."""
    return connect(server.url, TokenBucket(1e6, 1e6, clock=lambda: 0.0, sleep=waits.append))


@pytest.mark.parametrize("write", [False, True])
def test_what_the_server_puts_off_is_sent_again_when_it_may_be(server: ServerThread, write: bool) -> None:
    waits: list[float] = []
    client = paced(server, waits)
    server.guard.faults = [(429, {"Retry-After": "2"}), (429, {"Retry-After": "7"})]
    if write:
        client.create(PODS, {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "default"},
                             "spec": {"containers": [{"name": "c", "image": "i"}]}})  # fmt: skip
        assert [pod["metadata"]["name"] for pod in connect(server.url).list(PODS).items] == ["p"]
    else:
        assert len(client.list(NODES).items) == 2
    assert waits[:2] == [2.0, 7.0]
    assert server.guard.faults == []


def test_a_server_that_is_always_too_busy_is_an_error_in_the_end(server: ServerThread) -> None:
    waits: list[float] = []
    server.guard.faults = [(429, {"Retry-After": "1"})] * 9
    with pytest.raises(ClusterError) as refusal:
        paced(server, waits).list(NODES)
    assert (refusal.value.status, refusal.value.retry_after) == (429, 1.0)
    assert len(server.guard.faults) == 4  # five attempts


@pytest.mark.parametrize("status", [500, 502, 503])
def test_what_failed_on_the_way_is_not_sent_twice_by_the_client(server: ServerThread, status: int) -> None:
    """Whether it was carried out is not known: the next sweep looks first."""
    server.guard.faults = [(status, {}), (status, {})]
    with pytest.raises(ClusterError) as refusal:
        connect(server.url).patch(NODES, "", "node-01", {"metadata": {"labels": {"a": "b"}}})
    assert refusal.value.status == status
    assert len(server.guard.faults) == 1


@pytest.mark.parametrize("faults", [[(500, {})], [(429, {"Retry-After": "1"})], [(0, {})], [(410, {})]])
def test_following_a_kind_goes_on_after_each_of_these(
    server: ServerThread, faults: list[tuple[int, dict[str, str]]]
) -> None:
    reflector = Reflector(connect(server.url), NODES)
    server.guard.faults = faults
    for found in reflector:
        assert isinstance(found, Listing)
        assert len(found.items) == 2
        break
    reflector.stop()


@pytest.mark.django_db(transaction=True)
def test_a_server_that_is_away_for_a_while_costs_nothing_but_time(server: ServerThread) -> None:
    """A job is decided while it is away, and half of what it was to be told was told."""
    system = System(server)
    system.submit(gpu_job("first"))
    system.turn()
    server.guard.away = True
    system.submit(gpu_job("second"))
    system.engine.run()
    assert system.push().pushed == 0
    with pytest.raises(ClusterError):
        system.watcher.resync()
    assert not Workload.objects.filter(status="Finished").exists()
    server.guard.away = False
    for _ in range(3):
        system.turn()
    jobs = sorted(each["metadata"]["name"] for each in system.client.list(JOBS).items)
    assert jobs == ["first", "second"]
    assert len(system.pods()) == 2
    assert set(Workload.objects.values_list("status", flat=True)) == {"Admitted"}


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("fault", [(409, {}), (500, {}), (0, {}), (429, {"Retry-After": "0"})])
def test_each_request_of_a_start_may_fail_once(server: ServerThread, fault: tuple[int, dict[str, str]]) -> None:
    system = System(server)
    system.submit(gpu_job())
    system.engine.run()
    for _ in range(8):
        server.guard.faults = [fault]
        system.push()
        system.advance(5)
    server.guard.faults = []
    for _ in range(3):
        system.turn()
    assert [each["metadata"]["name"] for each in system.client.list(JOBS).items] == ["train"]
    assert [pod["status"]["phase"] for pod in system.pods()] == ["Running"]


def bare(kind: Any, name: str = "half") -> JsonObject:
    """As little of an object as an API server lets pass: its author has written no more yet."""
    metadata = {
        "name": name, "uid": "99999999-9999-9999-9999-999999999999", "resourceVersion": "5",
        "creationTimestamp": "2026-01-01T00:00:00Z",
        **({"namespace": "default"} if kind.namespaced else {}),
    }  # fmt: skip
    found: JsonObject = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata}
    pod = {"containers": [{"name": "c", "image": "i"}]}
    if kind == PODS:
        found["spec"] = pod
    elif kind.api_version in ("batch/v1", "apps/v1"):  # the server itself requires the rest
        template = {"metadata": {}, "spec": pod}
        wrapped = {"schedule": "* * * * *", "jobTemplate": {"spec": {"template": template}}}
        found["spec"] = wrapped if kind.kind == "CronJob" else {"template": template, "selector": {}}
    return found


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("mode", [ClusterMode.SCHEDULE, ClusterMode.OBSERVE])
def test_half_written_objects_stop_nothing(server: ServerThread, mode: ClusterMode) -> None:
    system = System(server)
    system.cluster.mode = mode
    system.cluster.serves_kueue_objects = True
    system.cluster.save()
    watcher = Watcher(system.cluster, system.client, clock=system.now)
    for kind in watcher.kinds:
        watcher.apply([(kind, Listing((bare(kind),), "5"))])
        labelled = bare(kind)
        labelled["metadata"]["labels"] = {"kueue.x-k8s.io/queue-name": "queue"}
        labelled["metadata"]["resourceVersion"] = "6"
        watcher.apply([(kind, Listing((labelled,), "6"))])
        watcher.apply([(kind, Listing(({"spec": {}, **labelled, "status": {}},), "7"))])
    watcher.tick()


@pytest.mark.django_db(transaction=True)
def test_a_watcher_lives_through_changes_of_the_mode(server: ServerThread) -> None:
    """One process all the while: what it follows changes with the mode, and nothing is left of the mode before."""
    kueue = KueueCluster(server)
    configure_kueue(kueue)
    watcher, stopped = Watcher(kueue.cluster, kueue.client, 1.0), threading.Event()
    kueue.look()
    assert ClusterQueue.objects.count() == 1
    rows = Cluster.objects.filter(pk=kueue.cluster.pk)
    assert any(kind.kind == "ClusterQueue" for kind in watcher.kinds)
    rows.update(mode=ClusterMode.SCHEDULE)
    watcher.resync()
    assert not any(kind.kind == "ClusterQueue" for kind in watcher.kinds)
    kueue.kueue("Cohort", "later", {})
    watcher.resync()
    assert not stopped.is_set()
    rows.update(serves_kueue_objects=True)
    watcher.resync()
    assert any(kind.kind == "ClusterQueue" for kind in watcher.kinds)
    rows.update(mode=ClusterMode.SHADOW)
    watcher.resync()
    watcher.resync()
    assert watcher.kinds == Watcher(Cluster.objects.get(), kueue.client).kinds


@pytest.mark.django_db(transaction=True)
def test_a_kind_that_goes_and_comes_back(server: ServerThread) -> None:
    """A CRD is removed under us, as by an uninstallation, and installed again."""
    served = ServedCluster(server)
    configure(served)
    served.settle()
    name = "cohorts.kueue.x-k8s.io"
    crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    served.send("DELETE", f"{crds}/{name}", None)
    served.settle()
    served.cluster.refresh_from_db()
    assert "Cohort" in served.cluster.missing_kinds
    assert ClusterQueue.objects.get().cohort_name == "company"
    [cohorts] = [each for each in RESOURCES if (each.kind, each.api_version) == ("Cohort", served.version)]
    served.send("POST", crds, crd_of(cohorts))
    served.settle()
    served.cluster.refresh_from_db()
    assert "Cohort" not in served.cluster.missing_kinds
    served.apply("Cohort", "new", {"spec": {"parentName": "company"}})
    served.settle()
    assert Cohort.objects.get(name="new").parent_name == "company"


class HangingSurroundings(FixedSurroundings):
    """As if each question to the database hung until it is let go."""

    def __init__(self) -> None:
        super().__init__(NO_CLUSTER)
        self.let_go = threading.Event()

    def observes_only(self) -> bool:
        self.let_go.wait(60)
        return True


async def answered(application: WebhookApplication, path: str, method: str, body: bytes = b"") -> int:
    """The status that the API server gets."""
    sent: list[Any] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body}

    async def send(message: Any) -> None:
        sent.append(message)

    await application({"type": "http", "path": path, "method": method, "headers": []}, receive, send)
    return int(sent[0]["status"])


def test_a_database_that_hangs_is_an_answer_of_the_webhook() -> None:
    """More reviews hung than it has threads: none was answered any more, and the API server waited its whole limit."""
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"namespace": "team", "name": "train"}, "spec": {}}
    request = {
        "uid": "1",
        "kind": {"group": "batch", "version": "v1", "kind": "Job"},
        "namespace": "team",
        "name": "train",
        "operation": "CREATE",
        "userInfo": {"username": "alice"},
        "object": job,
    }
    body = orjson.dumps({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request})
    surroundings = HangingSurroundings()
    application = WebhookApplication(Admission(surroundings), answer_seconds=0.2)

    async def ask() -> list[int]:
        hanging = await asyncio.gather(*(answered(application, "/mutate/jobs", "POST", body) for _ in range(12)))
        healthy = await answered(application, "/healthz", "GET")
        surroundings.let_go.set()
        return [*hanging, healthy]

    # A 500 is for the failurePolicy: closed for what names a queue, open for all else.
    assert asyncio.run(ask()) == [500] * 12 + [200]
    patient = WebhookApplication(Admission(surroundings), answer_seconds=30)
    assert asyncio.run(answered(patient, "/mutate/jobs", "POST", body)) == 200
    assert ANSWER_SECONDS < TIMEOUT_SECONDS


@pytest.mark.parametrize("written", ["1999-01-01T00:00:00.000000Z", "2099-01-01T00:00:00.000000Z"])
def test_the_clock_of_a_leases_holder_is_not_compared_with_ours(written: str) -> None:
    """A holder whose clock is years off lives while its lease changes, and is dead when it does not."""
    now = 100.0
    watch = LeaseWatch(lambda: now)
    spec = {"holderIdentity": "kueue-1", "renewTime": written}
    assert watch.look({"spec": spec}) == 0
    now += 40
    assert watch.look({"spec": spec}) == 40
    assert watch.look({"spec": {**spec, "renewTime": written.replace("00:00:00", "00:00:10")}}) == 0
