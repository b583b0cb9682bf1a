"""Converts v1 Nodes to and from rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from scheduling.manifest import FieldReader, ObjectMeta, read_metadata, write_metadata
from scheduling.manifest.syntax import qualified_name
from scheduling.manifest.taints import read_taints
from scheduling.model.quantity import format_amounts

_READY: Final = "Ready"


@dataclass(frozen=True, slots=True)
class NodeSpec:
    """A node of a manifest. Amounts are in base units; None: the manifest has no status, so the stored status is
    kept."""

    meta: ObjectMeta
    uid: str = ""
    taints: list[dict[str, Any]] = field(default_factory=list)
    unschedulable: bool = False
    allocatable: dict[str, int] | None = None
    capacity: dict[str, int] | None = None
    ready: bool | None = None


def read_node(top: FieldReader, version: str) -> NodeSpec:
    """Read a v1 Node: labels, annotations (HAMi registers devices there), taints, and its status if present."""
    meta = read_metadata(top, namespaced=False)
    metadata = top.content.get("metadata")
    uid = metadata.get("uid") if isinstance(metadata, Mapping) else None
    taints: list[dict[str, Any]] = []
    unschedulable = False
    spec = top.fields("spec")
    if spec:
        spec.ignore("podCIDR", "podCIDRs", "providerID", "configSource", "externalID", "podPreemptionPolicy")
        taints = read_taints(spec, "taints")
        unschedulable = spec.boolean("unschedulable")
        spec.close()
    status = top.fields("status")
    allocatable = capacity = ready = None
    if status:
        allocatable = _read_amounts(status, "allocatable")
        capacity = _read_amounts(status, "capacity")
        ready = _read_ready(status)
    return NodeSpec(meta, uid if isinstance(uid, str) else "", taints, unschedulable, allocatable, capacity, ready)


def _read_amounts(status: FieldReader, key: str) -> dict[str, int] | None:
    amounts = status.fields(key)
    if amounts is None:
        return None
    found: dict[str, int] = {}
    for resource in amounts.content:
        broken = qualified_name(resource)
        if broken:
            amounts.error(resource, f"is a resource name: {broken}")
            continue
        amount = amounts.amount(resource, resource)
        if amount is not None:
            found[resource] = amount
    return found


def _read_ready(status: FieldReader) -> bool | None:
    for condition in status.items("conditions"):
        if condition.text("type") == _READY:
            return condition.text("status") == "True"
    return None


def write_node(spec: NodeSpec) -> dict[str, Any]:
    """Write the manifest of a node."""
    body: dict[str, Any] = {}
    if spec.taints:
        body["taints"] = list(spec.taints)
    if spec.unschedulable:
        body["unschedulable"] = True
    status: dict[str, Any] = {}
    for key, amounts in (("allocatable", spec.allocatable), ("capacity", spec.capacity)):
        if amounts:
            status[key] = format_amounts(amounts)
    if spec.ready is not None:
        status["conditions"] = [{"type": _READY, "status": str(spec.ready)}]
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": write_metadata(spec.meta),
        "spec": body,
        "status": status,
    }
