"""Limits of a namespace's pods, as in Kubernetes, and the overhead of running a pod."""

from django.db import models

from accounts.models.base import ClusterObject, EditedObject, NamespacedObject


class ResourceQuota(EditedObject, NamespacedObject):
    """Kubernetes' ResourceQuota. As in HAMi, its limits of device memory and cores apply here."""

    hard = models.JSONField(default=dict, blank=True, help_text="{resource: quantity}")
    scopes = models.JSONField(default=list, blank=True)
    scope_selector = models.JSONField(default=dict, blank=True)

    class Meta:
        ordering = ["namespace", "name"]
        constraints = [
            models.UniqueConstraint(fields=["cluster", "namespace", "name"], name="resource_quota_unique"),
        ]


class LimitRange(EditedObject, NamespacedObject):
    """Kubernetes' LimitRange: defaults for containers without requests, and bounds of requests."""

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
    """Kubernetes' RuntimeClass. The overhead is added to the requests of pods that name it."""

    handler = models.CharField(max_length=63)
    pod_overhead = models.JSONField(default=dict, blank=True, help_text="{resource: quantity}: overhead.podFixed")
    scheduling = models.JSONField(default=dict, blank=True, help_text="{nodeSelector, tolerations}")

    class Meta:
        ordering = ["name"]
        verbose_name_plural = "runtime classes"
        constraints = [models.UniqueConstraint(fields=["cluster", "name"], name="runtime_class_unique")]
