"""The jobs that own workloads."""

from django.db import models

from accounts.models.base import NamespacedObject


class Job(NamespacedObject):
    """A job of any kind (batch/v1 Job, v1 Pod, apps/v1 Deployment ...), as it was submitted.

    The object pushed to the cluster is derived from `manifest` and from the admission of its workloads. A group of
    plain pods is a row of kind PodGroup, which owns the workload, and a row for each of its pods.
    """

    # Without an index of its own, as all of these: that of the names begins with it.
    cluster = models.ForeignKey(
        "accounts.Cluster",
        on_delete=models.PROTECT,
        related_name="+",
        db_index=False,
        help_text="The cluster to which it belongs.",
    )
    kind = models.CharField(max_length=63, help_text="The kind of the job, such as Job or RayCluster.")
    manifest = models.JSONField(help_text="The object as submitted: apiVersion, kind, metadata, spec.")
    managed = models.BooleanField(default=True, help_text="False: it names no queue, so we keep it and leave it alone.")
    found_in_cluster = models.BooleanField(
        default=False, help_text="Someone else made it in the cluster; we delete it there after its retention alone."
    )
    suspended = models.BooleanField(default=False, help_text="Whether the job is suspended in its cluster.")
    group = models.ForeignKey(
        "queues.Job",
        on_delete=models.CASCADE,
        null=True,
        blank=True,
        related_name="members",
        help_text="Of a pod that belongs to a group: the group's row.",
    )
    phase = models.CharField(
        max_length=16,
        blank=True,
        default="",
        db_default="",
        help_text="Of a pod of a group: how it ended (Succeeded, Failed), empty until then.",
    )

    pushed_generation = models.BigIntegerField(
        default=0,
        db_default=0,
        help_text="Of what has no workload and makes jobs (a CronJob): the version that the cluster has heard of.",
    )

    class Meta:
        ordering = ["namespace", "name"]
        constraints = [models.UniqueConstraint(fields=["cluster", "kind", "namespace", "name"], name="job_unique")]
        indexes = [
            models.Index(fields=["cluster", "uid"], name="job_uid"),
            models.Index(
                fields=["cluster", "namespace"],
                condition=models.Q(labels__has_key="volcano.sh/createdByJobFlow"),
                name="job_flow",
            ),
        ]
