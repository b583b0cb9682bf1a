"""The complex read queries of queues."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from django.db import connection, models
from django.db.models import Case, F, Value, When
from django.db.models.expressions import RawSQL

from scheduling.model.vocabulary import FinishedReason, WorkloadState, WorkloadStatus

_QUEUED_AT: Final = """
    CASE WHEN queues_workload.evicted_at IS NOT NULL AND jsonb_path_exists(
        queues_workload.conditions,
        '$[*] ? (@.type == "Evicted" && @.status == "True"
            && (@.reason == "AdmissionCheck" || @.reason == "PodsReadyTimeout"))'
    ) THEN queues_workload.evicted_at ELSE queues_workload.created_at END
"""
_POSITIONS: Final = f"""
    WITH queue AS (
        SELECT id, namespace, queue_name, name,
            row_number() OVER (ORDER BY priority DESC, {_QUEUED_AT}, uid) AS position
        FROM queues_workload
        WHERE cluster_id = %(cluster_id)s AND cluster_queue_name = %(cluster_queue)s
            AND status IN ('Pending', 'Evicted') AND quota_reserved_at IS NULL AND active
    )
    SELECT id, position FROM queue
    WHERE position > %(after)s
        AND (%(namespaces)s::text[] IS NULL OR namespace = ANY (%(namespaces)s))
        AND (%(namespace)s = '' OR namespace = %(namespace)s)
        AND (%(local_queue)s = '' OR queue_name = %(local_queue)s)
        AND (%(search)s = '' OR strpos(lower(namespace || '/' || name), lower(%(search)s)) > 0)
    ORDER BY position LIMIT %(limit)s
"""  # noqa: S608 (only our own constant is put in)


_VERSION: Final = """
    concat_ws(
        '.',
        queues_workload.xmin,
        (SELECT sum(xmin::text::bigint) FROM queues_podset WHERE workload_id = queues_workload.id),
        (
            SELECT sum(xmin::text::bigint) FROM gpus_deviceallocation
            WHERE workload_id = queues_workload.id AND source = 'decided'
        )
    )
"""
"""PostgreSQL's own versions of all rows behind a workload's answer: they differ after every change of any of them."""


def queue_time() -> RawSQL:
    """Kueue's queue-order timestamp: the creation, or the eviction if a check or a timeout evicted the workload."""
    return RawSQL(_QUEUED_AT, [], output_field=models.DateTimeField())  # noqa: S611 (our own constant)


def workload_state() -> Case:
    """Return the workload's WorkloadState."""
    ended_badly = (FinishedReason.FAILED, FinishedReason.FAILED_TO_START)
    return Case(
        When(status=WorkloadStatus.FINISHED, reason=FinishedReason.SUCCEEDED, then=Value(WorkloadState.SUCCEEDED)),
        When(status=WorkloadStatus.FINISHED, reason__in=ended_badly, then=Value(WorkloadState.FAILED)),
        When(status=WorkloadStatus.ADMITTED, pods_ready_at=None, then=Value(WorkloadState.STARTING)),
        When(status=WorkloadStatus.ADMITTED, then=Value(WorkloadState.RUNNING)),
        When(status__in=(WorkloadStatus.PENDING, WorkloadStatus.QUOTA_RESERVED), active=False,
             then=Value(WorkloadState.ON_HOLD)),
        default=F("status"),
        output_field=models.CharField(),
    )  # fmt: skip


def workload_version() -> RawSQL:
    """Return a text that differs between any two states of a workload, its pod sets and its devices."""
    return RawSQL(_VERSION, [], output_field=models.TextField())  # noqa: S611 (our own constant)


def workload_versions(workloads: Sequence[int]) -> dict[int, str]:
    """{primary key: version} of the existing rows."""
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT id, {_VERSION} FROM queues_workload WHERE id = ANY (%s)", [list(workloads)])  # noqa: S608 (only our own constant is put in)
        return dict(cursor.fetchall())


@dataclass(frozen=True, slots=True)
class QueuePositions:
    """The part of a ClusterQueue's pending list to return: at most `limit` workloads after position `after`."""

    cluster_id: int
    cluster_queue: str
    namespaces: Collection[str] | None
    namespace: str = ""
    local_queue: str = ""
    search: str = ""
    after: int = 0
    limit: int = 100

    def read(self) -> Mapping[int, int]:
        """{primary key: position in the whole queue, from 1}, in the queue's order (priority, queue time, uid).

        Positions count the workloads that the caller may not see, as Kueue's visibility API does.
        """
        parameters: dict[str, Any] = {
            "cluster_id": self.cluster_id,
            "cluster_queue": self.cluster_queue,
            "namespaces": None if self.namespaces is None else list(self.namespaces),
            "namespace": self.namespace,
            "local_queue": self.local_queue,
            "search": self.search,
            "after": self.after,
            "limit": self.limit,
        }
        with connection.cursor() as cursor:
            cursor.execute(_POSITIONS, parameters)
            return dict(cursor.fetchall())


_PENDING: Final = f"""
    WITH queue AS (
        SELECT id, namespace, queue_name,
            row_number() OVER everybody - 1 AS position,
            row_number() OVER (PARTITION BY namespace, queue_name ORDER BY priority DESC, {_QUEUED_AT}, uid) - 1 AS own
        FROM queues_workload
        WHERE cluster_id = %(cluster_id)s AND cluster_queue_name = %(cluster_queue)s
            AND status IN ('Pending', 'Evicted') AND quota_reserved_at IS NULL AND active
        WINDOW everybody AS (ORDER BY priority DESC, {_QUEUED_AT}, uid)
    )
    SELECT id, position, own FROM queue
    WHERE (%(local_queue)s = '' OR namespace = %(namespace)s AND queue_name = %(local_queue)s)
        AND (%(namespaces)s::text[] IS NULL OR namespace = ANY(%(namespaces)s))
    ORDER BY position LIMIT %(limit)s OFFSET %(offset)s
"""  # noqa: S608 (only our own constant is put in)


@dataclass(frozen=True, slots=True)
class PendingPositions:
    """A part of the pending workloads of a ClusterQueue or of one of its LocalQueues, as in Kueue's visibility API.

    With `namespaces`, only the workloads there are returned. Their positions count those of other namespaces.
    """

    cluster_id: int
    cluster_queue: str
    namespace: str = ""
    local_queue: str = ""
    namespaces: Collection[str] | None = None
    limit: int = 1000
    offset: int = 0

    def read(self) -> list[tuple[int, int, int]]:
        """Return (primary key, position in the ClusterQueue, position in the LocalQueue) in the queue's order,
        from 0."""
        with connection.cursor() as cursor:
            cursor.execute(
                _PENDING,
                {
                    "cluster_id": self.cluster_id,
                    "cluster_queue": self.cluster_queue,
                    "namespace": self.namespace,
                    "local_queue": self.local_queue,
                    "namespaces": None if self.namespaces is None else list(self.namespaces),
                    "limit": self.limit,
                    "offset": self.offset,
                },
            )
            return [(pk, position, own) for pk, position, own in cursor.fetchall()]
