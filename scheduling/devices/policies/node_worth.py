"""The worth of nodes to typical pods: the smaller of the possible earnings of their devices and of their cpu.

The worth of a device is the price (`prices`) of the best set of requests that fits its free part, by the demand that
its type may serve. Cpu is worth the devices that it could feed, at the cpu per device of that demand. So devices on a
node without cpu are worth nothing, and neither is cpu without devices, and the policy does not save them.

Unit of worth: devices. Rests are thousandths of a device: of memory, or of cores if fewer of those are left and the
demand reserves cores. A device that can take no further pod has rest 0.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

import numpy as np

from scheduling.devices.arrays import Doubles, Integers
from scheduling.devices.policies.fragmentation import needed_memory
from scheduling.devices.policies.prices import WHOLE, device_worth
from scheduling.devices.policies.typical_pods import TypicalPod
from scheduling.devices.table import CORES, MEMORY_MIB, SLOTS, DeviceTable
from scheduling.model.device import DeviceRequest
from scheduling.model.vendor import DeviceVendor


class NodeWorth:
    """The worth of every device and node of a table, cached per node so that a placement updates one row.

    `rests` (nodes, devices) are thousandths; `devices` (nodes, devices) and `nodes` (nodes) are worths.
    """

    def __init__(self, table: DeviceTable, pods: Sequence[TypicalPod], vendors: Mapping[str, DeviceVendor]) -> None:
        self.table = table
        asking = [pod for pod in pods if pod.shape.request is not None]
        self._by_cores = any(pod.shape.request.cores_percent for pod in asking if pod.shape.request is not None)
        shape = table.healthy.shape
        sizes = [self._sizes(pod, vendors).ravel().tolist() for pod in asking]
        of_devices = list(zip(*sizes, strict=True)) if sizes else [()] * table.healthy.size
        kinds = {kind: number for number, kind in enumerate(dict.fromkeys(of_devices))}
        self._kinds: Integers = np.array([kinds[kind] for kind in of_devices], dtype=np.int64).reshape(shape)
        self._worth: Doubles = np.array([device_worth(_demand(asking, kind)) for kind in kinds]).reshape(-1, WHOLE + 1)
        per_device = np.array([_cpu_per_device(asking, kind) for kind in kinds])
        present = table.totals[SLOTS] > 0
        self._feeding: Doubles = (per_device[self._kinds] * present).sum(axis=1) / np.maximum(present.sum(axis=1), 1)
        self.rests: Integers = np.zeros(shape, dtype=np.int64)
        self.devices: Doubles = np.zeros(shape, dtype=np.float64)
        self.nodes: Doubles = np.zeros(shape[0], dtype=np.float64)
        self.refresh(np.arange(shape[0]))

    def _sizes(self, pod: TypicalPod, vendors: Mapping[str, DeviceVendor]) -> Integers:
        """Return the part of every device that a pod takes, in thousandths; 0 for devices that never serve it."""
        request = pod.shape.request
        if request is None:
            raise ValueError("a pod without a device has no size")
        rules = vendors[request.vendor].rules
        mask = self.table.device_mask(request.vendor, pod.shape.constraints, rules.type_filter)
        totals = self.table.totals[MEMORY_MIB]
        memory = needed_memory(request, totals) * WHOLE // np.maximum(totals, 1)
        size = np.maximum(np.maximum(memory, WHOLE * min(request.cores_percent, 100) // 100), 1)
        return np.where(mask & (size <= WHOLE), size, 0)

    def refresh(self, rows: Integers) -> None:
        """Compute these rows again from the table."""
        self.rests[rows] = self._rests(rows, self.table.used[:, rows])
        self.devices[rows] = self._worth[self._kinds[rows], self.rests[rows]]
        self.nodes[rows] = self._lesser(rows, self.devices[rows].sum(axis=1), 0)

    def after(self, rows: Integers, request: DeviceRequest) -> tuple[Integers, Doubles]:
        """Return, for every device of the rows, the remainder after it has served the request, and the worth that is
        lost."""
        used = self.table.used[:, rows].copy()
        used[SLOTS] += request.slots
        used[CORES] += min(request.cores_percent, 100)
        used[MEMORY_MIB] += needed_memory(request, self.table.totals[MEMORY_MIB][rows])
        rests = self._rests(rows, used)
        return rests, self.devices[rows] - self._worth[self._kinds[rows], rests]

    def losses(self, rows: Integers, device_losses: Doubles, cpu_milli: int) -> Doubles:
        """Return the loss of each node if its devices lose this much together and a pod takes its CPU."""
        return self.nodes[rows] - self._lesser(rows, self.devices[rows].sum(axis=1) - device_losses, cpu_milli)

    def _lesser(self, rows: Integers, devices: Doubles, cpu_milli: int) -> Doubles:
        feeding = self._feeding[rows]
        free = np.maximum(self.table.free_cpu[rows] - cpu_milli, 0)
        return np.where(feeding > 0, np.minimum(devices, free / np.maximum(feeding, 1e-9)), devices)

    def _rests(self, rows: Integers, used: Integers) -> Integers:
        table = self.table
        totals = table.totals[:, rows]
        free = np.clip(totals - used, 0, None) * WHOLE // np.maximum(totals, 1)
        rests = free[MEMORY_MIB]
        if self._by_cores:
            rests = np.where(totals[CORES] > 0, np.minimum(rests, free[CORES]), rests)
        usable = table.healthy[rows] & ~table.cordoned[rows] & (used[SLOTS] < totals[SLOTS])
        return np.where(usable, rests, 0)


def _demand(pods: Sequence[TypicalPod], sizes: Sequence[int]) -> tuple[tuple[int, float], ...]:
    """Size -> demanded devices of that size, among the pods that a device type serves."""
    demand: defaultdict[int, float] = defaultdict(float)
    for pod, size in zip(pods, sizes, strict=True):
        if size:
            demand[size] += pod.share * _count(pod)
    return tuple(sorted(demand.items()))


def _cpu_per_device(pods: Sequence[TypicalPod], sizes: Sequence[int]) -> float:
    """Cpu in milli per whole device, as requested by the pods that a device type serves; 0 without such pods."""
    served = [(pod, size) for pod, size in zip(pods, sizes, strict=True) if size]
    devices = sum(pod.share * _count(pod) * size / WHOLE for pod, size in served)
    return sum(pod.share * pod.shape.cpu_milli for pod, _ in served) / devices if devices else 0.0


def _count(pod: TypicalPod) -> int:
    return pod.shape.request.count if pod.shape.request is not None else 0
