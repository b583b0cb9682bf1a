"""Gives questions to studios: each to one at a time, and to another one when that one has died.

A studio renews its leases while it lives, by the database's clock. A question whose lease has ended is taken up again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from django.db import connection, transaction
from django.utils import timezone

from studio.models import Question, QuestionState

CHANNEL: Final = "kueueweb_studio"
"""The channel of PostgreSQL's NOTIFY that wakes studios, in the transaction that commits a question."""
LEASE_SECONDS: Final = 15
MAX_ATTEMPTS: Final = 3
"""A question that ended this many studios is not tried again."""

# The next question is of the user with the fewest running ones, then of the one that was served longest ago.
_TAKE: Final = """
    WITH asking AS (
        SELECT user_id, max(started_at) AS served_at,
            count(*) FILTER (WHERE state = 'Running' AND leased_until >= clock_timestamp()) AS running
        FROM studio_question GROUP BY user_id
    ), chosen AS (
        SELECT question.id FROM studio_question AS question JOIN asking USING (user_id)
        WHERE question.state = 'Pending'
            OR question.state = 'Running' AND question.leased_until < clock_timestamp()
        ORDER BY asking.running, asking.served_at NULLS FIRST, question.id
        LIMIT 1 FOR UPDATE OF question SKIP LOCKED
    )
    UPDATE studio_question AS question SET state = 'Running', studio = %(studio)s, started_at = clock_timestamp(),
        leased_until = clock_timestamp() + make_interval(secs => %(seconds)s), attempts = question.attempts + 1
    FROM chosen WHERE question.id = chosen.id RETURNING question.id
"""
_RENEW: Final = """
    UPDATE studio_question SET leased_until = clock_timestamp() + make_interval(secs => %(seconds)s)
    WHERE id = ANY(%(ids)s) AND studio = %(studio)s AND state = 'Running' RETURNING id
"""
_GIVE_UP: Final = """
    UPDATE studio_question SET state = 'Failed', reason = 'Interrupted', ended_at = clock_timestamp(), studio = NULL,
        message = 'Each studio that tried it has ended: it may need more memory than there is.'
    WHERE state = 'Running' AND leased_until < clock_timestamp() AND attempts >= %(attempts)s
    RETURNING id
"""


def take_question(studio: UUID) -> Question | None:
    """Take the question whose turn it is, with a lease; None if there is none, or if its author is deleting it."""
    with connection.cursor() as cursor:
        cursor.execute(_TAKE, {"studio": studio, "seconds": LEASE_SECONDS})
        row = cursor.fetchone()
    return Question.objects.select_related("cluster", "user").filter(pk=row[0]).first() if row else None


def renew_leases(studio: UUID, ids: Iterable[int]) -> set[int]:
    """Renew the leases of these questions. Questions that are missing from the result were deleted, or another studio
    has them."""
    with connection.cursor() as cursor:
        cursor.execute(_RENEW, {"ids": list(ids), "studio": studio, "seconds": LEASE_SECONDS})
        return {id_ for (id_,) in cursor.fetchall()}


def give_up_hopeless() -> list[int]:
    """Fail the questions whose studios died too often; return their keys."""
    with connection.cursor() as cursor:
        cursor.execute(_GIVE_UP, {"attempts": MAX_ATTEMPTS})
        return [id_ for (id_,) in cursor.fetchall()]


def give_back(studio: UUID) -> None:
    """Let another studio immediately take all questions that this one has not ended."""
    with transaction.atomic():
        rows = Question.objects.filter(studio=studio, state=QuestionState.RUNNING)
        # It did not fail: this attempt does not count.
        if rows.update(state=QuestionState.PENDING, studio=None, leased_until=None, attempts=0):
            wake_studios()


def store_first_answer(question_id: int, studio: UUID, answer: Mapping[str, Any]) -> bool:
    """Store the first answer of a running question; False if the question was deleted, or another studio has it."""
    mine = Question.objects.filter(pk=question_id, studio=studio, state=QuestionState.RUNNING)
    return bool(mine.update(answer=answer))


def end_question(question_id: int, studio: UUID, state: QuestionState, **values: Any) -> bool:
    """Store the end of a question; False if the question was deleted, or another studio has it."""
    mine = Question.objects.filter(pk=question_id, studio=studio, state=QuestionState.RUNNING)
    return bool(mine.update(state=state, studio=None, leased_until=None, ended_at=timezone.now(), **values))


def wake_studios() -> None:
    """Wake the studios when this transaction commits."""
    with connection.cursor() as cursor:
        cursor.execute(f"NOTIFY {CHANNEL}")


def forget_questions(before: datetime) -> None:
    """Delete questions that were asked before then; saved plans stay."""
    Question.objects.filter(created_at__lt=before, name="").delete()
