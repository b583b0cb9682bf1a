"""Kueue's objects in a cluster where kueueweb serves them."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from django.db import models


class ServedObject(models.Model):
    """The state of one of Kueue's objects in its cluster, compared with the row that it represents.

    The watcher notes the object's version under a lock of the row, and the push the version that it wrote, by
    `keep` and `forget`.
    """

    cluster = models.ForeignKey(
        "accounts.Cluster", on_delete=models.CASCADE, related_name="+", help_text="The cluster to which it belongs."
    )
    kind = models.CharField(max_length=63, help_text="The kind of the object.")
    namespace = models.CharField(
        max_length=63, blank=True, help_text="The namespace of the object; empty if it has none."
    )
    name = models.CharField(max_length=253, help_text="The name of the object.")
    uid = models.CharField(max_length=64, blank=True, help_text="Of the object; empty: there is none.")
    resource_version = models.CharField(
        max_length=64, blank=True, help_text="The version of the object that was read last; empty: not known."
    )
    object_generation = models.BigIntegerField(default=0, help_text="The generation of the object that was read last.")
    content = models.CharField(max_length=96, blank=True, help_text="What the object says, as a hash.")
    edited_at = models.DateTimeField(null=True, blank=True, help_text="When another client last edited the object.")
    edited_by = models.CharField(
        max_length=150, blank=True, help_text="The client that last edited the object, as the API server names it."
    )
    held = models.BooleanField(default=False, help_text="Whether it has the finalizer that holds it while it is used.")
    deleting = models.BooleanField(
        default=False, help_text="Whether the object's deletion was requested in the cluster."
    )
    agreed = models.CharField(max_length=96, blank=True, help_text="What both sides last said, as a hash.")
    row_version = models.BigIntegerField(default=0, help_text="The version of the row at which both sides agreed.")
    status = models.JSONField(default=dict, blank=True, help_text="The status that the object has.")
    status_told_at = models.DateTimeField(
        null=True, blank=True, help_text="When the status was last written to the object."
    )
    problem = models.TextField(blank=True, help_text="Why both sides differ; empty: they do not.")
    failures = models.PositiveSmallIntegerField(default=0, help_text="Refused writes in a row.")
    retry_at = models.DateTimeField(
        null=True, blank=True, help_text="When a refused write is tried again; empty: none is due."
    )

    loaded_version = ""
    """The resourceVersion that was noted when the row was read; no column."""

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["cluster", "kind", "namespace", "name"], name="served_object_unique")
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.key}"

    @classmethod
    def from_db(
        cls, db: str | None, field_names: Collection[str], values: Collection[Any], **options: Any
    ) -> ServedObject:
        found = super().from_db(db, field_names, values, **options)
        found.loaded_version = found.resource_version
        return found

    def keep(self) -> bool:
        """Store the known state. False, and nothing is stored, if the watcher has noted another version since this was
        read: its observations must not be overwritten, and a notification that was sent is sent again.
        """
        if self.pk is None:
            ServedObject.objects.bulk_create([self], ignore_conflicts=True)
            return True
        columns = [field.attname for field in self._meta.concrete_fields if not field.primary_key]
        mine = ServedObject.objects.filter(pk=self.pk, resource_version=self.loaded_version)
        if not mine.update(**{column: getattr(self, column) for column in columns}):
            return False
        self.loaded_version = self.resource_version
        return True

    def keep_seen(self) -> None:
        """Store the watcher's observation. It replaces an entry that the push has created since the known entries were
        read.
        """
        if self.pk is not None:
            self.save()
            return
        columns = [field.name for field in self._meta.concrete_fields if not field.primary_key]
        unique = ["cluster", "kind", "namespace", "name"]
        seen = [column for column in columns if column not in unique]
        ServedObject.objects.bulk_create([self], update_conflicts=True, unique_fields=unique, update_fields=seen)

    def forget(self) -> None:
        """Delete the entry, unless the watcher has stored another version since this was read."""
        if self.pk is not None:
            ServedObject.objects.filter(pk=self.pk, resource_version=self.loaded_version).delete()

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name
