"""Nodes as the cluster shows them."""

from django.db import models


class Node(models.Model):
    """A node: where pods may run. Amounts are integers in base units (milli for cpu)."""

    cluster = models.ForeignKey("accounts.Cluster", on_delete=models.PROTECT, related_name="+")
    name = models.CharField(max_length=253)
    uid = models.CharField(max_length=64, blank=True)
    api_version = models.CharField(max_length=64, blank=True)
    applied_set = models.CharField(max_length=253, blank=True)
    labels = models.JSONField(default=dict, blank=True)
    annotations = models.JSONField(default=dict, blank=True)
    taints = models.JSONField(default=list, blank=True)
    allocatable = models.JSONField(
        default=dict, blank=True, help_text="{resource: amount}; empty: not known, so not limiting"
    )
    capacity = models.JSONField(default=dict, blank=True)
    foreign_usage = models.JSONField(
        default=dict, blank=True, help_text="{resource: amount} requested by pods that are not ours"
    )
    unplaced_usage = models.JSONField(
        default=dict,
        db_default=models.Value({}, models.JSONField()),
        blank=True,
        help_text="The part of foreign_usage that pods of our workloads request, whose place others chose.",
    )
    ready = models.BooleanField(default=True)
    conditions = models.JSONField(
        default=list,
        db_default=[],
        blank=True,
        help_text="[{type, status, reason, message, last_transition_time}] in the cluster's words",
    )
    unschedulable = models.BooleanField(default=False, help_text="The cluster's own cordon.")
    cordoned = models.BooleanField(default=False, help_text="Closed to new pods by an operator of ours.")
    draining = models.BooleanField(default=False, help_text="Cordoned, and what we placed there is moved away.")
    generation = models.BigIntegerField(default=1)
    created_at = models.DateTimeField()
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        ordering = ["name"]
        constraints = [models.UniqueConstraint(fields=["cluster", "name"], name="node_unique")]

    def __str__(self) -> str:
        return self.name
