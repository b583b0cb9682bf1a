"""The fields of objects that clients manage by server-side apply and by `kubectl apply`."""

from django.db import models


class ManagedFields(models.Model):
    """The fields of one object that one manager applied last: Kubernetes' `metadata.managedFields`.

    The row of `kubectl apply` has the text of its last-applied annotation instead. The object is another table's: the
    row is deleted with it, or by housekeeping if the object was deleted in another way.
    """

    cluster = models.ForeignKey(
        "accounts.Cluster", on_delete=models.CASCADE, related_name="+", help_text="The cluster of the object."
    )
    kind = models.CharField(max_length=63, help_text="The kind of the object.")
    namespace = models.CharField(
        max_length=63, blank=True, help_text="The namespace of the object; empty if it has none."
    )
    name = models.CharField(max_length=253, help_text="The name of the object.")
    uid = models.UUIDField(help_text="Of the object.")
    manager = models.CharField(max_length=128, help_text="The name by which the client applies, such as kubectl.")
    api_version = models.CharField(max_length=64, help_text="The version that the fields are written in.")
    applied = models.JSONField(default=dict, blank=True, help_text="The applied fields with their values.")
    seen = models.JSONField(
        default=dict, blank=True, help_text="Those of them that the object showed then: defaults may not be shown."
    )
    last_applied = models.TextField(blank=True, help_text="kubectl's copy of the manifest.")
    applied_at = models.DateTimeField(help_text="When the manager applied last.")

    class Meta:
        verbose_name_plural = "managed fields"
        constraints = [models.UniqueConstraint(fields=["uid", "manager"], name="managed_fields_unique")]

    def __str__(self) -> str:
        return f"{self.kind} {self.name}: {self.manager}"
