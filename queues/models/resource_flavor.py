"""Resource flavors, topologies and admission checks."""

from django.db import models

from accounts.models.base import ClusterObject, EditedObject


class ResourceFlavor(EditedObject, ClusterObject):
    """Kueue's ResourceFlavor: node labels, taints and tolerations, and optionally a topology."""

    node_labels = models.JSONField(default=dict, blank=True)
    node_taints = models.JSONField(default=list, blank=True, help_text="[{key, value, effect}]")
    tolerations = models.JSONField(
        default=list, blank=True, help_text="[{key, operator, value, effect, tolerationSeconds}]"
    )
    topology_name = models.CharField(max_length=253, blank=True)
    quota_only = models.BooleanField(
        default=False, db_default=False, help_text="Beyond Kueue: pods without devices are not placed on its nodes."
    )

    class Meta:
        ordering = ["name"]
        constraints = [models.UniqueConstraint(fields=["cluster", "name"], name="resource_flavor_unique")]


class Topology(EditedObject, ClusterObject):
    """Kueue's Topology: the node labels of its levels, widest first."""

    levels = models.JSONField(default=list, help_text="[node label, ...], widest first")

    class Meta:
        ordering = ["name"]
        verbose_name_plural = "topologies"
        constraints = [models.UniqueConstraint(fields=["cluster", "name"], name="topology_unique")]


class AdmissionCheck(EditedObject, ClusterObject):
    """Kueue's AdmissionCheck: a further condition, besides quota, before a workload may start."""

    controller_name = models.CharField(max_length=253)
    parameters = models.JSONField(default=dict, blank=True, help_text="{apiGroup, kind, name}")
    active = models.BooleanField(default=True)

    class Meta:
        ordering = ["name"]
        permissions = [("answer_admissioncheck", "Can say whether a workload passes an admission check")]
        constraints = [models.UniqueConstraint(fields=["cluster", "name"], name="admission_check_unique")]
