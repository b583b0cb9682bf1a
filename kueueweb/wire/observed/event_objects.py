"""Events of workloads as v1 Events."""

from __future__ import annotations

import re
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
from queues.models import Workload, WorkloadEvent

FIELDS: Final[Mapping[str, str]] = {
    "involvedObject.kind": "involved_kind",
    "involvedObject.namespace": "namespace",
    "involvedObject.name": "workload_name",
    "involvedObject.uid": "workload_uid",
    "reason": "reason",
    "type": "type",
}
ORDER: Final = ("id",)
"""The order of lists: events are written in order of time, and an index has them in it."""
MAX_AGE: Final = timedelta(hours=1)
"""The age up to which Kubernetes keeps events. Events of one object are listed as long as they are stored."""
MAX_EVENTS: Final = 10_000
"""The most events of a list that names no object."""
_KIND: Final = "Workload"
_MAX_NUMBER: Final = 2**63
_HEXADECIMAL: Final = re.compile(r"[0-9a-f]{16}")


def rows(reach: Reach) -> QuerySet[WorkloadEvent]:
    """Return the events of the workloads that the user may read, with the columns that an object has."""
    # No column has a name or a uid of an event. The number makes the name unique.
    number = RawSQL("lpad(to_hex(queues_workloadevent.id), 16, '0')", [], output_field=TextField())
    uid = RawSQL("md5('event ' || queues_workloadevent.id)::uuid", [], output_field=UUIDField())
    return WorkloadEvent.objects.filter(reach.rows_in_namespaces()).annotate(
        name=Concat(Cast(F("workload_name"), TextField()), Value(".", TextField()), number, output_field=TextField()),
        uid=uid,
        labels=Value({}, JSONField()),
        involved_kind=Value(_KIND, CharField()),
    )


def narrowed(rows: QuerySet[Any], cluster: Cluster, wanted: Mapping[str, str]) -> QuerySet[Any]:
    """Return the rows from which an index selects: the event with a name, those of one workload, or else the last
    hour's, at most MAX_EVENTS.

    * wanted: the fields with the values that an event must have, by their paths.
    """
    if name := wanted.get("metadata.name"):
        number = name.rpartition(".")[2]
        return rows.filter(pk=int(number, 16) % _MAX_NUMBER) if _HEXADECIMAL.fullmatch(number) else rows.none()
    if wanted.get("involvedObject.uid"):
        return rows
    where = {"namespace": wanted.get("metadata.namespace"), "name": wanted.get("involvedObject.name")}
    if all(where.values()):
        uid = Workload.objects.filter(cluster=cluster, **where).values_list("uid", flat=True).first()
        if uid is not None:
            return rows.filter(workload_uid=uid)
    newest = WorkloadEvent.objects.filter(cluster=cluster).order_by("-id").values_list("id", flat=True)
    first = newest[MAX_EVENTS - 1 : MAX_EVENTS]
    return rows.filter(at__gte=timezone.now() - MAX_AGE, id__gte=next(iter(first), 0))


def objects(cluster: Cluster, found: Sequence[Any]) -> list[dict[str, Any]]:
    """Return the events of rows with the columns of `rows`."""
    return [_event_object(row) for row in found]


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
