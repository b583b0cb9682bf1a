"""Jobs that operators run, on a simulated cluster: applied or found there, started, stopped, run to their end."""

from __future__ import annotations

import copy

import pytest

from clusters.api_objects import NAMESPACES, JsonObject, Kind
from clusters.jobs.framework.job_kind import Stopping
from clusters.jobs.registry import JOB_KINDS
from queues.services.workloads import hold
from scheduling.model.vocabulary import WorkloadStatus
from tests.clusters.operated_jobs import KINDS, operated_job
from tests.clusters.system import System

pytestmark = pytest.mark.django_db(transaction=True)

SERVING = [kind.kind for kind in JOB_KINDS.values() if kind.serves]


def resource(kind: str) -> Kind:
    return JOB_KINDS[kind].resource


def there(system: System, kind: str) -> JsonObject:
    found = system.client.get(resource(kind), "team", "train")
    assert found is not None
    return found


def test_every_kind_has_an_example() -> None:
    """All but those that need another object in the cluster, as a TrainJob needs its runtime (test_pods_that_wait)."""
    operated = {kind.kind for kind in JOB_KINDS.values() if kind.optional and kind.stopping is Stopping.SUSPEND}
    assert operated - {kind.kind for kind in JOB_KINDS.values() if kind.refers_to} == set(KINDS)


@pytest.mark.parametrize("kind", KINDS)
def test_a_job_of_the_kind_is_applied_started_and_ends(system: System, kind: str) -> None:
    system.install_operator(kind)
    system.apply(operated_job(kind))
    system.turn()
    system.turn()
    workload = system.workload("train")
    assert workload.status == WorkloadStatus.ADMITTED
    pods = system.pods()
    pod_sets = {pod_set.name: pod_set.count for pod_set in workload.pod_sets.all()}
    assert len(pods) == sum(pod_sets.values())
    for pod in pods:
        assert pod["spec"]["nodeSelector"]["gpu"] == "on"
        assert pod["metadata"]["labels"]["kueue.x-k8s.io/podset"] in pod_sets
        assert pod["metadata"]["annotations"]["kueue.x-k8s.io/workload"] == workload.name
    for _ in range(4):
        system.turn(10)
    workload.refresh_from_db()
    if kind in SERVING:
        assert workload.status == WorkloadStatus.ADMITTED
    else:
        assert (workload.status, workload.reason) == (WorkloadStatus.FINISHED, "Succeeded")


@pytest.mark.parametrize("kind", KINDS)
def test_a_found_job_of_the_kind_gets_its_templates_back_when_it_is_stopped(system: System, kind: str) -> None:
    rules = JOB_KINDS[kind]
    job = operated_job(kind)
    rules.suspend(job)
    system.install_operator(kind)
    system.client.create(NAMESPACES, {"metadata": {"name": "team"}})
    system.client.create(resource(kind), job)
    submitted = there(system, kind)["spec"]
    system.watcher.resync()
    system.turn()
    system.turn()
    assert not rules.is_suspended(there(system, kind))
    assert len(system.pods()) == sum(pod_set.count for pod_set in system.workload("train").pod_sets.all())
    hold(system.cluster, [("team", system.workload("train").name)], actor="alice", now=system.moment())
    for _ in range(3):
        system.turn()
    stopped = there(system, kind)
    assert rules.is_suspended(stopped)
    assert not system.pods()
    assert _without_gates_holder(stopped["spec"]) == _without_gates_holder(submitted)
    assert system.workload("train").quota_reserved_at is None


def _without_gates_holder(spec: JsonObject) -> JsonObject:
    """A SparkApplication keeps the template that had to be made for its gates, empty (as Kueue leaves it)."""
    roles: JsonObject = {
        role: {key: value for key, value in spec[role].items() if key != "template"}
        for role in ("driver", "executor")
        if role in spec
    }
    return {**spec, **roles}


@pytest.mark.parametrize("kind", ["PyTorchJob", "MPIJob"])
def test_a_job_ends_with_its_leading_pod_and_the_pods_that_its_operator_leaves_are_stopped(
    system: System, kind: str
) -> None:
    """Kubeflow's operators leave the pods of a job that has ended, unless `cleanPodPolicy` tells otherwise."""
    job = copy.deepcopy(operated_job(kind))
    [field] = [name for name in job["spec"] if name.endswith("ReplicaSpecs")]
    job["spec"][field]["Worker"]["template"]["metadata"]["annotations"]["kueueweb.io/run-seconds"] = "1000"
    system.install_operator(kind)
    system.apply(job)
    for _ in range(6):
        system.turn(10)
    workload = system.workload("train")
    assert (workload.status, workload.reason) == (WorkloadStatus.FINISHED, "Succeeded")
    assert [pod["status"]["phase"] for pod in system.pods()] == ["Succeeded"]
    conditions = {each["type"]: each["status"] for each in there(system, kind)["status"]["conditions"]}
    assert (conditions["Running"], conditions["Succeeded"]) == ("False", "True")


def test_a_ray_cluster_is_ready_until_the_last_pod_of_a_stopped_one_is_gone(system: System) -> None:
    system.install_operator("RayCluster")
    system.apply(operated_job("RayCluster"))
    for _ in range(4):
        system.turn()
    assert there(system, "RayCluster")["status"]["state"] == "ready"
    hold(system.cluster, [("team", system.workload("train").name)], actor="alice", now=system.moment())
    for _ in range(4):
        system.turn()
    assert (system.pods(), there(system, "RayCluster")["status"]["state"]) == ([], "suspended")
    assert system.workload("train").quota_reserved_at is None


def test_a_mistake_names_its_field(system: System) -> None:
    job = operated_job("RayJob")
    job["spec"] = {**job["spec"], "shutdownAfterJobFinishes": False}
    with pytest.raises(Exception, match="shutdownAfterJobFinishes") as refusal:
        system.apply(job)
    (mistake,) = refusal.value.errors  # type: ignore[attr-defined]
    assert mistake.path == "spec.shutdownAfterJobFinishes"
    assert mistake.rule == "a kueue managed job should delete the cluster after finishing"
