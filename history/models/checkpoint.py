"""Checkpoints: the rows of a cluster at a moment, from which that moment is read again."""

from django.db import models

from accounts.models import Cluster


class Checkpoint(models.Model):
    """The rows of a cluster in one snapshot, and the figures of its queues. The scheduler writes each batch as a whole,
    so none is half in it."""

    cluster = models.ForeignKey(
        Cluster,
        on_delete=models.CASCADE,
        related_name="+",
        db_index=False,
        help_text="The cluster whose rows it has.",
    )
    taken_at = models.DateTimeField(help_text="The moment of the snapshot, by the database's clock.")
    epoch = models.BigIntegerField(help_text="The leadership of the scheduler at that moment; 0: none yet.")
    decision = models.BigIntegerField(help_text="The number of the newest decision that the rows include; 0: none.")
    format = models.PositiveSmallIntegerField(help_text="The version of the layout of `content`.")
    settings = models.JSONField(help_text="The cluster's own settings: {configuration, placement ...}")
    figures = models.JSONField(help_text="{source, time, totals, cluster_queues, cohorts}: the tree's quota and usage.")
    devices = models.JSONField(
        default=dict,
        db_default=models.Value({}, models.JSONField()),
        help_text="Each device with its slices by its UUID, as in the live stream.",
    )
    workloads = models.PositiveIntegerField(help_text="The number of workloads in it.")
    content = models.BinaryField(help_text="The rows of each table, compressed.")
    changes = models.BinaryField(
        null=True, help_text="The changes since `changes_since` up to the checkpoint, compressed."
    )
    changes_since = models.DateTimeField(
        null=True, help_text="Since when its changes are recorded without a gap; null: not recorded."
    )
    size_bytes = models.PositiveIntegerField(help_text="The size of `content`.")

    class Meta:
        ordering = ["cluster", "taken_at"]
        constraints = [models.UniqueConstraint(fields=["cluster", "taken_at"], name="checkpoint_unique")]
        indexes = [models.Index(fields=["taken_at"], name="checkpoint_age")]

    def __str__(self) -> str:
        return f"{self.cluster_id} at {self.taken_at}"
