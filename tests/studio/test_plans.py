"""Plans of "what if": read with located mistakes, refused without the right, tried, and what they say happens."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import nullcontext
from io import StringIO
from pathlib import Path
from typing import Any, cast

import pytest
from django.core.management import CommandError, call_command
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from accounts.models import Cluster, Role
from accounts.services.access import Access
from clusters.manifests import apply_manifests
from foundation.exceptions import InvalidRequest, KueuewebError, ManifestErrors, NotFound, NotPermitted
from gpus.models import Node
from queues.models import ClusterQueue, LocalQueue, Workload, WorkloadPriorityClass
from queues.services.pod_policy import PRIORITY_CLASSES
from scheduler.leader.engine import Engine
from scheduling.studio.node_changes import AddNodes, CordonNode, DrainNode, LoseNode, ReturnNode
from studio.services.planned_changes import planned_changes
from studio.services.plans import Plan, read_plan, store_plan
from studio.services.trials import try_what_if
from tests.factories import START, make_cluster, make_cluster_queue, make_namespace, make_node, make_workload

pytestmark = pytest.mark.django_db(transaction=True)
NOW = START.timestamp() + 1000
QUOTA = """
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: main}
spec:
  namespaceSelector: {}
  resourceGroups:
  - coveredResources: [cpu]
    flavors:
    - name: default-flavor
      resources: [{name: cpu, nominalQuota: %s}]
"""
JOB = """
apiVersion: batch/v1
kind: Job
metadata: {name: train, namespace: team, labels: {kueue.x-k8s.io/queue-name: queue}}
spec:
  template:
    spec:
      restartPolicy: Never
      containers: [{name: c, image: i, resources: {requests: {cpu: %s}}}]
"""


@pytest.fixture
def cluster() -> Cluster:
    """Ten cores, of which `a` and `b` hold seven; `w` waits for five."""
    cluster = make_cluster()
    make_cluster_queue(cluster)
    make_workload(cluster, "a", {"cpu": "4"})
    make_workload(cluster, "b", {"cpu": "3"})
    Engine(cluster, "test", clock=lambda: NOW).run()
    make_workload(cluster, "w", {"cpu": "5"})
    return Cluster.objects.get()


def answer_of(cluster: Cluster, text: str, now: float = NOW) -> Mapping[str, Any]:
    planned = planned_changes(cluster, read_plan(text), None, now)
    answer = try_what_if(planned.world, planned.changes, now, lambda: True, lambda _: None)
    return cast("dict[str, Any]", json.loads(json.dumps(answer))["whole"])


def state(cluster: Cluster) -> dict[str, str]:
    return {
        _known(f"team/{name}"): status
        for name, status in Workload.objects.filter(cluster=cluster).values_list("name", "status")
    }


def _known(key: str) -> str:
    """The key; of a Job's workload without the end of its name, which is another each time."""
    return key.rpartition("-")[0] if key.startswith("team/job-") else key


def test_manifests_alone_are_a_plan() -> None:
    plan = read_plan(QUOTA % 5 + "---" + JOB % 1)
    assert [document.content["kind"] for document in plan.apply] == ["ClusterQueue", "Job"]


def test_the_sections_of_a_plan() -> None:
    assert read_plan(
        """
        delete: [{kind: Workload, metadata: {name: w, namespace: team}}]
        patch: [{kind: Cohort, metadata: {name: all}, spec: {fairSharing: {weight: 2}}}]
        nodes:
        - {add: 2, like: n1}
        - cordon: n1
        - {drain: n2, device: GPU-2}
        - {lose: n1, device: GPU-1}
        - return: n2
        end: [team/a]
        requeue: [team/b]
        priorities: [{workload: team/c, class: high}]
        policies: {node: fgd}
        """
    ) == Plan(
        patch=read_plan("patch: [{kind: Cohort, metadata: {name: all}, spec: {fairSharing: {weight: 2}}}]").patch,
        delete=read_plan("delete: [{kind: Workload, metadata: {name: w, namespace: team}}]").delete,
        nodes=(
            AddNodes("n1", 2),
            CordonNode("n1"),
            DrainNode("n2", "GPU-2"),
            LoseNode("n1", "GPU-1"),
            ReturnNode("n2"),
        ),
        end=("team/a",),
        requeue=("team/b",),
        priorities=(("team/c", "high"),),
        node_policy="fgd",
    )


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("nodes: [{add: 2}]", "nodes[0].like"),
        ("nodes: [{add: 0, like: a}]", "nodes[0].add"),
        ("nodes: [{cordon: a, lose: b}]", "nodes[0]"),
        ("nodes: [{like: a}]", "nodes[0]"),
        ("nodes: [{return: a, device: b}]", "nodes[0].device"),
        ("end: [w]", "end[0]"),
        ("requeue: [w]", "requeue[0]"),
        ("priorities: [{workload: w, class: high}]", "priorities[0].workload"),
        ("priorities: [{workload: team/w}]", "priorities[0].class"),
        ("apply: 3", "apply"),
        ("policies: {node: random}", "policies.node"),
        ("nothing: 3", "nothing"),
    ],
)
def test_a_mistake_is_located(text: str, path: str) -> None:
    with pytest.raises(ManifestErrors) as raised:
        read_plan(text)
    assert path in [mistake.path.rstrip(".") for mistake in raised.value.errors]


@pytest.mark.parametrize("text", ["", "apply: []", "end: []\n---\nend: []", "x" * 300_000])
def test_a_plan_without_a_change_and_one_that_is_too_long_are_refused(text: str) -> None:
    with pytest.raises(InvalidRequest, match=r"^plan: "):
        read_plan(text)


def test_a_smaller_quota_says_how_much_is_over_and_stores_nothing(cluster: Cluster) -> None:
    for _ in range(2):
        whole = answer_of(cluster, QUOTA % 5)
        (quota,) = whole["effects"]["quotas"]
        assert (quota["nominal_before"], quota["nominal"], quota["used"], quota["over"]) == (
            10_000,
            5_000,
            7_000,
            2_000,
        )
        assert whole["effects"]["complete"] is True
    queue = ClusterQueue.objects.get(name="main")
    assert queue.resource_groups.get().quotas.get().nominal_quota == 10_000


@pytest.mark.parametrize(
    "text",
    [
        QUOTA % 12,
        QUOTA % 4,
        JOB % 3,
        "end: [team/a]",
        "delete: [{kind: Workload, metadata: {name: b, namespace: team}}]",
        QUOTA % 30 + "---" + JOB % 6,
    ],
)
def test_the_answer_happens_when_nothing_else_changes(cluster: Cluster, text: str) -> None:
    """The engine decides on the stored change as the answer says."""
    whole = answer_of(cluster, text)
    plan = read_plan(text)
    with transaction.atomic():
        apply_manifests(cluster, text, user=None) if plan.apply else None
        ended = [*plan.end, *(f"team/{each.content['metadata']['name']}" for each in plan.delete)]
        for key in ended:
            Workload.objects.filter(name=key.partition("/")[2]).delete()
    Engine(Cluster.objects.get(), "again", clock=lambda: NOW).run()
    holding = {name for name, status in state(cluster).items() if status in ("Admitted", "QuotaReserved")}
    waiting = {name for name, status in state(cluster).items() if status == "Pending"}
    lost = {_known(eviction["workload"]) for eviction in whole["evictions"]}
    assert holding == ({"team/a", "team/b"} - lost) | set(map(_known, whole["effects"]["starts"]))
    assert lost == set(ended)
    assert {_known(each["workload"]) for each in whole["waiting"] if not each["reason_before"]} <= waiting
    figures = {queue["name"]: queue for queue in whole["queues"]}
    if "main" in figures:
        assert (figures["main"]["pending"], figures["main"]["reserving"]) == (len(waiting), len(holding))


def test_a_requeued_workload_and_another_priority_are_tried_on_stored_rows(cluster: Cluster) -> None:
    WorkloadPriorityClass.objects.create(cluster=cluster, name="high", value=9, created_at=START)
    assert answer_of(cluster, "requeue: [team/a]")["evictions"][0]["reason"] == "RequeueRequested"
    whole = answer_of(cluster, "requeue: [team/a]\npriorities: [{workload: team/w, class: high}]")
    assert whole["effects"]["starts"] == {"team/w": "main"}
    assert [lost["workload"] for lost in whole["evictions"]] == ["team/a"]
    assert set(Workload.objects.values_list("priority", flat=True)) == {0}


def test_a_lost_and_an_added_node_are_tried_on_stored_rows(cluster: Cluster) -> None:
    make_node(cluster, "n1", [{}, {}])
    whole = answer_of(cluster, "nodes: [{lose: n1}]")
    count = whole["devices_before"]["count"]
    assert count > 0
    assert whole["devices"]["count"] == 0
    assert answer_of(cluster, "nodes: [{add: 3, like: n1}]")["devices"]["count"] == 4 * count
    assert Node.objects.count() == 1


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("nodes: [{lose: none}]", "NotFound"),
        ("nodes: [{lose: n1}, {lose: n1}]", "Invalid"),
        ("nodes: [{lose: n1}, {add: 1, like: n1}]", "Invalid"),
        ("{delete: [{kind: Node, metadata: {name: n1}}], nodes: [{cordon: n1}]}", "Invalid"),
        ("end: [team/none]", "NotFound"),
        ("requeue: [team/none]", "NotFound"),
        ("priorities: [{workload: team/none, class: high}]", "NotFound"),
        ("priorities: [{workload: team/w, class: none}]", "NotFound"),
        ("nodes: [{drain: none}]", "NotFound"),
        ("nodes: [{drain: n1, device: none}]", "NotFound"),
        ("delete: [{kind: ClusterQueue, metadata: {name: none}}]", "NotFound"),
        ("delete: [{kind: Nonsense, metadata: {name: none}}]", "Invalid"),
        ("apply: [{kind: Nonsense, apiVersion: v1}]", "UnsupportedKind"),
        (QUOTA % "many", "InvalidManifest"),
    ],
)
def test_a_plan_that_cannot_be_made_is_refused(cluster: Cluster, text: str, reason: str) -> None:
    make_node(cluster, "n1", [{}])
    with pytest.raises(KueuewebError) as raised:
        answer_of(cluster, text)
    assert raised.value.reason == reason


def test_other_policies_and_another_configuration_are_tried(cluster: Cluster) -> None:
    make_node(cluster, "n1", [{}, {}])
    sharing = "{preemptionStrategies: [LessThanInitialShare]}"
    fair = f"{{apiVersion: config.kueue.x-k8s.io/v1beta2, kind: Configuration, fairSharing: {sharing}}}"
    assert answer_of(cluster, f"policies: {{node: spread, device: binpack}}\napply: [{fair}]")["effects"]["complete"]
    assert Cluster.objects.get().configuration == {}


def test_the_command_prints_text_or_json(cluster: Cluster, tmp_path: Path) -> None:
    path = tmp_path / "plan.yaml"
    path.write_text(QUOTA % 12)
    printed = StringIO()
    call_command("what_if", str(path), stdout=printed)
    assert "1 workload would start:\n  team/w (main)" in printed.getvalue()
    assert "cpu in default-flavor 10 -> 12" in printed.getvalue()
    printed = StringIO()
    call_command("what_if", str(path), "--json", stdout=printed)
    assert json.loads(printed.getvalue())["first"]["effects"]["starts"] == {"team/w": "main"}
    path.write_text("requeue: [team/a]")
    printed = StringIO()
    call_command("what_if", str(path), stdout=printed)
    assert "team/a (main): RequeueRequested, 0.0 device hours; it starts again\n" in printed.getvalue()
    path.write_text("nodes: [{lose: none}]")
    with pytest.raises(CommandError, match="There is no Node none"):
        call_command("what_if", str(path))
    with pytest.raises(CommandError):
        call_command("what_if", str(tmp_path / "missing"))


@pytest.mark.parametrize("name", ["high", "low", "absent"])
def test_the_queries_of_a_plan_do_not_grow_with_its_workloads(cluster: Cluster, name: str) -> None:
    """A submitter of the namespace, whose LocalQueue allows the class `high` alone."""
    LocalQueue.objects.update(annotations={PRIORITY_CLASSES: "high"})
    for priority_class in ("high", "low"):
        WorkloadPriorityClass.objects.create(cluster=cluster, name=priority_class, value=1, created_at=START)
    for number in range(20):
        make_workload(cluster, f"w-{number}")
    access = Access("bob", roles={"team": frozenset({Role.SUBMITTER})})
    counts = []
    for keys in (["team/w-0"], [f"team/w-{number}" for number in range(20)]):
        priorities = (*((key, "high") for key in keys), (keys[0], name))
        plan = Plan(end=tuple(keys), requeue=tuple(keys), priorities=priorities)
        refusal = {"low": NotPermitted, "absent": NotFound}.get(name)
        with CaptureQueriesContext(connection) as queries, pytest.raises(refusal) if refusal else nullcontext():
            store_plan(cluster, plan, access, None)
        counts.append(len(queries))
    assert counts[0] == counts[1] <= 5


@pytest.mark.parametrize("namespace", ["team", "other"])
def test_a_plan_finds_only_the_workloads_that_it_names(cluster: Cluster, namespace: str) -> None:
    """Not those of one named namespace with the name from another, and none that has finished."""
    make_namespace(cluster, "other")
    make_workload(cluster, "else", namespace="other")
    Workload.objects.filter(name="a").update(status="Finished")
    key = f"{namespace}/{'a' if namespace == 'team' else 'w'}"
    plan = Plan(end=("team/w", "other/else", key))
    access = Access("root", is_superuser=True)
    with pytest.raises(NotFound, match=f"no unfinished Workload {key} "):
        store_plan(cluster, plan, access, None)
