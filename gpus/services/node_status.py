"""Reads a node of the cluster from its manifest."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from gpus.vendors import VENDORS
from scheduling.model.quantity import InvalidQuantity, parse_amount

_HANDSHAKE: Final = "hami.io/node-handshake"
_LOCKS: Final = frozenset(vendor.lock.annotation for vendor in VENDORS if vendor.lock is not None)


@dataclass(frozen=True, slots=True)
class ObservedNode:
    """The relevant fields of a v1.Node. Amounts are integers in base units (milli for cpu)."""

    name: str
    uid: str
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    taints: tuple[Mapping[str, Any], ...]
    allocatable: Mapping[str, int]
    capacity: Mapping[str, int]
    ready: bool
    unschedulable: bool
    created_at: datetime | None = None
    conditions: tuple[Mapping[str, Any], ...] = ()

    @property
    def lasting_annotations(self) -> dict[str, str]:
        """The annotations without locks and handshakes, which change with each pod without changing the node."""
        return {
            key: value
            for key, value in self.annotations.items()
            if key not in _LOCKS and not key.startswith(_HANDSHAKE)
        }


def observed_node(manifest: Mapping[str, Any]) -> ObservedNode:
    """Read a v1.Node. Without a Ready condition it counts as ready; unreadable amounts are left out."""
    metadata, spec, status = manifest["metadata"], manifest.get("spec") or {}, manifest.get("status") or {}
    created = metadata.get("creationTimestamp")
    capacity = _amounts(status.get("capacity") or {})
    return ObservedNode(
        name=metadata["name"],
        uid=metadata.get("uid") or "",
        labels=dict(metadata.get("labels") or {}),
        annotations=dict(metadata.get("annotations") or {}),
        taints=tuple(spec.get("taints") or ()),
        allocatable=_amounts(status.get("allocatable") or {}) or capacity,
        capacity=capacity,
        ready=_is_ready(status),
        unschedulable=bool(spec.get("unschedulable")),
        created_at=datetime.fromisoformat(created) if created else None,
        conditions=tuple(_conditions(status)),
    )


def _conditions(status: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the conditions without heartbeats, which change every few seconds without meaning."""
    for condition in status.get("conditions") or ():
        if condition.get("type"):
            yield {
                "type": condition["type"],
                "status": condition.get("status") or "Unknown",
                "reason": condition.get("reason") or "",
                "message": condition.get("message") or "",
                "last_transition_time": condition.get("lastTransitionTime"),
            }


def _is_ready(status: Mapping[str, Any]) -> bool:
    for condition in status.get("conditions") or ():
        if condition.get("type") == "Ready":
            return bool(condition.get("status") == "True")
    return True


def _amounts(quantities: Mapping[str, Any]) -> dict[str, int]:
    found = {}
    for resource, text in quantities.items():
        try:
            found[resource] = parse_amount(resource, text)
        except InvalidQuantity:
            continue
    return found
