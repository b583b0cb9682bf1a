"""The samples of a moment of the past: the figures that the samplers of history take from rows, from a World."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from gpus.vendors import VENDORS
from history.models import Scope
from history.services.sampling.demand import devices_of_pod
from history.services.sampling.devices import IDLE_BELOW_PERCENT, add_devices
from history.services.sampling.gathered import Gathered, Places, Quota, SubjectKey
from history.services.sampling.quota import gather_cells
from history.services.sampling.workload_samples import add_workloads
from kueueweb.demo.past_run import PastRun
from scheduler.live.publisher import cluster_queue_numbers, cohort_numbers
from scheduler.store.placements import HeldSlice, held_slices
from scheduling.model.device import Device
from scheduling.model.resources import pod_requests
from scheduling.model.vocabulary import WorkloadStatus
from scheduling.model.workload import Admission, PodSetAssignment, Workload
from scheduling.world import World
from simulation.controllers.monitor import lasting_use

_EVERY_NODE_HAS: Final = ("cpu", "memory", "ephemeral-storage", "pods")
_RESOURCES: Final = [vendor.resources for vendor in VENDORS]


def device_flavor(flavors: Mapping[str, str]) -> str:
    """Return the flavor of a pod set's devices: the flavor of the first resource that some nodes lack, as in records of
    use."""
    resource = min(flavors, key=lambda name: (name in _EVERY_NODE_HAS, name), default="")
    return flavors.get(resource, "")


@dataclass(frozen=True, slots=True)
class HeldDevice:
    """A slice with its flavor and its share of its device, the larger of its shares of memory and cores."""

    slice: HeldSlice
    flavor: str
    share: float


@dataclass(frozen=True, slots=True)
class _DeviceUse:
    flavor: str
    amounts: tuple[float, ...]
    """The amounts that `add_devices` takes."""


Devices = Mapping[tuple[str, str], Device]
"""Devices by the names of their nodes and their UUIDs."""


def devices_of(world: World) -> Devices:
    """Return all devices of a World."""
    return {(node.name, device.uuid): device for node in world.objects.nodes.values() for device in node.devices}


def held_devices(devices: Devices, workload: Workload) -> Iterator[HeldDevice]:
    """Yield the slices that a workload holds."""
    for held in held_slices(workload):
        device = devices[held.slice.node, held.slice.uuid]
        share = max(
            held.slice.memory_mib / max(device.memory_mib, 1), held.slice.cores_percent / max(device.cores_percent, 1)
        )
        yield HeldDevice(held, device_flavor(_assignment(workload, held.pod_set).flavors), share)


def _assignment(workload: Workload, pod_set: str) -> PodSetAssignment:
    assert workload.admission is not None
    return next(each for each in workload.admission.pod_set_assignments if each.name == pod_set)


def places_of(world: World) -> Places:
    """Return the queues and their ancestors, with the figures of this moment."""
    return Places(
        {name: cluster_queue_numbers(world.cluster_queue_status(name)) for name in world.cluster_queue_names()},
        {name: cohort_numbers(world.cohort_status(name)) for name in world.cohort_names()},
        {(queue.namespace, queue.name): queue.cluster_queue for queue in world.objects.local_queues.values()},
    )


class PastSampler:
    """Gathers the samples of a run, moment by moment."""

    def __init__(self, run: PastRun, devices: Devices) -> None:
        self._run = run
        self._devices = devices
        self._uses: dict[str, tuple[Admission, list[_DeviceUse]]] = {}

    def gather(self) -> Gathered:
        """Gather the samples of this moment; events are counted from decisions and ends instead."""
        world, found = self._run.world, Gathered()
        places = places_of(world)
        holders = [workload for workload, _ in self._run.holders()]
        waiting = [
            (workload, name, str(position.reason))
            for name in world.cluster_queue_names()
            for position in world.pending(name)
            if (workload := world.workload(position.workload)) is not None
        ]
        add_workloads(_counted(holders, waiting), places, found)
        gather_cells(places, found)
        for workload in holders:
            _add_usage(workload, found)
        self._add_devices(places, holders, found)
        whole = found.devices[SubjectKey(Scope.CLUSTER)]
        held = sum(row.devices_held for key, row in found.devices.items() if key.scope is Scope.CLUSTER)
        demanded = _demanded([workload for workload, _, _ in waiting], whole.memory_mib, whole.devices)
        whole.devices_demanded = held + demanded
        return found

    def _add_devices(self, places: Places, holders: Iterable[Workload], found: Gathered) -> None:
        whole = found.devices[SubjectKey(Scope.CLUSTER)]
        whole.devices = float(len(self._devices))
        whole.memory_mib = float(sum(device.memory_mib for device in self._devices.values()))
        whole.cores_percent = float(sum(device.cores_percent for device in self._devices.values()))
        usage = self._run.world.device_usage
        whole.devices_stranded = sum(_stranded(device, usage(*place)) for place, device in self._devices.items())
        for workload in holders:
            assert workload.admission is not None
            where = (workload.namespace, workload.queue_name, workload.admission.cluster_queue, workload.submitted_by)
            for use in self._uses_of(workload, workload.admission):
                add_devices(places, where, use.flavor, use.amounts, found)

    def _uses_of(self, workload: Workload, admission: Admission) -> list[_DeviceUse]:
        """Return its slices with their made-up use, which lasts until it is admitted again."""
        known = self._uses.get(workload.uid)
        if known is None or known[0] is not admission:
            uses = [_device_use(workload.uid, held) for held in held_devices(self._devices, workload)]
            known = self._uses[workload.uid] = (admission, uses)
        return known[1]


def _device_use(uid: str, held: HeldDevice) -> _DeviceUse:
    part = held.slice.slice

    def draw(name: str) -> float:
        return random.Random(f"{uid} {held.slice.replica} {part.index} {name}").random()  # noqa: S311 (no secret)

    memory, cores = lasting_use(draw, part.memory_mib, part.cores_percent)
    idle = held.share if cores < IDLE_BELOW_PERCENT else 0.0
    return _DeviceUse(held.flavor, (held.share, idle, 0.0, part.memory_mib, memory, part.cores_percent, cores))


def _counted(
    holders: Iterable[Workload], waiting: Iterable[tuple[Workload, str, str]]
) -> list[tuple[str, str, str, str, str, bool, int]]:
    rows = Counter(
        (each.namespace, each.queue_name, each.admission.cluster_queue, WorkloadStatus.ADMITTED.value, "")
        for each in holders
        if each.admission is not None
    )
    rows.update(
        (each.namespace, each.queue_name, queue, WorkloadStatus.PENDING.value, reason)
        for each, queue, reason in waiting
    )
    return [(*row, True, count) for row, count in rows.items()]


def _add_usage(workload: Workload, found: Gathered) -> None:
    assert workload.admission is not None
    for pod_set in workload.admission.pod_set_assignments:
        for resource, amount in pod_set.resource_usage.items():
            flavor = pod_set.flavors.get(resource)
            if flavor is not None:
                key = SubjectKey(Scope.NAMESPACE, workload.namespace, "", flavor, resource)
                found.quota[key] = Quota(found.quota[key].used + amount)


def _stranded(device: Device, usage: tuple[int, int, int]) -> float:
    """Return the free part of a device that no workload can take: of its memory without free cores, or the reverse."""
    slots, memory_mib, cores = usage
    free_memory = 1 - memory_mib / max(device.memory_mib, 1)
    free_cores = 1 - cores / max(device.cores_percent, 1)
    is_full = device.slots <= slots or min(free_memory, free_cores) <= 0
    return max(free_memory, free_cores, 0.0) if slots and is_full else 0.0


def _demanded(waiting: Sequence[Workload], memory_mib: float | None, devices: float | None) -> float:
    mean = (memory_mib or 0.0) / max(devices or 1.0, 1.0)
    return sum(
        pod_set.count * devices_of_pod(pod_requests(pod_set.template), _RESOURCES, mean)
        for workload in waiting
        for pod_set in workload.pod_sets
    )
