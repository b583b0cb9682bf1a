"""ClusterQueues, cohorts and LocalQueues over REST, with their status and pending workloads."""

from collections.abc import Mapping
from functools import cached_property
from typing import Any, Final

from django.db import connection
from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.api.scope import ClusterView
from foundation.shown_past import current_past
from queues.api import configuration_serializers as shapes
from queues.api.configuration_views import EditView, KindListView, KindView
from queues.api.filters import LocalQueueFilter
from queues.models import ClusterQueue, Cohort, LocalQueue
from queues.services.owners import queues_below
from queues.services.visibility import HIDDEN_QUEUE, Visibility, visibilities_of, visibility_of
from scheduler.api.cohort_tree import CellSerializer, CohortTreeSerializer, ShareField, cohort_tree
from scheduler.api.object_status import Cell, Held, held_in
from scheduler.api.queue_status import Numbers, local_queue_reason, numbers_of, read_numbers
from scheduling.model.vocabulary import ConditionStatus

_LOCAL_COUNTS: Final = """
    SELECT cluster_id, namespace, queue_name,
        count(*) FILTER (WHERE quota_reserved_at IS NULL),
        count(*) FILTER (WHERE quota_reserved_at IS NOT NULL),
        count(*) FILTER (WHERE quota_reserved_at IS NOT NULL AND admitted_at IS NOT NULL)
    FROM queues_workload
    WHERE cluster_id = ANY (%s) AND status <> 'Finished' AND namespace = ANY (%s)
        AND parent_name = ''
    GROUP BY 1, 2, 3
"""

_NO_WORKLOADS: Final = {"pending": 0, "reserving": 0, "admitted": 0}


class UsageSerializer(serializers.Serializer[Any]):
    """The usage of a resource in a flavor: everything that is reserved, and the part of admitted workloads."""

    flavor = serializers.CharField()
    resource = serializers.CharField()
    used = serializers.IntegerField()
    admitted = serializers.IntegerField()


class QueueCellSerializer(CellSerializer):
    """A cell of a ClusterQueue, and the part of `used` that admitted workloads hold."""

    admitted = serializers.IntegerField()


class ClusterQueueStatusSerializer(shapes.serializer_of("ClusterQueue", with_status=True)):  # type: ignore[misc]  # made of the kind
    """A ClusterQueue with the usage of its quota."""

    weighted_share = ShareField(read_only=True)
    usage = QueueCellSerializer(many=True, read_only=True)


class LocalQueueStatusSerializer(shapes.serializer_of("LocalQueue", with_status=True)):  # type: ignore[misc]  # made of the kind
    """A LocalQueue, and its workloads' usage of the ClusterQueue's quota."""

    usage = UsageSerializer(many=True, read_only=True)


class _ClusterQueues(KindView):
    kind = "ClusterQueue"
    queryset = ClusterQueue.objects.prefetch_related("resource_groups__quotas")
    serializer_class = ClusterQueueStatusSerializer
    looks_back = True

    def visible(self) -> QuerySet[Any]:
        """Return all ClusterQueues, or the ClusterQueues of the user's LocalQueues."""
        seen = {pk: visibility.cluster_queues for pk, visibility in self._visibilities.items()}
        return self.get_queryset().filter(self.reach.rows("name", seen))

    @cached_property
    def _visibilities(self) -> dict[int, Visibility]:
        return visibilities_of(self.reach)

    def render(self, rows: list[Any]) -> list[dict[str, Any]]:
        """Add the scheduler's numbers and reason to each row."""
        numbers = numbers_of(self.reach.clusters)
        held = held_in([row.pk for row in self.reach.clusters], (row.name for row in rows))
        shown = zip(rows, super().render(rows), strict=True)
        return [
            found
            | ({} if self._visibilities[row.cluster_id].sees_cohort(row.cohort_name) else {"cohort": ""})
            | _queue_status(row, numbers[row.cluster_id], held[row.cluster_id].admitted[row.name])
            for row, found in shown
        ]


class ClusterQueueListView(_ClusterQueues, KindListView):
    """`cluster-queues/`."""

    spans_clusters = True


class ClusterQueueView(_ClusterQueues, EditView):
    """`cluster-queues/{name}/`."""


class _Cohorts(KindView):
    kind = "Cohort"
    queryset = Cohort.objects.prefetch_related("resource_groups__quotas")
    serializer_class = shapes.serializer_of("Cohort")
    looks_back = True

    def visible(self) -> QuerySet[Any]:
        """Return all cohorts, or those above the ClusterQueues that the user's LocalQueues lead to."""
        seen = visibilities_of(self.reach)
        tenancies = [row for row in self.reach.clusters if seen[row.pk].cluster_queues is not None]
        numbers = numbers_of(tenancies)
        above = {
            pk: visibility.cohorts(numbers[pk].cluster_queues, numbers[pk].cohorts) if pk in numbers else None
            for pk, visibility in seen.items()
        }
        return self.get_queryset().filter(self.reach.rows("name", above))

    def render(self, rows: list[Any]) -> list[dict[str, Any]]:
        """Return rows as JSON. Cohorts of the past lose parents that are not above a visible ClusterQueue now."""
        found = super().render(rows)
        if current_past() is None:
            return found
        seen = visibilities_of(self.reach)
        return [
            shown if seen[row.cluster_id].sees_cohort(row.parent_name) else {**shown, "parent": ""}
            for row, shown in zip(rows, found, strict=True)
        ]


class CohortListView(_Cohorts, KindListView):
    """`cohorts/`."""

    spans_clusters = True


class CohortView(_Cohorts, EditView):
    """`cohorts/{name}/`."""


class CohortTreeView(ClusterView):
    """`cohorts/tree/`."""

    serializer_class = CohortTreeSerializer
    looks_back = True

    @extend_schema(responses=CohortTreeSerializer)
    def get(self, request: Request) -> Response:
        """Return the quota tree: cohorts and the members in them, with quota and usage in base units."""
        return Response(cohort_tree(read_numbers(self.cluster), visibility_of(self.access, self.cluster)))


class _LocalQueues(KindView):
    kind = "LocalQueue"
    queryset = LocalQueue.objects.all()
    serializer_class = LocalQueueStatusSerializer
    looks_back = True

    def visible(self) -> QuerySet[Any]:
        """Return the LocalQueues of the user's namespaces, and for a queue admin those of queues below its cohorts."""
        below = queues_below(self.reach)
        return self.get_queryset().filter(
            self.reach.rows_in_namespaces() | self.reach.rows("cluster_queue_name", below)
        )

    def render(self, rows: list[Any]) -> list[dict[str, Any]]:
        """Add to each its status and its workloads' usage."""
        numbers = numbers_of(self.reach.clusters)
        held = held_in([row.pk for row in self.reach.clusters], (row.cluster_queue_name for row in rows))
        counts = self._counts({row.namespace for row in rows})
        shown = [
            found
            | counts.get((row.cluster_id, row.namespace, row.name), _NO_WORKLOADS)
            | {"conditions": [_active(row, *local_queue_reason(row, numbers[row.cluster_id]))]}
            | {"usage": _local_usage(row, held[row.cluster_id])}
            for row, found in zip(rows, super().render(rows), strict=True)
        ]
        return shown if current_past() is None else self._with_known_queues(rows, shown)

    def _with_known_queues(self, rows: list[Any], shown: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Blank the names of ClusterQueues of the past that the reader may not see now."""
        seen = visibilities_of(self.reach)
        return [
            found if seen[row.cluster_id].sees_queue(row.cluster_queue_name) else _without_queue(row, found)
            for row, found in zip(rows, shown, strict=True)
        ]

    def _counts(self, namespaces: set[str]) -> dict[tuple[int, str, str], dict[str, int]]:
        with connection.cursor() as cursor:
            cursor.execute(_LOCAL_COUNTS, [[row.pk for row in self.reach.clusters], list(namespaces)])
            return {
                (cluster, namespace, name): {"pending": pending, "reserving": reserving, "admitted": admitted}
                for cluster, namespace, name, pending, reserving, admitted in cursor.fetchall()
            }


class LocalQueueListView(_LocalQueues, KindListView):
    """`local-queues/`."""

    spans_clusters = True
    keyset = ("namespace", "name")
    filterset_class = LocalQueueFilter


class LocalQueueView(_LocalQueues, EditView):
    """`local-queues/{namespace}/{name}/`."""


def _without_queue(row: LocalQueue, found: dict[str, Any]) -> dict[str, Any]:
    name = f"ClusterQueue {row.cluster_queue_name}"
    conditions = [{**each, "message": each["message"].replace(name, HIDDEN_QUEUE)} for each in found["conditions"]]
    return {**found, "cluster_queue": "", "conditions": conditions}


def _local_usage(row: LocalQueue, held: Held) -> list[dict[str, Any]]:
    admitted = held.admitted[row.key]
    return [
        {"flavor": flavor, "resource": resource, "used": used, "admitted": admitted[flavor, resource]}
        for (flavor, resource), used in sorted(held.reserved[row.key].items())
    ]


def _queue_status(row: ClusterQueue, numbers: Numbers, admitted: Mapping[Cell, int]) -> dict[str, Any]:
    entry = numbers.cluster_queues.get(row.name)
    if entry is None:  # too new for the scheduler to know it
        condition = _active(row, False, "Pending", "The scheduler has not evaluated it yet")
        return {**_NO_WORKLOADS, "conditions": [condition], "weighted_share": 0, "usage": []}
    return {
        "pending": entry["pending"] + entry["inadmissible"],
        "reserving": entry["reserving"],
        "admitted": entry["admitted"],
        "conditions": [_active(row, entry["active"], entry["reason"], entry["message"])],
        "weighted_share": entry["weighted_share"],
        "usage": [cell | {"admitted": admitted.get((cell["flavor"], cell["resource"]), 0)} for cell in entry["usage"]],
    }


def _active(row: Any, active: bool, reason: str, message: str) -> dict[str, Any]:
    return {
        "type": "Active",
        "status": ConditionStatus.TRUE if active else ConditionStatus.FALSE,
        "reason": reason,
        "message": message,
        "last_transition_time": row.updated_at,
    }
