"""ResourceQuota on device memory and cores, as HAMi enforces it: `limits.<resource>` of a namespace, MiB resolved."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from scheduling.devices.fit.device_fit import QuotaCheck
from scheduling.model.device import DeviceRequest, DeviceSlice
from scheduling.model.placement import PodDeviceRequest, QuotaShortage
from scheduling.model.quantity import NANOS, parse_quantity
from scheduling.model.vendor import DeviceVendor

_LIMITS = "limits."

NamespaceUsage = Mapping[tuple[str, str], tuple[int, int]]
"""(namespace, vendor) -> the usage of its pods: MiB, cores."""


@dataclass(frozen=True, slots=True)
class NamespaceQuota:
    """A Kubernetes ResourceQuota. `hard` is its `spec.hard` in whole units. Only `limits.` of a vendor's memory or
    cores limit anything here; Kubernetes enforces the rest."""

    namespace: str
    name: str
    hard: Mapping[str, int] = field(default_factory=dict)

    @property
    def key(self) -> str:
        """`namespace/name`."""
        return f"{self.namespace}/{self.name}"


def whole_amounts(hard: Mapping[str, Any]) -> dict[str, int]:
    """`spec.hard` of a ResourceQuota in whole units. As in HAMi, amounts that are not whole numbers are skipped."""
    nanos = {name: parse_quantity(text) for name, text in hard.items()}
    return {name: value // NANOS for name, value in nanos.items() if value % NANOS == 0}


class _Limit(NamedTuple):
    """An amount in MiB or cores, and the ResourceQuota that sets it."""

    amount: int
    resource: str
    quota: str


class NamespaceQuotas:
    """Limits and usage per namespace and vendor. Usage includes reservations and slices found in the cluster."""

    def __init__(self, vendors: Iterable[DeviceVendor]) -> None:
        self._vendors = {vendor.common_word: vendor for vendor in vendors}
        self._quotas: dict[str, dict[str, NamespaceQuota]] = {}
        self._limits: dict[str, dict[str, tuple[_Limit | None, _Limit | None]]] = {}
        self._usage: dict[tuple[str, str], tuple[int, int]] = {}

    # -- limits

    @property
    def quotas(self) -> Iterable[NamespaceQuota]:
        """All known quotas."""
        return [quota for quotas in self._quotas.values() for quota in quotas.values()]

    def limits(self, namespace: str) -> bool:
        """Return whether a quota limits the namespace's devices."""
        return namespace in self._limits

    def set_quota(self, quota: NamespaceQuota) -> bool:
        """Add or replace a quota. Returns whether the namespace's limits changed.

        Of several quotas in one namespace the smallest amount per resource counts, as in Kubernetes; in HAMi the one
        seen last counts. An amount of 0 allows nothing.
        """
        self._quotas.setdefault(quota.namespace, {})[quota.name] = quota
        return self._set_limits(quota.namespace)

    def snapshot(self) -> tuple[dict[str, dict[str, NamespaceQuota]], dict[str, Any]]:
        """Return a copy of the quotas and their limits. The usage is not included."""
        return {namespace: dict(found) for namespace, found in self._quotas.items()}, dict(self._limits)

    def restore(self, values: tuple[dict[str, dict[str, NamespaceQuota]], dict[str, Any]]) -> None:
        """Go back to a snapshot."""
        self._quotas, self._limits = values

    def delete_quota(self, namespace: str, name: str) -> bool:
        """Delete a quota. Returns whether the namespace's limits changed."""
        if self._quotas.get(namespace, {}).pop(name, None) is None:
            return False
        return self._set_limits(namespace)

    def _set_limits(self, namespace: str) -> bool:
        limits = {}
        for vendor in self._vendors.values():
            memory, cores = vendor.resources.memory, vendor.resources.cores
            found = (
                self._smallest(namespace, memory, vendor.resources.memory_unit_mib),
                self._smallest(namespace, cores, 1),
            )
            if found != (None, None):
                limits[vendor.common_word] = found
        before = self._limits.pop(namespace, {})
        if limits:
            self._limits[namespace] = limits
        return before != limits

    def _smallest(self, namespace: str, resource: str, unit: int) -> _Limit | None:
        name = _LIMITS + resource
        limits = [
            _Limit(quota.hard[name] * unit, name, quota.key)
            for quota in self._quotas.get(namespace, {}).values()
            if resource and name in quota.hard
        ]
        return min(limits, default=None)

    # -- usage

    def reset_usage(self) -> None:
        """Drop all usage; the owner of the reservations adds it again."""
        self._usage.clear()

    def add(self, namespace: str, slices: Iterable[DeviceSlice], sign: int) -> None:
        """Add (sign 1) or remove (-1) the usage of one pod's slices."""
        for part in slices:
            self._count((namespace, part.vendor), sign * part.memory_mib, sign * part.cores_percent)

    def add_found(self, usage: NamespaceUsage, sign: int) -> None:
        """Add (sign 1) or remove (-1) usage found on a node."""
        for key, (memory_mib, cores_percent) in usage.items():
            self._count(key, sign * memory_mib, sign * cores_percent)

    def _count(self, key: tuple[str, str], memory_mib: int, cores_percent: int) -> None:
        memory, cores = self._usage.get(key, (0, 0))
        self._usage[key] = (memory + memory_mib, cores + cores_percent)

    # -- checks

    def check(self, namespace: str) -> QuotaCheck | None:
        """Return the check for one pod of a namespace, with the usage at the time of each call; None without limits."""
        limits = self._limits.get(namespace)
        if limits is None:
            return None

        def within(vendor: str, memory_mib: int, cores_percent: int) -> bool:
            return self._shortage(namespace, vendor, (memory_mib, cores_percent)) is None

        return within

    def shortage(
        self,
        namespace: str,
        pod: PodDeviceRequest,
        devices_mib: Mapping[str, int] | None = None,
        held: Sequence[DeviceSlice] = (),
    ) -> QuotaShortage | None:
        """Return the quota that a pod exceeds on any devices; None if it may stay within all quotas.

        As in HAMi's webhook, a pod counts as the larger of its largest init container and the sum of its other
        containers. `devices_mib` is the memory of a device per vendor, used to resolve percentages; without it they
        count as 0. `held` is the usage of the workload's other pods, which the total usage includes.
        """
        for vendor in self._limits.get(namespace, {}):
            asked = _asked(pod, vendor, (devices_mib or {}).get(vendor, 0))
            found = self._shortage(namespace, vendor, asked, held) if any(asked) else None
            if found is not None:
                return found
        return None

    def _shortage(
        self, namespace: str, vendor: str, asked: tuple[int, int], held: Sequence[DeviceSlice] = ()
    ) -> QuotaShortage | None:
        """Return the first shortage, of memory or of cores."""
        used = self._usage.get((namespace, vendor), (0, 0))
        limits = self._limits[namespace].get(vendor, (None, None))
        for number, limit in enumerate(limits):
            if limit is not None and used[number] + asked[number] > limit.amount:
                mine = [(part.memory_mib, part.cores_percent)[number] for part in held if part.vendor == vendor]
                return QuotaShortage(
                    limit.quota, limit.resource, vendor, limit.amount, used[number], asked[number], sum(mine)
                )
        return None


def _asked(pod: PodDeviceRequest, vendor: str, device_mib: int) -> tuple[int, int]:
    """MiB and cores that a pod requests of a vendor in total."""
    init = [_sum(requests, vendor, device_mib) for requests in pod.init_containers]
    rest = [_sum(requests, vendor, device_mib) for requests in pod.containers]
    return (
        max([sum(memory for memory, _ in rest), *(memory for memory, _ in init)]),
        max([sum(cores for _, cores in rest), *(cores for _, cores in init)]),
    )


def _sum(requests: Iterable[DeviceRequest], vendor: str, device_mib: int) -> tuple[int, int]:
    mine = [request for request in requests if request.vendor == vendor]
    return (
        sum(request.count * request.memory_on(device_mib) for request in mine),
        sum(request.count * min(request.cores_percent, 100) for request in mine),
    )
