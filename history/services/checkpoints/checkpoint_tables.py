"""The tables of a checkpoint, the rows of a cluster in each, and their layout as bytes.

The layout: one line of JSON, `[{table, columns, bytes}, ...]`, then the rows of each table in COPY's text format. It
names the columns, so that later releases, which have others, can read it.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

import orjson
from django.db import connection
from django.db.models import Model
from psycopg import sql

from accounts.models import Namespace
from gpus.models import Device, DeviceAllocation, Node
from queues.models import (
    AdmissionCheck,
    ClusterObject,
    ClusterQueue,
    Cohort,
    FlavorQuota,
    Job,
    LimitRange,
    LocalQueue,
    Pod,
    PodSet,
    PriorityClass,
    ProvisioningRequestConfig,
    Reservation,
    ResourceFlavor,
    ResourceGroup,
    ResourceQuota,
    RuntimeClass,
    StartEstimate,
    Topology,
    Workload,
    WorkloadPriorityClass,
)

FORMAT: Final = 1
"""The version of the layout. Other versions are refused by name."""
FINISHED_SECONDS: Final = 3600
"""A checkpoint has the workloads that finished at most this long before it."""
MOST_BYTES: Final = 2**30
"""Larger inflated content is not written, and counts as damaged when it is read. The content of 10,000 workloads has
some 10 MiB."""
_LEVEL: Final = 3

_OF_CLUSTER: Final = "row.cluster_id = {cluster}"
_WORKLOADS: Final = (
    "workload.cluster_id = {cluster} AND (workload.status <> 'Finished' OR workload.finished_at >= {oldest} OR EXISTS ("
    "SELECT FROM gpus_deviceallocation AS slice WHERE slice.workload_id = workload.id))"
)
_SELECTED: Final = "SELECT workload.COLUMN FROM queues_workload AS workload WHERE CONDITION".replace(
    "CONDITION", _WORKLOADS
)
_IDS: Final = _SELECTED.replace("COLUMN", "id")
_JOBS: Final = _SELECTED.replace("COLUMN", "job_id")
_OF_WORKLOADS: Final = f"row.workload_id IN ({_IDS})"
_GROUPS: Final = (
    "(row.cluster_queue_id IN (SELECT id FROM queues_clusterqueue WHERE cluster_id = {cluster}) "
    "OR row.cohort_id IN (SELECT id FROM queues_cohort WHERE cluster_id = {cluster}))"
)
_GROUP_IDS: Final = "SELECT row.id FROM queues_resourcegroup AS row WHERE CONDITION".replace("CONDITION", _GROUPS)
TABLES: Final[Sequence[tuple[type[Model], str]]] = (
    (Namespace, _OF_CLUSTER),
    (RuntimeClass, _OF_CLUSTER),
    (LimitRange, _OF_CLUSTER),
    (ResourceQuota, _OF_CLUSTER),
    (ResourceFlavor, _OF_CLUSTER),
    (Topology, _OF_CLUSTER),
    (AdmissionCheck, _OF_CLUSTER),
    (ProvisioningRequestConfig, _OF_CLUSTER),
    (PriorityClass, _OF_CLUSTER),
    (WorkloadPriorityClass, _OF_CLUSTER),
    (Cohort, _OF_CLUSTER),
    (ClusterQueue, _OF_CLUSTER),
    (LocalQueue, _OF_CLUSTER),
    (Reservation, _OF_CLUSTER),
    (ResourceGroup, _GROUPS),
    (FlavorQuota, f"row.resource_group_id IN ({_GROUP_IDS})"),
    (ClusterObject, _OF_CLUSTER),
    (Node, _OF_CLUSTER),
    (Device, "row.node_id IN (SELECT id FROM gpus_node WHERE cluster_id = {cluster})"),
    (Job, f"row.cluster_id = {{cluster}} AND row.id IN ({_JOBS})"),
    (Workload, f"row.id IN ({_IDS})"),
    (PodSet, _OF_WORKLOADS),
    (Pod, _OF_WORKLOADS),
    (StartEstimate, _OF_WORKLOADS),
    (DeviceAllocation, _OF_CLUSTER),
)
"""Models and the condition on their rows, in an order in which each refers to earlier ones."""


class DamagedContent(Exception):
    """The content of a checkpoint does not have the layout."""


class TooMuchContent(Exception):
    """The rows of a cluster have more bytes than a checkpoint may have."""

    def __init__(self) -> None:
        super().__init__(f"its rows have more than {MOST_BYTES // 2**20} MiB, the most that a checkpoint has")


@dataclass(frozen=True, slots=True)
class TableRows:
    """The rows of one table in COPY's text format."""

    table: str
    columns: tuple[str, ...]
    rows: bytes


def read_tables(cluster_id: int, now: datetime) -> bytes:
    """Return the rows of a cluster as this transaction sees them, compressed. Raises TooMuchContent."""
    found: list[TableRows] = []
    left = MOST_BYTES
    for model, condition in TABLES:
        found.append(_read(model, condition, cluster_id, now, left))
        left -= len(found[-1].rows)
    return _written(found)


def tables_in(content: bytes) -> list[TableRows]:
    """Return the tables of a checkpoint. Raises DamagedContent."""
    head, _, rest = _inflated(content).partition(b"\n")
    found, position = [], 0
    try:
        for entry in orjson.loads(head):
            end = position + entry["bytes"]
            found.append(TableRows(entry["table"], tuple(entry["columns"]), rest[position:end]))
            position = end
    except (ValueError, KeyError, TypeError) as error:
        raise DamagedContent(f"its first line is not a list of tables: {error!r}") from error
    if position != len(rest):
        raise DamagedContent(f"its tables have {position} bytes by its first line, and {len(rest)} follow")
    return found


def _inflated(content: bytes) -> bytes:
    inflater = zlib.decompressobj()
    try:
        text = inflater.decompress(content, MOST_BYTES)
    except zlib.error as error:
        raise DamagedContent(str(error)) from error
    if inflater.unconsumed_tail:
        raise DamagedContent(f"it has more than {MOST_BYTES} bytes")
    if not inflater.eof:
        raise DamagedContent("its end is missing")
    return text


def columns_of(model: type[Model]) -> tuple[str, ...]:
    """Return the stored columns of a model, without generated ones."""
    return tuple(
        column.column for column in model._meta.concrete_fields if column.column and not getattr(column, "generated", 0)
    )


def condition_of(condition: str, cluster_id: int, oldest: datetime) -> sql.Composed:
    """Return a condition of `TABLES` for a cluster, and for the workloads that had not finished before `oldest`."""
    return sql.SQL(condition).format(cluster=sql.Literal(cluster_id), oldest=sql.Literal(oldest))


def oldest_at(moment: datetime) -> datetime:
    """Return the moment before which workloads have finished that a checkpoint of `moment` does not have."""
    return moment - timedelta(seconds=FINISHED_SECONDS)


def key_of(model: type[Model]) -> str:
    return str(model._meta.pk.column)


def _read(model: type[Model], condition: str, cluster_id: int, now: datetime, most_bytes: int) -> TableRows:
    columns = columns_of(model)
    query = sql.SQL("COPY (SELECT {columns} FROM {table} AS row WHERE {condition} ORDER BY {key}) TO STDOUT").format(
        key=sql.Identifier("row", key_of(model)),
        columns=sql.SQL(", ").join(sql.Identifier("row", column) for column in columns),
        table=sql.Identifier(model._meta.db_table),
        condition=condition_of(condition, cluster_id, oldest_at(now)),
    )
    parts, size = [], 0
    with connection.wrap_database_errors, connection.cursor() as cursor, cursor.copy(query) as copy:
        for part in copy:
            size += len(part)
            if size > most_bytes:
                raise TooMuchContent
            parts.append(bytes(part))
    return TableRows(model._meta.db_table, columns, b"".join(parts))


def _written(tables: Sequence[TableRows]) -> bytes:
    head: list[dict[str, Any]] = [
        {"table": found.table, "columns": found.columns, "bytes": len(found.rows)} for found in tables
    ]
    text = b"".join([orjson.dumps(head), b"\n", *(found.rows for found in tables)])
    if len(text) > MOST_BYTES:
        raise TooMuchContent
    return zlib.compress(text, _LEVEL)
