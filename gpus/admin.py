"""Nodes, devices and slices to look at; a device can be cordoned, so that it takes no new slice."""

from typing import Any

from django.contrib import admin
from django.http import HttpRequest

from gpus.models import Device, DeviceAllocation, Node


class _SeenInTheCluster(admin.ModelAdmin):  # type: ignore[type-arg]  # Django's class takes no argument at run time
    def has_add_permission(self, request: HttpRequest) -> bool:
        """The cluster adds."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """The cluster removes."""
        return False


@admin.register(Node)
class NodeAdmin(_SeenInTheCluster):
    """Nodes."""

    list_display = ("name", "cluster", "ready", "unschedulable", "updated_at")
    list_filter = ("cluster", "ready", "unschedulable")
    search_fields = ("name",)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """The cluster changes."""
        return False


@admin.register(Device)
class DeviceAdmin(_SeenInTheCluster):
    """Devices."""

    list_display = ("uuid", "node", "index", "vendor", "type", "healthy", "cordoned", "used_slots", "slots")
    list_filter = ("vendor", "type", "healthy", "cordoned")
    list_select_related = ("node",)
    search_fields = ("uuid", "node__name")
    fields = (
        "uuid", "node", "index", "vendor", "type", "mode", "healthy", "cordoned", "slots", "memory_mib",
        "cores_percent", "used_slots", "used_memory_mib", "used_cores_percent", "found_slots", "found_memory_mib",
        "found_cores_percent", "missing_since",
    )  # fmt: skip
    readonly_fields = tuple(field for field in fields if field != "cordoned")

    def save_model(self, request: HttpRequest, obj: Device, form: Any, change: bool) -> None:
        """The cordon and nothing else: the scheduler and the watcher write this row too."""
        obj.save(update_fields=["cordoned", "updated_at"])


@admin.register(DeviceAllocation)
class DeviceAllocationAdmin(_SeenInTheCluster):
    """Slices."""

    list_display = ("device_uuid", "node", "workload", "pod_set", "replica", "memory_mib", "cores_percent", "source")
    list_filter = ("source", "cluster")
    list_select_related = ("node", "workload")
    search_fields = ("device_uuid", "workload__name", "pod_name")

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """The scheduler and the watcher change."""
        return False
