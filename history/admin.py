"""Prices and records of use in the admin."""

from django.contrib import admin
from django.http import HttpRequest

from history.models import Price, UsageRecord


@admin.register(Price)
class PriceAdmin(admin.ModelAdmin):  # type: ignore[type-arg]  # Django's class takes no argument at run time
    list_display = ("cluster", "flavor", "resource", "per_hour", "currency")
    list_filter = ("cluster",)


@admin.register(UsageRecord)
class UsageRecordAdmin(admin.ModelAdmin):  # type: ignore[type-arg]  # as above
    """A read-only page: the database writes usage records."""

    list_display = ("namespace", "workload_name", "cluster_queue", "submitted_by", "started_at", "ended_at", "outcome")
    list_filter = ("cluster", "outcome")
    search_fields = ("namespace", "workload_name")

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: UsageRecord | None = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: UsageRecord | None = None) -> bool:
        return False
