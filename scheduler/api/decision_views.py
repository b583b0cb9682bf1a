"""Cycles and decisions of the scheduler, the newest first."""

from typing import Any, Final

from django_filters import rest_framework as filters
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.api.names_filter import NamesFilter
from accounts.api.scope import ClusterView
from queues.services.visibility import Reader, readers_of
from scheduler.models import Decision, SchedulingCycle
from scheduling.model.vocabulary import DecisionKind

_DECISION_FIELDS: Final = (
    "id", "decided_at", "cluster_name", "epoch", "cycle", "action", "namespace", "workload_name", "workload_uid",
    "cluster_queue_name", "reason", "message", "detail",
)  # fmt: skip
CYCLE_FIELDS: Final = (
    "id", "cluster_id", "epoch", "number", "started_at", "duration_seconds", "heads", "admitted", "preempted",
    "inadmissible",
)  # fmt: skip


def _detail_for(reader: Reader, row: dict[str, Any]) -> dict[str, Any]:
    """Return the detail without the name of a preemptor in a namespace that the reader does not see."""
    detail: dict[str, Any] = row["detail"]
    if reader.sees_everything or row["action"] == DecisionKind.ADMIT:
        return detail
    preemptor = str(detail.get("preemptor", "")) if row["action"] == DecisionKind.PREEMPT else ""
    if preemptor and reader.sees_namespace(preemptor.partition("/")[0]):
        return detail
    return {}  # it names another tenant's workload, the victim or the preemptor


class DecisionSerializer(serializers.Serializer[Any]):
    """A decision on a workload: the reason, and the preempted workloads."""

    id = serializers.IntegerField()
    decided_at = serializers.DateTimeField()
    cluster = serializers.CharField()
    epoch = serializers.IntegerField()
    cycle = serializers.IntegerField()
    action = serializers.CharField()
    namespace = serializers.CharField()
    workload_name = serializers.CharField()
    workload_uid = serializers.UUIDField()
    cluster_queue = serializers.CharField()
    reason = serializers.CharField()
    message = serializers.CharField()
    detail = serializers.DictField()


class SchedulingCycleSerializer(serializers.Serializer[Any]):
    """One cycle that made a decision."""

    id = serializers.IntegerField()
    cluster = serializers.CharField()
    epoch = serializers.IntegerField()
    number = serializers.IntegerField()
    started_at = serializers.DateTimeField()
    duration_seconds = serializers.FloatField()
    heads = serializers.IntegerField()
    admitted = serializers.IntegerField()
    preempted = serializers.IntegerField()
    inadmissible = serializers.IntegerField()


class DecisionFilter(filters.FilterSet):  # type: ignore[misc]  # the library is not typed
    """Filters of `decisions/`."""

    namespace = NamesFilter()
    workload = NamesFilter(field_name="workload_name")
    workload_uid = filters.UUIDFilter()
    cluster_queue = NamesFilter(field_name="cluster_queue_name")
    search = filters.CharFilter(
        field_name="workload_name", lookup_expr="icontains", help_text="A substring of the name."
    )
    action = NamesFilter()
    reason = NamesFilter()
    since = filters.IsoDateTimeFilter(field_name="decided_at", lookup_expr="gte")
    until = filters.IsoDateTimeFilter(field_name="decided_at", lookup_expr="lt")

    class Meta:
        model = Decision
        fields: list[str] = []


class DecisionListView(ClusterView):
    """`decisions/`."""

    serializer_class = DecisionSerializer
    queryset = Decision.objects.all()
    filterset_class = DecisionFilter
    spans_clusters = True
    keyset = ("-decided_at", "-id")

    @extend_schema(responses=DecisionSerializer(many=True))
    def get(self, request: Request) -> Response:
        """List the decisions on workloads in the namespaces that the user may see. Decisions are kept when the workload
        is deleted.
        """
        found = Decision.objects.filter(self.reach.rows_in_namespaces(cluster="cluster_name"))
        page = self.paginate_queryset(self.filter_queryset(found).values(*_DECISION_FIELDS)) or []
        readers = readers_of(self.reach)
        for row in page:
            row["cluster"] = row.pop("cluster_name")
            row["cluster_queue"] = row.pop("cluster_queue_name")
            reader = readers[row["cluster"]]
            row["message"] = reader.message(row["message"])
            row["detail"] = _detail_for(reader, row)
        return self.get_paginated_response(page)


class SchedulingCycleListView(ClusterView):
    """`scheduling-cycles/`."""

    serializer_class = SchedulingCycleSerializer
    queryset = SchedulingCycle.objects.all()
    spans_clusters = True
    keyset = ("-id",)

    @extend_schema(responses=SchedulingCycleSerializer(many=True))
    def get(self, request: Request) -> Response:
        """List the cycles that made a decision. Only users who may see the whole cluster may read them; `*` leaves out
        other clusters.
        """
        found = SchedulingCycle.objects.filter(self.reach.permitting("view", "SchedulingCycle").rows())
        page = self.paginate_queryset(found.values(*CYCLE_FIELDS)) or []
        return self.get_paginated_response([{**row, "cluster": self.reach.name(row.pop("cluster_id"))} for row in page])
