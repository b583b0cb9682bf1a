"""Fragmentation of devices: the idle capacity that a typical pod cannot use, as in FGD (USENIX ATC '23).

Unit: thousandths of a device (milli). The idle part of a device is its free share of memory. For one typical pod, a
node's fragment is its whole idle part if the pod does not fit the node (too little cpu, too few devices that can serve
it, no device of its type, or a pod without devices); otherwise it is the idle part of the devices that cannot serve the
pod. A node's fragmentation is the mean over typical pods, weighted by their frequency.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from scheduling.devices.arrays import Booleans, Doubles, Integers
from scheduling.devices.policies.typical_pods import TypicalPod
from scheduling.devices.table import CORES, MEMORY_MIB, SLOTS, UNLIMITED, DeviceTable
from scheduling.model.device import DeviceRequest
from scheduling.model.placement import DeviceConstraints
from scheduling.model.vendor import DeviceVendor

MILLI = 1000.0


class FragmentationModel:
    """Fragmentation of every node of a table, kept per node so that one placement updates one row.

    Arrays are (nodes, devices, pods): `serving` marks the devices that serve each pod without further conditions.
    """

    def __init__(self, table: DeviceTable, pods: Sequence[TypicalPod], vendors: Mapping[str, DeviceVendor]) -> None:
        self.table = table
        self.shares: Doubles = np.array([pod.share for pod in pods], dtype=np.float64)
        self._cpu: Integers = np.array([min(pod.shape.cpu_milli, UNLIMITED) for pod in pods], dtype=np.int64)
        self._counts: Integers = np.array([_count(pod) for pod in pods], dtype=np.int64)
        devices = table.totals.shape[1:]
        shape = (*devices, len(pods))
        self._memory: Integers = np.zeros(shape, dtype=np.int64)
        self._cores: Integers = np.zeros(len(pods), dtype=np.int64)
        self._exclusive: Booleans = np.zeros(len(pods), dtype=np.bool_)
        self._no_cores: Booleans = np.zeros(len(pods), dtype=np.bool_)
        self._mask: Booleans = np.zeros(shape, dtype=np.bool_)
        for number, pod in enumerate(pods):
            if pod.shape.request is not None:
                self._describe(number, pod.shape.request, pod.shape.constraints, vendors)
        self.serving: Booleans = np.zeros(shape, dtype=np.bool_)
        self.idle: Doubles = np.zeros(devices, dtype=np.float64)
        self.unusable: Doubles = np.zeros((devices[0], len(pods)), dtype=np.float64)
        self.serving_counts: Integers = np.zeros((devices[0], len(pods)), dtype=np.int64)
        self.total_idle: Doubles = np.zeros(devices[0], dtype=np.float64)
        self.fragmentation: Doubles = np.zeros(devices[0], dtype=np.float64)
        self.refresh(np.arange(devices[0]))

    def _describe(
        self, number: int, request: DeviceRequest, constraints: DeviceConstraints, vendors: Mapping[str, DeviceVendor]
    ) -> None:
        rules = vendors[request.vendor].rules
        wanted = min(request.cores_percent, 100)
        self._memory[:, :, number] = needed_memory(request, self.table.totals[MEMORY_MIB])
        self._cores[number] = wanted
        self._exclusive[number] = rules.exclusive_cores and wanted == 100
        self._no_cores[number] = rules.cores_exhausted and wanted == 0
        self._mask[:, :, number] = self.table.device_mask(request.vendor, constraints, rules.type_filter)

    def refresh(self, rows: Integers) -> None:
        """Compute these rows again from the table."""
        table = self.table
        usable = table.healthy[rows] & ~table.cordoned[rows]
        totals, used = table.totals[:, rows], table.used[:, rows]
        free = np.maximum(totals[MEMORY_MIB] - used[MEMORY_MIB], 0)
        idle = np.where(usable, MILLI * free / np.maximum(totals[MEMORY_MIB], 1), 0.0)
        serving = self._mask[rows] & usable[..., None]
        serving &= self._serves(totals, used, self._memory[rows])
        self.idle[rows] = idle
        self.serving[rows] = serving
        self.serving_counts[rows] = serving.sum(axis=1)
        self.unusable[rows] = np.where(serving, 0.0, idle[..., None]).sum(axis=1)
        self.total_idle[rows] = idle.sum(axis=1)
        self.fragmentation[rows] = self._weighted(
            table.free_cpu[rows], self.serving_counts[rows], self.unusable[rows], self.total_idle[rows]
        )

    def _serves(self, totals: Integers, used: Integers, memory: Integers) -> Booleans:
        """Return whether devices in these states, shape (3, ...), can serve each pod, shape (..., pods)."""
        free_cores = (totals[CORES] - used[CORES])[..., None]
        unused = (used[SLOTS] == 0)[..., None]
        serves: Booleans = (totals[MEMORY_MIB] - used[MEMORY_MIB])[..., None] >= memory
        serves &= (used[SLOTS] < totals[SLOTS])[..., None]
        serves &= free_cores >= self._cores
        if self._exclusive.any():
            serves &= unused | ~self._exclusive | (totals[CORES] != 100)[..., None]
        if self._no_cores.any():
            serves &= (free_cores != 0) | ~self._no_cores | (totals[CORES] == 0)[..., None]
        return serves

    def _weighted(self, free_cpu: Integers, counts: Integers, unusable: Doubles, idle: Doubles) -> Doubles:
        fits = (free_cpu[:, None] >= self._cpu) & (counts >= self._counts)
        weighted: Doubles = np.where(fits, unusable, idle[:, None]) @ self.shares
        return weighted

    def after(self, rows: Integers, columns: Integers, cpu_milli: int, request: DeviceRequest | None) -> Doubles:
        """Return the fragmentation of each node if a pod were placed on it. `columns` are its devices, shape (rows,
        devices)."""
        free_cpu = self.table.free_cpu[rows] - cpu_milli
        counts, unusable, idle = self.serving_counts[rows], self.unusable[rows], self.total_idle[rows]
        if request is None:
            return self._weighted(free_cpu, counts, unusable, idle)
        at = rows[:, None], columns
        totals = self.table.totals[:, at[0], at[1]]
        used = self.table.used[:, at[0], at[1]].copy()
        used[SLOTS] += request.slots
        used[CORES] += request.cores_percent
        used[MEMORY_MIB] += needed_memory(request, totals[MEMORY_MIB])
        serving_before = self.serving[at]
        serving = self._mask[at] & self._serves(totals, used, self._memory[at])
        idle_before = self.idle[at]
        left = totals[MEMORY_MIB] - used[MEMORY_MIB]
        idle_after = np.where(idle_before > 0, MILLI * left / np.maximum(totals[MEMORY_MIB], 1), 0.0)
        counts = counts + serving.sum(axis=1) - serving_before.sum(axis=1)
        gained = np.where(serving, 0.0, idle_after[..., None]) - np.where(serving_before, 0.0, idle_before[..., None])
        return self._weighted(
            free_cpu, counts, unusable + gained.sum(axis=1), idle + (idle_after - idle_before).sum(axis=1)
        )


def needed_memory(request: DeviceRequest, totals_mib: Integers) -> Integers:
    """Return the MiB that a request takes of devices with these sizes."""
    if request.memory_mib or request.memory_percentage > 100:
        return np.full(totals_mib.shape, request.memory_mib, dtype=np.int64)
    return totals_mib * request.memory_percentage // 100


def fgd_scores(before: Doubles, after: Doubles) -> Integers:
    """FGD's score, 0 to 100: the logistic function of the decrease in devices, truncated to an integer.

    Truncation matters: rounding turns near ties into ties, which fill one node after another.
    """
    scores: Integers = (100.0 / (1.0 + np.exp((after - before) / MILLI))).astype(np.int64)
    return scores


def _count(pod: TypicalPod) -> int:
    return pod.shape.request.count if pod.shape.request is not None else np.iinfo(np.int64).max
