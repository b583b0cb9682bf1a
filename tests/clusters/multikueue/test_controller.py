"""The controller with workers that a Kueue runs: dispatch, loss, eviction, refusals, restarts, clean-up."""

from __future__ import annotations

import base64
from collections.abc import Iterator

import orjson
import pytest

from accounts.models import Cluster
from clusters.api_objects import NAMESPACES, PODS, SECRETS
from clusters.client import ClusterClient, TokenBucket
from clusters.client_credentials import connect
from clusters.jobs.registry import JOB_KINDS
from clusters.multikueue.controller import follow_multikueue
from clusters.multikueue.status import check_statuses
from clusters.multikueue.workers import Task, Worker
from queues.models import AdmissionCheck, Job, MultiKueueCluster, MultiKueueConfig, Workload, WorkloadEvent
from queues.services.workload_objects import workload_manifest
from queues.services.workloads import cancel, hold
from simulation.api.resources import BY_KIND, crd_of
from tests.clusters.multikueue.workers import CRDS, JOBS, Manager, manager_of
from tests.clusters.operated_jobs import operated_job
from tests.factories import make_node
from tests.simulated_cluster import job, pod

pytestmark = pytest.mark.django_db(transaction=True)
V1BETA1 = "kueue.x-k8s.io/v1beta1"


@pytest.fixture
def manager() -> Iterator[Manager]:
    with manager_of("east", "west", north=V1BETA1) as found:
        yield found


def told() -> list[str]:
    return list(WorkloadEvent.objects.filter(reason="MultiKueue").order_by("pk").values_list("message", flat=True))


def running(manager: Manager, name: str = "west") -> None:
    """A job that was sent to all, and runs in that worker."""
    manager.submit()
    manager.turn(2)
    manager.admit(name)
    manager.turn(3)
    assert (manager.row.status, manager.check) == ("Admitted", ("Ready", f'The workload was admitted on "{name}"'))
    assert (manager.with_copy(), manager.with_job()) == ({name}, {name})


def test_a_worker_that_is_lost_hands_over_and_is_cleaned_when_it_is_back(manager: Manager) -> None:
    running(manager)
    manager.kill("west")
    manager.turn(2)
    manager.seconds += 880
    manager.turn()
    assert manager.row.status == "Admitted", "it is left running for as long as it may be lost"
    manager.restart()
    manager.seconds += 30
    manager.turn(4)
    assert told()[-1] == "Reserving remote lost"
    assert (manager.row.status, manager.with_copy()) == ("QuotaReserved", {"east", "north"})
    assert MultiKueueCluster.objects.get(name="west").conditions[0]["reason"] == "ClientConnectionFailed"
    manager.admit("east")
    manager.turn(3)
    assert manager.check == ("Ready", 'The workload was admitted on "east"')
    manager.revive("west")
    assert manager.with_job() == {"east", "west"}, "what is left there"
    manager.seconds += 400
    manager.turn(3)
    assert (manager.with_copy(), manager.with_job()) == ({"east"}, {"east"})
    assert Workload.objects.filter(cluster=manager.cluster).count() == 1


def test_a_worker_that_does_not_answer_slows_no_other(manager: Manager) -> None:
    manager.kill("east")
    manager.submit()
    manager.turn(2)
    assert manager.with_copy() == {"west", "north"}
    manager.admit("west")
    manager.turn(2)
    assert manager.check == ("Ready", 'The workload was admitted on "west"')
    manager.revive("east")
    manager.seconds += 30
    manager.turn(2)
    assert manager.with_copy() == {"west"}


def test_rounds_of_workers(manager: Manager) -> None:
    manager.configuration(
        dispatcherName="kueue.x-k8s.io/multikueue-dispatcher-incremental", incrementalDispatcherConfig={"stepSize": 2}
    )
    manager.submit()
    manager.turn(2)
    assert manager.with_copy() == {"east", "west"}
    manager.seconds += 290
    manager.restart()
    manager.turn()
    assert manager.with_copy() == {"east", "west"}, "the round is kept in the row"
    manager.seconds += 20
    manager.turn()
    assert manager.with_copy() == {"east", "west", "north"}
    manager.admit("north")
    manager.turn(2)
    assert (manager.check[0], manager.with_copy(), manager.with_job()) == ("Ready", {"north"}, {"north"})


def test_copies_say_what_the_workload_says_in_each_version(manager: Manager) -> None:
    manager.submit()
    manager.turn(2)
    row = manager.row
    for name in ("east", "north"):
        (copy,) = manager.workers[name].copies()
        assert copy["metadata"]["name"] == row.name
        assert copy["metadata"]["labels"]["kueue.x-k8s.io/multikueue-origin"] == "multikueue"
        assert copy["spec"]["queueName"] == "queue"
        assert copy["spec"]["podSets"][0]["count"] == 1
    assert manager.workers["north"].copies()[0]["apiVersion"] == V1BETA1
    chosen = {"priority": 7, "priority_class_name": "high", "priority_class_kind": "WorkloadPriorityClass"}
    Workload.objects.filter(pk=row.pk).update(**chosen)
    manager.turn()
    specs = [manager.workers[name].copies()[0]["spec"] for name in ("east", "west", "north")]
    assert [spec["priority"] for spec in specs] == [7, 7, 7]
    assert [spec["priorityClassRef"]["name"] for spec in specs[:2]] == ["high", "high"]
    assert specs[2]["priorityClassName"] == "high"


def test_what_is_preempted_in_its_worker_starts_over_elsewhere(manager: Manager) -> None:
    running(manager)
    manager.say("west", Evicted="Preempted", Admitted="", QuotaReserved="")
    manager.turn(4)
    assert told()[-1] == ('Workload evicted on worker cluster: "west", resetting for re-admission. Previously: "Ready"')
    assert manager.check[0] == "Pending"
    assert (manager.row.status, manager.with_copy()) == ("QuotaReserved", {"east", "west", "north"})
    assert manager.with_job() == set()
    manager.admit("east")
    manager.turn(2)
    assert (manager.check[0], manager.with_job()) == ("Ready", {"east"})


def test_a_copy_that_somebody_deletes_starts_over(manager: Manager) -> None:
    running(manager)
    west = manager.workers["west"]
    west.client.delete(west.workloads, "team", manager.row.name)
    manager.turn(4)
    assert "Reserving remote no longer exists or is not admitted" in told()
    assert manager.with_copy() == {"east", "west", "north"}


def test_what_no_worker_admits_waits_with_its_quota_and_is_sent_once(manager: Manager) -> None:
    manager.submit()
    manager.turn(2)
    before = [worker.copies() for worker in manager.workers.values()]
    manager.restart()
    manager.turn(3)
    assert [worker.copies() for worker in manager.workers.values()] == before
    assert (manager.row.status, manager.check[0]) == ("QuotaReserved", "Pending")
    assert manager.row.multikueue["nominated"] == ["east", "west", "north"]
    cancel(manager.cluster, [("team", manager.row.name)], actor="alice", now=manager.moment)
    manager.turn(3)
    assert (manager.row.status, manager.with_copy()) == ("Finished", set())


def test_what_loses_its_quota_here_stops_there_before_the_quota_is_free(manager: Manager) -> None:
    running(manager)
    hold(manager.cluster, [("team", manager.row.name)], actor="alice", now=manager.moment)
    manager.engine.run()
    manager.push()
    assert manager.row.quota_reserved_at is not None, "its pods may still run in the worker"
    manager.follow()
    manager.follow()
    assert (manager.with_copy(), manager.with_job(), manager.row.multikueue) == (set(), set(), {})
    manager.turn(2)
    assert manager.row.quota_reserved_at is None


def test_the_end_there_is_the_end_here(manager: Manager) -> None:
    running(manager)
    west = manager.workers["west"]
    done = {"type": "Complete", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    west.client.patch(JOBS, "team", "train", {"status": {"succeeded": 1, "conditions": [done]}}, subresource="status")
    manager.say("west", Finished="Succeeded")
    manager.turn(3)
    row = manager.row
    assert (row.status, row.reason, row.message) == ("Finished", "Succeeded", "m")
    here = manager.client.get(JOBS, "team", "train")
    assert here is not None
    assert (here["spec"]["managedBy"], here["status"]["succeeded"]) == ("kueue.x-k8s.io/multikueue", 1)
    assert (manager.with_copy(), manager.with_job(), manager.pods()) == (set(), set(), [])


def test_a_job_shows_its_end_although_a_part_of_its_status_was_emptied(manager: Manager) -> None:
    """The API server refuses a finished Job whose status still has uncounted pods."""
    running(manager)
    west = manager.workers["west"].client
    counting = {"uncountedTerminatedPods": {"succeeded": ["uid-1"]}, "active": 0}
    west.patch(JOBS, "team", "train", {"status": counting}, subresource="status")
    manager.turn()
    here = manager.client.get(JOBS, "team", "train")
    assert here is not None
    assert here["status"]["uncountedTerminatedPods"] == {"succeeded": ["uid-1"]}
    done = {"type": "Complete", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    status = {"succeeded": 1, "conditions": [done], "uncountedTerminatedPods": {"succeeded": None}}
    west.patch(JOBS, "team", "train", {"status": status}, subresource="status")
    manager.say("west", Finished="Succeeded")
    manager.turn(2)
    here = manager.client.get(JOBS, "team", "train")
    assert here is not None
    assert (here["status"]["succeeded"], here["status"]["uncountedTerminatedPods"]) == (1, {})


def test_the_end_waits_until_the_job_here_shows_it(manager: Manager) -> None:
    """The end deletes the job in the worker, and its status with it."""
    running(manager)
    west = manager.workers["west"].client
    done = {"type": "Complete", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    west.patch(JOBS, "team", "train", {"status": {"succeeded": 1, "conditions": [done]}}, subresource="status")
    manager.say("west", Finished="Succeeded")
    manager.server.guard.away = True
    manager.follow()
    assert (manager.row.status, manager.with_job()) == ("Admitted", {"west"})
    manager.server.guard.away = False
    manager.turn(2)
    assert manager.row.status == "Finished"
    here = manager.client.get(JOBS, "team", "train")
    assert here is not None
    assert here["status"]["succeeded"] == 1


def test_a_worker_that_falls_silent_has_answered_no_task(manager: Manager) -> None:
    running(manager)
    worker = Worker("west", "", manager.workers["west"].client, "multikueue")
    named = {"metadata": {"namespace": "team", "name": "train"}}
    task = Task("team/train", run=[(JOB_KINDS["Job"], named)], makes=False)
    manager.kill("west")
    worker.act([task], manager.seconds)
    assert not task.answered
    manager.revive("west")
    worker.act([task], manager.seconds)
    assert (task.answered, [each["metadata"]["name"] for each in task.found]) == (True, ["train"])


def test_a_job_in_the_way_is_not_touched(manager: Manager) -> None:
    west = manager.workers["west"]
    west.client.create(JOBS, {**job("train"), "metadata": {"name": "train", "namespace": "team"}})
    manager.submit()
    manager.turn(2)
    manager.admit("west")
    manager.turn(2)
    state, message = manager.check
    assert state == "Pending"
    assert "another Job train is in worker west" in message


@pytest.mark.parametrize(
    ("owner", "expected"),
    [
        ("Deployment", 'No multikueue adapter found for owner kind "apps/v1, Kind=Deployment"'),
        (
            "Job",
            'The owner is not managed by Kueue: Expecting spec.managedBy to be "kueue.x-k8s.io/multikueue" not ""',
        ),
    ],
)
def test_what_no_worker_may_run_is_rejected(manager: Manager, owner: str, expected: str) -> None:
    manager.submit()
    Job.objects.update(kind=owner, found_in_cluster=True)
    manager.engine.run()
    manager.follow()
    assert manager.check == ("Rejected", expected)
    manager.turn(3)
    assert not manager.row.active
    assert manager.with_copy() == set()


def test_pods_wait_at_their_gate_here_and_run_there(manager: Manager) -> None:
    manager.submit(pod("single"))
    manager.turn(2)
    manager.admit("west")
    manager.turn(3)
    (here,) = manager.pods()
    assert here["spec"]["schedulingGates"] == [{"name": "kueue.x-k8s.io/admission"}]
    there = manager.workers["west"].client.get(PODS, "team", "single")
    assert there is not None
    assert there["metadata"]["labels"]["kueue.x-k8s.io/prebuilt-workload-name"] == manager.row.name
    assert there["spec"]["schedulingGates"] == [{"name": "kueue.x-k8s.io/admission"}]
    manager.say("west", Finished="Succeeded")
    manager.turn(3)
    assert manager.row.status == "Finished"
    assert manager.workers["west"].client.get(PODS, "team", "single") is None


def test_a_job_set_runs_in_its_worker_and_shows_that_here(manager: Manager) -> None:
    """Of a kind that an operator brings, to the manager as to the workers."""
    resource = JOB_KINDS["JobSet"].resource
    for client in (manager.client, *(worker.client for worker in manager.workers.values())):
        client.create(CRDS, crd_of(BY_KIND[resource.api_version, resource.kind]))
    Cluster.objects.update(served_kinds=["JobSet"])
    manager.submit(operated_job("JobSet"))
    manager.turn(2)
    manager.admit("west")
    manager.turn(3)
    assert manager.check == ("Ready", 'The workload was admitted on "west"')
    assert manager.with_copy() == {"west"}
    west = manager.workers["west"].client
    there = west.get(resource, "team", "train")
    assert there is not None
    assert there["metadata"]["labels"]["kueue.x-k8s.io/prebuilt-workload-name"] == manager.row.name
    assert "managedBy" not in there["spec"], "its own controller runs it there"
    west.patch(resource, "team", "train", {"spec": {"suspend": False}})
    west.patch(resource, "team", "train", {"status": {"restarts": 3}}, subresource="status")
    manager.turn()
    here = manager.client.get(resource, "team", "train")
    assert here is not None
    assert here["spec"]["managedBy"] == "kueue.x-k8s.io/multikueue"
    assert here["status"]["restarts"] == 3
    manager.say("west", Finished="Succeeded")
    manager.turn(3)
    assert (manager.row.status, west.get(resource, "team", "train")) == ("Finished", None)


class CountedBucket(TokenBucket):
    """Lets every request through, and counts them."""

    def __init__(self) -> None:
        super().__init__(10_000, 10_000)
        self.requests = 0

    def take(self) -> None:
        self.requests += 1
        super().take()


def test_many_running_jobs_are_read_in_one_list(manager: Manager) -> None:
    """It was one request for each of them, in each pass."""
    west = manager.workers["west"]
    label = {"kueue.x-k8s.io/multikueue-origin": "multikueue"}
    tasks = []
    for index in range(5):
        name = f"train-{index}"
        wanted = {**job(name), "metadata": {"name": name, "namespace": "team", "labels": label}}
        tasks.append(Task(f"team/{name}", run=[(JOB_KINDS["Job"], wanted)]))
    bucket = CountedBucket()
    worker = Worker("west", "", connect(west.server.url, bucket), "multikueue")
    worker.act(tasks, manager.seconds)
    assert [len(task.found) for task in tasks] == [1] * 5
    assert len(west.jobs()) == 5
    before = bucket.requests
    again = [Task(task.key, run=task.run, makes=False) for task in tasks]
    worker.act(again, manager.seconds)
    assert [task.found[0]["metadata"]["name"] for task in again] == [f"train-{index}" for index in range(5)]
    assert bucket.requests - before == 1


def test_a_running_job_is_read_only_when_its_copy_has_changed(manager: Manager) -> None:
    """Each running job cost its manager one request in each pass."""
    resource = JOB_KINDS["JobSet"].resource
    west = manager.workers["west"].client
    for client in (manager.client, *(worker.client for worker in manager.workers.values())):
        client.create(CRDS, crd_of(BY_KIND[resource.api_version, resource.kind]))
    Cluster.objects.update(served_kinds=["JobSet"])
    manager.submit(operated_job("JobSet"))
    manager.turn(2)
    manager.admit("west")
    manager.turn(3)
    west.patch(resource, "team", "train", {"spec": {"suspend": False}})
    bucket = CountedBucket()
    client = connect(manager.server.url, bucket)

    def restarts(told: int | None = None, *, at: ClusterClient = west) -> int:
        if told is not None:
            at.patch(resource, "team", "train", {"status": {"restarts": told}}, subresource="status")
        here = manager.client.get(resource, "team", "train")
        assert here is not None
        return int(here["status"].get("restarts", 0))

    def reads(turns: int) -> int:
        before = bucket.requests
        for _ in range(turns):
            follow_multikueue(manager.cluster, client, manager.now, manager.known)
            manager.seconds += 2
        return bucket.requests - before

    restarts(3)
    manager.turn(2)
    assert (restarts(), reads(5)) == (3, 0)
    restarts(4)
    assert (reads(3), restarts()) == (2, 4), "it is read, and written, once"
    restarts(7, at=manager.client)
    assert 0 < reads(40) <= 4, "once a minute it is looked at anyway"
    assert restarts() == 4


def test_leftovers_of_ours_go_and_those_of_others_stay(manager: Manager) -> None:
    manager.submit()
    manager.turn(2)
    west = manager.workers["west"]
    (copy,) = west.copies()
    labels = copy["metadata"]["labels"]
    for name, owner in (("lost", "manager/gone"), ("theirs", "another/one")):
        annotations = {"kueueweb.io/multikueue-manager": owner}
        metadata = {"name": name, "namespace": "team", "labels": labels, "annotations": annotations}
        west.client.create(west.workloads, {**copy, "metadata": metadata})
    manager.turn(2)
    assert sorted(each["metadata"]["name"] for each in west.copies()) == sorted(["theirs", manager.row.name])


def test_workers_that_can_not_be_reached_say_why(manager: Manager) -> None:
    Cluster.objects.filter(name="east").update(accepts_workloads_from=[])
    Cluster.objects.filter(name="west").update(mode="observe")
    MultiKueueCluster.objects.filter(name="north").update(cluster_profile="nowhere")
    manager.turn()
    found = {row.name: row.conditions[0] for row in MultiKueueCluster.objects.all()}
    assert {(each["status"], each["reason"]) for each in found.values()} == {("False", "BadClusterProfile")}
    assert "does not accept workloads of cluster manager" in found["east"]["message"]
    assert "is in mode observe" in found["west"]["message"]
    assert "no cluster 'nowhere' is registered here" in found["north"]["message"]
    assert not AdmissionCheck.objects.get().active
    assert check_statuses(manager.cluster, [AdmissionCheck.objects.get()])[0]["conditions"][0]["reason"] == (
        "NoUsableClusters"
    )
    MultiKueueConfig.objects.all().delete()
    (status,) = check_statuses(manager.cluster, [AdmissionCheck.objects.get()])
    assert status["conditions"][0]["reason"] == "BadConfig"


def test_a_kubeconfig_in_a_secret(manager: Manager) -> None:
    content = {
        "apiVersion": "v1", "kind": "Config", "current-context": "it",
        "clusters": [{"name": "it", "cluster": {"server": manager.workers["west"].server.url}}],
        "users": [{"name": "it", "user": {"token": "t"}}],
        "contexts": [{"name": "it", "context": {"cluster": "it", "user": "it"}}],
    }  # fmt: skip
    MultiKueueCluster.objects.filter(name="west").update(
        cluster_profile="", kube_config={"location": "west-kubeconfig", "locationType": "Secret"}
    )
    manager.turn()
    missing = MultiKueueCluster.objects.get(name="west").conditions[0]
    assert (missing["reason"], missing["message"]) == (
        "BadKubeConfig", "Secret kueue-system/west-kubeconfig with the key kubeconfig does not exist",
    )  # fmt: skip
    manager.client.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kueue-system"}})
    data = {"kubeconfig": base64.b64encode(orjson.dumps(content)).decode()}
    metadata = {"name": "west-kubeconfig", "namespace": "kueue-system"}
    manager.client.create(SECRETS, {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": data})
    running(manager)


def test_a_manager_with_devices_places_nothing_itself(manager: Manager) -> None:
    """What asks for devices waited for the second pass, and would have been evicted as lacking them."""
    make_node(manager.cluster, "own", [{}])
    limits = {"nvidia.com/gpu": "1"}
    manager.submit(job("train", suspend=True, limits=limits, requests=limits))
    manager.turn(2)
    manager.admit("west")
    manager.turn(4)
    assert (manager.row.status, manager.row.pod_sets.get().nodes) == ("Admitted", [])
    assert manager.row.pod_sets.get().topology_assignment == {"delayed": "Ready"}
    (assignment,) = workload_manifest(manager.row)["status"]["admission"]["podSetAssignments"]
    assert assignment["delayedTopologyRequest"] == "Ready"
