"""From a decision to running pods and back: the engine, the push, the cluster and the watcher together."""

from __future__ import annotations

import threading
from collections.abc import Callable
from itertools import pairwise
from uuid import uuid4

import orjson
import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from accounts.models import Cluster, Namespace
from accounts.services.cluster_settings import set_placement
from clusters.api_objects import NAMESPACES, NODES, PODS, JsonObject
from clusters.client import TokenBucket, WatchEvent
from clusters.client_credentials import connect
from clusters.manifests import apply_manifests
from clusters.push.sweep import PushReport, push_pending
from gpus.models import Device, DeviceAllocation
from queues.manifests.kueue_keys import ELASTIC_JOB
from queues.models import Job, Pod, Workload
from queues.services.workloads import cancel, hold, release
from scheduling.model.vocabulary import PlacementScope
from tests.acceptance.processes import wait_for
from tests.cluster_kinds import DEPLOYMENTS, JOBS
from tests.clusters.system import System, deployment, gpu_job, queued
from tests.patience import PATIENCE_SECONDS
from tests.simulated_cluster import job, pod

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_job_runs_on_the_devices_that_were_decided_and_finishes(system: System) -> None:
    system.submit(gpu_job(parallelism=2, completions=2, run_seconds=100))
    system.turn()
    system.turn()
    row = system.workload()
    assert (row.status, row.pushed_sequence, row.push_error) == ("Admitted", row.push_sequence, "")
    decided = {
        allocation.replica: (allocation.node.name, allocation.device_uuid)
        for allocation in DeviceAllocation.objects.select_related("node")
    }
    running = system.pods()
    assert [pod["status"]["phase"] for pod in running] == ["Running", "Running"]
    told = {
        int(pod["metadata"]["annotations"]["kueueweb.io/replica"]): (
            pod["spec"]["nodeName"],
            pod["metadata"]["annotations"]["hami.io/vgpu-devices-allocated"].split(",")[0],
        )
        for pod in running
    }
    assert told == decided
    assert {pod["metadata"]["annotations"]["hami.io/bind-phase"] for pod in running} == {"success"}
    assert row.pods_ready_at is not None
    assert list(Pod.objects.order_by("replica").values_list("replica", "phase", "ready")) == [
        (0, "Running", True),
        (1, "Running", True),
    ]
    system.turn(120)
    row.refresh_from_db()
    assert (row.status, row.reason) == ("Finished", "Succeeded")
    assert not DeviceAllocation.objects.exists()
    assert set(Device.objects.values_list("used_slots", flat=True)) == {0}


def test_pods_carry_kueues_labels_and_the_flavors_nodes(system: System) -> None:
    system.submit(gpu_job())
    system.turn()
    (pod,) = system.pods()
    labels = pod["metadata"]["labels"]
    assert labels["kueue.x-k8s.io/podset"] == "main"
    assert labels["kueue.x-k8s.io/cluster-queue-name"] == "main"
    assert labels["kueue.x-k8s.io/local-queue-name"] == "queue"
    assert pod["metadata"]["annotations"]["kueue.x-k8s.io/workload"] == system.workload().name
    assert pod["spec"]["nodeSelector"] == {"gpu": "on", "kubernetes.io/hostname": pod["spec"]["nodeName"]}


def test_the_namespace_is_made_where_the_cluster_lacks_it(system: System) -> None:
    assert system.client.get(NODES, "", "node-01") is not None
    system.submit(gpu_job())
    system.engine.run()
    assert system.push().pushed == 1
    assert len(system.client.list(JOBS, "team").items) == 1


def test_nothing_reaches_the_cluster_before_admission(system: System) -> None:
    system.submit(gpu_job(mib=90_000))
    system.turn()
    assert (system.workload().status, system.client.list(JOBS).items) == ("Pending", ())


def test_an_evicted_job_is_suspended_and_its_quota_is_free_only_when_its_pods_are_gone(system: System) -> None:
    system.submit(gpu_job(run_seconds=1000))
    system.turn()
    key = (system.workload().namespace, system.workload().name)
    hold(system.cluster, [key], actor="alice")
    system.engine.run()
    system.push()
    row = system.workload()
    (found,) = system.client.list(JOBS).items
    assert found["spec"]["suspend"] is True
    assert row.pods_stopped_at is None
    assert DeviceAllocation.objects.filter(workload=row).exists()
    system.advance(3)
    assert system.push().stopped == 1
    system.engine.run()
    row = system.workload()
    assert (row.quota_reserved_at, DeviceAllocation.objects.count()) == (None, 0)


def test_a_released_job_runs_again(system: System) -> None:
    system.submit(gpu_job(run_seconds=50))
    system.turn()
    key = (system.workload().namespace, system.workload().name)
    hold(system.cluster, [key], actor="alice")
    system.turn()
    release(system.cluster, [key], actor="alice")
    system.turn()
    system.turn()
    assert [pod["status"]["phase"] for pod in system.pods()] == ["Running"]
    system.turn(60)
    assert system.workload().reason == "Succeeded"


def test_a_cancelled_job_leaves_the_cluster_and_then_is_finished(system: System) -> None:
    system.submit(gpu_job(run_seconds=1000))
    system.turn()
    key = (system.workload().namespace, system.workload().name)
    cancel(system.cluster, [key], actor="alice")
    system.engine.run()
    system.push()
    assert system.client.list(JOBS).items == ()
    system.turn()
    assert (system.pods(), system.workload().reason) == ([], "Cancelled")
    assert not DeviceAllocation.objects.exists()


def test_a_push_that_is_repeated_changes_nothing(system: System) -> None:
    system.submit(gpu_job(run_seconds=1000))
    system.turn()
    before = [(pod["metadata"]["uid"], pod["metadata"]["resourceVersion"]) for pod in system.pods()]
    Workload.objects.update(pushed_sequence=0)
    assert system.push() == PushReport(pushed=1)
    assert [(pod["metadata"]["uid"], pod["metadata"]["resourceVersion"]) for pod in system.pods()] == before


def test_pods_of_one_node_get_their_devices_one_after_the_other(system: System) -> None:
    system.submit(gpu_job(parallelism=4, completions=4, run_seconds=1000))
    system.engine.run()
    system.push()
    bound = [pod["spec"].get("nodeName") for pod in system.pods()]
    assert sum(node is not None for node in bound) == len({node for node in bound if node})
    for _ in range(4):
        system.turn()
    assert [pod["status"]["phase"] for pod in system.pods()] == ["Running"] * 4


def test_a_failed_pod_is_replaced_in_its_place(system: System) -> None:
    system.submit(gpu_job(run_seconds=1000))
    system.turn()
    system.turn()
    (pod,) = system.pods()
    system.client.delete(PODS, "team", pod["metadata"]["name"])
    for _ in range(6):
        system.turn(5)
    (again,) = system.pods()
    assert again["metadata"]["uid"] != pod["metadata"]["uid"]
    assert again["status"]["phase"] == "Running"
    annotation = "hami.io/vgpu-devices-allocated"
    assert again["metadata"]["annotations"][annotation] == pod["metadata"]["annotations"][annotation]


def test_a_job_that_fails_finishes_its_workload_as_failed(system: System) -> None:
    system.submit(gpu_job(run_seconds=5, backoffLimit=0, annotations={"kueueweb.io/fail": "true"}))
    system.turn()
    system.turn(20)
    row = system.workload()
    assert (row.status, row.reason, "backoff limit" in row.message) == ("Finished", "Failed", True)


def test_a_single_pod_runs_and_finishes(system: System) -> None:
    limits = {"nvidia.com/gpu": "1", "nvidia.com/gpumem": "1000"}
    container = {"name": "main", "image": "app", "resources": {"limits": limits}}
    annotations = {"kueueweb.io/run-seconds": "20"}
    manifest = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "single", "annotations": annotations},
        "spec": {"restartPolicy": "Never", "containers": [container]},
    }
    system.submit(queued(manifest))
    system.turn()
    assert [pod["status"]["phase"] for pod in system.pods()] == ["Running"]
    system.turn(30)
    assert system.workload().reason == "Succeeded"


def test_a_deployment_that_is_applied_with_more_or_fewer_replicas_follows(system: System) -> None:
    system.apply(deployment(2))
    for _ in range(3):
        system.turn()
    assert [pod["status"]["phase"] for pod in system.pods()] == ["Running"] * 2
    system.apply(deployment(3))
    for _ in range(3):
        system.turn()
    assert [pod["status"]["phase"] for pod in system.pods()] == ["Running"] * 3
    system.apply(deployment(1))
    for _ in range(5):
        system.turn()
    assert [pod["status"]["phase"] for pod in system.pods()] == ["Running"]
    assert Workload.objects.filter(status="Admitted").count() == 1
    assert DeviceAllocation.objects.count() == 1


def test_each_pod_of_a_deployment_starts_with_its_own_workload(system: System) -> None:
    system.submit(deployment(5))
    for _ in range(5):
        system.turn()
    # Four devices of 32 GiB hold four of the five.
    statuses = sorted(Workload.objects.values_list("status", flat=True))
    assert statuses == ["Admitted"] * 4 + ["Pending"]
    phases = sorted((pod["status"]["phase"], bool(pod["spec"].get("nodeName"))) for pod in system.pods())
    assert phases == [("Pending", False)] + [("Running", True)] * 4
    admitted = Workload.objects.filter(status="Admitted").order_by("pk")[0]
    hold(system.cluster, [(admitted.namespace, admitted.name)], actor="alice")
    for _ in range(4):
        system.turn()
    # Its pod went; the one that waited took the device.
    assert sorted(Workload.objects.values_list("status", flat=True)) == ["Admitted"] * 4 + ["Pending"]
    assert sum(pod["status"]["phase"] == "Running" for pod in system.pods()) == 4
    (found,) = system.client.list(DEPLOYMENTS).items
    assert found["spec"]["replicas"] == 5


def test_a_flavor_that_contradicts_the_pods_selector_finishes_the_workload(system: System) -> None:
    system.submit(gpu_job())
    system.engine.run()
    Job.objects.update(
        manifest={
            **Job.objects.get().manifest,
            "spec": {"template": {"spec": {"nodeSelector": {"gpu": "off"}, "containers": [{"name": "main"}]}}},
        }
    )
    system.push()
    row = system.workload()
    assert (row.status, row.reason) == ("Finished", "FailedToStart")
    assert "key=gpu, value1=off, value2=on" in row.message


def test_another_job_of_the_same_name_is_left_alone_and_said(system: System) -> None:
    system.client.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}})
    theirs = job()
    theirs["metadata"]["namespace"] = "team"
    uid = system.client.create(JOBS, theirs)["metadata"]["uid"]
    system.submit(gpu_job())
    system.engine.run()
    assert system.push().failed == 1
    row = system.workload()
    assert (row.pushed_sequence, "another job with this name" in row.push_error) == (0, True)
    found = system.client.get(JOBS, "team", "train")
    assert found is not None
    assert found["metadata"]["uid"] == uid


def test_an_ended_job_that_is_not_ours_is_left_alone_too(system: System) -> None:
    """It was deleted to make room."""
    system.client.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}})
    theirs = job(run_seconds=1)
    theirs["metadata"]["namespace"] = "team"
    uid = system.client.create(JOBS, theirs)["metadata"]["uid"]
    system.turn(60)
    system.submit(gpu_job())
    system.engine.run()
    assert system.push().failed == 1
    found = system.client.get(JOBS, "team", "train")
    assert found is not None
    assert found["status"]["succeeded"] == 1
    assert found["metadata"]["uid"] == uid


def test_a_job_that_was_lost_is_pushed_again(system: System) -> None:
    system.submit(gpu_job(run_seconds=1000))
    system.turn()
    system.client.delete(JOBS, "team", "train")
    for _ in range(3):
        system.turn()
    assert [pod["status"]["phase"] for pod in system.pods()] == ["Running"]
    assert system.workload().status == "Admitted"


def test_an_unreachable_cluster_costs_nothing_but_time(system: System) -> None:
    system.submit(gpu_job())
    system.engine.run()
    nobody = connect("http://127.0.0.1:9", TokenBucket(10_000, 10_000))
    assert push_pending(system.cluster, nobody) == PushReport()
    assert system.push().pushed == 1


def test_a_sweep_without_work_looks_for_it_by_one_query(system: System) -> None:
    system.push()
    with CaptureQueriesContext(connection) as queries:
        assert system.push() == PushReport()
    told = [query["sql"] for query in queries if "queues_workload" in query["sql"] or "queues_job" in query["sql"]]
    assert (len(told), len(queries)) == (1, 3)


def _lists_of_pods(system: System) -> int:
    system.guard.requests.clear()
    system.push()
    return system.guard.requests.count("GET /api/v1/pods")


def _stop(system: System) -> None:
    hold(system.cluster, [(system.workload().namespace, system.workload().name)], actor="alice")
    system.engine.run()


def _plain_job(**template: object) -> JsonObject:
    manifest = queued(job("train", parallelism=2, completions=2, run_seconds=1000))
    manifest["spec"]["template"]["spec"] |= template
    return manifest


def _place_devices_only(system: System) -> None:
    set_placement(system.cluster, PlacementScope.DEVICES)
    system.cluster.refresh_from_db()


def test_running_pods_that_start_by_themselves_are_not_listed(system: System) -> None:
    _place_devices_only(system)
    system.submit(_plain_job())
    system.turn()
    assert (system.workload().status, _lists_of_pods(system)) == ("Admitted", 0)
    _stop(system)
    assert _lists_of_pods(system) > 0  # until none is left, its quota is held
    system.turn()
    assert (system.workload().quota_reserved_at, _lists_of_pods(system)) == (None, 0)


@pytest.mark.parametrize(
    "manifest",
    [
        gpu_job(run_seconds=1000),
        deployment(1),
        _plain_job(schedulingGates=[{"name": "kueue.x-k8s.io/topology"}]),
        {**_plain_job(), "metadata": {**_plain_job()["metadata"], "annotations": {ELASTIC_JOB: "true"}}},
    ],
    ids=["with devices", "pod by pod", "gated by its owner", "elastic"],
)
def test_pods_that_wait_for_us_are_listed(system: System, manifest: JsonObject) -> None:
    _place_devices_only(system)
    system.submit(manifest)
    system.turn()
    assert _lists_of_pods(system) == 1


def test_nothing_is_pushed_to_an_observed_cluster(system: System) -> None:
    system.submit(gpu_job())
    system.engine.run()
    Cluster.objects.update(mode="observe")
    system.cluster.refresh_from_db()
    assert system.push() == PushReport()
    assert system.client.list(JOBS).items == ()


def test_a_pod_of_another_namespace_with_our_labels_gets_nothing_and_holds_nothing_up(system: System) -> None:
    system.submit(gpu_job(run_seconds=1000))
    system.turn()
    (ours,) = system.pods()
    liar = pod("liar", schedulerName="kueueweb", limits={"nvidia.com/gpu": "1"})
    liar["metadata"]["labels"] = ours["metadata"]["labels"]
    system.client.create(PODS, liar)
    hold(system.cluster, [(system.workload().namespace, system.workload().name)], actor="alice")
    for _ in range(3):
        system.turn()
    found = system.client.get(PODS, "default", "liar")
    assert found is not None
    assert (found["spec"].get("nodeName"), found["metadata"].get("annotations") or {}) == (None, {})
    assert system.workload().quota_reserved_at is None


def test_one_sweep_works_one_waits_and_the_others_leave(system: System) -> None:
    system.submit(gpu_job())
    system.engine.run()
    entered, go_on = threading.Event(), threading.Event()

    def slow_clock() -> float:
        entered.set()
        assert go_on.wait(PATIENCE_SECONDS)
        return system.now()

    reports: dict[str, PushReport] = {}

    def sweep(name: str, clock: Callable[[], float]) -> None:
        reports[name] = push_pending(system.cluster, system.client, clock)
        connection.close()

    first = threading.Thread(target=sweep, args=("first", slow_clock))
    first.start()
    assert entered.wait(PATIENCE_SECONDS)
    system.submit(gpu_job("later"))
    system.engine.run()
    second = threading.Thread(target=sweep, args=("second", system.now))
    second.start()
    wait_for("a sweep that waits", a_sweep_waits)
    assert push_pending(system.cluster, system.client, system.now) == PushReport()
    go_on.set()
    for thread in (first, second):
        thread.join(PATIENCE_SECONDS)
    # The clock is asked before the rows are read, so the first sweep may find the later job too; each is pushed once.
    assert reports["first"].pushed + reports["second"].pushed == 2


def a_sweep_waits() -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted")
        return bool(cursor.fetchone()[0])


def test_what_a_tenant_writes_in_a_scheduler_s_name_never_reaches_a_pod(system: System) -> None:
    """Keys of ours and of every device plugin went to the cluster as they were written."""
    manifest = gpu_job(run_seconds=1000)
    template = manifest["spec"]["template"]
    template.setdefault("metadata", {}).setdefault("annotations", {}).update(
        {
            "hami.io/vgpu-node": "node-9",
            "hami.io/mlu-devices-allocated": "garbage,x;",
            "hami.io/kunlun-allocated": "garbage,x;",
            "huawei.com/Ascend910B": "[]",
            "kueue.x-k8s.io/workload": "another",
            "kueueweb.io/replica": "7",
            "hami.io/gpu-scheduler-policy": "binpack",
        }
    )
    template["metadata"]["labels"] = {"kueueweb.io/workload-uid": str(uuid4()), "app": "x"}
    [applied] = apply_manifests(system.cluster, orjson.dumps(manifest), user=None).objects
    assert len(applied.warnings) == 7
    for _ in range(2):
        system.turn()
    [pod] = system.pods()
    metadata, row = pod["metadata"], system.workload()
    assert not metadata["annotations"].keys() & {
        "hami.io/mlu-devices-allocated", "hami.io/kunlun-allocated", "huawei.com/Ascend910B",
    }  # fmt: skip
    assert metadata["annotations"]["hami.io/vgpu-node"] == pod["spec"]["nodeName"]
    assert metadata["annotations"]["hami.io/gpu-scheduler-policy"] == "binpack"
    assert metadata["annotations"]["kueue.x-k8s.io/workload"] == row.name
    assert metadata["annotations"]["kueueweb.io/replica"] == "0"
    assert (metadata["labels"]["kueueweb.io/workload-uid"], metadata["labels"]["app"]) == (str(row.uid), "x")


class TestRefusals:
    """A job that the API server refuses kept quota and devices forever, and was told again without a pause."""

    def test_what_is_refused_for_good_ends_with_the_server_s_words(self, system: System) -> None:
        manifest = gpu_job(run_seconds=1000)
        system.submit(manifest)
        # What we would refuse ourselves stands for a rule that this server has and we do not know.
        manifest["spec"]["template"]["spec"]["restartPolicy"] = "Sometimes"
        Job.objects.update(manifest=manifest)
        system.turn()
        row = system.workload()
        assert (row.status, row.reason) == ("Finished", "FailedToStart")
        assert "restartPolicy" in row.message
        assert not DeviceAllocation.objects.exists()

    def test_temporary_refusals_are_retried_with_growing_delays(self, system: System) -> None:
        system.client.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}})
        theirs = job("train", run_seconds=10_000)
        theirs["metadata"]["namespace"] = "team"
        system.client.create(JOBS, theirs)
        system.submit(gpu_job(run_seconds=1000))
        system.engine.run()
        tried = []
        for _ in range(40):
            if system.push().failed:
                tried.append(system.now())
            system.advance(1)
        waits = [after - before for before, after in pairwise(tried)]
        assert waits == sorted(waits)
        assert len(tried) < 8
        assert system.workload().push_error == "AlreadyExists: another job with this name is in the cluster"
        system.client.delete(JOBS, "team", "train")
        system.advance(60)
        system.turn()
        assert (system.workload().push_error, system.workload().push_failures) == ("", 0)


class TestReplicas:
    """Cancelling one replica removed its Deployment, and its siblings held what they had forever."""

    def test_a_cancelled_replica_leaves_the_others(self, system: System) -> None:
        system.apply(deployment(3))
        for _ in range(3):
            system.turn()
        first, *others = Workload.objects.order_by("pk")
        assert len(system.pods()) == 3
        cancel(system.cluster, [(first.namespace, first.name)], actor="alice")
        for _ in range(4):
            system.turn()
        there = system.client.get(DEPLOYMENTS, "team", "web")
        assert there is not None
        assert there["spec"]["replicas"] == 2
        states = {row.name: (row.status, row.reason) for row in Workload.objects.all()}
        assert states[first.name] == ("Finished", "Cancelled")
        assert {states[row.name][0] for row in others} == {"Admitted"}
        running = {pod["metadata"]["labels"]["kueueweb.io/workload-uid"] for pod in system.pods()}
        assert running == {str(row.uid) for row in others}
        assert DeviceAllocation.objects.count() == 2

    def test_with_the_last_replica_the_deployment_goes_and_its_name_is_free(self, system: System) -> None:
        system.apply(deployment(2))
        for _ in range(2):
            system.turn()
        cancel(system.cluster, list(Workload.objects.values_list("namespace", "name")), actor="alice")
        for _ in range(4):
            system.turn()
        assert system.client.get(DEPLOYMENTS, "team", "web") is None
        assert not DeviceAllocation.objects.exists()
        system.apply(deployment(1))

    def test_siblings_of_a_deployment_that_is_gone_end(self, system: System) -> None:
        system.apply(deployment(2))
        for _ in range(2):
            system.turn()
        Job.objects.update(deletion_requested_at=system.moment())
        there = system.client.get(DEPLOYMENTS, "team", "web")
        assert there is not None
        system.watcher.resync()
        system.client.delete(DEPLOYMENTS, "team", "web")
        system.watcher.apply([(DEPLOYMENTS, WatchEvent("DELETED", there))])
        for _ in range(4):
            system.turn()
        assert set(Workload.objects.values_list("status", "reason")) == {("Finished", "OwnerNotFound")}
        assert not DeviceAllocation.objects.exists()


def test_a_namespace_is_made_with_the_labels_by_which_its_queue_takes_it(system: System) -> None:
    """Its row follows the cluster's object from then on, and would lose them."""
    Namespace.objects.filter(cluster=system.cluster, name="team").update(labels={"team": "a"})
    system.submit(gpu_job())
    for _ in range(3):
        system.turn()
    made = system.client.get(NAMESPACES, "", "team")
    assert made is not None
    assert made["metadata"]["labels"]["team"] == "a"
    assert Namespace.objects.get(cluster=system.cluster, name="team").labels["team"] == "a"
