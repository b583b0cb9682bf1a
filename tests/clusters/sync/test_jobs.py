"""Jobs that others made in the cluster and labelled for a queue."""

from __future__ import annotations

import hashlib
import logging
import uuid
from io import StringIO
from typing import Any

import pytest
from django.core.management import call_command
from django.db import connection
from django.test.utils import CaptureQueriesContext

from clusters.api_objects import NAMESPACES, PODS, JsonObject
from clusters.jobs.submitter import submitter_notes
from queues.manifests.workload import PodSetSpec, WorkloadSpec
from queues.models import ClusterQueue, Job, Workload, WorkloadPriorityClass
from queues.services.submission import create_workloads
from queues.services.workloads import hold
from scheduler.api.object_status import held_in
from tests.cluster_kinds import DEPLOYMENTS, JOBS
from tests.clusters.group_pods import found_pod
from tests.clusters.system import System, deployment, gpu_job, queued
from tests.factories import START, make_cluster_queue
from tests.simulated_cluster import job
from tests.users import make_user

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def found(system: System) -> System:
    """A system whose cluster has the namespace `team`."""
    system.client.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}})
    return system


def live(system: System) -> JsonObject:
    job = system.client.get(JOBS, "team", "train")
    assert job is not None
    return job


def test_a_suspended_job_with_a_queue_gets_a_workload_and_is_started(found: System) -> None:
    found.client.create(JOBS, gpu_job(suspend=True, run_seconds=50))
    found.watcher.resync()
    row = Job.objects.get()
    assert (row.found_in_cluster, str(row.uid)) == (True, live(found)["metadata"]["uid"])
    found.turn()
    found.turn()
    assert [pod["status"]["phase"] for pod in found.pods()] == ["Running"]
    found.turn(60)
    assert found.workload().reason == "Succeeded"


def test_the_workload_of_a_found_job_has_the_name_that_kueue_gives_it(found: System) -> None:
    found.client.create(JOBS, gpu_job(suspend=True, run_seconds=50))
    found.watcher.resync()
    uid = live(found)["metadata"]["uid"]
    digest = hashlib.sha1(f"Job\nbatch\ntrain\n{uid}".encode(), usedforsecurity=False).hexdigest()
    row = found.workload()
    assert (row.name, row.labels["kueue.x-k8s.io/job-uid"]) == (f"job-train-{digest[:5]}", uid)


def test_a_job_that_runs_without_admission_is_suspended(found: System) -> None:
    found.client.create(JOBS, gpu_job(mib=90_000, run_seconds=1000))
    found.watcher.resync()
    found.turn()
    assert live(found)["spec"]["suspend"] is True
    assert (found.pods(), found.workload().status) == ([], "Pending")


def test_eviction_gives_a_found_job_its_own_template_back(found: System) -> None:
    manifest = gpu_job(suspend=True, run_seconds=1000)
    manifest["spec"]["template"]["spec"]["nodeSelector"] = {"zone": "gpu-zone-a"}
    found.client.create(JOBS, manifest)
    found.watcher.resync()
    found.turn()
    spec = live(found)["spec"]["template"]["spec"]
    assert (spec["nodeSelector"], len(spec["schedulingGates"])) == ({"zone": "gpu-zone-a", "gpu": "on"}, 1)
    hold(found.cluster, [(found.workload().namespace, found.workload().name)], actor="alice")
    for _ in range(3):
        found.turn()
    spec = live(found)["spec"]["template"]["spec"]
    assert (spec["nodeSelector"], spec.get("schedulingGates")) == ({"zone": "gpu-zone-a"}, None)
    assert found.workload().quota_reserved_at is None


def test_jobs_without_a_queue_or_with_a_managed_owner_get_no_workload(found: System) -> None:
    plain = job("plain", suspend=True)
    plain["metadata"]["namespace"] = "team"
    owned = queued(job("owned", suspend=True))
    owner = {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "name": "set", "uid": "1", "controller": True}
    owned["metadata"]["ownerReferences"] = [owner]
    for manifest in (plain, owned):
        found.client.create(JOBS, manifest)
    found.watcher.resync()
    assert not Workload.objects.exists()


def test_a_found_job_that_is_deleted_takes_its_workload_along(found: System) -> None:
    found.client.create(JOBS, gpu_job(suspend=True, run_seconds=1000))
    found.watcher.resync()
    found.turn()
    found.client.delete(JOBS, "team", "train")
    found.turn()
    row = found.workload()
    assert (row.status, row.reason) == ("Finished", "OwnerNotFound")


def test_a_found_job_that_can_not_be_read_is_logged_once(found: System, caplog: pytest.LogCaptureFixture) -> None:
    manifest = queued(job(suspend=True))
    manifest["metadata"]["labels"]["kueue.x-k8s.io/max-exec-time-seconds"] = "soon"
    found.client.create(JOBS, manifest)
    with caplog.at_level(logging.WARNING, logger="clusters.sync.jobs"):
        found.watcher.resync()
        found.watcher.resync()
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert not Workload.objects.exists()


def test_our_label_on_a_foreign_job_is_ignored(system: System) -> None:
    system.submit(gpu_job(run_seconds=1000))
    system.turn()
    liar = job("liar", run_seconds=1)
    liar["metadata"]["labels"] = {"kueueweb.io/job-uid": str(Job.objects.get().uid)}
    system.client.create(JOBS, liar)
    for _ in range(3):
        system.turn(10)
    assert system.workload().status == "Admitted"


def test_a_found_job_that_names_another_queue_or_class_is_followed(found: System) -> None:
    make_cluster_queue(found.cluster, "small", quotas={"gpu-flavor": {"cpu": 0}}, local_queue="other")
    WorkloadPriorityClass.objects.create(cluster=found.cluster, name="high", value=100, created_at=START)
    found.client.create(JOBS, gpu_job(suspend=True, mib=90_000))
    found.turn()
    labels = {"kueue.x-k8s.io/queue-name": "other", "kueue.x-k8s.io/priority-class": "high"}
    found.client.patch(JOBS, "team", "train", {"metadata": {"labels": labels}})
    found.turn()
    row = found.workload()
    assert (row.queue_name, row.cluster_queue_name, row.priority, row.priority_class_name) == (
        "other", "small", 100, "high",
    )  # fmt: skip
    found.client.patch(JOBS, "team", "train", {"metadata": {"labels": {"kueue.x-k8s.io/priority-class": None}}})
    found.turn()
    assert (found.workload().queue_name, found.workload().priority) == ("other", 0)


def test_a_running_job_keeps_its_queue_and_may_change_its_class(found: System) -> None:
    for name, value in (("low", 1), ("high", 100)):
        WorkloadPriorityClass.objects.create(cluster=found.cluster, name=name, value=value, created_at=START)
    manifest = gpu_job(suspend=True, run_seconds=1000)
    manifest["metadata"]["labels"]["kueue.x-k8s.io/priority-class"] = "low"
    found.client.create(JOBS, manifest)
    found.turn()
    found.turn()
    found.client.patch(JOBS, "team", "train", {"metadata": {"labels": {"kueue.x-k8s.io/priority-class": "high"}}})
    found.turn()
    assert (found.workload().status, found.workload().priority) == ("Admitted", 100)
    found.client.patch(JOBS, "team", "train", {"metadata": {"labels": {"kueue.x-k8s.io/queue-name": "other"}}})
    found.turn()
    found.turn()
    assert (found.workload().status, found.workload().queue_name) == ("Admitted", "queue")


def test_a_job_that_is_made_anew_after_it_was_deleted_is_another_one(found: System) -> None:
    found.client.create(JOBS, gpu_job(suspend=True, run_seconds=1000))
    found.turn()
    found.client.delete(JOBS, "team", "train")
    found.turn()
    found.client.create(JOBS, gpu_job(suspend=True, run_seconds=1000, mib=2000))
    for _ in range(3):
        found.turn()
    assert sorted(Workload.objects.values_list("status", flat=True)) == ["Admitted", "Finished"]


def test_a_new_job_with_the_name_of_a_finished_one_is_a_different_job(found: System) -> None:
    for mib in (90_000, 80_000):
        found.client.delete(JOBS, "team", "train")
        found.client.create(JOBS, gpu_job(suspend=True, mib=mib))
        found.watcher.resync()
    found.watcher.resync()
    first, second = Workload.objects.order_by("pk")
    assert (first.reason, second.status) == ("OwnerNotFound", "Pending")
    assert Job.objects.get(name="train").pk == second.job_id


def test_a_list_that_is_older_than_the_rows_ends_nothing(system: System) -> None:
    """A job that was pushed after the list was taken was not in it, and its workload was ended."""
    listing = system.client.list(JOBS)
    manifest = gpu_job(run_seconds=1000)
    manifest["spec"]["ttlSecondsAfterFinished"] = 60
    system.submit(manifest)
    for _ in range(2):
        system.turn()
    system.watcher.apply([(JOBS, listing)])
    assert (system.workload().status, system.workload().ending) == ("Admitted", None)
    system.client.delete(JOBS, "team", "train")
    system.watcher.apply([(JOBS, system.client.list(JOBS))])
    assert (system.workload().ending or {})["reason"] == "OwnerNotFound"


def test_a_job_whose_pods_ask_for_more_than_64_bits_is_left_alone(
    found: System, caplog: pytest.LogCaptureFixture
) -> None:
    """Also what comes through the cluster's own API is held to the bounds."""
    job = gpu_job(suspend=True)
    job["spec"] |= {"parallelism": 2, "completions": 2}
    job["spec"]["template"]["spec"]["containers"][0]["resources"]["requests"] = {"cpu": "4611686018427387904m"}
    found.client.create(JOBS, job)
    with caplog.at_level(logging.WARNING):
        found.watcher.resync()
    assert "below 2^63" in caplog.text
    assert not Job.objects.exists()


def cpu_job(pods: int, **spec: Any) -> JsonObject:
    """A found job whose pods ask for a cpu each and are not placed by us."""
    return queued(job("train", parallelism=pods, completions=1000, run_seconds=1000, **spec))


def completed_template() -> JsonObject:
    """The pods of such a job as the API server completes them: a prebuilt workload must have the same."""
    template: JsonObject = cpu_job(1)["spec"]["template"]
    template["spec"]["containers"][0]["imagePullPolicy"] = "IfNotPresent"
    return template


def size(pods: int) -> JsonObject:
    return {"spec": {"parallelism": pods}}


def running(system: System) -> int:
    return sum(pod["status"]["phase"] == "Running" for pod in system.pods())


def reserved(system: System) -> list[int]:
    """How many pods have quota, by workload that holds any."""
    rows = Workload.objects.filter(quota_reserved_at__isnull=False).exclude(status="Finished").order_by("pk")
    return [sum(pod_set.admitted_count or 0 for pod_set in row.pod_sets.all()) for row in rows]


def test_a_waiting_job_that_its_owner_resizes_asks_for_quota_of_the_new_size(found: System) -> None:
    found.client.create(JOBS, cpu_job(2, suspend=True))
    found.watcher.resync()
    found.client.patch(JOBS, "team", "train", size(5))
    found.watcher.resync()
    assert [pod_set.count for pod_set in found.workload().pod_sets.all()] == [5]
    for _ in range(3):
        found.turn()
    assert (running(found), reserved(found)) == (5, [5])


def test_a_running_job_that_its_owner_resizes_stops_and_waits_for_quota_of_the_new_size(found: System) -> None:
    found.client.create(JOBS, cpu_job(2, suspend=True))
    for _ in range(3):
        found.turn()
    first = found.workload()
    assert (running(found), reserved(found)) == (2, [2])
    found.client.patch(JOBS, "team", "train", size(9))
    found.watcher.resync()
    found.engine.run()
    found.push()
    assert live(found)["spec"]["suspend"] is True
    for _ in range(6):
        found.turn()
    second = found.workload()
    assert (running(found), reserved(found)) == (9, [9])
    assert (second.name, second.uid != first.uid) == (first.name, True)


def test_a_resized_job_that_is_too_large_for_its_queue_does_not_run(found: System) -> None:
    found.client.create(JOBS, cpu_job(2, suspend=True))
    for _ in range(3):
        found.turn()
    found.client.patch(JOBS, "team", "train", size(101))
    for _ in range(6):
        found.turn()
    assert (running(found), reserved(found), found.workload().status) == (0, [], "Pending")


@pytest.mark.parametrize("submitted_here", [False, True])
def test_an_admitted_job_that_another_suspends_is_started_again(found: System, submitted_here: bool) -> None:
    if submitted_here:
        found.submit(cpu_job(2))
    else:
        found.client.create(JOBS, cpu_job(2, suspend=True))
    for _ in range(3):
        found.turn()
    assert running(found) == 2
    found.client.patch(JOBS, "team", "train", {"spec": {"suspend": True}})
    for _ in range(3):
        found.turn()
    assert (live(found)["spec"]["suspend"], running(found), found.workload().status) == (False, 2, "Admitted")


def test_a_job_takes_over_the_prebuilt_workload_that_it_names(found: System) -> None:
    spec = PodSetSpec("main", 2, completed_template(), {"cpu": 1000})
    create_workloads(found.cluster, [WorkloadSpec("team", "mine", "queue", (spec,))], actor="kubectl in the cluster")
    manifest = cpu_job(2, suspend=True)
    manifest["metadata"]["labels"]["kueue.x-k8s.io/prebuilt-workload-name"] = "mine"
    found.client.create(JOBS, manifest)
    for _ in range(3):
        found.turn()
    row = found.workload()
    assert (row.name, row.status, row.job is not None, running(found)) == ("mine", "Admitted", True, 2)


@pytest.mark.parametrize("of_job", [{}, {"kueueweb.io/start-after": "other"}])
def test_a_prebuilt_workload_starts_after_the_jobs_that_it_and_its_job_name(
    found: System, of_job: dict[str, str]
) -> None:
    spec = PodSetSpec("main", 2, completed_template(), {"cpu": 1000})
    mine = WorkloadSpec("team", "mine", "queue", (spec,), annotations={"kueueweb.io/start-after": "first"})
    create_workloads(found.cluster, [mine], actor="kubectl in the cluster")
    manifest = prebuilt(cpu_job(2, suspend=True))
    manifest["metadata"]["annotations"] = of_job
    found.client.create(JOBS, manifest)
    for _ in range(3):
        found.turn()
    row = found.workload()
    assert row.job is not None
    assert (row.status, row.waits_for) == ("Pending", ["first", *of_job.values()])
    found.client.patch(JOBS, "team", "train", {"metadata": {"labels": {"team": "blue"}}})
    for _ in range(2):
        found.turn()
    assert found.workload().waits_for == ["first", *of_job.values()]


def test_a_job_waits_for_the_prebuilt_workload_that_it_names(found: System) -> None:
    manifest = cpu_job(2, suspend=True)
    manifest["metadata"]["labels"]["kueue.x-k8s.io/prebuilt-workload-name"] = "mine"
    found.client.create(JOBS, manifest)
    found.watcher.resync()
    assert not Workload.objects.exists()
    spec = PodSetSpec("main", 2, completed_template(), {"cpu": 1000})
    create_workloads(found.cluster, [WorkloadSpec("team", "mine", "queue", (spec,))], actor="kubectl in the cluster")
    found.advance(2)
    found.watcher.tick()
    assert found.workload().job is not None


def test_a_job_in_the_cluster_takes_no_workload_that_a_user_submitted_here(found: System) -> None:
    make_user("researcher")
    spec = PodSetSpec("main", 2, completed_template(), {"cpu": 1000})
    mine = WorkloadSpec("team", "mine", "queue", (spec,))
    create_workloads(found.cluster, [mine], actor="researcher", submitted_by="researcher")
    manifest = cpu_job(2, suspend=True)
    manifest["metadata"]["labels"]["kueue.x-k8s.io/prebuilt-workload-name"] = "mine"
    found.client.create(JOBS, manifest)
    for _ in range(2):
        found.turn()
    assert (found.workload().job, Job.objects.exists(), running(found)) == (None, False, 0)


@pytest.mark.parametrize("suspend", [True, False])
def test_a_job_with_other_pods_ends_no_workload_of_another_user(found: System, suspend: bool) -> None:
    make_user("researcher")
    spec = PodSetSpec("main", 3, completed_template(), {"cpu": 1000})
    theirs = WorkloadSpec("team", "mine", "queue", (spec,))
    create_workloads(found.cluster, [theirs], actor="researcher", submitted_by="researcher")
    found.engine.run()
    found.client.create(JOBS, prebuilt(cpu_job(2, suspend=suspend)))
    for _ in range(2):
        found.turn()
    row = found.workload()
    assert (row.status, row.job, live(found)["spec"]["suspend"], running(found)) == ("Admitted", None, True, 0)


def test_the_quota_of_an_elastic_indexed_job_follows_its_completed_indexes_and_its_size(found: System) -> None:
    manifest = cpu_job(4, suspend=True)
    manifest["metadata"]["annotations"] = {"kueue.x-k8s.io/elastic-job": "true"}
    manifest["spec"] |= {"completions": 4, "completionMode": "Indexed"}
    found.client.create(JOBS, manifest)
    for _ in range(4):
        found.turn()
    assert (running(found), charged(found)) == (4, 4)
    for pod in found.pods():
        if pod["metadata"]["annotations"]["batch.kubernetes.io/job-completion-index"] in ("0", "1"):
            change = {"metadata": {"annotations": {"kueueweb.io/run-seconds": "1"}}}
            found.client.patch(PODS, "team", pod["metadata"]["name"], change)
    for _ in range(3):
        found.turn()
    assert live(found)["status"]["completedIndexes"] == "0-1"
    assert (running(found), charged(found)) == (2, 2)
    queue = ClusterQueue.objects.get()
    assert held_in([found.cluster.pk], [queue.name])[found.cluster.pk].reserved[queue.name]["gpu-flavor", "cpu"] == 2000
    found.client.patch(JOBS, "team", "train", size(1))
    for _ in range(3):
        found.turn()
    assert (running(found), charged(found)) == (1, 1)


def charged(system: System) -> int:
    """How many cpus the only workload that holds quota is charged for."""
    (row,) = Workload.objects.filter(quota_reserved_at__isnull=False).exclude(status="Finished")
    (pod_set,) = row.pod_sets.all()
    return int((pod_set.admitted_count or 0) - pod_set.reclaimable_count)


def prebuilt(manifest: JsonObject) -> JsonObject:
    labels = {**manifest["metadata"]["labels"], "kueue.x-k8s.io/prebuilt-workload-name": "mine"}
    return {**manifest, "metadata": {**manifest["metadata"], "labels": labels}}


def test_a_prebuilt_workload_with_other_pods_than_its_job_ends_out_of_sync(found: System) -> None:
    spec = PodSetSpec("main", 3, completed_template(), {"cpu": 1000})
    create_workloads(found.cluster, [WorkloadSpec("team", "mine", "queue", (spec,))], actor="kubectl in the cluster")
    found.client.create(JOBS, prebuilt(cpu_job(2, suspend=True)))
    found.watcher.resync()
    row = found.workload()
    assert (row.status, row.reason, row.job is not None) == ("Finished", "OutOfSync", True)
    assert [pod_set.count for pod_set in row.pod_sets.all()] == [3]
    found.client.patch(JOBS, "team", "train", {"spec": {"suspend": False}})
    for _ in range(2):
        found.turn()
    assert (live(found)["spec"]["suspend"], running(found)) == (True, 0)


def test_a_job_that_runs_and_gets_no_workload_is_suspended(found: System) -> None:
    found.client.create(JOBS, prebuilt(cpu_job(2)))
    call_command("watch_cluster", cluster="default", once=True, stdout=StringIO())
    assert (Workload.objects.exists(), live(found)["spec"]["suspend"]) == (False, True)


@pytest.mark.parametrize("admitted", [False, True])
def test_a_part_of_another_job_runs_only_while_that_one_is_admitted(found: System, admitted: bool) -> None:
    found.client.create(JOBS, cpu_job(2 if admitted else 101, suspend=True))
    for _ in range(2):
        found.turn()
    whole = live(found)
    part = cpu_job(1)
    reference = {"apiVersion": "batch/v1", "kind": "Job", "name": "train", "uid": whole["metadata"]["uid"]}
    part["metadata"] = {"name": "part", "namespace": "team", "ownerReferences": [{**reference, "controller": True}]}
    found.client.create(JOBS, part)
    found.watcher.resync()
    there = found.client.get(JOBS, "team", "part")
    assert there is not None
    assert (Workload.objects.count(), there["spec"].get("suspend", False)) == (1, not admitted)


def owned(name: str, owner: JsonObject, **spec: Any) -> JsonObject:
    """A Job without a queue that is controlled by the owner."""
    made = cpu_job(1, **spec)
    reference = {key: owner[key] for key in ("apiVersion", "kind")}
    reference |= {key: owner["metadata"][key] for key in ("name", "uid")}
    made["metadata"] = {"name": name, "namespace": "team", "ownerReferences": [{**reference, "controller": True}]}
    return made


def is_suspended(system: System, name: str) -> bool:
    there = system.client.get(JOBS, "team", name)
    assert there is not None
    return bool(there["spec"].get("suspend", False))


@pytest.mark.parametrize("admitted", [False, True])
def test_a_part_of_a_part_runs_only_while_the_topmost_job_is_admitted(found: System, admitted: bool) -> None:
    found.client.create(JOBS, cpu_job(2 if admitted else 101, suspend=True))
    for _ in range(2):
        found.turn()
    between = found.client.create(JOBS, owned("between", live(found), suspend=True))
    found.client.create(JOBS, owned("part", between))
    found.watcher.resync()
    assert is_suspended(found, "part") is not admitted


def test_a_job_below_a_deployment_without_admitted_pods_does_not_run(found: System) -> None:
    """An owner of any kind that waits in a queue decides for its parts, as in Kueue."""
    serving = found.client.create(DEPLOYMENTS, deployment(0))
    found.client.create(JOBS, owned("part", serving))
    for _ in range(4):
        found.watcher.resync()
        found.advance(5)
        found.watcher.tick()
    assert is_suspended(found, "part")


@pytest.mark.parametrize("there", [1, 2])
def test_a_job_below_a_pod_of_a_group_runs_only_while_the_group_is_admitted(found: System, there: int) -> None:
    pods = [found.client.create(PODS, found_pod(f"pod-{number}", group="ring", total=2)) for number in range(there)]
    for _ in range(2):
        found.turn()
    found.client.create(JOBS, owned("part", pods[0]))
    for _ in range(4):
        found.watcher.resync()
        found.advance(5)
        found.watcher.tick()
    assert is_suspended(found, "part") is (there < 2)


def test_a_part_of_a_job_that_is_in_no_queue_is_left_alone(found: System) -> None:
    free = cpu_job(1)
    del free["metadata"]["labels"]
    found.client.create(JOBS, free)
    found.client.create(JOBS, owned("part", live(found)))
    for _ in range(4):
        found.watcher.resync()
        found.advance(5)
        found.watcher.tick()
    assert not is_suspended(found, "part")


def test_a_found_job_that_asks_for_more_than_its_limits_waits_with_a_workload(found: System) -> None:
    manifest = cpu_job(1, suspend=True, limits={"cpu": "500m"})
    found.client.create(JOBS, manifest)
    found.watcher.resync()
    found.engine.run()
    assert (found.workload().status, found.workload().quota_reserved_at) == ("Pending", None)


def test_many_new_jobs_cost_no_more_statements_than_two(found: System) -> None:
    def statements(prefix: str, count: int) -> int:
        for number in range(count):
            found.client.create(JOBS, gpu_job(f"{prefix}-{number}", suspend=True))
        with CaptureQueriesContext(connection) as queries:
            found.watcher.resync()
        return len(queries)

    statements("first", 2)
    two = statements("two", 2)
    assert statements("many", 20) <= two, "a read that the first turns make may be kept by later ones"
    assert Workload.objects.count() == 24


def test_a_new_job_that_gets_no_workload_holds_up_no_other(found: System, caplog: pytest.LogCaptureFixture) -> None:
    Job.objects.create(
        cluster=found.cluster,
        kind="Job",
        namespace="team",
        name="taken",
        uid=uuid.uuid4(),
        manifest={},
        created_at=START,
    )
    unread = gpu_job("unread", suspend=True)
    unread["metadata"]["labels"]["kueue.x-k8s.io/max-exec-time-seconds"] = "soon"
    others = (gpu_job(name, suspend=True) for name in ("first", "taken", "last"))
    for manifest in (unread, *others):
        found.client.create(JOBS, manifest)
    with caplog.at_level(logging.INFO, logger="clusters.sync.jobs"):
        found.watcher.resync()
    assert {row.job.name for row in Workload.objects.all() if row.job is not None} == {"first", "last"}
    told = " ".join(record.getMessage() for record in caplog.records)
    assert "team/unread" in told
    assert "team/taken" in told


def test_new_jobs_keep_their_submitters(found: System) -> None:
    for name, user in (("one", "alice"), ("two", "bob"), ("three", "alice")):
        manifest = gpu_job(name, suspend=True)
        manifest["metadata"]["namespace"] = "team"
        notes = submitter_notes(found.cluster.name, manifest, user, found.now())
        manifest["metadata"]["annotations"] = notes
        found.client.create(JOBS, manifest)
    found.watcher.resync()
    rows = Workload.objects.select_related("job")
    assert {(row.job.name, row.submitted_by) for row in rows if row.job is not None} == {
        ("one", "alice"), ("two", "bob"), ("three", "alice"),
    }  # fmt: skip


def test_a_new_job_that_waits_is_looked_at_once(found: System) -> None:
    found.client.create(JOBS, gpu_job(suspend=True, run_seconds=1000))
    with CaptureQueriesContext(connection) as queries:
        found.watcher.resync()
    assert found.workload().status == "Pending"
    reads = [query["sql"] for query in queries if "FROM queues_podset WHERE" in query["sql"]]
    again = [sql for sql in reads if "queues_podset.position" in sql]
    assert not again, "a second look reads the pod sets of the new workload"
