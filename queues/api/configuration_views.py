"""Configuration kinds over REST: lists and single objects."""

from typing import Any, ClassVar

from django.db.models import QuerySet
from rest_framework.mixins import ListModelMixin
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.api.scope import ClusterView
from accounts.models import Cluster, Namespace
from queues.api import configuration_serializers as shapes
from queues.api.filters import NamespaceFilter
from queues.models import (
    AdmissionCheck,
    LimitRange,
    PriorityClass,
    ResourceFlavor,
    ResourceQuota,
    RuntimeClass,
    Topology,
    WorkloadPriorityClass,
)
from queues.services.configuration_rows import RENDERERS


class KindView(ClusterView):
    """A view of one configuration kind; `queryset` names its model."""

    kind: ClassVar[str]

    def visible(self) -> QuerySet[Any]:
        """The rows that the user may see; raises `NotPermitted` for a kind that is none of theirs."""
        self.access.require("view", self.kind)
        return self.get_queryset().filter(cluster=self.cluster)

    def render(self, rows: list[Any]) -> list[dict[str, Any]]:
        """Rows as JSON."""
        return [RENDERERS[self.kind](row) for row in rows]


class KindListView(ListModelMixin, KindView):
    """All objects of a kind, by name."""

    keyset: tuple[str, ...] = ("name",)

    def get(self, request: Request) -> Response:
        """The objects of this kind that the user may see, by name."""
        page = self.paginate_queryset(self.filter_queryset(self.visible()))
        return self.get_paginated_response(self.render(page or []))


class KindDetailView(KindView):
    """One object of a kind."""

    filterset_class = None

    def get(self, request: Request, name: str, namespace: str = "") -> Response:
        """One object."""
        return Response(self.render([self.find(name, namespace)])[0])

    def find(self, name: str, namespace: str = "") -> Any:
        """The row; raises `NotFound` where there is none, or none for this user."""
        key = {"namespace": namespace, "name": name} if namespace else {"name": name}
        row = self.visible().filter(**key).first()
        if row is None:
            raise self.missing(self.kind, *key.values())
        return row


class _AdmissionChecks(KindView):
    kind = "AdmissionCheck"
    queryset = AdmissionCheck.objects.all()
    serializer_class = shapes.AdmissionCheckSerializer


class AdmissionCheckListView(_AdmissionChecks, KindListView):
    """The list of AdmissionChecks."""


class AdmissionCheckView(_AdmissionChecks, KindDetailView):
    """One AdmissionCheck."""


class _PriorityClasses(KindView):
    kind = "PriorityClass"
    queryset = PriorityClass.objects.all()
    serializer_class = shapes.PriorityClassSerializer


class PriorityClassListView(_PriorityClasses, KindListView):
    """The list of PriorityClasses."""


class PriorityClassView(_PriorityClasses, KindDetailView):
    """One PriorityClass."""


class _ResourceFlavors(KindView):
    kind = "ResourceFlavor"
    queryset = ResourceFlavor.objects.all()
    serializer_class = shapes.ResourceFlavorSerializer


class ResourceFlavorListView(_ResourceFlavors, KindListView):
    """The list of ResourceFlavors."""


class _Topologies(KindView):
    kind = "Topology"
    queryset = Topology.objects.all()
    serializer_class = shapes.TopologySerializer


class TopologyListView(_Topologies, KindListView):
    """The list of Topologies."""


class TopologyView(_Topologies, KindDetailView):
    """One Topology."""


class _WorkloadPriorityClasses(KindView):
    kind = "WorkloadPriorityClass"
    queryset = WorkloadPriorityClass.objects.all()
    serializer_class = shapes.WorkloadPriorityClassSerializer


class WorkloadPriorityClassListView(_WorkloadPriorityClasses, KindListView):
    """The list of WorkloadPriorityClasses."""


class WorkloadPriorityClassView(_WorkloadPriorityClasses, KindDetailView):
    """One WorkloadPriorityClass."""


class _Namespaces(KindView):
    kind = "Namespace"
    queryset = Namespace.objects.all()
    serializer_class = shapes.ObjectSerializer

    def visible(self) -> QuerySet[Any]:
        """The namespaces that the user is bound to."""
        rows = Namespace.objects.filter(cluster=self.cluster)
        bound = self.access.visible_namespaces()
        return rows if bound is None else rows.filter(name__in=bound)


class NamespaceListView(_Namespaces, KindListView):
    """The list of namespaces."""


class NamespaceView(_Namespaces, KindDetailView):
    """One namespace."""


class NamespacedKindView(KindView):
    """A view of a kind whose objects are in namespaces."""

    def visible(self) -> QuerySet[Any]:
        """The objects in the namespaces that the user is bound to."""
        rows = self.get_queryset().filter(cluster=self.cluster)
        bound = self.access.visible_namespaces()
        return rows if bound is None else rows.filter(namespace__in=bound)


class NamespacedKindListView(KindListView):
    """All objects of such a kind, by namespace and name."""

    keyset = ("namespace", "name")
    filterset_class = NamespaceFilter


class _ResourceQuotas(NamespacedKindView):
    kind = "ResourceQuota"
    queryset = ResourceQuota.objects.all()
    serializer_class = shapes.ResourceQuotaSerializer


class ResourceQuotaListView(_ResourceQuotas, NamespacedKindListView):
    """The list of ResourceQuotas."""


class ResourceQuotaView(_ResourceQuotas, KindDetailView):
    """One ResourceQuota."""


class _LimitRanges(NamespacedKindView):
    kind = "LimitRange"
    queryset = LimitRange.objects.all()
    serializer_class = shapes.LimitRangeSerializer


class LimitRangeListView(_LimitRanges, NamespacedKindListView):
    """The list of LimitRanges."""


class LimitRangeView(_LimitRanges, KindDetailView):
    """One LimitRange."""


class _RuntimeClasses(KindView):
    kind = "RuntimeClass"
    queryset = RuntimeClass.objects.all()
    serializer_class = shapes.RuntimeClassSerializer


class RuntimeClassListView(_RuntimeClasses, KindListView):
    """The list of RuntimeClasses."""


class RuntimeClassView(_RuntimeClasses, KindDetailView):
    """One RuntimeClass."""


class ClusterListView(ListModelMixin, ClusterView):
    """`clusters/`."""

    serializer_class = shapes.ClusterSerializer
    queryset = Cluster.objects.all()
    keyset = ("name",)

    def get(self, request: Request) -> Response:
        """The clusters."""
        page = self.paginate_queryset(self.get_queryset())
        return self.get_paginated_response([_cluster_json(row, self.access.sees_everything) for row in page or []])


class ClusterDetailView(ClusterView):
    """`clusters/{name}/`."""

    serializer_class = shapes.ClusterSerializer
    queryset = Cluster.objects.all()

    def get(self, request: Request, name: str) -> Response:
        """One cluster."""
        row = Cluster.objects.filter(name=name).first()
        if row is None:
            raise self.missing("Cluster", name)
        return Response(_cluster_json(row, self.access.sees_everything))


def _cluster_json(row: Cluster, whole: bool) -> dict[str, Any]:
    return {
        "name": row.name,
        "mode": row.mode,
        "server_url": row.server_url if whole else "",
        "configuration": row.configuration if whole else {},
        "created_at": row.created_at,
    }
