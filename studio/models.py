"""Questions to the studio and their answers; the estimates of starts that it keeps to judge them."""

from enum import StrEnum

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from accounts.models import Cluster


class QuestionKind(StrEnum):
    """The kind of a question, which determines its inputs."""

    REMEDIES = "remedies"
    """Changes that would start a waiting workload. Inputs: `namespace` and `name`."""
    WHAT_IF = "what-if"
    """The effects of a plan. Inputs: `plan`, its text."""
    PREVIEW = "preview"
    """The effects of what a form edits; a further one replaces it. Inputs as of WHAT_IF."""
    EXPLAIN_PAST = "explain-past"
    """Why a workload waited at a moment of the past. Inputs: `namespace`, `name` and `at`, a checkpoint's time."""


class QuestionState(StrEnum):
    """How far a question is."""

    PENDING = "Pending"
    RUNNING = "Running"
    ANSWERED = "Answered"
    FAILED = "Failed"


OPEN_STATES = (QuestionState.PENDING.value, QuestionState.RUNNING.value)
ASKED_KINDS = [QuestionKind.REMEDIES.value, QuestionKind.WHAT_IF.value]
"""The kinds of questions that users may ask directly."""
QUESTION_STATES = [state.value for state in QuestionState]


class Question(models.Model):
    """A question of one user, and its answer.

    The answer has all names: readers with different rights, also the asker at another time, read the same row.
    """

    cluster = models.ForeignKey(
        Cluster, on_delete=models.CASCADE, related_name="+", help_text="The cluster that the question is about."
    )
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+", help_text="The user that asked."
    )
    kind = models.CharField(max_length=16, help_text="remedies, what-if, preview or explain-past.")
    namespace = models.CharField(max_length=63, blank=True, help_text="Of its workload; empty: of the whole cluster.")
    inputs = models.JSONField(help_text="By kind, see QuestionKind.")
    state = models.CharField(
        max_length=16,
        default=QuestionState.PENDING.value,
        db_default=QuestionState.PENDING.value,
        help_text="Pending, Running, Answered or Failed.",
    )
    reason = models.CharField(max_length=64, blank=True, help_text="Of a failure; stable.")
    message = models.TextField(blank=True, help_text="Of a failure.")
    name = models.CharField(max_length=100, blank=True, db_default="", help_text="Of a saved plan; empty: not saved.")
    answer = models.JSONField(null=True, help_text="Of a running question: its first answer, if there is one.")
    configuration_generation = models.BigIntegerField(
        null=True, help_text="Of the cluster's configuration on which it was tried."
    )
    tried_at = models.DateTimeField(null=True, help_text="The time of the rows on which it was tried.")
    basis = models.JSONField(null=True, help_text="Of a plan: the versions of the objects on which its answer rests.")
    applied_at = models.DateTimeField(null=True, help_text="When the plan was applied; empty: not applied.")
    applied = models.JSONField(
        null=True, help_text="Of an applied plan: its user, the identifier of the request, and the changed objects."
    )
    created_at = models.DateTimeField(db_default=Now(), help_text="When the question was asked.")
    started_at = models.DateTimeField(null=True, help_text="When a studio took it up, the last time.")
    ended_at = models.DateTimeField(null=True, help_text="When the answer was complete, or failed.")
    attempts = models.PositiveSmallIntegerField(
        default=0, db_default=0, help_text="How often a studio took the question up."
    )
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


class EstimateRound(models.Model):
    """The renewals of a cluster's estimates: the studio that has the turn, and when it last ended one."""

    cluster = models.OneToOneField(
        Cluster, on_delete=models.CASCADE, related_name="+", help_text="The cluster whose starts are estimated."
    )
    studio = models.UUIDField(null=True, help_text="The process that renews the estimates; empty: none.")
    leased_until = models.DateTimeField(null=True, help_text="From then on, another studio may renew them.")
    renewed_at = models.DateTimeField(null=True, help_text="When the estimates were last renewed.")

    def __str__(self) -> str:
        return f"{self.cluster}: {self.renewed_at}"


class KeptEstimate(models.Model):
    """An estimate at an age of waiting, kept to be judged when its workload starts. Names are copied in: it outlives
    the workload. Seconds count from `made_at`."""

    cluster = models.ForeignKey(
        Cluster,
        on_delete=models.CASCADE,
        related_name="+",
        db_index=False,
        help_text="The cluster to which it belongs.",
    )
    workload_uid = models.UUIDField(help_text="The identifier of the workload.")
    namespace = models.CharField(max_length=63, help_text="The namespace of the workload.")
    workload_name = models.CharField(max_length=253, help_text="The name of the workload.")
    cluster_queue = models.CharField(max_length=253, help_text="The ClusterQueue in which the workload waited.")
    tree = models.CharField(max_length=270, help_text="The root of its cohort tree; estimates of a tree are compared.")
    queued_at = models.DateTimeField(help_text="When the workload began to wait.")
    stage_seconds = models.PositiveIntegerField(help_text="The age of waiting: 0, 300, 900 or 3600.")
    made_at = models.DateTimeField(help_text="When the estimate was made.")
    p10_seconds = models.FloatField(null=True, help_text="One of ten such workloads starts earlier.")
    p50_seconds = models.FloatField(null=True, help_text="Half of such workloads start earlier.")
    p90_seconds = models.FloatField(null=True, help_text="One of ten such workloads starts later.")
    unknown = models.CharField(max_length=32, blank=True, help_text="Why there are no quantiles.")
    features = ArrayField(models.FloatField(), default=list, help_text="From which later estimates are corrected.")
    started_at = models.DateTimeField(null=True, help_text="When its workload got quota; null: not yet.")
    left_at = models.DateTimeField(null=True, help_text="When it was seen to wait no more, without a start.")

    class Meta:
        ordering = ["id"]
        constraints = [
            models.UniqueConstraint(fields=["workload_uid", "queued_at", "stage_seconds"], name="kept_estimate_unique")
        ]
        indexes = [
            models.Index(fields=["cluster", "started_at"], name="kept_estimate_started"),
            models.Index(fields=["cluster"], condition=Q(started_at=None, left_at=None), name="kept_estimate_open"),
            models.Index(fields=["made_at"], name="kept_estimate_age"),
        ]

    def __str__(self) -> str:
        return f"{self.namespace}/{self.workload_name} after {self.stage_seconds} s"
