"""Gauges of devices, under the names of HAMi's scheduler and of its monitor, for which dashboards and alerts exist.

The scheduler's gauges: each device's capacity, its allocated part and the pods that hold it. The monitor's gauges: the
measured use of containers in the latest sample (`scheduler.housekeeping.telemetry`); an old sample is left out rather
than repeated. METRICS_LEGACY_HAMI_NAMES adds HAMi's older names, like its own flag --legacy-metrics.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

from django.conf import settings
from django.db.models import F, OuterRef, QuerySet, Subquery
from django.db.models.functions import Coalesce
from django.utils import timezone
from prometheus_client.core import GaugeMetricFamily, Metric

from foundation.time_series import Resolution
from gpus.manifests import configured_vendors
from gpus.models import ContainerSample, Device, DeviceAllocation, DeviceSample
from gpus.vendors import VENDORS
from queues.models import Pod, ResourceQuota
from scheduling.devices.search.namespace_quota import whole_amounts

_ZONE: Final = "vGPU"
_MIB: Final = 2**20
_FRESH: Final = timedelta(minutes=1)
_DEVICE: Final = ("node", "device_uuid", "device_index", "device_type")
_OLD_DEVICE: Final = ("nodeid", "deviceuuid", "deviceidx", "devicetype")
_SLICE: Final = ("namespace", "node", "pod", "container_index", "device_uuid")
_OLD_SLICE: Final = ("podnamespace", "nodename", "podname", "containeridx", "deviceuuid")
_USED: Final = ("namespace", "pod", "container", "vdevice_index", "device_uuid")
_OLD_USED: Final = ("podnamespace", "podname", "ctrname", "vdeviceid", "deviceuuid")
_LIMITS: Final = "limits."


@dataclass(frozen=True, slots=True)
class _Name:
    """A family: its name and labels, and HAMi's older name and labels, where it has one."""

    name: str
    documentation: str
    labels: tuple[str, ...]
    old_name: str = ""
    old_labels: tuple[str, ...] = ()

    def families(self, samples: Sequence[tuple[Sequence[str], float]]) -> Iterator[Metric]:
        """`samples`: the values of the labels, the cluster's name first."""
        yield self._family(self.name, self.labels, samples)
        if self.old_name and settings.METRICS_LEGACY_HAMI_NAMES:
            yield self._family(self.old_name, self.old_labels, samples)

    def _family(self, name: str, labels: tuple[str, ...], samples: Sequence[tuple[Sequence[str], float]]) -> Metric:
        family = GaugeMetricFamily(name, self.documentation, labels=("cluster", *labels, "zone"))
        for values, value in samples:
            family.add_metric([*values, _ZONE], value)
        return family


_MEMORY_LIMIT: Final = _Name(
    "hami_gpu_memory_limit_bytes", "Memory of the device.", _DEVICE, "GPUDeviceMemoryLimit", _OLD_DEVICE
)
_CORE_LIMIT: Final = _Name(
    "hami_gpu_core_limit_ratio", "Cores of the device in percent.", _DEVICE, "GPUDeviceCoreLimit", _OLD_DEVICE
)
_MEMORY_ALLOCATED: Final = _Name(
    "hami_gpu_memory_allocated_bytes",
    "Allocated memory of the device.",
    (*_DEVICE, "device_cores"),
    "GPUDeviceMemoryAllocated",
    (*_OLD_DEVICE, "devicecores"),
)
_CORE_ALLOCATED: Final = _Name(
    "hami_gpu_core_allocated_ratio",
    "Allocated cores of the device, in percent.",
    _DEVICE,
    "GPUDeviceCoreAllocated",
    _OLD_DEVICE,
)
_SHARED: Final = _Name(
    "hami_gpu_shared_count", "Allocated slices of the device.", _DEVICE, "GPUDeviceSharedNum", _OLD_DEVICE
)
_OVERVIEW: Final = _Name(
    "hami_node_gpu_overview",
    "Allocated memory of the device, labelled with its capacities.",
    ("node", "device_uuid", "device_index", "device_cores", "device_memory_limit", "device_type"),
    "nodeGPUOverview",
    ("nodeid", "deviceuuid", "deviceidx", "devicecores", "devicememorylimit", "devicetype"),
)
_MEMORY_RATIO: Final = _Name(
    "hami_node_gpu_memory_allocated_ratio",
    "Allocated fraction of the device's memory, from 0 to 1.",
    _DEVICE,
    "nodeGPUMemoryPercentage",
    _OLD_DEVICE,
)
_SLICE_MEMORY: Final = _Name(
    "hami_vgpu_memory_allocated_bytes", "Memory allocated to a pod.", _SLICE, "vGPUMemoryAllocated", _OLD_SLICE
)
_SLICE_CORES: Final = _Name(
    "hami_vgpu_core_allocated_ratio", "Cores allocated to a pod, in percent.", _SLICE, "vGPUCoreAllocated", _OLD_SLICE
)
_QUOTA_USED: Final = _Name(
    "hami_resource_quota_used",
    "The usage of a namespace against its ResourceQuota.",
    ("namespace", "quota_name", "limit"),
    "QuotaUsed",
    ("quotanamespace", "quotaName", "limit"),
)
_QUOTA_LIMIT: Final = _Name("hami_resource_quota_limit", "The limit of a ResourceQuota.", ("namespace", "quota_name"))
_HOST_MEMORY: Final = _Name(
    "hami_host_gpu_memory_used_bytes",
    "Memory of the device that is in use.",
    _DEVICE,
    "HostGPUMemoryUsage",
    _OLD_DEVICE,
)
_HOST_UTILIZATION: Final = _Name(
    "hami_host_gpu_utilization_ratio",
    "Utilization of the device in percent.",
    _DEVICE,
    "HostCoreUtilization",
    _OLD_DEVICE,
)
_CONTAINER_MEMORY: Final = _Name(
    "hami_vgpu_memory_used_bytes",
    "Memory of the device that a container uses.",
    _USED,
    "vGPU_device_memory_usage_in_bytes",
    _OLD_USED,
)
_CONTAINER_LIMIT: Final = _Name(
    "hami_vgpu_memory_limit_bytes",
    "Memory of the device that a container may use.",
    _USED,
    "vGPU_device_memory_limit_in_bytes",
    _OLD_USED,
)
_CONTAINER_UTILIZATION: Final = _Name(
    "hami_container_device_utilization_ratio",
    "Utilization of the device by a container, in percent.",
    _USED,
    "Device_utilization_desc_of_container",
    _OLD_USED,
)
_CONTAINER_IDLE: Final = _Name(
    "hami_container_last_kernel_elapsed_seconds",
    "Seconds since a container's last kernel on the device.",
    _USED,
    "Device_last_kernel_of_container",
    _OLD_USED,
)

_Samples = list[tuple[Sequence[str], float]]


def device_families() -> Iterator[Metric]:
    """Yield every gauge of devices."""
    yield from _devices()
    yield from _slices()
    yield from _quotas()
    yield from _device_usage()
    yield from _container_usage()


def _labels_of(device: Device) -> list[str]:
    return [device.node.cluster.name, device.node.name, device.uuid, str(device.index), device.type]


def _devices() -> Iterator[Metric]:
    families: dict[_Name, _Samples] = {
        name: []
        for name in (
            _MEMORY_LIMIT, _CORE_LIMIT, _MEMORY_ALLOCATED, _CORE_ALLOCATED, _SHARED, _OVERVIEW, _MEMORY_RATIO,
        )
    }  # fmt: skip
    rows = Device.objects.select_related("node__cluster").order_by("node__cluster__name", "node__name", "index")
    for device in rows:
        labels = _labels_of(device)
        cluster, node, uuid, index, type_ = labels
        cores = str(device.cores_percent)
        memory = device.used_memory_mib + device.external_memory_mib
        families[_MEMORY_LIMIT].append((labels, device.memory_mib * _MIB))
        families[_CORE_LIMIT].append((labels, device.cores_percent))
        families[_MEMORY_ALLOCATED].append(([*labels, cores], memory * _MIB))
        families[_CORE_ALLOCATED].append((labels, device.used_cores_percent + device.external_cores_percent))
        families[_SHARED].append((labels, device.used_slots + device.external_slots))
        overview = [cluster, node, uuid, index, cores, str(device.memory_mib), type_]
        families[_OVERVIEW].append((overview, memory * _MIB))
        families[_MEMORY_RATIO].append((labels, memory / device.memory_mib if device.memory_mib else 0.0))
    for name, samples in families.items():
        yield from name.families(samples)


def _slices() -> Iterator[Metric]:
    """By pod and device, summed: HAMi does not distinguish containers, so its container_index is always 0.

    The limits of containers come from its monitor, which does. A decided slice has the name of the pod that the cluster
    reports in its place; until then its pod is empty, and in the monitor's gauges the slice is missing.
    """
    sums: dict[tuple[str, ...], list[int]] = defaultdict(lambda: [0, 0])
    limits: dict[tuple[str, ...], int] = defaultdict(int)
    rows = DeviceAllocation.objects.order_by().annotate(pod=_pod_of_slice()).values_list(
        "cluster__name", "namespace", "node__name", "pod", "device_uuid", "memory_mib", "cores_percent",
        "container", "device__index",
    )  # fmt: skip
    for cluster, namespace, node, pod, uuid, memory, cores, container, index in rows:
        held = sums[cluster, namespace, node, pod, "0", uuid]
        held[0] += memory
        held[1] += cores
        if container and pod and index is not None:
            limits[cluster, namespace, pod, container, str(index), uuid] += memory
    ordered = sorted(sums.items())
    yield from _CONTAINER_LIMIT.families([(labels, memory * _MIB) for labels, memory in sorted(limits.items())])
    yield from _SLICE_MEMORY.families([(labels, held[0] * _MIB) for labels, held in ordered])
    yield from _SLICE_CORES.families([(labels, held[1]) for labels, held in ordered])


def _pod_of_slice() -> Coalesce:
    """Return the name of the pod that holds a slice: for a decided one the newest pod in its place that has not
    ended."""
    pods = Pod.objects.filter(
        workload_id=OuterRef("workload_id"), pod_set=OuterRef("pod_set"), replica=OuterRef("replica"),
        phase__in=("Pending", "Running"),
    )  # fmt: skip
    return Coalesce(Subquery(pods.order_by("-pk").values("name")[:1]), F("pod_name"))


def _quotas() -> Iterator[Metric]:
    held: dict[tuple[int, str, str], list[int]] = defaultdict(lambda: [0, 0])
    slices = DeviceAllocation.objects.filter(device__isnull=False).order_by()
    for cluster_id, namespace, vendor, memory, cores in slices.values_list(
        "cluster_id", "namespace", "device__vendor", "memory_mib", "cores_percent"
    ):
        held[cluster_id, namespace, vendor][0] += memory
        held[cluster_id, namespace, vendor][1] += cores
    used: _Samples = []
    limits: _Samples = []
    for row in ResourceQuota.objects.select_related("cluster").order_by("cluster", "namespace", "name"):
        vendors = configured_vendors(row.cluster.device_plugin_configuration.get("settings", {}), VENDORS)
        amounts = {
            resource: held[row.cluster_id, row.namespace, vendor.common_word][position]
            for vendor in vendors
            for position, resource in enumerate((vendor.resources.memory, vendor.resources.cores))
            if resource
        }
        for name, limit in whole_amounts(row.hard).items():
            resource = name.removeprefix(_LIMITS)
            if name.startswith(_LIMITS) and resource in amounts:
                limits.append(([row.cluster.name, row.namespace, resource], limit))
                used.append(([row.cluster.name, row.namespace, resource, str(limit)], amounts[resource]))
    yield from _QUOTA_USED.families(used)
    yield from _QUOTA_LIMIT.families(limits)


def _device_usage() -> Iterator[Metric]:
    memory: _Samples = []
    utilization: _Samples = []
    rows = DeviceSample.objects.select_related("device__node__cluster")
    for sample in _newest(rows, "device_id"):
        labels = _labels_of(sample.device)
        if sample.memory_used_mib is not None:
            memory.append((labels, sample.memory_used_mib * _MIB))
        if sample.utilization_percent is not None:
            utilization.append((labels, sample.utilization_percent))
    yield from _HOST_MEMORY.families(memory)
    yield from _HOST_UTILIZATION.families(utilization)


def _container_usage() -> Iterator[Metric]:
    memory: _Samples = []
    utilization: _Samples = []
    idle: _Samples = []
    rows = ContainerSample.objects.select_related("device__node__cluster")
    for sample in _newest(rows, "device_id", "namespace", "pod_name", "container"):
        device = sample.device
        pod = (sample.namespace, sample.pod_name, sample.container)
        labels = [device.node.cluster.name, *pod, str(device.index), device.uuid]
        if sample.memory_used_mib is not None:
            memory.append((labels, sample.memory_used_mib * _MIB))
        if sample.utilization_percent is not None:
            utilization.append((labels, sample.utilization_percent))
        if sample.last_kernel_seconds is not None:
            idle.append((labels, sample.last_kernel_seconds))
    yield from _CONTAINER_MEMORY.families(memory)
    yield from _CONTAINER_UTILIZATION.families(utilization)
    yield from _CONTAINER_IDLE.families(idle)


def _newest(rows: QuerySet[Any, Any], *keys: str) -> QuerySet[Any, Any]:
    fresh = rows.filter(resolution=Resolution.RAW, at__gte=timezone.now() - _FRESH)
    return fresh.order_by(*keys, "-at").distinct(*keys)
