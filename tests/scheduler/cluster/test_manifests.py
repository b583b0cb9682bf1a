"""What the cluster is told, as pure values."""

from __future__ import annotations

from typing import Any

import pytest
from kubernetes.client import models

from scheduler.cluster.job_kinds import JOB_KINDS
from scheduler.cluster.manifests import (
    AdmittedWorkload,
    CannotStart,
    JobSource,
    PodSetAdmission,
    placed_pod,
    restored_job,
    started_job,
    ungated_pod,
    waiting_job,
)
from tests.simulated_cluster import job, pod

UID = "0b0e7a52-0000-4000-8000-000000000001"
FLAVOR = {"gpu": "on"}
TOLERATION = {"key": "gpu", "operator": "Exists"}


def source(kind: str = "Job", found: bool = False, manifest: dict[str, Any] | None = None, **spec: Any) -> JobSource:
    return JobSource(JOB_KINDS[kind], manifest or job(**spec), UID, found)


def workload(count: int = 1, nodes: tuple[str, ...] = (), queue: str = "queue") -> AdmittedWorkload:
    pod_set = PodSetAdmission("main", count, FLAVOR, (TOLERATION,), nodes)
    return AdmittedWorkload("job-train-1", "w-uid", queue, "main", (pod_set,))


def test_a_started_job_has_its_flavors_nodes_and_tolerations() -> None:
    manifest = job()
    manifest["spec"]["template"]["spec"] |= {"nodeSelector": {"zone": "a"}, "tolerations": [TOLERATION]}
    spec = started_job(source(manifest=manifest), workload())["spec"]
    assert spec["suspend"] is False
    assert spec["template"]["spec"]["nodeSelector"] == {"zone": "a", "gpu": "on"}
    assert spec["template"]["spec"]["tolerations"] == [TOLERATION]
    assert "schedulerName" not in spec["template"]["spec"]


def test_where_we_chose_the_nodes_only_we_bind() -> None:
    template = started_job(source(), workload(nodes=("n1",)))["spec"]["template"]
    assert template["spec"]["schedulerName"] == "kueueweb"
    assert template["metadata"]["labels"]["hami.io/webhook"] == "ignore"
    assert template["metadata"]["labels"]["kueueweb.io/workload-uid"] == "w-uid"


def test_server_fields_and_status_are_not_applied() -> None:
    manifest = {**job(), "status": {"active": 1}}
    manifest["metadata"] |= {"uid": "x", "resourceVersion": "7", "managedFields": [], "creationTimestamp": "t"}
    told = started_job(source(manifest=manifest), workload())
    assert sorted(told) == ["apiVersion", "kind", "metadata", "spec"]
    assert sorted(told["metadata"]) == ["labels", "name", "namespace"]
    assert told["metadata"]["labels"]["kueueweb.io/job-uid"] == UID


@pytest.mark.parametrize(
    ("parallelism", "completions", "admitted", "told"),
    [(4, 4, 4, 4), (4, 4, 2, 2), (4, 2, 2, 4), (4, None, 3, 3)],
)
def test_partial_admission_lowers_the_parallelism(
    parallelism: int, completions: int | None, admitted: int, told: int
) -> None:
    spec: dict[str, Any] = {"parallelism": parallelism}
    if completions is not None:
        spec["completions"] = completions
    assert started_job(source(**spec), workload(admitted))["spec"]["parallelism"] == told


def test_a_selector_that_contradicts_the_flavor_can_not_start() -> None:
    manifest = job()
    manifest["spec"]["template"]["spec"]["nodeSelector"] = {"gpu": "off"}
    with pytest.raises(CannotStart, match="gpu=off"):
        started_job(source(manifest=manifest), workload())


def test_names_too_long_for_a_label_are_left_out() -> None:
    labels = started_job(source(), workload(queue="q" * 64))["spec"]["template"]["metadata"]["labels"]
    assert "kueue.x-k8s.io/local-queue-name" not in labels
    assert labels["kueue.x-k8s.io/cluster-queue-name"] == "main"


def test_of_a_found_job_only_the_directives_are_ours() -> None:
    told = started_job(source(found=True), workload(nodes=("n1",)))
    assert sorted(told["spec"]) == ["suspend", "template"]
    assert sorted(told["spec"]["template"]["spec"]) == ["nodeSelector", "schedulingGates", "tolerations"]
    assert told["spec"]["template"]["spec"]["schedulingGates"] == [{"name": "kueueweb.io/placement"}]


def test_a_found_job_gets_its_own_directives_back() -> None:
    manifest = job(parallelism=3)
    manifest["spec"]["template"]["spec"]["nodeSelector"] = {"zone": "a"}
    told = restored_job(source(found=True, manifest=manifest))["spec"]
    assert (told["suspend"], told["parallelism"]) == (True, 3)
    assert told["template"]["spec"] == {"nodeSelector": {"zone": "a"}}


def test_a_pod_is_its_own_template() -> None:
    told = started_job(source("Pod", manifest=pod("single")), workload(nodes=("n1",)))
    assert (told["kind"], told["metadata"]["name"], told["spec"]["schedulerName"]) == ("Pod", "single", "kueueweb")
    assert told["metadata"]["labels"]["kueueweb.io/job-uid"] == UID
    assert told["metadata"]["labels"]["kueueweb.io/workload-uid"] == "w-uid"


def test_pods_of_a_deployment_wait_at_the_gate() -> None:
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "main"}]}}
    manifest = {"metadata": {"name": "web", "namespace": "team"}, "spec": {"replicas": 2, "template": template}}
    told = waiting_job(source("Deployment", manifest=manifest))
    assert told["spec"]["template"]["spec"]["schedulingGates"] == [{"name": "kueueweb.io/placement"}]
    assert told["spec"]["template"]["metadata"]["labels"]["app"] == "web"
    assert told["spec"]["replicas"] == 2


def test_the_gate_goes_and_ties_the_pod_to_its_node() -> None:
    gated = pod(schedulingGates=[{"name": "kueueweb.io/placement"}, {"name": "other"}], nodeSelector={"a": "b"})
    gated["metadata"]["uid"] = "1"
    patch = ungated_pod(gated, workload().pod_sets[0], "n1")
    assert patch is not None
    assert patch["spec"]["schedulingGates"] == [{"name": "other"}]
    assert patch["spec"]["nodeSelector"] == {"a": "b", "kubernetes.io/hostname": "n1"}
    by_flavor = ungated_pod(gated, workload().pod_sets[0], "")
    assert by_flavor is not None
    assert by_flavor["spec"]["nodeSelector"] == {"a": "b", "gpu": "on"}
    free = pod()
    free["metadata"]["uid"] = "1"
    assert ungated_pod(free, workload().pod_sets[0], "n1") is None


def test_a_placed_pod_names_its_workload_and_its_replica() -> None:
    patch = placed_pod({"metadata": {"uid": "1"}}, workload(), 2, {"hami.io/vgpu-node": "n1"})
    assert patch["metadata"]["annotations"] == {
        "kueue.x-k8s.io/workload": "job-train-1",
        "kueueweb.io/replica": "2",
        "hami.io/vgpu-node": "n1",
    }


@pytest.mark.parametrize(
    ("model", "told"),
    [
        (models.V1Job, started_job(source(), workload(nodes=("n1",)))),
        (models.V1Pod, started_job(source("Pod", manifest=pod("single")), workload(nodes=("n1",)))),
    ],
)
def test_what_is_told_is_what_kubernetes_models_take(model: Any, told: dict[str, Any]) -> None:
    read = model.from_dict(told)
    assert read.spec is not None
    assert not getattr(read, "additional_properties", {})
    assert read.to_dict()["metadata"]["labels"] == told["metadata"]["labels"]
