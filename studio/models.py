"""Questions to the studio, and their answers."""

from enum import StrEnum

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from accounts.models import Cluster


class QuestionKind(StrEnum):
    """The kind of a question, which says what its inputs are."""

    REMEDIES = "remedies"
    """Changes that would start a waiting workload. Inputs: `namespace` and `name`."""
    WHAT_IF = "what-if"
    """The effects of a plan. Inputs: `plan`, its text."""
    PREVIEW = "preview"
    """The effects of what a form edits; a further one replaces it. Inputs as of WHAT_IF."""


class QuestionState(StrEnum):
    """How far a question is."""

    PENDING = "Pending"
    RUNNING = "Running"
    ANSWERED = "Answered"
    FAILED = "Failed"


OPEN_STATES = (QuestionState.PENDING.value, QuestionState.RUNNING.value)
ASKED_KINDS = [QuestionKind.REMEDIES.value, QuestionKind.WHAT_IF.value]
"""The kinds that users ask by themselves."""
QUESTION_STATES = [state.value for state in QuestionState]


class Question(models.Model):
    """A question of one user, and its answer.

    The answer has all names: readers with different rights, also the asker at another time, read the same row.
    """

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="+")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    kind = models.CharField(max_length=16)
    namespace = models.CharField(max_length=63, blank=True, help_text="Of its workload; empty: of the whole cluster.")
    inputs = models.JSONField(help_text="By kind, see QuestionKind.")
    state = models.CharField(max_length=16, default=QuestionState.PENDING.value, db_default=QuestionState.PENDING.value)
    reason = models.CharField(max_length=64, blank=True, help_text="Of a failure; stable.")
    message = models.TextField(blank=True, help_text="Of a failure.")
    name = models.CharField(max_length=100, blank=True, db_default="", help_text="Of a saved plan; empty: not saved.")
    answer = models.JSONField(null=True, help_text="Of a running question: its first answer, if there is one.")
    configuration_generation = models.BigIntegerField(
        null=True, help_text="Of the cluster's configuration on which it was tried."
    )
    tried_at = models.DateTimeField(null=True, help_text="The time of the rows on which it was tried.")
    created_at = models.DateTimeField(db_default=Now())
    started_at = models.DateTimeField(null=True, help_text="When a studio took it up, the last time.")
    ended_at = models.DateTimeField(null=True)
    attempts = models.PositiveSmallIntegerField(default=0, db_default=0)
    studio = models.UUIDField(null=True, help_text="The process that tries it.")
    leased_until = models.DateTimeField(null=True, help_text="From then on, another studio may take it up.")

    class Meta:
        ordering = ["-id"]
        indexes = [
            models.Index(fields=["user", "-id"], name="question_of_user"),
            models.Index(fields=["id"], condition=Q(state__in=OPEN_STATES), name="question_open"),
            models.Index(fields=["created_at"], name="question_age"),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.pk}: {self.state}"
