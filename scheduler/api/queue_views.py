"""ClusterQueues, cohorts and LocalQueues over REST, with whether they are active and who waits in them."""

from typing import Any, Final

from django.db import connection
from django.db.models import Q, QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.api.scope import ClusterView
from queues.api import configuration_serializers as shapes
from queues.api.configuration_views import EditView, KindListView, KindView
from queues.api.filters import LocalQueueFilter
from queues.kinds import KINDS
from queues.models import ClusterQueue, Cohort, LocalQueue
from queues.services.owners import queues_below
from queues.services.visibility import visibility_of
from scheduler.api.cohort_tree import CohortTreeSerializer, cohort_tree
from scheduler.api.queue_status import Numbers, local_queue_reason, read_numbers
from scheduling.model.vocabulary import ConditionStatus

_LOCAL_COUNTS: Final = """
    SELECT namespace, queue_name,
        count(*) FILTER (WHERE quota_reserved_at IS NULL),
        count(*) FILTER (WHERE quota_reserved_at IS NOT NULL),
        count(*) FILTER (WHERE quota_reserved_at IS NOT NULL AND admitted_at IS NOT NULL)
    FROM queues_workload
    WHERE cluster_id = %s AND status <> 'Finished' AND namespace = ANY (%s) GROUP BY 1, 2
"""


class _ClusterQueues(KindView):
    kind = "ClusterQueue"
    queryset = ClusterQueue.objects.prefetch_related("resource_groups__quotas")
    serializer_class = shapes.serializer_of("ClusterQueue", with_status=True)

    def visible(self) -> QuerySet[Any]:
        """All of them, or those that the user's LocalQueues lead to."""
        rows = self.get_queryset().filter(cluster=self.cluster)
        visibility = visibility_of(self.access, self.cluster)
        return rows if visibility.cluster_queues is None else rows.filter(name__in=visibility.cluster_queues)

    def render(self, rows: list[Any]) -> list[dict[str, Any]]:
        """With the scheduler's word on each."""
        numbers = read_numbers(self.cluster)
        return [KINDS[self.kind].to_json(row) | _queue_status(row, numbers) for row in rows]


class ClusterQueueListView(_ClusterQueues, KindListView):
    """`cluster-queues/`."""


class ClusterQueueView(_ClusterQueues, EditView):
    """`cluster-queues/{name}/`."""


class _Cohorts(KindView):
    kind = "Cohort"
    queryset = Cohort.objects.prefetch_related("resource_groups__quotas")
    serializer_class = shapes.serializer_of("Cohort")

    def visible(self) -> QuerySet[Any]:
        """All of them, or those above the queues that the user's LocalQueues lead to."""
        rows = self.get_queryset().filter(cluster=self.cluster)
        visibility = visibility_of(self.access, self.cluster)
        if visibility.cluster_queues is None:
            return rows
        numbers = read_numbers(self.cluster)
        return rows.filter(name__in=visibility.cohorts(numbers.cluster_queues, numbers.cohorts) or ())


class CohortListView(_Cohorts, KindListView):
    """`cohorts/`."""


class CohortView(_Cohorts, EditView):
    """`cohorts/{name}/`."""


class CohortTreeView(ClusterView):
    """`cohorts/tree/`."""

    serializer_class = CohortTreeSerializer

    @extend_schema(responses=CohortTreeSerializer)
    def get(self, request: Request) -> Response:
        """The tree of quota: cohorts, the cohorts and ClusterQueues in them, with quota and usage in base units."""
        return Response(cohort_tree(read_numbers(self.cluster), visibility_of(self.access, self.cluster)))


class _LocalQueues(KindView):
    kind = "LocalQueue"
    queryset = LocalQueue.objects.all()
    serializer_class = shapes.serializer_of("LocalQueue", with_status=True)

    def visible(self) -> QuerySet[Any]:
        """Those of the user's namespaces, and a queue admin's: those that lead to a queue below its cohorts."""
        rows = self.get_queryset().filter(cluster=self.cluster)
        namespaces = self.access.visible_namespaces()
        if namespaces is None:
            return rows
        below = queues_below(self.access, self.cluster)
        return rows.filter(Q(namespace__in=namespaces) | Q(cluster_queue_name__in=below))

    def render(self, rows: list[Any]) -> list[dict[str, Any]]:
        """With whether each leads anywhere."""
        numbers = read_numbers(self.cluster)
        counts = self._counts({row.namespace for row in rows})
        none = {"pending": 0, "reserving": 0, "admitted": 0}
        return [
            KINDS[self.kind].to_json(row)
            | counts.get((row.namespace, row.name), none)
            | {"conditions": [_active(row, *local_queue_reason(row, numbers))]}
            for row in rows
        ]

    def _counts(self, namespaces: set[str]) -> dict[tuple[str, str], dict[str, int]]:
        with connection.cursor() as cursor:
            cursor.execute(_LOCAL_COUNTS, [self.cluster.pk, list(namespaces)])
            return {
                (namespace, name): {"pending": pending, "reserving": reserving, "admitted": admitted}
                for namespace, name, pending, reserving, admitted in cursor.fetchall()
            }


class LocalQueueListView(_LocalQueues, KindListView):
    """`local-queues/`."""

    keyset = ("namespace", "name")
    filterset_class = LocalQueueFilter


class LocalQueueView(_LocalQueues, EditView):
    """`local-queues/{namespace}/{name}/`."""


def _queue_status(row: ClusterQueue, numbers: Numbers) -> dict[str, Any]:
    entry = numbers.cluster_queues.get(row.name)
    if entry is None:  # made so lately that the scheduler has not seen it
        condition = _active(row, False, "Pending", "The scheduler has not looked at it yet")
        return {"pending": 0, "reserving": 0, "admitted": 0, "conditions": [condition]}
    return {
        "pending": entry["pending"] + entry["inadmissible"],
        "reserving": entry["reserving"],
        "admitted": entry["admitted"],
        "conditions": [_active(row, entry["active"], entry["reason"], entry["message"])],
    }


def _active(row: Any, active: bool, reason: str, message: str) -> dict[str, Any]:
    return {
        "type": "Active",
        "status": ConditionStatus.TRUE if active else ConditionStatus.FALSE,
        "reason": reason,
        "message": message,
        "last_transition_time": row.updated_at,
    }
