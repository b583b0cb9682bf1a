"""Nodes, devices and slices over REST. Every user sees every device; the holders of slices are shown only to users with
permission."""

from typing import Any

from django.db.models import QuerySet
from django_filters import rest_framework as filters
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.api.names_filter import ChoicesFilter, NamesFilter
from accounts.api.scope import ClusterView
from gpus.api import serializers as shapes
from gpus.api.gpu_json import allocation_json, devices_json, nodes_json, slice_values
from gpus.models import AllocationSource, Device, DeviceAllocation, Node


class NodeFilter(filters.FilterSet):  # type: ignore[misc]  # the library is not typed
    """Filters of `nodes/`."""

    ready = filters.BooleanFilter()
    unschedulable = filters.BooleanFilter()
    search = filters.CharFilter(field_name="name", lookup_expr="icontains", help_text="A substring of the name.")

    class Meta:
        model = Node
        fields: list[str] = []


class DeviceFilter(filters.FilterSet):  # type: ignore[misc]  # the library is not typed
    """Filters of `devices/`."""

    node = NamesFilter(field_name="node__name")
    vendor = NamesFilter()
    type = NamesFilter()
    healthy = filters.BooleanFilter()
    cordoned = filters.BooleanFilter()

    class Meta:
        model = Device
        fields: list[str] = []


class DeviceAllocationFilter(filters.FilterSet):  # type: ignore[misc]  # the library is not typed
    """Filters of `device-allocations/`."""

    node = NamesFilter(field_name="node__name")
    device = NamesFilter(field_name="device_uuid")
    source = ChoicesFilter(choices=AllocationSource.choices)

    class Meta:
        model = DeviceAllocation
        fields: list[str] = []


class NodeKindView(ClusterView):
    """A view of nodes. A subclass adds data beyond their rows."""

    def render(self, rows: list[Node]) -> list[dict[str, Any]]:
        """Rows as JSON."""
        return nodes_json(rows, self.reach)


class NodeListView(NodeKindView):
    """`nodes/`."""

    serializer_class = shapes.NodeSerializer
    looks_back = True
    queryset = Node.objects.all()
    filterset_class = NodeFilter
    spans_clusters = True
    keyset = ("name",)

    @extend_schema(responses=shapes.NodeSerializer(many=True))
    def get(self, request: Request) -> Response:
        """List the nodes, by name."""
        nodes = self.filter_queryset(self.get_queryset().filter(self.reach.rows()))
        return self.get_paginated_response(self.render(self.paginate_queryset(nodes) or []))


class NodeView(NodeKindView):
    """`nodes/{name}/`."""

    serializer_class = shapes.NodeDetailSerializer
    looks_back = True
    queryset = Node.objects.all()

    @extend_schema(responses=shapes.NodeDetailSerializer)
    def get(self, request: Request, name: str) -> Response:
        """Return a node with its devices."""
        node = self.get_queryset().filter(cluster_id=self.cluster.pk, name=name).first()
        if node is None:
            raise self.missing("Node", name)
        devices = Device.objects.filter(node=node).select_related("node").order_by("index", "uuid")
        return Response(self.render([node])[0] | {"devices": devices_json(devices, self.reach)})


class DeviceListView(ClusterView):
    """`devices/`."""

    serializer_class = shapes.DeviceSerializer
    looks_back = True
    queryset = Device.objects.select_related("node")
    filterset_class = DeviceFilter
    spans_clusters = True

    @extend_schema(responses=shapes.DeviceSerializer(many=True))
    def get(self, request: Request) -> Response:
        """List the devices and their slices."""
        devices = self.filter_queryset(self.get_queryset().filter(self.reach.rows(cluster="node__cluster")))
        page = self.paginate_queryset(devices) or []
        return self.get_paginated_response(devices_json(page, self.reach))


class DeviceView(ClusterView):
    """`devices/{uuid}/`."""

    serializer_class = shapes.DeviceSerializer
    looks_back = True
    queryset = Device.objects.select_related("node")

    @extend_schema(responses=shapes.DeviceSerializer)
    def get(self, request: Request, uuid: str) -> Response:
        """Return a device and its slices."""
        device = self.get_queryset().filter(node__cluster_id=self.cluster.pk, uuid=uuid).first()
        if device is None:
            raise self.missing("Device", uuid)
        return Response(devices_json([device], self.reach)[0])


class DeviceAllocationListView(ClusterView):
    """`device-allocations/`."""

    serializer_class = shapes.DeviceAllocationSerializer
    looks_back = True
    queryset = DeviceAllocation.objects.all()
    filterset_class = DeviceAllocationFilter
    spans_clusters = True

    @extend_schema(responses=shapes.DeviceAllocationSerializer(many=True))
    def get(self, request: Request) -> Response:
        """List every slice that is held."""
        held: QuerySet[DeviceAllocation] = self.get_queryset().filter(self.reach.rows())
        page = self.paginate_queryset(slice_values(self.filter_queryset(held))) or []
        return self.get_paginated_response([allocation_json(row, self.reach) for row in page])
