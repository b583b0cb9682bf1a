"""Objects that jobs reference in their cluster."""

from django.db import models


class ClusterObject(models.Model):
    """An object of the cluster that describes pods of jobs (such as a training runtime), as the watcher last saw it."""

    cluster = models.ForeignKey("accounts.Cluster", on_delete=models.CASCADE, related_name="+")
    kind = models.CharField(max_length=63)
    namespace = models.CharField(max_length=63, blank=True)
    name = models.CharField(max_length=253)
    manifest = models.JSONField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["cluster", "kind", "namespace", "name"], name="cluster_object_unique")
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}"
