"""Read-only admin pages of leases and of cycles that decided something.

Decisions are read over REST: their table is partitioned and has no key that the admin could use.
"""

from typing import Any

from django.contrib import admin
from django.http import HttpRequest

from scheduler.models import Lease, SchedulingCycle


class _ReadOnlyAdmin(admin.ModelAdmin):  # type: ignore[type-arg]  # Django's class takes no argument at run time
    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


@admin.register(Lease)
class LeaseAdmin(_ReadOnlyAdmin):
    list_display = ("cluster", "epoch", "holder", "acquired_at", "renewed_at")


@admin.register(SchedulingCycle)
class SchedulingCycleAdmin(_ReadOnlyAdmin):
    list_display = ("cluster", "epoch", "number", "started_at", "duration_seconds", "heads", "admitted", "preempted")
    list_filter = ("cluster",)
    show_full_result_count = False
