"""Samples of the use by devices and containers: stored as scraped, rolled up and deleted as they age."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from prometheus_client.parser import text_string_to_metric_families

from foundation.time_series import Aggregate, Resolution, Series, roll_up, start_of
from gpus.models import ContainerSample, Device, DeviceSample

_MIB: Final = 2**20
_MAX_NAME: Final = 253
_NOT_SUPPORTED: Final = 2.0**62
"""DCGM reports numbers of at least this size for values that a device cannot measure."""
_MOST: Final[Mapping[str, float]] = {"temperature_celsius": 1e3, "power_watts": 1e6}
"""No device gets warmer, or draws more power: DCGM's numbers for "not measured" are smaller for some types (2^31,
2^47).
"""
_WITH_PEAK: Final = ("memory_used_mib", "utilization_percent")
_MAX_NAMESPACE: Final = 63

# The metric names of HAMi's vGPU monitor, present and earlier ones; and what that monitor does not know, by the names
# of HAMi-WebUI's exporter and of NVIDIA's DCGM exporter.
_DEVICE_METRICS: Final[Mapping[str, str]] = {
    "hami_host_gpu_memory_used_bytes": "memory_used_mib",
    "HostGPUMemoryUsage": "memory_used_mib",
    "hami_host_gpu_utilization_ratio": "utilization_percent",
    "HostCoreUtilization": "utilization_percent",
    "hami_device_temperature": "temperature_celsius",
    "DCGM_FI_DEV_GPU_TEMP": "temperature_celsius",
    "hami_device_power": "power_watts",
    "DCGM_FI_DEV_POWER_USAGE": "power_watts",
}
_CONTAINER_METRICS: Final[Mapping[str, str]] = {
    "hami_vgpu_memory_used_bytes": "memory_used_mib",
    "vGPU_device_memory_usage_in_bytes": "memory_used_mib",
    "hami_container_device_utilization_ratio": "utilization_percent",
    "Device_utilization_desc_of_container": "utilization_percent",
    "hami_container_last_kernel_elapsed_seconds": "last_kernel_seconds",
    "Device_last_kernel_of_container": "last_kernel_seconds",
}
_LABELS: Final[Mapping[str, tuple[str, ...]]] = {
    "uuid": ("device_uuid", "deviceuuid", "UUID"),
    "namespace": ("namespace", "podnamespace"),
    "pod": ("pod", "podname"),
    "container": ("container", "ctrname"),
}

RETENTION: Final[Mapping[Resolution, timedelta]] = {
    Resolution.RAW: timedelta(hours=2),
    Resolution.MINUTES: timedelta(days=7),
    Resolution.HOUR: timedelta(days=90),
}
"""How long samples of each resolution are kept. Each is rolled up into the next resolution first."""

ContainerKey = tuple[str, str, str, str]
"""(device UUID, namespace, pod, container)."""


@dataclass(frozen=True, slots=True)
class Reading:
    """The samples of one endpoint: per device and per container the values that it reported."""

    devices: Mapping[str, Mapping[str, float]]
    containers: Mapping[ContainerKey, Mapping[str, float]]


def read_metrics(text: str) -> Reading:
    """Read Prometheus' text format as HAMi's monitor writes it; other metrics are skipped. Raises ValueError.

    Memory is in bytes, temperature in degrees Celsius, power in watts. A repeated sample, which HAMi writes, counts
    once; NaN, infinity and DCGM's number for "not supported" count as not reported. Impossible device or pod names are
    skipped.
    """
    devices: dict[str, dict[str, float]] = {}
    containers: dict[ContainerKey, dict[str, float]] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            if not math.isfinite(sample.value) or sample.value >= _NOT_SUPPORTED:
                continue
            value = float(sample.value)
            uuid, *pod = (_label(sample.labels, meaning) for meaning in _LABELS)
            if sample.name in _DEVICE_METRICS and _is_name(uuid):
                field = _DEVICE_METRICS[sample.name]
                if value >= _MOST.get(field, math.inf):
                    continue
                devices.setdefault(uuid, {})[field] = _scaled(field, value)
            elif sample.name in _CONTAINER_METRICS and all(map(_is_name, (uuid, *pod))):
                field = _CONTAINER_METRICS[sample.name]
                namespace, name, container = pod
                containers.setdefault((uuid, namespace, name, container), {})[field] = _scaled(field, value)
    return Reading(devices, containers)


def together(readings: Iterable[Reading]) -> Reading:
    """Join the readings of several endpoints. One may report the memory of a device, another its temperature."""
    devices: dict[str, dict[str, float]] = {}
    containers: dict[ContainerKey, dict[str, float]] = {}
    for reading in readings:
        for uuid, values in reading.devices.items():
            devices.setdefault(uuid, {}).update(values)
        for key, values in reading.containers.items():
            containers.setdefault(key, {}).update(values)
    return Reading(devices, containers)


def _is_name(text: str) -> bool:
    return len(text) <= _MAX_NAME and text.isprintable()


def _label(labels: Mapping[str, str], meaning: str) -> str:
    return next((labels[name] for name in _LABELS[meaning] if labels.get(name)), "")


def _scaled(field: str, value: float) -> float:
    return value / _MIB if field == "memory_used_mib" else value


def store_reading(cluster_id: int, reading: Reading, at: datetime) -> int:
    """Store one reading; returns the number of samples.

    Unknown devices are skipped. Several readings within one raw step are stored as one sample, the latest.
    """
    at = start_of(at, Resolution.RAW)
    uuids = {*reading.devices, *(key[0] for key in reading.containers)}
    known = dict(Device.objects.filter(node__cluster_id=cluster_id, uuid__in=uuids).values_list("uuid", "pk"))
    devices = [
        DeviceSample(device_id=known[uuid], at=at, **_with_peaks(values))
        for uuid, values in reading.devices.items()
        if uuid in known
    ]
    containers = [
        ContainerSample(
            device_id=known[uuid], namespace=namespace, pod_name=pod, container=container, at=at, **_with_peaks(values)
        )
        for (uuid, namespace, pod, container), values in reading.containers.items()
        if uuid in known and len(namespace) <= _MAX_NAMESPACE
    ]
    values = ["memory_used_mib", "memory_used_mib_peak", "utilization_percent", "utilization_percent_peak"]
    DeviceSample.objects.bulk_create(
        devices,
        update_conflicts=True,
        unique_fields=["device", "resolution", "at"],
        update_fields=[*values, *_PHYSICAL],
    )
    ContainerSample.objects.bulk_create(
        containers,
        update_conflicts=True,
        unique_fields=["device", "namespace", "pod_name", "container", "resolution", "at"],
        update_fields=[*values, "last_kernel_seconds"],
    )
    return len(devices) + len(containers)


def _with_peaks(values: Mapping[str, float]) -> dict[str, Any]:
    peaks = {f"{name}_peak": values[name] for name in _WITH_PEAK if name in values}
    return {**values, **peaks}


_MEAN_AND_PEAK: Final[Mapping[str, Aggregate]] = {
    "memory_used_mib": "avg",
    "memory_used_mib_peak": "max",
    "utilization_percent": "avg",
    "utilization_percent_peak": "max",
}
_PHYSICAL: Final[Mapping[str, Aggregate]] = {"temperature_celsius": "avg", "power_watts": "avg"}
_SERIES: Final = (
    Series(DeviceSample._meta.db_table, ("device_id",), {**_MEAN_AND_PEAK, **_PHYSICAL}),
    Series(
        ContainerSample._meta.db_table,
        ("device_id", "namespace", "pod_name", "container"),
        {**_MEAN_AND_PEAK, "last_kernel_seconds": "min"},
    ),
)


def roll_up_telemetry(now: datetime) -> None:
    """Roll whole steps up to means and peaks in the next resolution, then delete samples beyond their retention."""
    roll_up(_SERIES, RETENTION, now)
