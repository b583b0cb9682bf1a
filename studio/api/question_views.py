"""`studio/questions/`: the user's own questions to the studio."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, Final, cast

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import QuerySet
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers, status
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.api.fields import Text
from accounts.api.flags import flag
from accounts.api.idempotency import IDEMPOTENCY_KEY, done_once
from accounts.api.scope import ClusterView, json_object
from accounts.services.access import Access
from accounts.services.actor import request_id
from foundation.exceptions import Conflict
from queues.models import Workload
from scheduling.model.vocabulary import WorkloadStatus
from scheduling.studio.hours_ahead import MAX_HOURS
from studio.api.applied_plans import AppliedSerializer, PlanResultSerializer
from studio.api.plan_answers import WhatIfSerializer, shown_what_if
from studio.api.remedies import RemediesSerializer, shown_remedies
from studio.models import ASKED_KINDS, QUESTION_STATES, Question, QuestionKind
from studio.services.plan_application import apply_question
from studio.services.plans import MAX_PLAN_BYTES, read_plan, store_plan
from studio.services.questions import ask_question, require_studio, save_question
from studio.services.visible_names import VisibleNames

_MAX_NAME: Final = 100
_NAME_HELP: Final = "Saves the plan: it is kept, and readers of all namespaces may open it. Empty: not saved."
_SAVED: Final = "saved"


class QuestionWorkloadSerializer(serializers.Serializer[Any]):
    """The workload that a question is about."""

    namespace = Text(max_length=63)
    name = Text(max_length=253)


class QuestionRequestSerializer(serializers.Serializer[Any]):
    """A question to ask."""

    kind = serializers.ChoiceField(ASKED_KINDS)
    workload = QuestionWorkloadSerializer(required=False, help_text="Required for `remedies`.")
    plan = Text(
        required=False,
        help_text="Required for `what-if`: YAML of manifests to apply, or of the sections apply, patch, delete, nodes, "
        "end, requeue, priorities and policies.",
        max_length=MAX_PLAN_BYTES,
        trim_whitespace=False,
    )
    name = Text(required=False, allow_blank=True, default="", max_length=_MAX_NAME, help_text=_NAME_HELP)
    hours = serializers.IntegerField(
        required=False,
        default=0,
        min_value=0,
        max_value=MAX_HOURS,
        help_text="For `what-if`: the number of hours to simulate after the complete answer. 0: none.",
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """Check the inputs, which depend on the kind."""
        if attrs["kind"] == QuestionKind.REMEDIES and "workload" not in attrs:
            raise ValidationError({"workload": "Required value: the workload that is to start."})
        if attrs["kind"] == QuestionKind.WHAT_IF and "plan" not in attrs:
            raise ValidationError({"plan": "Required value: the changes to try."})
        if attrs["kind"] != QuestionKind.WHAT_IF and attrs["name"]:
            raise ValidationError({"name": "Forbidden: only plans (what-if) are saved."})
        if attrs["kind"] != QuestionKind.WHAT_IF and attrs["hours"]:
            raise ValidationError({"hours": "Forbidden: only plans (what-if) are followed for hours."})
        return attrs


class SavedPlanSerializer(serializers.Serializer[Any]):
    """The name by which a plan is saved."""

    name = Text(allow_blank=True, max_length=_MAX_NAME, help_text=_NAME_HELP)


class QuestionSummarySerializer(serializers.Serializer[Any]):
    """A question without its answer."""

    id = serializers.IntegerField()
    cluster = serializers.CharField()
    kind = serializers.ChoiceField(ASKED_KINDS)
    workload = QuestionWorkloadSerializer(allow_null=True)
    name = serializers.CharField(allow_blank=True, help_text="The name of a saved plan.")
    asked_by = serializers.CharField()
    state = serializers.ChoiceField(QUESTION_STATES)
    reason = serializers.CharField(
        allow_blank=True,
        help_text=(
            "The stable reason of a failure: TimeLimit, MemoryLimit, TooLarge, Killed, NoProcess, Interrupted ..."
        ),
    )
    message = serializers.CharField(allow_blank=True, help_text="The reason of a failure as a sentence.")
    configuration_generation = serializers.IntegerField(
        allow_null=True,
        help_text=("The generation of the cluster's configuration on which it was tried, or an older one."),
    )
    tried_at = serializers.DateTimeField(allow_null=True, help_text="The time of the state on which it was tried.")
    applied_at = serializers.DateTimeField(allow_null=True, help_text="When the plan was applied; null: not applied.")
    created_at = serializers.DateTimeField()
    started_at = serializers.DateTimeField(allow_null=True)
    ended_at = serializers.DateTimeField(allow_null=True)


class QuestionSerializer(QuestionSummarySerializer):
    """A question, and its answer in the field of its kind."""

    plan = serializers.CharField(allow_null=True, help_text="The text of the question; null for another kind.")
    hours = serializers.IntegerField(help_text="The hours ahead that were asked for.")
    remedies = RemediesSerializer(allow_null=True, help_text="Null for another kind, and until it is answered.")
    what_if = WhatIfSerializer(
        allow_null=True, help_text="Null for another kind, and until its first answer; its state is then still Running."
    )
    applied = AppliedSerializer(allow_null=True, help_text="Null: not applied.")


def summary_json(question: Question) -> dict[str, Any]:
    """Return a question in the shape of `QuestionSummarySerializer`."""
    inputs = question.inputs
    named = {"namespace": inputs["namespace"], "name": inputs["name"]} if question.namespace else None
    return {
        "id": question.pk,
        "cluster": question.cluster.name,
        "kind": question.kind,
        "workload": named,
        "name": question.name,
        "asked_by": question.user.get_username(),
        "state": question.state,
        "reason": question.reason,
        "message": question.message,
        "configuration_generation": question.configuration_generation,
        "tried_at": question.tried_at,
        "applied_at": question.applied_at,
        "created_at": question.created_at,
        "started_at": question.started_at,
        "ended_at": question.ended_at,
    }


def question_json(question: Question, access: Access) -> dict[str, Any]:
    """Return a question in the shape of `QuestionSerializer`, as this reader may see it."""
    answer, kind = question.answer, question.kind
    names = VisibleNames(access, question.cluster)
    return summary_json(question) | {
        "plan": question.inputs["plan"] if kind == QuestionKind.WHAT_IF else None,
        "hours": question.inputs.get("hours", 0),
        "remedies": shown_remedies(answer, access) if answer and kind == QuestionKind.REMEDIES else None,
        "what_if": shown_what_if(answer, names) if answer and kind == QuestionKind.WHAT_IF else None,
        "applied": question.applied,
    }


class _QuestionView(ClusterView):
    """Questions of the caller, about objects that the caller still sees."""

    queryset = Question.objects.none()
    filter_backends: list[Any] = []
    keyset = ("-id",)
    writes_what_is_mirrored = False  # nothing of the cluster is written

    def questions(self) -> QuerySet[Question]:
        """Return the user's own questions."""
        return self._visible().filter(user=cast("User", self.request.user))

    def saved(self) -> QuerySet[Question]:
        """Return the user's own saved plans, and those of others if the user may read all namespaces: a plan contains
        names."""
        found = self._visible().exclude(name="")
        return found if self.access.sees_everything else found.filter(user=cast("User", self.request.user))

    def _visible(self) -> QuerySet[Question]:
        found = Question.objects.filter(cluster=self.cluster, kind__in=ASKED_KINDS).select_related("cluster", "user")
        namespaces = self.access.visible_namespaces()
        return found if namespaces is None else found.filter(namespace__in=[*namespaces, ""])

    def question(self, question_id: int, *, own: bool = False) -> Question:
        """Return one of the user's own questions, or any saved plan unless `own`."""
        rows = self.questions() if own else self.questions() | self.saved()
        found = rows.filter(pk=question_id).first()
        if found is None:
            raise self.missing("Question", str(question_id))
        return found


class QuestionListView(_QuestionView):
    """`studio/questions/`."""

    serializer_class = QuestionSummarySerializer

    @extend_schema(
        parameters=[
            OpenApiParameter(
                _SAVED,
                bool,
                description=("List saved plans instead; readers of all namespaces also get those of other users."),
            )
        ],
        responses=QuestionSummarySerializer(many=True),
        operation_id="studio_questions_list",
    )
    def get(self, request: Request) -> Response:
        """List your questions of the last day, the newest first, without their answers."""
        rows = self.saved() if flag(request, _SAVED) else self.questions()
        page = self.paginate_queryset(rows.defer("answer", "basis", "applied"))
        return self.get_paginated_response([summary_json(question) for question in page or ()])

    @extend_schema(
        parameters=[IDEMPOTENCY_KEY],
        request=QuestionRequestSerializer,
        responses={201: QuestionSerializer},
        operation_id="studio_questions_create",
    )
    @done_once
    def post(self, request: Request) -> Response:
        """Ask a question. A studio tries it with scheduling cycles on a copy of the cluster; nothing is changed.

        Read it again until its state is Answered or Failed, or wait for the frame `question` of the live stream. 503
        with the reason NoStudio: none runs.
        """
        serializer = QuestionRequestSerializer(data=json_object(request.data))
        serializer.is_valid(raise_exception=True)
        asked = serializer.validated_data
        question = self._what_if(asked) if asked["kind"] == QuestionKind.WHAT_IF else self._remedies(asked["workload"])
        headers = {"Location": f"{request.path}{question.pk}/"}
        return Response(question_json(question, self.access), status.HTTP_201_CREATED, headers=headers)

    def _what_if(self, asked: Mapping[str, Any]) -> Question:
        """Mistakes, and changes that the user may not make, are refused at once."""
        user, plan = cast("User", self.request.user), read_plan(asked["plan"])
        require_studio()
        with transaction.atomic():
            store_plan(self.cluster, plan, self.access, user)
            transaction.set_rollback(True)
        inputs = {"plan": asked["plan"]} | ({"hours": asked["hours"]} if asked["hours"] else {})
        return ask_question(user, self.cluster, QuestionKind.WHAT_IF, inputs, name=asked["name"])

    def _remedies(self, asked: Mapping[str, Any]) -> Question:
        namespace, name = asked["namespace"], asked["name"]
        self.require("view", "Workload", namespace, name)
        workload = Workload.objects.filter(cluster=self.cluster, namespace=namespace, name=name).first()
        if workload is None:
            raise self.missing("Workload", namespace, name)
        if workload.status == WorkloadStatus.FINISHED:
            raise Conflict(f"Workload {namespace}/{name} has finished: ask about one that waits.")
        inputs = {"namespace": namespace, "name": name}
        return ask_question(cast("User", self.request.user), self.cluster, QuestionKind.REMEDIES, inputs, namespace)


class QuestionView(_QuestionView):
    """`studio/questions/{question_id}/`."""

    serializer_class = QuestionSerializer

    @extend_schema(responses=QuestionSerializer, operation_id="studio_questions_retrieve")
    def get(self, request: Request, question_id: int) -> Response:
        """Return one of your questions, with its answer as soon as there is one."""
        return Response(question_json(self.question(question_id), self.access))

    @extend_schema(
        request=SavedPlanSerializer, responses=QuestionSerializer, operation_id="studio_questions_partial_update"
    )
    def patch(self, request: Request, question_id: int) -> Response:
        """Save one of your plans under a name, so that it is kept and can be shared; an empty name unsaves it."""
        serializer = SavedPlanSerializer(data=json_object(request.data))
        serializer.is_valid(raise_exception=True)
        question = self.question(question_id, own=True)
        if question.kind != QuestionKind.WHAT_IF:
            raise Conflict(f"Question {question_id} is not a plan: only plans (what-if) are saved.")
        save_question(question, serializer.validated_data["name"])
        return Response(question_json(question, self.access))

    @extend_schema(responses={204: None}, operation_id="studio_questions_delete")
    def delete(self, request: Request, question_id: int) -> Response:
        """Delete one of your questions. If it is being tried, the trial ends within seconds."""
        self.question(question_id, own=True).delete()
        return Response(status=status.HTTP_204_NO_CONTENT)


class PlanApplyView(_QuestionView):
    """`studio/questions/{question_id}/apply/`."""

    serializer_class = PlanResultSerializer
    writes_what_is_mirrored = True

    @extend_schema(
        parameters=[IDEMPOTENCY_KEY],
        request=None,
        responses=PlanResultSerializer,
        operation_id="studio_questions_apply",
    )
    @done_once
    def post(self, request: Request, question_id: int) -> Response:
        """Make the changes of a plan that was tried, all in one transaction, with your rights.

        409 with the reason PlanOutdated: an object that it names, or a quota, queue, flavor or setting, has changed
        since; NotApplicable: only the cluster can make a part of it; AlreadyApplied; NotAnswered. With `dry_run` all is
        checked and nothing stored.
        """
        done = apply_question(self.question(question_id), self.access, cast("User", request.user))
        return Response(
            {
                "objects": [asdict(change) for change in done.objects],
                "moved": done.moved,
                "request_id": request_id(),
            }
        )
