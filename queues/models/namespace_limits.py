"""Limits of a namespace's pods, as in Kubernetes, and the overhead of running a pod."""

from django.db import models

from accounts.models.base import ClusterObject, EditedObject, NamespacedObject


class ResourceQuota(EditedObject, NamespacedObject):
    """Kubernetes' ResourceQuota. As in HAMi, its limits of device memory and cores apply here."""

    # Holds {resource: quantity}
    hard = models.JSONField(default=dict, blank=True)
    scopes = models.JSONField(default=list, blank=True)
    scope_selector = models.JSONField(default=dict, blank=True)

    class Meta:
        ordering = ["namespace", "name"]
        constraints = [
            models.UniqueConstraint(fields=["cluster", "namespace", "name"], name="resource_quota_unique"),
        ]


class LimitRange(EditedObject, NamespacedObject):
    """Kubernetes' LimitRange: defaults for containers without requests, and bounds of requests."""

    # Holds [{type, max, min, default, defaultRequest, maxLimitRequestRatio}], Kubernetes' defaults filled in
    limits = models.JSONField(default=list, blank=True)

    class Meta:
        ordering = ["namespace", "name"]
        constraints = [
            models.UniqueConstraint(fields=["cluster", "namespace", "name"], name="limit_range_unique"),
        ]


class RuntimeClass(EditedObject, ClusterObject):
    """Kubernetes' RuntimeClass. The overhead is added to the requests of pods that name it."""

    handler = models.CharField(max_length=63)
    # Holds {resource: quantity}: overhead.podFixed
    pod_overhead = models.JSONField(default=dict, blank=True)
    # Holds {nodeSelector, tolerations}
    scheduling = models.JSONField(default=dict, blank=True)

    class Meta:
        ordering = ["name"]
        verbose_name_plural = "runtime classes"
        constraints = [models.UniqueConstraint(fields=["cluster", "name"], name="runtime_class_unique")]
