"""Answers of the studio in the process of a test: the questions that wait are tried as its children try them."""

from __future__ import annotations

import time
from collections.abc import Mapping
from functools import partial
from typing import Any
from uuid import UUID, uuid4

import orjson
from django.contrib.auth.models import User

from accounts.models import Cluster
from foundation.exceptions import KueuewebError
from foundation.heartbeat import Role, touch_heartbeat
from foundation.redis_client import redis_client
from studio.models import Question, QuestionState
from studio.services.leases import end_question, store_first_answer, take_question
from studio.services.questions import ask_preview
from studio.services.run_histories import RunHistories
from studio.services.trials import prepare_trial
from tests.patience import PATIENCE_SECONDS


def let_a_studio_live() -> None:
    """Let a studio be heard: without one, questions are refused. A test may take longer than it may be silent."""
    touch_heartbeat(Role.STUDIO)
    redis_client().hset("kueueweb:heartbeats", f"{Role.STUDIO}/", repr(time.time() + PATIENCE_SECONDS))


def answer_questions() -> list[Question]:
    """Answer all that wait, and return them."""
    studio, found = uuid4(), []
    while (question := take_question(studio)) is not None:
        try:
            trial = prepare_trial(question, RunHistories())
            answer = trial.work(lambda: True, partial(_store_first, question.pk, studio))
        except KueuewebError as error:
            end_question(question.pk, studio, QuestionState.FAILED, reason=error.reason, message=error.message)
        else:
            values = {"answer": as_stored(answer), "configuration_generation": trial.configuration_generation}
            values |= {"tried_at": trial.tried_at, "basis": trial.basis}
            end_question(question.pk, studio, QuestionState.ANSWERED, **values)
        question.refresh_from_db()
        found.append(question)
    return found


def _store_first(pk: int, studio: UUID, first: Mapping[str, Any]) -> None:
    store_first_answer(pk, studio, as_stored(first))


def as_stored(answer: Any) -> Any:
    """The answer after its way through the pipe of a child."""
    return orjson.loads(orjson.dumps(answer, option=orjson.OPT_NON_STR_KEYS))


def preview_tried(cluster: Cluster, username: str, plan: str) -> None:
    """Answer a preview of this user before it is asked over REST, which then does not wait."""
    let_a_studio_live()
    ask_preview(User.objects.get(username=username), cluster, plan)
    answer_questions()
