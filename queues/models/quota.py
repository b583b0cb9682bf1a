"""Quota of ClusterQueues and Cohorts: per flavor and resource, the nominal quota and the borrowing and lending
limits."""

from django.db import models
from django.db.models import Q


class ResourceGroup(models.Model):
    """Resources that get the same flavor; `position` keeps Kueue's order."""

    cluster_queue = models.ForeignKey(
        "queues.ClusterQueue",
        on_delete=models.CASCADE,
        null=True,
        blank=True,
        related_name="resource_groups",
        help_text="The ClusterQueue that has the quotas; empty if a Cohort has them.",
    )
    cohort = models.ForeignKey(
        "queues.Cohort",
        on_delete=models.CASCADE,
        null=True,
        blank=True,
        related_name="resource_groups",
        help_text="The Cohort that has the quotas; empty if a ClusterQueue has them.",
    )
    position = models.PositiveSmallIntegerField(help_text="The position among the groups of its owner, from 0.")
    covered_resources = models.JSONField(help_text="[resource name, ...] in Kueue's order")
    flavors = models.JSONField(help_text="[flavor name, ...]; the scheduler tries them in this order")

    class Meta:
        ordering = ["position"]
        constraints = [
            models.CheckConstraint(
                condition=Q(cluster_queue__isnull=False, cohort__isnull=True)
                | Q(cluster_queue__isnull=True, cohort__isnull=False),
                name="resource_group_has_one_owner",
            ),
            models.UniqueConstraint(fields=["cluster_queue", "position"], name="resource_group_cluster_queue_position"),
            models.UniqueConstraint(fields=["cohort", "position"], name="resource_group_cohort_position"),
        ]

    def __str__(self) -> str:
        return ", ".join(self.covered_resources)


class FlavorQuota(models.Model):
    """The quota of one flavor and resource. Amounts are integers in base units (milli for cpu, bytes for memory,
    else whole units)."""

    resource_group = models.ForeignKey(
        ResourceGroup,
        on_delete=models.CASCADE,
        related_name="quotas",
        help_text="The group of resources to which the quota belongs.",
    )
    flavor = models.CharField(max_length=253, help_text="The flavor, by name.")
    resource = models.CharField(max_length=317, help_text="The resource, such as cpu or nvidia.com/gpumem.")
    nominal_quota = models.BigIntegerField(help_text="The quota that workloads may use without borrowing.")
    borrowing_limit = models.BigIntegerField(null=True, blank=True, help_text="Empty: no limit.")
    lending_limit = models.BigIntegerField(null=True, blank=True, help_text="Empty: all of it may be lent.")
    spellings = models.JSONField(
        default=dict,
        db_default=models.Value({}, models.JSONField()),
        blank=True,
        help_text="Amounts that were written in another way than ours, by their key in a manifest.",
    )

    class Meta:
        ordering = ["id"]
        constraints = [
            models.UniqueConstraint(fields=["resource_group", "flavor", "resource"], name="flavor_quota_unique"),
            models.CheckConstraint(condition=Q(nominal_quota__gte=0), name="flavor_quota_nominal_not_negative"),
            models.CheckConstraint(
                condition=Q(borrowing_limit__isnull=True) | Q(borrowing_limit__gte=0),
                name="flavor_quota_borrowing_not_negative",
            ),
            models.CheckConstraint(
                condition=Q(lending_limit__isnull=True) | Q(lending_limit__gte=0),
                name="flavor_quota_lending_not_negative",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.flavor}/{self.resource}: {self.nominal_quota}"
