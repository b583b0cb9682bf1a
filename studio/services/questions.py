"""Asks questions of the studio, and waits for their answers."""

from __future__ import annotations

import time
from collections.abc import Mapping
from datetime import timedelta
from threading import BoundedSemaphore
from typing import Any, ClassVar, Final

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Q, QuerySet
from django.utils import timezone

from accounts.models import Cluster
from foundation.exceptions import LimitReached, Unavailable
from foundation.heartbeat import SILENT_SECONDS, Role, is_alive
from studio.models import OPEN_STATES, Question, QuestionKind, QuestionState
from studio.services.leases import wake_studios

MAX_OPEN_PER_USER: Final = 50
MAX_KEPT_PER_USER: Final = 200
"""Ended questions of a user that are kept: an answer can be large, and a script can ask all day."""
MAX_SAVED_PER_USER: Final = 100
_FRESH: Final = timedelta(seconds=10)
"""An answer that is younger is given again, unless the configuration has changed since."""
_WAITERS: Final = 2
"""Requests of a process that wait for an answer, each with a thread, at most; further ones return at once."""
_PAUSE_SECONDS: Final = 0.02
_MAX_PAUSE_SECONDS: Final = 0.2

_waiting: Final = BoundedSemaphore(_WAITERS)


class NoStudio(Unavailable):
    """No studio runs that could try the question."""

    reason: ClassVar[str] = "NoStudio"


def require_studio() -> None:
    """Raise NoStudio unless one was heard lately."""
    if not is_alive(Role.STUDIO):
        raise NoStudio(
            f"No studio has reported in the last {SILENT_SECONDS} s. Try again in a minute. If that does not help, an "
            "operator must start `manage.py studio`, or check that Redis is reachable."
        )


def ask_question(
    user: User, cluster: Cluster, kind: QuestionKind, inputs: Mapping[str, Any], namespace: str = "", name: str = ""
) -> Question:
    """Store a question, which wakes the studio on commit; a question with a `name` is kept. Raises NoStudio and
    LimitReached."""
    require_studio()
    with transaction.atomic():
        User.objects.select_for_update().get(pk=user.pk)  # two at once are counted one after the other
        if _questions_of(user).filter(state__in=OPEN_STATES).count() >= MAX_OPEN_PER_USER:
            raise LimitReached(
                f"You have {MAX_OPEN_PER_USER} unanswered questions, the maximum. Wait, or delete one.",
                retry_after=5,
            )
        _forget_oldest(user, kind)
        if name:
            _require_room(user)
        question = Question.objects.create(
            cluster=cluster, user=user, kind=kind, namespace=namespace, inputs=dict(inputs), name=name
        )
        question.refresh_from_db(fields=["created_at"])  # set by the database
        wake_studios()
        return question


def save_question(question: Question, name: str) -> None:
    """Save a plan under this name; an empty name unsaves it. Raises LimitReached."""
    with transaction.atomic():
        User.objects.select_for_update().get(pk=question.user_id)
        if name and not question.name:
            _require_room(question.user)
        question.name = name
        question.save(update_fields=["name"])


def _require_room(user: User) -> None:
    if _questions_of(user).exclude(name="").count() >= MAX_SAVED_PER_USER:
        raise LimitReached(f"You have saved {MAX_SAVED_PER_USER} plans, the maximum. Delete one.")


def _forget_oldest(user: User, kind: QuestionKind) -> None:
    """Explanations of the past are counted apart: a reader who goes through the past must lose no plan."""
    past = Q(kind=QuestionKind.EXPLAIN_PAST)
    alike = _questions_of(user).filter(past if kind == QuestionKind.EXPLAIN_PAST else ~past)
    ended = alike.filter(name="").exclude(state__in=OPEN_STATES).order_by("-id").values_list("pk", flat=True)
    Question.objects.filter(pk__in=list(ended[MAX_KEPT_PER_USER - 1 :])).delete()


def ask_again(user: User, cluster: Cluster, kind: QuestionKind, inputs: Mapping[str, Any], namespace: str) -> Question:
    """Return the user's own question with these inputs that is open or was answered just now; otherwise ask it."""
    require_studio()
    with transaction.atomic():
        User.objects.select_for_update().get(pk=user.pk)
        same = _questions_of(user).filter(cluster=cluster, kind=kind, inputs=dict(inputs)).order_by("-id")
        found = (
            same.filter(state__in=OPEN_STATES).first()
            or same.filter(
                state=QuestionState.ANSWERED,
                ended_at__gte=timezone.now() - _FRESH,
                configuration_generation__gte=cluster.configuration_generation,
            ).first()
        )
        return found or ask_question(user, cluster, kind, inputs, namespace)


def ask_about_past(user: User, cluster: Cluster, inputs: Mapping[str, Any], namespace: str) -> Question:
    """Return the answered question with these inputs, of any user and age: the past does not change, and readers see
    only the names that they may see. If there is none, ask it, as `ask_again` does."""
    kind = QuestionKind.EXPLAIN_PAST
    same = Question.objects.filter(cluster=cluster, kind=kind, inputs=dict(inputs), state=QuestionState.ANSWERED)
    return same.order_by("-id").first() or ask_again(user, cluster, kind, inputs, namespace)


def ask_preview(user: User, cluster: Cluster, plan: str) -> Question:
    """Ask for the effects of a plan that is being edited in a form. The user's earlier unanswered previews are dropped,
    because the form has changed since. Raises NoStudio and LimitReached."""
    with transaction.atomic():
        User.objects.select_for_update().get(pk=user.pk)
        inputs = {"plan": plan}
        open_ones = _questions_of(user).filter(kind=QuestionKind.PREVIEW, state__in=OPEN_STATES)
        open_ones.exclude(cluster=cluster, inputs=inputs).delete()
        return ask_again(user, cluster, QuestionKind.PREVIEW, inputs, "")


def wait_for_answer(question: Question, seconds: float) -> None:
    """Wait until the question has ended, at most for this time; `question` is then reloaded from its row."""
    if question.state not in OPEN_STATES or not _waiting.acquire(blocking=False):
        return
    try:
        end, pause = time.monotonic() + seconds, _PAUSE_SECONDS
        rows = Question.objects.filter(pk=question.pk)
        while rows.filter(state__in=OPEN_STATES).exists() and time.monotonic() < end:
            time.sleep(pause)
            pause = min(2 * pause, _MAX_PAUSE_SECONDS)
        question.refresh_from_db()
    finally:
        _waiting.release()


def _questions_of(user: User) -> QuerySet[Question]:
    return Question.objects.filter(user=user)
