"""The changes of Workload objects in a cluster that another scheduler runs, in their order."""

from __future__ import annotations

from typing import Any

from django.db import models


class MirroredChange(models.Model):
    """The state of a Workload object from a moment on, or its deletion.

    Rows hold the present state; in mode shadow, the changes that led to it are kept here until the leader has read
    them.
    """

    cluster = models.ForeignKey(
        "accounts.Cluster",
        on_delete=models.CASCADE,
        related_name="+",
        db_index=False,
        help_text="The cluster to which it belongs.",
    )
    at = models.DateTimeField(help_text="When the watcher heard of it.")
    namespace = models.CharField(max_length=63, help_text="The namespace of the workload.")
    name = models.CharField(max_length=253, help_text="The name of the workload.")
    manifest: Any = models.JSONField(null=True, help_text="The object; null: it is gone.")

    class Meta:
        indexes = [models.Index(fields=["cluster", "id"], name="mirrored_change_order")]

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"
