"""An imitation of HAMi's vGPU monitors: what devices and containers use, in Prometheus' text format; and the devices'
temperature and power, as DCGM's exporter reports them.

How much a container uses follows from what its pod's annotations say it got, drawn once per container and swaying with
time: less than it was given, some hardly anything. The same cluster reports the same values at the same time.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

import orjson
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from scheduling.model.times import parse_rfc3339
from simulation.api.objects import (
    JsonObject,
    annotations_of,
    condition_is_true,
    name_of,
    namespace_of,
    uid_of,
)
from simulation.api.pods import node_of, phase_of
from simulation.controllers.device_plugin import NVIDIA_REGISTER, AllocationFailed, device_entries
from simulation.environment import Environment

METRICS_PATH: Final = "/metrics"
NVIDIA_ALLOCATED: Final = "hami.io/vgpu-devices-allocated"
_MIB: Final = 2**20
_DEVICE: Final = ("node", "device_index", "device_uuid", "device_type")
_CONTAINER: Final = ("namespace", "pod", "container", "vdevice_index", "device_uuid")
_DCGM: Final = ("UUID", "Hostname")
_DRIVER_MIB: Final = 180
_COOL_CELSIUS: Final = 31.0
_WARMING_CELSIUS: Final = 47.0
_IDLE_WATTS: Final = 42.0
_WORKING_WATTS: Final = 230.0
_IDLE_SHARE: Final = 0.15
_IDLE_MEMORY: Final = 0.1
"""The share of its memory that an idle container uses."""
_WARM_UP_SECONDS: Final = 30.0

Draw = Callable[[str], float]
"""A number between 0 and 1 for a name, always the same for the same name."""


@dataclass(frozen=True, slots=True)
class ContainerUse:
    """The use of one device by one container. Memory in MiB, utilization in percent of the device's cores."""

    labels: tuple[str, ...]
    uuid: str
    memory_mib: float
    limit_mib: int
    utilization_percent: float
    last_kernel_seconds: float


class Monitors:
    """The monitors of all ready nodes behind one address."""

    def __init__(self, environment: Environment) -> None:
        self._environment = environment

    def text(self) -> bytes:
        registry = CollectorRegistry()
        registry.register(_Families(list(self._devices()), list(self._containers())))
        return generate_latest(registry)

    def _devices(self) -> Iterator[tuple[str, JsonObject]]:
        for node in self._environment.store.items("nodes"):
            register = annotations_of(node).get(NVIDIA_REGISTER)
            if register and condition_is_true(node, "Ready"):
                yield from ((name_of(node), device) for device in orjson.loads(register))

    def _containers(self) -> Iterator[ContainerUse]:
        for pod in self._environment.store.items("pods"):
            text = annotations_of(pod).get(NVIDIA_ALLOCATED)
            if text and phase_of(pod) == "Running" and self._is_heard(pod):
                yield from self._uses(pod, text)

    def _is_heard(self, pod: JsonObject) -> bool:
        node = self._environment.store.get("nodes", "", node_of(pod))
        return node is not None and condition_is_true(node, "Ready")

    def _uses(self, pod: JsonObject, text: str) -> Iterator[ContainerUse]:
        """Init containers have ended when a pod runs."""
        try:
            entries = device_entries(text)
        except AllocationFailed:
            return  # the monitor knows only the devices that the plugin could read
        first = len(pod["spec"].get("initContainers") or ())
        for container, devices in zip(pod["spec"]["containers"], entries[first:], strict=False):
            for number, (uuid, _, memory_mib, cores_percent) in enumerate(devices):
                labels = (namespace_of(pod), name_of(pod), str(container["name"]), str(number), uuid)
                yield self._use(pod, labels, memory_mib, cores_percent)

    def _use(self, pod: JsonObject, labels: tuple[str, ...], memory_mib: int, cores_percent: int) -> ContainerUse:
        environment = self._environment
        age = max(0.0, environment.now() - parse_rfc3339(pod["status"]["startTime"]))

        def draw(what: str) -> float:
            return environment.draw("use", uid_of(pod), *labels[2:], what)

        if draw("idle") < _IDLE_SHARE:
            return ContainerUse(labels, labels[4], _IDLE_MEMORY * memory_mib, memory_mib, 0.0, age)
        warmth = min(1.0, age / environment.scaled(_WARM_UP_SECONDS))
        memory = memory_mib * (_IDLE_MEMORY + _working_memory(draw) * warmth)
        period = 60.0 + 240.0 * draw("period")
        sway = 0.15 * math.sin(2 * math.pi * (age / period + draw("phase")))
        utilization = (cores_percent or 100) * max(0.0, _working_cores(draw) + sway) * warmth
        return ContainerUse(labels, labels[4], memory, memory_mib, utilization, 3.0 * draw("kernel"))


def lasting_use(draw: Draw, memory_mib: int, cores_percent: int) -> tuple[float, float]:
    """Return the mean use of a device by a container over a long time: MiB, and percent of the device's cores."""
    if draw("idle") < _IDLE_SHARE:
        return _IDLE_MEMORY * memory_mib, 0.0
    return memory_mib * (_IDLE_MEMORY + _working_memory(draw)), (cores_percent or 100) * _working_cores(draw)


def _working_memory(draw: Draw) -> float:
    return 0.35 + 0.5 * draw("memory")


def _working_cores(draw: Draw) -> float:
    return 0.35 + 0.45 * draw("utilization")


class _Families(Collector):
    def __init__(self, devices: list[tuple[str, JsonObject]], containers: list[ContainerUse]) -> None:
        self._devices = devices
        self._containers = containers

    def collect(self) -> Iterable[Metric]:
        """Return the names of HAMi's exporter of today."""
        memory = GaugeMetricFamily("hami_host_gpu_memory_used_bytes", "GPU memory in use", labels=_DEVICE)
        utilization = GaugeMetricFamily("hami_host_gpu_utilization_ratio", "GPU utilization, 0 to 100", labels=_DEVICE)
        temperature = GaugeMetricFamily("DCGM_FI_DEV_GPU_TEMP", "GPU temperature (in C).", labels=_DCGM)
        power = GaugeMetricFamily("DCGM_FI_DEV_POWER_USAGE", "Power draw (in W).", labels=_DCGM)
        for node, device in self._devices:
            labels = (node, str(device.get("index", 0)), device["id"], device.get("type", ""))
            uses = [use for use in self._containers if use.uuid == device["id"]]
            used = _DRIVER_MIB * bool(uses) + sum(use.memory_mib for use in uses)
            memory.add_metric(labels, min(used, device.get("devmem", 0)) * _MIB)
            busy = min(100.0, sum(use.utilization_percent for use in uses))
            utilization.add_metric(labels, busy)
            temperature.add_metric((device["id"], node), round(_COOL_CELSIUS + _WARMING_CELSIUS * busy / 100))
            power.add_metric((device["id"], node), round(_IDLE_WATTS + _WORKING_WATTS * busy / 100, 1))
        return [memory, utilization, temperature, power, *self._of_containers()]

    def _of_containers(self) -> Iterator[Metric]:
        for name, (text, value) in _OF_CONTAINERS.items():
            family = GaugeMetricFamily(name, text, labels=_CONTAINER)
            for use in self._containers:
                family.add_metric(use.labels, value(use))
            yield family


_OF_CONTAINERS: Final[Mapping[str, tuple[str, Callable[[ContainerUse], float]]]] = {
    "hami_vgpu_memory_used_bytes": ("Memory that a container uses", lambda use: use.memory_mib * _MIB),
    "hami_vgpu_memory_limit_bytes": ("Memory that a container may use", lambda use: use.limit_mib * _MIB),
    "hami_container_device_utilization_ratio": ("Utilization, 0 to 100", lambda use: use.utilization_percent),
    "hami_container_last_kernel_elapsed_seconds": ("Since the last kernel", lambda use: use.last_kernel_seconds),
}
