"""Nodes with their pods' requests, the workloads that hold these, and the flavors that include the node."""

from collections import defaultdict
from typing import Any, Final

from django.db import connection
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.api.scope import ClusterView
from gpus.api import operation_views, views
from gpus.api import serializers as shapes
from gpus.models import Node
from queues.models import Pod, PodSet, ResourceFlavor
from scheduling.model.node import PODS
from scheduling.model.quantity import format_amounts
from scheduling.model.selectors import HOSTNAME_LABEL, matches_node_selector

_LIVING: Final = ("Pending", "Running")
_REQUESTED: Final = """
    SELECT workload.cluster_id, pod.node_name, request.resource, sum(request.amount)::bigint
    FROM queues_pod AS pod
        JOIN queues_workload AS workload ON workload.id = pod.workload_id
        JOIN queues_podset AS pod_set ON pod_set.workload_id = pod.workload_id AND pod_set.name = pod.pod_set,
        LATERAL (
            SELECT key, value::numeric FROM jsonb_each_text(pod_set.requests) UNION ALL SELECT %s, 1
        ) AS request (resource, amount)
    WHERE workload.cluster_id = ANY (%s) AND pod.node_name = ANY (%s) AND pod.phase = ANY (%s)
    GROUP BY 1, 2, 3
"""
_POD_COLUMNS: Final = (
    "namespace", "name", "pod_set", "replica", "phase", "ready", "terminating", "reason", "started_at",
)  # fmt: skip


class PlacedNodeSerializer(shapes.NodeSerializer):
    """A node and the requests of its pods."""

    requested = serializers.DictField(
        child=serializers.CharField(),
        help_text="The requests of all pods on the node, managed and unmanaged, and their number (`pods`).",
    )
    flavors = serializers.ListField(
        child=serializers.CharField(), help_text="The ResourceFlavors whose labels the node has."
    )


class PlacedNodeDetailSerializer(PlacedNodeSerializer, shapes.NodeDetailSerializer):
    """A node with its devices and the requests of its pods."""


class NodePodSerializer(serializers.Serializer[Any]):
    """A pod on a node."""

    namespace = serializers.CharField()
    name = serializers.CharField()
    workload = serializers.CharField(help_text="The name of its workload, in the same namespace.")
    pod_set = serializers.CharField(allow_blank=True)
    replica = serializers.IntegerField()
    phase = serializers.CharField(help_text="Kubernetes' phase: Pending, Running, Succeeded, Failed or Unknown.")
    ready = serializers.BooleanField()
    terminating = serializers.BooleanField()
    reason = serializers.CharField(allow_blank=True, help_text="Why it is not ready, or how it ended.")
    started_at = serializers.DateTimeField(allow_null=True)
    requests = serializers.DictField(child=serializers.CharField(), help_text="The resource requests of the pod.")


class _PlacedNodes(views.NodeKindView):
    def render(self, rows: list[Node]) -> list[dict[str, Any]]:
        """Add the requests on each node, and its matching flavors."""
        requested = _requested([cluster.pk for cluster in self.reach.clusters], rows)
        flavors: dict[int, list[tuple[str, dict[str, str]]]] = defaultdict(list)
        known = ResourceFlavor.objects.filter(self.reach.rows())
        for cluster, name, labels in known.values_list("cluster_id", "name", "node_labels"):
            flavors[cluster].append((name, labels))
        return [
            node
            | {
                "requested": format_amounts(requested[row.cluster_id, row.name]),
                "flavors": [
                    name
                    for name, labels in flavors[row.cluster_id]
                    if matches_node_selector(labels, {HOSTNAME_LABEL: row.name} | row.labels)
                ],
            }
            for row, node in zip(rows, super().render(rows), strict=True)
        ]


class NodeListView(_PlacedNodes, views.NodeListView):
    """`nodes/`."""

    serializer_class = PlacedNodeSerializer

    @extend_schema(responses=PlacedNodeSerializer(many=True))
    def get(self, request: Request) -> Response:
        """List the nodes, by name."""
        return super().get(request)


class NodeView(_PlacedNodes, operation_views.NodeOperationView):
    """`nodes/{name}/`."""

    serializer_class = PlacedNodeDetailSerializer

    @extend_schema(responses=PlacedNodeDetailSerializer)
    def get(self, request: Request, name: str) -> Response:
        """Return a node with its devices."""
        return super().get(request, name)

    @extend_schema(request=operation_views.CloseSerializer, responses=PlacedNodeDetailSerializer)
    def patch(self, request: Request, name: str) -> Response:
        """Cordon, drain or uncordon a node. Draining evicts the workloads placed there; they are queued again and start
        elsewhere.
        """
        return super().patch(request, name)


class NodePodsView(ClusterView):
    """`nodes/{name}/pods/`."""

    serializer_class = NodePodSerializer
    queryset = Pod.objects.none()
    keyset = ("namespace", "name", "id")

    @extend_schema(responses=NodePodSerializer(many=True))
    def get(self, request: Request, name: str) -> Response:
        """List the pods of workloads that are on a node now, in the namespaces that the user may see."""
        if not Node.objects.filter(cluster_id=self.cluster.pk, name=name).exists():
            raise self.missing("Node", name)
        pods = Pod.objects.filter(workload__cluster=self.cluster, node_name=name, phase__in=_LIVING)
        namespaces = self.access.visible_namespaces()
        if namespaces is not None:
            pods = pods.filter(namespace__in=namespaces)
        columns = ("id", "workload_id", "workload__name", *_POD_COLUMNS)
        page = self.paginate_queryset(pods.values(*columns)) or []
        requests = _requests_of({row["workload_id"] for row in page})
        return self.get_paginated_response([_pod_json(row, requests) for row in page])


def _requested(cluster_ids: list[int], rows: list[Node]) -> dict[tuple[int, str], dict[str, int]]:
    """(cluster, node) -> resource -> amount in base units."""
    found = {(row.cluster_id, row.name): dict(row.foreign_usage) for row in rows}
    names = list({row.name for row in rows})
    with connection.cursor() as cursor:
        cursor.execute(_REQUESTED, [PODS, cluster_ids, names, list(_LIVING)])
        for cluster, node, resource, amount in cursor.fetchall():
            held = found.get((cluster, node))  # None: a node of the same name in another cluster
            if held is not None:
                held[resource] = held.get(resource, 0) + amount
    return found


def _requests_of(workloads: set[int]) -> dict[tuple[int, str], dict[str, str]]:
    rows = PodSet.objects.filter(workload__in=workloads).values_list("workload_id", "name", "requests")
    return {(workload, name): format_amounts(requests) for workload, name, requests in rows}


def _pod_json(row: dict[str, Any], requests: dict[tuple[int, str], dict[str, str]]) -> dict[str, Any]:
    asked = requests.get((row["workload_id"], row["pod_set"]), {})
    return {column: row[column] for column in _POD_COLUMNS} | {"workload": row["workload__name"], "requests": asked}
