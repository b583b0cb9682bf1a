"""`studio/questions/`: the user's own questions to the studio."""

from typing import Any, cast

from django.contrib.auth.models import User
from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework import serializers, status
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.api.fields import Text
from accounts.api.idempotency import IDEMPOTENCY_KEY, done_once
from accounts.api.scope import ClusterView, json_object
from accounts.services.access import Access
from foundation.exceptions import Conflict
from queues.models import Workload
from scheduling.model.vocabulary import WorkloadStatus
from studio.api.remedies import RemediesSerializer, shown_remedies
from studio.models import QUESTION_KINDS, QUESTION_STATES, Question, QuestionKind
from studio.services.questions import ask_question


class QuestionWorkloadSerializer(serializers.Serializer[Any]):
    """The workload that a question is about."""

    namespace = Text(max_length=63)
    name = Text(max_length=253)


class QuestionRequestSerializer(serializers.Serializer[Any]):
    """A question to ask."""

    kind = serializers.ChoiceField(QUESTION_KINDS)
    workload = QuestionWorkloadSerializer(required=False, help_text="Required for `remedies`.")

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """Each kind has its own inputs."""
        if attrs["kind"] == QuestionKind.REMEDIES and "workload" not in attrs:
            raise ValidationError({"workload": "Required value: the workload that is to start."})
        return attrs


class QuestionSummarySerializer(serializers.Serializer[Any]):
    """A question without its answer."""

    id = serializers.IntegerField()
    cluster = serializers.CharField()
    kind = serializers.ChoiceField(QUESTION_KINDS)
    workload = QuestionWorkloadSerializer(allow_null=True)
    state = serializers.ChoiceField(QUESTION_STATES)
    reason = serializers.CharField(
        allow_blank=True,
        help_text="Of a failure, stable: TimeLimit, MemoryLimit, TooLarge, Killed, NoProcess, Interrupted ...",
    )
    message = serializers.CharField(allow_blank=True, help_text="Of a failure, for people.")
    configuration_generation = serializers.IntegerField(
        allow_null=True, help_text="Of the cluster's configuration on which it was tried, or of an older one."
    )
    tried_at = serializers.DateTimeField(allow_null=True, help_text="The time of the state on which it was tried.")
    created_at = serializers.DateTimeField()
    started_at = serializers.DateTimeField(allow_null=True)
    ended_at = serializers.DateTimeField(allow_null=True)


class QuestionSerializer(QuestionSummarySerializer):
    """A question, and its answer in the field of its kind."""

    remedies = RemediesSerializer(allow_null=True, help_text="Null for another kind, and until it is answered.")


def summary_json(question: Question) -> dict[str, Any]:
    """Return a question in the shape of `QuestionSummarySerializer`."""
    inputs = question.inputs
    named = {"namespace": inputs["namespace"], "name": inputs["name"]} if question.namespace else None
    return {
        "id": question.pk,
        "cluster": question.cluster.name,
        "kind": question.kind,
        "workload": named,
        "state": question.state,
        "reason": question.reason,
        "message": question.message,
        "configuration_generation": question.configuration_generation,
        "tried_at": question.tried_at,
        "created_at": question.created_at,
        "started_at": question.started_at,
        "ended_at": question.ended_at,
    }


def question_json(question: Question, access: Access) -> dict[str, Any]:
    """Return a question in the shape of `QuestionSerializer`, as this reader may see it."""
    answer = question.answer
    remedies = None
    if answer is not None and question.kind == QuestionKind.REMEDIES:
        remedies = shown_remedies(answer, access)
    return summary_json(question) | {"remedies": remedies}


class _QuestionView(ClusterView):
    """Questions of the caller, about objects that the caller still sees."""

    queryset = Question.objects.none()
    filter_backends: list[Any] = []
    keyset = ("-id",)
    writes_what_is_mirrored = False  # nothing of the cluster is written

    def questions(self) -> QuerySet[Question]:
        found = Question.objects.filter(cluster=self.cluster, user=cast("User", self.request.user))
        namespaces = self.access.visible_namespaces()
        return (
            found.select_related("cluster")
            if namespaces is None
            else found.select_related("cluster").filter(namespace__in=namespaces)
        )

    def question(self, question_id: int) -> Question:
        found = self.questions().filter(pk=question_id).first()
        if found is None:
            raise self.missing("Question", str(question_id))
        return found


class QuestionListView(_QuestionView):
    """`studio/questions/`."""

    serializer_class = QuestionSummarySerializer

    @extend_schema(responses=QuestionSummarySerializer(many=True), operation_id="studio_questions_list")
    def get(self, request: Request) -> Response:
        """List your questions of the last day, the newest first, without their answers."""
        page = self.paginate_queryset(self.questions().defer("answer"))
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
        asked = serializer.validated_data["workload"]
        namespace, name = asked["namespace"], asked["name"]
        self.require("view", "Workload", namespace, name)
        workload = Workload.objects.filter(cluster=self.cluster, namespace=namespace, name=name).first()
        if workload is None:
            raise self.missing("Workload", namespace, name)
        if workload.status == WorkloadStatus.FINISHED:
            raise Conflict(f"Workload {namespace}/{name} has finished: ask about one that waits.")
        question = ask_question(
            cast("User", request.user), self.cluster, QuestionKind.REMEDIES, {"namespace": namespace, "name": name},
            namespace,
        )  # fmt: skip
        return Response(question_json(question, self.access), status.HTTP_201_CREATED)


class QuestionView(_QuestionView):
    """`studio/questions/{question_id}/`."""

    serializer_class = QuestionSerializer

    @extend_schema(responses=QuestionSerializer, operation_id="studio_questions_retrieve")
    def get(self, request: Request, question_id: int) -> Response:
        """One of your questions, with its answer as soon as there is one."""
        return Response(question_json(self.question(question_id), self.access))

    @extend_schema(responses={204: None}, operation_id="studio_questions_delete")
    def delete(self, request: Request, question_id: int) -> Response:
        """Delete one of your questions. If it is being tried, the trial ends within seconds."""
        self.question(question_id).delete()
        return Response(status=status.HTTP_204_NO_CONTENT)
