"""ResourceQuota on device memory and cores, as HAMi enforces it: `limits.<resource>` of a namespace, MiB resolved."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from scheduler.core.device import DeviceSlice
from scheduler.core.device_vendor import DeviceVendor
from scheduler.core.placement_fit import QuotaCheck

_LIMITS = "limits."


class NamespaceQuotas:
    """Limits and usage per namespace and vendor. Usage counts what is reserved, and what was found in the cluster."""

    def __init__(self, vendors: Iterable[DeviceVendor]) -> None:
        self._vendors = {vendor.word: vendor for vendor in vendors}
        self._limits: dict[str, dict[str, tuple[int | None, int | None]]] = {}
        self._usage: dict[tuple[str, str], tuple[int, int]] = {}

    def set_limits(self, namespace: str, hard: Mapping[str, int]) -> None:
        """Set a namespace's limits from ResourceQuota hard amounts; other resources are passed over, 0 blocks all.

        Of several ResourceQuotas in one namespace give the smallest amount per resource.
        """
        limits = {}
        for vendor in self._vendors.values():
            memory, cores = vendor.resources.memory, vendor.resources.cores
            memory_limit = hard.get(_LIMITS + memory) if memory else None
            if memory_limit is not None:
                memory_limit *= vendor.resources.memory_unit_mib
            cores_limit = hard.get(_LIMITS + cores) if cores else None
            if memory_limit is not None or cores_limit is not None:
                limits[vendor.word] = (memory_limit, cores_limit)
        if limits:
            self._limits[namespace] = limits
        else:
            self._limits.pop(namespace, None)

    def reset_usage(self) -> None:
        """Forget all usage; the holder of the reservations adds it anew."""
        self._usage.clear()

    def add(self, namespace: str, slices: Iterable[DeviceSlice], sign: int) -> None:
        """Take (sign 1) or give back (-1) one pod's slices."""
        for part in slices:
            memory, cores = self._usage.get((namespace, part.vendor), (0, 0))
            self._usage[(namespace, part.vendor)] = (memory + sign * part.memory_mib, cores + sign * part.cores_percent)

    def check(self, namespace: str) -> QuotaCheck | None:
        """The check for one pod of a namespace with the usage as it is when called; None without limits."""
        limits = self._limits.get(namespace)
        if limits is None:
            return None

        def within(vendor: str, memory_mib: int, cores_percent: int) -> bool:
            memory_limit, cores_limit = limits.get(vendor, (None, None))
            memory, cores = self._usage.get((namespace, vendor), (0, 0))
            return (memory_limit is None or memory + memory_mib <= memory_limit) and (
                cores_limit is None or cores + cores_percent <= cores_limit
            )

        return within
