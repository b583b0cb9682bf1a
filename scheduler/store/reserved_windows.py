"""The windows of reservations and the workloads in them, computed from rows.

A workload uses a node if a pod of it is bound there and has not ended, or if it holds quota and kueueweb chose the
node.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from itertools import islice
from typing import Any, Final

from django.db.models import F, Q

from accounts.models import Cluster
from gpus.models import Node
from queues.kinds import KINDS
from queues.models import Pod, PodSet, Reservation, Workload
from scheduling.model.selectors import HOSTNAME_LABEL
from scheduling.model.vocabulary import WorkloadStatus
from scheduling.reservations.reservation import Candidate, Window, WindowState
from scheduling.reservations.reservation import Reservation as ReservationRule
from scheduling.reservations.reserved_nodes import CLOSING_EFFECTS, Claimant

MAX_WINDOWS: Final = 1_000
_ENDED_PHASES: Final = ("Succeeded", "Failed")


@dataclass(slots=True)
class NodeUser:
    """A workload that uses reserved nodes. `ends_at`: when its time limit ends at the latest; None without one.
    `chosen`: those of the nodes that kueueweb chose, from which the start of a window may evict it."""

    namespace: str
    name: str
    claimant: Claimant
    ends_at: datetime | None
    nodes: set[str] = field(default_factory=set)
    chosen: set[str] = field(default_factory=set)

    @property
    def cluster_queue(self) -> str:
        return self.claimant.cluster_queue


@dataclass(frozen=True, slots=True)
class ShownWindow:
    """A window with its state, its present nodes, and the workloads there that it does not allow."""

    rule: ReservationRule
    comment: str
    window: Window
    state: WindowState
    nodes: tuple[str, ...]
    busy: tuple[NodeUser, ...] = ()


def windows_between(cluster: Cluster, start: float, end: float, now: float) -> tuple[list[ShownWindow], bool]:
    """Return the windows that overlap the time from `start` to `end`, by their starts, and whether there are more than
    `MAX_WINDOWS`. The number of queries is fixed."""
    rows = Reservation.objects.filter(cluster=cluster)
    rules = [(row, KINDS["Reservation"].core_value(row)) for row in rows.order_by("name")]
    found = [
        (window, row, rule)
        for row, rule in rules
        for window in islice(rule.windows(start, end), MAX_WINDOWS + 1)
        if not (row.deletion_requested_at)
    ]
    found.sort(key=lambda each: (each[0].starts_at, each[2].name))
    nodes = nodes_of(cluster, [rule for _, rule in rules])
    present = {rule.name for window, _, rule in found if window.starts_at <= now < window.ends_at}
    users = users_of(cluster, {name for each in present for name in nodes[each]})
    shown = [
        _shown(window, row.comment, rule, nodes[rule.name], users, now) for window, row, rule in found[:MAX_WINDOWS]
    ]
    return shown, len(found) > MAX_WINDOWS


def _shown(
    window: Window,
    comment: str,
    rule: ReservationRule,
    nodes: tuple[str, ...],
    users: Iterable[NodeUser],
    now: float,
) -> ShownWindow:
    if now < window.starts_at:
        return ShownWindow(rule, comment, window, WindowState.PLANNED, nodes)
    if window.ends_at <= now:
        return ShownWindow(rule, comment, window, WindowState.ENDED, nodes)
    busy = tuple(holders_against(rule, nodes, users))
    return ShownWindow(rule, comment, window, WindowState.BUSY if busy else WindowState.ACTIVE, nodes, busy)


def holders_against(rule: ReservationRule, nodes: Collection[str], users: Iterable[NodeUser]) -> list[NodeUser]:
    """Return the workloads on the nodes that the reservation does not allow."""
    names = set(nodes)
    return [user for user in users if not names.isdisjoint(user.nodes) and not user.claimant.is_allowed_by(rule)]


def nodes_of(cluster: Cluster, rules: Collection[ReservationRule]) -> dict[str, tuple[str, ...]]:
    """Return the names of the present nodes of each reservation, sorted."""
    if not rules:
        return {}
    columns = ("name", "labels", "taints", "ready", "unschedulable", "cordoned", "draining")
    nodes = [
        Candidate(
            name,
            labels,
            ready and not any(closed),
            all(taint.get("effect") not in CLOSING_EFFECTS for taint in taints),
        )
        for name, labels, taints, ready, *closed in Node.objects.filter(cluster=cluster).values_list(*columns)
    ]
    return {rule.name: tuple(sorted(rule.chosen(nodes))) for rule in rules}


def users_of(cluster: Cluster, nodes: Collection[str]) -> list[NodeUser]:
    """Return the workloads that use some of the nodes, by namespace and name."""
    if not nodes:
        return []
    names = list(nodes)
    bound = Pod.objects.filter(workload__cluster=cluster, node_name__in=names).exclude(phase__in=_ENDED_PHASES)
    on: dict[int, set[str]] = {}
    chosen_of: dict[int, set[str]] = {}
    for workload, node in bound.values_list("workload_id", "node_name"):
        on.setdefault(workload, set()).add(node)
    placed = PodSet.objects.filter(
        Q(nodes__has_any_keys=names) | Q(workload__in=list(on)),
        workload__cluster=cluster,
        workload__quota_reserved_at__isnull=False,
    ).exclude(workload__status=WorkloadStatus.FINISHED)
    for workload, placements, topology in placed.values_list("workload_id", "nodes", "topology_assignment"):
        chosen = {*filter(None, placements), *_hosts_of(topology or {})}.intersection(names)
        on.setdefault(workload, set()).update(chosen)
        chosen_of.setdefault(workload, set()).update(chosen)
    rows = Workload.objects.filter(pk__in=on).exclude(status=WorkloadStatus.FINISHED, pods__isnull=True)
    found = rows.distinct().order_by("namespace", "name")
    return [_user(row, on[row["pk"]], chosen_of.get(row["pk"], set())) for row in found.values("pk", *_COLUMNS)]


def _hosts_of(topology: Mapping[str, Any]) -> set[str]:
    """Return the nodes of a topology assignment that ends with the hostname."""
    if (topology.get("levels") or [""])[-1] != HOSTNAME_LABEL:
        return set()
    return {domain["values"][-1] for domain in topology["domains"]}


_COLUMNS: Final = (
    "namespace",
    "name",
    "queue_name",
    "cluster_queue_name",
    "submitted_by",
    "admitted_at",
    "maximum_execution_seconds",
    "accumulated_execution_seconds",
)


def _user(row: Mapping[str, Any], nodes: set[str], chosen: set[str]) -> NodeUser:
    limit, since = row["maximum_execution_seconds"], row["admitted_at"]
    ends_at = None
    if limit is not None and since is not None:
        left = limit - row["accumulated_execution_seconds"]
        ends_at = datetime.fromtimestamp(since.timestamp() + left, since.tzinfo)
    return NodeUser(row["namespace"], row["name"], claimant_of(row), ends_at, nodes, chosen)


def claimant_of(row: Mapping[str, Any]) -> Claimant:
    """Return the facts about a workload's row that decide which reservations allow it."""
    queue = f"{row['namespace']}/{row['queue_name']}"
    return Claimant(row["namespace"], queue, row["cluster_queue_name"], row["submitted_by"])


def waiting_against(cluster: Cluster, rule: ReservationRule, window: Window, now: float) -> tuple[int, int]:
    """Count the waiting workloads that the reservation does not allow and that could not use its nodes if they started
    now: those without a time limit, and those whose limit lasts into the window."""
    rows = Workload.objects.filter(cluster=cluster, quota_reserved_at=None, active=True)
    rows = rows.exclude(status=WorkloadStatus.FINISHED).exclude(_allowed(rule))
    left = max(0.0, window.starts_at - now)
    too_long = (
        Q(maximum_execution_seconds__gt=left + F("accumulated_execution_seconds"))
        if left
        else Q(maximum_execution_seconds__isnull=False)
    )
    without_limit = 0 if rule.lends_without_limit and left else rows.filter(maximum_execution_seconds=None).count()
    return without_limit, rows.filter(too_long).count()


def _allowed(rule: ReservationRule) -> Q:
    allowed = rule.allowed
    found = Q(namespace__in=allowed.namespaces) | Q(cluster_queue_name__in=allowed.cluster_queues)
    found |= Q(submitted_by__in=[user for user in allowed.users if user])
    for queue in allowed.local_queues:
        namespace, _, name = queue.partition("/")
        found |= Q(namespace=namespace, queue_name=name)
    return found
