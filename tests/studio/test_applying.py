"""Plans that are applied: with the caller's rights, whole or not at all, once, and only while their answer holds."""

from __future__ import annotations

import threading
from datetime import timedelta
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.db import connection
from django.utils import timezone

from accounts.models import AuditRecord, Cluster, Namespace, Role, RoleBinding
from accounts.services.tokens import create_token
from clusters.manifests import apply_manifests
from gpus.models import Device, Node
from queues.kinds import KINDS
from queues.models import ClusterQueue, Cohort, Workload, WorkloadPriorityClass
from queues.services.cluster_objects import store_cluster_objects
from queues.services.workloads import record_stopped
from scheduler.leader.engine import Engine
from studio.models import Question
from studio.services.plan_basis import basis_of, outdated
from studio.services.plans import read_plan
from tests.api_client import SchemaClient, schema
from tests.factories import START, make_cluster_queue, make_namespace, make_node, make_workload
from tests.patience import PATIENCE_SECONDS
from tests.studio.test_plans import JOB, NOW, QUOTA
from tests.studio_answers import answer_questions, let_a_studio_live
from tests.users import client_of, make_user

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("living_studio")]
QUESTIONS = "/api/v1/studio/questions/"


@pytest.fixture
def filled(cluster: Cluster) -> Cluster:
    """Ten cores, of which `a` and `b` of `team` hold seven; `w` waits for five."""
    make_namespace(cluster, "team")
    make_cluster_queue(cluster)
    WorkloadPriorityClass.objects.create(cluster=cluster, name="high", value=9, created_at=START)
    make_workload(cluster, "a", {"cpu": "4"})
    make_workload(cluster, "b", {"cpu": "3"})
    Engine(cluster, "test", clock=lambda: NOW).run()
    make_workload(cluster, "w", {"cpu": "5"})
    return Cluster.objects.get(pk=cluster.pk)


def tried(client: SchemaClient, plan: str, name: str = "") -> int:
    """Ask a plan, and have it answered; its number."""
    let_a_studio_live()
    asked = client.post(QUESTIONS, {"kind": "what-if", "plan": plan, "name": name}, format="json")
    assert asked.status_code == 201, asked.content
    answer_questions()
    return int(asked.json()["id"])


def applied(client: SchemaClient, question: int, **more: Any) -> Any:
    return client.post(f"{QUESTIONS}{question}/apply/", format="json", **more)


def refused(client: SchemaClient, question: int) -> tuple[int, str]:
    answer = applied(client, question)
    return answer.status_code, answer.json()["reason"]


def listed(manifest: str) -> str:
    """A manifest as an item of a section."""
    return "- " + manifest.strip().replace("\n", "\n  ")


def submit_late(cluster: Cluster, count: int) -> None:
    """Submit workloads after an answer."""
    for number in range(count):
        workload = make_workload(cluster, f"late-{number}", {"cpu": "1"})
        Workload.objects.filter(pk=workload.pk).update(created_at=timezone.now())


def nominal() -> int:
    return ClusterQueue.objects.get(name="main").resource_groups.get().quotas.get().nominal_quota


def statuses() -> dict[str, str]:
    return dict(Workload.objects.values_list("name", "status"))


def settle(*stopping: str) -> None:
    """Run cycles, and let the pods of the workloads that are stopped end, until nothing changes."""
    for _ in range(3):
        Engine(Cluster.objects.get(name="default"), "again", clock=lambda: NOW).run()
        record_stopped(Cluster.objects.get(name="default"), [("team", name) for name in stopping])


def test_a_plan_is_applied_whole_with_an_audit_record_for_each_object(alice: SchemaClient, filled: Cluster) -> None:
    make_node(filled, "n1", [{}])
    plan = (
        f"apply:\n{listed(QUOTA % 12)}\n{listed(JOB % 1)}\n"
        "end: [team/a]\nrequeue: [team/b]\npriorities: [{workload: team/w, class: high}]\nnodes: [{cordon: n1}]\n"
    )
    question = tried(alice, plan, name="bigger")
    alice.force_authenticate(None)
    alice.credentials(HTTP_AUTHORIZATION=f"Bearer {create_token(User.objects.get(username='alice'), 'laptop')[0]}")
    before = AuditRecord.objects.count()
    answer = applied(alice, question, headers={"X-Audit-Reason": "as agreed"})
    assert answer.status_code == 200, answer.content
    result = answer.json()
    done = {(each["kind"], each["name"]): each["action"] for each in result["objects"]}
    assert done == {
        ("ClusterQueue", "main"): "configured",
        ("Job", "train"): "created",
        ("Workload", "a"): "cancelled",
        ("Workload", "b"): "requeued",
        ("Workload", "w"): "prioritized",
        ("Node", "n1"): "cordoned",
    }
    assert nominal() == 12_000
    assert Node.objects.get(name="n1").cordoned
    assert Workload.objects.get(name="w").priority == 9
    records = list(AuditRecord.objects.order_by("id")[before:])
    assert {(row.kind, row.name) for row in records if row.request_id == result["request_id"]} >= set(done)
    about = [(row.kind, row.name) for row in records]
    assert len(about) == len(set(about)), "one record for each object"
    assert {row.reason for row in records} == {f"Plan {question} (bigger): as agreed"}
    assert {row.username for row in records} == {"alice"}
    shown = alice.get(f"{QUESTIONS}{question}/").json()
    assert shown["applied"]["by"] == "alice"
    assert shown["applied"]["request_id"] == result["request_id"]
    assert shown["applied_at"] is not None
    assert AuditRecord.objects.filter(reason__startswith="Plan").count() == len(records)
    alice.patch("/api/v1/nodes/n1/", {"cordoned": False}, format="json")
    assert AuditRecord.objects.latest("id").reason == "", "the reason ends with the plan"


def test_a_dry_run_checks_all_and_stores_nothing(alice: SchemaClient, filled: Cluster) -> None:
    question = tried(alice, QUOTA % 12)
    submit_late(filled, 1)
    answer = alice.post(f"{QUESTIONS}{question}/apply/?dry_run=true", format="json")
    assert answer.status_code == 200
    assert [each["action"] for each in answer.json()["objects"]] == ["configured"]
    assert answer.json()["moved"]["submitted"] == 1
    assert nominal() == 10_000
    assert alice.get(f"{QUESTIONS}{question}/").json()["applied"] is None


@pytest.mark.parametrize("change", ["queue", "cohort", "new queue", "settings", "class"])
def test_a_plan_whose_configuration_has_changed_is_refused(alice: SchemaClient, filled: Cluster, change: str) -> None:
    Cohort.objects.create(cluster=filled, name="all", created_at=START)
    question = tried(alice, "end: [team/a]")
    if change == "queue":
        ClusterQueue.objects.get(name="main").resource_groups.get().quotas.update(nominal_quota=9_000)
    elif change == "cohort":
        Cohort.objects.update(fair_sharing_weight="2")
    elif change == "new queue":
        make_cluster_queue(filled, "other", local_queue="")
    elif change == "class":
        WorkloadPriorityClass.objects.update(value=10)
    else:
        Cluster.objects.update(configuration={"fairSharing": {}})
    answer = applied(alice, question)
    assert (answer.status_code, answer.json()["reason"]) == (409, "PlanOutdated")
    assert statuses()["a"] == "Admitted"
    assert refused(alice, question) == (409, "PlanOutdated"), "it can be sent again, and is still refused"
    assert applied(alice, tried(alice, "end: [team/a]")).status_code == 200


OUTDATING = [kind for kind in KINDS if kind != "RoleBinding"]


@pytest.mark.parametrize("event", ["new", "changed", "gone"])
@pytest.mark.parametrize("kind", OUTDATING)
def test_each_kind_of_configuration_outdates_a_plan(filled: Cluster, kind: str, event: str) -> None:
    rows, plan = KINDS[kind].model.objects, read_plan("end: [team/a]")
    make_configuration(filled, kind, "x")
    before = basis_of(filled, plan)
    assert outdated(before, basis_of(filled, plan)) == []
    if event == "new":
        make_configuration(filled, kind, "y")
    elif event == "changed":
        rows.filter(name="x").update(labels={"changed": "yes"})
    else:
        rows.filter(name="x").delete()
    assert outdated(before, basis_of(filled, plan)) == [f"objects of kind {kind}"]


def make_configuration(cluster: Cluster, kind: str, name: str) -> None:
    needed: dict[str, Any] = {"namespace": "team"} if KINDS[kind].namespaced else {}
    if kind in ("WorkloadPriorityClass", "PriorityClass"):
        needed["value"] = 1
    if kind == "Reservation":
        needed |= {"starts_at": START, "ends_at": START + timedelta(hours=1)}
    KINDS[kind].model.objects.create(cluster=cluster, name=name, created_at=START, **needed)


def test_a_namespace_with_other_labels_outdates_a_plan(alice: SchemaClient, filled: Cluster) -> None:
    """The selectors of queues choose by them."""
    question = tried(alice, "end: [team/a]")
    Namespace.objects.filter(name="team").update(labels={"tier": "gold"})
    answer = applied(alice, question)
    assert (answer.status_code, answer.json()["reason"]) == (409, "PlanOutdated")
    assert "objects of kind Namespace changed" in answer.json()["message"]
    assert statuses()["a"] == "Admitted"


@pytest.mark.parametrize("kind", ["DeviceClass", "ResourceSlice"])
def test_published_devices_outdate_a_plan_and_claims_do_not(alice: SchemaClient, filled: Cluster, kind: str) -> None:
    publish(filled, kind, "one")
    question = tried(alice, "end: [team/a]")
    publish(filled, kind, "other")
    assert refused(alice, question) == (409, "PlanOutdated")
    question = tried(alice, "end: [team/a]")
    store_cluster_objects(filled, kind, {}, gone=None)
    assert refused(alice, question) == (409, "PlanOutdated")
    question = tried(alice, "end: [team/a]")
    publish(filled, "ResourceClaim", "one")
    assert applied(alice, question).status_code == 200


def publish(cluster: Cluster, kind: str, driver: str) -> None:
    manifest = {"kind": kind, "metadata": {"name": "x"}, "spec": {"driver": driver}}
    store_cluster_objects(cluster, kind, {("", "x"): manifest}, gone=None)


@pytest.mark.parametrize(
    ("plan", "change"),
    [
        ("end: [team/w]", lambda: Workload.objects.filter(name="w").update(priority=3)),
        ("end: [team/a]", lambda: Workload.objects.filter(name="a").update(evicted_at=START)),
        ("nodes: [{cordon: n1}]", lambda: Node.objects.update(unschedulable=True)),
        ("nodes: [{cordon: n1}]", lambda: Device.objects.update(healthy=False)),
        (JOB % 1, lambda: make_job()),
    ],
)
def test_a_plan_whose_own_objects_have_changed_is_refused(
    alice: SchemaClient, filled: Cluster, plan: str, change: Any
) -> None:
    make_node(filled, "n1", [{}])
    question = tried(alice, plan)
    change()
    assert refused(alice, question) == (409, "PlanOutdated")


def make_job() -> None:
    apply_manifests(Cluster.objects.get(), JOB % 2, user=None)


def test_arrivals_starts_and_ends_of_others_are_counted_and_do_not_refuse(alice: SchemaClient, filled: Cluster) -> None:
    make_node(filled, "n1", [{}])
    make_node(filled, "n2", [{}])
    question = tried(alice, "requeue: [team/b]")
    submit_late(filled, 3)
    Engine(Cluster.objects.get(name="default"), "again", clock=lambda: NOW + 10).run()
    Node.objects.filter(name="n2").update(ready=False)
    Node.objects.update(foreign_usage={"cpu": 5})
    answer = applied(alice, question)
    assert answer.status_code == 200, answer.content
    moved = answer.json()["moved"]
    assert (moved["submitted"], moved["nodes"]) == (3, 1)


def test_changes_are_counted_in_the_namespaces_that_the_caller_sees(alice: SchemaClient, filled: Cluster) -> None:
    make_namespace(filled, "other")
    make_user("tenant")
    RoleBinding.objects.create(cluster=filled, username="tenant", role=Role.SUBMITTER, namespace="team")
    client = client_of(User.objects.get(username="tenant"))
    question, everything = tried(client, "end: [team/w]"), tried(alice, "end: [team/w]")
    now = timezone.now()
    for namespace, name, changes in (
        ("team", "came", {"created_at": now}),
        ("team", "started", {"created_at": now, "quota_reserved_at": now, "status": "Admitted"}),
        ("team", "over", {"created_at": now, "quota_reserved_at": now, "finished_at": now, "status": "Finished"}),
        ("team", "ended", {"finished_at": now, "status": "Finished"}),
        ("team", "long ago", {"finished_at": START, "status": "Finished"}),
        ("other", "came", {"created_at": now}),
        ("other", "started", {"created_at": now, "quota_reserved_at": now, "status": "Admitted"}),
        ("other", "over", {"created_at": now, "quota_reserved_at": now, "finished_at": now, "status": "Finished"}),
    ):
        workload = make_workload(filled, name, {"cpu": "1"}, namespace=namespace)
        Workload.objects.filter(pk=workload.pk).update(**changes)
    found = alice.post(f"{QUESTIONS}{everything}/apply/?dry_run=true", format="json").json()["moved"]
    assert found == {"submitted": 6, "started": 4, "ended": 3, "nodes": 0}
    assert applied(client, question).json()["moved"] == {"submitted": 3, "started": 2, "ended": 2, "nodes": 0}


@pytest.mark.parametrize(
    ("plan", "named"),
    [
        ("nodes: [{add: 2, like: n1}]", "nodes like n1"),
        ("nodes: [{lose: n1}]", "lose Node n1"),
        ("nodes: [{cordon: n2}, {lose: n1, device: GPU}]", "lose Device GPU of Node n1"),
        ("nodes: [{return: n2}]", "return Node n2"),
        ("policies: {node: spread}", "policies"),
    ],
)
def test_parts_that_only_a_cluster_can_do_are_refused_by_name(
    alice: SchemaClient, filled: Cluster, plan: str, named: str
) -> None:
    uuid = make_node(filled, "n1", [{}]).devices.get().uuid
    make_node(filled, "n2", [{}])
    Node.objects.filter(name="n2").update(unschedulable=True)
    answer = applied(alice, tried(alice, plan.replace("GPU", uuid)))
    assert (answer.status_code, answer.json()["reason"]) == (409, "NotApplicable")
    assert named.replace("GPU", uuid) in answer.json()["message"]
    assert not Node.objects.filter(cordoned=True).exists()


def test_a_node_and_a_device_are_drained_and_returned(alice: SchemaClient, filled: Cluster) -> None:
    uuid = make_node(filled, "n1", [{}, {}]).devices.order_by("index")[0].uuid
    make_node(filled, "n2", [{}])
    assert applied(alice, tried(alice, f"nodes: [{{drain: n1, device: {uuid}}}, {{drain: n2}}]")).status_code == 200
    assert Device.objects.get(draining=True).uuid == uuid
    assert Node.objects.get(draining=True).name == "n2"
    assert applied(alice, tried(alice, "nodes: [{return: n1}, {return: n2}]")).status_code == 200
    assert not Device.objects.filter(cordoned=True).exists()
    assert not Node.objects.filter(cordoned=True).exists()


def test_a_plan_is_applied_with_the_rights_of_the_caller(alice: SchemaClient, filled: Cluster) -> None:
    """Not with those of its author: a reader of everything may open a saved plan, and may not apply it."""
    question = tried(alice, "end: [team/a]", name="shared")
    unsaved = tried(alice, "end: [team/b]")
    reader, tenant, stranger, operator = (make_user(name) for name in ("reader", "tenant", "stranger", "operator"))
    for user, role, namespace in (
        (reader, Role.VIEWER, ""),
        (tenant, Role.SUBMITTER, "team"),
        (stranger, Role.SUBMITTER, "elsewhere"),
        (operator, Role.ADMIN, ""),
    ):
        RoleBinding.objects.create(cluster=filled, username=user.username, role=role, namespace=namespace)
    assert refused(client_of(reader), question) == (403, "NotPermitted")
    for user in (tenant, stranger):
        assert refused(client_of(user), question) == (404, "NotFound"), "a plan has names: not of theirs to open"
    assert refused(client_of(operator), unsaved) == (404, "NotFound"), "it is not shared"
    assert statuses()["a"] == "Admitted"
    assert applied(client_of(operator), question).status_code == 200
    stored = Question.objects.get(pk=question).applied
    assert stored is not None
    assert stored["by"] == "operator"


def test_an_author_who_lost_the_role_can_not_apply(filled: Cluster) -> None:
    make_user("tenant")
    RoleBinding.objects.create(cluster=filled, username="tenant", role=Role.SUBMITTER, namespace="team")
    client = client_of(User.objects.get(username="tenant"))
    question = tried(client, "end: [team/a]")
    RoleBinding.objects.filter(username="tenant").update(role=Role.VIEWER)
    assert refused(client, question) == (403, "NotPermitted")
    RoleBinding.objects.filter(username="tenant").update(namespace="elsewhere", role=Role.SUBMITTER)
    assert refused(client, question) == (404, "NotFound")
    assert statuses()["a"] == "Admitted"


def test_a_failure_in_the_middle_stores_nothing(alice: SchemaClient, filled: Cluster) -> None:
    """The right to end a workload is missing after the quota was stored."""
    plan = f"apply:\n{listed(QUOTA % 12)}\nend: [team/a]\n"
    question = tried(alice, plan, name="shared")
    queue_admin = make_user("queues")
    RoleBinding.objects.create(cluster=filled, username="queues", role=Role.VIEWER, namespace="")
    RoleBinding.objects.create(cluster=filled, username="queues", role=Role.QUEUE_ADMIN, cohort="all")
    assert refused(client_of(queue_admin), question) == (403, "NotPermitted")
    assert nominal() == 10_000
    assert Question.objects.get(pk=question).applied_at is None


def test_a_plan_is_applied_once(alice: SchemaClient, filled: Cluster) -> None:
    question = tried(alice, QUOTA % 12)
    assert applied(alice, question).status_code == 200
    assert refused(alice, question) == (409, "AlreadyApplied")


def test_a_plan_that_is_applied_again_with_its_key_gets_the_first_answer(alice: SchemaClient, filled: Cluster) -> None:
    """It is stored once, and the audit names the plan although the key is stored in the same transaction."""
    question = tried(alice, QUOTA % 12)
    other = tried(alice, QUOTA % 12)
    before = AuditRecord.objects.count()
    first, again = (applied(alice, question, headers={"Idempotency-Key": "k"}) for _ in range(2))
    assert (first.status_code, again.status_code) == (200, 200), again.content
    assert again.json() == first.json()
    assert again.headers["Idempotency-Replayed"] == "true"
    assert "Idempotency-Replayed" not in first.headers
    records = list(AuditRecord.objects.order_by("id")[before:])
    assert [(row.kind, row.name, row.reason) for row in records] == [("ClusterQueue", "main", f"Plan {question}")]
    assert refused(alice, question) == (409, "AlreadyApplied"), "without the key"
    answer = applied(alice, other, headers={"Idempotency-Key": "k"})
    assert (answer.status_code, answer.json()["reason"]) == (409, "Conflict"), "the key is that of another plan"


def test_a_refusal_and_a_dry_run_leave_no_key(alice: SchemaClient, filled: Cluster) -> None:
    question, key = tried(alice, QUOTA % 12), {"Idempotency-Key": "k"}
    Question.objects.update(state="Running")
    assert applied(alice, question, headers=key).json()["reason"] == "NotAnswered"
    Question.objects.update(state="Answered")
    checked = alice.post(f"{QUESTIONS}{question}/apply/?dry_run=true", format="json", headers=key)
    assert checked.status_code == 200
    assert nominal() == 10_000
    assert applied(alice, question, headers=key).status_code == 200
    assert nominal() == 12_000


def test_a_question_without_an_answer_and_one_of_another_kind_are_refused(alice: SchemaClient, filled: Cluster) -> None:
    asked = alice.post(QUESTIONS, {"kind": "what-if", "plan": "end: [team/a]"}, format="json").json()["id"]
    assert refused(alice, asked) == (409, "NotAnswered")
    answer_questions()
    Question.objects.update(basis=None)
    assert refused(alice, asked) == (409, "NotAnswered"), "it was answered by an earlier release"
    body = {"kind": "remedies", "workload": {"namespace": "team", "name": "w"}}
    other = alice.post(QUESTIONS, body, format="json").json()["id"]
    assert refused(alice, other) == (409, "Conflict")
    assert refused(alice, 10**9) == (404, "NotFound")


@pytest.mark.parametrize("plans", [1, 2])
def test_of_two_at_once_one_wins(alice: SchemaClient, filled: Cluster, plans: int) -> None:
    """One plan is applied twice, or two plans change the same queue."""
    questions = [tried(alice, QUOTA % (12 + number)) for number in range(plans)] * (3 - plans)
    schema()
    together, found = threading.Barrier(2), []
    user = User.objects.get(username="alice")

    def go(question: int) -> None:
        try:
            client = client_of(user)
            together.wait(PATIENCE_SECONDS)
            answer = applied(client, question)
            found.append((answer.status_code, answer.json().get("reason", "")))
        finally:
            connection.close()

    threads = [threading.Thread(target=go, args=(question,)) for question in questions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_SECONDS)
    assert sorted(found) == [(200, ""), (409, "AlreadyApplied" if plans == 1 else "PlanOutdated")]
    assert nominal() in (12_000, 13_000)


def test_a_mirrored_cluster_is_left_alone(alice: SchemaClient, filled: Cluster) -> None:
    question = tried(alice, "end: [team/a]")
    Cluster.objects.update(mode="observe")
    assert refused(alice, question) == (409, "MirroredFromCluster")


@pytest.mark.parametrize(
    ("plan", "stopping"),
    [
        (QUOTA % 12, ()),
        (QUOTA % 30 + "---" + JOB % 6, ()),
        (JOB % 3, ()),
        ("end: [team/a]", ("a",)),
        ("end: [team/a, team/b]", ("a", "b")),
        ("requeue: [team/a]\npriorities: [{workload: team/w, class: high}]", ("a",)),
        ("delete: [{kind: Workload, metadata: {name: b, namespace: team}}]", ("b",)),
        ("delete: [{kind: LocalQueue, metadata: {name: queue, namespace: team}}]", ()),
    ],
)
def test_what_a_plan_said_happens_when_nothing_else_changed(
    alice: SchemaClient, filled: Cluster, plan: str, stopping: tuple[str, ...]
) -> None:
    before = {name for name, status in statuses().items() if status == "Admitted"}
    question = tried(alice, plan)
    whole = alice.get(f"{QUESTIONS}{question}/").json()["what_if"]["whole"]
    assert applied(alice, question).status_code == 200
    settle(*stopping)
    starts, lost = (
        {each["workload"].partition("/")[2] for each in part}
        for part in (whole["effects"]["starts"]["workloads"], whole["evictions"]["workloads"])
    )
    holding = {name for name, status in statuses().items() if status in ("Admitted", "QuotaReserved")}
    known = {name: name.rpartition("-")[0] if name.startswith("job-") else name for name in holding | starts}
    assert {known.get(name, name) for name in holding} == (before - lost) | {known[name] for name in starts}
    assert lost == set(stopping)


def test_the_command_applies_what_it_has_tried(filled: Cluster, tmp_path: Path) -> None:
    path = tmp_path / "plan.yaml"
    path.write_text(QUOTA % 12)
    printed = StringIO()
    call_command("what_if", str(path), "--apply", stdout=printed)
    assert "1 workload would start:\n  team/w (main)" in printed.getvalue()
    assert printed.getvalue().rstrip().endswith("ClusterQueue main configured")
    assert nominal() == 12_000
    assert AuditRecord.objects.latest("id").reason == "Plan of manage.py what-if"
    make_node(filled, "n1", [{}])
    path.write_text("nodes: [{lose: n1}]")
    with pytest.raises(CommandError, match="only the cluster can lose Node n1"):
        call_command("what_if", str(path), "--apply")


def test_the_command_applies_no_plan_whose_trial_is_incomplete(filled: Cluster, tmp_path: Path) -> None:
    """Without time no cycle runs, and the effects are not known."""
    path = tmp_path / "plan.yaml"
    path.write_text(QUOTA % 12)
    with pytest.raises(CommandError, match=r"Nothing was stored: time ran out.*Raise --seconds"):
        call_command("what_if", str(path), "--apply", "--seconds", "0")
    assert nominal() == 10_000
    assert not AuditRecord.objects.filter(reason="Plan of manage.py what-if").exists()
