"""Dynamic resource allocation as the rules see it: device classes, published devices, claims of pods."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from scheduling.devices.claims.consumed_capacity import Dimensions


class DeviceId(NamedTuple):
    """A device as allocations name it."""

    driver: str
    pool: str
    name: str


@dataclass(frozen=True, slots=True)
class DeviceClass:
    """A DeviceClass; `selectors` are CEL, `config` is for the driver. `created_at` orders classes that serve one
    extended resource."""

    name: str
    selectors: tuple[str, ...] = ()
    extended_resource: str = ""
    created_at: str = ""
    config: tuple[Mapping[str, Any], ...] = ()


@dataclass(frozen=True, slots=True)
class PublishedDevice:
    """A device of a ResourceSlice.

    `attributes` and `capacity` are as published. `node` is empty for a device that is not bound to one node.
    `consumes` are the shared counters that it takes: (counter set, counter) -> nano units. `tainted`: it has a taint
    that keeps new pods away. `is_shared`: it can be allocated to several claims, each of which consumes a part of
    `dimensions`, its capacity.
    """

    id: DeviceId
    node: str = ""
    attributes: Mapping[str, Any] = field(default_factory=dict)
    capacity: Mapping[str, Any] = field(default_factory=dict)
    consumes: Mapping[tuple[str, str], int] = field(default_factory=dict)
    tainted: bool = False
    is_shared: bool = False
    dimensions: Dimensions = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class DevicePool:
    """The newest generation of a pool. It is incomplete, and not used, until all its slices have been read.

    `counters` are shared by its devices: (counter set, counter) -> nano units.
    """

    driver: str
    name: str
    generation: int
    devices: tuple[PublishedDevice, ...] = ()
    counters: Mapping[tuple[str, str], int] = field(default_factory=dict)
    complete: bool = True


@dataclass(frozen=True, slots=True)
class DeviceRequest:
    """A request of a claim; `mode` is its allocation mode, empty if it names alternatives (`firstAvailable`).

    `capacity` is requested of each device: dimension -> nano units.
    """

    name: str
    device_class: str = ""
    selectors: tuple[str, ...] = ()
    count: int = 1
    mode: str = "ExactCount"
    admin_access: bool = False
    alternatives: bool = False
    capacity: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ClaimSpec:
    """The requests of a claim. `constraints` are attributes that its devices must share or not share."""

    requests: tuple[DeviceRequest, ...] = ()
    constraints: tuple[Mapping[str, Any], ...] = ()
    config: tuple[Mapping[str, Any], ...] = ()


@dataclass(frozen=True, slots=True)
class DeviceObjects:
    """The objects of resource.k8s.io in a cluster that matter for decisions.

    `templates` are the claim templates by `namespace/name`. `taken` are devices held by claims whose pods kueueweb did
    not place. `shares` are the parts of devices that such claims hold: dimension -> nano units, the sum of all claims.
    """

    classes: Mapping[str, DeviceClass] = field(default_factory=dict)
    pools: tuple[DevicePool, ...] = ()
    templates: Mapping[str, ClaimSpec] = field(default_factory=dict)
    taken: frozenset[DeviceId] = frozenset()
    shares: Mapping[DeviceId, Mapping[str, int]] = field(default_factory=dict)
