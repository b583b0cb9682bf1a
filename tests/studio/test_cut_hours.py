"""The hours ahead of a plan whose process ends before they are found."""

from __future__ import annotations

import os
import signal

import pytest
from django.db import transaction

from accounts.models import Cluster
from studio.models import Question, QuestionKind
from studio.services.leases import wake_studios
from tests.acceptance.processes import wait_for
from tests.studio.test_estimate_rounds import make_record
from tests.studio.test_process import Studios, children_of, cluster, ended, slow_cluster, studios
from tests.users import make_user

__all__ = ["cluster", "slow_cluster", "studios"]
pytestmark = pytest.mark.django_db(transaction=True)


def test_a_child_that_is_killed_in_the_hours_ahead_has_its_whole_answer(
    studios: Studios, slow_cluster: Cluster
) -> None:
    for number in range(20):
        make_record(slow_cluster, number)
    pid = studios.start_studio()
    inputs = {"plan": "end: [team/runs-0]", "hours": 24}
    with transaction.atomic():
        question = Question.objects.create(
            cluster=slow_cluster, user=make_user("alice"), kind=QuestionKind.WHAT_IF, inputs=inputs
        )
        wake_studios()
    wait_for("the whole answer", lambda: Question.objects.filter(pk=question.pk, answer__whole__cycles__gte=0).exists())
    for child in children_of(pid):  # one of them may estimate starts
        os.kill(child, signal.SIGKILL)
    found = ended(question)
    assert found.answer is not None, found.message
    assert (found.state, found.reason, found.answer["hours"]["unknown"]) == ("Answered", "", "NoMemory")
    assert found.answer["whole"]["cycles"] > 0
