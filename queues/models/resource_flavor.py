"""Resource flavors, topologies and admission checks."""

from django.db import models

from accounts.models.base import ClusterObject, EditedObject


class ResourceFlavor(EditedObject, ClusterObject):
    """Kueue's ResourceFlavor: node labels, taints and tolerations, and optionally a topology."""

    node_labels = models.JSONField(default=dict, blank=True)
    # As Kubernetes writes them: [{key, value, effect}]
    node_taints = models.JSONField(default=list, blank=True)
    # As Kubernetes writes them: [{key, operator, value, effect, tolerationSeconds}]
    tolerations = models.JSONField(default=list, blank=True)
    topology_name = models.CharField(max_length=253, blank=True)
    quota_only = models.BooleanField(default=False, db_default=False)

    class Meta:
        ordering = ["name"]
        constraints = [models.UniqueConstraint(fields=["cluster", "name"], name="resource_flavor_unique")]


class Topology(EditedObject, ClusterObject):
    """Kueue's Topology: the node labels of its levels, widest first."""

    # Holds [node label, ...], widest first
    levels = models.JSONField(default=list)

    class Meta:
        ordering = ["name"]
        verbose_name_plural = "topologies"
        constraints = [models.UniqueConstraint(fields=["cluster", "name"], name="topology_unique")]


class AdmissionCheck(EditedObject, ClusterObject):
    """Kueue's AdmissionCheck: a further condition, besides quota, before a workload may start."""

    controller_name = models.CharField(max_length=253)
    # Holds {apiGroup, kind, name}
    parameters = models.JSONField(default=dict, blank=True)
    active = models.BooleanField(default=True)

    class Meta:
        ordering = ["name"]
        permissions = [("answer_admissioncheck", "Can say whether a workload passes an admission check")]
        constraints = [models.UniqueConstraint(fields=["cluster", "name"], name="admission_check_unique")]
