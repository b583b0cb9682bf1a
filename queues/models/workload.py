"""Workloads: pod sets that are pending, hold quota, run and finish as a whole."""

from django.contrib.postgres.indexes import GinIndex, OpClass
from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Upper

from accounts.models.base import NamespacedObject


class Workload(NamespacedObject):
    """Kueue's Workload. `status`, the times, `reason` and `message` repeat `conditions`, so that lists can filter by
    them.

    Writers update named columns under a condition and never call save(), because the scheduler writes these rows
    too.
    """

    # Without an index of its own: that of the status begins with it, and every change of a workload writes every index.
    cluster = models.ForeignKey(
        "accounts.Cluster",
        on_delete=models.PROTECT,
        related_name="+",
        db_index=False,
        help_text="The cluster to which it belongs.",
    )
    job = models.ForeignKey(
        "queues.Job",
        on_delete=models.CASCADE,
        null=True,
        blank=True,
        related_name="workloads",
        help_text="The job that the workload runs; empty for a workload without a job.",
    )
    queue_name = models.CharField(
        max_length=253, blank=True, help_text="The LocalQueue by which the workload asks for quota."
    )
    priority = models.IntegerField(
        default=0, help_text="The order among pending workloads and in preemption; a higher number goes first."
    )
    priority_class_group = models.CharField(
        max_length=64, blank=True, help_text="The API group of the priority class: kueue.x-k8s.io or scheduling.k8s.io."
    )
    priority_class_kind = models.CharField(
        max_length=64, blank=True, help_text="The kind of the priority class: WorkloadPriorityClass or PriorityClass."
    )
    priority_class_name = models.CharField(
        max_length=253, blank=True, help_text="The priority class from which the priority comes; empty: none."
    )
    active = models.BooleanField(
        default=True,
        help_text="Whether the workload may hold quota. An inactive one is evicted and does not wait in its queue.",
    )
    never_preempt = models.BooleanField(default=False, help_text="Beyond Kueue: never a victim of reclaim.")
    maximum_execution_seconds = models.PositiveIntegerField(
        null=True,
        blank=True,
        help_text="The time in Admitted, summed over all runs, after which the workload is deactivated.",
    )
    preemption_gates = models.JSONField(
        default=list, blank=True, help_text="[name, ...]: gates that must open before the workload may preempt others."
    )
    gate_opened_at = models.DateTimeField(
        null=True, blank=True, help_text="When a variant was allowed to preempt; empty while its gate is closed."
    )
    has_variants = models.BooleanField(
        default=False, db_default=False, help_text="Its variants wait and hold quota in its place."
    )
    parent_name = models.CharField(
        max_length=253,
        blank=True,
        default="",
        db_default="",
        help_text="Of a variant (concurrent admission): the workload of its namespace whose job it would run.",
    )
    submitted_by = models.CharField(max_length=150, blank=True, help_text="The user that submitted the workload.")
    user_groups = models.JSONField(
        default=list,
        db_default=models.Value([], models.JSONField()),
        blank=True,
        help_text="[name, ...]: the groups of that user at the submission, by which limits by group count.",
    )
    waits_for = models.JSONField(
        default=list,
        db_default=models.Value([], models.JSONField()),
        blank=True,
        help_text="[name, ...]: jobs of its namespace that must succeed before it may hold quota.",
    )
    traceparent = models.CharField(
        max_length=55,
        blank=True,
        default="",
        db_default="",
        help_text="The trace context of the request that made it, where requests are traced.",
    )

    status = models.CharField(
        max_length=16, default="Pending", help_text="Pending, QuotaReserved, Admitted, Evicted or Finished."
    )
    reason = models.CharField(
        max_length=64, blank=True, help_text="Why it waits: the reason of QuotaReserved=False, else of the last step."
    )
    message = models.TextField(blank=True, help_text="The reason in words, as the condition states it.")
    conditions = models.JSONField(
        default=list, blank=True, help_text="[{type, status, reason, message, lastTransitionTime}]"
    )
    cluster_queue_name = models.CharField(
        max_length=253,
        blank=True,
        help_text="Where it holds quota, or, while it waits, where its LocalQueue led when last decided.",
    )
    admission_check_states = models.JSONField(
        default=list, blank=True, help_text="[{name, state, message, lastTransitionTime ...}]"
    )
    quota_reserved_at = models.DateTimeField(
        null=True, blank=True, help_text="When the workload got its quota; empty while it has none."
    )
    admitted_at = models.DateTimeField(
        null=True,
        blank=True,
        help_text="When the workload was admitted: quota reserved and all admission checks ready.",
    )
    evicted_at = models.DateTimeField(
        null=True, blank=True, help_text="Set until quota is held again; with a reservation: its pods are stopping."
    )
    requeue_requested_by = models.CharField(
        max_length=150,
        blank=True,
        default="",
        db_default="",
        help_text="Who asked for it to stop and to wait again; empty once it stops.",
    )
    requeue_reason = models.CharField(
        max_length=64, blank=True, default="", db_default="", help_text="The eviction's reason, as asked for."
    )
    requeue_message = models.TextField(
        blank=True, default="", db_default="", help_text="The eviction's message, as asked for."
    )
    on_hold = models.CharField(
        max_length=128,
        blank=True,
        default="",
        db_default="",
        help_text="Why its job wants no pods for now, such as a StatefulSet with no replicas; empty if it wants them.",
    )
    pods_stopped_at = models.DateTimeField(
        null=True,
        blank=True,
        help_text="An evicted workload's pods have stopped: the scheduler may take its quota back.",
    )
    finished_at = models.DateTimeField(null=True, blank=True, help_text="When the job ended.")
    ending = models.JSONField(
        null=True,
        blank=True,
        help_text="{reason, message, actor}: its job has ended, and it is Finished when none of its pods lives.",
    )
    pods_ready_at = models.DateTimeField(
        null=True, blank=True, help_text="When all pods were ready for the first time since the admission."
    )
    requeue_count = models.PositiveIntegerField(
        default=0, help_text="How often the workload was requeued because its pods were not ready in time."
    )
    requeue_at = models.DateTimeField(
        null=True,
        blank=True,
        help_text="When the workload returns to its queue after a back-off; empty: no back-off runs.",
    )
    last_preempted_at = models.DateTimeField(null=True, blank=True, help_text="When the workload was last preempted.")
    accumulated_execution_seconds = models.PositiveIntegerField(
        default=0, help_text="The time in Admitted of earlier runs, which counts for the maximum."
    )
    eviction_counts = models.JSONField(default=list, blank=True, help_text="[{reason, underlyingCause, count}]")
    unhealthy_nodes = models.JSONField(
        default=list, blank=True, help_text="[node, ...]: failed nodes on which pods of the workload are assigned."
    )
    multikueue = models.JSONField(
        default=dict,
        db_default=models.Value({}, models.JSONField()),
        blank=True,
        help_text="{reservedAt, nominated, roundAt, cluster, lostSince}: to which workers it was sent since it holds "
        "quota, and the one that runs it.",
    )

    push_sequence = models.BigIntegerField(
        default=0, help_text="Goes up with each decision that the cluster must hear of."
    )
    pushed_sequence = models.BigIntegerField(default=0, help_text="The last of them that the cluster has heard.")
    push_error = models.TextField(blank=True, help_text="The error with which the cluster refused the last push.")
    push_failures = models.PositiveSmallIntegerField(
        default=0, db_default=0, help_text="Refusals of the present decision in a row."
    )
    push_refused_sequence = models.BigIntegerField(
        default=0, db_default=0, help_text="The decision that the cluster refused."
    )
    push_retry_at = models.DateTimeField(null=True, blank=True, help_text="When a refused decision is told again.")

    class Meta:
        ordering = ["id"]
        constraints = [models.UniqueConstraint(fields=["cluster", "namespace", "name"], name="workload_unique")]
        indexes = [
            models.Index(fields=["cluster", "uid"], name="workload_uid"),
            models.Index(fields=["cluster", "status", "id"], name="workload_status"),
            models.Index(fields=["cluster", "cluster_queue_name", "status", "id"], name="workload_cluster_queue"),
            models.Index(fields=["cluster", "namespace", "queue_name", "id"], name="workload_local_queue"),
            models.Index(fields=["cluster", "priority_class_name", "id"], name="workload_priority_class"),
            GinIndex(
                OpClass(Upper("name"), name="gin_trgm_ops"),
                OpClass(Upper("namespace"), name="gin_trgm_ops"),
                name="workload_search",
            ),
            models.Index(fields=["cluster", "reason", "id"], name="workload_reason"),
            models.Index(fields=["cluster", "submitted_by", "id"], name="workload_submitted_by"),
            models.Index(fields=["cluster", "id"], condition=Q(active=False), name="workload_held"),
            models.Index(
                fields=["cluster", "namespace", "queue_name"],
                condition=~Q(status="Finished"),
                name="workload_unfinished",
            ),
            models.Index(
                fields=["cluster", "submitted_by"], condition=~Q(status="Finished"), name="workload_unfinished_user"
            ),
            models.Index(
                fields=["cluster"], condition=Q(push_sequence__gt=F("pushed_sequence")), name="workload_unpushed"
            ),
            models.Index(fields=["cluster"], condition=Q(ending__isnull=False), name="workload_ending"),
            models.Index(fields=["cluster", "finished_at"], condition=Q(status="Finished"), name="workload_finished"),
            models.Index(
                fields=["cluster", "namespace", "parent_name"], condition=~Q(parent_name=""), name="workload_variant"
            ),
            models.Index(fields=["cluster", "namespace"], condition=~Q(waits_for=[]), name="workload_waits_for"),
            models.Index(fields=["requeue_at"], condition=Q(requeue_at__isnull=False), name="workload_requeue_at"),
        ]


class PodSet(models.Model):
    """A group of identical pods of a workload. The admission columns are empty while it holds no quota.

    In `nodes`, a replica that an elastic job has released is null.
    """

    workload = models.ForeignKey(
        Workload,
        on_delete=models.CASCADE,
        related_name="pod_sets",
        db_index=False,
        help_text="The workload to which the pods belong.",
    )
    position = models.PositiveSmallIntegerField(
        default=0, help_text="The position among the pod sets of the workload, from 0."
    )
    name = models.CharField(max_length=63, default="main", help_text="The name of the pod set.")
    count = models.PositiveIntegerField(default=1, help_text="The number of pods.")
    min_count = models.PositiveIntegerField(
        null=True,
        blank=True,
        help_text="The fewest pods with which the job can run (partial admission); empty: all are needed.",
    )
    template = models.JSONField(help_text="The pod template as submitted: {metadata: {labels, annotations}, spec}")
    requests = models.JSONField(help_text="{resource: amount per pod}, base units, before Kueue's transformations")
    topology_request = models.JSONField(
        default=dict,
        blank=True,
        help_text="Kueue's TopologyRequest: the level within which the pods must or should be placed together.",
    )
    reclaimable_count = models.PositiveIntegerField(
        default=0, help_text="Pods that have ended and need their quota no more."
    )
    admitted_count = models.PositiveIntegerField(
        null=True, blank=True, help_text="The number of pods that were admitted."
    )
    flavors = models.JSONField(default=dict, blank=True, help_text="{resource: flavor}")
    resource_usage = models.JSONField(
        default=dict, blank=True, help_text="{resource: amount of all its pods}, base units, as charged"
    )
    nodes = models.JSONField(
        default=list, blank=True, help_text="[node of replica 0, of replica 1, ...] where we chose them, with devices"
    )
    topology_assignment = models.JSONField(
        null=True, blank=True, help_text="{levels: [...], domains: [{values, count}]}"
    )

    class Meta:
        ordering = ["position"]
        constraints = [models.UniqueConstraint(fields=["workload", "name"], name="pod_set_unique")]

    def __str__(self) -> str:
        return f"{self.name} x {self.count}"


class WorkloadEvent(models.Model):
    """An event in a workload's life. Names are copied in, so that it outlives the workload."""

    cluster = models.ForeignKey(
        "accounts.Cluster",
        on_delete=models.CASCADE,
        related_name="+",
        db_index=False,
        help_text="The cluster to which it belongs.",
    )
    workload_uid = models.UUIDField(help_text="The identifier of the workload.")
    namespace = models.CharField(max_length=63, help_text="The namespace of the workload.")
    workload_name = models.CharField(max_length=253, help_text="The name of the workload.")
    at = models.DateTimeField(help_text="When the event happened.")
    type = models.CharField(max_length=8, default="Normal", help_text="Normal or Warning")
    reason = models.CharField(max_length=96, help_text="The stable reason, such as QuotaReserved or Preempted.")
    message = models.TextField(blank=True, help_text="The event in words.")
    actor = models.CharField(
        max_length=150, blank=True, help_text="A user's name, `scheduler`, `watcher` or a check's name."
    )

    class Meta:
        ordering = ["id"]
        indexes = [
            models.Index(fields=["workload_uid", "id"], name="workload_event_workload"),
            models.Index(fields=["cluster", "-id"], name="workload_event_newest"),
        ]

    def __str__(self) -> str:
        return f"{self.namespace}/{self.workload_name}: {self.reason}"


class Pod(models.Model):
    """A pod of a workload as the cluster shows it."""

    workload = models.ForeignKey(
        Workload,
        on_delete=models.CASCADE,
        related_name="pods",
        db_index=False,
        help_text="The workload to which the pod belongs.",
    )
    pod_set = models.CharField(max_length=63, help_text="The pod set of the workload.")
    replica = models.PositiveIntegerField(help_text="The number of the pod in its pod set.")
    namespace = models.CharField(max_length=63, help_text="The namespace of the pod.")
    name = models.CharField(max_length=253, help_text="The name of the pod.")
    uid = models.CharField(max_length=64, help_text="The identifier of the pod in its cluster.")
    phase = models.CharField(
        max_length=16, default="Pending", help_text="Kubernetes' phase: Pending, Running, Succeeded, Failed or Unknown."
    )
    ready = models.BooleanField(default=False, help_text="Whether the Ready condition of the pod is true.")
    terminating = models.BooleanField(default=False, help_text="Whether the pod was deleted and still stops.")
    reason = models.CharField(
        max_length=128, blank=True, default="", db_default="", help_text="Why it is not ready, or how it ended."
    )
    message = models.TextField(blank=True, default="", db_default="", help_text="The reason in words.")
    restarts = models.PositiveIntegerField(
        default=0, db_default=0, help_text="How often its containers were restarted."
    )
    containers = models.JSONField(default=list, db_default=[], help_text="Their names, the init containers first.")
    node_name = models.CharField(
        max_length=253, blank=True, help_text="The node to which the pod is bound; empty until then."
    )
    created_at = models.DateTimeField(null=True, blank=True, help_text="When the pod was created in its cluster.")
    started_at = models.DateTimeField(null=True, blank=True, help_text="When the kubelet started the pod.")
    finished_at = models.DateTimeField(null=True, blank=True, help_text="When the last container of the pod ended.")
    devices = models.JSONField(
        null=True, blank=True, help_text="[uuid, ...]: the devices that its own annotations name, once it has such."
    )

    class Meta:
        ordering = ["pod_set", "replica"]
        constraints = [models.UniqueConstraint(fields=["workload", "uid"], name="pod_unique")]
        indexes = [models.Index(fields=["node_name"], name="pod_node")]

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"
