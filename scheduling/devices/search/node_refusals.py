"""Explains why no node takes a pod without devices: per filter, how many nodes refuse it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from scheduling.devices.arrays import Integers
from scheduling.devices.search.refusals import Findings, Gang, who
from scheduling.devices.table import DeviceTable
from scheduling.model.placement import NodeRefusal, PlacementRefusal, PodSetToPlace, RefusedBy
from scheduling.model.quantity import format_amount

_ONE_AND_MANY: Mapping[str, tuple[str, str]] = {
    NodeRefusal.NODE_NOT_READY: ("is not ready", "are not ready"),
    NodeRefusal.NODE_UNSCHEDULABLE: ("is cordoned", "are cordoned"),
    NodeRefusal.NODE_TAINTED: (
        "has a taint that the pod does not tolerate",
        "have a taint that the pod does not tolerate",
    ),
    NodeRefusal.NODE_NOT_SELECTED: (
        "is not selected by its flavor, node selector and affinity",
        "are not selected by its flavor, node selector and affinity",
    ),
}


def refused_by(table: DeviceTable, findings: Findings) -> list[RefusedBy]:
    """How many nodes each filter refuses; nodes that are no candidates come first."""
    refused = findings.refused()
    others = len(table.nodes) - len(findings.rows)
    others += sum(each.nodes for each in refused if each.reason == NodeRefusal.NODE_NOT_SELECTED)
    not_selected = [RefusedBy(NodeRefusal.NODE_NOT_SELECTED, others)] if others else []
    return [*not_selected, *(each for each in refused if each.reason != NodeRefusal.NODE_NOT_SELECTED)]


def room_refusal(table: DeviceTable, pod_set: PodSetToPlace, gang: Gang, findings: Findings) -> PlacementRefusal:
    """The refusal of one pod of a gang."""
    parts = [_part(table, pod_set, findings, refused) for refused in refused_by(table, findings)]
    nodes = len(table.nodes)
    none = "The only node does not take" if nodes == 1 else f"None of {nodes} nodes takes"
    message = f"{none} {who(pod_set, gang)}: {', '.join(parts)}."
    return PlacementRefusal(
        pod_set.name, gang.replica, gang.placed, gang.wanted, findings.reasons, None, message, by_room=True
    )


def _part(table: DeviceTable, pod_set: PodSetToPlace, findings: Findings, refused: RefusedBy) -> str:
    words = _ONE_AND_MANY.get(refused.reason)
    if words is not None:
        return f"{refused.nodes} {words[refused.nodes > 1]}"
    resource = refused.reason.removeprefix(NodeRefusal.INSUFFICIENT_RESOURCE).strip()
    kinds = [number for number, kind in enumerate(findings.kinds) if kind.reason == refused.reason]
    rows = findings.rows[np.isin(findings.which, kinds)]
    return _shortage(table, resource, pod_set.requests.get(resource, 1), rows)


def _shortage(table: DeviceTable, resource: str, asked: int, rows: Integers) -> str:
    """What rows lack of a resource. A node that could never offer it is told apart from one where others use it now."""
    some = f"{len(rows)} {'has' if len(rows) == 1 else 'have'}"
    offered = _most([table.nodes[row].allocatable.get(resource, 0) for row in rows.tolist()])
    if not offered:
        return f"{some} no {resource}"
    wanted = format_amount(resource, asked)
    if offered < asked:
        return f"{some} too little {resource} ({wanted} requested, {format_amount(resource, offered)} on the largest)"
    free = format_amount(resource, table.most_free(resource, rows))
    return f"{some} too little {resource} ({wanted} requested, at most {free} free on a node)"


def _most(amounts: Sequence[int]) -> int:
    return max(amounts, default=0)
