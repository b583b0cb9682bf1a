"""Reports over REST, as JSON or CSV."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Final

from django.http import HttpResponse
from django.utils import timezone
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework import serializers
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request as HttpRequest
from rest_framework.response import Response

from accounts.api.scope import ClusterView
from accounts.models import Cluster
from foundation.exceptions import NotFound
from history.models import UsageRecord
from history.services.reports import fairness, idle, loops, preemptions, usage, waits
from history.services.reports.table import Part, Report, Request, write_csv
from queues.services.visibility import visibilities_of

_MAX_DAYS: Final = 400
COLUMN_KINDS: Final = ("text", "count", "seconds", "hours", "money", "percent", "time")


@dataclass(frozen=True, slots=True)
class _Kind:
    make: Callable[[Request], Report]
    by: Collection[str] = ()
    default_by: Collection[str] = field(default=())


REPORTS: Final[Mapping[str, _Kind]] = {
    "waits": _Kind(waits.waits, tuple(waits.BY), waits.DEFAULT_BY),
    "usage": _Kind(usage.usage, tuple(usage.BY), usage.DEFAULT_BY),
    "idle": _Kind(idle.idle),
    "preemptions": _Kind(preemptions.preemptions, tuple(preemptions.BY), preemptions.DEFAULT_BY),
    "loops": _Kind(loops.loops, tuple(loops.BY), loops.DEFAULT_BY),
    "fairness": _Kind(fairness.fairness, fairness.BY, fairness.DEFAULT_BY),
}
_ALL_BY: Final = sorted({name for kind in REPORTS.values() for name in kind.by})


class ReportColumnSerializer(serializers.Serializer[Any]):
    """A column; `kind` gives the format of its cells."""

    name = serializers.CharField()
    title = serializers.CharField(help_text="The title, as human-readable text.")
    kind = serializers.ChoiceField(COLUMN_KINDS)


class ReportSerializer(serializers.Serializer[Any]):
    """A table: each row has a cell for each column; null: unknown, or without a price."""

    since = serializers.DateTimeField()
    until = serializers.DateTimeField()
    columns = ReportColumnSerializer(many=True)
    rows = serializers.ListField(child=serializers.ListField(child=serializers.JSONField()))
    totals = serializers.DictField(child=serializers.JSONField())
    currency = serializers.CharField(help_text="The currency of money columns; empty if no price is set.")
    by = serializers.ListField(child=serializers.CharField(), help_text="The columns that rows can be grouped by.")


class ReportQuery(serializers.Serializer[Any]):
    """The range of time, and the format."""

    since = serializers.DateTimeField(required=False)
    until = serializers.DateTimeField(required=False)
    format = serializers.ChoiceField(["json", "csv"], default="json")


class ReportView(ClusterView):
    """`reports/{kind}/`."""

    serializer_class = ReportSerializer
    queryset = UsageRecord.objects.none()
    spans_clusters = True

    @extend_schema(
        parameters=[
            OpenApiParameter("kind", enum=list(REPORTS), location="path"),
            OpenApiParameter("by", enum=_ALL_BY, many=True, description="The columns to group by, in this order."),
            OpenApiParameter("since", {"type": "string", "format": "date-time"}, description="30 days ago by default."),
            OpenApiParameter("until", {"type": "string", "format": "date-time"}, description="Now by default."),
            OpenApiParameter("format", enum=["json", "csv"], default="json"),
        ],
        responses={(200, "application/json"): ReportSerializer, (200, "text/csv"): OpenApiResponse(str)},
    )
    def get(self, request: HttpRequest, kind: str) -> Any:
        """Report on waits, usage and cost, idle devices, preemptions and their loops, or fairness. Tenants see their
        own namespaces; of fairness, the ClusterQueues that they may see.

        Rows of several clusters are grouped by `cluster` first, unless `by` says otherwise; totals cover all clusters.
        Costs in several currencies are not added up: each row then has its `currency`.
        """
        report_kind = REPORTS.get(kind)
        if report_kind is None:
            raise NotFound(f"There is no Report {kind}.")
        query = ReportQuery(data=request.query_params.dict())
        query.is_valid(raise_exception=True)
        wanted = self._request(query.validated_data, _grouping(request, report_kind))
        report = report_kind.make(wanted)
        if query.validated_data["format"] == "csv":
            name = f"{kind}-{wanted.since:%Y-%m-%d}-{wanted.until:%Y-%m-%d}.csv"
            headers = {"Content-Disposition": f'attachment; filename="{name}"'}
            return HttpResponse(write_csv(report), content_type="text/csv; charset=utf-8", headers=headers)
        return Response(
            {
                "since": wanted.since,
                "until": wanted.until,
                "columns": [{"name": each.name, "title": each.label, "kind": each.kind} for each in report.columns],
                "rows": report.rows,
                "totals": report.totals,
                "currency": report.currency,
                "by": list(report_kind.by),
            }
        )

    def _request(self, asked: Mapping[str, Any], by: list[str]) -> Request:
        now = timezone.now()
        until = min(asked.get("until") or now, now)
        since = asked.get("since") or until - timedelta(days=30)
        if since >= until:
            raise ValidationError({"since": f"{since.isoformat()} is not before {until.isoformat()}."})
        if until - since > timedelta(days=_MAX_DAYS):
            raise ValidationError({"since": f"more than {_MAX_DAYS} days before {until.isoformat()}."})
        seen = visibilities_of(self.reach)
        parts = [self._part(cluster, seen[cluster.pk].cluster_queues) for cluster in self.reach.clusters]
        return Request(parts, since, until, by)

    def _part(self, cluster: Cluster, queues: Collection[str] | None) -> Part:
        namespaces = self.reach.access(cluster.pk).visible_namespaces()
        return Part(cluster.pk, cluster.name, None if namespaces is None else sorted(namespaces), queues)


def _grouping(request: HttpRequest, kind: _Kind) -> list[str]:
    by = list(dict.fromkeys(request.query_params.getlist("by")))
    unknown = [name for name in by if name not in kind.by]
    if unknown:
        supported = ", ".join(kind.by) or "none"
        raise ValidationError({"by": f"Unsupported value {unknown[0]!r}: supported values are {supported}."})
    return by
