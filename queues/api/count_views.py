"""Counts workloads by the attributes by which a list can be filtered or grouped."""

from collections import Counter
from collections.abc import Mapping
from typing import Any, Final

from django.db.models import Count, QuerySet
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.api.scope import ClusterView
from queues.api.filters import WorkloadFilter, living_pods, query_text
from queues.api.label_selector import label_text
from queues.models import Workload
from queues.querysets import workload_state
from scheduling.manifest.syntax import qualified_name

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
_STATE: Final = "state"
_NODE: Final = "node"
_LABEL: Final = "label:"
MAX_GROUPS: Final = 500
_BY = OpenApiParameter(
    "by",
    OpenApiTypes.STR,
    default="status",
    description=f"The property to count by: {', '.join((*_COLUMNS, _STATE, _NODE))}, or `{_LABEL}` and the key of a "
    "label. A workload with pods on several nodes is counted on each; one without that label, or on no node, has the "
    "value ''.",
)


class GroupCountSerializer(serializers.Serializer[Any]):
    """One group and its number of workloads."""

    value = serializers.CharField(allow_blank=True)
    count = serializers.IntegerField()


class WorkloadCountsSerializer(serializers.Serializer[Any]):
    """The groups, largest first, and the total number of workloads."""

    total = serializers.IntegerField()
    groups = GroupCountSerializer(many=True)


class WorkloadCountsView(ClusterView):
    """`workloads/counts/`."""

    serializer_class = WorkloadCountsSerializer
    looks_back = True
    queryset = Workload.objects.none()
    filterset_class = WorkloadFilter
    spans_clusters = True

    @extend_schema(parameters=[_BY], responses=WorkloadCountsSerializer, filters=True)
    def get(self, request: Request) -> Response:
        """Count the workloads that the user may see and that match the filters of `workloads/`, group by group."""
        by = query_text(request.query_params, "by") or "status"
        found = self.filter_queryset(Workload.objects.filter(self.reach.rows_in_namespaces())).order_by()
        total, counts = _counted(found, by)
        groups = sorted(counts.items(), key=lambda row: (-row[1], row[0]))
        return Response(
            {
                "total": total,
                "groups": [{"value": value, "count": count} for value, count in groups[:MAX_GROUPS]],
            }
        )


def _counted(workloads: QuerySet[Workload], by: str) -> tuple[int, Mapping[str, int]]:
    """Count the workloads in total and by each value. Raises ValidationError for an attribute that cannot be
    counted.
    """
    if by == _NODE:
        return _counted_by_node(workloads)
    if by.startswith(_LABEL):
        key = by.removeprefix(_LABEL)
        broken = qualified_name(key)
        if broken is not None:
            raise ValidationError({"by": f"{key!r} is not a label key: it {broken}."})
        workloads, column = workloads.annotate(counted_label=label_text("labels", key)), "counted_label"
    elif by == _STATE:
        workloads, column = workloads.annotate(counted_state=workload_state()), "counted_state"
    elif by in _COLUMNS:
        column = _COLUMNS[by]
    else:
        supported = ", ".join((*_COLUMNS, _STATE, _NODE, f"{_LABEL}KEY"))
        raise ValidationError({"by": f"Unsupported value: {by!r}. Supported values: {supported}."})
    counts: Counter[str] = Counter()
    for value, count in workloads.values_list(column).annotate(count=Count("id")):
        counts[value or ""] += count
    return counts.total(), counts


def _counted_by_node(workloads: QuerySet[Workload]) -> tuple[int, Mapping[str, int]]:
    total = workloads.count()
    pods = living_pods().exclude(node_name="").filter(workload__in=workloads)
    on_nodes = dict(pods.values_list("node_name").annotate(count=Count("workload", distinct=True)))
    elsewhere = total - pods.aggregate(count=Count("workload", distinct=True))["count"]
    return total, {**on_nodes, "": elsewhere} if elsewhere else on_nodes
