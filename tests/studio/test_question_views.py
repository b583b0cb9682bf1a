"""Questions over REST: asked, limited, read by their asker alone, and without names of other tenants."""

from __future__ import annotations

import threading
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.utils import timezone

from accounts.models import Cluster, RoleBinding
from accounts.models import Role as UserRole
from foundation.redis_client import redis_client
from queues.models import ClusterQueue, LocalQueue, Workload
from scheduling.advice.waiting_rules import WaitState
from studio.api import explanation_views
from studio.models import Question, QuestionKind, QuestionState
from studio.services.leases import CHANNEL, forget_questions
from studio.services.questions import MAX_KEPT_PER_USER, MAX_OPEN_PER_USER, MAX_SAVED_PER_USER, ask_about_past
from tests.api_client import SchemaClient, schema
from tests.factories import make_cluster_queue, make_workload
from tests.patience import PATIENCE_SECONDS
from tests.studio_answers import answer_questions
from tests.users import EPOCH, client_of

QUESTIONS = "/api/v1/studio/questions/"
EXPLANATION = "/api/v1/workloads/team-a/w/explanation/"
ASKED = {"kind": "remedies", "workload": {"namespace": "team-a", "name": "w"}}
OTHERS = {"count": 2, "workloads": [{"workload": "team-a/x", "cluster_queue": "main"}]}
ANSWER = {
    "state": WaitState.WAITS.value,
    "starts_now": False,
    "complete": True,
    "trials": 3,
    "remedies": [
        {
            "kind": "OthersEnd",
            "field": "workloads",
            "subject": "",
            "before": {},
            "after": {"cpu": 1000},
            "workloads": ["team-a/x", "team-b/secret"],
            "at_least": 2,
            "monotone": True,
            "effects": {
                "starts": {"team-a/w": "main"},
                "waits": {},
                "preempted": {"team-a/x": "main", "team-b/secret": "hidden"},
                "stopped": {},
            },
        }
    ],
}


@pytest.fixture
def silence() -> None:
    redis_client().delete("kueueweb:heartbeats")


@pytest.fixture
def studio(silence: None, living_studio: None) -> None:
    """A studio that began to live in this test."""


@pytest.fixture
def workload(cluster: Cluster) -> Workload:
    make_cluster_queue(cluster, local_queue="")
    LocalQueue.objects.create(
        cluster=cluster, namespace="team-a", name="queue", cluster_queue_name="main", created_at=EPOCH
    )
    return make_workload(cluster, "w", namespace="team-a")


def ask(client: SchemaClient, body: Any = None) -> Any:
    return client.post(QUESTIONS, body or ASKED, format="json")


@pytest.mark.usefixtures("silence", "workload")
def test_without_a_studio_the_answer_says_so_and_nothing_is_stored(bob: SchemaClient) -> None:
    explained = bob.get(EXPLANATION).json()
    assert (explained["question"], explained["remedies"]) == (None, None)
    for answer in (ask(bob), bob.get(f"{EXPLANATION}?remedies=true")):
        assert (answer.status_code, answer.json()["reason"]) == (503, "NoStudio")
    assert not Question.objects.exists()


@pytest.mark.usefixtures("studio", "workload")
def test_an_explanation_asks_once_and_gives_the_answer_while_it_is_fresh(
    bob: SchemaClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(explanation_views, "_WAIT_SECONDS", 0.1)  # nobody answers meanwhile
    waiting = bob.get(f"{EXPLANATION}?remedies=true").json()
    assert (waiting["question"]["state"], waiting["remedies"]) == ("Pending", None)
    assert bob.get(f"{EXPLANATION}?remedies=true").json()["question"]["id"] == waiting["question"]["id"]
    cluster = Cluster.objects.get()
    Question.objects.update(
        state=QuestionState.ANSWERED, answer=ANSWER, ended_at=timezone.now(),
        configuration_generation=cluster.configuration_generation,
    )  # fmt: skip
    answered = bob.get(f"{EXPLANATION}?remedies=true")
    assert answered.json()["question"]["state"] == "Answered"
    assert answered.json()["remedies"]["remedies"][0]["workloads"]["count"] == 2
    assert "secret" not in answered.content.decode()
    assert Question.objects.count() == 1
    Cluster.objects.update(configuration_generation=cluster.configuration_generation + 1)
    assert bob.get(f"{EXPLANATION}?remedies=true").json()["question"]["state"] == "Pending"
    assert Question.objects.count() == 2


@pytest.mark.usefixtures("silence", "workload")
def test_a_workload_in_no_queue_needs_no_studio(bob: SchemaClient) -> None:
    Workload.objects.update(status="Finished")
    assert bob.get(f"{EXPLANATION}?remedies=true").json()["question"] is None


@pytest.mark.usefixtures("studio", "workload")
def test_a_question_is_stored_and_read_by_its_asker_alone(bob: SchemaClient, alice: SchemaClient) -> None:
    answer = ask(bob)
    assert answer.status_code == 201
    question = answer.json()
    assert (question["state"], question["remedies"], question["workload"]) == ("Pending", None, ASKED["workload"])
    mine = f"{QUESTIONS}{question['id']}/"
    assert bob.get(mine).json() == question
    assert [each["id"] for each in bob.get(QUESTIONS).json()["results"]] == [question["id"]]
    assert alice.get(QUESTIONS).json()["results"] == []
    assert alice.get(mine).status_code == 404
    assert alice.delete(mine).status_code == 404
    assert bob.delete(mine).status_code == 204
    assert bob.get(mine).status_code == 404


@pytest.mark.usefixtures("studio", "workload")
def test_another_tenant_can_not_ask_and_a_missing_workload_looks_the_same(
    charlie: SchemaClient, nobody: SchemaClient
) -> None:
    hidden, missing = ask(charlie), ask(charlie, ASKED | {"workload": {"namespace": "team-b", "name": "w"}})
    assert (hidden.status_code, missing.status_code) == (404, 404)
    assert hidden.json()["reason"] == missing.json()["reason"] == "NotFound"
    assert ask(nobody).status_code in (403, 404)
    assert not Question.objects.exists()


@pytest.mark.usefixtures("studio", "workload")
def test_names_of_other_tenants_are_hidden_and_their_numbers_stay(bob: SchemaClient, alice: SchemaClient) -> None:
    for client in (bob, alice):
        pk = ask(client).json()["id"]
        Question.objects.filter(pk=pk).update(state=QuestionState.ANSWERED, answer=ANSWER)
        answer = client.get(f"{QUESTIONS}{pk}/")
        [remedy] = answer.json()["remedies"]["remedies"]
        seen = 1 if client is bob else 2
        for found in (remedy["workloads"], remedy["effects"]["preempted"]):
            assert (found["count"], len(found["workloads"])) == (2, seen)
        assert ("secret" in answer.content.decode()) is (client is alice)
        assert ("hidden" in answer.content.decode()) is (client is alice)
    assert "secret" not in bob.get(QUESTIONS).content.decode()


@pytest.mark.usefixtures("studio", "workload")
def test_a_reader_who_lost_the_role_loses_the_question(bob: SchemaClient) -> None:
    pk = ask(bob).json()["id"]
    RoleBinding.objects.filter(username="bob").update(namespace="team-b", role=UserRole.VIEWER)
    assert bob.get(f"{QUESTIONS}{pk}/").status_code == 404
    assert bob.get(QUESTIONS).json()["results"] == []


@pytest.mark.usefixtures("studio", "workload")
@pytest.mark.parametrize(
    "body",
    [
        {}, {"kind": "remedies"}, {"kind": "nothing"}, {"kind": "remedies", "workload": {"namespace": "team-a"}},
        {"kind": "remedies", "workload": "team-a/w"}, {"kind": "remedies", "workload": None}, [],
    ],
)  # fmt: skip
def test_a_malformed_question_is_refused(bob: SchemaClient, body: Any) -> None:
    answer = bob.post(QUESTIONS, body, format="json")
    assert answer.status_code == 400
    assert not Question.objects.exists()


@pytest.mark.usefixtures("studio")
def test_a_finished_workload_is_refused(bob: SchemaClient, workload: Workload) -> None:
    Workload.objects.update(status="Finished")
    assert ask(bob).status_code == 409


@pytest.mark.usefixtures("studio", "workload")
def test_a_dry_run_asks_nothing(bob: SchemaClient) -> None:
    assert bob.post(f"{QUESTIONS}?dry_run=true", ASKED, format="json").status_code == 201
    assert not Question.objects.exists()


@pytest.mark.usefixtures("studio", "workload")
def test_a_request_that_is_sent_again_asks_once(bob: SchemaClient) -> None:
    answers = [bob.post(QUESTIONS, ASKED, format="json", headers={"Idempotency-Key": "k"}) for _ in range(2)]
    assert answers[0].json()["id"] == answers[1].json()["id"]
    assert Question.objects.count() == 1


@pytest.mark.usefixtures("studio", "workload")
def test_open_questions_of_a_user_are_limited(bob: SchemaClient, alice: SchemaClient) -> None:
    for _ in range(MAX_OPEN_PER_USER):
        assert ask(bob).status_code == 201
    refused = ask(bob)
    assert (refused.status_code, refused.json()["reason"]) == (429, "LimitReached")
    assert ask(alice).status_code == 201, "the limit is a user's own"
    Question.objects.filter(pk=Question.objects.filter(user__username="bob").first().pk).update(state="Failed")  # type: ignore[union-attr]
    assert ask(bob).status_code == 201


@pytest.mark.usefixtures("studio", "workload")
def test_explanations_of_the_past_displace_no_plan(bob: SchemaClient) -> None:
    question = Question.objects.get(pk=ask(bob).json()["id"])
    Question.objects.update(state=QuestionState.ANSWERED)
    kind = QuestionKind.EXPLAIN_PAST
    for number in range(MAX_KEPT_PER_USER + 5):
        asked = ask_about_past(question.user, question.cluster, {"at": str(number)}, "team")
        Question.objects.filter(pk=asked.pk).update(state=QuestionState.ANSWERED)
    assert Question.objects.filter(pk=question.pk).exists()
    assert Question.objects.filter(kind=kind).count() == MAX_KEPT_PER_USER
    ask(bob)
    assert Question.objects.filter(kind=kind).count() == MAX_KEPT_PER_USER


@pytest.mark.usefixtures("studio", "workload")
def test_a_script_that_asks_all_day_fills_no_disk(bob: SchemaClient, alice: SchemaClient) -> None:
    ask(alice)
    ids = [ask(bob).json()["id"]]
    template = Question.objects.get(pk=ids[0])
    rows = [
        Question(cluster=template.cluster, user=template.user, kind=template.kind, inputs=template.inputs)
        for _ in range(MAX_KEPT_PER_USER + 5)
    ]
    Question.objects.bulk_create(rows)
    Question.objects.update(state=QuestionState.ANSWERED)
    newest = ask(bob).json()["id"]
    kept = Question.objects.filter(user=template.user)
    assert (kept.count(), kept.latest("id").pk) == (MAX_KEPT_PER_USER, newest)
    assert not kept.filter(pk=ids[0]).exists(), "the oldest goes"
    assert Question.objects.exclude(user=template.user).count() == 1, "those of others stay"


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("studio", "workload")
def test_two_at_once_never_exceed_the_limit(bob: SchemaClient) -> None:
    for _ in range(MAX_OPEN_PER_USER - 1):
        ask(bob)
    schema()
    together, found = threading.Barrier(4), []
    user = User.objects.get(username="bob")

    def go() -> None:
        try:
            together.wait(PATIENCE_SECONDS)
            found.append(ask(client_of(user)).status_code)
        finally:
            connection.close()

    threads = [threading.Thread(target=go) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found) == [201, 429, 429, 429]


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("studio", "workload")
def test_a_committed_question_wakes_the_studios(bob: SchemaClient) -> None:
    connection.ensure_connection()
    with connection.cursor() as cursor:
        cursor.execute(f"LISTEN {CHANNEL}")
    heard: list[Any] = []
    connection.connection.add_notify_handler(heard.append)
    bob.post(f"{QUESTIONS}?dry_run=true", ASKED, format="json")
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")
    assert heard == []
    ask(bob)
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")
    assert [each.channel for each in heard] == [CHANNEL]


def plan_of(cores: int) -> str:
    """A ClusterQueue `main` with another quota."""
    return f"""
        apply:
        - apiVersion: kueue.x-k8s.io/v1beta2
          kind: ClusterQueue
          metadata: {{name: main}}
          spec:
            namespaceSelector: {{}}
            resourceGroups:
            - coveredResources: [cpu]
              flavors: [{{name: default-flavor, resources: [{{name: cpu, nominalQuota: {cores}}}]}}]
    """


JOB = """
apply:
- apiVersion: batch/v1
  kind: Job
  metadata: {name: train, namespace: team-a, labels: {kueue.x-k8s.io/queue-name: queue}}
  spec:
    template:
      spec:
        restartPolicy: Never
        containers: [{name: c, image: i, resources: {requests: {cpu: 8}}}]
"""


def ask_what_if(client: SchemaClient, plan: str, **fields: str) -> Any:
    return client.post(QUESTIONS, {"kind": "what-if", "plan": plan, **fields}, format="json")


@pytest.mark.usefixtures("studio")
def test_a_plan_is_answered_first_and_wholly(workload: Workload, alice: SchemaClient) -> None:
    asked = ask_what_if(alice, plan_of(0))
    assert asked.status_code == 201, asked.content
    assert (asked.json()["what_if"], asked.json()["plan"]) == (None, plan_of(0))
    answer_questions()
    found = alice.get(f"{QUESTIONS}{asked.json()['id']}/").json()
    assert found["state"] == "Answered", found["message"]
    first, whole = found["what_if"]["first"], found["what_if"]["whole"]
    for part in (first, whole):
        assert part["effects"]["waits"] == {
            "count": 1, "workloads": [{"workload": "team-a/w", "cluster_queue": "main"}],
        }  # fmt: skip
    assert [each["workload"] for each in whole["waiting"]["workloads"]] == ["team-a/w"]
    assert [each["name"] for each in whole["queues"]] == ["main"]
    assert (whole["devices"]["count"], whole["evictions"]["count"]) == (0, 0)


@pytest.mark.usefixtures("studio", "workload")
def test_a_plan_with_a_mistake_or_without_the_right_is_refused_at_once(
    alice: SchemaClient, bob: SchemaClient, vera: SchemaClient, charlie: SchemaClient
) -> None:
    mistaken = ask_what_if(alice, "nodes: [{lose: 3}]")
    assert (mistaken.status_code, mistaken.json()["errors"][0]["path"]) == (400, "nodes[0].lose")
    assert ask_what_if(alice, "nodes: [{lose: none}]").status_code == 404
    assert ask_what_if(bob, plan_of(5)).status_code == 403
    assert ask_what_if(bob, "policies: {node: fgd}").status_code == 403
    for act in ("end: [team-a/w]", "requeue: [team-a/w]", "priorities: [{workload: team-a/w, class: high}]"):
        assert ask_what_if(vera, act).status_code == 403
        assert ask_what_if(charlie, act).status_code == 404
    assert ask_what_if(charlie, JOB).status_code == 403
    for body in ({"kind": "what-if"}, {"kind": "preview", "plan": "end: [team-a/w]"}, ASKED | {"name": "x"}):
        assert alice.post(QUESTIONS, body, format="json").status_code == 400
    assert not Question.objects.exists()


@pytest.mark.usefixtures("studio")
def test_a_tenant_reads_no_name_of_another_in_an_answer(cluster: Cluster, bob: SchemaClient) -> None:
    """Bob's job preempts one of the other tenant: he reads how much is lost, and by which own job."""
    make_cluster_queue(
        cluster, "main", {"default-flavor": {"cpu": (8000, None, None)}}, local_queue="", cohort_name="all"
    )
    make_cluster_queue(
        cluster, "hidden", {"default-flavor": {"cpu": (0, None, None)}}, local_queue="", cohort_name="all"
    )
    ClusterQueue.objects.filter(name="main").update(reclaim_within_cohort="Any")
    for namespace, queue in (("team-a", "main"), ("team-b", "hidden")):
        LocalQueue.objects.create(
            cluster=cluster, namespace=namespace, name="queue", cluster_queue_name=queue, created_at=EPOCH
        )
    make_workload(cluster, "secret", {"cpu": "6"}, namespace="team-b")
    asked = ask_what_if(bob, JOB)
    assert asked.status_code == 201, asked.content
    answer_questions()
    answer = bob.get(f"{QUESTIONS}{asked.json()['id']}/")
    whole = answer.json()["what_if"]["whole"]
    assert whole["effects"]["waits"]["count"] == 1, "the other tenant's would have started"
    for word in ("secret", "team-b", "hidden"):
        assert word not in answer.content.decode()


@pytest.mark.usefixtures("studio", "workload")
def test_a_saved_plan_is_kept_and_opened_by_readers_of_all_namespaces(
    alice: SchemaClient, vera: SchemaClient, bob: SchemaClient
) -> None:
    mine = f"{QUESTIONS}{ask_what_if(alice, plan_of(5)).json()['id']}/"
    assert vera.get(mine).status_code == 404
    saved = alice.patch(mine, {"name": "half"}, format="json")
    assert (saved.status_code, saved.json()["name"], saved.json()["asked_by"]) == (200, "half", "alice")
    assert vera.get(mine).json()["plan"] == plan_of(5)
    assert bob.get(mine).status_code == 404, "a plan may name objects of any tenant"
    for client, count in ((alice, 1), (vera, 1), (bob, 0)):
        assert len(client.get(f"{QUESTIONS}?saved=true").json()["results"]) == count
    assert vera.patch(mine, {"name": "theirs"}, format="json").status_code == 404
    assert vera.delete(mine).status_code == 404
    forget_questions(timezone.now() + timedelta(days=30))
    assert Question.objects.count() == 1
    assert alice.patch(mine, {"name": ""}, format="json").json()["name"] == ""
    forget_questions(timezone.now() + timedelta(days=30))
    assert not Question.objects.exists()


@pytest.mark.usefixtures("studio", "workload")
def test_saved_plans_of_a_user_are_limited_and_only_plans_are_saved(alice: SchemaClient, bob: SchemaClient) -> None:
    first = ask_what_if(alice, plan_of(5), name="first").json()
    template = Question.objects.get()
    Question.objects.bulk_create(
        Question(cluster=template.cluster, user=template.user, kind="what-if", inputs=template.inputs, name=str(number))
        for number in range(MAX_SAVED_PER_USER - 1)
    )
    Question.objects.update(state=QuestionState.ANSWERED)
    assert ask_what_if(alice, plan_of(5), name="more").status_code == 429
    other = ask_what_if(alice, plan_of(5)).json()
    assert alice.patch(f"{QUESTIONS}{other['id']}/", {"name": "more"}, format="json").status_code == 429
    assert alice.patch(f"{QUESTIONS}{first['id']}/", {"name": "renamed"}, format="json").status_code == 200
    remedies = ask(bob).json()
    assert bob.patch(f"{QUESTIONS}{remedies['id']}/", {"name": "x"}, format="json").status_code == 409
