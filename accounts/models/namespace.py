"""Namespaces."""

from django.db import models

from accounts.models.base import ClusterObject, EditedObject


class Namespace(EditedObject, ClusterObject):
    """A namespace. Its labels decide which ClusterQueues accept its workloads."""

    in_cluster = models.BooleanField(
        default=False,
        db_default=False,
        help_text="Whether the cluster has it. Then its row follows it, and is changed and deleted with it alone.",
    )

    class Meta:
        ordering = ["name"]
        constraints = [models.UniqueConstraint(fields=["cluster", "name"], name="namespace_unique")]
