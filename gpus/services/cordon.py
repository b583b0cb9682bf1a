"""Closing nodes and cards, and emptying them: an operator's word, which the scheduler follows."""

from __future__ import annotations

from gpus.models import Device, Node


def close_node(cluster_id: int, name: str, *, cordoned: bool, draining: bool) -> bool:
    """Cordon a node (nothing new is placed there) or drain it (what we placed there is moved); whether it exists.

    Draining cordons. What is not ours stays: only the cluster's own drain moves that.
    """
    rows = Node.objects.filter(cluster_id=cluster_id, name=name)
    return rows.update(cordoned=cordoned or draining, draining=draining) > 0


def close_device(cluster_id: int, uuid: str, *, cordoned: bool, draining: bool) -> bool:
    """The same for one card."""
    rows = Device.objects.filter(node__cluster_id=cluster_id, uuid=uuid)
    return rows.update(cordoned=cordoned or draining, draining=draining) > 0
