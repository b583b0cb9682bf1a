"""The state of a cluster's scheduler: its leader, the duration of its cycles, pending work, and refused decisions."""

from typing import Any, Final

from django.db import connection
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.api.scope import ClusterView
from accounts.models import AuditFinding, Cluster
from accounts.services.watcher_health import watcher_health
from queues.models import ServedObject
from scheduler.api.decision_views import CYCLE_FIELDS, SchedulingCycleSerializer
from scheduler.api.overview_views import WatcherHealthSerializer
from scheduler.live.published import leads
from scheduler.models import Lease, SchedulingCycle

WINDOW_SECONDS: Final = 3600
MOST_CYCLES: Final = 10_000
"""The statistics use at most this many of the newest cycles."""

_CYCLES: Final = """
    SELECT count(*), percentile_cont(0.5) WITHIN GROUP (ORDER BY duration_seconds),
        percentile_cont(0.9) WITHIN GROUP (ORDER BY duration_seconds), max(duration_seconds)
    FROM (
        SELECT duration_seconds, started_at FROM scheduler_schedulingcycle
        WHERE cluster_id = %(cluster_id)s ORDER BY id DESC LIMIT %(most)s
    ) AS newest
    WHERE started_at >= now() - make_interval(secs => %(window)s)
"""
_BACKLOG: Final = """
    SELECT notes.waiting, notes.oldest, unpushed.waiting, unpushed.oldest, refused.workloads
    FROM (
        SELECT count(*) AS waiting, min(noted_at) AS oldest FROM scheduler_change WHERE cluster_id = %(cluster_id)s
    ) AS notes, (
        SELECT count(*) AS waiting, min(updated_at) AS oldest FROM queues_workload
        WHERE cluster_id = %(cluster_id)s AND push_sequence > pushed_sequence
    ) AS unpushed, (
        SELECT count(*) AS workloads FROM queues_workload
        WHERE cluster_id = %(cluster_id)s AND push_error <> '' AND status <> 'Finished'
    ) AS refused
"""


class LeaderSerializer(serializers.Serializer[Any]):
    """The process that decides."""

    alive = serializers.BooleanField(help_text="Whether it renewed its lease in the last 15 seconds.")
    holder = serializers.CharField(allow_blank=True, help_text="Empty before the first leader.")
    epoch = serializers.IntegerField(help_text="Increases with each change of the leader.")
    acquired_at = serializers.DateTimeField(allow_null=True, help_text="When this epoch began.")
    renewed_at = serializers.DateTimeField(allow_null=True)


class CycleTimesSerializer(serializers.Serializer[Any]):
    """The cycles of the last hour that made a decision. Durations are in seconds, null if there were none."""

    window_seconds = serializers.IntegerField()
    count = serializers.IntegerField(help_text=f"At most {MOST_CYCLES}: the statistics use only the newest.")
    p50_seconds = serializers.FloatField(allow_null=True)
    p90_seconds = serializers.FloatField(allow_null=True)
    longest_seconds = serializers.FloatField(allow_null=True)
    last = SchedulingCycleSerializer(allow_null=True, help_text="The newest cycle, however old.")


class BacklogSerializer(serializers.Serializer[Any]):
    """Pending work of a cluster."""

    waiting = serializers.IntegerField()
    oldest_at = serializers.DateTimeField(allow_null=True, help_text="Null if nothing waits.")


class PushSerializer(BacklogSerializer):
    """Decisions that have not been written to the cluster yet."""

    refused = serializers.IntegerField(help_text="Workloads whose last decision the cluster refused.")
    held_off_by = serializers.CharField(
        allow_blank=True,
        help_text="The scheduler that prevents writes to the cluster: a Kueue, or another kueueweb. Empty: none.",
    )


class BrokenRuleSerializer(serializers.Serializer[Any]):
    """An accounting rule that is violated, as found by two audits in a row."""

    check = serializers.CharField()
    count = serializers.IntegerField()


class DiagnosticsSerializer(serializers.Serializer[Any]):
    """The state of the background processes."""

    leader = LeaderSerializer()
    cycles = CycleTimesSerializer()
    notes = BacklogSerializer(help_text="Changed rows that the scheduler has not read yet.")
    push = PushSerializer()
    watcher = WatcherHealthSerializer()
    served_object_problems = serializers.IntegerField(
        help_text=(
            "The number of Kueue's objects that differ between the cluster and kueueweb; "
            "`served-objects/problems/` lists them."
        )
    )
    broken_rules = BrokenRuleSerializer(many=True)


class DiagnosticsView(ClusterView):
    """`diagnostics/`."""

    serializer_class = DiagnosticsSerializer

    @extend_schema(responses=DiagnosticsSerializer)
    def get(self, request: Request) -> Response:
        """Return the state of the cluster's scheduler, push and watcher. Only users who may see the whole cluster may
        read it.
        """
        self.access.require("view", "SchedulingCycle")
        parameters = {"cluster_id": self.cluster.pk, "window": WINDOW_SECONDS, "most": MOST_CYCLES}
        with connection.cursor() as cursor:
            cursor.execute(_CYCLES, parameters)
            [times] = cursor.fetchall()
            cursor.execute(_BACKLOG, parameters)
            [(notes, oldest_note, unpushed, oldest_unpushed, refused)] = cursor.fetchall()
        watcher = watcher_health(self.cluster.name)
        return Response(
            {
                "leader": self._leader(),
                "cycles": {
                    "window_seconds": WINDOW_SECONDS,
                    **dict(zip(("count", "p50_seconds", "p90_seconds", "longest_seconds"), times, strict=True)),
                    "last": self._last_cycle(),
                },
                "notes": {"waiting": notes, "oldest_at": oldest_note},
                "push": {
                    "waiting": unpushed,
                    "oldest_at": oldest_unpushed,
                    "refused": refused,
                    "held_off_by": held_off_by(self.cluster),
                },
                "watcher": {"alive": watcher.alive, "last_event_at": watcher.last_event_at},
                "served_object_problems": (
                    ServedObject.objects.filter(cluster=self.cluster).exclude(problem="").count()
                ),
                "broken_rules": self._broken_rules(),
            }
        )

    def _leader(self) -> dict[str, Any]:
        lease = Lease.objects.filter(cluster=self.cluster).first()
        return {
            "alive": leads(lease),
            "holder": lease.holder if lease else "",
            "epoch": lease.epoch if lease else 0,
            "acquired_at": lease.acquired_at if lease else None,
            "renewed_at": lease.renewed_at if lease else None,
        }

    def _last_cycle(self) -> dict[str, Any] | None:
        row = SchedulingCycle.objects.filter(cluster=self.cluster).values(*CYCLE_FIELDS).first()
        if row is None:
            return None
        del row["cluster_id"]
        return {**row, "cluster": self.cluster.name}

    def _broken_rules(self) -> list[dict[str, Any]]:
        counts: dict[str, int] = {}
        found = AuditFinding.objects.filter(cluster=self.cluster, confirmed=True).order_by("check_name")
        for check in found.values_list("check_name", flat=True):
            counts[check] = counts.get(check, 0) + 1
        return [{"check": check, "count": count} for check, count in counts.items()]


def held_off_by(cluster: Cluster) -> str:
    """Return the other scheduler that keeps us from writing to the cluster; empty if there is none."""
    if cluster.is_mirrored or not cluster.kueue_is_alive:
        return cluster.lease_holder
    return cluster.kueue_holder or "Kueue"
