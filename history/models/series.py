"""Time series of pending and running workloads, quota and devices.

A row holds sums over its samples, never means, so rows of any length can be added, and the reader divides by
`samples`. A step without samples has no row: a gap, not a zero.
"""

from enum import StrEnum

from django.db import models

from foundation.time_series import Resolution


class Scope(StrEnum):
    """The subject of a series."""

    CLUSTER = "cluster"
    COHORT = "cohort"
    CLUSTER_QUEUE = "cluster_queue"
    NAMESPACE = "namespace"
    LOCAL_QUEUE = "local_queue"
    USER = "user"


class Count(StrEnum):
    """The subject of a count, in `Subject.kind`; its name is in `Subject.detail`."""

    PENDING = "pending"
    """Waiting workloads, by the reason why."""
    STARTED = "started"
    ENDED = "ended"
    """By the reason of the Finished condition."""
    PREEMPTED = "preempted"
    """By the reason of the preemption."""
    EVICTED = "evicted"
    """By the reason of the Evicted condition; preemptions are apart."""
    WAIT = "wait"
    """Starts by how long they waited: the number of a bucket (`history.services.waits`)."""


class Subject(models.Model):
    """The subject of a series. A LocalQueue is named namespace/name, a user namespace/user."""

    cluster = models.ForeignKey(
        "accounts.Cluster", on_delete=models.CASCADE, related_name="+", help_text="The cluster to which it belongs."
    )
    scope = models.CharField(
        max_length=16,
        choices=[(scope.value, scope.value) for scope in Scope],
        help_text="The kind of the subject: cluster, cohort, cluster_queue, namespace, local_queue or user.",
    )
    name = models.CharField(max_length=320, blank=True, help_text="The name of the subject; empty for the cluster.")
    kind = models.CharField(max_length=16, blank=True, help_text="What is counted; empty for all else.")
    flavor = models.CharField(max_length=253, blank=True, help_text="The flavor of a quota series; otherwise empty.")
    resource = models.CharField(
        max_length=317, blank=True, help_text="The resource of a quota series; otherwise empty."
    )
    detail = models.CharField(
        max_length=96, blank=True, help_text="The reason or the bucket that is counted; otherwise empty."
    )

    class Meta:
        ordering = ["id"]
        constraints = [
            models.UniqueConstraint(
                fields=["cluster", "scope", "name", "kind", "flavor", "resource", "detail"],
                name="history_subject_unique",
            )
        ]

    def __str__(self) -> str:
        return " ".join(filter(None, (self.scope, self.name, self.kind, self.flavor, self.resource, self.detail)))


class Sample(models.Model):
    """Sums over the samples of a step."""

    subject = models.ForeignKey(
        Subject, on_delete=models.CASCADE, related_name="+", db_index=False, help_text="The subject of the series."
    )
    resolution = models.PositiveSmallIntegerField(
        choices=Resolution.choices, default=Resolution.RAW, help_text="The length of the step."
    )
    at = models.DateTimeField(help_text="The start of the step.")
    samples = models.PositiveIntegerField(
        default=1, help_text="How many samples the sums add up; each value divided by it is a mean."
    )

    class Meta:
        abstract = True

    def __str__(self) -> str:
        return f"{self.subject_id} at {self.at}"


class WorkloadSample(Sample):
    """How many workloads waited and held quota. There is one in each step in which its subject was looked at."""

    pending = models.BigIntegerField(help_text="Waiting, and not held back by their users.")
    pending_peak = models.BigIntegerField(help_text="The most that waited at once.")
    held = models.BigIntegerField(help_text="Waiting, and held back by their users.")
    reserving = models.BigIntegerField(help_text="Holding quota.")
    admitted = models.BigIntegerField(help_text="Admitted: with quota and all admission checks ready.")
    share = models.FloatField(null=True, help_text="Kueue's dominant resource share; null where it is infinite.")

    class Meta:
        ordering = ["subject", "at"]
        constraints = [models.UniqueConstraint(fields=["subject", "resolution", "at"], name="workload_sample_unique")]
        indexes = [models.Index(fields=["resolution", "at"], name="workload_sample_age")]


class QuotaSample(Sample):
    """Quota and usage of a resource in a flavor, in base units."""

    nominal = models.BigIntegerField(null=True, help_text="The nominal quota; null where none is declared.")
    ceiling = models.BigIntegerField(null=True, help_text="Nominal and borrowing limit; null where there is no limit.")
    used = models.BigIntegerField(help_text="The quota in use.")
    used_peak = models.BigIntegerField(help_text="The highest use in the step.")
    borrowed = models.BigIntegerField(null=True, help_text="The use above the nominal quota, taken from the cohort.")
    lent = models.BigIntegerField(
        null=True, help_text="What others in its cohort borrowed, shared out over what each queue had left to lend."
    )

    class Meta:
        ordering = ["subject", "at"]
        constraints = [models.UniqueConstraint(fields=["subject", "resolution", "at"], name="quota_sample_unique")]
        indexes = [models.Index(fields=["resolution", "at"], name="quota_sample_age")]


class CountSample(Sample):
    """How often something happened in the step, or how many were counted in its samples. No row: none."""

    total = models.BigIntegerField(
        help_text="The number of events in the step, or the sum of the counts of its samples."
    )

    class Meta:
        ordering = ["subject", "at"]
        constraints = [models.UniqueConstraint(fields=["subject", "resolution", "at"], name="count_sample_unique")]
        indexes = [models.Index(fields=["resolution", "at"], name="count_sample_age")]


class DeviceSample(Sample):
    """Held slices of devices, and the measured use of their containers; for the cluster, also the capacity.

    A slice counts as the larger of its shares of memory and cores. A value without a measurement is null or, for
    devices, `devices_unmeasured`, never 0.
    """

    devices_held = models.FloatField(help_text="Devices held by workloads.")
    devices_idle = models.FloatField(help_text="Of those held: measured, and next to nothing ran.")
    devices_unmeasured = models.FloatField(help_text="Of those held.")
    memory_held_mib = models.FloatField(help_text="The device memory held.")
    memory_used_mib = models.FloatField(null=True, help_text="The device memory that the holders were measured to use.")
    cores_held_percent = models.FloatField(help_text="The cores held, in percent of a device.")
    cores_used_percent = models.FloatField(null=True, help_text="The cores that the holders were measured to use.")
    devices = models.FloatField(null=True, help_text="That there are; of the cluster only, as the next four.")
    devices_stranded = models.FloatField(
        null=True, help_text="What nobody can take: the free memory of devices without free cores, and the reverse."
    )
    devices_demanded = models.FloatField(null=True, help_text="Held, or asked for by a waiting workload.")
    memory_mib = models.FloatField(null=True, help_text="The device memory of the cluster.")
    cores_percent = models.FloatField(null=True, help_text="The cores of the cluster's devices.")

    class Meta:
        ordering = ["subject", "at"]
        constraints = [
            models.UniqueConstraint(fields=["subject", "resolution", "at"], name="history_device_sample_unique")
        ]
        indexes = [models.Index(fields=["resolution", "at"], name="history_device_sample_age")]
