"""Parameters of admission checks that request nodes from an autoscaler."""

from django.db import models

from accounts.models.base import ClusterObject, EditedObject


class ProvisioningRequestConfig(EditedObject, ClusterObject):
    """Kueue's ProvisioningRequestConfig, which AdmissionChecks reference in their parameters."""

    provisioning_class_name = models.CharField(max_length=253)
    # Holds {name: value} for the autoscaler
    parameters = models.JSONField(default=dict, blank=True)
    # Holds [resource, ...]; pods that ask for none of them need no request; empty: all
    managed_resources = models.JSONField(default=list, blank=True)
    # Holds {backoffLimitCount, backoffBaseSeconds, backoffMaxSeconds}
    retry_strategy = models.JSONField(default=dict, blank=True)
    # Holds {nodeSelector: [{key, valueFromProvisioningClassDetail}]}
    pod_set_updates = models.JSONField(default=dict, blank=True)
    pod_set_merge_policy = models.CharField(max_length=64, blank=True)

    class Meta:
        ordering = ["name"]
        constraints = [models.UniqueConstraint(fields=["cluster", "name"], name="provisioning_request_config_unique")]
