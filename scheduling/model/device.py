"""Devices that jobs share in slices, after HAMi: a device, a container's request, and the slice that it gets.

Units everywhere: memory in MiB; cores in percent points of one device (100 is the whole device unless its vendor or
its core scaling says otherwise); slots as the number of containers that may share the device.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

PERCENTAGE_UNSET = 101
"""HAMi's value for "no percentage of memory requested"."""

HAMI_CORE_MODE = "hami-core"
MIG_MODE = "mig"

SPLIT = "split"
"""The attribute that holds a device's sharing mode, for nodes or vendors with two modes."""
SOFT_SPLIT = "soft"
HARD_SPLIT = "hard"
QOS_POLICY = "QosPolicy"
"""The attribute with the QoS policy that a device serves now, as its node reports it."""


@dataclass(frozen=True, slots=True)
class MigPlacement:
    """A place for a MIG instance on a device: `size` memory slices from slice `start`."""

    start: int
    size: int

    def overlaps(self, other: MigPlacement) -> bool:
        """Return whether both use a common memory slice."""
        return self.start < other.start + other.size and other.start < self.start + self.size


@dataclass(frozen=True, slots=True)
class MigProfile:
    """A profile of hardware instances, such as `2g.10gb`. Without places, an instance may use any free slots."""

    name: str
    memory_mib: int
    cores_percent: int
    slice_count: int
    placements: tuple[MigPlacement, ...]


@dataclass(frozen=True, slots=True)
class MigInstance:
    """A MIG instance on a device: its profile's name and its place."""

    profile: str
    placement: MigPlacement


@dataclass(frozen=True, slots=True)
class Device:
    """One device of a node, as its device plugin registered it.

    `vendor` is the vendor's common word (`NVIDIA`), `type` the model. `slots`, `memory_mib` and `cores_percent` are
    totals after the plugin's scaling. `health` comes from the plugin, `cordoned` from an operator. `pair_scores` are
    link scores to other devices of the node by UUID; `attributes` are further values by name that only some vendors
    report (network group, chip count).
    """

    uuid: str
    index: int
    vendor: str
    type: str
    slots: int
    memory_mib: int
    cores_percent: int
    numa: int = 0
    mode: str = HAMI_CORE_MODE
    health: bool = True
    cordoned: bool = False
    mig_profiles: tuple[MigProfile, ...] = ()
    pair_scores: Mapping[str, int] = field(default_factory=dict)
    attributes: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class DeviceRequest:
    """The request of one container for devices of one vendor: `count` distinct devices, with the same memory and cores
    of each.

    A request read from a pod never has `memory_mib` 0 with `memory_percentage` unset: a request without memory means
    100 percent. If both are set, the fit uses `memory_mib`. `slots` is the number of slots taken on each device.
    """

    vendor: str
    count: int
    memory_mib: int = 0
    memory_percentage: int = PERCENTAGE_UNSET
    cores_percent: int = 0
    slots: int = 1

    def memory_on(self, total_memory_mib: int) -> int:
        """Return the MiB that this request takes from a device of `total_memory_mib` (percentages are rounded down)."""
        if self.memory_mib:
            return self.memory_mib
        if self.memory_percentage == PERCENTAGE_UNSET:
            return 0
        return total_memory_mib * self.memory_percentage // 100


@dataclass(frozen=True, slots=True)
class DeviceSlice:
    """The part of one device that one container holds, or all containers of a pod combined.

    For a combined slice, `mig` and `further_mig` are all the containers' MIG instances on the device. `qos_policy` and
    `app_class` restrict the other tenants of the device, for vendors that have them.
    """

    uuid: str
    node: str
    memory_mib: int
    cores_percent: int
    index: int = 0
    vendor: str = "NVIDIA"
    mig: MigInstance | None = None
    slots: int = 1
    qos_policy: str = ""
    app_class: str = ""
    further_mig: tuple[MigInstance, ...] = ()

    @property
    def mig_instances(self) -> tuple[MigInstance, ...]:
        """All MIG instances of the slice."""
        return self.further_mig if self.mig is None else (self.mig, *self.further_mig)
