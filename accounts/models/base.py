"""Base models of mirrored Kubernetes objects."""

import uuid

from django.db import models


class NamedObject(models.Model):
    """An object with a name and Kubernetes' metadata."""

    name = models.CharField(max_length=253, help_text="The name, unique among the objects of the kind.")
    uid = models.UUIDField(
        default=uuid.uuid4,
        editable=False,
        help_text="The identifier that no other object ever gets, also after a deletion.",
    )
    labels = models.JSONField(
        default=dict, blank=True, help_text="{key: value}: Kubernetes' labels, by which selectors choose objects."
    )
    annotations = models.JSONField(
        default=dict, blank=True, help_text="{key: value}: Kubernetes' annotations, which no selector reads."
    )
    api_version = models.CharField(
        max_length=64,
        blank=True,
        help_text="The version that a manifest of it was last applied with; `get` answers in the newest one.",
    )
    applied_set = models.CharField(
        max_length=253, blank=True, help_text="The set that applied it last; pruning that set removes it."
    )
    generation = models.BigIntegerField(
        default=1, help_text="Goes up with each change that the scheduler did not make."
    )
    created_at = models.DateTimeField(help_text="When the object was created.")
    updated_at = models.DateTimeField(auto_now=True, help_text="When the row was last written, also by the scheduler.")
    deletion_requested_at = models.DateTimeField(
        null=True,
        blank=True,
        help_text="Set while it is in use: it goes when nothing holds it, as with Kueue's finalizer.",
    )

    class Meta:
        abstract = True

    def __str__(self) -> str:
        return self.name


class ClusterObject(NamedObject):
    """An object of one cluster, identified by its name.

    References to other objects are names, never foreign keys. As in Kueue they may name a missing object; the Active
    condition of the referring object then reports it.
    """

    cluster = models.ForeignKey(
        "accounts.Cluster", on_delete=models.PROTECT, related_name="+", help_text="The cluster to which it belongs."
    )

    class Meta:
        abstract = True


class EditedObject(models.Model):
    """An object that users edit. It records its last editor."""

    changed_by = models.CharField(
        max_length=150, blank=True, default="", db_default="", help_text="Who wrote it last, as events name them."
    )

    class Meta:
        abstract = True


class NamespacedObject(ClusterObject):
    """An object identified by its namespace and its name."""

    namespace = models.CharField(max_length=63, help_text="The namespace, to whose members the object belongs.")

    class Meta:
        abstract = True

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}"
