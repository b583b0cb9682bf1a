"""Nodes as the cluster shows them."""

from django.db import models


class Node(models.Model):
    """A node: where pods may run. Amounts are integers in base units (milli for cpu)."""

    cluster = models.ForeignKey(
        "accounts.Cluster", on_delete=models.PROTECT, related_name="+", help_text="The cluster to which it belongs."
    )
    name = models.CharField(max_length=253, help_text="The name of the node.")
    uid = models.CharField(max_length=64, blank=True, help_text="The identifier of the node in its cluster.")
    api_version = models.CharField(
        max_length=64, blank=True, help_text="The version of the manifest that was applied last."
    )
    applied_set = models.CharField(
        max_length=253, blank=True, help_text="The set that applied the node last; pruning that set removes it."
    )
    labels = models.JSONField(
        default=dict, blank=True, help_text="{key: value}: the labels, by which flavors and topologies choose nodes."
    )
    annotations = models.JSONField(
        default=dict,
        blank=True,
        help_text="{key: value}: the annotations, among them the devices that plugins registered.",
    )
    taints = models.JSONField(
        default=list,
        blank=True,
        help_text="[{key, value, effect}]: pods without a matching toleration are not placed here.",
    )
    allocatable = models.JSONField(
        default=dict, blank=True, help_text="{resource: amount}; empty: not known, so not limiting"
    )
    capacity = models.JSONField(
        default=dict,
        blank=True,
        help_text="{resource: amount}: all that the node has, before the system's reservations.",
    )
    foreign_usage = models.JSONField(
        default=dict, blank=True, help_text="{resource: amount} requested by pods that are not ours"
    )
    unplaced_usage = models.JSONField(
        default=dict,
        db_default=models.Value({}, models.JSONField()),
        blank=True,
        help_text="The part of foreign_usage that pods of our workloads request, whose place others chose.",
    )
    ready = models.BooleanField(default=True, help_text="Whether the Ready condition of the node is true.")
    conditions = models.JSONField(
        default=list,
        db_default=[],
        blank=True,
        help_text="[{type, status, reason, message, last_transition_time}] in the cluster's words",
    )
    unschedulable = models.BooleanField(default=False, help_text="The cluster's own cordon.")
    cordoned = models.BooleanField(default=False, help_text="Closed to new pods by an operator of ours.")
    draining = models.BooleanField(default=False, help_text="Cordoned, and what we placed there is moved away.")
    generation = models.BigIntegerField(default=1, help_text="Rises with each change of the node.")
    created_at = models.DateTimeField(help_text="When the node joined the cluster.")
    updated_at = models.DateTimeField(auto_now=True, help_text="When the row was last written.")

    class Meta:
        ordering = ["name"]
        constraints = [models.UniqueConstraint(fields=["cluster", "name"], name="node_unique")]

    def __str__(self) -> str:
        return self.name
