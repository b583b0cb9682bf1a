"""Kueue's objects where they are ours to serve: kubectl changes our rows, and edits here are written there."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from accounts.models import AuditRecord
from clusters.api_objects import EVENTS
from clusters.push.kueue_objects.served_status import tell_status
from clusters.served.kueue_kinds import KUEUE_KINDS
from queues.kinds import KINDS
from queues.models import (
    ClusterQueue,
    Cohort,
    FlavorQuota,
    LocalQueue,
    ProvisioningRequestConfig,
    ResourceFlavor,
    ServedObject,
    Topology,
    WorkloadPriorityClass,
)
from queues.services.configuration import apply_json, delete_object
from tests.clusters.kueue_cluster import V1BETA1, V1BETA2
from tests.clusters.served_cluster import ServedCluster, configure, queue_spec
from tests.factories import make_workload
from tests.simulated_cluster import ServerThread, make_simulated

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def server() -> Iterator[ServerThread]:
    with ServerThread(make_simulated()) as server:
        yield server


def edit(served: ServedCluster, cpu: str) -> None:
    """An edit over REST."""
    quota = {"name": "cpu", "nominal_quota": cpu}
    groups = {"resource_groups": [{"covered_resources": ["cpu"], "flavors": [{"name": "plain", "resources": [quota]}]}]}
    apply_json(served.cluster, KINDS["ClusterQueue"], groups, name="main", actor="alice", merge=True)


def quota_there(served: ServedCluster) -> str:
    group = served.get("ClusterQueue", "main")["spec"]["resourceGroups"][0]
    return str(group["flavors"][0]["resources"][0]["nominalQuota"])


def quota_here() -> int:
    return FlavorQuota.objects.get(flavor="plain").nominal_quota


@pytest.mark.parametrize("version", [V1BETA2, V1BETA1])
def test_what_kubectl_applies_is_here(server: ServerThread, version: str) -> None:
    served = ServedCluster(server, version)
    configure(served)
    served.watch()
    assert (quota_here(), ClusterQueue.objects.get().cohort_name) == (4000, "company")
    assert ResourceFlavor.objects.get().node_labels == {"gpu": "on"}
    assert (LocalQueue.objects.get().key, Cohort.objects.get().name) == ("team/local", "company")
    assert WorkloadPriorityClass.objects.get().value == 1000
    served.patch("WorkloadPriorityClass", "high", {"value": 7})
    served.watch()
    assert WorkloadPriorityClass.objects.get().value == 7
    assert ClusterQueue.objects.get().changed_by == "kubectl in the cluster"


@pytest.mark.parametrize("version", [V1BETA2, V1BETA1])
def test_what_is_edited_here_is_there(server: ServerThread, version: str) -> None:
    served = ServedCluster(server, version)
    configure(served)
    served.settle()
    edit(served, "6")
    apply_json(served.cluster, KINDS["Cohort"], {"parent": ""}, name="other", actor="alice")
    apply_json(served.cluster, KINDS["LocalQueue"], {"cluster_queue": "main"}, name="new", namespace="team", actor="al")
    served.turn()
    assert quota_there(served) == "6"
    assert served.exists("Cohort", "other")
    assert served.get("LocalQueue", "new", "team")["spec"]["clusterQueue"] == "main"
    assert "kueue.x-k8s.io/resource-in-use" in served.get("ClusterQueue", "main")["metadata"]["finalizers"]
    delete_object(served.cluster, "Cohort", "other", actor="alice")
    served.turn()
    assert not served.exists("Cohort", "other")
    assert not ServedObject.objects.filter(name="other").exists()


def test_what_we_write_comes_back_and_nothing_is_written_again(server: ServerThread) -> None:
    served = ServedCluster(server)
    configure(served)
    served.settle()
    edit(served, "6")
    served.settle()
    versions, generations = served.versions(), dict(ClusterQueue.objects.values_list("name", "generation"))
    served.settle(5)
    assert served.versions() == versions
    assert dict(ClusterQueue.objects.values_list("name", "generation")) == generations
    assert set(ServedObject.objects.values_list("problem", flat=True)) == {""}


@pytest.mark.parametrize("later", ["here", "there"])
def test_the_later_of_two_edits_stands_and_the_loser_is_told(server: ServerThread, later: str) -> None:
    served = ServedCluster(server)
    configure(served)
    served.settle()
    edit(served, "6")
    served.patch("ClusterQueue", "main", queue_spec("8", cohortName="company"))
    seconds = 60 if later == "here" else -60
    edited = datetime.fromtimestamp(served.now(), UTC) + timedelta(seconds=seconds)
    ClusterQueue.objects.update(updated_at=edited)
    served.settle()
    if later == "here":
        assert (quota_here(), quota_there(served)) == (6000, "6")
        events = [event for event in served.client.list(EVENTS).items if event["reason"] == "EditOverwritten"]
        assert [event["involvedObject"]["name"] for event in events] == ["main"]
        assert "by kubectl-patch" in events[0]["message"]
        assert "of alice" in events[0]["message"]
    else:
        assert (quota_here(), quota_there(served)) == (8000, "8")
        told = AuditRecord.objects.get(verb="refused")
        assert (told.kind, told.name) == ("ClusterQueue", "main")
        assert "The edit by alice" in told.message
        assert "by kubectl-patch later" in told.message


def test_a_queue_that_is_deleted_there_goes_when_nothing_uses_it(server: ServerThread) -> None:
    served = ServedCluster(server)
    configure(served)
    served.settle()
    served.delete("ResourceFlavor", "plain")
    served.settle()
    assert ResourceFlavor.objects.get().deletion_requested_at is not None
    assert served.exists("ResourceFlavor", "plain")
    served.delete("LocalQueue", "local", "team")
    served.delete("ClusterQueue", "main")
    served.settle()
    assert [kind.objects.count() for kind in (ResourceFlavor, ClusterQueue, LocalQueue)] == [0, 0, 0]
    assert not served.exists("ResourceFlavor", "plain")
    assert not served.exists("ClusterQueue", "main")


def test_the_status_of_queues_is_written_as_by_kueue(server: ServerThread) -> None:
    served = ServedCluster(server)
    configure(served)
    served.settle()
    status = served.get("ClusterQueue", "main")["status"]
    [active] = status["conditions"]
    assert (active["type"], active["status"], active["reason"]) == ("Active", "True", "Ready")
    assert active["observedGeneration"] == served.get("ClusterQueue", "main")["metadata"]["generation"]
    assert (status["pendingWorkloads"], status["admittedWorkloads"], status["reservingWorkloads"]) == (0, 0, 0)
    usage = [{"name": "plain", "resources": [{"name": "cpu", "total": "0", "borrowed": "0"}]}]
    assert status["flavorsUsage"] == status["flavorsReservation"] == usage
    assert served.get("LocalQueue", "local", "team")["status"]["conditions"][0]["status"] == "True"


def test_checks_that_we_answer_say_whether_they_can_be_asked(server: ServerThread) -> None:
    served = ServedCluster(server)
    configure(served)
    ours = {"controllerName": "kueue.x-k8s.io/provisioning-request"}
    reference = {"apiGroup": "kueue.x-k8s.io", "kind": "ProvisioningRequestConfig", "name": "burst"}
    served.apply("AdmissionCheck", "nodes", {"spec": {**ours, "parameters": reference}})
    served.apply("AdmissionCheck", "bare", {"spec": ours})
    served.apply("AdmissionCheck", "budget", {"spec": {"controllerName": "example.com/budget"}})
    served.settle()
    assert _active(served, "nodes") == (
        "False", "BadParametersRef", 'ProvisioningRequestConfig.kueue.x-k8s.io "burst" not found'
    )  # fmt: skip
    assert _active(served, "bare") == ("False", "BadParametersRef", "missing parameters reference")
    assert "status" not in served.get("AdmissionCheck", "budget"), "its own controller says that"
    served.apply("ProvisioningRequestConfig", "burst", {"spec": {"provisioningClassName": "check-capacity"}})
    served.settle()
    assert _active(served, "nodes") == ("True", "Active", "The admission check is active")
    assert ProvisioningRequestConfig.objects.get().provisioning_class_name == "check-capacity"


def _active(served: ServedCluster, name: str) -> tuple[str, str, str]:
    [found] = served.get("AdmissionCheck", name)["status"]["conditions"]
    assert found["observedGeneration"] == 1
    return found["status"], found["reason"], found["message"]


def test_a_topology_goes_both_ways(server: ServerThread) -> None:
    served = ServedCluster(server)
    configure(served)
    levels = [{"nodeLabel": "rack"}, {"nodeLabel": "kubernetes.io/hostname"}]
    served.apply("Topology", "racks", {"spec": {"levels": levels}})
    served.settle()
    row = Topology.objects.get()
    assert row.levels == ["rack", "kubernetes.io/hostname"]
    Topology.objects.create(cluster=served.cluster, name="blocks", levels=["block"], created_at=row.created_at)
    served.settle()
    assert served.get("Topology", "blocks")["spec"]["levels"] == [{"nodeLabel": "block"}]
    served.delete("Topology", "racks")
    served.settle()
    assert not Topology.objects.filter(name="racks").exists()


def test_an_object_gets_one_status_write_in_a_second(server: ServerThread) -> None:
    served = ServedCluster(server)
    configure(served)
    served.settle()
    served.advance(2)
    for number in range(1, 4):
        make_workload(served.cluster, f"w-{number}", {"cpu": "5"}, queue_name="local")
        served.engine.run()
        served.push()
    assert served.get("ClusterQueue", "main")["status"]["pendingWorkloads"] == 1, "the others came within the second"
    served.advance(2)
    served.settle()  # also the numbers that the engine publishes come a few times a second only
    assert served.get("ClusterQueue", "main")["status"]["pendingWorkloads"] == 3


def test_what_we_cannot_take_stays_as_it_was_and_says_why(server: ServerThread) -> None:
    """An edit that a webhook would have refused, made while there was none."""
    served = ServedCluster(server)
    configure(served)
    served.settle()
    served.patch("ClusterQueue", "main", {"spec": {"queueingStrategy": "Backwards"}})
    served.settle()
    assert ClusterQueue.objects.get().queueing_strategy == "BestEffortFIFO"
    assert "queueingStrategy" in ServedObject.objects.get(name="main").problem
    served.patch("ClusterQueue", "main", {"spec": {"queueingStrategy": "StrictFIFO"}})
    served.settle()
    assert ClusterQueue.objects.get().queueing_strategy == "StrictFIFO"
    assert ServedObject.objects.get(name="main").problem == ""


def test_a_cluster_that_serves_nothing_is_as_before(server: ServerThread) -> None:
    served = ServedCluster(server)
    configure(served)
    served.cluster.serves_kueue_objects = False
    served.cluster.save()
    served.settle()
    assert not ClusterQueue.objects.exists()
    assert not ServedObject.objects.exists()


def busy(served: ServedCluster, name: str) -> None:
    """A workload comes, and we write the queue's status while the watcher has not read what changed before."""
    make_workload(served.cluster, name, {"cpu": "1"}, queue_name="local")
    served.advance(2)
    served.engine.run()
    served.push()


def test_an_edit_that_meets_a_status_write_is_followed(server: ServerThread) -> None:
    served = ServedCluster(server)
    configure(served)
    served.settle()
    served.patch("ClusterQueue", "main", queue_spec("9", cohortName="company"))
    busy(served, "w-1")
    served.settle()
    assert (quota_here(), quota_there(served)) == (9000, "9")
    status = served.get("ClusterQueue", "main")["status"]
    assert status["admittedWorkloads"] == 1
    assert status["conditions"][0]["observedGeneration"] == served.get("ClusterQueue", "main")["metadata"]["generation"]


def test_a_deletion_that_meets_a_status_write_is_followed(server: ServerThread) -> None:
    served = ServedCluster(server)
    configure(served)
    served.settle()
    served.delete("ClusterQueue", "main")
    busy(served, "w-1")
    served.settle()
    assert ClusterQueue.objects.get().deletion_requested_at is not None


def test_what_the_push_knows_does_not_overwrite_what_the_watcher_has_noted(server: ServerThread) -> None:
    served = ServedCluster(server)
    configure(served)
    served.settle()
    read_before = ServedObject.objects.get(kind="ClusterQueue")
    served.patch("ClusterQueue", "main", queue_spec("9", cohortName="company"))
    served.watch()
    noted = ServedObject.objects.get(kind="ClusterQueue")
    assert not read_before.keep()
    read_before.forget()
    assert ServedObject.objects.get(kind="ClusterQueue").content == noted.content != read_before.content


def test_the_share_of_a_queue_that_borrows_is_a_whole_number(server: ServerThread) -> None:
    served = ServedCluster(server)
    served.cluster.configuration = {"fairSharing": {"preemptionStrategies": ["LessThanOrEqualToFinalShare"]}}
    served.cluster.save(update_fields=["configuration"])
    configure(served)
    served.apply("ClusterQueue", "lender", queue_spec("5", cohortName="company"))
    served.settle()
    make_workload(served.cluster, "w-1", {"cpu": "5"}, queue_name="local")
    served.settle(4)
    status = served.get("ClusterQueue", "main")["status"]
    assert status["fairSharing"] == {"weightedShare": 112}  # 1 of 9 cpu is borrowed: 111.1 of a thousand
    assert (status["admittedWorkloads"], status["flavorsUsage"][0]["resources"][0]["borrowed"]) == (1, "1")


def test_a_field_that_is_refused_holds_back_no_other(server: ServerThread, caplog: pytest.LogCaptureFixture) -> None:
    served = ServedCluster(server)
    configure(served)
    served.settle()
    entry = ServedObject.objects.get(kind="ClusterQueue")
    resource = next(kind for kind in KUEUE_KINDS["ClusterQueue"] if kind.api_version == V1BETA2)
    status = {**entry.status, "pendingWorkloads": 3, "fairSharing": {"weightedShare": 1.5}}
    assert tell_status(served.client, resource, entry, status)
    there = served.get("ClusterQueue", "main")["status"]
    assert (there["pendingWorkloads"], there.get("fairSharing")) == (3, None)
    assert "refuses fairSharing of its status" in caplog.text
    assert not tell_status(served.client, resource, entry, status)  # tried again when it changes


def test_fields_of_a_status_that_others_write_stay(server: ServerThread) -> None:
    served = ServedCluster(server)
    configure(served)
    served.settle()
    path = f"{served.path('ClusterQueue', 'main')}/status?fieldManager=budget"
    condition = {
        "type": "example.com/Budget", "status": "True", "reason": "Left", "message": "", "observedGeneration": 1,
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }  # fmt: skip
    there = served.get("ClusterQueue", "main")["status"]["conditions"]
    patch = {"status": {"conditions": [*there, condition]}}
    served.send("PATCH", path, patch, "application/merge-patch+json")
    busy(served, "w-1")
    served.settle()
    status = served.get("ClusterQueue", "main")["status"]
    assert status["admittedWorkloads"] == 1
    assert [each["type"] for each in status["conditions"]] == ["Active", "example.com/Budget"]
    versions = served.versions()
    served.settle()
    assert served.versions() == versions


def test_what_is_gone_is_told_nothing_more(server: ServerThread, caplog: pytest.LogCaptureFixture) -> None:
    served = ServedCluster(server)
    configure(served)
    served.settle()
    served.delete("LocalQueue", "local", "team")
    make_workload(served.cluster, "w-1", {"cpu": "1"}, queue_name="local")
    caplog.clear()
    for _ in range(3):
        served.advance(2)
        served.engine.run()
        served.push()
    assert "LocalQueue" not in caplog.text
    assert ServedObject.objects.get(kind="LocalQueue").deleting
    served.settle()
    assert not ServedObject.objects.filter(kind="LocalQueue").exists()
