"""Admin pages of clusters and role bindings."""

from typing import TYPE_CHECKING, Any

from django import forms
from django.contrib import admin, messages
from django.http import HttpRequest, HttpResponse

from accounts.models import Cluster, ClusterMode, DeviceBinding, ExternalIdentity, RoleBinding
from accounts.services.cluster_settings import (
    require_not_mirrored,
    set_device_binding,
    set_mode,
    set_placement,
    set_serves_kueue_objects,
    telemetry_url_mistake,
)
from foundation.exceptions import Conflict, MirroredFromCluster
from scheduling.model.vocabulary import PlacementScope

if TYPE_CHECKING:
    AnyModelAdmin = admin.ModelAdmin[Any]
    AnyTabularInline = admin.TabularInline[Any, Any]
    AnyModelForm = forms.ModelForm[Any]
else:  # Django's classes take no argument at run time
    AnyModelAdmin, AnyTabularInline, AnyModelForm = admin.ModelAdmin, admin.TabularInline, forms.ModelForm


class ClusterObjectAdmin(AnyModelAdmin):
    """Admin pages of a cluster's objects. While another scheduler manages the cluster, they are read-only and give the
    reason.
    """

    def cluster_of(self, obj: Any) -> Cluster:
        cluster: Cluster = obj.cluster
        return cluster

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return super().has_change_permission(request, obj) and not self.is_mirrored(obj)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return super().has_delete_permission(request, obj) and not self.is_mirrored(obj)

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Show the page, with the reason if it is read-only."""
        obj = self.get_object(request, object_id)
        if obj is not None:
            try:
                require_not_mirrored(self.cluster_of(obj))
            except MirroredFromCluster as refusal:
                messages.warning(request, refusal.message)
        return super().change_view(request, object_id, form_url, extra_context)

    def is_mirrored(self, obj: Any) -> bool:
        return obj is not None and self.cluster_of(obj).is_mirrored


class ClusterForm(AnyModelForm):
    def clean_telemetry_urls(self) -> list[str]:
        """Return the list of addresses. Raises ValidationError for an address that cannot be queried."""
        urls = self.cleaned_data["telemetry_urls"] or []
        if not isinstance(urls, list):
            raise forms.ValidationError('Expected a list of addresses, such as ["http://10.0.0.7:9394/metrics"].')
        for mistake in filter(None, map(telemetry_url_mistake, urls)):
            raise forms.ValidationError(mistake)
        return urls


@admin.register(Cluster)
class ClusterAdmin(AnyModelAdmin):
    """Clusters. Their Configuration is applied as a manifest; a cluster that has rows cannot be deleted."""

    list_display = ("name", "mode", "server_url", "created_at")
    form = ClusterForm
    fields = (
        "name", "mode", "serves_kueue_objects", "device_binding", "placement", "accepts_workloads_from", "server_url",
        "telemetry_urls", "configuration", "device_plugin_configuration", "configuration_generation",
    )  # fmt: skip

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:
        """Make the fields that applies write read-only, and also the name, which other objects refer to."""
        shown = ("configuration", "device_plugin_configuration", "configuration_generation")
        return ("name", *shown) if obj is not None else shown

    def save_model(self, request: HttpRequest, obj: Cluster, form: Any, change: bool) -> None:
        """Write only the fields of the form, because applies write this row too."""
        if change:
            try:
                set_mode(obj, ClusterMode(obj.mode))
            except Conflict as refused:
                self.message_user(request, f"Nothing was stored. {refused}", messages.ERROR)
                return
            obj.save(update_fields=["server_url", "telemetry_urls", "accepts_workloads_from"])
            set_serves_kueue_objects(obj, serves=obj.serves_kueue_objects)
            set_device_binding(obj, DeviceBinding(obj.device_binding))
            set_placement(obj, PlacementScope(obj.placement))
        else:
            obj.save()


@admin.register(ExternalIdentity)
class ExternalIdentityAdmin(AnyModelAdmin):
    """Links between users and accounts of the OpenID Connect provider. Adding a row links a user to an account."""

    list_display = ("user", "issuer", "subject", "created_at")
    search_fields = ("user__username", "subject")
    list_select_related = ("user",)
    autocomplete_fields = ("user",)
    fields = ("user", "issuer", "subject")


@admin.register(RoleBinding)
class RoleBindingAdmin(AnyModelAdmin):
    """Roles of users and groups. Open live streams apply a change within seconds."""

    list_display = ("name", "username", "group", "role", "cluster", "namespace", "cohort")
    list_filter = ("role", "cluster", "namespace")
    search_fields = ("name", "username", "group", "namespace")
    list_select_related = ("cluster",)
    fields = ("cluster", "name", "username", "group", "role", "namespace", "cohort")
