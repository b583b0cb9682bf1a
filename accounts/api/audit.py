"""The audit over REST: a list with filters, and an export with the same filters."""

from collections.abc import Callable, Iterator
from typing import Any, Final

import orjson
from django.db.models import Q, QuerySet
from django.http import StreamingHttpResponse
from django_filters import rest_framework as filters
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.api.csv_lines import csv_lines
from accounts.api.names_filter import ChoicesFilter, NamesFilter, names_in
from accounts.api.scope import ClusterView
from accounts.models import AuditRecord, AuditRecordQuerySet, AuditVerb
from accounts.services.audit import line

_FIELDS: Final = (
    "id", "at", "username", "credential", "process", "address", "user_agent", "request_id", "request", "verb", "kind",
    "cluster_name", "namespace", "name", "before", "after", "reason", "message",
)  # fmt: skip
_FORMATS: Final = ("jsonl", "csv")
_AT_ONCE: Final = 2000


class AuditRecordSerializer(serializers.Serializer[Any]):
    """An audit record: the user, the action, the object, the time and the origin."""

    id = serializers.IntegerField()
    at = serializers.DateTimeField()
    username = serializers.CharField(help_text="Empty for a request without a login, and for kueueweb's own processes.")
    credential = serializers.CharField(help_text="`session`, `password`, or `token` and its name.")
    process = serializers.CharField(help_text="The process that wrote the record, and its database account.")
    address = serializers.CharField()
    user_agent = serializers.CharField()
    request_id = serializers.CharField(help_text="The request id, as in the answer's X-Request-ID.")
    request = serializers.CharField(help_text="Method and path.")
    verb = serializers.ChoiceField([verb.value for verb in AuditVerb])
    kind = serializers.CharField()
    cluster = serializers.CharField(help_text="Empty for objects that do not belong to a cluster.")
    namespace = serializers.CharField()
    name = serializers.CharField(
        help_text="Empty if one request created several objects: `after` has their `count` and `names`."
    )
    before = serializers.DictField(
        allow_null=True, help_text="The changed fields before the change; null for a creation."
    )
    after = serializers.DictField(
        allow_null=True, help_text="The changed fields after the change; null for a deletion."
    )
    reason = serializers.CharField(help_text="The user's reason, from the header X-Audit-Reason.")
    message = serializers.CharField(help_text="The reason of a refusal.")


class AuditFilter(filters.FilterSet):  # type: ignore[misc]  # the library is not typed
    """Filters of `audit/`."""

    username = NamesFilter()
    verb = ChoicesFilter(choices=[(verb.value, verb.value) for verb in AuditVerb])
    kind = NamesFilter(method="of_kinds", help_text="One or more, separated by commas. Ignores case.")
    namespace = NamesFilter()
    name = NamesFilter(method="about")
    request_id = NamesFilter()
    address = NamesFilter()
    search = filters.CharFilter(method="with_part", help_text="A substring of the object's name.")
    since = filters.IsoDateTimeFilter(field_name="at", lookup_expr="gte")
    until = filters.IsoDateTimeFilter(field_name="at", lookup_expr="lt")

    class Meta:
        model = AuditRecord
        fields: list[str] = []

    def about(self, rows: AuditRecordQuerySet, field: str, value: str) -> AuditRecordQuerySet:
        return rows.about(*names_in(value))

    def of_kinds(self, rows: AuditRecordQuerySet, field: str, value: str) -> AuditRecordQuerySet:
        """Return the records about these kinds."""
        found = Q()
        for kind in names_in(value):
            found |= Q(kind__iexact=kind)
        return rows.filter(found)

    def with_part(self, rows: AuditRecordQuerySet, field: str, value: str) -> AuditRecordQuerySet:
        return rows.with_part(value)


class AuditView(ClusterView):
    """Base of the list and the export. Both have records of the clusters asked for and records that belong to no
    cluster."""

    serializer_class = AuditRecordSerializer
    queryset = AuditRecord.objects.none()
    filterset_class = AuditFilter
    spans_clusters = True
    keyset = ("-id",)
    kind = "AuditRecord"

    def rows(self) -> QuerySet[AuditRecord, Any]:
        """Return the records that the user may read and that match the filters. Raises NotPermitted."""
        reach = self.reach.permitting(
            "audit", self.kind, also=lambda access: access.audited_namespaces() != frozenset()
        )
        audited = {cluster.pk: reach.access(cluster.pk).audited_namespaces() for cluster in reach.clusters}
        known = [namespaces for namespaces in audited.values() if namespaces is not None]
        of_none = Q(cluster_name="")
        if len(known) == len(audited):
            of_none &= Q(namespace__in=frozenset().union(*known))
        found = AuditRecord.objects.filter(reach.rows("namespace", audited, cluster="cluster_name") | of_none)
        return self.filter_queryset(found).values(*_FIELDS)


class AuditListView(AuditView):
    """`audit/`."""

    @extend_schema(responses=AuditRecordSerializer(many=True), operation_id="audit_list")
    def get(self, request: Request) -> Response:
        """List changes, logins and refused requests, newest first. Records without a cluster are included."""
        page = self.paginate_queryset(self.rows()) or []
        return self.get_paginated_response([_json(row) for row in page])


class AuditExportView(AuditView):
    """`audit/export/`."""

    pagination_class = None

    @extend_schema(
        operation_id="audit_export",
        filters=True,
        parameters=[
            OpenApiParameter("format", str, enum=list(_FORMATS), description="JSON lines (the default) or CSV.")
        ],
        responses={(200, "application/x-ndjson"): OpenApiTypes.STR, (200, "text/csv"): OpenApiTypes.STR},
    )
    def get(self, request: Request) -> StreamingHttpResponse:
        """Export every record that matches the filters as a file."""
        wanted = request.query_params.get("format", _FORMATS[0])
        if wanted not in _FORMATS:
            raise ValidationError(
                {"format": f'Unsupported value "{wanted}": supported values are {", ".join(_FORMATS)}.'}
            )
        as_csv = wanted == "csv"
        write = _csv if as_csv else _json_lines
        kind, ending = ("text/csv; charset=utf-8", "csv") if as_csv else ("application/x-ndjson", "jsonl")
        answer = StreamingHttpResponse(write(_in_steps(self.rows())), content_type=kind)
        of = "" if self.reach.is_of_several else f"-{self.cluster.name}"
        answer.headers["Content-Disposition"] = f'attachment; filename="audit{of}.{ending}"'
        return answer


def _in_steps(rows: QuerySet[AuditRecord, Any]) -> Iterator[dict[str, Any]]:
    """Yield rows page by page, by keyset, so that a slow reader does not keep a query open."""
    last: int | None = None
    while True:
        found = list((rows if last is None else rows.filter(id__lt=last)).order_by("-id")[:_AT_ONCE])
        yield from found
        if len(found) < _AT_ONCE:
            return
        last = found[-1]["id"]


def _json_lines(rows: Iterator[dict[str, Any]]) -> Iterator[bytes]:
    for row in rows:
        yield orjson.dumps(line(row), option=orjson.OPT_APPEND_NEWLINE | orjson.OPT_UTC_Z)


def _csv(rows: Iterator[dict[str, Any]]) -> Iterator[bytes]:
    columns = ["cluster" if name == "cluster_name" else name for name in _FIELDS]
    return csv_lines(columns, (_cells(_json(row), columns) for row in rows))


def _cells(row: dict[str, Any], columns: list[str]) -> list[str]:
    write: dict[str, Callable[[Any], str]] = {
        "at": lambda value: value.isoformat(),
        "before": lambda value: "" if value is None else orjson.dumps(value).decode(),
        "after": lambda value: "" if value is None else orjson.dumps(value).decode(),
    }
    return [write.get(name, str)(row[name]) for name in columns]


def _json(row: dict[str, Any]) -> dict[str, Any]:
    return {("cluster" if key == "cluster_name" else key): value for key, value in row.items()}
