"""Kueue's events in a cluster whose Kueue objects are ours to serve: on Workloads, jobs and pods, once each."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
from django.conf import LazySettings

from clusters.api_objects import EVENTS, JsonObject
from clusters.push.event_recorder import EventRecorder, Regarding
from queues.models import Workload
from queues.services.workloads import hold
from tests.clusters.served_cluster import ServedCluster, configure
from tests.clusters.test_served_workloads import queued
from tests.simulated_cluster import ServerThread, make_simulated, pod

pytestmark = pytest.mark.django_db(transaction=True)
AT = datetime(2026, 1, 1, tzinfo=UTC)
LABELS = {"pod-group-name": "group", "queue-name": "local", "managed": "true"}
WORKER = Regarding("v1", "Pod", "team", "worker", "uid-1")


@pytest.fixture
def server() -> Iterator[ServerThread]:
    with ServerThread(make_simulated()) as server:
        yield server


def our_events(served: ServedCluster) -> list[JsonObject]:
    return [each for each in served.client.list(EVENTS).items if each["source"]["component"] == "kueueweb"]


def events_of(served: ServedCluster, kind: str, name: str) -> list[JsonObject]:
    wanted = {"kind": kind, "name": name}
    return [each for each in our_events(served) if wanted.items() <= each["involvedObject"].items()]


def told(served: ServedCluster, kind: str, name: str) -> dict[str, str]:
    return {each["reason"]: each["message"] for each in events_of(served, kind, name)}


def test_a_life_is_told_on_the_workload_and_on_its_job(server: ServerThread) -> None:
    served = ServedCluster(server)
    configure(served)
    served.settle()
    made = queued(served, "runs")
    served.settle(4)
    row = Workload.objects.get()
    on_workload = told(served, "Workload", row.name)
    assert on_workload["QuotaReserved"].startswith("Quota reserved in ClusterQueue main, wait time since queued was ")
    assert on_workload["Admitted"] == "Admitted by ClusterQueue main, wait time since reservation was 0s"
    assert told(served, "Job", "runs") == {
        "CreatedWorkload": f"Created Workload: team/{row.name}", "Started": "Admitted by clusterQueue main",
    }  # fmt: skip
    assert {each["involvedObject"]["uid"] for each in events_of(served, "Job", "runs")} == {made["metadata"]["uid"]}
    hold(served.cluster, [("team", row.name)], actor="alice")
    served.settle(4)
    [stopped] = [each for each in events_of(served, "Job", "runs") if each["reason"] == "Stopped"]
    assert stopped["message"] == told(served, "Workload", row.name)["EvictedDueToDeactivated"]
    said = [(each["reason"], each["message"]) for each in events_of(served, "Workload", row.name)]
    assert len(set(said)) == len(said)
    before = our_events(served)
    served.settle()
    assert our_events(served) == before  # nothing happens, and nothing is told


def make_member(served: ServedCluster, name: str) -> None:
    """A pod of a group of two, as the webhook leaves it."""
    notes = {"kueue.x-k8s.io/pod-group-total-count": "2", "kueueweb.io/run-seconds": "6000"}
    gates = [{"name": "kueue.x-k8s.io/admission"}]
    member = pod(name, requests={"cpu": "1"}, annotations=notes, schedulingGates=gates)
    labels = {f"kueue.x-k8s.io/{key}": value for key, value in LABELS.items()}
    member["metadata"] |= {"namespace": "team", "labels": labels, "finalizers": ["kueue.x-k8s.io/managed"]}
    served.send("POST", "/api/v1/namespaces/team/pods", member)


def test_a_pod_that_its_group_has_no_place_for_is_told_so(server: ServerThread) -> None:
    served = ServedCluster(server)
    configure(served)
    served.settle()
    for name in ("a", "b"):
        make_member(served, name)
    served.settle(4)
    make_member(served, "c")
    served.settle(4)
    assert told(served, "Pod", "c")["ExcessPodDeleted"] == "Excess pod deleted"
    assert not any("ExcessPodDeleted" in told(served, "Pod", name) for name in ("a", "b"))


def test_a_pod_is_told_before_it_is_stopped_although_other_events_wait(server: ServerThread) -> None:
    """A second passes between two writes of other events, and the watcher deletes the row of a pod that is gone."""
    served = ServedCluster(server)
    configure(served)
    served.settle()
    for name in ("a", "b"):
        make_member(served, name)
    served.settle(4)
    served.push()
    make_member(served, "c")
    for _ in range(3):
        served.watch()
        served.engine.run()
        served.push()
    assert not served.exists("Pod", "c", "team")
    assert told(served, "Pod", "c")["ExcessPodDeleted"] == "Excess pod deleted"
    before = our_events(served)
    served.settle()
    assert our_events(served) == before


def test_the_pods_of_a_group_are_told_each(server: ServerThread) -> None:
    served = ServedCluster(server)
    configure(served)
    served.settle()
    for name in ("a", "b"):
        make_member(served, name)
    served.settle(5)
    row = Workload.objects.get()
    assert row.status == "Admitted"
    assert [told(served, "Pod", name).get("Started") for name in ("a", "b")] == ["Admitted by clusterQueue main"] * 2
    hold(served.cluster, [("team", row.name)], actor="alice")
    served.settle(4)
    message = told(served, "Workload", row.name)["EvictedDueToDeactivated"]
    assert [told(served, "Pod", name).get("Stopped") for name in ("a", "b")] == [message] * 2


def test_one_that_waits_says_why(server: ServerThread) -> None:
    served = ServedCluster(server)
    configure(served)
    served.settle()
    queued(served, "large", "100")
    served.settle(4)
    [pending] = [
        each for each in events_of(served, "Workload", Workload.objects.get().name) if each["type"] == "Warning"
    ]
    assert pending["reason"] == Workload.objects.get().reason
    assert pending["message"] == Workload.objects.get().message


def test_nothing_is_told_where_events_are_switched_off(server: ServerThread, settings: LazySettings) -> None:
    settings.KUBERNETES_EVENTS = False
    served = ServedCluster(server)
    configure(served)
    served.settle()
    queued(served, "runs")
    served.settle(4)
    assert Workload.objects.get().status == "Admitted"
    assert not told(served, "Workload", Workload.objects.get().name)
    assert not told(served, "Job", "runs")


def test_an_event_that_comes_again_is_counted(server: ServerThread) -> None:
    served = ServedCluster(server)
    served.apply("Namespace", "team", {})
    for second in range(3):
        EventRecorder(served.client).record(WORKER, "Waits", "no quota", AT + timedelta(seconds=second), warning=True)
    [event] = events_of(served, "Pod", "worker")
    assert (event["type"], event["reason"], event["message"], event["count"]) == ("Warning", "Waits", "no quota", 3)
    assert (event["firstTimestamp"], event["lastTimestamp"]) == ("2026-01-01T00:00:00Z", "2026-01-01T00:00:02Z")
    served.send("DELETE", f"/api/v1/namespaces/team/events/{event['metadata']['name']}", None)  # it has expired
    EventRecorder(served.client).record(WORKER, "Waits", "no quota", AT + timedelta(seconds=5), warning=True)
    assert [each["count"] for each in events_of(served, "Pod", "worker")] == [1]


def test_many_similar_events_are_combined_and_an_object_has_so_many_only(server: ServerThread) -> None:
    served = ServedCluster(server)
    served.apply("Namespace", "team", {})
    regarding = Regarding("v1", "Pod", "team", "busy", "uid-2")
    for number in range(40):
        EventRecorder(served.client).record(regarding, "Waits", f"{number} cores are needed", AT)
    events = events_of(served, "Pod", "busy")
    assert len(events) == 11  # ten of their own, and one for the rest
    assert sum(each["count"] for each in events) == 25
    [combined] = [each for each in events if each["message"].startswith("(combined from similar events): ")]
    assert combined["count"] == 15
