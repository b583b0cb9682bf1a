"""Admin pages of configuration kinds. As over REST, a save applies the object, and a delete waits until nothing uses
it.
"""

from collections.abc import Mapping
from typing import Any, ClassVar, Final

from django.contrib import admin, messages
from django.contrib.admin.utils import unquote
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse

from accounts.admin import ClusterObjectAdmin
from foundation.exceptions import Conflict, NotFound
from queues.admin import forms
from queues.admin.history import MOST, edits_of
from queues.kinds import KINDS
from queues.services.configuration import delete_object, objects


class ConfigurationAdmin(ClusterObjectAdmin):
    """A kind whose form produces a manifest."""

    search_fields = ("name",)
    actions = None
    named_by: ClassVar[Any] = ("cluster", "name")

    object_history_template = "admin/configuration_history.html"
    change_form_template = "admin/configuration_form.html"

    def history_view(
        self, request: HttpRequest, object_id: str, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Every edit, including those over REST and from the cluster, with old and new values."""
        obj = self.get_object(request, unquote(object_id))
        edits = [] if obj is None else edits_of(type(obj).__name__, obj.cluster.name, _namespace_of(obj), obj.name)
        return super().history_view(request, object_id, {**(extra_context or {}), "edits": edits, "most": MOST})

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:
        """Make the fields that identify an object read-only."""
        return self.named_by if obj is not None else ()

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Return true for mirrored objects, too: Django can show these fields only in their form, which then refuses
        changes.
        """
        return super(ClusterObjectAdmin, self).has_change_permission(request, obj)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        """Add the values that the form shows."""
        rows = super().get_queryset(request).select_related("cluster")
        return rows.prefetch_related(*KINDS[self.model.__name__].prefetch)

    @admin.display(description="fair sharing weight", ordering="fair_sharing_weight")
    def weight(self, obj: Any) -> str:
        """Return the weight as the author wrote it, without the zeros that the column adds."""
        return f"{obj.fair_sharing_weight.normalize():f}"

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        """Apply the object by the service: together with its quotas, the change notes and the wake-up."""
        applied = form.apply(actor=request.user.get_username())
        key = {"namespace": applied.namespace} if form.kind.namespaced else {}
        obj.pk = objects(obj.cluster, form.kind).get(name=applied.name, **key).pk
        for warning in applied.warnings:
            messages.warning(request, warning)

    def save_related(self, request: HttpRequest, form: Any, formsets: Any, change: bool) -> None:
        """Do nothing: the form has saved everything."""

    def delete_model(self, request: HttpRequest, obj: Any) -> None:
        """Delete it, or mark it for deletion until nothing uses it."""
        kind = type(obj).__name__
        try:
            held = delete_object(obj.cluster, kind, obj.name, _namespace_of(obj), actor=request.user.get_username())
        except NotFound:
            return  # another user saved first
        except Conflict as refused:
            messages.error(request, str(refused))
            return
        if held:
            messages.warning(request, f"{obj} will be deleted when nothing uses it; now {held}.")

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> None:
        for obj in queryset:
            self.delete_model(request, obj)

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> Any:
        """No other object is deleted with it: references are names, and the service deletes its quotas."""
        return [str(obj) for obj in objs], {}, set(), []


def _namespace_of(obj: Any) -> str:
    return str(obj.namespace) if KINDS[type(obj).__name__].namespaced else ""


_LISTED: Final[Mapping[str, tuple[str, ...]]] = {
    "Namespace": ("labels",),
    "WorkloadPriorityClass": ("value", "description"),
    "PriorityClass": ("value", "global_default"),
    "RuntimeClass": ("handler", "pod_overhead"),
    "LimitRange": (),
    "ResourceQuota": ("hard",),
    "Topology": ("levels",),
    "AdmissionCheck": ("controller_name", "active"),
    "ProvisioningRequestConfig": ("provisioning_class_name", "managed_resources"),
    "MultiKueueCluster": ("kube_config", "cluster_profile"),
    "MultiKueueConfig": ("clusters",),
    "ResourceFlavor": ("node_labels", "topology_name"),
    "Cohort": ("parent_name", "weight"),
    "ClusterQueue": ("cohort_name", "queueing_strategy", "stop_policy", "weight"),
    "LocalQueue": ("cluster_queue_name", "stop_policy"),
    "Reservation": ("starts_at", "ends_at", "recurrence", "if_busy"),
}
"""The columns of each kind's list, in addition to its name and its cluster."""

_FILTERS: Final[Mapping[str, tuple[str, ...]]] = {
    "ClusterQueue": ("cohort_name", "stop_policy"),
    "LocalQueue": ("cluster_queue_name",),
}

for _name, _kind in KINDS.items():
    if _name not in _LISTED:
        continue  # a RoleBinding has a page of its own: it may apply to all clusters
    _namespace = ("namespace",) if _kind.namespaced else ()
    _page = {
        "__doc__": _kind.description,
        "form": forms.form_of(_kind),
        "fieldsets": forms.fieldsets_of(_kind),
        "named_by": forms.named_by(_kind),
        "list_display": ("__str__", "cluster", *_LISTED[_name]),
        "list_filter": ("cluster", *_namespace, *_FILTERS.get(_name, ())),
    }
    admin.site.register(_kind.model, type(f"{_name}Admin", (ConfigurationAdmin,), _page))
