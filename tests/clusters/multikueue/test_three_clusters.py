"""Three clusters under MultiKueue: run by us, over their API servers alone: a winner, and its end."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from clusters.api_objects import PODS
from clusters.jobs.cluster_objects import RowsAndCluster
from clusters.jobs.integrations import job_context
from clusters.jobs.registry import JOB_KINDS
from queues.models import MultiKueueCluster, Workload, WorkloadEvent
from simulation.api.resources import BY_KIND, crd_of
from tests.clusters.group_pods import found_pod
from tests.clusters.multikueue.fleet import JOBS, Fleet, fleet_of
from tests.clusters.served_cluster import queue_spec
from tests.clusters.system import CRDS
from tests.clusters.test_pods_that_wait import leader_worker_set, stateful_set, webhooked

STATEFUL_SETS = JOB_KINDS["StatefulSet"].resource

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def fleet() -> Iterator[Fleet]:
    with fleet_of("east", "west") as fleet:
        yield fleet


def test_the_first_that_admits_runs_it_and_its_end_is_the_end(fleet: Fleet) -> None:
    assert {row.name: row.conditions[0]["message"] for row in MultiKueueCluster.objects.all()} == dict.fromkeys(
        ("east", "west"), "Connected"
    )
    condition = fleet.manager.get("MultiKueueCluster", "east")["status"]["conditions"][0]
    assert (condition["status"], condition["reason"]) == ("True", "Active")
    assert fleet.manager.get("AdmissionCheck", "workers")["status"]["conditions"][0]["reason"] == "Active"
    fleet.close("east")
    fleet.submit()
    fleet.manager.settle(2)
    fleet.follow()
    assert fleet.row.status == "QuotaReserved"
    assert fleet.with_copy() == {"east", "west"}, "to all at once"
    fleet.turn(3)
    row = fleet.row
    assert (row.status, fleet.check) == ("Admitted", ("Ready", 'The workload was admitted on "west"'))
    assert fleet.with_copy() == {"west"}, "the others' copies are withdrawn"
    assert fleet.jobs() == {"east": [], "west": ["train"]}
    remote = fleet.workers["west"].client.get(JOBS, "team", "train")
    assert remote is not None
    assert remote["metadata"]["labels"]["kueue.x-k8s.io/prebuilt-workload-name"] == row.name
    assert remote["metadata"]["labels"]["kueue.x-k8s.io/multikueue-origin"] == "multikueue"
    assert "managedBy" not in remote["spec"]
    assert [pod["status"]["phase"] for pod in fleet.pods(fleet.workers["west"])] == ["Running"]
    assert not fleet.pods(fleet.manager), "no pods start on the manager"
    here = fleet.manager.client.get(JOBS, "team", "train")
    assert here is not None
    assert (here["spec"]["suspend"], here["status"]["active"], here["status"]["ready"]) == (False, 1, 1)
    shown = fleet.manager.get("Workload", row.name, "team")["status"]
    assert shown["clusterName"] == "west"
    assert "nominatedClusterNames" not in shown
    assert WorkloadEvent.objects.filter(reason="MultiKueue", message__contains="west").count() == 1
    assert fleet.row.pods_ready_at is not None
    fleet.advance(700)
    fleet.turn(3)
    row = fleet.row
    assert (row.status, row.reason) == ("Finished", "Succeeded")
    here = fleet.manager.client.get(JOBS, "team", "train")
    assert here is not None
    assert (here["status"]["succeeded"], here["status"]["conditions"][-1]["type"]) == (1, "Complete")
    fleet.turn()
    assert not fleet.with_copy(), "the worker is cleaned"
    assert fleet.jobs() == {"east": [], "west": []}
    assert not fleet.pods(fleet.workers["west"])


def test_a_stateful_set_runs_in_the_worker_that_admits_it(fleet: Fleet) -> None:
    manifest = webhooked(stateful_set(2))
    manifest["metadata"] = {"name": "db", "namespace": "team", "labels": {"kueue.x-k8s.io/queue-name": "local"}}
    fleet.manager.client.create(STATEFUL_SETS, manifest)
    fleet.close("east")
    fleet.turn(6)
    assert (fleet.row.status, fleet.check[0]) == ("Admitted", "Ready")
    copy = Workload.objects.get(cluster=fleet.workers["west"].cluster)
    assert (copy.name, copy.status) == (fleet.row.name, "Admitted")
    assert copy.job is not None
    assert copy.job.name == "db"
    assert [pod["status"]["phase"] for pod in fleet.pods(fleet.workers["west"])] == ["Running", "Running"]
    assert {pod["status"]["phase"] for pod in fleet.pods(fleet.manager)} <= {"Pending"}
    fleet.manager.client.delete(STATEFUL_SETS, "team", "db")
    fleet.turn(6)
    assert not fleet.with_copy()
    assert not fleet.pods(fleet.workers["west"])


def test_the_groups_of_a_leader_worker_set_run_in_one_worker(fleet: Fleet) -> None:
    kind = JOB_KINDS["LeaderWorkerSet"]
    for cluster in (fleet.manager, *fleet.workers.values()):
        cluster.client.create(CRDS, crd_of(BY_KIND[kind.resource.api_version, kind.kind]))
    for worker in fleet.workers.values():
        worker.apply("ClusterQueue", "main", queue_spec("10"))
    manifest = leader_worker_set(2)
    manifest["metadata"] = {"name": "llm", "namespace": "team", "labels": {"kueue.x-k8s.io/queue-name": "local"}}
    templates = manifest["spec"]["leaderWorkerTemplate"]
    for part in (templates["leaderTemplate"], templates["workerTemplate"]):
        part["spec"]["schedulingGates"] = [{"name": "kueue.x-k8s.io/admission"}, {"name": "kueue.x-k8s.io/topology"}]
    kind.default(manifest, job_context({}, RowsAndCluster(fleet.manager.cluster, fleet.manager.client)))
    fleet.manager.client.create(kind.resource, manifest)
    fleet.turn(8)
    rows = Workload.objects.filter(cluster=fleet.manager.cluster)
    assert [row.status for row in rows] == ["Admitted", "Admitted"]
    (place,) = fleet.with_copy()
    west = fleet.workers[place]
    assert sorted(Workload.objects.filter(cluster=west.cluster).values_list("name", flat=True)) == sorted(
        row.name for row in rows
    )
    assert [pod["status"]["phase"] for pod in fleet.pods(west)] == ["Running"] * 6
    fleet.manager.client.delete(kind.resource, "team", "llm")
    fleet.manager.turn()
    fleet.follow()
    assert west.client.get(kind.resource, "team", "llm") is None, "or its operator would make its parts anew"
    fleet.turn(6)
    assert not fleet.with_copy()
    assert not fleet.pods(west)


def test_a_group_of_pods_runs_in_the_worker_that_admits_it(fleet: Fleet) -> None:
    for number in range(2):
        manifest = found_pod(f"train-{number}", group="train", total=2, run_seconds=600)
        manifest["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] = "local"
        manifest["metadata"]["namespace"] = "team"
        manifest["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "1"}}
        fleet.manager.client.create(PODS, manifest)
    fleet.close("east")
    fleet.turn(6)
    assert (fleet.row.status, fleet.check[0]) == ("Admitted", "Ready")
    copy = Workload.objects.get(cluster=fleet.workers["west"].cluster)
    assert (copy.name, copy.status) == ("train", "Admitted")
    assert [pod["status"]["phase"] for pod in fleet.pods(fleet.workers["west"])] == ["Running", "Running"]
    fleet.advance(700)
    fleet.turn(4)
    assert (fleet.row.status, fleet.row.reason) == ("Finished", "Succeeded")
    assert {pod["status"]["phase"] for pod in fleet.pods(fleet.manager)} == {"Succeeded"}
    assert not fleet.with_copy()
    assert not fleet.pods(fleet.workers["west"])
