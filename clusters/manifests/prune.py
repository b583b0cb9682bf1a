"""Prune: removes objects that a set applied earlier and no longer contains."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

from accounts.models import Cluster, Namespace
from accounts.services import cluster_settings
from accounts.services.apply_result import Action, Applied
from gpus.models import Node
from gpus.services.node_manifests import delete_nodes
from queues.kinds import KINDS as CONFIGURATION_KINDS
from queues.models import Job, Workload
from queues.services.configuration import delete_objects
from queues.services.jobs import delete_jobs
from queues.services.workloads import delete_workloads

Identity = tuple[str, str]
_HELD = "holds quota, so it is kept: use prune with force to end it"


def prune_set(
    cluster: Cluster, applied_set: str, kept: Collection[Identity], *, actor: str, force: bool, now: datetime
) -> list[Applied]:
    """Remove the set's objects that are not among `kept` (kind, key), users of an object before the object itself.

    A workload with quota, and the job that owns it, stays with a warning unless `force` is given; with `force`, it is
    cancelled, and deleted when its pods have stopped. An object that is still in use is deleted once it is unused.
    """
    pruning = _Pruning(cluster, applied_set, kept, actor, force, now)
    return [
        *pruning.workloads(),
        *pruning.jobs(),
        *pruning.nodes(),
        *pruning.configuration(),
        *pruning.settings(),
    ]


class _Pruning:
    def __init__(
        self, cluster: Cluster, applied_set: str, kept: Collection[Identity], actor: str, force: bool, now: datetime
    ) -> None:
        self._cluster = cluster
        self._set = applied_set
        self._kept = kept
        self._actor = actor
        self._force = force
        self._now = now

    def workloads(self) -> list[Applied]:
        rows = [
            row
            for row in Workload.objects.filter(cluster=self._cluster, applied_set=self._set, job__isnull=True)
            if ("Workload", row.key) not in self._kept
        ]
        held = [row for row in rows if _holds_quota(row) and not self._force]
        gone = [row for row in rows if row not in held]
        delete_workloads(self._cluster, [(row.namespace, row.name) for row in gone], actor=self._actor, now=self._now)
        return [
            *(_applied("Workload", row.key, Action.PRUNED, self._ending(row)) for row in gone),
            *(_applied("Workload", row.key, Action.UNCHANGED, _HELD) for row in held),
        ]

    def jobs(self) -> list[Applied]:
        rows = [
            row
            for row in Job.objects.filter(cluster=self._cluster, applied_set=self._set)
            .select_related("group")
            .prefetch_related("workloads", "group__workloads")
            if (row.kind, row.key) not in self._kept and row.deletion_requested_at is None
        ]
        held = {
            row.pk for row in rows if not self._force and any(map(_holds_quota, (row.group or row).workloads.all()))
        }
        waiting = delete_jobs(
            self._cluster, [row for row in rows if row.pk not in held], actor=self._actor, now=self._now
        )
        return [
            _applied(row.kind, row.key, Action.UNCHANGED, _HELD)
            if row.pk in held
            else _applied(row.kind, row.key, Action.PRUNED, waiting.get(row.pk, ""))
            for row in rows
        ]

    def nodes(self) -> list[Applied]:
        rows = Node.objects.filter(cluster=self._cluster, applied_set=self._set).values_list("name", flat=True)
        names = [name for name in rows if ("Node", name) not in self._kept]
        gone = delete_nodes(self._cluster.pk, names, self._now)
        held = _waits("slices of its devices are held")
        return [_applied("Node", name, Action.PRUNED, "" if name in gone else held) for name in names]

    def configuration(self) -> list[Applied]:
        pruned: list[Applied] = []
        for kind in reversed(list(CONFIGURATION_KINDS.values())):
            rows = kind.model.objects.filter(
                cluster=self._cluster, applied_set=self._set, deletion_requested_at__isnull=True
            )
            if kind.model is Namespace:
                rows = rows.filter(in_cluster=False)  # the cluster has the others: they are deleted there
            keys = [row.key if kind.namespaced else row.name for row in rows]
            keys = [key for key in keys if (kind.name, key) not in self._kept]
            waiting = delete_objects(self._cluster, kind, keys, actor=self._actor, now=self._now) or {}
            pruned += [_applied(kind.name, key, Action.PRUNED, _waits(waiting.get(key, ""))) for key in keys]
        return pruned

    def settings(self) -> list[Applied]:
        pruned: list[Applied] = []
        for key, found in cluster_settings.device_plugin_objects(self._cluster).items():
            if found.get("applied_set") == self._set and ("ConfigMap", key) not in self._kept:
                cluster_settings.delete_device_plugin(self._cluster, key)
                pruned.append(_applied("ConfigMap", key, Action.PRUNED))
        row = Cluster.objects.get(pk=self._cluster.pk)
        if row.configuration_applied_set == self._set and ("Configuration", "") not in self._kept:
            cluster_settings.delete_configuration(self._cluster)
            pruned.append(_applied("Configuration", "", Action.PRUNED))
        return pruned

    @staticmethod
    def _ending(row: Workload) -> str:
        return "holds quota: it is deleted once its pods have stopped" if _holds_quota(row) else ""


def _holds_quota(row: Workload) -> bool:
    return row.quota_reserved_at is not None and row.finished_at is None


def _waits(users: str) -> str:
    return f"is used: {users}" if users else ""


def _applied(kind: str, key: str, action: Action, warning: str = "") -> Applied:
    namespace, _, name = key.rpartition("/")
    return Applied(kind, namespace, name, action, (warning,) if warning else ())
