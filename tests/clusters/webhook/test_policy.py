"""One policy on every road: what REST refuses by a namespace's policy, kubectl is refused at the same fields."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import User

from accounts.models import Namespace, Role, RoleBinding
from clusters.api_objects import JsonObject
from clusters.jobs.registry import JOB_KINDS
from queues.models import LocalQueue, Workload
from queues.services.pod_policy import POD_PRIORITY_CLASSES, PRIORITY_CLASSES, SERVICE_ACCOUNTS, TOLERATIONS
from tests.clusters.group_pods import gpu_pod
from tests.clusters.system import deployment, gpu_job
from tests.clusters.webhook.conftest import GuardedSystem
from tests.users import client_of

pytestmark = pytest.mark.django_db(transaction=True)

PRIORITY_CLASS = "kueue.x-k8s.io/priority-class"
BOOST = "kueue.x-k8s.io/priority-boost"
CLASSES = """
apiVersion: kueue.x-k8s.io/v1beta2
kind: WorkloadPriorityClass
metadata: {name: low}
value: 1
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: WorkloadPriorityClass
metadata: {name: high}
value: 1000
"""
POLICY = {PRIORITY_CLASSES: "low", SERVICE_ACCOUNTS: "trainer", TOLERATIONS: "gpu", POD_PRIORITY_CLASSES: "batch"}
MADE: dict[str, Callable[[], JsonObject]] = {
    "Job": gpu_job,
    "Deployment": lambda: deployment(1),
    "Pod": lambda: gpu_pod("alone"),
}
LABEL = f"metadata.labels[{PRIORITY_CLASS}]"
CASES: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "class": ({"labels": {PRIORITY_CLASS: "high"}}, {}, LABEL),
    "boost": ({"annotations": {BOOST: "100000"}}, {}, f"metadata.annotations[{BOOST}]"),
    "account": ({}, {"serviceAccountName": "admin"}, "serviceAccountName"),
    "toleration": ({}, {"tolerations": [{"key": "spot", "operator": "Exists"}]}, "tolerations[0]"),
    "pod class": ({}, {"priorityClassName": "other"}, "priorityClassName"),
}


@pytest.fixture
def ruled(guarded: GuardedSystem) -> GuardedSystem:
    """Its namespace `team` has a policy that an admin wrote."""
    guarded.apply_text(CLASSES)
    guarded.apply_text("apiVersion: v1\nkind: Namespace\nmetadata: {name: team}\n")
    Namespace.objects.filter(name="team").update(annotations=POLICY)
    return guarded


def changed(kind: str, metadata: dict[str, Any], pod: dict[str, Any]) -> JsonObject:
    made: JsonObject = copy.deepcopy(MADE[kind]())
    for field, values in metadata.items():
        made["metadata"][field] = {**(made["metadata"].get(field) or {}), **values}
    spec = made["spec"] if kind == "Pod" else made["spec"]["template"]["spec"]
    spec.update(pod)
    return made


def refused_over_rest(manifest: JsonObject) -> set[str]:
    user, _ = User.objects.get_or_create(username="mallory")
    RoleBinding.objects.get_or_create(name="m", username="mallory", role=Role.SUBMITTER, namespace="team")
    answer = client_of(user).post("/api/v1/manifests/", manifest, format="json")
    return {each["path"] for each in answer.json().get("errors", ())} if answer.status_code == 400 else set()


@pytest.mark.parametrize("kind", list(MADE))
@pytest.mark.parametrize("case", list(CASES))
def test_both_roads_refuse_the_same_fields(ruled: GuardedSystem, kind: str, case: str) -> None:
    metadata, pod, field = CASES[case]
    manifest = changed(kind, metadata, pod)
    answer = ruled.kubectl.create(manifest)
    assert (answer.code, answer.body["reason"]) == (403, "Forbidden")
    fields = {cause["field"] for cause in answer.body["details"]["causes"]}
    assert {each.removeprefix("spec.template.").removeprefix("spec.") for each in fields} == {field}
    assert fields == refused_over_rest(manifest)
    assert not Workload.objects.exists()


@pytest.mark.parametrize("kind", list(MADE))
def test_what_the_policy_allows_is_let_in(ruled: GuardedSystem, kind: str) -> None:
    filled_in = {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute"}
    pod = {"serviceAccountName": "trainer", "tolerations": [filled_in, {"key": "gpu", "operator": "Exists"}]}
    assert ruled.kubectl.create(changed(kind, {"labels": {PRIORITY_CLASS: "low"}}, pod)).code == 201


def test_defaults_stand_in_for_the_clusters_own_checks_over_rest_alone(guarded: GuardedSystem) -> None:
    """A user who may make pods may name an account of the namespace; pods of REST are made by our own account."""
    manifest = changed("Job", {}, {"serviceAccountName": "trainer"})
    assert guarded.kubectl.create(manifest).code == 201
    guarded.apply_text("apiVersion: v1\nkind: Namespace\nmetadata: {name: team}\n")
    assert refused_over_rest(manifest) == {"spec.template.spec.serviceAccountName"}


def test_an_edit_is_held_to_the_policy_in_what_it_adds(ruled: GuardedSystem) -> None:
    assert ruled.kubectl.create(changed("Job", {"labels": {PRIORITY_CLASS: "low"}}, {})).code == 201
    raised = ruled.kubectl.patch("Job", "train", {"metadata": {"labels": {PRIORITY_CLASS: "high"}}})
    assert (raised.code, raised.body["details"]["causes"][0]["field"]) == (403, LABEL)
    Namespace.objects.filter(name="team").update(annotations={**POLICY, PRIORITY_CLASSES: "other"})
    assert ruled.kubectl.patch("Job", "train", {"metadata": {"labels": {"note": "mine"}}}).code == 200


def test_a_job_that_gets_its_queue_later_is_held_to_the_policy_then(ruled: GuardedSystem) -> None:
    manifest = changed("Job", {"annotations": {BOOST: "1"}}, {})
    queue = manifest["metadata"]["labels"].pop("kueue.x-k8s.io/queue-name")
    manifest["spec"]["suspend"] = True
    assert ruled.kubectl.create(manifest).code == 201
    named = ruled.kubectl.patch("Job", "train", {"metadata": {"labels": {"kueue.x-k8s.io/queue-name": queue}}})
    assert named.code == 403


def test_the_list_of_the_queue_goes_before_that_of_the_namespace(ruled: GuardedSystem) -> None:
    LocalQueue.objects.filter(namespace="team", name="queue").update(annotations={PRIORITY_CLASSES: "high"})
    assert ruled.kubectl.create(changed("Job", {"labels": {PRIORITY_CLASS: "high"}}, {})).code == 201


def test_limits_of_a_namespace_hold_in_the_cluster_too(guarded: GuardedSystem, settings: Any) -> None:
    settings.MAX_UNFINISHED_PER_NAMESPACE = 1
    assert guarded.kubectl.create(gpu_job("one")).code == 201
    guarded.watcher.resync()
    refusal = guarded.kubectl.create(gpu_job("two"))
    assert (refusal.code, refusal.body["reason"]) == (403, "Forbidden")
    assert "Namespace team has 1 unfinished workloads and may have 1" in refusal.message
    assert guarded.kubectl.get(JOB_KINDS["Job"].resource, "one")["metadata"]["name"] == "one"
