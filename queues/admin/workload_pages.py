"""Lists workloads, and holds, releases or cancels them; everything else is up to the scheduler."""

from collections.abc import Callable
from typing import Any

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest

from accounts.admin import AnyModelAdmin, AnyTabularInline
from accounts.services.cluster_settings import require_not_mirrored
from foundation.exceptions import MirroredFromCluster
from queues.models import Job, PodSet, Workload, WorkloadEvent
from queues.services import workloads


class ReadOnlyAdmin(AnyModelAdmin):
    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


class PodSetInline(AnyTabularInline):
    """The pod sets of a workload."""

    model = PodSet
    fields = ("name", "count", "min_count", "requests", "admitted_count", "flavors", "resource_usage")
    readonly_fields = fields
    can_delete = False
    extra = 0


@admin.register(Workload)
class WorkloadAdmin(ReadOnlyAdmin):
    list_display = ("__str__", "cluster", "cluster_queue_name", "priority", "status", "reason", "created_at")
    list_filter = ("cluster", "status", "namespace", "cluster_queue_name", "active")
    search_fields = ("name", "namespace")
    list_select_related = ("cluster",)
    show_full_result_count = False
    inlines = (PodSetInline,)
    actions = ("hold", "release", "requeue", "cancel")

    @admin.action(description="Hold", permissions=["act"])
    def hold(self, request: HttpRequest, chosen: QuerySet[Workload]) -> None:
        """Hold the selected workloads."""
        self._act(request, chosen, workloads.hold)

    @admin.action(description="Release", permissions=["act"])
    def release(self, request: HttpRequest, chosen: QuerySet[Workload]) -> None:
        self._act(request, chosen, workloads.release)

    @admin.action(description="Requeue", permissions=["act"])
    def requeue(self, request: HttpRequest, chosen: QuerySet[Workload]) -> None:
        """Stop the selected workloads and queue them again."""
        self._act(request, chosen, workloads.requeue)

    @admin.action(description="Cancel for good", permissions=["act"])
    def cancel(self, request: HttpRequest, chosen: QuerySet[Workload]) -> None:
        self._act(request, chosen, workloads.cancel)

    def has_act_permission(self, request: HttpRequest) -> bool:
        """Return whether the user's Django permissions allow changes of workloads."""
        return request.user.has_perm("queues.change_workload")

    def _act(
        self, request: HttpRequest, chosen: QuerySet[Workload], action: Callable[..., list[tuple[str, str]]]
    ) -> None:
        changed = 0
        for workload_cluster in {workload.cluster for workload in chosen.select_related("cluster")}:
            try:
                require_not_mirrored(workload_cluster)
            except MirroredFromCluster as refusal:
                messages.error(request, refusal.message)
                continue
            keys = list(chosen.filter(cluster=workload_cluster).values_list("namespace", "name"))
            changed += len(action(workload_cluster, keys, actor=request.user.get_username()))
        messages.info(request, f"{changed} workload{'' if changed == 1 else 's'} changed.")


@admin.register(WorkloadEvent)
class WorkloadEventAdmin(ReadOnlyAdmin):
    list_display = ("at", "cluster", "namespace", "workload_name", "type", "reason", "message", "actor")
    list_filter = ("cluster", "type", "reason")
    search_fields = ("workload_name", "namespace")
    show_full_result_count = False


@admin.register(Job)
class JobAdmin(ReadOnlyAdmin):
    list_display = ("__str__", "kind", "cluster", "managed", "suspended", "created_at", "deletion_requested_at")
    list_filter = ("cluster", "kind", "namespace", "managed")
    search_fields = ("name", "namespace")
    show_full_result_count = False
