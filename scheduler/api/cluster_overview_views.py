"""One entry per cluster: its leader, its health, its pending workloads, and its scarcest resource."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.api.scope import ClusterView
from accounts.models import Cluster, ClusterMode
from accounts.services.reach import EVERY_CLUSTER, Reach
from accounts.services.watcher_health import WatcherHealth, watchers_health
from scheduler.api.cluster_totals import (
    PushState,
    device_totals,
    push_states,
    scarcest_of,
    workload_totals,
)
from scheduler.live.published import leads
from scheduler.models import Lease

PUSH_LAG_SECONDS: Final = 60.0
"""A sweep pushes within seconds; a decision that is older than this is late."""

PROBLEMS: Final = {
    "NoScheduler": "No scheduler leads: nothing is decided.",
    "WatcherSilent": "The watcher does not answer: changes in the cluster go unnoticed.",
    "KueueDecides": "A Kueue also decides in the cluster: nothing is pushed there until it stops.",
    "OtherKueueweb": "Another installation of kueueweb pushes to the cluster: this one writes nothing meanwhile.",
    "PushLags": "Decisions have been waiting for more than a minute to be written to the cluster.",
    "PushRefused": "The cluster refuses decisions; the workloads' pages show the reasons.",
}
"""Reason -> its meaning. The reasons are stable; the page translates them."""


class ScarcestSerializer(serializers.Serializer[Any]):
    """The most used resource and flavor of all quotas; amounts in base units."""

    flavor = serializers.CharField()
    resource = serializers.CharField()
    nominal = serializers.IntegerField()
    used = serializers.IntegerField()


class ProblemSerializer(serializers.Serializer[Any]):
    """A problem of a cluster."""

    reason = serializers.ChoiceField(list(PROBLEMS))
    message = serializers.CharField()


class PushStateSerializer(serializers.Serializer[Any]):
    """Decisions that have not been written to the cluster yet."""

    unpushed = serializers.IntegerField()
    refused = serializers.IntegerField(help_text="Decisions that the cluster refused; they are retried.")
    lag_seconds = serializers.FloatField(help_text="The age of the oldest such decision, in seconds.")


class ClusterOverviewSerializer(serializers.Serializer[Any]):
    """A cluster at a glance. Shows only workloads and quotas that the user may see, but all devices."""

    cluster = serializers.CharField()
    mode = serializers.ChoiceField([mode.value for mode in ClusterMode])
    problems = ProblemSerializer(many=True, help_text="Empty if the cluster is healthy.")
    last_event_at = serializers.DateTimeField(allow_null=True, help_text="The time of the watcher's last event.")
    push = PushStateSerializer()
    pending = serializers.IntegerField()
    held = serializers.IntegerField(help_text="Pending workloads that are on hold.")
    reserving = serializers.IntegerField()
    admitted = serializers.IntegerField()
    nodes = serializers.IntegerField()
    devices = serializers.IntegerField()
    devices_in_use = serializers.IntegerField()
    scarcest = ScarcestSerializer(allow_null=True, help_text="null if there is no quota.")


@dataclass(frozen=True, slots=True)
class _Health:
    """The facts from which the problems of a cluster are derived."""

    cluster: Cluster
    lease: Lease | None
    watcher: WatcherHealth
    push: PushState

    def problems(self) -> Iterator[str]:
        """Yield the reasons of its problems, the worst first."""
        cluster = self.cluster
        if cluster.mode != ClusterMode.OBSERVE and not leads(self.lease):
            yield "NoScheduler"
        if not self.watcher.alive:
            yield "WatcherSilent"
        if cluster.mode == ClusterMode.SCHEDULE:
            yield from self._push_problems()

    def _push_problems(self) -> Iterator[str]:
        if self.cluster.kueue_is_alive:
            yield "KueueDecides"
        if self.cluster.lease_holder:
            yield "OtherKueueweb"
        if self.push.lag_seconds > PUSH_LAG_SECONDS:
            yield "PushLags"
        if self.push.refused:
            yield "PushRefused"


class ClusterOverviewListView(ClusterView):
    """`cluster-overviews/`."""

    serializer_class = ClusterOverviewSerializer
    queryset = Cluster.objects.all()
    keyset = ("name",)
    spans_clusters = True
    default_cluster = EVERY_CLUSTER

    @extend_schema(responses=ClusterOverviewSerializer(many=True))
    def get(self, request: Request) -> Response:
        """List the clusters in which the user has a role, with their health, workloads and scarcest resource."""
        asked = Cluster.objects.filter(pk__in=[cluster.pk for cluster in self.reach.clusters])
        page: Sequence[Cluster] = self.paginate_queryset(asked) or []
        return self.get_paginated_response(_overviews(Reach((row, self.reach.access(row.pk)) for row in page)))


def _overviews(reach: Reach) -> list[dict[str, Any]]:
    ids = [cluster.pk for cluster in reach.clusters]
    workloads, devices, scarcest = workload_totals(reach), device_totals(ids), scarcest_of(reach)
    pushes = push_states(ids)
    watchers = watchers_health([cluster.name for cluster in reach.clusters])
    leases = {lease.cluster_id: lease for lease in Lease.objects.filter(cluster__in=ids)}
    rows = []
    for cluster in reach.clusters:
        push, watcher = pushes.get(cluster.pk, PushState()), watchers[cluster.name]
        health = _Health(cluster, leases.get(cluster.pk), watcher, push)
        short = scarcest.get(cluster.pk)
        rows.append(
            {
                "cluster": cluster.name,
                "mode": cluster.mode,
                "problems": [{"reason": reason, "message": PROBLEMS[reason]} for reason in health.problems()],
                "last_event_at": watcher.last_event_at,
                "push": asdict(push),
                **workloads[cluster.pk].totals,
                **{name: devices[cluster.pk][name] for name in ("nodes", "devices", "devices_in_use")},
                "scarcest": None if short is None else asdict(short),
            }
        )
    return rows
