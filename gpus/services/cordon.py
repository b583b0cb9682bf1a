"""Cordons and drains nodes and devices for operators; the scheduler acts on it."""

from __future__ import annotations

from foundation.transactions import hardware_transaction
from gpus.models import Device, Node


def close_node(cluster_id: int, name: str, *, cordoned: bool | None = None, draining: bool | None = None) -> bool:
    """Cordon a node (no new pods are placed there) or drain it (our pods there are moved).

    Returns whether the node exists. None keeps the current value. Draining cordons, and uncordoning ends draining. Pods
    of others stay; only the cluster's own drain moves them.
    """
    rows = Node.objects.filter(cluster_id=cluster_id, name=name)
    with hardware_transaction(cluster_id):
        return rows.update(**_changes(cordoned, draining)) > 0


def close_device(cluster_id: int, uuid: str, *, cordoned: bool | None = None, draining: bool | None = None) -> bool:
    """Close or open one device to new slices."""
    rows = Device.objects.filter(node__cluster_id=cluster_id, uuid=uuid)
    with hardware_transaction(cluster_id):
        return rows.update(**_changes(cordoned, draining)) > 0


def _changes(cordoned: bool | None, draining: bool | None) -> dict[str, bool]:
    if draining:
        return {"cordoned": True, "draining": True}
    if cordoned is False:
        return {"cordoned": False, "draining": False}
    given = {"cordoned": cordoned, "draining": draining}
    return {name: value for name, value in given.items() if value is not None}
