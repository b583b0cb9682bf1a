"""Operations on hardware: cordon, drain, drift and measured use."""

from collections.abc import Mapping
from datetime import timedelta
from operator import itemgetter
from typing import Any

from django.utils import timezone
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.exceptions import PermissionDenied
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.api.fields import TrueOrFalse
from accounts.api.scope import ClusterView
from accounts.api.whole_list import WholeList
from accounts.services.reach import Names
from foundation.time_series import Resolution
from gpus.api.reads import Drift, device_samples, drifts, latest_samples
from gpus.api.serializers import DeviceSerializer, NodeDetailSerializer, Shape
from gpus.api.views import DeviceView, NodeView
from gpus.models import Device, DeviceSample
from gpus.services.cordon import close_device, close_node

RESOLUTIONS = {"raw": Resolution.RAW, "5m": Resolution.MINUTES, "1h": Resolution.HOUR}
_MAX_HOURS = 90 * 24


class CloseSerializer(Shape):
    """Whether a node or a device is cordoned, and whether it is being drained; omitted fields keep their values."""

    cordoned = TrueOrFalse(required=False)
    draining = TrueOrFalse(
        required=False, help_text="Draining also cordons, and uncordoning ends it; false ends the drain alone."
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """Require at least one of the fields, and reject contradictory ones."""
        if not attrs:
            raise serializers.ValidationError("Required value: set cordoned or draining.")
        if attrs.get("draining") and attrs.get("cordoned") is False:
            raise serializers.ValidationError({"cordoned": "Draining implies cordoned: omit cordoned."})
        return attrs


class DriftSerializer(Shape):
    """A difference between the cluster and the decisions."""

    cluster = serializers.CharField()
    kind = serializers.ChoiceField(
        [
            "malformed",
            "unknown-device",
            "misplaced",
            "other-device",
            "leftover",
            "overcommitted",
            "missing-device",
            "unhealthy-device",
            "inconsistent",
        ]
    )
    node = serializers.CharField()
    device = serializers.CharField(allow_blank=True)
    message = serializers.CharField()
    holders = serializers.ListField(child=serializers.CharField(), help_text="Empty if you may not see the holders.")


class DeviceUsageSerializer(Shape):
    """The measured use of a device now. A value that was not reported is null; a device without reports is not
    listed."""

    cluster = serializers.CharField()
    uuid = serializers.CharField()
    node = serializers.CharField()
    at = serializers.DateTimeField()
    memory_used_mib = serializers.FloatField(allow_null=True)
    utilization_percent = serializers.FloatField(allow_null=True)
    temperature_celsius = serializers.FloatField(allow_null=True)
    power_watts = serializers.FloatField(allow_null=True)


class DeviceSampleSerializer(Shape):
    """Mean and peak over a sampling interval; null: not reported."""

    at = serializers.DateTimeField()
    memory_used_mib = serializers.FloatField(allow_null=True)
    memory_used_mib_peak = serializers.FloatField(allow_null=True)
    utilization_percent = serializers.FloatField(allow_null=True)
    utilization_percent_peak = serializers.FloatField(allow_null=True)
    temperature_celsius = serializers.FloatField(allow_null=True)
    power_watts = serializers.FloatField(allow_null=True)


def _require_cluster_admin(view: ClusterView) -> None:
    if not view.access.is_cluster_admin:
        raise PermissionDenied("Only a cluster admin can cordon and uncordon nodes and devices.")


def _closing(request: Request) -> dict[str, Any]:
    serializer = CloseSerializer(data=request.data)
    serializer.is_valid(raise_exception=True)
    return dict(serializer.validated_data)


class NodeOperationView(NodeView):
    """`nodes/{name}/`."""

    @extend_schema(request=CloseSerializer, responses=NodeDetailSerializer)
    def patch(self, request: Request, name: str) -> Response:
        """Cordon, drain or uncordon a node. Draining evicts the workloads placed there; they are queued again and start
        elsewhere.
        """
        _require_cluster_admin(self)
        if not close_node(self.cluster.pk, name, **_closing(request)):
            raise self.missing("Node", name)
        return self.get(request, name)


class DeviceOperationView(DeviceView):
    """`devices/{uuid}/`."""

    @extend_schema(request=CloseSerializer, responses=DeviceSerializer)
    def patch(self, request: Request, uuid: str) -> Response:
        """Cordon, drain or uncordon a device."""
        _require_cluster_admin(self)
        if not close_device(self.cluster.pk, uuid, **_closing(request)):
            raise self.missing("Device", uuid)
        return self.get(request, uuid)


class DriftView(ClusterView):
    """`drift/`."""

    serializer_class = DriftSerializer
    spans_clusters = True
    pagination_class = WholeList
    queryset = Device.objects.none()

    @extend_schema(responses=DriftSerializer(many=True))
    def get(self, request: Request) -> Response:
        """List the differences between the cluster's state and the decisions."""
        namespaces = self.reach.namespaces()
        found = [_drift_json(drift, self.reach.name(drift.cluster_id), namespaces) for drift in drifts(*namespaces)]
        return self.get_paginated_response(sorted(found, key=itemgetter("cluster")))


def _drift_json(drift: Drift, cluster: str, namespaces: Mapping[int, Names]) -> dict[str, Any]:
    """Return a difference as JSON; if it concerns a namespace that the user may not see, without its holders, and with
    its kind in place of the message."""
    visible = namespaces[drift.cluster_id]
    shown = visible is None or drift.namespaces <= set(visible)
    return {
        "cluster": cluster,
        "kind": drift.kind,
        "node": drift.node,
        "device": drift.device,
        "message": drift.message if shown else drift.kind,
        "holders": list(drift.holders) if shown else [],
    }


class DeviceUsageView(ClusterView):
    """`device-usage/`."""

    serializer_class = DeviceUsageSerializer
    spans_clusters = True
    pagination_class = WholeList
    queryset = DeviceSample.objects.none()

    @extend_schema(responses=DeviceUsageSerializer(many=True))
    def get(self, request: Request) -> Response:
        """List the use of the devices as their monitors report it. An absent value is not 0."""
        return self.get_paginated_response(
            [
                {
                    "cluster": self.reach.name(sample.device.node.cluster_id),
                    "uuid": sample.device.uuid,
                    "node": sample.device.node.name,
                    "at": sample.at,
                    "memory_used_mib": sample.memory_used_mib,
                    "utilization_percent": sample.utilization_percent,
                    "temperature_celsius": sample.temperature_celsius,
                    "power_watts": sample.power_watts,
                }
                for sample in latest_samples([row.pk for row in self.reach.clusters], timezone.now())
            ]
        )


class DeviceSamplesView(ClusterView):
    """`devices/{uuid}/samples/`."""

    serializer_class = DeviceSampleSerializer
    pagination_class = WholeList
    queryset = DeviceSample.objects.none()

    @extend_schema(
        parameters=[
            OpenApiParameter("resolution", enum=list(RESOLUTIONS), default="raw"),
            OpenApiParameter("hours", float, default=1.0, description="How far back, in hours."),
        ],
        responses=DeviceSampleSerializer(many=True),
    )
    def get(self, request: Request, uuid: str) -> Response:
        """Return the use of a device over time."""
        query = SamplesQuery(data=request.query_params)
        query.is_valid(raise_exception=True)
        since = timezone.now() - timedelta(hours=query.validated_data["hours"])
        resolution = RESOLUTIONS[query.validated_data["resolution"]]
        return self.get_paginated_response(list(device_samples(self.cluster.pk, uuid, resolution, since)))


class SamplesQuery(Shape):
    """The requested samples and their period."""

    resolution = serializers.ChoiceField(list(RESOLUTIONS), required=False, default="raw")
    hours = serializers.FloatField(required=False, default=1.0, min_value=0.0, max_value=float(_MAX_HOURS))
