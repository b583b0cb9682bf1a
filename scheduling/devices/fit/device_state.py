"""A working copy of one device with its usage."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import NamedTuple

from scheduling.model.device import Device, DeviceSlice, MigInstance


class Tenant(NamedTuple):
    """The attributes of a slice that matter to other tenants of the device."""

    qos_policy: str
    app_class: str
    whole: bool = False
    """The slice has all cores of the device."""


def tenant_of(part: DeviceSlice) -> Tenant | None:
    """Return the slice as a tenant; None if its vendor has no rules among tenants."""
    if not part.qos_policy and not part.app_class:
        return None
    return Tenant(part.qos_policy, part.app_class, part.cores_percent == 100)


@dataclass(slots=True)
class DeviceState:
    """A working copy of one device with its usage.

    `mig` holds the MIG instances in use; `tenants` its slices as tenants, for vendors with such rules.
    """

    device: Device
    position: int
    used_slots: int = 0
    used_memory_mib: int = 0
    used_cores: int = 0
    mig: list[MigInstance] = field(default_factory=list)
    tenants: list[Tenant] = field(default_factory=list)
    score: float = 0.0
    numa: int = 0
    index: int = 0

    def __post_init__(self) -> None:
        self.numa, self.index = self.device.numa, self.device.index

    def copy(self) -> DeviceState:
        """Return an independent copy."""
        return replace(self, mig=list(self.mig), tenants=list(self.tenants))

    def hold(self, held: DeviceSlice) -> None:
        self.used_slots += held.slots
        self.used_memory_mib += held.memory_mib
        self.used_cores += held.cores_percent
        self.mig.extend(held.mig_instances)
        tenant = tenant_of(held)
        if tenant is not None:
            self.tenants.append(tenant)


Pick = tuple[DeviceState, DeviceSlice]
"""A device and the slice of it for a container."""
