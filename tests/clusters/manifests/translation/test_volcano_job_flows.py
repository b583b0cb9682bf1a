"""Volcano's JobFlows: their jobs start after each other, as Volcano's controller creates them."""

from __future__ import annotations

from copy import deepcopy
from datetime import timedelta
from typing import Any

import pytest
import yaml
from django.contrib.auth.models import User

from accounts.models import Cluster, Role, RoleBinding
from clusters.manifests import apply_manifests, get_manifests
from clusters.manifests.translation.translated import Translation
from clusters.manifests.translation.translations import translate_all
from foundation.exceptions import ManifestErrors, NotPermitted, UnsupportedKind
from queues.models import Job, LocalQueue, Workload
from queues.services.flows.flow_deletion import delete_completed_flows
from queues.services.flows.job_flows import job_flows
from queues.services.flows.start_gates import open_start_gates
from queues.services.workloads import record_finished
from scheduler.housekeeping.retention import delete_expired_workloads
from scheduler.leader.engine import Engine
from scheduling.model.vocabulary import FinishedReason
from tests.factories import START, make_cluster_queue
from tests.manifest_texts import Apply, actions

FLOW: dict[str, Any] = {
    "apiVersion": "flow.volcano.sh/v1alpha1",
    "kind": "JobFlow",
    "metadata": {"name": "nightly", "namespace": "team"},
    "spec": {
        "flows": [
            {"name": "a"},
            {"name": "b", "dependsOn": {"targets": ["a"]}},
            {"name": "c", "dependsOn": {"targets": ["a"]}},
            {"name": "d", "dependsOn": {"targets": ["b", "c"]}},
        ]
    },
}


def template(name: str) -> dict[str, Any]:
    pods = {"containers": [{"name": "main", "image": "busybox", "resources": {"requests": {"cpu": 1}}}]}
    task = {"name": "worker", "replicas": 1, "template": {"spec": pods}}
    return {
        "apiVersion": "flow.volcano.sh/v1alpha1",
        "kind": "JobTemplate",
        "metadata": {"name": name, "namespace": "team"},
        "spec": {"queue": "main", "maxRetry": 5, "tasks": [task]},
    }


TEMPLATES = [template(name) for name in "abcd"]


def changed(value: Any, *path: Any) -> dict[str, Any]:
    """The flow with a value at a path."""
    flow = deepcopy(FLOW)
    holder = flow
    for key in path[:-1]:
        holder = holder[key]
    holder[path[-1]] = value
    return flow


def translated(flow: dict[str, Any], *templates: dict[str, Any]) -> Translation:
    return translate_all([flow, *(templates or TEMPLATES)])[0]


def refusals(flow: dict[str, Any], *templates: dict[str, Any]) -> dict[str, str]:
    return {refusal.path: refusal.rule for refusal in translated(flow, *templates).refusals}


# The translation


def test_each_job_names_the_jobs_of_its_targets() -> None:
    made = translated(FLOW).manifests
    found = {each["metadata"]["name"]: each["metadata"] for each in made}
    after = {name: data["annotations"].get("kueueweb.io/start-after") for name, data in found.items()}
    assert after == {
        "nightly-a": None, "nightly-b": "nightly-a", "nightly-c": "nightly-a", "nightly-d": "nightly-b,nightly-c",
    }  # fmt: skip
    labels = {"volcano.sh/createdByJobFlow": "team.nightly", "volcano.sh/createdByJobTemplate": "team.a"}
    assert labels.items() <= found["nightly-a"]["labels"].items()
    assert found["nightly-a"]["labels"]["kueue.x-k8s.io/queue-name"] == "main"
    assert {each["kind"] for each in made} == {"Job"}


@pytest.mark.parametrize(
    ("flow", "path"),
    [
        (changed([], "spec", "flows"), "spec.flows"),
        (changed("keep", "spec", "jobRetainPolicy"), "spec.jobRetainPolicy"),
        (changed("a", "spec", "flows", 1, "name"), "spec.flows[1].name"),
        (changed("z", "spec", "flows", 0, "name"), "spec.flows[0].name"),
        (changed({"targets": ["z"]}, "spec", "flows", 1, "dependsOn"), "spec.flows[1].dependsOn.targets[0]"),
        (changed({"targets": ["d"]}, "spec", "flows", 0, "dependsOn"), "spec.flows"),
        (changed({}, "spec", "flows", 0, "when"), "spec.flows[0].when"),
        (changed("delete", "spec", "retainPolicy"), "spec.retainPolicy"),
        (changed({"target": ["a"]}, "spec", "flows", 1, "dependsOn"), "spec.flows[1].dependsOn.target"),
        (changed({"probe": {"http": []}}, "spec", "flows", 1, "dependsOn"), "spec.flows[1].dependsOn.probe.http"),
        (changed({"spec": {}}, "spec", "flows", 1, "patch"), "spec.flows[1].patch.spec"),
        (changed("x" * 60, "metadata", "name"), "metadata.name"),
        (changed(None, "metadata", "name"), "metadata.name"),
        (changed("a", "spec", "flows"), "spec.flows"),
    ],
)
def test_a_mistake_is_refused_at_its_field(flow: dict[str, Any], path: str) -> None:
    assert path in refusals(flow)


@pytest.mark.parametrize("probe", ["httpGetList", "tcpSocketList", "taskStatusList"])
def test_a_probe_is_refused_by_name(probe: str) -> None:
    depends_on = {"targets": ["a"], "probe": {probe: [{"taskName": "worker"}]}}
    found = refusals(changed(depends_on, "spec", "flows", 1, "dependsOn"))
    assert "no probes" in found[f"spec.flows[1].dependsOn.probe.{probe}"]


def test_a_mistake_in_a_template_is_told_once_by_the_template() -> None:
    broken = deepcopy(TEMPLATES)
    broken[1]["spec"]["tasks"] = "none"
    found = translate_all([FLOW, *broken])
    assert [(place, refusal.path) for place, made in found.items() for refusal in made.refusals] == [(2, "spec.tasks")]


def test_a_mistake_of_a_job_names_the_template_and_its_field() -> None:
    broken = deepcopy(TEMPLATES)
    broken[1]["spec"]["minAvailable"] = 9
    (rule,) = refusals(FLOW, *broken).values()
    assert rule.startswith("JobTemplate b, spec.minAvailable: must be at most the replicas")


def test_a_patch_is_merged_as_volcano_merges_it() -> None:
    patch = {
        "jobSpec": {
            "queue": "other",
            "tasks": [{"name": "worker", "replicas": 3}, {"name": "more", "replicas": 1}],
            "policies": [{"event": "PodFailed", "action": "RestartPod"}],
        }
    }
    made = translated(changed(patch, "spec", "flows", 0, "patch")).manifests[0]
    assert made["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] == "other"
    jobs = {each["name"]: each["template"]["spec"] for each in made["spec"]["replicatedJobs"]}
    assert (jobs["worker"]["parallelism"], jobs["more"]["parallelism"]) == (3, 1)
    assert jobs["worker"]["template"]["spec"]["containers"][0]["image"] == "busybox"
    assert jobs["worker"]["backoffLimit"] == 2  # a patch without maxRetry resets it: Volcano's default is 3


def test_unnamed_tasks_have_their_default_names_before_they_are_merged() -> None:
    unnamed = template("a")
    (task,) = unnamed["spec"]["tasks"]
    del task["name"]
    unnamed["spec"]["tasks"] = [task, deepcopy(task)]
    patch = {"jobSpec": {"tasks": [{"replicas": 3}, {"name": "more", "replicas": 2}]}}
    made = translated(changed(patch, "spec", "flows", 0, "patch"), unnamed, *TEMPLATES[1:]).manifests[0]
    sizes = {each["name"]: each["template"]["spec"]["parallelism"] for each in made["spec"]["replicatedJobs"]}
    assert sizes == {"default0": 3, "default1": 1, "more": 2}


def test_a_patch_of_a_template_is_refused_by_name() -> None:
    patch = {"jobSpec": {"tasks": [{"name": "worker", "replicas": 1, "template": {"spec": {"containers": []}}}]}}
    assert "spec.flows[0].patch.jobSpec.tasks[0].template" in refusals(changed(patch, "spec", "flows", 0, "patch"))


def test_templates_of_another_namespace_are_not_found() -> None:
    other = [{**each, "metadata": {**each["metadata"], "namespace": "other"}} for each in TEMPLATES]
    assert "Not found" in refusals(FLOW, *other)["spec.flows[0].name"]


# The flow in a cluster


@pytest.fixture
def queue(cluster: Cluster) -> None:
    make_cluster_queue(cluster, "cq", {"default-flavor": {"cpu": 9000}}, local_queue="")
    LocalQueue.objects.create(cluster=cluster, namespace="team", name="main", cluster_queue_name="cq", created_at=START)


def text(flow: dict[str, Any] = FLOW) -> str:
    return yaml.safe_dump_all([flow, *TEMPLATES])


def end(cluster: Cluster, *jobs: str, reason: FinishedReason = FinishedReason.SUCCEEDED) -> None:
    rows = Workload.objects.filter(job__name__in=[f"nightly-{name}" for name in jobs])
    record_finished(cluster, list(rows.values_list("namespace", "name")), reason, now=START)


def step(cluster: Cluster) -> dict[str, str]:
    """Open gates and let the scheduler decide, as happens within a few seconds. Returns the phases of the jobs."""
    open_start_gates(cluster, START)
    Engine(cluster, "test").run()
    return phases(cluster)


def phases(cluster: Cluster) -> dict[str, str]:
    (flow,) = job_flows(cluster)
    return {job.name.removeprefix("nightly-"): job.phase.value for job in flow.jobs}


def phase(cluster: Cluster) -> str:
    (flow,) = job_flows(cluster)
    return flow.phase.value


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("queue")
class TestFlow:
    def test_jobs_start_in_the_order_of_their_targets(self, apply: Apply, cluster: Cluster) -> None:
        assert actions(apply(text())) == [f"Job team/nightly-{name} created" for name in "abcd"]
        assert (phases(cluster)["a"], phase(cluster)) == ("Pending", "Pending")
        assert step(cluster) == {"a": "Running", "b": "Waiting", "c": "Waiting", "d": "Waiting"}
        assert phase(cluster) == "Running"
        end(cluster, "a")
        assert step(cluster) == {"a": "Completed", "b": "Running", "c": "Running", "d": "Waiting"}
        end(cluster, "b")
        assert step(cluster)["d"] == "Waiting"
        end(cluster, "c")
        assert step(cluster)["d"] == "Running"
        end(cluster, "d")
        assert (step(cluster)["d"], phase(cluster)) == ("Completed", "Succeed")

    def test_a_waiting_job_says_for_which_jobs_it_waits(self, apply: Apply, cluster: Cluster) -> None:
        apply(text())
        step(cluster)
        row = Workload.objects.get(job__name="nightly-d")
        expected = "Admission is gated by: job.kueueweb.io/nightly-b,job.kueueweb.io/nightly-c"
        assert (row.reason, row.message) == ("AdmissionGated", expected)

    def test_the_order_holds_with_kueues_gate_off(self, apply: Apply, cluster: Cluster) -> None:
        Cluster.objects.update(configuration={"featureGates": {"AdmissionGatedBy": False}})
        apply(text())
        assert step(cluster)["b"] == "Waiting"
        assert Workload.objects.filter(quota_reserved_at__isnull=False).count() == 1

    @pytest.mark.parametrize(
        ("reason", "left"), [(FinishedReason.FAILED, "Failed"), (FinishedReason.CANCELLED, "Terminated")]
    )
    def test_after_a_failed_job_no_job_of_the_flow_starts(
        self, apply: Apply, cluster: Cluster, reason: FinishedReason, left: str
    ) -> None:
        apply(text(changed({"targets": []}, "spec", "flows", 1, "dependsOn")))
        assert step(cluster) == {"a": "Running", "b": "Running", "c": "Waiting", "d": "Waiting"}
        end(cluster, "b", reason=reason)
        end(cluster, "a")
        assert step(cluster) == {"a": "Completed", "b": left, "c": "Waiting", "d": "Waiting"}
        assert phase(cluster) == "Failed"

    def test_a_target_that_is_deleted_later_counts(self, apply: Apply, cluster: Cluster) -> None:
        apply(text())
        step(cluster)
        end(cluster, "a")
        step(cluster)
        end(cluster, "b")
        step(cluster)
        Workload.objects.filter(job__name="nightly-b").delete()
        Job.objects.filter(name="nightly-b").delete()
        end(cluster, "c")
        assert step(cluster)["d"] == "Running"

    def test_a_flow_that_is_applied_again_changes_nothing(self, apply: Apply, cluster: Cluster) -> None:
        apply(text())
        step(cluster)
        end(cluster, "a")
        step(cluster)
        assert {applied.action for applied in apply(text()).objects} == {"unchanged"}
        assert step(cluster)["b"] == "Running"

    def test_with_delete_the_jobs_of_a_successful_flow_are_deleted(self, apply: Apply, cluster: Cluster) -> None:
        apply(text(changed("delete", "spec", "jobRetainPolicy")))
        for names in ("a", "bc"):
            step(cluster)
            end(cluster, *names)
        step(cluster)
        assert delete_completed_flows(cluster, START) == 0
        end(cluster, "d")
        assert delete_completed_flows(cluster, START) == 1
        assert not Job.objects.filter(deletion_requested_at=None).exists()

    def test_flows_that_are_not_done_are_not_read(
        self, apply: Apply, cluster: Cluster, django_assert_num_queries: Any
    ) -> None:
        apply(text(changed("delete", "spec", "jobRetainPolicy")))
        end(cluster, *"abc")
        with django_assert_num_queries(1):
            assert delete_completed_flows(cluster, START) == 0
        end(cluster, "d", reason=FinishedReason.FAILED)
        with django_assert_num_queries(1):
            assert delete_completed_flows(cluster, START) == 0

    def test_retention_keeps_the_workloads_of_a_flow_that_is_not_done(self, apply: Apply, cluster: Cluster) -> None:
        cluster.configuration = {"objectRetentionPolicies": {"workloads": {"afterFinished": "1s"}}}
        apply(text())
        step(cluster)
        end(cluster, "a", reason=FinishedReason.FAILED)
        later = START + timedelta(hours=1)
        assert delete_expired_workloads(cluster, later) == 0
        assert phase(cluster) == "Failed"
        end(cluster, *"bcd")
        assert delete_expired_workloads(cluster, later) == 4

    def test_with_retain_they_stay(self, apply: Apply, cluster: Cluster) -> None:
        apply(text())
        end(cluster, *"abcd")
        assert (phase(cluster), delete_completed_flows(cluster, START)) == ("Succeed", 0)
        assert Job.objects.count() == 4

    def test_the_condition_names_the_flow_and_the_order(self, apply: Apply, cluster: Cluster) -> None:
        flow = changed(5, "spec", "flows", 1, "maxRetry")
        result = apply(text(flow))
        assert any("spec.flows[1].maxRetry: is lost" in warning for warning in result.warnings)
        shown = {each["metadata"]["name"]: each for each in get_manifests(cluster, "Workload")}
        (of_b,) = [each for name, each in shown.items() if "nightly-b" in name]
        (condition,) = [each for each in of_b["status"]["conditions"] if each["type"] == "Translated"]
        assert condition["message"].startswith("From flow.volcano.sh/v1alpha1 JobFlow")
        assert "spec.flows[1].maxRetry -> lost" in condition["message"]
        assert "kueueweb.io/start-after: nightly-a" in condition["message"]

    def test_a_template_alone_is_refused_with_what_to_do(self, apply: Apply) -> None:
        with pytest.raises(UnsupportedKind, match="together with a JobFlow"):
            apply(yaml.safe_dump(TEMPLATES[0]))

    def test_a_flow_with_a_mistake_stores_nothing(self, apply: Apply) -> None:
        with pytest.raises(ManifestErrors):
            apply(text(changed({"targets": ["z"]}, "spec", "flows", 1, "dependsOn")))
        assert not Job.objects.exists()

    def test_a_tenant_submits_a_flow_in_its_own_namespace_only(self, cluster: Cluster) -> None:
        tenant = User.objects.create(username="researcher")
        RoleBinding.objects.create(username=tenant.username, role=Role.SUBMITTER, namespace="team")
        apply_manifests(cluster, text(), user=tenant)
        assert set(Workload.objects.values_list("submitted_by", flat=True)) == {"researcher"}
        with pytest.raises(NotPermitted):
            apply_manifests(cluster, text().replace("namespace: team", "namespace: other"), user=tenant)
        assert set(Job.objects.values_list("namespace", flat=True)) == {"team"}

    def test_another_namespaces_label_joins_no_flow(self, apply: Apply, cluster: Cluster) -> None:
        apply(text())
        Job.objects.filter(name="nightly-d").update(labels={"volcano.sh/createdByJobFlow": "other.nightly"})
        assert sorted(phases(cluster)) == ["a", "b", "c"]
