"""The answer of an admission check, for the systems that decide whether a workload may start."""

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.api.fields import Text
from accounts.api.scope import ClusterView, json_object
from foundation.exceptions import NotPermitted
from queues.api.serializers import Shape, WorkloadDetailSerializer
from queues.api.workload_rows import workload_detail_json, workload_values
from queues.manifests.workload import MAX_POD_SETS
from queues.models import Workload
from queues.services.admission_checks import CheckAnswer, set_check_state
from queues.services.visibility import Reader
from scheduling.model.vocabulary import AdmissionCheckStatus

_RIGHT = "queues.answer_admissioncheck"


class CheckAnswerSerializer(Shape):
    """The answer to an admission check of a workload."""

    state = serializers.ChoiceField([state.value for state in AdmissionCheckStatus])
    message = Text(required=False, allow_blank=True, default="")
    requeue_after_seconds = serializers.IntegerField(
        required=False, allow_null=True, min_value=0, max_value=2**31 - 1, default=None
    )
    pod_set_updates = serializers.ListField(
        child=serializers.DictField(), required=False, default=list, max_length=MAX_POD_SETS
    )


class CheckAnswerView(ClusterView):
    """`workloads/{namespace}/{name}/admission-checks/{check}/`."""

    serializer_class = WorkloadDetailSerializer

    @extend_schema(request=CheckAnswerSerializer, responses={200: WorkloadDetailSerializer})
    def put(self, request: Request, namespace: str, name: str, check: str) -> Response:
        """Set the state of an admission check. You need to be a cluster admin, or to have permission to answer
        checks.
        """
        self._require_the_right(request, namespace, name)
        serializer = CheckAnswerSerializer(data=json_object(request.data))
        serializer.is_valid(raise_exception=True)
        given: dict[str, Any] = serializer.validated_data
        answer = CheckAnswer(
            AdmissionCheckStatus(given["state"]),
            given["message"],
            given["requeue_after_seconds"],
            tuple(given["pod_set_updates"]),
        )
        set_check_state(self.cluster, namespace, name, check, answer, actor=self.access.username)
        found = Workload.objects.filter(cluster=self.cluster, namespace=namespace, name=name)
        row = workload_values(found, detail=True).get()
        return Response(workload_detail_json(row, Reader(self.access, self.cluster)))

    def _require_the_right(self, request: Request, namespace: str, name: str) -> None:
        if self.access.is_cluster_admin or (self.access.scope.is_whole and request.user.has_perm(_RIGHT)):
            return
        if not self.access.sees(namespace):
            raise self.missing("Workload", namespace, name)
        raise NotPermitted(
            f"{self.access.username} may not answer admission checks: this requires the role admin in all "
            f"namespaces, or the permission {_RIGHT}."
        )
