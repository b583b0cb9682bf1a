"""How many workloads there are, by what a list is filtered or grouped by."""

from typing import Any, Final

from django.db.models import Count
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.api.scope import ClusterView
from queues.api.filters import WorkloadFilter, query_text
from queues.models import Workload

_COLUMNS: Final = {
    "status": "status",
    "reason": "reason",
    "namespace": "namespace",
    "cluster_queue": "cluster_queue_name",
    "local_queue": "queue_name",
    "priority_class": "priority_class_name",
    "submitted_by": "submitted_by",
    "cluster": "cluster__name",
}
MAX_GROUPS: Final = 500
_BY = OpenApiParameter("by", OpenApiTypes.STR, enum=list(_COLUMNS), default="status", description="What to count by.")


class GroupCountSerializer(serializers.Serializer[Any]):
    """One group."""

    value = serializers.CharField(allow_blank=True)
    count = serializers.IntegerField()


class WorkloadCountsSerializer(serializers.Serializer[Any]):
    """The groups, largest first, and how many workloads there are in all."""

    total = serializers.IntegerField()
    groups = GroupCountSerializer(many=True)


class WorkloadCountsView(ClusterView):
    """`workloads/counts/`."""

    serializer_class = WorkloadCountsSerializer
    queryset = Workload.objects.none()
    filterset_class = WorkloadFilter
    spans_clusters = True

    @extend_schema(parameters=[_BY], responses=WorkloadCountsSerializer, filters=True)
    def get(self, request: Request) -> Response:
        """How many of the workloads that the user may see match the filters of `workloads/`, group by group."""
        by = query_text(request.query_params, "by") or "status"
        if by not in _COLUMNS:
            raise ValidationError({"by": f"Unsupported value: {by!r}. Supported values: {', '.join(_COLUMNS)}."})
        seen = Workload.objects.filter(self.reach.rows_in_namespaces())
        column = _COLUMNS[by]
        rows = self.filter_queryset(seen).order_by().values_list(column).annotate(count=Count("id"))
        groups = sorted(rows, key=lambda row: (-row[1], row[0]))
        return Response(
            {
                "total": sum(count for _, count in groups),
                "groups": [{"value": value, "count": count} for value, count in groups[:MAX_GROUPS]],
            }
        )
