"""ClusterQueues and the cohorts they share quota in."""

from decimal import Decimal

from django.db import models

from accounts.models.base import ClusterObject, EditedObject, NamespacedObject

DEFAULT_WEIGHT = Decimal(1)


class Cohort(EditedObject, ClusterObject):
    """Kueue's Cohort: a node of the quota tree; its own quota is in `resource_groups`."""

    parent_name = models.CharField(max_length=253, blank=True)
    fair_sharing_weight = models.DecimalField(max_digits=24, decimal_places=9, default=DEFAULT_WEIGHT)
    minimum_run_seconds = models.PositiveIntegerField(null=True, blank=True)
    cool_down_seconds = models.PositiveIntegerField(null=True, blank=True)
    # Holds [{flavor, resource, share, headroom}], the quotas that follow the nodes.
    node_quotas = models.JSONField(default=list, db_default=models.Value([], models.JSONField()), blank=True)
    # Holds [{users, workloads, resources}], the most a user may hold; the user * is any other.
    user_limits = models.JSONField(default=list, db_default=models.Value([], models.JSONField()), blank=True)
    priority_weights = models.JSONField(default=dict, db_default=models.Value({}, models.JSONField()), blank=True)

    sharing_policy = models.CharField(max_length=16, blank=True, db_default="")

    class Meta:
        ordering = ["name"]
        constraints = [models.UniqueConstraint(fields=["cluster", "name"], name="cohort_unique")]


class ClusterQueue(EditedObject, ClusterObject):
    """Kueue's ClusterQueue. Its quotas are rows in `resource_groups`; with an empty `cohort_name` it shares nothing.

    `namespace_selector` NULL selects no namespace, `{}` all of them (Kueue's rule).
    """

    cohort_name = models.CharField(max_length=253, blank=True)
    queueing_strategy = models.CharField(max_length=32, default="BestEffortFIFO")
    namespace_selector = models.JSONField(null=True, blank=True)
    when_can_borrow = models.CharField(max_length=32, default="MayStopSearch")
    when_can_preempt = models.CharField(max_length=32, default="TryNextFlavor")
    flavor_preference = models.CharField(max_length=32, blank=True)
    within_cluster_queue = models.CharField(max_length=32, default="Never")
    reclaim_within_cohort = models.CharField(max_length=32, default="Never")
    borrow_within_cohort_policy = models.CharField(max_length=32, default="Never")
    borrow_within_cohort_max_priority_threshold = models.IntegerField(null=True, blank=True)
    # Holds [{name, onFlavors: [...]}]
    admission_checks = models.JSONField(default=list, blank=True)
    stop_policy = models.CharField(max_length=16, default="None")
    fair_sharing_weight = models.DecimalField(max_digits=24, decimal_places=9, default=DEFAULT_WEIGHT)
    admission_mode = models.CharField(max_length=64, blank=True)
    concurrent_admission_policy = models.JSONField(default=dict, blank=True)
    preempt_for_devices = models.BooleanField(default=False)
    minimum_run_seconds = models.PositiveIntegerField(null=True, blank=True)
    cool_down_seconds = models.PositiveIntegerField(null=True, blank=True)
    # Holds [{flavor, resource, share, headroom}], the quotas that follow the nodes.
    node_quotas = models.JSONField(default=list, db_default=models.Value([], models.JSONField()), blank=True)
    # Holds [{users, workloads, resources}], the most a user may hold; the user * is any other.
    user_limits = models.JSONField(default=list, db_default=models.Value([], models.JSONField()), blank=True)
    priority_weights = models.JSONField(default=dict, db_default=models.Value({}, models.JSONField()), blank=True)
    queue_priority = models.PositiveIntegerField(default=0, db_default=0)
    conditions = models.JSONField(
        default=list,
        db_default=models.Value([], models.JSONField()),
        blank=True,
        editable=False,
        help_text="[{type, status, reason, message, lastTransitionTime}]: those of MultiKueue; Active is not kept.",
    )
    never_reclaimed = models.BooleanField(default=False, db_default=False)
    backfill = models.CharField(max_length=16, blank=True, db_default="")

    class Meta:
        ordering = ["name"]
        constraints = [models.UniqueConstraint(fields=["cluster", "name"], name="cluster_queue_unique")]
        indexes = [models.Index(fields=["cluster", "cohort_name"], name="cluster_queue_cohort")]


class LocalQueue(EditedObject, NamespacedObject):
    """Kueue's LocalQueue: a namespace's access to a ClusterQueue."""

    cluster_queue_name = models.CharField(max_length=253)
    stop_policy = models.CharField(max_length=16, default="None")
    fair_sharing_weight = models.DecimalField(max_digits=24, decimal_places=9, default=DEFAULT_WEIGHT)
    admission_fair_sharing = models.JSONField(default=dict, blank=True, help_text="{consumedResources, lastUpdate}")
    past_use = models.JSONField(
        default=dict,
        db_default=models.Value({}, models.JSONField()),
        blank=True,
        editable=False,
        help_text="{at, halfLifeSeconds, used: {resource: decayed seconds of a unit}}: the use by the records of use.",
    )

    class Meta:
        ordering = ["namespace", "name"]
        constraints = [models.UniqueConstraint(fields=["cluster", "namespace", "name"], name="local_queue_unique")]
        indexes = [models.Index(fields=["cluster", "cluster_queue_name"], name="local_queue_cluster_queue")]
