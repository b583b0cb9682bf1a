"""The changes of Workload objects in a cluster that another scheduler runs, in their order."""

from __future__ import annotations

from typing import Any

from django.db import models


class MirroredChange(models.Model):
    """A Workload object as it was from some moment on, or its end.

    Rows say how things are; how they came about is kept here, in mode shadow, until the leader has heard it.
    """

    cluster = models.ForeignKey("accounts.Cluster", on_delete=models.CASCADE, related_name="+", db_index=False)
    at = models.DateTimeField(help_text="When the watcher heard of it.")
    namespace = models.CharField(max_length=63)
    name = models.CharField(max_length=253)
    manifest: Any = models.JSONField(null=True, help_text="The object; null: it is gone.")

    class Meta:
        indexes = [models.Index(fields=["cluster", "id"], name="mirrored_change_order")]

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"
