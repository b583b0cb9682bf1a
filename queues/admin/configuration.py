"""Pages of configuration kinds. A save applies the object, a delete waits for what still holds it, as over REST."""

from typing import Any, ClassVar

from django.contrib import admin, messages
from django.db.models import Model, QuerySet
from django.http import HttpRequest

from accounts.exceptions import NotFound
from accounts.models import Namespace
from queues import models
from queues.admin import forms
from queues.services.configuration import apply_object, delete_object, objects
from queues.services.kinds import KINDS


class ConfigurationAdmin(admin.ModelAdmin):  # type: ignore[type-arg]  # Django's class takes no argument at run time
    """A kind whose form makes a manifest."""

    search_fields = ("name",)
    actions = None
    named_by: ClassVar[Any] = ("cluster", "name")

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:
        """What names an object stays."""
        return self.named_by if obj is not None else ()

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        """With what the form shows."""
        rows = super().get_queryset(request).select_related("cluster")
        kind = KINDS[self.model.__name__]
        return rows.prefetch_related("resource_groups__quotas") if kind.has_quotas else rows

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        """Apply the object by the service: quotas, changes and the wake-up with it."""
        cluster = obj.cluster
        applied = apply_object(cluster, form.manifest(), kind=form.kind, actor=request.user.get_username())
        key = {"namespace": applied.namespace} if KINDS[form.kind].namespaced else {}
        obj.pk = objects(cluster, KINDS[form.kind]).get(name=applied.name, **key).pk
        obj.name = applied.name
        for warning in applied.warnings:
            messages.warning(request, warning)

    def save_related(self, request: HttpRequest, form: Any, formsets: Any, change: bool) -> None:
        """All of it is saved already."""

    def delete_model(self, request: HttpRequest, obj: Any) -> None:
        """Delete it, or mark it to go when nothing holds it any more."""
        kind = type(obj).__name__
        namespace = obj.namespace if KINDS[kind].namespaced else ""
        try:
            held = delete_object(obj.cluster, kind, obj.name, namespace, actor=request.user.get_username())
        except NotFound:
            return  # somebody else was quicker
        if held:
            messages.warning(request, f"{obj} goes when nothing holds it any more; now {held}.")

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> None:
        """Each by the service."""
        for obj in queryset:
            self.delete_model(request, obj)

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> Any:
        """Nothing else goes with an object: references are names, and the service looks after its quotas."""
        return [str(obj) for obj in objs], {}, set(), []


@admin.register(models.ClusterQueue)
class ClusterQueueAdmin(ConfigurationAdmin):
    """ClusterQueues with their quotas."""

    form = forms.ClusterQueueForm
    list_display = ("name", "cluster", "cohort_name", "queueing_strategy", "stop_policy", "fair_sharing_weight")
    list_filter = ("cluster", "cohort_name", "stop_policy")
    fieldsets = (
        (None, {"fields": ("cluster", "name", "cohort", "queueing_strategy", "stop_policy", "namespace_selector")}),
        ("Quotas", {"fields": ("resource_groups",)}),
        ("Flavors", {"fields": ("when_can_borrow", "when_can_preempt", "preference")}),
        (
            "Preemption",
            {"fields": ("within_cluster_queue", "reclaim_within_cohort", "borrow_policy", "max_priority_threshold")},
        ),
        ("Fair sharing and admission", {"fields": ("fair_weight", "admission_mode", "admission_checks")}),
        ("Beyond Kueue", {"fields": ("preempt_for_devices", "minimum_run_seconds", "cool_down_seconds")}),
        ("Metadata", {"classes": ("collapse",), "fields": ("labels", "annotations")}),
    )


@admin.register(models.Cohort)
class CohortAdmin(ConfigurationAdmin):
    """Cohorts."""

    form = forms.CohortForm
    list_display = ("name", "cluster", "parent_name", "fair_sharing_weight")
    list_filter = ("cluster",)
    fieldsets = (
        (None, {"fields": ("cluster", "name", "parent_name", "fair_weight", "resource_groups")}),
        ("Beyond Kueue", {"fields": ("minimum_run_seconds", "cool_down_seconds")}),
        ("Metadata", {"classes": ("collapse",), "fields": ("labels", "annotations")}),
    )


@admin.register(models.LocalQueue)
class LocalQueueAdmin(ConfigurationAdmin):
    """LocalQueues."""

    form = forms.LocalQueueForm
    named_by = ("cluster", "namespace", "name")
    list_display = ("__str__", "cluster", "cluster_queue_name", "stop_policy")
    list_filter = ("cluster", "namespace", "cluster_queue_name")


@admin.register(models.ResourceFlavor)
class ResourceFlavorAdmin(ConfigurationAdmin):
    """ResourceFlavors."""

    form = forms.ResourceFlavorForm
    list_display = ("name", "cluster", "node_labels", "topology_name")
    list_filter = ("cluster",)


class ManifestAdmin(ConfigurationAdmin):
    """A kind that is edited as a manifest."""

    named_by = ("cluster",)
    list_filter: ClassVar[Any] = ("cluster",)
    fields = ("cluster", "manifest_text")


def _form(model_: type[Model], api_version: str, body: str) -> type[forms.ManifestForm]:
    place = "  namespace: \n" if KINDS[model_.__name__].namespaced else ""

    class Form(forms.ManifestForm):
        kind = model_.__name__
        example = f"apiVersion: {api_version}\nkind: {model_.__name__}\nmetadata:\n  name: \n{place}{body}"

        class Meta:
            model = model_
            fields = ["cluster"]

    return Form


_KUEUE = "kueue.x-k8s.io/v1beta2"


@admin.register(Namespace)
class NamespaceAdmin(ManifestAdmin):
    """Namespaces."""

    form = _form(Namespace, "v1", "  labels: {}\n")
    list_display = ("name", "cluster", "labels")


@admin.register(models.WorkloadPriorityClass)
class WorkloadPriorityClassAdmin(ManifestAdmin):
    """WorkloadPriorityClasses; a change of value changes the workloads that name the class."""

    form = _form(models.WorkloadPriorityClass, _KUEUE, "value: 100\n")
    list_display = ("name", "cluster", "value", "description")


@admin.register(models.PriorityClass)
class PriorityClassAdmin(ManifestAdmin):
    """PriorityClasses."""

    form = _form(models.PriorityClass, "scheduling.k8s.io/v1", "value: 100\n")
    list_display = ("name", "cluster", "value", "global_default")


@admin.register(models.Topology)
class TopologyAdmin(ManifestAdmin):
    """Topologies."""

    form = _form(models.Topology, _KUEUE, "spec:\n  levels:\n  - nodeLabel: kubernetes.io/hostname\n")
    list_display = ("name", "cluster", "levels")


@admin.register(models.AdmissionCheck)
class AdmissionCheckAdmin(ManifestAdmin):
    """AdmissionChecks."""

    form = _form(models.AdmissionCheck, _KUEUE, "spec:\n  controllerName: \n")
    list_display = ("name", "cluster", "controller_name", "active")


@admin.register(models.ResourceQuota)
class ResourceQuotaAdmin(ManifestAdmin):
    """ResourceQuotas; here they limit device memory and cores."""

    form = _form(models.ResourceQuota, "v1", "spec:\n  hard:\n    limits.nvidia.com/gpumem: 10000\n")
    list_display = ("__str__", "cluster", "hard")
    list_filter = ("cluster", "namespace")


@admin.register(models.LimitRange)
class LimitRangeAdmin(ManifestAdmin):
    """LimitRanges."""

    form = _form(
        models.LimitRange, "v1", "spec:\n  limits:\n  - type: Container\n    defaultRequest:\n      cpu: 100m\n"
    )
    list_display = ("__str__", "cluster")
    list_filter = ("cluster", "namespace")


@admin.register(models.RuntimeClass)
class RuntimeClassAdmin(ManifestAdmin):
    """RuntimeClasses."""

    form = _form(models.RuntimeClass, "node.k8s.io/v1", "handler: \n")
    list_display = ("name", "cluster", "handler", "pod_overhead")
