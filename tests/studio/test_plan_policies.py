"""Policies in plans of "what if": tried, refused without the right, and applied as their answer says."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, cast

import pytest
from django.db import transaction

from accounts.models import Cluster, Namespace, Role
from accounts.services.access import Access, access_of
from foundation.exceptions import KueuewebError, ManifestErrors, NotFound, NotPermitted
from queues.manifests.pod_security import LEVEL_LABEL
from queues.models import ClusterQueue, Cohort, LocalQueue, Workload
from queues.services.workloads import record_stopped
from scheduler.leader.engine import Engine
from studio.services.plan_application import apply_plan
from studio.services.plan_basis import basis_of, outdated
from studio.services.planned_changes import planned_changes
from studio.services.plans import read_plan, store_plan
from studio.services.trials import try_what_if
from tests.factories import START, make_cluster, make_cluster_queue, make_cohort, make_node, make_workload
from tests.users import make_user

pytestmark = pytest.mark.django_db(transaction=True)
NOW = START.timestamp() + 1000
FAIR = "{kind: Configuration, fairSharing: {preemptionStrategies: [LessThanInitialShare]}}"


def rfc3339(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat().replace("+00:00", "Z")


RESERVED = f"""
apply:
- apiVersion: kueueweb.io/v1
  kind: Reservation
  metadata: {{name: repair}}
  spec: {{start: '{rfc3339(NOW)}', end: '{rfc3339(NOW + 3600)}', nodes: {{names: [n1]}}, ifBusy: Evict}}
"""


@pytest.fixture
def cluster() -> Cluster:
    """Two queues of one cohort, whose twelve cores `main` holds: `low`, `high` and `small` run. A workload waits in
    each queue: `big`, and `other`, for whose cores `main` has borrowed."""
    cluster = make_cluster()
    make_cohort(cluster, "all")
    for name, local_queue in (("main", "queue"), ("side", "side-queue")):
        quotas = {"default-flavor": {"cpu": 6_000}}
        make_cluster_queue(cluster, name, quotas, local_queue=local_queue, cohort_name="all")
    make_node(cluster, "n1", [])
    make_workload(cluster, "low", {"cpu": "6"})
    make_workload(cluster, "high", {"cpu": "5"}, priority=5)
    Engine(cluster, "test", clock=lambda: NOW).run()
    make_workload(cluster, "big", {"cpu": "6"}, priority=3)
    make_workload(cluster, "small", {"cpu": "1"})
    make_workload(cluster, "other", {"cpu": "4"}, queue_name="side-queue")
    Engine(cluster, "test", clock=lambda: NOW).run()
    return Cluster.objects.get()


def answer_of(cluster: Cluster, text: str) -> Mapping[str, Any]:
    planned = planned_changes(cluster, read_plan(text), None, NOW)
    answer = try_what_if(planned.world, planned.changes, NOW, lambda: True, lambda _: None)
    return cast("dict[str, Any]", json.loads(json.dumps(answer))["whole"])


def statuses() -> dict[str, str]:
    return dict(Workload.objects.values_list("name", "status"))


def settle(*stopping: str) -> None:
    """Run cycles, and let the pods of the workloads that are stopped end, until nothing changes."""
    for _ in range(4):
        Engine(Cluster.objects.get(), "again", clock=lambda: NOW).run()
        record_stopped(Cluster.objects.get(), [("team", name) for name in stopping])


POLICIES = {
    "a queue's preemption": (
        "patch: [{kind: ClusterQueue, metadata: {name: main}, spec: {preemption: {withinClusterQueue: LowerPriority}}}]"
    ),
    "reclaiming": "patch: [{kind: cq, metadata: {name: side}, spec: {preemption: {reclaimWithinCohort: Any}}}]",
    "strict order": "patch: [{kind: ClusterQueue, metadata: {name: main}, spec: {queueingStrategy: StrictFIFO}}]",
    "weights": (
        f"patch: [{FAIR}, {{kind: ClusterQueue, metadata: {{name: side}}, spec: {{fairSharing: {{weight: 4}}, "
        "preemption: {reclaimWithinCohort: Any}}}]"
    ),
    "a sharing policy": (
        "patch:\n"
        "- {kind: Cohort, metadata: {name: all, annotations: {kueueweb.io/sharing-policy: proportion}}}\n"
        "- {kind: ClusterQueue, metadata: {name: side}, spec: {preemption: {reclaimWithinCohort: Any}}}\n"
    ),
    "a stopped queue": "patch: [{kind: ClusterQueue, metadata: {name: main}, spec: {stopPolicy: HoldAndDrain}}]",
    "a stopped LocalQueue": (
        "patch: [{kind: LocalQueue, metadata: {name: queue, namespace: team}, spec: {stopPolicy: Hold}}]"
    ),
    "a namespace's labels": (
        "patch:\n"
        "- {kind: Namespace, metadata: {name: team, labels: {tier: gold}}}\n"
        "- {kind: ClusterQueue, metadata: {name: side}, spec: {namespaceSelector: {matchLabels: {tier: gold}}}}\n"
    ),
    "a reservation": RESERVED,
    "another quota": (
        "patch: [{kind: ClusterQueue, metadata: {name: main}, spec: {resourceGroups: [{coveredResources: [cpu], "
        "flavors: [{name: default-flavor, resources: [{name: cpu, nominalQuota: 12}]}]}]}}]"
    ),
}


@pytest.mark.parametrize("policy", POLICIES)
def test_a_plan_of_policies_is_applied_and_what_it_says_happens(cluster: Cluster, policy: str) -> None:
    plan = read_plan(POLICIES[policy])
    whole = answer_of(cluster, POLICIES[policy])
    assert statuses()["low"] == "Admitted", "nothing is stored"
    planned = planned_changes(cluster, plan, None, NOW)
    apply_plan(cluster, plan, planned.basis, datetime.fromtimestamp(NOW, UTC))
    lost = {each["workload"].removeprefix("team/") for each in whole["evictions"]}
    settle(*lost)
    holding = {name for name, status in statuses().items() if status in ("Admitted", "QuotaReserved")}
    starts = {key.removeprefix("team/") for key in whole["effects"]["starts"]}
    again = {each["workload"].removeprefix("team/") for each in whole["evictions"] if each["starts_again"]}
    assert holding == ({"low", "high", "small"} - lost) | starts
    assert again <= starts
    pending = {name for name, status in statuses().items() if status not in ("Admitted", "QuotaReserved", "Finished")}
    figures = {queue["name"]: queue for queue in whole["queues"]}
    if figures:
        assert sum(queue["pending"] for queue in figures.values()) <= len(pending)


@pytest.mark.parametrize(
    ("policy", "evicted", "started"),
    [
        ("a queue's preemption", {"low"}, {"other"}),
        ("reclaiming", {"low"}, {"other"}),
        ("a reservation", {"low", "high", "small"}, set()),
        ("a stopped queue", {"low", "high", "small"}, {"other"}),
        ("strict order", set(), set()),
    ],
)
def test_the_effects_of_a_policy(cluster: Cluster, policy: str, evicted: set[str], started: set[str]) -> None:
    whole = answer_of(cluster, POLICIES[policy])
    assert {each["workload"].removeprefix("team/") for each in whole["evictions"]} == evicted
    assert {key.removeprefix("team/") for key in whole["effects"]["starts"]} == started


def test_a_patch_keeps_the_other_fields(cluster: Cluster) -> None:
    plan = read_plan(POLICIES["strict order"])
    apply_plan(cluster, plan, basis_of(cluster, plan), datetime.fromtimestamp(NOW, UTC))
    queue = ClusterQueue.objects.get(name="main")
    assert (queue.queueing_strategy, queue.cohort_name) == ("StrictFIFO", "all")
    assert queue.resource_groups.get().quotas.get().nominal_quota == 6_000


def test_a_patch_rests_on_the_object_that_it_changes(cluster: Cluster) -> None:
    plan = read_plan(POLICIES["a sharing policy"])
    before = basis_of(cluster, plan)
    Cohort.objects.update(fair_sharing_weight="2")
    assert outdated(before, basis_of(cluster, plan)) == ["Cohort all"]


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("patch: [{kind: Job, metadata: {name: a, namespace: b}, spec: {}}]", "kind"),
        ("patch: [{kind: Workload, metadata: {name: a, namespace: b}, spec: {}}]", "kind"),
        ("patch: [{kind: ClusterQueue, spec: {stopPolicy: Hold}}]", "metadata.name"),
        ("patch: [{kind: LocalQueue, metadata: {name: queue}, spec: {stopPolicy: Hold}}]", "metadata.namespace"),
        ("patch: [{kind: ClusterQueue, metadata: {name: main}}]", ""),
        ("patch: [{kind: ClusterQueue, metadata: {name: main}, spec: {stopPolicy: Now}}]", "spec.stopPolicy"),
        ("patch: [{kind: ClusterQueue, metadata: {name: main}, spec: {stop: Now}}]", "spec.stop"),
        (
            "patch: [{kind: cq, apiVersion: kueue.x-k8s.io/v1beta1, metadata: {name: main}, spec: {stop: a}}]",
            "apiVersion",
        ),
        (
            POLICIES["strict order"].replace("]", ", {kind: cq, metadata: {name: main}, spec: {cohortName: b}}]"),
            "metadata.name",
        ),
        (
            (
                "apply: [{apiVersion: v1, kind: Namespace, metadata: {name: team, labels: {tier: gold}}}]\n"
                "patch: [{kind: ns, metadata: {name: team, annotations: {a: b}}}]"
            ),
            "metadata.name",
        ),
    ],
)
def test_a_mistaken_patch_is_located(cluster: Cluster, text: str, path: str) -> None:
    with pytest.raises(ManifestErrors) as raised:
        answer_of(cluster, text)
    assert [(mistake.source, mistake.path) for mistake in raised.value.errors] == [("patch", path)]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("patch: [{kind: ClusterQueue, metadata: {name: none}, spec: {stopPolicy: Hold}}]", "NotFound"),
        ("patch: [{kind: LocalQueue, metadata: {name: main, namespace: none}, spec: {stopPolicy: Hold}}]", "NotFound"),
        ("patch: [{kind: Nonsense, metadata: {name: none}, spec: {}}]", "Invalid"),
        ("patch: [{metadata: {name: none}, spec: {}}]", "Invalid"),
        ("patch: 3", "InvalidManifest"),
    ],
)
def test_a_patch_that_cannot_be_made_is_refused(cluster: Cluster, text: str, reason: str) -> None:
    with pytest.raises(KueuewebError) as raised:
        answer_of(cluster, text)
    assert raised.value.reason == reason


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("role", [Role.ADMIN, Role.SUBMITTER])
def test_a_tenant_patches_nothing(cluster: Cluster, policy: str, role: Role) -> None:
    access = Access("bob", roles={"team": frozenset({role})})
    user = make_user("bob")
    for text in (POLICIES[policy], POLICIES[policy].replace("name: side", "name: none")):
        with pytest.raises(NotPermitted):
            store_plan(cluster, read_plan(text), access, user)


def test_a_queue_admin_patches_queues_below_the_cohort_alone(cluster: Cluster) -> None:
    make_cluster_queue(cluster, "apart", local_queue="")
    access = Access("bob", cohorts=frozenset({"all"}))
    patch = "patch: [{kind: ClusterQueue, metadata: {name: %s}, spec: {stopPolicy: Hold}}]"
    with pytest.raises(NotPermitted, match="not below a cohort"):
        store_plan(cluster, read_plan(patch % "apart"), access, make_user("bob"))


def test_a_queue_admin_does_not_learn_which_local_queues_a_hidden_namespace_has(cluster: Cluster) -> None:
    make_cluster_queue(cluster, "apart", local_queue="")
    LocalQueue.objects.create(
        cluster=cluster, namespace="hidden", name="there", cluster_queue_name="apart", created_at=START
    )
    access, user = Access("bob", cohorts=frozenset({"all"})), make_user("bob")
    of_all = "{apiVersion: kueue.x-k8s.io/v1beta1, kind: LocalQueue, metadata: {name: %s, namespace: hidden}, spec: %s}"
    for section, spec in (("patch", "{stopPolicy: Hold}"), ("delete", "{}")):
        answers = []
        for name in ("there", "none"):
            with pytest.raises(NotPermitted) as caught:
                store_plan(cluster, read_plan(f"{section}: [{of_all % (name, spec)}]"), access, user)
            answers.append(str(caught.value).replace(name, "NAME"))
        assert answers[0] == answers[1]
    seen = Access("bob", roles={"hidden": frozenset({Role.VIEWER})}, cohorts=frozenset({"all"}))
    with pytest.raises(NotFound):
        store_plan(cluster, read_plan(f"patch: [{of_all % ('none', '{stopPolicy: Hold}')}]"), seen, user)


HOST_JOB = """
{apiVersion: batch/v1, kind: Job, metadata: {name: train, namespace: team, labels: {kueue.x-k8s.io/queue-name: queue}},
 spec: {template: {spec: {hostNetwork: true, restartPolicy: Never,
                          containers: [{name: c, image: i, resources: {requests: {cpu: 1}}}]}}}}
"""


@pytest.mark.parametrize("section", ["apply", "patch"])
def test_the_policy_of_a_namespace_decides_about_the_jobs_of_the_plan(cluster: Cluster, section: str) -> None:
    alice = make_user("alice")
    access, job = access_of(alice, cluster), f"apply: [{HOST_JOB}]"
    with pytest.raises(ManifestErrors, match="Pod Security"):
        store_plan(cluster, read_plan(job), access, alice)
    namespace = f"{{apiVersion: v1, kind: Namespace, metadata: {{name: team, labels: {{{LEVEL_LABEL}: privileged}}}}}}"
    text = f"apply: [{HOST_JOB}, {namespace}]" if section == "apply" else f"{job}\npatch: [{namespace}]"
    with transaction.atomic():
        stored = store_plan(cluster, read_plan(text), access, alice)
        transaction.set_rollback(True)
    assert [each.kind for each in stored.objects] == ["Namespace", "Job"]


def test_a_namespace_of_the_cluster_is_tried_and_changed_there(cluster: Cluster) -> None:
    there = {"kubernetes.io/metadata.name": "team"}
    Namespace.objects.update(in_cluster=True, labels=there)
    text = POLICIES["a namespace's labels"]
    planned = planned_changes(cluster, read_plan(text), None, NOW)
    assert planned.changes
    assert Namespace.objects.get(name="team").labels == there
    with pytest.raises(ManifestErrors, match="kubectl label namespace team tier=gold"):
        apply_plan(cluster, read_plan(text), planned.basis, datetime.fromtimestamp(NOW, UTC))
    assert ClusterQueue.objects.get(name="side").namespace_selector == {}


def test_a_configuration_is_patched_where_there_is_none(cluster: Cluster) -> None:
    plan = read_plan(f"patch: [{FAIR}]")
    apply_plan(cluster, plan, basis_of(cluster, plan), datetime.fromtimestamp(NOW, UTC))
    assert "fairSharing" in Cluster.objects.get().configuration
