"""Reads one container's request of one vendor's devices. Limits are first completed as HAMi's webhook does.

What HAMi refuses or silently drops becomes a problem, so that the caller can refuse it with a message.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from scheduling.model.device import PERCENTAGE_UNSET, DeviceRequest
from scheduling.model.placement import DeviceRequestProblem
from scheduling.model.quantity import NANOS, InvalidQuantity, parse_quantity
from scheduling.model.vendor import ChipModel, DeviceVendor, MemoryRounding

_MAX_INT32 = 2**31 - 1
_MIB = 2**20


class ContainerReader:
    """Reads one container's request of one vendor. Completes `limits` in place."""

    def __init__(
        self,
        container: str,
        vendor: DeviceVendor,
        limits: dict[str, Any],
        requests: Mapping[str, Any],
        problems: list[DeviceRequestProblem],
        *,
        soft_split: bool = False,
        single_device: bool = False,
    ) -> None:
        """`soft_split`: the pod requests softly split devices. `single_device`: its annotations allow one device
        only."""
        self.container = container
        self.vendor = vendor
        self.names = vendor.resources
        self.limits = limits
        self.requests = {} if vendor.resources.limits_only else requests
        self.problems = problems
        self.soft_split = soft_split
        self.single_device = single_device

    def request(self) -> DeviceRequest | None:
        """Return the request; None if there is none or if it has a problem."""
        if not self._complete_limits():
            return None
        if self.names.count_is_slices:
            return self._slices()
        if self.names.cores_per_count and self._value(self.names.count) is None:
            return self._single_cores()
        count = self._count()
        if count is None:
            return None
        memory = self._memory_mib(count)
        if memory is None:
            return None
        cores = self._cores()
        if cores is None:
            return None
        if self.names.amounts_are_totals:
            memory, cores = memory // count, cores // count
        return self._rounded(count, memory, self._percentage(), cores)

    def _complete_limits(self) -> bool:
        """Complete the limits as HAMi's webhook does. False if it refuses the pod."""
        names, defaults = self.names, self.vendor.defaults
        share = _nanos(self.limits.get(names.memory_percentage))
        if share is not None and not 0 <= share <= 100 * NANOS:
            self._refuse(names.memory_percentage, self.limits[names.memory_percentage], "a percentage must be 0 to 100")
            return False
        named = [name for name in (names.memory, names.memory_percentage, names.cores) if name and name in self.limits]
        if named and names.count not in self.limits and defaults.count:
            self.limits[names.count] = defaults.count
        whole_device = share == 100 * NANOS or not {names.memory, names.memory_percentage} & self.limits.keys()
        if (
            names.count in self.limits
            and names.cores not in self.limits
            and defaults.exclusive_cores is not None
            and whole_device
        ):
            self.limits[names.cores] = defaults.exclusive_cores
        self._complete_whole_devices()
        return True

    def _complete_whole_devices(self) -> None:
        """Add the cores of whole devices: some vendors give several devices whole, and one device too if no memory is
        named."""
        names, defaults = self.names, self.vendor.defaults
        count = whole_number(self._value(names.count)) or 0
        several = 0 < defaults.all_cores_from_count <= count
        if several or (names.amounts_are_totals and count == 1 and self._value(names.memory) is None):
            self.limits[names.cores] = defaults.whole_device_cores * count
            if defaults.whole_device_memory:
                self.limits[names.memory] = defaults.whole_device_memory * count

    def _count(self) -> int | None:
        """Return the number of devices, rounded to whole modules; None without a count or with an invalid one."""
        name, rules = self.names.count, self.vendor.rules
        if self._value(name) is None:
            for named in (self.names.memory, self.names.memory_percentage, self.names.cores):
                if self._value(named) is not None:
                    self._ignore(named, f"without {name} the container gets no devices")
                    break
            return None
        count = self._integer(name)
        if count is None or count <= 0:
            return None
        if rules.counts and count not in rules.counts:
            self._refuse(name, count, f"the count must be one of {', '.join(map(str, rules.counts))}")
            return None
        if self.single_device and count != 1:
            self._refuse(name, count, "a pod with an application class may request only one device")
            return None
        if count == 1:
            count = rules.module_size
        if count % rules.module_size:
            self._refuse(name, count, f"devices come in modules of {rules.module_size}: request 1 or a multiple")
            return None
        if rules.module_size > 1:
            self.limits[name] = count
        return count

    def _slices(self) -> DeviceRequest | None:
        """Return the slices of one device: their number, or the memory and cores they must have."""
        slices = self._integer(self.names.count) or 0
        memory, cores = self._memory_mib(1), self._cores()
        if memory is None or cores is None or not (slices > 0 or memory or cores):
            return None
        for name in self._named():
            self.limits.setdefault(name, self._value(name))
        return DeviceRequest(self.vendor.common_word, 1, memory, PERCENTAGE_UNSET, cores, max(slices, 1))

    def _single_cores(self) -> DeviceRequest | None:
        """Return one core of a device, or as many whole devices as the number of cores fills."""
        name, per_device = self.names.cores, self.names.cores_per_count
        cores = self._integer(name)
        if cores is None or cores <= 0:
            return None
        if cores < per_device:
            return DeviceRequest(self.vendor.common_word, 1, 0, 100 * cores // per_device, 100 * cores // per_device)
        if cores % per_device:
            self._refuse(
                name, cores, f"more than {per_device} cores must be a multiple of {per_device} (whole devices)"
            )
            return None
        return self._whole(cores // per_device)

    def _whole(self, count: int) -> DeviceRequest:
        return DeviceRequest(self.vendor.common_word, count, 0, 100, self.vendor.defaults.whole_device_cores)

    def _named(self) -> list[str]:
        """Return the vendor's resources that the container names, sorted."""
        return sorted(name for name in self.names.names if self._value(name) is not None)

    def _value(self, name: str) -> Any:
        if not name:
            return None
        return self.limits.get(name, self.requests.get(name))

    def _integer(self, name: str) -> int | None:
        value = whole_number(self._value(name))
        if value is None and self._value(name) is not None:
            self._ignore(name, "the count must be a whole number")
        if value is not None and value > _MAX_INT32:
            self._refuse(name, value, f"must be at most {_MAX_INT32}")
            return None
        return value

    def _memory_mib(self, count: int) -> int | None:
        """Return the requested MiB, 0 if there is no request for an amount; None if HAMi drops the whole request."""
        name = self.names.memory
        text = self._value(name)
        if text is None:
            return 0
        value = whole_number(text)
        unit = self.names.memory_unit_mib
        if value is not None and self.names.bare_memory_unit_mib:
            bare = re.fullmatch(r"[0-9]+", str(text).strip())
            value = value * self.names.bare_memory_unit_mib if bare else value // _MIB
            unit = 1
        if value is None or not 0 <= value <= _MAX_INT32 // unit:
            form = "a plain number of MiB" if unit == 1 else f"must be a plain number of units of {unit} MiB"
            self._ignore(name, f"memory must be {form}, without a suffix such as Mi")
            return None
        if count == 1 and self.names.memory_units and value not in self.names.memory_units:
            allowed = ", ".join(str(units) for units in self.names.memory_units)
            self._refuse(name, text, f"memory must be one of {allowed} units of {unit} MiB")
            return None
        return value * unit

    def _percentage(self) -> int:
        value = whole_number(self._value(self.names.memory_percentage))
        if value is None or value <= 0:
            return PERCENTAGE_UNSET
        return min(value, 100)

    def _cores(self) -> int | None:
        text = self._value(self.names.cores)
        if text is None:
            return self.vendor.defaults.cores_percent
        value, allowed = whole_number(text), self.names.cores_allowed
        if allowed and (value is None or not allowed[0] <= value <= allowed[1]):
            self._refuse(self.names.cores, text, f"cores must be a whole percentage, {allowed[0]} to {allowed[1]}")
            return None
        if value and self.vendor.rules.split_modes and not self.soft_split:
            self._refuse(self.names.cores, text, "cores can be requested only for softly split devices")
            return None
        if value is None:
            self._ignore(self.names.cores, "cores must be a whole number of percent points")
            return self.vendor.defaults.cores_percent
        if value < 0:
            self._refuse(self.names.cores, text, "cores can't be negative")
            return None
        return value

    def _rounded(self, count: int, memory: int, percentage: int, cores: int) -> DeviceRequest | None:
        defaults, word = self.vendor.defaults, self.vendor.common_word
        if self.vendor.rules.whole_devices:
            return self._whole(count)
        if memory == 0 and percentage == PERCENTAGE_UNSET:
            memory = defaults.memory_mib
            percentage = PERCENTAGE_UNSET if memory else 100
        model = self.vendor.model
        if self.vendor.rounding is not MemoryRounding.TEMPLATE or model is None or self.soft_split:
            return DeviceRequest(word, count, memory, percentage, cores)
        rounded = self._template_memory(model, memory)
        if rounded is None:
            return None
        if count > self.vendor.rules.module_size and self.vendor.rules.split_modes and rounded != model.memory_mib:
            self._refuse(self.names.memory, memory, "only whole devices can be requested by number")
            return None
        self.limits[self.names.memory] = rounded
        if self.vendor.rules.cores_follow_memory:
            cores = 100 * rounded // model.memory_mib
        return DeviceRequest(word, count, rounded, PERCENTAGE_UNSET, cores)

    def _template_memory(self, model: ChipModel, memory: int) -> int | None:
        """Return the memory of the next larger template; None if it exceeds the device."""
        if memory == 0:
            return model.memory_mib
        for template in model.templates:
            if memory <= template.memory_mib:
                return template.memory_mib
        if memory <= (model.capacity_mib or model.memory_mib):
            return model.memory_mib
        self._refuse(self.names.memory, memory, f"a device has {model.memory_mib} MiB")
        return None

    def _refuse(self, resource: str, value: object, message: str) -> None:
        self.problems.append(DeviceRequestProblem(self.container, resource, str(value), message, refused=True))

    def _ignore(self, resource: str, message: str) -> None:
        value = str(self._value(resource))
        self.problems.append(DeviceRequestProblem(self.container, resource, value, message, refused=False))


def whole_number(value: object) -> int | None:
    """Return the value of a quantity that is a whole number; None for anything else."""
    nanos = _nanos(value)
    return None if nanos is None or nanos % NANOS else nanos // NANOS


def _nanos(value: object) -> int | None:
    if not isinstance(value, str | int | float):
        return None
    try:
        return parse_quantity(value)
    except InvalidQuantity:
        return None
