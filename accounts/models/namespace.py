"""Namespaces."""

from django.db import models

from accounts.models.base import ClusterObject, EditedObject


class Namespace(EditedObject, ClusterObject):
    """A namespace. Its labels decide which ClusterQueues accept its workloads."""

    class Meta:
        ordering = ["name"]
        constraints = [models.UniqueConstraint(fields=["cluster", "name"], name="namespace_unique")]
