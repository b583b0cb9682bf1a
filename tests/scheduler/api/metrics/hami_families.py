"""HAMi's metrics by name and their labels, without `zone`, which all have; every one is a gauge.

Of its scheduler (cmd/scheduler/metrics.go) and of its monitor on each node (cmd/vGPUmonitor/metrics.go). The legacy
names come beside them where either runs with --legacy-metrics.
"""

from typing import Final

_DEVICE: Final = ("node", "device_uuid", "device_index", "device_type")
_SLICE: Final = ("namespace", "node", "pod", "container_index", "device_uuid")
_CONTAINER: Final = ("namespace", "pod", "container", "vdevice_index", "device_uuid")
_MIG: Final = ("mig_uuid", "profile", "gpu_instance_id", "compute_instance_id")

HAMI_FAMILIES: Final[dict[str, tuple[str, ...]]] = {
    "hami_build_info": ("version", "revision", "build_date", "go_version", "compiler", "platform"),
    "hami_gpu_memory_limit_bytes": _DEVICE,
    "hami_gpu_core_limit_ratio": _DEVICE,
    "hami_gpu_memory_allocated_bytes": (*_DEVICE, "device_cores"),
    "hami_gpu_core_allocated_ratio": _DEVICE,
    "hami_gpu_shared_count": _DEVICE,
    "hami_node_gpu_overview": (*_DEVICE, "device_cores", "device_memory_limit"),
    "hami_node_gpu_memory_allocated_ratio": _DEVICE,
    "hami_node_gpu_mig_instance_info": (
        "node", "device_uuid", "device_index", *_MIG, "placement_start", "placement_size",
    ),
    "hami_vgpu_memory_allocated_bytes": _SLICE,
    "hami_vgpu_core_allocated_ratio": _SLICE,
    "hami_resource_quota_used": ("namespace", "quota_name", "limit"),
    "hami_resource_quota_limit": ("namespace", "quota_name"),
    "hami_host_gpu_memory_used_bytes": _DEVICE,
    "hami_host_gpu_utilization_ratio": _DEVICE,
    "hami_host_gpu_memory_controller_utilization_ratio": _DEVICE[1:],
    "hami_vgpu_memory_used_bytes": _CONTAINER,
    "hami_vgpu_memory_limit_bytes": _CONTAINER,
    "hami_vgpu_memory_context_bytes": _CONTAINER,
    "hami_vgpu_memory_module_bytes": _CONTAINER,
    "hami_vgpu_memory_buffer_bytes": _CONTAINER,
    "hami_container_device_memory_bytes": _CONTAINER,
    "hami_container_device_utilization_ratio": _CONTAINER,
    "hami_container_last_kernel_elapsed_seconds": _CONTAINER,
    "hami_mig_device_info": (*_CONTAINER, *_MIG),
}  # fmt: skip

_OLD_DEVICE: Final = ("nodeid", "deviceuuid", "deviceidx", "devicetype")
_OLD_SLICE: Final = ("podnamespace", "nodename", "podname", "containeridx", "deviceuuid")
_OLD_CONTAINER: Final = ("podnamespace", "podname", "ctrname", "vdeviceid", "deviceuuid")

LEGACY_FAMILIES: Final[dict[str, tuple[str, ...]]] = {
    "GPUDeviceMemoryLimit": _OLD_DEVICE,
    "GPUDeviceCoreLimit": _OLD_DEVICE,
    "GPUDeviceMemoryAllocated": (*_OLD_DEVICE, "devicecores"),
    "GPUDeviceCoreAllocated": _OLD_DEVICE,
    "GPUDeviceSharedNum": _OLD_DEVICE,
    "nodeGPUOverview": (*_OLD_DEVICE, "devicecores", "devicememorylimit"),
    "nodeGPUMemoryPercentage": _OLD_DEVICE,
    "vGPUMemoryAllocated": _OLD_SLICE,
    "vGPUCoreAllocated": _OLD_SLICE,
    "QuotaUsed": ("quotanamespace", "quotaName", "limit"),
    "HostGPUMemoryUsage": _OLD_DEVICE,
    "HostCoreUtilization": _OLD_DEVICE,
    "vGPU_device_memory_usage_in_bytes": _OLD_CONTAINER,
    "vGPU_device_memory_limit_in_bytes": _OLD_CONTAINER,
    "Device_utilization_desc_of_container": _OLD_CONTAINER,
    "Device_last_kernel_of_container": _OLD_CONTAINER,
}
"""Those that one of the newer names above has replaced and that are given."""
