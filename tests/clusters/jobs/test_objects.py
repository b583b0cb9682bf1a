"""What the cluster is told, as pure values."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import pytest
from kubernetes.client import models

from clusters.api_objects import JsonObject
from clusters.jobs.framework.pod_set_info import PodSetInfo
from clusters.jobs.live_job import stopped_job
from clusters.jobs.objects import (
    AdmittedWorkload,
    CannotStart,
    JobSource,
    PodSetAdmission,
    placed_pod,
    ungated_pod,
)
from clusters.jobs.registry import JOB_KINDS
from clusters.jobs.whole_objects import add_placement, as_made, difference, gated_pod, new_object, waiting_object
from gpus.vendors import VENDORS
from scheduling.model.admission_check import PodSetUpdate
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
    spec = new_object(source(manifest=manifest), workload())["spec"]
    assert spec["suspend"] is False
    assert spec["template"]["spec"]["nodeSelector"] == {"zone": "a", "gpu": "on"}
    assert spec["template"]["spec"]["tolerations"] == [TOLERATION]
    assert "schedulingGates" not in spec["template"]["spec"]


def test_where_we_chose_the_nodes_only_we_bind() -> None:
    template = new_object(source(), workload(nodes=("n1",)))["spec"]["template"]
    assert template["spec"]["schedulingGates"] == [{"name": "kueueweb.io/placement"}]
    assert template["metadata"]["labels"]["hami.io/webhook"] == "ignore"
    assert template["metadata"]["labels"]["kueueweb.io/workload-uid"] == "w-uid"


def placed(*nodes: str, **fields: Any) -> AdmittedWorkload:
    """A workload without devices whose pods were given these nodes."""
    pod_set = PodSetAdmission("main", len(nodes), FLAVOR, (), nodes, with_devices=False, **fields)
    return AdmittedWorkload("job-train-1", "w-uid", "queue", "main", (pod_set,))


def started(job_source: JobSource, admitted: AdmittedWorkload) -> JsonObject:
    """What is told of a job that starts: all of ours, the changes of another's."""
    if not job_source.found_in_cluster:
        return new_object(job_source, admitted)
    there, source_kind = job(suspend=True), job_source.kind
    infos = [PodSetInfo(each.name, each.count, node_selector=dict(each.node_labels)) for each in admitted.pod_sets]
    add_placement(job_source, admitted, infos)
    wanted = copy.deepcopy(there)
    source_kind.start(wanted, infos, job_source.context)
    patch = difference(there, wanted)
    assert patch is not None
    return patch


@pytest.mark.parametrize("found", [False, True])
def test_pods_without_devices_on_one_node_are_tied_to_it_in_their_template(found: bool) -> None:
    template = started(source(found=found), placed("n1", "n1", hosts={"n1": "n1.example"}))["spec"]["template"]
    assert template["spec"]["nodeSelector"] == {"gpu": "on", "kubernetes.io/hostname": "n1.example"}
    assert "schedulingGates" not in template["spec"]
    assert "hami.io/webhook" not in template["metadata"]["labels"]


@pytest.mark.parametrize("found", [False, True])
def test_pods_without_devices_on_several_nodes_wait_at_the_gate_for_their_own(found: bool) -> None:
    template = started(source(found=found), placed("n1", "n2"))["spec"]["template"]
    assert template["spec"]["nodeSelector"] == {"gpu": "on"}
    assert template["spec"]["schedulingGates"] == [{"name": "kueueweb.io/placement"}]


def test_server_fields_and_status_are_not_applied() -> None:
    manifest = {**job(), "status": {"active": 1}}
    manifest["metadata"] |= {"uid": "x", "resourceVersion": "7", "managedFields": [], "creationTimestamp": "t"}
    told = new_object(source(manifest=manifest), workload())
    assert sorted(told) == ["apiVersion", "kind", "metadata", "spec"]
    assert sorted(told["metadata"]) == ["labels", "name", "namespace"]
    assert told["metadata"]["labels"]["kueueweb.io/job-uid"] == UID


@pytest.mark.parametrize(
    ("parallelism", "completions", "admitted", "told"),
    [(4, 4, 4, 4), (4, 4, 2, 2), (4, None, 3, 3)],
)
def test_partial_admission_lowers_the_parallelism(
    parallelism: int, completions: int | None, admitted: int, told: int
) -> None:
    manifest = job(parallelism=parallelism)
    manifest["metadata"]["annotations"] = {"kueue.x-k8s.io/job-min-parallelism": "1"}
    if completions is not None:
        manifest["spec"]["completions"] = completions
    assert new_object(source(manifest=manifest), workload(admitted))["spec"]["parallelism"] == told


def test_a_selector_that_contradicts_the_flavor_can_not_start() -> None:
    manifest = job()
    manifest["spec"]["template"]["spec"]["nodeSelector"] = {"gpu": "off"}
    with pytest.raises(CannotStart, match="conflict for nodeSelector: conflict for key=gpu, value1=off, value2=on"):
        new_object(source(manifest=manifest), workload())


UPDATE = PodSetUpdate(
    "main", {"paid": "yes"}, {"request": "r-1"}, {"pool": "provisioned"}, ({"key": "new", "operator": "Exists"},)
)


def updated(*updates: PodSetUpdate) -> AdmittedWorkload:
    (pod_set,) = workload().pod_sets
    return replace(workload(), pod_sets=(replace(pod_set, updates=updates),))


def test_what_admission_checks_add_is_in_the_template() -> None:
    template = new_object(source(), updated(UPDATE))["spec"]["template"]
    assert template["metadata"]["labels"]["paid"] == "yes"
    assert template["metadata"]["annotations"]["request"] == "r-1"
    assert template["spec"]["nodeSelector"] == {"gpu": "on", "pool": "provisioned"}
    assert template["spec"]["tolerations"] == [TOLERATION, {"key": "new", "operator": "Exists"}]


@pytest.mark.parametrize(
    ("updates", "message"),
    [
        (
            (PodSetUpdate("main", node_selector={"gpu": "off"}),),
            "for key=gpu, value1=on, value2=off",
        ),
        (
            (UPDATE, PodSetUpdate("main", {"paid": "no"})),
            "for key=paid, value1=yes, value2=no",
        ),
        (
            (UPDATE, PodSetUpdate("main", annotations={"request": "r-2"})),
            "for key=request, value1=r-1, value2=r-2",
        ),
    ],
)
def test_checks_that_contradict_can_not_start(updates: tuple[PodSetUpdate, ...], message: str) -> None:
    with pytest.raises(CannotStart, match=message):
        new_object(source(), updated(*updates))


def test_a_pod_at_the_gate_gets_what_the_checks_add() -> None:
    gated = pod()
    gated["metadata"]["uid"] = "p-uid"
    placed = placed_pod(gated, updated(UPDATE), 0, {})
    assert placed["metadata"]["labels"]["paid"] == "yes"
    assert placed["metadata"]["annotations"]["request"] == "r-1"
    gated["spec"]["schedulingGates"] = [{"name": "kueueweb.io/placement"}]
    ungated = ungated_pod(gated, updated(UPDATE).pod_sets[0], "")
    assert ungated is not None
    assert ungated["spec"]["nodeSelector"] == {"gpu": "on", "pool": "provisioned"}
    assert ungated["spec"]["tolerations"] == [TOLERATION, {"key": "new", "operator": "Exists"}]


def test_names_too_long_for_a_label_are_left_out() -> None:
    labels = new_object(source(), workload(queue="q" * 64))["spec"]["template"]["metadata"]["labels"]
    assert "kueue.x-k8s.io/local-queue-name" not in labels
    assert labels["kueue.x-k8s.io/cluster-queue-name"] == "main"


def test_of_a_found_job_only_what_starts_it_changes() -> None:
    patch = started(source(found=True), workload(nodes=("n1",)))
    assert sorted(patch["spec"]) == ["suspend", "template"]
    assert sorted(patch["spec"]["template"]["spec"]) == ["nodeSelector", "schedulingGates"]
    assert patch["spec"]["template"]["spec"]["schedulingGates"] == [{"name": "kueueweb.io/placement"}]


def test_a_stopped_job_gets_its_own_templates_back() -> None:
    there = job(suspend=True)
    there["spec"]["template"]["spec"]["nodeSelector"] = {"zone": "a", "gpu": "on"}
    template = {**there["spec"]["template"], "spec": {"nodeSelector": {"zone": "a"}}}
    own = {"spec": {"podSets": [{"name": "main", "count": 1, "template": template}]}}
    stopped = stopped_job(JOB_KINDS["Job"], there, own)
    assert stopped is not None
    assert stopped["spec"]["template"]["spec"]["nodeSelector"] == {"zone": "a"}
    assert stopped_job(JOB_KINDS["Job"], stopped, own) is None


def test_a_pod_that_is_made_waits_at_kueues_gate_with_its_index() -> None:
    manifest = pod("single", annotations={"kueue.x-k8s.io/pod-group-pod-index-label": "rank"})
    manifest["metadata"]["labels"] = {"rank": "7"}
    made = gated_pod(source("Pod", manifest=manifest))
    assert (made["kind"], made["metadata"]["name"]) == ("Pod", "single")
    assert made["spec"]["schedulingGates"] == [{"name": "kueue.x-k8s.io/admission"}]
    assert made["metadata"]["labels"]["kueueweb.io/job-uid"] == UID
    assert made["metadata"]["labels"]["kueue.x-k8s.io/pod-group-pod-index"] == "7"


def test_pods_of_a_deployment_wait_at_the_gate() -> None:
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "main"}]}}
    manifest = {"metadata": {"name": "web", "namespace": "team"}, "spec": {"replicas": 2, "template": template}}
    told = waiting_object(source("Deployment", manifest=manifest), None)
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
        (models.V1Job, new_object(source(), workload(nodes=("n1",)))),
        (models.V1Pod, gated_pod(source("Pod", manifest=pod("single")))),
    ],
)
def test_pushed_objects_are_accepted_by_the_models_of_kubernetes(model: Any, told: dict[str, Any]) -> None:
    read = model.from_dict(told)
    assert read.spec is not None
    assert not getattr(read, "additional_properties", {})
    assert read.to_dict()["metadata"]["labels"] == told["metadata"]["labels"]


class TestCompletedPods:
    """Pods that we place pass HAMi's webhook by, so they are completed as it would."""

    LIMITS = {"nvidia.com/gpumem": "3000"}
    COMPLETED = {"nvidia.com/gpumem": "3000", "nvidia.com/gpu": 1}

    def made(self, kind: str = "Job", found: bool = False) -> JobSource:
        return replace(source(kind, found, limits=self.LIMITS), vendors=VENDORS)

    def limits(self, told: dict[str, Any]) -> dict[str, Any]:
        (container,) = told["spec"]["template"]["spec"]["containers"]
        found: dict[str, Any] = container["resources"]["limits"]
        return found

    def test_of_jobs_of_ours(self) -> None:
        assert self.limits(new_object(self.made(), workload(nodes=("n1",)))) == self.COMPLETED
        assert (
            self.limits(
                waiting_object(
                    replace(self.made("Deployment"), manifest={**job(limits=self.LIMITS), "kind": "Deployment"}), None
                )
            )
            == self.COMPLETED
        )

    def test_of_no_others(self) -> None:
        assert self.limits(new_object(source(limits=self.LIMITS), workload(nodes=("n1",)))) == self.LIMITS

    def test_those_that_are_there_stay_as_they_were_made(self) -> None:
        plain = job(limits=self.LIMITS)
        assert self.limits(new_object(as_made(self.made(), plain), workload())) == self.LIMITS
        completed = job(limits={name: str(amount) for name, amount in self.COMPLETED.items()})
        assert self.limits(new_object(as_made(self.made(), completed), workload())) == self.COMPLETED
