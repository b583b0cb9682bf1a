"""Objects that jobs reference in their cluster."""

from django.db import models


class ClusterObject(models.Model):
    """An object of the cluster that describes pods of jobs (such as a training runtime), as the watcher last saw it."""

    cluster = models.ForeignKey(
        "accounts.Cluster", on_delete=models.CASCADE, related_name="+", help_text="The cluster to which it belongs."
    )
    kind = models.CharField(max_length=63, help_text="The kind of the object, such as TrainingRuntime.")
    namespace = models.CharField(
        max_length=63, blank=True, help_text="The namespace of the object; empty if it has none."
    )
    name = models.CharField(max_length=253, help_text="The name of the object.")
    manifest = models.JSONField(help_text="The object, as the cluster showed it last.")

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["cluster", "kind", "namespace", "name"], name="cluster_object_unique")
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}"
