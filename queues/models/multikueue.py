"""The worker clusters of a manager: Kueue's MultiKueueConfig and MultiKueueCluster."""

from django.db import models

from accounts.models.base import ClusterObject, EditedObject


class MultiKueueConfig(EditedObject, ClusterObject):
    """Kueue's MultiKueueConfig, which AdmissionChecks name in their parameters: the workers, the preferred first."""

    # Holds [name of a MultiKueueCluster, ...]
    clusters = models.JSONField(default=list)
    quota_management = models.CharField(max_length=16, default="Manual")

    class Meta:
        ordering = ["name"]
        constraints = [models.UniqueConstraint(fields=["cluster", "name"], name="multikueue_config_unique")]


class MultiKueueCluster(EditedObject, ClusterObject):
    """Kueue's MultiKueueCluster: a worker, and how its API server is reached."""

    # Holds {location, locationType: Secret or Path}
    kube_config = models.JSONField(default=dict, blank=True)
    cluster_profile = models.CharField(max_length=256, blank=True)
    # Holds [{type, status, reason, message, lastTransitionTime}]: Active, whether it is connected.
    conditions = models.JSONField(default=list, blank=True, editable=False)

    class Meta:
        ordering = ["name"]
        constraints = [models.UniqueConstraint(fields=["cluster", "name"], name="multikueue_cluster_unique")]

    @property
    def is_active(self) -> bool:
        """Whether it was reached at the last attempt."""
        return any(each["type"] == "Active" and each["status"] == "True" for each in self.conditions)
