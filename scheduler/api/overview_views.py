"""The overview page: whether the scheduler is alive, the totals, and why pending workloads wait."""

import time
from typing import Any, Final

from django.db import connection
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.api.scope import ClusterView
from accounts.kinds.frameworks import disabled_frameworks
from accounts.services.watcher_health import watcher_health
from foundation.heartbeat import SILENT_SECONDS, WRONG_CLOCK_SECONDS, Role, role_health
from scheduler.api.cluster_totals import device_totals, workload_totals
from scheduler.live.published import leads
from scheduler.models import Lease

_FINISHED: Final = """
    SELECT count(*) FROM queues_workload
    WHERE cluster_id = %(cluster_id)s AND status = 'Finished' AND finished_at >= now() - interval '24 hours'
        AND parent_name = ''
        AND (%(namespaces)s::text[] IS NULL OR namespace = ANY (%(namespaces)s))
"""


class TotalsSerializer(serializers.Serializer[Any]):
    """Counts of the workloads that the user may see, and of all devices of the cluster."""

    pending = serializers.IntegerField()
    held = serializers.IntegerField(help_text="Pending workloads that are on hold.")
    reserving = serializers.IntegerField()
    admitted = serializers.IntegerField()
    finished = serializers.IntegerField(help_text="Workloads that finished in the last 24 hours.")
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
    """The leader of a cluster."""

    alive = serializers.BooleanField()
    holder = serializers.CharField(allow_blank=True)
    epoch = serializers.IntegerField()
    heartbeat_at = serializers.DateTimeField(
        allow_null=True, help_text="When its last scheduling run ended successfully."
    )


class WatcherHealthSerializer(serializers.Serializer[Any]):
    """Whether the watcher receives the cluster's events."""

    alive = serializers.BooleanField()
    last_event_at = serializers.DateTimeField(allow_null=True)


class JobKindsSerializer(serializers.Serializer[Any]):
    """Kinds of jobs that need an operator."""

    served = serializers.ListField(child=serializers.CharField(), help_text="Kinds whose operator is installed.")
    missing = serializers.ListField(
        child=serializers.CharField(),
        help_text="Kinds that the cluster does not serve: their jobs start once it does.",
    )
    disabled = serializers.ListField(
        child=serializers.CharField(),
        help_text=(
            "Kinds that the Configuration's integrations.frameworks leaves out, by their names there: they are "
            "not managed."
        ),
    )


class RoleHealthSerializer(serializers.Serializer[Any]):
    """The processes of one role. `web`, the process that answers, is listed while its clock is wrong."""

    role = serializers.ChoiceField(choices=[(role.value, role.value) for role in Role])
    cluster = serializers.CharField(allow_blank=True, help_text="Empty: all clusters.")
    alive = serializers.BooleanField(help_text=f"Whether one of them sent a heartbeat in the last {SILENT_SECONDS} s.")
    last_seen_at = serializers.DateTimeField(allow_null=True)
    clock_ahead_seconds = serializers.IntegerField(
        allow_null=True,
        help_text=(
            f"How far its clock is ahead of that of Redis, negative if it is behind: beyond {WRONG_CLOCK_SECONDS:g} s "
            "it is wrong. null if it is not known."
        ),
    )


class KueueHealthSerializer(serializers.Serializer[Any]):
    """A Kueue controller that decides in the cluster."""

    alive = serializers.BooleanField(
        help_text="In mode schedule, nothing is pushed to the cluster while this Kueue is alive."
    )
    holder = serializers.CharField(allow_blank=True)
    renewed_at = serializers.DateTimeField(allow_null=True)


class HealthSerializer(serializers.Serializer[Any]):
    """The health of the background processes."""

    scheduler = SchedulerHealthSerializer()
    watcher = WatcherHealthSerializer()
    roles = RoleHealthSerializer(many=True)
    job_kinds = JobKindsSerializer()
    other_kueueweb = serializers.CharField(
        allow_blank=True,
        help_text="Another installation of kueueweb that pushes to the cluster. This installation writes nothing "
        "to the cluster until the other one stops.",
    )
    kueue = KueueHealthSerializer()


class ReasonCountSerializer(serializers.Serializer[Any]):
    """The number of workloads that wait for a reason."""

    reason = serializers.CharField(help_text="Empty: not evaluated yet.")
    count = serializers.IntegerField()


class OverviewSerializer(serializers.Serializer[Any]):
    """The numbers of the overview page."""

    totals = TotalsSerializer()
    health = HealthSerializer()
    pending_by_reason = ReasonCountSerializer(many=True)


class OverviewView(ClusterView):
    """`overview/`."""

    serializer_class = OverviewSerializer

    @extend_schema(responses=OverviewSerializer)
    def get(self, request: Request) -> Response:
        """Return the numbers of the overview page."""
        namespaces = self.access.visible_namespaces()
        parameters = {
            "cluster_id": self.cluster.pk,
            "namespaces": None if namespaces is None else list(namespaces),
        }
        workloads = workload_totals(self.reach)[self.cluster.pk]
        devices = device_totals([self.cluster.pk])[self.cluster.pk]
        with connection.cursor() as cursor:
            cursor.execute(_FINISHED, parameters)
            [finished] = cursor.fetchone()
        totals = {**workloads.totals, "finished": finished, **devices}
        reasons = [{"reason": reason, "count": count} for reason, count in workloads.reasons()]
        return Response({"totals": totals, "health": self._health(), "pending_by_reason": reasons})

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
            "roles": [
                {
                    "role": found.role,
                    "cluster": found.cluster,
                    "alive": found.alive,
                    "last_seen_at": found.last_seen_at,
                    "clock_ahead_seconds": None
                    if found.clock_ahead_seconds is None
                    else round(found.clock_ahead_seconds),
                }
                for found in role_health([self.cluster.name], time.time())
            ],
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
        """Only users who may see everything see its name."""
        holder = self.cluster.lease_holder
        return holder if self.access.sees_everything or not holder else "another installation"
