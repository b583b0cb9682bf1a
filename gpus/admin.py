"""Admin pages of nodes, devices and slices. A node or device can be cordoned (it takes no new pods) or drained."""

from typing import Any

from django.contrib import admin
from django.http import HttpRequest

from accounts.admin import ClusterObjectAdmin
from accounts.models import Cluster
from gpus.models import Device, DeviceAllocation, Node
from gpus.services.cordon import close_device, close_node


class _SeenInTheCluster(ClusterObjectAdmin):
    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


@admin.register(Node)
class NodeAdmin(_SeenInTheCluster):
    list_display = ("name", "cluster", "ready", "unschedulable", "cordoned", "draining", "updated_at")
    list_filter = ("cluster", "ready", "unschedulable", "cordoned", "draining")
    search_fields = ("name",)
    fields = ("name", "cluster", "ready", "unschedulable", "cordoned", "draining", "labels", "taints", "allocatable")
    readonly_fields = tuple(field for field in fields if field not in {"cordoned", "draining"})

    def save_model(self, request: HttpRequest, obj: Node, form: Any, change: bool) -> None:
        """Save only cordon and drain, because the watcher writes this row too."""
        close_node(obj.cluster_id, obj.name, cordoned=obj.cordoned, draining=obj.draining)


@admin.register(Device)
class DeviceAdmin(_SeenInTheCluster):
    list_display = ("uuid", "node", "index", "vendor", "type", "healthy", "cordoned", "draining", "used_slots", "slots")
    list_filter = ("vendor", "type", "healthy", "cordoned", "draining")
    list_select_related = ("node",)
    search_fields = ("uuid", "node__name")
    fields = (
        "uuid", "node", "index", "vendor", "type", "mode", "healthy", "cordoned", "draining", "slots",
        "memory_mib", "cores_percent", "used_slots", "used_memory_mib", "used_cores_percent", "external_slots",
        "external_memory_mib", "external_cores_percent", "missing_since",
    )  # fmt: skip
    readonly_fields = tuple(field for field in fields if field not in {"cordoned", "draining"})

    def cluster_of(self, obj: Device) -> Cluster:
        return obj.node.cluster

    def save_model(self, request: HttpRequest, obj: Device, form: Any, change: bool) -> None:
        """Save only cordon and drain, because the scheduler and the watcher write this row too."""
        close_device(obj.node.cluster_id, obj.uuid, cordoned=obj.cordoned, draining=obj.draining)


@admin.register(DeviceAllocation)
class DeviceAllocationAdmin(_SeenInTheCluster):
    list_display = ("device_uuid", "node", "workload", "pod_set", "replica", "memory_mib", "cores_percent", "source")
    list_filter = ("source", "cluster")
    list_select_related = ("node", "workload")
    search_fields = ("device_uuid", "workload__name", "pod_name")

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Read-only: the scheduler and the watcher write these rows."""
        return False
