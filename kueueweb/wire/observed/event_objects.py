"""Events of workloads as v1 Events."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from django.db.models import CharField, F, JSONField, QuerySet, TextField, UUIDField, Value
from django.db.models.expressions import RawSQL
from django.db.models.functions import Cast, Concat
from django.utils import timezone

from accounts.models import Cluster
from accounts.services.object_status import timestamp
from accounts.services.reach import Reach
from clusters.served.kueue_kinds import GROUP
from kueueweb.wire.tables import Column, duration, moment, value_at
from queues.models import WorkloadEvent

FIELDS: Final[Mapping[str, str]] = {
    "involvedObject.kind": "involved_kind",
    "involvedObject.namespace": "namespace",
    "involvedObject.name": "workload_name",
    "involvedObject.uid": "involved_uid",
    "reason": "reason",
    "type": "type",
}
ORDER: Final = ("id",)
"""The order of lists: events are written in the order of time, and an index has them in it."""
MAX_AGE: Final = timedelta(hours=1)
"""The age up to which Kubernetes keeps events. Events of one object are listed as long as they are stored."""
MAX_EVENTS: Final = 10_000
"""The most events of a list that names no object."""
_KIND: Final = "Workload"
_NAMES_AN_OBJECT: Final = ("involvedObject.name", "involvedObject.uid", "metadata.name")


def event_rows(reach: Reach) -> QuerySet[WorkloadEvent]:
    """Return the events of the workloads that the user may read, with the columns that an object has."""
    # Of no model's column, so that these are computed: the hexadecimal number makes the name unique.
    number = RawSQL("lpad(to_hex(queues_workloadevent.id), 16, '0')", [], output_field=TextField())
    uid = RawSQL("md5('event ' || queues_workloadevent.id)::uuid", [], output_field=UUIDField())
    return WorkloadEvent.objects.filter(reach.rows_in_namespaces()).annotate(
        name=Concat(Cast(F("workload_name"), TextField()), Value(".", TextField()), number, output_field=TextField()),
        uid=uid,
        labels=Value({}, JSONField()),
        involved_kind=Value(_KIND, CharField()),
        involved_uid=Cast(F("workload_uid"), TextField()),
    )


def recent(rows: QuerySet[Any], cluster: Cluster, fields: str) -> QuerySet[Any]:
    """Return only the last hour's, and no more than MAX_EVENTS, unless the field selector names an object."""
    if any(path in fields for path in _NAMES_AN_OBJECT):
        return rows
    newest = WorkloadEvent.objects.filter(cluster=cluster).order_by("-id").values_list("id", flat=True)
    first = newest[MAX_EVENTS - 1 : MAX_EVENTS]
    return rows.filter(at__gte=timezone.now() - MAX_AGE, id__gte=next(iter(first), 0))


def event_objects(cluster: Cluster, rows: Sequence[Any]) -> list[dict[str, Any]]:
    """Return the events of rows with the columns of `event_rows`."""
    return [_event_object(row) for row in rows]


def _event_object(row: Any) -> dict[str, Any]:
    at = timestamp(row.at)
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {
            "name": row.name,
            "namespace": row.namespace,
            "uid": str(row.uid),
            "creationTimestamp": at,
        },
        "involvedObject": {
            "apiVersion": f"{GROUP}/v1beta2",
            "kind": _KIND,
            "namespace": row.namespace,
            "name": row.workload_name,
            "uid": str(row.workload_uid),
        },
        "type": row.type,
        "reason": row.reason,
        "message": row.message,
        "source": {"component": row.actor} if row.actor else {},
        "reportingComponent": row.actor,
        "firstTimestamp": at,
        "lastTimestamp": at,
        "count": 1,
    }


def _last_seen(item: Mapping[str, Any], now: datetime) -> str:
    return duration((now - moment(item["lastTimestamp"])).total_seconds())


def _object(item: Mapping[str, Any], _: datetime) -> str:
    found = item["involvedObject"]
    return f"{found['kind'].lower()}/{found['name']}"


COLUMNS: Final[Sequence[Column]] = (
    Column("Last Seen", "Time since the event", _last_seen),
    Column("Type", "Normal or Warning", value_at("type")),
    Column("Reason", "Reason of the event", value_at("reason")),
    Column("Object", "Object of the event", _object),
    Column("Message", "The event in words", lambda item, _: item["message"].strip()),
    Column("Source", "Component or user that wrote the event", value_at("source.component"), priority=1),
    Column("Name", "Name of the event", value_at("metadata.name"), priority=1, format="name"),
)
