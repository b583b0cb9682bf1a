"""Rows of the engine: its list of changed rows, its lease, and an append-only log of decisions."""

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Case, CharField, F, Func, Value, When
from django.db.models.functions import Now


class Lease(models.Model):
    """The process that leads the scheduling of a cluster. A new leader raises `epoch`; batches of an older epoch
    cannot write."""

    cluster = models.OneToOneField(
        "accounts.Cluster",
        on_delete=models.CASCADE,
        related_name="scheduler_lease",
        help_text="The cluster to schedule.",
    )
    epoch = models.BigIntegerField(default=0, help_text="The number of the leadership; each new leader raises it.")
    holder = models.CharField(max_length=255, blank=True, help_text="The process that leads; empty: none.")
    acquired_at = models.DateTimeField(null=True, blank=True, help_text="When the leader took the lease.")
    renewed_at = models.DateTimeField(null=True, blank=True, help_text="When the leader last renewed the lease.")

    def __str__(self) -> str:
        return f"{self.cluster}: epoch {self.epoch}"


class Change(models.Model):
    """A changed row, whose current state the engine reads. Triggers write it; the batch that has read it deletes it."""

    cluster_id = models.BigIntegerField(help_text="The cluster of the row.")
    kind = models.CharField(max_length=32, help_text="The object's kind: workload, clusterqueue, node ...")
    object_id = models.BigIntegerField(help_text="The primary key of the row.")
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
    noted_at = models.DateTimeField(db_default=Now(), help_text="When the row changed.")

    class Meta:
        ordering = ["id"]
        indexes = [models.Index(fields=["cluster_id", "tenant", "holds_quota", "id"], name="change_line")]

    def __str__(self) -> str:
        return f"{self.kind} {self.key}"


class SchedulingCycle(models.Model):
    """A cycle that decided something."""

    cluster = models.ForeignKey(
        "accounts.Cluster",
        on_delete=models.CASCADE,
        related_name="+",
        db_index=False,
        help_text="The cluster that the cycle decided about.",
    )
    epoch = models.BigIntegerField(help_text="The leadership in which the cycle ran.")
    number = models.BigIntegerField(help_text="Counts through an epoch, the idle cycles included.")
    started_at = models.DateTimeField(help_text="When the cycle started.")
    duration_seconds = models.FloatField(help_text="How long the cycle took.")
    heads = models.PositiveIntegerField(help_text="The number of workloads that the cycle considered.")
    admitted = models.PositiveIntegerField(help_text="Workloads that got quota.")
    preempted = models.PositiveIntegerField(help_text="Workloads that were preempted.")
    inadmissible = models.PositiveIntegerField(help_text="Workloads that do not fit.")

    class Meta:
        ordering = ["-id"]
        indexes = [models.Index(fields=["cluster", "-id"], name="scheduling_cycle_newest")]

    def __str__(self) -> str:
        return f"{self.cluster} {self.epoch}.{self.number}"


class Decision(models.Model):
    """A decision on a workload: the time, the cycle, the reason, and the workload that had to give way. Partitioned by
    month. Names are copied in, so that a decision outlives the objects that it names."""

    pk = models.CompositePrimaryKey("id", "decided_at", help_text="The number of the decision and its time.")
    id = models.BigIntegerField(help_text="The number of the decision.")
    decided_at = models.DateTimeField(help_text="When the scheduler decided.")
    cluster_name = models.CharField(max_length=63, help_text="The cluster of the workload.")
    epoch = models.BigIntegerField(help_text="The leadership in which the cycle ran.")
    cycle = models.BigIntegerField(help_text="The number of the cycle in its epoch.")
    action = models.CharField(max_length=16, help_text="Admit, Preempt, Evict, Inadmissible, Skip, Requeue, Finish ...")
    namespace = models.CharField(max_length=63, help_text="The namespace of the workload.")
    workload_name = models.CharField(max_length=253, help_text="The name of the workload.")
    workload_uid = models.UUIDField(help_text="The identifier of the workload.")
    cluster_queue_name = models.CharField(
        max_length=253, blank=True, help_text="The ClusterQueue in which the workload was considered."
    )
    reason = models.CharField(max_length=64, help_text="The stable reason, such as NoFit or InCohortReclamation.")
    message = models.TextField(blank=True, help_text="The reason in words.")
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

    cluster_id = models.BigIntegerField(help_text="The cluster that is counted.")
    metric = models.CharField(max_length=64, help_text="The name of the metric, without its prefix.")
    labels = ArrayField(models.TextField(), default=list, help_text="The values of the metric's labels, in its order.")
    bucket = models.SmallIntegerField(default=0, help_text="The bucket of a histogram; 0 for a counter.")
    count = models.BigIntegerField(help_text="The number of events.")
    total = models.FloatField(default=0.0, help_text="The sum of the measured values of a histogram.")

    def __str__(self) -> str:
        return f"{self.metric} {self.labels}: {self.count}"


class ShadowDifference(models.Model):
    """A difference between our decision and that of the scheduler that runs the cluster, with the reasons of both."""

    cluster = models.ForeignKey(
        "accounts.Cluster", on_delete=models.CASCADE, related_name="+", help_text="The compared cluster."
    )
    at = models.DateTimeField(help_text="When the decisions differed.")
    namespace = models.CharField(max_length=63, help_text="The namespace of the workload.")
    workload_name = models.CharField(max_length=253, help_text="The name of the workload.")
    workload_uid = models.UUIDField(help_text="The identifier of the workload.")
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

    cluster = models.ForeignKey(
        "accounts.Cluster", on_delete=models.CASCADE, related_name="+", help_text="The compared cluster."
    )
    at = models.DateTimeField(help_text="The minute.")
    agreed = models.PositiveIntegerField(
        default=0, help_text="Decisions of the other scheduler that kueueweb would have made too."
    )
    differed = models.PositiveIntegerField(
        default=0, help_text="Decisions that one of the two schedulers would not have made."
    )
    their_reservations = models.PositiveIntegerField(default=0, help_text="Quota reservations of the other scheduler.")
    our_reservations = models.PositiveIntegerField(
        default=0, help_text="Quota reservations that kueueweb would have made."
    )
    their_preemptions = models.PositiveIntegerField(default=0, help_text="Preemptions of the other scheduler.")
    our_preemptions = models.PositiveIntegerField(default=0, help_text="Preemptions that kueueweb would have made.")
    unfinished = models.PositiveIntegerField(default=0, help_text="Comparisons that were cut short.")
    out_of_turn = models.PositiveIntegerField(
        default=0, db_default=0, help_text="Agreed decisions that kueueweb would have tried after other workloads."
    )

    class Meta:
        ordering = ["at"]
        constraints = [models.UniqueConstraint(fields=["cluster", "at"], name="shadow_count_unique")]

    def __str__(self) -> str:
        return f"{self.cluster} {self.at}: {self.agreed} of {self.agreed + self.differed}"
