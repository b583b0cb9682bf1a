"""Which question is tried next, and what becomes of those of a dead studio."""

from __future__ import annotations

import threading
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.utils import timezone

from accounts.models import Cluster
from studio.models import Question, QuestionKind, QuestionState
from studio.services.leases import (
    MAX_ATTEMPTS,
    end_question,
    forget_questions,
    give_back,
    give_up_hopeless,
    renew_leases,
    take_question,
)
from studio.tasks import RETENTION, prune_questions
from tests.factories import make_cluster
from tests.patience import PATIENCE_SECONDS

HERE, THERE = uuid4(), uuid4()


@pytest.fixture
def cluster(db: None) -> Cluster:
    return make_cluster()


def asked(cluster: Cluster, user: str, number: int = 1, **fields: Any) -> list[Question]:
    asker, _ = User.objects.get_or_create(username=user)
    inputs = {"namespace": "team", "name": "w"}
    return [
        Question.objects.create(
            cluster=cluster, user=asker, kind=QuestionKind.REMEDIES, namespace="team", inputs=inputs, **fields
        )
        for _ in range(number)
    ]


def lapse(*ids: int) -> None:
    Question.objects.filter(pk__in=ids).update(leased_until=timezone.now() - timedelta(seconds=1))


def taken(studio: Any = HERE) -> Question:
    found = take_question(studio)
    assert found is not None
    return found


def test_users_take_turns_however_much_one_of_them_asks(cluster: Cluster) -> None:
    asked(cluster, "greedy", 4)
    asked(cluster, "modest", 2)
    assert [taken().user.get_username() for _ in range(6)] == ["greedy", "modest"] * 2 + ["greedy"] * 2
    assert take_question(HERE) is None


def test_turns_hold_when_each_question_has_ended_before_the_next(cluster: Cluster) -> None:
    asked(cluster, "greedy", 3)
    asked(cluster, "modest", 2)
    order = []
    while (found := take_question(HERE)) is not None:
        order.append(found.user.get_username())
        assert end_question(found.pk, HERE, QuestionState.ANSWERED, answer={})
    assert order == ["greedy", "modest", "greedy", "modest", "greedy"]


def test_a_question_is_of_one_studio_until_its_lease_ends(cluster: Cluster) -> None:
    asked(cluster, "a")
    question = taken(HERE)
    assert take_question(THERE) is None
    assert renew_leases(HERE, [question.pk]) == {question.pk}
    lapse(question.pk)
    assert taken(THERE).pk == question.pk
    assert renew_leases(HERE, [question.pk]) == set()
    assert not end_question(question.pk, HERE, QuestionState.ANSWERED, answer={})
    assert end_question(question.pk, THERE, QuestionState.ANSWERED, answer={"starts_now": True})
    question.refresh_from_db()
    assert (question.state, question.answer, question.studio) == ("Answered", {"starts_now": True}, None)


def test_a_deleted_question_is_not_renewed(cluster: Cluster) -> None:
    asked(cluster, "a")
    question = taken()
    Question.objects.all().delete()
    assert renew_leases(HERE, [question.pk]) == set()


def test_a_question_that_ended_several_studios_fails(cluster: Cluster) -> None:
    asked(cluster, "a")
    for _ in range(MAX_ATTEMPTS):
        assert give_up_hopeless() == []
        lapse(taken(uuid4()).pk)
    question = Question.objects.get()
    assert give_up_hopeless() == [question.pk]
    question.refresh_from_db()
    assert (question.state, question.reason) == ("Failed", "Interrupted")
    assert take_question(HERE) is None


def test_a_studio_that_stops_in_order_gives_its_questions_back(cluster: Cluster) -> None:
    asked(cluster, "a", 2)
    taken(HERE)
    taken(THERE)
    give_back(HERE)
    assert sorted(Question.objects.values_list("state", "attempts")) == [("Pending", 0), ("Running", 1)]
    assert taken(THERE).attempts == 1


def test_old_questions_are_deleted(cluster: Cluster) -> None:
    asked(cluster, "a", created_at=timezone.now() - RETENTION - timedelta(seconds=1))
    [young] = asked(cluster, "a")
    forget_questions(timezone.now() - 2 * RETENTION)
    assert Question.objects.count() == 2
    prune_questions()
    assert list(Question.objects.values_list("pk", flat=True)) == [young.pk]


@pytest.mark.django_db(transaction=True)
def test_studios_that_take_at_once_never_take_the_same(cluster: Cluster) -> None:
    asked(cluster, "a", 12)
    together, found = threading.Barrier(4), []

    def take() -> None:
        try:
            together.wait(PATIENCE_SECONDS)
            studio = uuid4()
            while (question := take_question(studio)) is not None:
                found.append(question.pk)
        finally:
            connection.close()

    threads = [threading.Thread(target=take) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == len(set(found))
    while (rest := take_question(HERE)) is not None:  # a turn may find only rows that another one holds just then
        found.append(rest.pk)
    assert sorted(found) == sorted(Question.objects.values_list("pk", flat=True))
