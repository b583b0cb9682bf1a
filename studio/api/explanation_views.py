"""Why a workload waits, with what would start it: the explanation of the engine and the remedies of the studio."""

from typing import Any, ClassVar, Final, cast

from django.contrib.auth.models import User
from drf_spectacular.utils import OpenApiParameter, extend_schema, extend_schema_serializer
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.api.flags import flag
from accounts.api.scope import AT, moment_in, past_headers
from foundation.exceptions import KueuewebError, Unavailable
from history.services.checkpoints.past_moments import find_moment, past_of
from history.services.checkpoints.past_rows import NoCheckpoint, TooManyPastReads
from queues.services.visibility import HIDDEN_QUEUE, visibility_of
from scheduler.api.explanation_views import ExplainedWorkloadSerializer, ExplanationView, shown_explanation
from scheduling.advice.waiting_rules import WaitState
from studio.api.question_views import QuestionSummarySerializer, summary_json
from studio.api.remedies import RemediesSerializer, shown_remedies
from studio.models import OPEN_STATES, Question, QuestionKind
from studio.services.questions import ask_about_past, ask_again, wait_for_answer

_WAIT_SECONDS: Final = 3.0
_REMEDIES: Final = "remedies"
_NEEDS_NONE: Final = frozenset({WaitState.HOLDS_QUOTA, WaitState.NOT_QUEUED})


@extend_schema_serializer(component_name="ExplainedWorkload")  # as clients know it
class RemediedExplanationSerializer(ExplainedWorkloadSerializer):
    """Why a workload waits, when it may start, and, where asked for, what would start it."""

    question = QuestionSummarySerializer(
        allow_null=True,
        help_text="The question to the studio. Null unless `remedies` asks for it, and for a workload in no queue.",
    )
    remedies = RemediesSerializer(allow_null=True, help_text="Null unless `question.state` is Answered.")


class RemediedExplanationView(ExplanationView):
    """`workloads/{namespace}/{name}/explanation/`."""

    serializer_class = RemediedExplanationSerializer
    looks_back = True
    reads_past_rows = False

    @extend_schema(
        parameters=[
            OpenApiParameter(
                _REMEDIES,
                bool,
                description=(
                    "Find the changes that would start it, in the studio. The request waits some seconds for the "
                    "answer; while `question.state` is Pending or Running, send it again. 503 with the reason "
                    "NoStudio: none runs."
                ),
            )
        ],
        responses=RemediedExplanationSerializer,
    )
    def get(self, request: Request, namespace: str, name: str) -> Response:
        """Explain why the workload waits: rule, flavors, resources, nodes, devices, workloads ahead, and holders.

        Includes the newest estimate of its start, or the reason why the start is unknown.
        """
        if AT in request.query_params:
            return self._explained_then(request, namespace, name)
        explained = super().get(request, namespace, name)
        asked = flag(request, _REMEDIES) and explained.data["state"] not in _NEEDS_NONE
        tried = self._tried(namespace, name) if asked else {"question": None, "remedies": None}
        return Response(explained.data | tried)

    def _tried(self, namespace: str, name: str) -> dict[str, Any]:
        user, inputs = cast("User", self.request.user), {"namespace": namespace, "name": name}
        question = ask_again(user, self.cluster, QuestionKind.REMEDIES, inputs, namespace)
        wait_for_answer(question, _WAIT_SECONDS)
        return {
            "question": summary_json(question),
            "remedies": None if question.answer is None else shown_remedies(question.answer, self.access),
        }

    def _explained_then(self, request: Request, namespace: str, name: str) -> Response:
        """By the rows of a moment; a child of the studio builds its World."""
        if flag(request, _REMEDIES):
            raise ValidationError({_REMEDIES: f"Forbidden with {AT}: changes start a workload now, not then."})
        self.require("view", "Workload", namespace)
        past = past_of(find_moment(self.cluster, moment_in(request)))
        inputs = {"namespace": namespace, "name": name, "at": past.taken_at.isoformat()}
        user = cast("User", self.request.user)
        question = ask_about_past(user, self.cluster, inputs, namespace)
        wait_for_answer(question, _WAIT_SECONDS)
        if question.answer is None:
            raise _without_answer(question)
        if question.answer["explanation"] is None:
            raise self.missing("Workload", namespace, name)
        explained = self._with_known_queue(shown_explanation(question.answer["explanation"], self.access, self.cluster))
        body = {"expected_start": question.answer["expected_start"], "question": None, "remedies": None}
        return Response(explained | body, headers=past_headers(past))

    def _with_known_queue(self, explained: dict[str, Any]) -> dict[str, Any]:
        """Without the name of its ClusterQueue, unless the reader may see that queue now."""
        name = explained["cluster_queue"]
        if not name or visibility_of(self.access, self.cluster).sees_queue(name):
            return explained
        texts = {part: explained[part].replace(f"ClusterQueue {name}", HIDDEN_QUEUE) for part in ("message", "remedy")}
        return {**explained, **texts, "cluster_queue": ""}


class StillExplaining(Unavailable):
    """The studio has not explained it yet."""

    reason: ClassVar[str] = "StillExplaining"
    retry_after = 2


def _without_answer(question: Question) -> KueuewebError:
    if question.state in OPEN_STATES:
        return StillExplaining("The studio is still building the state of that moment. Send the request again.")
    for kind in (NoCheckpoint, TooManyPastReads):
        if question.reason == kind.reason:
            return kind(question.message)
    return Unavailable(f"The studio could not explain it ({question.reason}): {question.message}")
