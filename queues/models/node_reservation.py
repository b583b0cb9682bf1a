"""Reservations of nodes."""

from django.db import models

from accounts.models.base import ClusterObject, EditedObject
from scheduling.reservations.reservation import BusyPolicy, Recurrence


class Reservation(EditedObject, ClusterObject):
    """Nodes that are kept free in a window of time, for certain workloads or for maintenance."""

    starts_at = models.DateTimeField()
    ends_at = models.DateTimeField()
    recurrence = models.CharField(max_length=16, default=Recurrence.NONE.value)
    # Holds [node name, ...]
    node_names = models.JSONField(default=list, blank=True)
    # Holds {label: value}
    node_labels = models.JSONField(default=dict, blank=True)
    node_count = models.PositiveIntegerField(null=True, blank=True)
    # Each holds [name, ...]; those of LocalQueues are `namespace/name`.
    allowed_namespaces = models.JSONField(default=list, blank=True)
    allowed_local_queues = models.JSONField(default=list, blank=True)
    allowed_cluster_queues = models.JSONField(default=list, blank=True)
    allowed_users = models.JSONField(default=list, blank=True)
    until = models.DateTimeField(null=True, blank=True)
    if_busy = models.CharField(max_length=16, default=BusyPolicy.WAIT.value)
    comment = models.CharField(max_length=1024, blank=True)

    class Meta:
        ordering = ["name"]
        constraints = [
            models.UniqueConstraint(fields=["cluster", "name"], name="reservation_unique"),
            models.CheckConstraint(
                condition=models.Q(ends_at__gt=models.F("starts_at")), name="reservation_ends_after_its_start"
            ),
        ]
