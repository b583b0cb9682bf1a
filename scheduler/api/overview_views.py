"""The first page: is the scheduler alive, how much is there, and why does what waits wait?"""

from typing import Any, Final

from django.db import connection
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.api.scope import ClusterView
from accounts.kinds.frameworks import disabled_frameworks
from accounts.services.watcher_health import watcher_health
from scheduler.live.published import leads
from scheduler.models import Lease

_WORKLOADS: Final = """
    SELECT status, reason, active, count(*)
    FROM queues_workload
    WHERE cluster_id = %(cluster_id)s AND status <> 'Finished'
        AND (%(namespaces)s::text[] IS NULL OR namespace = ANY (%(namespaces)s))
    GROUP BY 1, 2, 3
"""
_FINISHED: Final = """
    SELECT count(*) FROM queues_workload
    WHERE cluster_id = %(cluster_id)s AND status = 'Finished' AND finished_at >= now() - interval '24 hours'
        AND (%(namespaces)s::text[] IS NULL OR namespace = ANY (%(namespaces)s))
"""
_DEVICES: Final = """
    SELECT count(DISTINCT node.id), count(device.id),
        count(device.id) FILTER (WHERE device.used_slots + device.external_slots > 0),
        coalesce(sum(device.slots), 0)::bigint, coalesce(sum(device.used_slots + device.external_slots), 0)::bigint,
        coalesce(sum(device.memory_mib), 0)::bigint,
        coalesce(sum(device.used_memory_mib + device.external_memory_mib), 0)::bigint,
        coalesce(sum(device.cores_percent), 0)::bigint,
        coalesce(sum(device.used_cores_percent + device.external_cores_percent), 0)::bigint
    FROM gpus_node AS node LEFT JOIN gpus_device AS device ON device.node_id = node.id
    WHERE node.cluster_id = %(cluster_id)s
"""
_DEVICE_TOTALS: Final = (
    "nodes", "devices", "devices_in_use", "slots", "used_slots", "memory_mib", "used_memory_mib", "cores_percent",
    "used_cores_percent",
)  # fmt: skip


class TotalsSerializer(serializers.Serializer[Any]):
    """Counts of the workloads that the user may see, and of all devices of the cluster."""

    pending = serializers.IntegerField()
    held = serializers.IntegerField(help_text="Waiting, and held back by their users.")
    reserving = serializers.IntegerField()
    admitted = serializers.IntegerField()
    finished = serializers.IntegerField(help_text="In the last 24 hours.")
    nodes = serializers.IntegerField()
    devices = serializers.IntegerField()
    devices_in_use = serializers.IntegerField()
    slots = serializers.IntegerField()
    used_slots = serializers.IntegerField()
    memory_mib = serializers.IntegerField()
    used_memory_mib = serializers.IntegerField()
    cores_percent = serializers.IntegerField()
    used_cores_percent = serializers.IntegerField()


class SchedulerHealthSerializer(serializers.Serializer[Any]):
    """Who leads."""

    alive = serializers.BooleanField()
    holder = serializers.CharField(allow_blank=True)
    epoch = serializers.IntegerField()
    heartbeat_at = serializers.DateTimeField(allow_null=True)


class WatcherHealthSerializer(serializers.Serializer[Any]):
    """Whether the cluster is heard."""

    alive = serializers.BooleanField()
    last_event_at = serializers.DateTimeField(allow_null=True)


class JobKindsSerializer(serializers.Serializer[Any]):
    """Kinds of jobs that operators bring."""

    served = serializers.ListField(child=serializers.CharField(), help_text="Those whose operator the cluster has.")
    missing = serializers.ListField(
        child=serializers.CharField(), help_text="Those that it does not serve: their jobs start when it does."
    )
    disabled = serializers.ListField(
        child=serializers.CharField(),
        help_text="Those that integrations.frameworks of the Configuration leaves out, as it names them: not managed.",
    )


class KueueHealthSerializer(serializers.Serializer[Any]):
    """A Kueue that decides in the cluster."""

    alive = serializers.BooleanField(help_text="In mode schedule: nothing is pushed to the cluster while it is.")
    holder = serializers.CharField(allow_blank=True)
    renewed_at = serializers.DateTimeField(allow_null=True)


class HealthSerializer(serializers.Serializer[Any]):
    """The parts that work behind the screen."""

    scheduler = SchedulerHealthSerializer()
    watcher = WatcherHealthSerializer()
    job_kinds = JobKindsSerializer()
    other_kueueweb = serializers.CharField(
        allow_blank=True,
        help_text="Another installation of kueueweb that pushes to the cluster: this one tells it nothing meanwhile.",
    )
    kueue = KueueHealthSerializer()


class ReasonCountSerializer(serializers.Serializer[Any]):
    """How many workloads wait for a reason."""

    reason = serializers.CharField(help_text="Empty: not looked at yet.")
    count = serializers.IntegerField()


class OverviewSerializer(serializers.Serializer[Any]):
    """The first page's numbers."""

    totals = TotalsSerializer()
    health = HealthSerializer()
    pending_by_reason = ReasonCountSerializer(many=True)


class OverviewView(ClusterView):
    """`overview/`."""

    serializer_class = OverviewSerializer

    @extend_schema(responses=OverviewSerializer)
    def get(self, request: Request) -> Response:
        """The numbers of the first page, in four queries."""
        namespaces = self.access.visible_namespaces()
        parameters = {
            "cluster_id": self.cluster.pk,
            "namespaces": None if namespaces is None else list(namespaces),
        }
        with connection.cursor() as cursor:
            cursor.execute(_WORKLOADS, parameters)
            workloads = cursor.fetchall()
            cursor.execute(_FINISHED, parameters)
            [finished] = cursor.fetchone()
            cursor.execute(_DEVICES, parameters)
            devices = dict(zip(_DEVICE_TOTALS, cursor.fetchone(), strict=True))
        totals = {**_workload_totals(workloads), "finished": finished, **devices}
        return Response({"totals": totals, "health": self._health(), "pending_by_reason": _reasons(workloads)})

    def _health(self) -> dict[str, Any]:
        lease = Lease.objects.filter(cluster=self.cluster).first()
        watcher = watcher_health(self.cluster.name)
        return {
            "scheduler": {
                "alive": leads(lease),
                "holder": lease.holder if lease and self.access.sees_everything else "",
                "epoch": lease.epoch if lease else 0,
                "heartbeat_at": lease.renewed_at if lease else None,
            },
            "watcher": {"alive": watcher.alive, "last_event_at": watcher.last_event_at},
            "job_kinds": {
                "served": self.cluster.served_kinds,
                "missing": self.cluster.missing_kinds,
                "disabled": disabled_frameworks(self.cluster.configuration),
            },
            "kueue": {
                "alive": self.cluster.kueue_is_alive,
                "holder": self.cluster.kueue_holder if self.access.sees_everything else "",
                "renewed_at": self.cluster.kueue_renewed_at,
            },
            "other_kueueweb": self._other_kueueweb(),
        }

    def _other_kueueweb(self) -> str:
        """Its name is for those who may see everything."""
        holder = self.cluster.lease_holder
        return holder if self.access.sees_everything or not holder else "another installation"


def _workload_totals(rows: list[tuple[str, str, bool, int]]) -> dict[str, int]:
    totals = dict.fromkeys(("pending", "held", "reserving", "admitted"), 0)
    for status, _, active, count in rows:
        if status in {"QuotaReserved", "Admitted"}:
            totals["reserving"] += count
            totals["admitted"] += count if status == "Admitted" else 0
        elif active:
            totals["pending"] += count
        else:
            totals["held"] += count
    return totals


def _reasons(rows: list[tuple[str, str, bool, int]]) -> list[dict[str, Any]]:
    reasons: dict[str, int] = {}
    for status, reason, _, count in rows:
        if status in {"Pending", "Evicted"}:
            reasons[reason] = reasons.get(reason, 0) + count
    ordered = sorted(reasons.items(), key=lambda item: (-item[1], item[0]))
    return [{"reason": reason, "count": count} for reason, count in ordered]
