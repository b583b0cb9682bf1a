"""The requests of a Job's start in a cluster where kueueweb serves Kueue's objects: their number and their order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.conf import LazySettings

from clusters.api_errors import ClusterError, ClusterUnreachable
from clusters.api_objects import EVENTS, PODS, JsonObject, Kind
from clusters.client import ClusterClient, Listing
from clusters.jobs.registry import JOB_KINDS
from clusters.push.kueue_objects import served_workloads
from clusters.push.kueue_objects.serving import serve
from clusters.push.sweep import push_pending
from foundation.redis_client import redis_client
from queues.models import ServedObject, Workload
from tests.clusters.served_cluster import ServedCluster, configure
from tests.clusters.test_served_workloads import conditions, queued
from tests.simulated_cluster import ServerThread, make_simulated

pytestmark = pytest.mark.django_db(transaction=True)

FEW, MANY = 2, 12
REQUESTS = {
    "POST workloads": 1, "PATCH workloads/status": 1, "PATCH jobs": 1, "POST events": 4,
}  # fmt: skip
"""Of each further Job of a batch that starts at once. The statuses of its queues are those of the batch."""
TOLD = ("CreatedWorkload", "QuotaReserved", "Admitted", "Started")
JOBS = JOB_KINDS["Job"].resource
PUSHES = "kueueweb:celery:push"


@pytest.fixture
def server() -> Iterator[ServerThread]:
    with ServerThread(make_simulated()) as server:
        yield server


@pytest.fixture
def served(server: ServerThread) -> ServedCluster:
    served = ServedCluster(server)
    configure(served)
    served.settle()
    return served


def kind_of(request: str) -> str:
    """The verb and the resource of a request, with its subresource."""
    method, _, path = request.partition(" ")
    parts = path.split("/")
    at = next((index for index, part in enumerate(parts) if part in _RESOURCES), None)
    if at is None:
        return request
    return f"{method} {'/'.join([parts[at], *parts[at + 2 :]])}"


_RESOURCES = {"workloads", "jobs", "events", "localqueues", "clusterqueues", "cohorts"}


def start(served: ServedCluster, prefix: str, count: int) -> list[str]:
    """Have so many Jobs found and decided, and return the requests of the sweep that starts them."""
    for number in range(count):
        queued(served, f"{prefix}-{number}", "100m")
    served.advance(2)
    served.watch()
    served.engine.run()
    served.server.guard.requests.clear()
    served.push()
    return [kind_of(each) for each in served.server.guard.requests]


def told(served: ServedCluster) -> dict[str, int]:
    """The numbers of Kueue's events of starts, by reason."""
    ours = [each for each in served.client.list(EVENTS).items if each["source"]["component"] == "kueueweb"]
    found = Counter(each["reason"] for each in ours)
    return {reason: found[reason] for reason in TOLD}


def suspended(served: ServedCluster) -> int:
    return sum(bool(each["spec"].get("suspend")) for each in served.client.list(JOBS).items)


def test_each_further_job_costs_the_requests_that_kueues_objects_need(served: ServedCluster) -> None:
    start(served, "warm", FEW)
    few = Counter(start(served, "few", FEW))
    many = Counter(start(served, "many", MANY))
    assert suspended(served) == 0
    each = {kind: (many[kind] - few[kind]) / (MANY - FEW) for kind in many | few if many[kind] != few[kind]}
    assert each == REQUESTS


def test_a_job_starts_after_its_admission_is_shown_and_before_all_else(served: ServedCluster) -> None:
    requests = start(served, "runs", FEW)
    first = {kind: requests.index(kind) for kind in requests}
    last = {kind: number for number, kind in enumerate(requests)}
    assert last["PATCH workloads/status"] < first["PATCH jobs"]
    assert last["PATCH jobs"] < min(first[kind] for kind in ("PATCH clusterqueues/status", "PATCH localqueues/status"))
    assert last["PATCH jobs"] < first["POST events"]


def test_a_workload_gets_one_more_status_when_its_pods_are_ready(served: ServedCluster) -> None:
    start(served, "runs", FEW)
    served.server.guard.requests.clear()
    served.settle(4)
    later = Counter(kind_of(each) for each in served.server.guard.requests)
    writes = {kind: count for kind, count in later.items() if "workloads" in kind and not kind.startswith("GET")}
    assert writes == {"PATCH workloads/status": FEW}


def test_a_flood_is_written_in_several_sweeps_and_loses_no_event(
    served: ServedCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(served_workloads, "_SWEEP_SECONDS", 0.0)
    monkeypatch.setattr(served_workloads, "_CHUNK", 2)
    start(served, "many", 5)
    assert suspended(served) == 3, "the others start after their objects show their admission"
    served.push()
    served.push()
    assert suspended(served) == 0
    rows = Workload.objects.all()
    assert ServedObject.objects.filter(kind="Workload").count() == len(rows) == 5
    served.settle(4)
    for row in rows:
        assert conditions(served.get("Workload", row.name, "team"))["Admitted"][0] == "True"
    assert told(served) == dict.fromkeys(TOLD, 5)


class ClientInFront:
    """A client of the tests that passes requests on."""

    def __init__(self, client: ClusterClient) -> None:
        self._client = client

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)


class SilentAboutEvents(ClientInFront):
    """Gets no answer to an event."""

    def create(self, kind: Kind, item: JsonObject) -> JsonObject:
        if kind == EVENTS:
            raise ClusterUnreachable("no answer")
        return self._client.create(kind, item)


def test_events_that_get_no_answer_are_written_later(served: ServedCluster) -> None:
    for number in range(FEW):
        queued(served, f"runs-{number}", "100m")
    served.watch()
    served.engine.run()
    silent: Any = SilentAboutEvents(served.client)
    push_pending(served.cluster, silent, served.now)
    assert suspended(served) == 0, "a job does not wait for events"
    assert told(served) == dict.fromkeys(TOLD, 0)
    served.advance(1)
    served.push()
    assert told(served) == dict.fromkeys(TOLD, FEW)


class BusyMeanwhile(ClientInFront):
    """Has something done between the writes of workloads and of events: when it writes the status of a queue."""

    def __init__(self, client: ClusterClient, meanwhile: Callable[[], object]) -> None:
        super().__init__(client)
        self._meanwhile: list[Callable[[], object]] = [meanwhile]

    def apply(self, kind: Kind, item: JsonObject, **options: Any) -> JsonObject:
        if kind.kind == "LocalQueue" and self._meanwhile:
            self._meanwhile.pop()()
        return self._client.apply(kind, item, **options)


def test_events_of_a_workload_that_is_decided_during_a_sweep_wait_for_its_object(served: ServedCluster) -> None:
    queued(served, "first", "100m")
    served.watch()
    served.engine.run()

    def second() -> None:
        queued(served, "second", "100m")
        served.watch()
        served.engine.run()

    busy: Any = BusyMeanwhile(served.client, second)
    push_pending(served.cluster, busy, served.now)
    assert Workload.objects.filter(status="Admitted").count() == FEW
    assert told(served) == dict.fromkeys(TOLD, 1)
    served.advance(1)
    served.push()
    assert told(served) == dict.fromkeys(TOLD, FEW)


def test_what_no_job_waits_for_is_written_once_a_second_and_then_by_a_push_of_its_own(served: ServedCluster) -> None:
    start(served, "first", 1)
    before = served.get("LocalQueue", "local", "team")["status"]["reservingWorkloads"]
    queued(served, "second", "100m")
    served.watch()
    served.engine.run()
    redis_client().delete(PUSHES, *redis_client().keys("kueueweb:wake:*"))
    served.push()
    assert suspended(served) == 0
    assert served.get("LocalQueue", "local", "team")["status"]["reservingWorkloads"] == before
    assert told(served) == dict.fromkeys(TOLD, 1)
    assert redis_client().llen(PUSHES) == 1, "a push is asked for, which writes the rest"
    served.advance(1)
    redis_client().delete(PUSHES, *redis_client().keys("kueueweb:wake:*"))
    served.push()
    assert served.get("LocalQueue", "local", "team")["status"]["reservingWorkloads"] == before + 1
    assert told(served) == dict.fromkeys(TOLD, FEW)
    assert redis_client().llen(PUSHES) == 0


def asked_pushes(served: ServedCluster, clock: Any = None) -> int:
    """Run one sweep, and return the number of pushes that it asks for."""
    redis_client().delete(PUSHES, *redis_client().keys("kueueweb:wake:*"))
    push_pending(served.cluster, clock=clock or served.now)
    return int(redis_client().llen(PUSHES))


def decided(served: ServedCluster, count: int) -> None:
    for number in range(count):
        queued(served, f"many-{number}", "100m")
    served.advance(2)
    served.watch()
    served.engine.run()


def test_jobs_that_are_left_for_the_next_sweep_ask_for_it(
    served: ServedCluster, monkeypatch: pytest.MonkeyPatch, settings: LazySettings
) -> None:
    settings.KUBERNETES_EVENTS = False
    monkeypatch.setattr(served_workloads, "_SWEEP_SECONDS", 0.0)
    monkeypatch.setattr(served_workloads, "_CHUNK", 2)
    decided(served, 3)
    assert asked_pushes(served) == 1
    assert suspended(served) == 1
    served.advance(2)
    served.push()
    assert suspended(served) == 0


def test_before_a_kueue_takes_over_all_workloads_are_written_at_once(
    served: ServedCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(served_workloads, "_SWEEP_SECONDS", 0.0)
    monkeypatch.setattr(served_workloads, "_CHUNK", 2)
    decided(served, 7)
    serve(served.cluster, served.client, served.now)
    for row in Workload.objects.all():
        assert conditions(served.get("Workload", row.name, "team"))["Admitted"][0] == "True"


def test_statuses_that_changed_while_a_sweep_began_are_written_by_it_or_asked_for(served: ServedCluster) -> None:
    decided(served, 1)
    began = served.now()
    assert asked_pushes(served, lambda: began) == 0
    queued(served, "second", "100m")
    served.watch()
    served.engine.run()
    clock = iter([began + 0.5] * 2 + [began + 1.25] * 100)
    assert asked_pushes(served, lambda: next(clock)) == 0
    assert served.get("LocalQueue", "local", "team")["status"]["reservingWorkloads"] == 2


class RefusesPods:
    """A client that may not list pods."""

    def __init__(self, client: ClusterClient) -> None:
        self._client = client

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    def list(self, kind: Kind, *arguments: Any, **selectors: Any) -> Listing:
        if kind == PODS:
            raise ClusterError(403, "Forbidden", "pods is forbidden")
        return self._client.list(kind, *arguments, **selectors)


def test_statuses_and_events_are_written_although_pods_may_not_be_listed(served: ServedCluster) -> None:
    decided(served, 1)
    refusing: Any = RefusesPods(served.client)
    push_pending(served.cluster, refusing, served.now)
    served.watch()
    served.advance(2)
    before = told(served)
    queued(served, "second", "100m")
    served.watch()
    served.engine.run()
    push_pending(served.cluster, refusing, served.now)
    assert served.get("LocalQueue", "local", "team")["status"]["reservingWorkloads"] == 2
    assert told(served) == {reason: count + 1 for reason, count in before.items()}
