"""Small builders for fleets: `device(...)`, `node(...)`, `ask(...)`, and placing a pod by its requests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from scheduling.devices.search.fleet import Fleet
from scheduling.model.device import PERCENTAGE_UNSET, Device, DeviceRequest, DeviceSlice
from scheduling.model.node import Node
from scheduling.model.placement import (
    DeviceConstraints,
    Placement,
    PlacementRefusal,
    PodDeviceRequest,
    PodSetToPlace,
    ScoringWeights,
)

Usage = tuple[int, int, int]
"""(slots, MiB, cores) already used on a device."""

EQUAL_WEIGHTS = ScoringWeights()


def device(uuid: str, **fields: Any) -> Device:
    """A healthy device of 10,000 MiB, 10 slots and 100 cores, whose index is the number at the end of its name."""
    defaults: dict[str, Any] = {
        "index": int("".join(filter(str.isdigit, uuid)) or 0),
        "vendor": "NVIDIA",
        "type": "NVIDIA A100",
        "slots": 10,
        "memory_mib": 10_000,
        "cores_percent": 100,
    }
    return Device(uuid=uuid, **{**defaults, **fields})


def node(name: str, devices: Sequence[Device], used: Mapping[str, Usage] | None = None, **fields: Any) -> Node:
    """A node whose devices already hold what `used` says."""
    found = tuple(
        DeviceSlice(uuid, name, memory, cores, slots=slots) for uuid, (slots, memory, cores) in (used or {}).items()
    )
    return Node(name, devices=tuple(devices), found=found, **fields)


def ask(count: int, memory_mib: int = 0, cores: int = 0, percentage: int = PERCENTAGE_UNSET) -> DeviceRequest:
    """R(n, m, c) of the worked examples."""
    return DeviceRequest("NVIDIA", count, memory_mib, percentage, cores)


def pod(
    *containers: DeviceRequest | None,
    init: Sequence[DeviceRequest | None] = (),
    node_policy: str | None = None,
    device_policy: str | None = None,
    weights: ScoringWeights = EQUAL_WEIGHTS,
    **constraints: Any,
) -> PodDeviceRequest:
    """A pod with one request (or None) per container."""
    return PodDeviceRequest(
        tuple(() if asked is None else (asked,) for asked in init),
        tuple(() if asked is None else (asked,) for asked in containers),
        node_policy,
        device_policy,
        weights,
        (("NVIDIA", DeviceConstraints(**constraints)),),
    )


def fleet(*nodes: Node, **settings: Any) -> Fleet:
    """A fleet of the nodes."""
    made = Fleet(**settings)
    for each in nodes:
        made.set_node(each)
    return made


def two_devices(**used: Usage) -> Fleet:
    """One node n1 with the devices g0 and g1, which hold what `used` says."""
    return fleet(node("n1", [device("g0"), device("g1")], used))


def pod_set(devices: PodDeviceRequest, count: int = 1, **fields: Any) -> PodSetToPlace:
    """A pod set of such pods."""
    return PodSetToPlace("main", count, devices=devices, **fields)


def try_place(where: Fleet, devices: PodDeviceRequest, key: str | None = None) -> Placement | PlacementRefusal:
    """Place one pod, and reserve it under `key` if one is given."""
    outcome = where.place([pod_set(devices)])
    if key is not None and isinstance(outcome, Placement):
        where.reserve(key, outcome)
    return outcome


def devices_of(outcome: Placement | PlacementRefusal) -> str:
    """`n1: g1,g0` for a placed pod: the node and its devices in the order of picking; containers are joined by `;`."""
    assert isinstance(outcome, Placement), outcome
    (placed,) = outcome.pods
    per_container = (",".join(part.uuid for part in container) for container in placed.containers)
    return f"{placed.node}: {';'.join(per_container)}"


def reason_of(outcome: Placement | PlacementRefusal, node_name: str = "n1") -> str:
    """HAMi's reason on one node."""
    assert isinstance(outcome, PlacementRefusal), outcome
    return outcome.reasons[node_name]
