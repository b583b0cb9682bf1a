"""Nodes applied as manifests: stored in the same rows as nodes of the cluster."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Final

from django.utils import timezone

from foundation.transactions import hardware_transaction
from gpus.manifests import NodeSpec
from gpus.models import Node
from gpus.services.node_status import ObservedNode
from gpus.services.nodes import forget_node, sync_node
from gpus.vendors import VENDORS
from scheduling.manifest import ObjectMeta
from scheduling.model.vendor import DeviceVendor

_VERSION: Final = "v1"
"""Marks a node as applied, so that it is not removed when the cluster does not have it."""


def apply_nodes(
    cluster_id: int,
    nodes: Sequence[NodeSpec],
    *,
    applied_set: str = "",
    vendors: Iterable[DeviceVendor] = VENDORS,
    now: datetime | None = None,
) -> dict[str, str]:
    """Store nodes and the devices that their annotations register. Returns "created", "configured" or "unchanged" by
    name.

    A manifest without status leaves the row's amounts and readiness unchanged.
    """
    now = now or timezone.now()
    outcome: dict[str, str] = {}
    vendors = tuple(vendors)
    with hardware_transaction(cluster_id):
        rows = {
            row.name: row
            for row in Node.objects.select_for_update(no_key=True)
            .filter(cluster_id=cluster_id, name__in=[node.meta.name for node in nodes])
            .order_by("pk")
        }
        for spec in nodes:
            row = rows.get(spec.meta.name)
            changed = sync_node(cluster_id, _observed(spec, row), vendors, now)
            joined = {"api_version": _VERSION, **({"applied_set": applied_set} if applied_set else {})}
            mine = Node.objects.filter(cluster_id=cluster_id, name=spec.meta.name)
            mine.exclude(**joined).update(**joined)
            outcome[spec.meta.name] = "created" if row is None else "configured" if changed else "unchanged"
    return outcome


def delete_nodes(cluster_id: int, names: Iterable[str], now: datetime | None = None) -> list[str]:
    """Remove nodes; returns the names of removed ones. A node with slices that we assigned stays, not ready."""
    names = sorted(names)
    with hardware_transaction(cluster_id):
        for name in names:
            forget_node(cluster_id, name, now)
        left = set(Node.objects.filter(cluster_id=cluster_id, name__in=names).values_list("name", flat=True))
    return [name for name in names if name not in left]


def node_spec(row: Node) -> NodeSpec:
    """Return the spec of a row. Applying it again changes nothing."""
    return NodeSpec(
        meta=ObjectMeta(row.name, "", row.labels, row.annotations),
        taints=list(row.taints),
        unschedulable=row.unschedulable,
        allocatable=dict(row.allocatable),
        capacity=dict(row.capacity),
        ready=row.ready,
    )


def _observed(spec: NodeSpec, row: Node | None) -> ObservedNode:
    allocatable, capacity, ready = spec.allocatable, spec.capacity, spec.ready
    if capacity is None:
        capacity = row.capacity if row else {}
    if allocatable is None:
        allocatable = row.allocatable if row else capacity
    if ready is None:
        ready = row.ready if row else True
    return ObservedNode(
        name=spec.meta.name,
        uid=spec.uid or (row.uid if row else ""),
        labels=dict(spec.meta.labels),
        annotations=dict(spec.meta.annotations),
        taints=tuple(spec.taints),
        allocatable=allocatable,
        capacity=capacity,
        ready=ready,
        unschedulable=spec.unschedulable,
        conditions=tuple(row.conditions) if row else (),
    )
