"""What a namespace allows its pods, as Kubernetes states it, and what running a pod costs beside its containers."""

from django.db import models

from accounts.models.base import ClusterObject, EditedObject, NamespacedObject


class ResourceQuota(EditedObject, NamespacedObject):
    """Kubernetes' ResourceQuota; here its limits of device memory and cores count, as in HAMi."""

    hard = models.JSONField(default=dict, blank=True, help_text="{resource: quantity}")
    scopes = models.JSONField(default=list, blank=True)
    scope_selector = models.JSONField(default=dict, blank=True)

    class Meta:
        ordering = ["namespace", "name"]
        constraints = [
            models.UniqueConstraint(fields=["cluster", "namespace", "name"], name="resource_quota_unique"),
        ]


class LimitRange(EditedObject, NamespacedObject):
    """Kubernetes' LimitRange: what containers get that ask for nothing, and the bounds of what may be asked for."""

    limits = models.JSONField(
        default=list,
        blank=True,
        help_text="[{type, max, min, default, defaultRequest, maxLimitRequestRatio}], Kubernetes' defaults filled in",
    )

    class Meta:
        ordering = ["namespace", "name"]
        constraints = [
            models.UniqueConstraint(fields=["cluster", "namespace", "name"], name="limit_range_unique"),
        ]


class RuntimeClass(EditedObject, ClusterObject):
    """Kubernetes' RuntimeClass; the overhead of a pod that names it counts in its request."""

    handler = models.CharField(max_length=63)
    pod_overhead = models.JSONField(default=dict, blank=True, help_text="{resource: quantity}: overhead.podFixed")
    scheduling = models.JSONField(default=dict, blank=True, help_text="{nodeSelector, tolerations}")

    class Meta:
        ordering = ["name"]
        verbose_name_plural = "runtime classes"
        constraints = [models.UniqueConstraint(fields=["cluster", "name"], name="runtime_class_unique")]
