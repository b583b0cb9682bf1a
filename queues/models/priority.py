"""Priority classes of workloads."""

from django.db import models

from accounts.models.base import ClusterObject, EditedObject


class WorkloadPriorityClass(EditedObject, ClusterObject):
    """Kueue's WorkloadPriorityClass. A change of its value changes every unfinished workload that names it."""

    value = models.IntegerField()
    description = models.CharField(max_length=2048, blank=True)

    class Meta:
        ordering = ["-value", "name"]
        verbose_name_plural = "workload priority classes"
        constraints = [models.UniqueConstraint(fields=["cluster", "name"], name="workload_priority_class_unique")]


class PriorityClass(EditedObject, ClusterObject):
    """Kubernetes' PriorityClass, for jobs that name no WorkloadPriorityClass."""

    value = models.IntegerField()
    description = models.CharField(max_length=2048, blank=True)
    global_default = models.BooleanField(default=False)
    preemption_policy = models.CharField(max_length=32, blank=True)

    class Meta:
        ordering = ["-value", "name"]
        verbose_name_plural = "priority classes"
        constraints = [models.UniqueConstraint(fields=["cluster", "name"], name="priority_class_unique")]
