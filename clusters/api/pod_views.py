"""The pods of a workload, and their logs."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from http import HTTPStatus
from typing import Any, Final

from django.http import HttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.api.scope import ClusterView
from clusters.api_errors import ClusterError, ClusterUnreachable
from clusters.pod_logs import LogQuery, read_log
from foundation.exceptions import InvalidRequest, KueuewebError, NotFound, Unavailable
from gpus.models import AllocationSource, DeviceAllocation
from queues.models import Pod, Workload

FOLLOW_HEADER: Final = "X-Kueueweb-Follow"
"""The header of an answer that the web process replaces by the log, streamed as it comes (kueueweb.web.following)."""
MAX_TAIL: Final = 100_000
_ENDED: Final = ("Succeeded", "Failed")
_COLUMNS: Final = (
    "name", "uid", "pod_set", "replica", "phase", "ready", "terminating", "reason", "message", "restarts", "node_name",
    "containers", "started_at", "finished_at",
)  # fmt: skip


class PodDeviceSerializer(serializers.Serializer[Any]):
    """A slice that was decided for a container of a pod."""

    uuid = serializers.CharField()
    container = serializers.CharField(allow_blank=True)
    memory_mib = serializers.IntegerField()
    cores_percent = serializers.IntegerField()
    slots = serializers.IntegerField()


class PodSerializer(serializers.Serializer[Any]):
    """A pod as the cluster reports it."""

    name = serializers.CharField()
    uid = serializers.CharField()
    pod_set = serializers.CharField(allow_blank=True)
    replica = serializers.IntegerField()
    phase = serializers.CharField(help_text="Kubernetes' phase: Pending, Running, Succeeded, Failed or Unknown.")
    ready = serializers.BooleanField()
    terminating = serializers.BooleanField()
    reason = serializers.CharField(allow_blank=True, help_text="Why it is not ready, or how it ended.")
    message = serializers.CharField(allow_blank=True, help_text="The cluster's message.")
    restarts = serializers.IntegerField()
    node = serializers.CharField(allow_blank=True)
    containers = serializers.ListField(
        child=serializers.CharField(), help_text="The containers, init containers first."
    )
    started_at = serializers.DateTimeField(allow_null=True)
    finished_at = serializers.DateTimeField(allow_null=True)
    devices = PodDeviceSerializer(many=True)


class LogQuerySerializer(serializers.Serializer[Any]):
    """The options of a log request."""

    container = serializers.CharField(default="", allow_blank=True, max_length=63)
    follow = serializers.BooleanField(default=False)
    tail = serializers.IntegerField(default=None, allow_null=True, min_value=0, max_value=MAX_TAIL)
    since = serializers.DateTimeField(default=None, allow_null=True)
    timestamps = serializers.BooleanField(default=False)
    previous = serializers.BooleanField(default=False)


class WorkloadPodsView(ClusterView):
    """`workloads/{namespace}/{name}/pods/`."""

    serializer_class = PodSerializer
    queryset = Pod.objects.none()
    keyset = ("pod_set", "replica", "id")

    @extend_schema(responses=PodSerializer(many=True))
    def get(self, request: Request, namespace: str, name: str) -> Response:
        """List the workload's pods: where they run, why they do not, and the devices that were decided for them."""
        self.require("view", "Workload", namespace, name)
        workload = _workload(self, namespace, name)
        page = self.paginate_queryset(Pod.objects.filter(workload=workload).values("id", *_COLUMNS)) or []
        devices = _devices(workload, page)
        return self.get_paginated_response([_pod_json(row, devices) for row in page])


class PodLogView(ClusterView):
    """`workloads/{namespace}/{name}/pods/{pod}/log/`."""

    serializer_class = LogQuerySerializer

    @extend_schema(
        parameters=[
            OpenApiParameter("container", str, description="Required if the pod has more than one container."),
            OpenApiParameter(
                "follow", bool, description="Follow the log until the container ends, for at most ten minutes."
            ),
            OpenApiParameter("tail", int, description=f"Only this many of the last lines, at most {MAX_TAIL}."),
            OpenApiParameter("since", OpenApiTypes.DATETIME, description="Only lines from this time on."),
            OpenApiParameter("timestamps", bool, description="Begin each line with its time."),
            OpenApiParameter("previous", bool, description="The log of the container before its last restart."),
        ],
        responses={(200, "text/plain"): OpenApiTypes.STR},
    )
    def get(self, request: Request, namespace: str, name: str, pod: str) -> HttpResponse:
        """Return the log of a pod's container, or the cluster's message if there is none; at most 8 MiB."""
        self.require("view", "Workload", namespace, name)
        asked = LogQuerySerializer(data=request.query_params)
        asked.is_valid(raise_exception=True)
        if not Pod.objects.filter(workload=_workload(self, namespace, name), name=pod).exists():
            raise self.missing("Pod", namespace, pod)
        values = asked.validated_data
        since = values["since"]
        query = LogQuery(
            user=request.user.pk or 0,
            cluster=self.cluster.name,
            namespace=namespace,
            pod=pod,
            container=values["container"],
            tail=values["tail"],
            since=since.isoformat() if since else "",
            timestamps=values["timestamps"],
            previous=values["previous"],
        )
        answer = HttpResponse(content_type="text/plain; charset=utf-8")
        if values["follow"]:
            answer[FOLLOW_HEADER] = query.encoded()
            return answer
        try:
            answer.content = read_log(self.cluster, query)
        except ClusterError as error:
            raise refused(error, self.cluster.name) from error
        return answer


def refused(error: ClusterError, cluster: str) -> KueuewebError:
    """Return the API server's refusal of a log as an API error."""
    if isinstance(error, ClusterUnreachable):
        return Unavailable(f"Cluster {cluster} does not answer. Try again in a moment.")
    if error.status == HTTPStatus.BAD_REQUEST:
        return InvalidRequest(error.message)
    if error.not_found:
        return NotFound(f"Cluster {cluster} no longer has this log: {error.message}")
    return Unavailable(f"Cluster {cluster} returned no log: {error.message}")


def _workload(view: ClusterView, namespace: str, name: str) -> int:
    found = Workload.objects.filter(cluster=view.cluster, namespace=namespace, name=name)
    key = found.values_list("pk", flat=True).first()
    if key is None:
        raise view.missing("Workload", namespace, name)
    return key


def _devices(workload: int, pods: Iterable[Mapping[str, Any]]) -> Mapping[tuple[str, int], list[dict[str, Any]]]:
    """Return the decided slices of these pods' replicas."""
    replicas = {row["replica"] for row in pods}
    rows = DeviceAllocation.objects.filter(
        workload_id=workload, source=AllocationSource.DECIDED, replica__in=replicas
    ).order_by("container_index", "device_uuid")
    found: dict[tuple[str, int], list[dict[str, Any]]] = defaultdict(list)
    row: Mapping[str, Any]
    for row in rows.values("pod_set", "replica", "device_uuid", "container", "memory_mib", "cores_percent", "slots"):
        slice_ = {name: row[name] for name in ("container", "memory_mib", "cores_percent", "slots")}
        found[row["pod_set"], row["replica"]].append({"uuid": row["device_uuid"], **slice_})
    return found


def _pod_json(row: dict[str, Any], devices: Mapping[tuple[str, int], list[dict[str, Any]]]) -> dict[str, Any]:
    values = {column: row[column] for column in _COLUMNS if column != "node_name"}
    holds = row["phase"] not in _ENDED  # another pod has taken its place, or will
    held = devices.get((row["pod_set"], row["replica"]), []) if holds else []
    return {**values, "node": row["node_name"], "devices": held}
