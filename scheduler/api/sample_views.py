"""The measured use of a workload's containers, next to their allocations."""

from datetime import timedelta
from typing import Any

from django.utils import timezone
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.api.scope import ClusterView
from accounts.api.whole_list import WholeList
from gpus.api.operation_views import RESOLUTIONS, SamplesQuery
from gpus.api.reads import container_samples
from gpus.models import ContainerSample
from queues.models import Pod, Workload


class ContainerSampleSerializer(serializers.Serializer[Any]):
    """Means over a sampling interval for one container on one device; null: not reported."""

    at = serializers.DateTimeField()
    pod_name = serializers.CharField()
    container = serializers.CharField()
    uuid = serializers.CharField()
    memory_used_mib = serializers.FloatField(allow_null=True)
    utilization_percent = serializers.FloatField(allow_null=True)
    last_kernel_seconds = serializers.FloatField(
        allow_null=True, help_text="Seconds since its last kernel, that is, how long it has been idle."
    )


class ContainerSamplesView(ClusterView):
    """`workloads/{namespace}/{name}/samples/`."""

    serializer_class = ContainerSampleSerializer
    pagination_class = WholeList
    queryset = ContainerSample.objects.none()

    @extend_schema(
        parameters=[
            OpenApiParameter("resolution", enum=list(RESOLUTIONS), default="raw"),
            OpenApiParameter("hours", float, default=1.0, description="How far back, in hours."),
        ],
        responses=ContainerSampleSerializer(many=True),
    )
    def get(self, request: Request, namespace: str, name: str) -> Response:
        """Return the use of the containers of the workload's pods over time."""
        self.require("view", "Workload", namespace)
        query = SamplesQuery(data=request.query_params)
        query.is_valid(raise_exception=True)
        workload = Workload.objects.filter(cluster=self.cluster, namespace=namespace, name=name).first()
        if workload is None:
            raise self.missing("Workload", namespace, name)
        since = timezone.now() - timedelta(hours=query.validated_data["hours"])
        resolution = RESOLUTIONS[query.validated_data["resolution"]]
        pods = list(Pod.objects.filter(workload=workload).values_list("name", flat=True))
        rows = container_samples(self.cluster.pk, namespace, resolution, since, pods)
        return self.get_paginated_response(list(rows))
