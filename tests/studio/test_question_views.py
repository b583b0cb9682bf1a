"""Questions over REST: asked, limited, read by their asker alone, and without names of other tenants."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.utils import timezone

from accounts.models import Cluster, RoleBinding
from accounts.models import Role as UserRole
from foundation.heartbeat import Role, touch_heartbeat
from foundation.redis_client import redis_client
from queues.models import LocalQueue, Workload
from scheduling.advice.explanation import WaitState
from studio.models import Question, QuestionState
from studio.services.leases import CHANNEL
from studio.services.questions import MAX_KEPT_PER_USER, MAX_OPEN_PER_USER
from tests.api_client import SchemaClient, schema
from tests.factories import make_cluster_queue, make_workload
from tests.patience import PATIENCE_SECONDS
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
def studio(silence: None) -> Iterator[None]:
    touch_heartbeat(Role.STUDIO)
    yield
    redis_client().delete("kueueweb:heartbeats")


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
def test_an_explanation_asks_once_and_gives_the_answer_while_it_is_fresh(bob: SchemaClient) -> None:
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
