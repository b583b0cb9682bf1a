"""Mode shadow: recorded scenarios, replayed as a cluster that Kueue runs, are decided by us as they were by Kueue."""

from __future__ import annotations

import gzip
import itertools
import json
import operator
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from accounts.models import ClusterMode
from clusters.api_objects import JsonObject, Kind
from clusters.client import ClusterClient, Listing, WatchEvent
from clusters.served.kueue_kinds import KUEUE_KINDS
from clusters.sync.watcher import Watcher
from queues.models import MirroredChange
from queues.services.admission_rows import write_topology_assignment
from scheduler.leader.observer import Observer
from scheduler.models import ShadowCount, ShadowDifference
from scheduling.model.quantity import format_amount
from scheduling.model.times import rfc3339
from scheduling.model.workload import Workload
from scheduling.shadow.comparisons import PATIENCE_SECONDS
from scheduling.simulator.simulator import EPOCH
from tests.clusters.kueue_cluster import PENDING, KueueCluster, admitted, condition, configure, workload
from tests.scheduling.other_scheduler import OtherScheduler
from tests.simulated_cluster import ServerThread, make_simulated
from tests.users import client_of, make_user

pytestmark = pytest.mark.django_db(transaction=True)

RECORDED = Path(__file__).resolve().parents[1] / "conformance" / "kueue"
KINDS = {
    "namespaces": "Namespace",
    "resourceFlavors": "ResourceFlavor",
    "cohorts": "Cohort",
    "clusterQueues": "ClusterQueue",
    "localQueues": "LocalQueue",
}


@pytest.fixture
def server() -> Iterator[ServerThread]:
    with ServerThread(make_simulated(nodes=None)) as server:
        yield server


def scenario(family: str, index: int) -> JsonObject:
    with gzip.open(RECORDED / f"{family}.json.gz") as file:
        found: JsonObject = json.load(file)[index]["scenario"]
    return found


def status_of(workload: Workload) -> JsonObject:
    """The status as Kueue writes it."""
    conditions = [
        {
            "type": each.type.value,
            "status": each.status.value,
            "reason": str(each.reason),
            "message": each.message,
            "lastTransitionTime": rfc3339(each.last_transition_time),
        }
        for each in workload.conditions.values()
    ]
    if workload.admission is None:
        return {"conditions": conditions, "admission": None}
    given: list[JsonObject] = []
    for each in workload.admission.pod_set_assignments:
        usage = {name: format_amount(name, amount) for name, amount in each.resource_usage.items()}
        found = {"name": each.name, "count": each.count, "flavors": dict(each.flavors), "resourceUsage": usage}
        topology = write_topology_assignment(each)
        given.append(found | ({"topologyAssignment": topology} if topology else {}))
    admission = {"clusterQueue": workload.admission.cluster_queue, "podSetAssignments": given}
    return {"conditions": conditions, "admission": admission}


class _AsRecorded:
    """The client of a replayed cluster: workloads have the uids and creation times by which Kueue broke ties."""

    def __init__(self, client: ClusterClient, manifests: Iterable[JsonObject]) -> None:
        self.server, self.served, self.get = client.server, client.served, client.get
        self._client = client
        self._metadata = {each["metadata"]["name"]: each["metadata"] for each in manifests}

    def reading(self) -> _AsRecorded:
        """Itself: nothing is written to a cluster that is only followed."""
        return self

    def list(self, kind: Kind, namespace: str = "", **selectors: str) -> Listing:
        found = self._client.list(kind, namespace, **selectors)
        if kind.kind != "Workload":
            return found
        return Listing(tuple(self.recorded(each) for each in found.items), found.resource_version)

    def recorded(self, obj: JsonObject) -> JsonObject:
        recorded = self._metadata.get(obj["metadata"]["name"], {})
        kept = {key: recorded[key] for key in ("uid", "creationTimestamp") if key in recorded}
        return {**obj, "metadata": {**obj["metadata"], **kept}}


class Replay:
    """A recorded scenario as a live cluster: the watcher hears each change of Kueue's Workloads, and all of an instant
    at once."""

    def __init__(self, server: ServerThread, found: JsonObject) -> None:
        self.kueue = KueueCluster(server, mode=ClusterMode.SHADOW)
        for key in KINDS:
            for manifest in found.get(key) or ():
                self.kueue.write(manifest)
        self.manifests = {
            f"{each['metadata']['namespace']}/{each['metadata']['name']}": each for each in found["workloads"]
        }
        self._client = _AsRecorded(self.kueue.client, self.manifests.values())
        client: Any = self._client
        self.kueue.watcher = Watcher(self.kueue.cluster, client, clock=lambda: self._now + self._later)
        self._instants = itertools.groupby(OtherScheduler(found).changes(), key=operator.itemgetter(0))
        self._now = EPOCH
        self._later = 0.0
        self._last: dict[str, JsonObject] = {}
        self.kueue.observer = Observer(self.kueue.cluster, "test", clock=lambda: self._now + self._later)
        self.kueue.look()
        self.kueue.observer.run()  # it begins beside the rows as they are

    def run(self, *, instants: int) -> None:
        for self._now, changes in itertools.islice(self._instants, instants):  # noqa: B020  # the clock reads it
            self.hear(*(self._written(key, workload) for _, key, workload in changes))

    def _written(self, key: str, workload: Workload | None) -> WatchEvent:
        manifest = self.manifests[key]
        if workload is None:
            self.kueue.delete(manifest)
            return WatchEvent("DELETED", self._last.pop(key))
        return self.write({**manifest, "status": status_of(workload)})

    def write(self, manifest: JsonObject) -> WatchEvent:
        found = self._client.recorded(self.kueue.write(manifest))
        self._last[f"{found['metadata']['namespace']}/{found['metadata']['name']}"] = found
        return WatchEvent("MODIFIED", found)

    def watch(self, *events: WatchEvent, later: float = 0.0) -> None:
        """The watcher hears all of it in one batch, so many seconds after what was heard before."""
        self._later += later
        (kind, *_) = KUEUE_KINDS["Workload"]
        self.kueue.watcher.apply([(kind, event) for event in events])

    def hear(self, *events: WatchEvent) -> None:
        """All of it in one batch; and more when nothing has changed, until no later change can explain a difference."""
        self.watch(*events)
        for later in (0.0, 0.9, PATIENCE_SECONDS + 2):
            self._later = later
            self.kueue.observer.run()


@pytest.mark.parametrize(("family", "index"), [("basic", 0), ("preempt", 0), ("borrow", 1), ("fungibility", 0)])
def test_a_recorded_scenario_is_decided_as_it_was(server: ServerThread, family: str, index: int) -> None:
    replay = Replay(server, scenario(family, index))
    replay.run(instants=12)
    assert list(ShadowDifference.objects.values_list("workload_name", "verdict", "theirs", "ours")) == []
    assert sum(ShadowCount.objects.values_list("agreed", flat=True)) > 5
    assert server.guard.refused == []


def test_a_difference_is_shown_with_both_reasons(server: ServerThread) -> None:
    """Kueue starts the workload that came later and leaves the first one: no rule of ours explains that."""
    found = scenario("basic", 0)
    replay = Replay(server, found)
    replay.run(instants=2)
    counted = sum(ShadowCount.objects.values_list("agreed", flat=True))
    queue: dict[str, Any] = {"queueName": found["workloads"][0]["spec"]["queueName"]}
    template = {"spec": {"containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "900"}}}]}}
    spec = {**queue, "priority": 0, "podSets": [{"name": "main", "count": 1, "template": template}]}
    made = replay.kueue.kueue("Workload", "impossible", spec, "team")
    given = {"name": "main", "count": 1, "flavors": {"cpu": "default"}, "resourceUsage": {"cpu": "900"}}
    local = next(each for each in found["localQueues"] if each["metadata"]["name"] == queue["queueName"])
    at = datetime.fromtimestamp(replay._now, UTC).isoformat()
    condition = {"type": "QuotaReserved", "status": "True", "reason": "QuotaReserved", "message": "by magic"}
    admission = {"clusterQueue": local["spec"]["clusterQueue"], "podSetAssignments": [given]}
    status = {"conditions": [{**condition, "lastTransitionTime": at}], "admission": admission}
    replay._now += 60
    replay.hear(replay.write({**made, "status": status}))
    difference = ShadowDifference.objects.get()
    assert (difference.workload_name, difference.verdict) == ("impossible", "OnlyTheirs")
    assert (difference.theirs["act"], difference.theirs["message"]) == ("Reserve", "by magic")
    assert difference.ours["act"] == "Wait"
    assert "at most 12 cores possible" in difference.ours["message"]

    client = client_of(make_user("alice"))
    shown = client.get("/api/v1/shadow/differences/").json()["results"]
    assert [(row["workload_name"], row["ours"]["reason"]) for row in shown] == [
        ("impossible", difference.ours["reason"])
    ]
    summary = client.get("/api/v1/shadow/?hours=744").json()
    assert client.get("/api/v1/shadow/?hours=0").status_code == 400
    assert set(summary) == {"since", "agreement", "totals", "points", "clusters"}
    assert counted > 0
    assert client_of(make_user("bob")).get("/api/v1/shadow/").status_code == 403


def test_what_happened_between_two_looks_is_compared_change_by_change(server: ServerThread) -> None:
    """A workload came, got its quota and ended, and another one with its quota, before the leader looked again. The
    rows say of both how they are now."""
    replay = Replay(server, {"workloads": []})
    kueue = replay.kueue
    configure(kueue)
    kueue.look()
    kueue.observer.run()
    given = admitted(kueue, with_topology=False)
    ended = {**given, "conditions": [*given["conditions"], condition("Finished", "True", "Succeeded")]}
    events = []
    for name in ("first", "second"):
        states = (PENDING, given, ended) if name == "first" else (PENDING, given)
        events += [WatchEvent("MODIFIED", workload(kueue, name, status)) for status in states]
    kueue.advance(5)
    replay.hear(*events)
    replay.hear()
    assert list(ShadowDifference.objects.values_list("workload_name", "verdict", "ours")) == []
    assert sum(ShadowCount.objects.values_list("agreed", flat=True)) == 2
    assert not MirroredChange.objects.exists(), "what was heard is forgotten"


def test_changes_that_waited_for_the_leader_count_from_when_they_happened(server: ServerThread) -> None:
    """Two workloads could start; the other scheduler starts both a second later, and the leader looks after half a
    minute."""
    replay = Replay(server, {"workloads": []})
    kueue = replay.kueue
    configure(kueue)
    kueue.look()
    kueue.observer.run()
    given = admitted(kueue, with_topology=False)
    names = ("first", "second")
    replay.hear(*(WatchEvent("MODIFIED", workload(kueue, name, PENDING)) for name in names))
    for name in names:
        replay.watch(WatchEvent("MODIFIED", workload(kueue, name, given)), later=0.5)
    replay.watch(later=30.0)
    kueue.observer.run()
    assert list(ShadowDifference.objects.values_list("workload_name", "verdict")) == []
    assert sum(ShadowCount.objects.values_list("agreed", flat=True)) == 2
