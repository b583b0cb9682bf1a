"""Records of use: the holder, the amounts, start and end; written by triggers at the end, kept beyond the workload."""

from django.db import models


class UsageRecord(models.Model):
    """A period in which a workload held the same quota and devices.

    A new size of an elastic job begins another period. Names are copied, so the record outlives its objects.
    """

    cluster = models.ForeignKey(
        "accounts.Cluster",
        on_delete=models.CASCADE,
        related_name="+",
        db_index=False,
        help_text="The cluster that ran the workload.",
    )
    workload_uid = models.UUIDField(help_text="The identifier of the workload.")
    namespace = models.CharField(max_length=63, help_text="The namespace of the workload.")
    workload_name = models.CharField(max_length=253, help_text="The name of the workload.")
    local_queue = models.CharField(max_length=253, blank=True, help_text="The LocalQueue by which the workload came.")
    cluster_queue = models.CharField(max_length=253, blank=True, help_text="The ClusterQueue that gave the quota.")
    submitted_by = models.CharField(max_length=150, blank=True, help_text="The user that submitted the workload.")
    priority = models.IntegerField(help_text="The priority of the workload.")
    priority_class = models.CharField(max_length=253, blank=True, help_text="The name of its priority class.")
    pods = models.PositiveIntegerField(help_text="The number of admitted pods.")
    queued_at = models.DateTimeField(
        null=True, help_text="From when on it waited for this; null where it only goes on, resized."
    )
    reserved_at = models.DateTimeField(help_text="When the workload got its quota.")
    started_at = models.DateTimeField(help_text="reserved_at, or when it was resized.")
    ended_at = models.DateTimeField(help_text="When the period ended.")
    outcome = models.CharField(max_length=16, help_text="Finished, Preempted, Evicted, Resized, Deleted.")
    reason = models.CharField(max_length=96, blank=True, help_text="Of the condition that says so.")
    held = models.JSONField(
        help_text="{flavor: {resource: amount}} in base units; `device`: whole devices, of a slice the larger of its "
        "shares of memory and of cores."
    )

    class Meta:
        ordering = ["id"]
        indexes = [
            models.Index(fields=["cluster", "ended_at"], name="usage_record_end"),
            models.Index(fields=["workload_uid", "ended_at"], name="usage_record_workload"),
        ]

    def __str__(self) -> str:
        return f"{self.namespace}/{self.workload_name} until {self.ended_at}: {self.outcome}"
