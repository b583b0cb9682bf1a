"""Rows of the engine: its list of changed rows, its lease, and an append-only log of decisions."""

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Case, CharField, F, Func, Value, When
from django.db.models.functions import Now


class Lease(models.Model):
    """The process that leads the scheduling of a cluster. A new leader raises `epoch`; batches of an older epoch
    cannot write."""

    cluster = models.OneToOneField("accounts.Cluster", on_delete=models.CASCADE, related_name="scheduler_lease")
    epoch = models.BigIntegerField(default=0)
    holder = models.CharField(max_length=255, blank=True)
    acquired_at = models.DateTimeField(null=True, blank=True)
    renewed_at = models.DateTimeField(null=True, blank=True)

    def __str__(self) -> str:
        return f"{self.cluster}: epoch {self.epoch}"


class Change(models.Model):
    """A changed row, whose present state the engine reads. Triggers write it; the batch that has seen it deletes it."""

    cluster_id = models.BigIntegerField()
    kind = models.CharField(max_length=32, help_text="The object's kind: workload, clusterqueue, node ...")
    object_id = models.BigIntegerField()
    key = models.CharField(
        max_length=320,
        blank=True,
        help_text="Its name, or namespace/name: enough to forget it when it is gone.",
    )
    tenant = models.GeneratedField(
        expression=Case(
            When(kind="workload", then=Func(F("key"), Value("/"), 1, function="split_part", output_field=CharField())),
            default=Value(""),
        ),
        output_field=models.CharField(max_length=320),
        db_persist=True,
        help_text="The namespace of a workload; all else is everybody's.",
    )
    holds_quota = models.BooleanField(
        db_default=False, help_text="Whether it is a workload that holds quota, or held it when it ended."
    )
    noted_at = models.DateTimeField(db_default=Now())

    class Meta:
        ordering = ["id"]
        indexes = [models.Index(fields=["cluster_id", "tenant", "holds_quota", "id"], name="change_line")]

    def __str__(self) -> str:
        return f"{self.kind} {self.key}"


class SchedulingCycle(models.Model):
    """A cycle that decided something."""

    cluster = models.ForeignKey("accounts.Cluster", on_delete=models.CASCADE, related_name="+", db_index=False)
    epoch = models.BigIntegerField()
    number = models.BigIntegerField(help_text="Counts through an epoch, the idle cycles included.")
    started_at = models.DateTimeField()
    duration_seconds = models.FloatField()
    heads = models.PositiveIntegerField()
    admitted = models.PositiveIntegerField()
    preempted = models.PositiveIntegerField()
    inadmissible = models.PositiveIntegerField()

    class Meta:
        ordering = ["-id"]
        indexes = [models.Index(fields=["cluster", "-id"], name="scheduling_cycle_newest")]

    def __str__(self) -> str:
        return f"{self.cluster} {self.epoch}.{self.number}"


class Decision(models.Model):
    """A decision on a workload: when, in which cycle, why, and at the expense of which workload.

    Partitioned by month. Names are copied in, so that a decision outlives the objects it names.
    """

    pk = models.CompositePrimaryKey("id", "decided_at")
    id = models.BigIntegerField()
    decided_at = models.DateTimeField()
    cluster_name = models.CharField(max_length=63)
    epoch = models.BigIntegerField()
    cycle = models.BigIntegerField()
    action = models.CharField(max_length=16, help_text="Admit, Preempt, Evict, Inadmissible, Skip, Requeue, Finish ...")
    namespace = models.CharField(max_length=63)
    workload_name = models.CharField(max_length=253)
    workload_uid = models.UUIDField()
    cluster_queue_name = models.CharField(max_length=253, blank=True)
    reason = models.CharField(max_length=64)
    message = models.TextField(blank=True)
    detail = models.JSONField(
        default=dict, blank=True, help_text="Flavors, counts, devices; the preemptor of a victim."
    )

    class Meta:
        ordering = ["-decided_at", "-id"]
        indexes = [
            models.Index(fields=["cluster_name", "-decided_at"], name="decision_newest"),
            models.Index(fields=["workload_uid", "-decided_at"], name="decision_workload"),
        ]

    def __str__(self) -> str:
        return f"{self.action} {self.namespace}/{self.workload_name}: {self.reason}"


class MetricCount(models.Model):
    """A count of a Prometheus counter or histogram. A metric's value is the sum of all rows with its labels.

    Triggers and batches only insert rows, so that they never wait for each other; housekeeping merges rows with the
    same labels.
    """

    cluster_id = models.BigIntegerField()
    metric = models.CharField(max_length=64)
    labels = ArrayField(models.TextField(), default=list)
    bucket = models.SmallIntegerField(default=0)
    count = models.BigIntegerField()
    total = models.FloatField(default=0.0)

    def __str__(self) -> str:
        return f"{self.metric} {self.labels}: {self.count}"


class ShadowDifference(models.Model):
    """A difference between our decision and that of the scheduler that runs the cluster, with the reasons of both."""

    cluster = models.ForeignKey("accounts.Cluster", on_delete=models.CASCADE, related_name="+")
    at = models.DateTimeField()
    namespace = models.CharField(max_length=63)
    workload_name = models.CharField(max_length=253)
    workload_uid = models.UUIDField()
    verdict = models.CharField(max_length=16, help_text="OnlyTheirs, OnlyOurs or OtherFlavors")
    theirs = models.JSONField(help_text="{act, cluster_queue, flavors, reason, message}")
    ours = models.JSONField(help_text="{act, cluster_queue, flavors, reason, message}")

    class Meta:
        ordering = ["-id"]
        indexes = [models.Index(fields=["cluster", "-id"], name="shadow_difference_newest")]

    def __str__(self) -> str:
        return f"{self.verdict} {self.namespace}/{self.workload_name}"


class ShadowCount(models.Model):
    """How the decisions of one minute compared."""

    cluster = models.ForeignKey("accounts.Cluster", on_delete=models.CASCADE, related_name="+")
    at = models.DateTimeField(help_text="The minute.")
    agreed = models.PositiveIntegerField(default=0)
    differed = models.PositiveIntegerField(default=0)
    their_reservations = models.PositiveIntegerField(default=0)
    our_reservations = models.PositiveIntegerField(default=0)
    their_preemptions = models.PositiveIntegerField(default=0)
    our_preemptions = models.PositiveIntegerField(default=0)
    unfinished = models.PositiveIntegerField(default=0, help_text="Comparisons that were cut short.")
    out_of_turn = models.PositiveIntegerField(
        default=0, db_default=0, help_text="Agreed decisions that kueueweb would have tried after other workloads."
    )

    class Meta:
        ordering = ["at"]
        constraints = [models.UniqueConstraint(fields=["cluster", "at"], name="shadow_count_unique")]

    def __str__(self) -> str:
        return f"{self.cluster} {self.at}: {self.agreed} of {self.agreed + self.differed}"
