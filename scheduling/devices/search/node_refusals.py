"""Explains why no node takes a pod without devices: per filter, how many nodes refuse it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from scheduling.devices.arrays import Integers
from scheduling.devices.search.refusals import Findings, Gang, who
from scheduling.devices.table import DeviceTable
from scheduling.model.device import MIG_MODE
from scheduling.model.placement import NodeRefusal, PlacementRefusal, PodSetToPlace, RefusedBy
from scheduling.model.quantity import format_amount

_MIG_RESOURCE = "/mig-"
"""A part of the name of a resource for MIG instances that an operator created before, such as
`nvidia.com/mig-3g.20gb`."""

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
    NodeRefusal.NODE_RESERVED: ("is reserved for others", "are reserved for others"),
}


def refused_by(table: DeviceTable, findings: Findings) -> list[RefusedBy]:
    """Return how many nodes each filter refuses; nodes that are not candidates come first."""
    refused = findings.refused()
    others = len(table.nodes) - len(findings.rows)
    others += sum(each.nodes for each in refused if each.reason == NodeRefusal.NODE_NOT_SELECTED)
    not_selected = [RefusedBy(NodeRefusal.NODE_NOT_SELECTED, others)] if others else []
    return [*not_selected, *(each for each in refused if each.reason != NodeRefusal.NODE_NOT_SELECTED)]


def room_refusal(table: DeviceTable, pod_set: PodSetToPlace, gang: Gang, findings: Findings) -> PlacementRefusal:
    """Return the refusal of one pod of a gang."""
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
    """Describe the shortage of a resource on the rows. A node that never offers it differs from one where it is in
    use."""
    some = f"{len(rows)} {'has' if len(rows) == 1 else 'have'}"
    offered = _most([table.nodes[row].allocatable.get(resource, 0) for row in rows.tolist()])
    if not offered:
        return f"{some} no {resource}{_mig_remedy(table, resource)}"
    wanted = format_amount(resource, asked)
    if offered < asked:
        return f"{some} too little {resource} ({wanted} requested, {format_amount(resource, offered)} on the largest)"
    free = format_amount(resource, table.most_free(resource, rows))
    return f"{some} too little {resource} ({wanted} requested, at most {free} free on a node)"


def _mig_remedy(table: DeviceTable, resource: str) -> str:
    """Return a hint: request the MIG instance through HAMi, if no node advertises it as a resource and HAMi creates
    such instances."""
    if not table.has_mig.any() or _MIG_RESOURCE not in resource:
        return ""
    wanted = resource.partition(_MIG_RESOURCE)[2]
    devices = (device for node in table.nodes for device in node.devices if device.mode == MIG_MODE)
    profiles = {profile.name: profile.memory_mib for device in devices for profile in device.mig_profiles}
    if wanted in profiles:
        return f" (HAMi makes {wanted} when it is needed: request nvidia.com/gpu with {profiles[wanted]} gpumem)"
    return f" (and no device's MIG geometry has {wanted}: {', '.join(sorted(profiles)) or 'none is registered'})"


def _most(amounts: Sequence[int]) -> int:
    return max(amounts, default=0)
