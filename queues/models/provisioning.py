"""Parameters of admission checks that request nodes from an autoscaler."""

from django.db import models

from accounts.models.base import ClusterObject, EditedObject


class ProvisioningRequestConfig(EditedObject, ClusterObject):
    """Kueue's ProvisioningRequestConfig, which AdmissionChecks reference in their parameters."""

    provisioning_class_name = models.CharField(max_length=253)
    parameters = models.JSONField(default=dict, blank=True, help_text="{name: value} for the autoscaler")
    managed_resources = models.JSONField(
        default=list,
        blank=True,
        help_text="[resource, ...]; pods that ask for none of them need no request; empty: all",
    )
    retry_strategy = models.JSONField(
        default=dict, blank=True, help_text="{backoffLimitCount, backoffBaseSeconds, backoffMaxSeconds}"
    )
    pod_set_updates = models.JSONField(
        default=dict, blank=True, help_text="{nodeSelector: [{key, valueFromProvisioningClassDetail}]}"
    )
    pod_set_merge_policy = models.CharField(max_length=64, blank=True)

    class Meta:
        ordering = ["name"]
        constraints = [models.UniqueConstraint(fields=["cluster", "name"], name="provisioning_request_config_unique")]
