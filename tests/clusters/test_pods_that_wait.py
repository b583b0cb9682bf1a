"""StatefulSets and LeaderWorkerSets: their pods wait at the gate, and not they; and what makes jobs, a CronJob."""

from __future__ import annotations

from typing import Any

import pytest

from clusters.api_objects import NAMESPACES, PODS, JsonObject, Kind
from clusters.jobs.cluster_objects import RowsAndCluster
from clusters.jobs.integrations import job_context
from clusters.jobs.registry import JOB_KINDS
from foundation.exceptions import ManifestErrors
from queues.models import Job, Workload
from queues.services.jobs import delete_jobs
from queues.services.workloads import hold, release
from scheduling.model.vocabulary import WorkloadStatus
from tests.clusters.operated_jobs import template
from tests.clusters.system import System, queued

pytestmark = pytest.mark.django_db(transaction=True)

QUEUE = "kueue.x-k8s.io/queue-name"
GATE = {"name": "kueueweb.io/placement"}


def _trainer_template() -> JsonObject:
    """Its container has the name by which a TrainJob changes it."""
    made = template()
    [container] = made["spec"]["containers"]
    return {**made, "spec": {**made["spec"], "containers": [{**container, "name": "node"}]}}


RUNTIME: JsonObject = {
    "apiVersion": "trainer.kubeflow.org/v1alpha1",
    "kind": "ClusterTrainingRuntime",
    "metadata": {"name": "torch"},
    "spec": {
        "mlPolicy": {"numNodes": 2, "torch": {}},
        "template": {
            "spec": {
                "replicatedJobs": [
                    {
                        "name": "node",
                        "template": {
                            "metadata": {"labels": {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}},
                            "spec": {"template": _trainer_template()},
                        },
                    }
                ]
            }
        },
    },
}
RUNTIMES = Kind("trainer.kubeflow.org/v1alpha1", "ClusterTrainingRuntime", "clustertrainingruntimes", namespaced=False)


def serving_template() -> JsonObject:
    made = template(run_seconds=100_000)
    return {**made, "spec": {**made["spec"], "restartPolicy": "Always"}}


def stateful_set(replicas: int = 3) -> JsonObject:
    spec = {"replicas": replicas, "serviceName": "db", "selector": {"matchLabels": {"app": "train"}}}
    return queued(
        {
            "apiVersion": "apps/v1",
            "kind": "StatefulSet",
            "metadata": {"name": "db"},
            "spec": {**spec, "template": serving_template()},
        }
    )


def webhooked(manifest: JsonObject) -> JsonObject:
    """A StatefulSet as Kueue's webhook leaves it; its pods are gated as the webhook of pods leaves them."""
    template = manifest["spec"]["template"]
    gates = [{"name": "kueue.x-k8s.io/admission"}, {"name": "kueue.x-k8s.io/topology"}]
    template["spec"]["schedulingGates"] = gates
    template["metadata"]["annotations"] = {"kueue.x-k8s.io/pod-suspending-parent": "statefulset"}
    return manifest


def leader_worker_set(replicas: int = 2) -> JsonObject:
    templates = {"leaderTemplate": serving_template(), "workerTemplate": serving_template(), "size": 3}
    return queued(
        {
            "apiVersion": "leaderworkerset.x-k8s.io/v1",
            "kind": "LeaderWorkerSet",
            "metadata": {"name": "llm"},
            "spec": {"replicas": replicas, "leaderWorkerTemplate": templates},
        }
    )


def train_job(**spec: Any) -> JsonObject:
    reference = {"apiGroup": "trainer.kubeflow.org", "kind": "ClusterTrainingRuntime", "name": "torch"}
    return queued(
        {
            "apiVersion": "trainer.kubeflow.org/v1alpha1",
            "kind": "TrainJob",
            "metadata": {"name": "train"},
            "spec": {"runtimeRef": reference, **spec},
        }
    )


def running(system: System) -> list[str]:
    return sorted(pod["metadata"]["name"] for pod in system.pods() if pod["status"]["phase"] == "Running")


def gated(system: System) -> list[str]:
    return sorted(
        pod["metadata"]["name"] for pod in system.pods() if GATE in (pod["spec"].get("schedulingGates") or ())
    )


def turns(system: System, number: int) -> None:
    for _ in range(number):
        system.turn()


def test_a_stateful_set_is_one_workload_and_its_pods_come_one_by_one(system: System) -> None:
    system.apply(stateful_set())
    turns(system, 5)
    workload = system.workload("db")
    assert workload.status == WorkloadStatus.ADMITTED
    assert [(pod_set.name, pod_set.count) for pod_set in workload.pod_sets.all()] == [("main", 3)]
    assert running(system) == ["db-0", "db-1", "db-2"]
    assert workload.pods_ready_at is not None
    for pod in system.pods():
        assert pod["spec"]["nodeSelector"]["gpu"] == "on"
        assert pod["metadata"]["labels"]["kueue.x-k8s.io/podset"] == "main"


def test_its_pods_wait_after_an_eviction_and_run_again(system: System) -> None:
    system.apply(stateful_set(2))
    turns(system, 4)
    workload = system.workload("db")
    key = (workload.namespace, workload.name)
    hold(system.cluster, [key], actor="alice", now=system.moment())
    turns(system, 3)
    workload.refresh_from_db()
    assert (running(system), gated(system), workload.quota_reserved_at) == ([], ["db-0"], None)
    release(system.cluster, [key], actor="alice", now=system.moment())
    turns(system, 5)
    assert running(system) == ["db-0", "db-1"]


@pytest.mark.parametrize("found", [stateful_set(2), webhooked(stateful_set(2))], ids=["no webhook", "webhook"])
def test_a_found_stateful_set_is_taken_over_and_resized_by_its_owner(system: System, found: JsonObject) -> None:
    kind = JOB_KINDS["StatefulSet"].resource
    system.client.create(NAMESPACES, {"metadata": {"name": "team"}})
    system.client.create(kind, found)
    system.advance(10)
    system.watcher.resync()
    turns(system, 6)
    assert system.workload("db").status == WorkloadStatus.ADMITTED
    assert running(system) == ["db-0", "db-1"]
    assert {pod["metadata"]["labels"]["kueueweb.io/workload-uid"] for pod in system.pods()} == {
        str(system.workload("db").uid)
    }
    system.client.patch(kind, "team", "db", {"spec": {"replicas": 0}})
    turns(system, 4)
    on_hold = system.workload("db")
    assert (on_hold.status, on_hold.reason) == (WorkloadStatus.PENDING, "OnHold")
    assert on_hold.message == "StatefulSet scaled to zero; workload on hold"
    assert on_hold.quota_reserved_at is None
    assert system.pods() == []
    system.client.patch(kind, "team", "db", {"spec": {"replicas": 3}})
    turns(system, 6)
    again = system.workload("db")
    assert (again.uid, again.status, again.on_hold) == (on_hold.uid, WorkloadStatus.ADMITTED, "")
    assert [each.count for each in again.pod_sets.all()] == [3]
    assert running(system) == ["db-0", "db-1", "db-2"]


def test_a_submitted_stateful_set_that_is_scaled_to_zero_in_the_cluster_waits_on(system: System) -> None:
    """Its row defines it: the next push gives it its replicas back."""
    system.apply(stateful_set(2))
    turns(system, 4)
    key = [(system.workload("db").namespace, system.workload("db").name)]
    hold(system.cluster, key, actor="alice", now=system.moment())
    turns(system, 3)
    system.client.patch(JOB_KINDS["StatefulSet"].resource, "team", "db", {"spec": {"replicas": 0}})
    turns(system, 2)
    assert system.workload("db").on_hold == ""
    release(system.cluster, key, actor="alice", now=system.moment())
    turns(system, 5)
    assert running(system) == ["db-0", "db-1"]


def test_a_stateful_set_that_begins_with_no_replicas_starts_when_it_is_scaled_up(system: System) -> None:
    kind = JOB_KINDS["StatefulSet"].resource
    system.client.create(NAMESPACES, {"metadata": {"name": "team"}})
    system.client.create(kind, stateful_set(0))
    turns(system, 3)
    assert not Workload.objects.exists()
    system.client.patch(kind, "team", "db", {"spec": {"replicas": 2}})
    turns(system, 6)
    assert system.workload("db").status == WorkloadStatus.ADMITTED
    assert running(system) == ["db-0", "db-1"]


def test_pods_of_a_stateful_set_have_its_queue_and_group_and_follow_another_queue(system: System) -> None:
    kind = JOB_KINDS["StatefulSet"].resource
    system.client.create(NAMESPACES, {"metadata": {"name": "team"}})
    system.apply_text(
        "apiVersion: kueue.x-k8s.io/v1beta2\nkind: WorkloadPriorityClass\nmetadata: {name: low}\nvalue: 1\n"
    )
    made = webhooked(stateful_set(1))
    made["metadata"]["labels"] = {QUEUE: "missing", "kueue.x-k8s.io/priority-class": "low"}
    template = system.client.create(kind, made)["spec"]["template"]
    turns(system, 3)
    workload = system.workload("db")
    [pod] = system.pods()
    metadata, named = pod["metadata"], workload.name
    assert (workload.quota_reserved_at, running(system)) == (None, [])
    assert metadata["labels"].items() >= {
        QUEUE: "missing", "kueue.x-k8s.io/managed": "true", "kueue.x-k8s.io/priority-class": "low",
    }.items()  # fmt: skip
    assert metadata["annotations"].items() >= {
        "kueue.x-k8s.io/prebuilt-workload-name": named, "kueue.x-k8s.io/pod-group-name": named,
        "kueue.x-k8s.io/pod-group-total-count": "1", "kueue.x-k8s.io/role-hash": "main",
    }.items()  # fmt: skip
    assert system.client.list(kind).items[0]["spec"]["template"] == template, "its pods would be replaced"
    system.client.patch(kind, "team", "db", {"metadata": {"labels": {QUEUE: "queue"}}})
    turns(system, 6)
    [pod] = system.pods()
    assert (pod["metadata"]["labels"][QUEUE], running(system)) == ("queue", ["db-0"])
    assert system.workload("db").uid == workload.uid


def test_a_stateful_set_that_was_scaled_up_from_none_follows_to_another_queue(system: System) -> None:
    kind = JOB_KINDS["StatefulSet"].resource
    system.client.create(NAMESPACES, {"metadata": {"name": "team"}})
    made = stateful_set(0)
    made["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] = "nowhere"
    system.client.create(kind, made)
    turns(system, 2)
    system.client.patch(kind, "team", "db", {"spec": {"replicas": 2}})
    turns(system, 3)
    assert system.workload("db").queue_name == "nowhere"
    system.client.patch(kind, "team", "db", {"metadata": {"labels": {"kueue.x-k8s.io/queue-name": "queue"}}})
    turns(system, 6)
    assert system.workload("db").queue_name == "queue"
    assert running(system) == ["db-0", "db-1"]


def test_each_group_of_a_leader_worker_set_is_a_workload(system: System) -> None:
    system.install_operator("LeaderWorkerSet")
    system.apply(leader_worker_set())
    turns(system, 3)
    rows = Workload.objects.order_by("pk")
    assert {row.status for row in rows} == {WorkloadStatus.ADMITTED}
    assert [[(each.name, each.count) for each in row.pod_sets.all()] for row in rows] == [
        [("leader", 1), ("worker", 2)]
    ] * 2
    assert running(system) == ["llm-0", "llm-0-1", "llm-0-2", "llm-1", "llm-1-1", "llm-1-2"]
    of = {pod["metadata"]["name"]: pod["metadata"]["labels"]["kueueweb.io/workload-uid"] for pod in system.pods()}
    by_index = {row.annotations["kueue.x-k8s.io/component-workload-index"]: str(row.uid) for row in rows}
    assert {of["llm-0"], of["llm-0-2"]} == {by_index["0"]}
    assert {of["llm-1"], of["llm-1-1"]} == {by_index["1"]}
    system.apply(leader_worker_set(1))
    turns(system, 4)
    assert running(system) == ["llm-0", "llm-0-1", "llm-0-2"]
    left = Workload.objects.exclude(status=WorkloadStatus.FINISHED).get()
    assert str(left.uid) == by_index["0"]


def test_a_train_job_has_the_pods_of_its_runtime(system: System) -> None:
    with pytest.raises(ManifestErrors) as refused:
        system.apply(train_job())
    (mistake,) = refused.value.errors
    assert (mistake.rule, mistake.remedy) == (
        "runtime 'torch' not found",
        "Create the training runtime in the cluster first, or name an existing one.",
    )
    system.install_operator("TrainJob")
    system.client.create(RUNTIMES, RUNTIME)
    system.watcher.resync()
    system.apply(train_job(trainer={"numNodes": 3}))
    turns(system, 3)
    workload = system.workload("train")
    assert [(each.name, each.count) for each in workload.pod_sets.all()] == [("node", 3)]
    assert len(running(system)) == 3
    for pod in system.pods():
        assert pod["spec"]["nodeSelector"]["gpu"] == "on"
        assert pod["metadata"]["labels"]["kueue.x-k8s.io/podset"] == "node"
    for _ in range(3):
        system.turn(15)
    workload.refresh_from_db()
    assert (workload.status, workload.reason) == (WorkloadStatus.FINISHED, "Succeeded")


def cron_job() -> JsonObject:
    labels = {"kueue.x-k8s.io/queue-name": "queue"}
    made = {"metadata": {"labels": labels}, "spec": {"template": template(), "suspend": True}}
    return {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": {"name": "nightly", "namespace": "team"},
        "spec": {"schedule": "*/2 * * * *", "jobTemplate": made},
    }


def test_each_job_of_a_cron_job_waits_runs_and_ends(system: System) -> None:
    system.apply(cron_job())
    system.turn()
    kind = JOB_KINDS["CronJob"].resource
    assert system.client.get(kind, "team", "nightly") is not None
    assert not Workload.objects.exists()
    system.turn(120)
    turns(system, 2)
    (row,) = Workload.objects.all()
    assert row.status == WorkloadStatus.ADMITTED
    assert row.job is not None
    assert row.job.found_in_cluster
    assert len(running(system)) == 1
    system.turn(30)
    row.refresh_from_db()
    assert (row.status, row.reason) == (WorkloadStatus.FINISHED, "Succeeded")
    system.apply({**cron_job(), "spec": {**cron_job()["spec"], "suspend": True}})
    system.turn()
    there = system.client.get(kind, "team", "nightly")
    assert there is not None
    assert there["spec"]["suspend"] is True
    made = Job.objects.get(kind="CronJob")
    assert delete_jobs(system.cluster, [made], actor="alice", now=system.moment()) == {
        made.pk: "is deleted once the cluster has deleted it"
    }
    system.turn()
    assert system.client.get(kind, "team", "nightly") is None
    assert not Job.objects.filter(kind="CronJob").exists()


def test_a_pod_that_only_says_that_it_is_of_a_set_does_not_run(system: System) -> None:
    kind = JOB_KINDS["LeaderWorkerSet"]
    system.install_operator("LeaderWorkerSet")
    system.client.create(NAMESPACES, {"metadata": {"name": "team"}})
    found = leader_worker_set(1)
    context = job_context({}, RowsAndCluster(system.cluster, system.client))
    kind.default(found, context)  # as the webhook leaves it
    gates = [{"name": "kueue.x-k8s.io/admission"}, {"name": "kueue.x-k8s.io/topology"}]
    templates = found["spec"]["leaderWorkerTemplate"]
    for part in (templates["leaderTemplate"], templates["workerTemplate"]):
        part["spec"]["schedulingGates"] = gates
    system.client.create(kind.resource, found)
    labels = {"leaderworkerset.sigs.k8s.io/name": "llm", "leaderworkerset.sigs.k8s.io/group-index": "0"}
    annotations = templates["workerTemplate"]["metadata"]["annotations"]
    metadata = {"namespace": "team", "name": "forged", "labels": labels, "annotations": annotations}
    spec = templates["workerTemplate"]["spec"]
    system.client.create(PODS, {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
    turns(system, 6)
    assert running(system) == ["llm-0", "llm-0-1", "llm-0-2"]
    [forged] = [pod for pod in system.pods() if pod["metadata"]["name"] == "forged"]
    assert forged["spec"]["schedulingGates"] == gates
