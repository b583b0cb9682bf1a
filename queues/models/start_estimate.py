"""When a waiting workload is expected to start."""

from django.db import models


class StartEstimate(models.Model):
    """The newest estimate of a waiting workload: three quantiles of its start, or the reason why they are unknown.

    A table of its own: a change of a workload's row is read by the scheduler. Without a constraint, so that workloads
    are deleted without it; the studio deletes rows of workloads that no longer wait.
    """

    workload = models.OneToOneField(
        "queues.Workload",
        on_delete=models.DO_NOTHING,
        primary_key=True,
        db_constraint=False,
        related_name="start_estimate",
        help_text="The workload that waits.",
    )
    made_at = models.DateTimeField(help_text="When the estimate was made.")
    p10_at = models.DateTimeField(null=True, help_text="One of ten such workloads starts earlier.")
    p50_at = models.DateTimeField(null=True, help_text="Half of such workloads start earlier.")
    p90_at = models.DateTimeField(null=True, help_text="One of ten such workloads starts later.")
    unknown = models.CharField(max_length=32, blank=True, help_text="Why there are no quantiles.")
    compared = models.PositiveIntegerField(default=0, help_text="Past estimates whose outcomes corrected it.")

    def __str__(self) -> str:
        return f"{self.workload_id}: {self.unknown or self.p50_at}"
