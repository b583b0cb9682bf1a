"""An upper bound of pods of a kind per node: one scan over all devices, without a search.

It is exact if each pod requests one slice of one device, and otherwise never too low. Topology-aware scheduling
chooses leaves by it before the device search decides.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np

from scheduling.devices.arrays import Integers
from scheduling.devices.requests.cores import slices_by_cores
from scheduling.devices.table import CORES, MEMORY_MIB, SLOTS, DeviceTable
from scheduling.model.device import PERCENTAGE_UNSET, DeviceRequest
from scheduling.model.placement import DeviceConstraints, PodDeviceRequest
from scheduling.model.vendor import DeviceVendor, FitRules

MOST = 1_000_000
"""The bound where devices set none: MIG devices, whose instances only the search can count."""


def most_pods(
    table: DeviceTable, vendors: Mapping[str, DeviceVendor], pod: PodDeviceRequest, *, mutex: bool = False
) -> dict[str, int]:
    """Node name -> an upper bound of such pods in addition to present usage. `mutex`: one slice per device."""
    bound: Integers = np.full(len(table.nodes), MOST, dtype=np.int64)
    for containers in (pod.containers, *((init,) for init in pod.init_containers)):
        for request, devices in _devices_per_pod(containers).items():
            rules = vendors[request.vendor].rules
            serving = table.serving_devices(request, rules, pod.constraints_of(request.vendor), mutex, slice(None))
            room = _slices(table, request, rules, pod.constraints_of(request.vendor), mutex)
            slices = np.where(serving, room, 0).sum(axis=1)
            slices = np.where(table.has_mig & serving.any(axis=1), MOST, slices // devices)
            bound = np.minimum(bound, slices)
    return dict(zip((node.name for node in table.nodes), bound.tolist(), strict=True))


def _devices_per_pod(containers: Sequence[Sequence[DeviceRequest]]) -> Counter[DeviceRequest]:
    """Requests that run at the same time, each with the number of devices that one pod needs for it."""
    devices: Counter[DeviceRequest] = Counter()
    for container in containers:
        for request in container:
            if request.count > 0:
                devices[request] += request.count
    return devices


def _slices(
    table: DeviceTable, request: DeviceRequest, rules: FitRules, constraints: DeviceConstraints, mutex: bool
) -> Integers:
    """Return how many slices of the request each device has room for, by slots, memory and cores; whether or not it
    may serve."""
    free = table.totals - table.used
    room = np.minimum(free[SLOTS], 1) if mutex and rules.mutex else free[SLOTS] // request.slots
    memory = np.full_like(room, 0 if rules.slots_only or rules.hardware_profiles else request.memory_mib)
    if not request.memory_mib and not rules.slots_only and request.memory_percentage != PERCENTAGE_UNSET:
        memory = table.totals[MEMORY_MIB] * request.memory_percentage // 100
    room = np.where(memory > 0, np.minimum(room, free[MEMORY_MIB] // np.maximum(memory, 1)), room)
    totals = table.total_cores(rules, constraints, slice(None))
    by_cores = None if totals is None else slices_by_cores(request, rules, totals, table.used[CORES])
    if by_cores is not None:
        room = np.minimum(room, by_cores)
    slices: Integers = np.maximum(room, 0)
    return slices
