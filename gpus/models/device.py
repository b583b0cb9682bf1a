"""Devices: the devices of a node and the usage of each."""

from django.db import models
from django.db.models import Q


class Device(models.Model):
    """A device, as its node's register annotation describes it.

    `used_*` is the decided use, which a trigger refuses to raise above the device. `external_*` is the use by pods
    without a present decision of ours: it is always stored, may exceed the device, and then shows as drift.
    """

    node = models.ForeignKey("gpus.Node", on_delete=models.CASCADE, related_name="devices", db_index=False)
    uuid = models.CharField(max_length=128)
    index = models.PositiveIntegerField()
    vendor = models.CharField(max_length=32, default="NVIDIA")
    type = models.CharField(max_length=128, blank=True, help_text="The model, as its vendor's plugin names it.")
    slots = models.PositiveIntegerField(help_text="How many slices it may hold at once.")
    memory_mib = models.PositiveBigIntegerField()
    cores_percent = models.PositiveIntegerField(default=100)
    used_slots = models.PositiveIntegerField(default=0)
    used_memory_mib = models.PositiveBigIntegerField(default=0)
    used_cores_percent = models.PositiveIntegerField(default=0)
    external_slots = models.PositiveIntegerField(default=0)
    external_memory_mib = models.PositiveBigIntegerField(default=0)
    external_cores_percent = models.PositiveIntegerField(default=0)
    numa = models.IntegerField(default=0)
    mode = models.CharField(max_length=32, blank=True)
    healthy = models.BooleanField(default=True)
    cordoned = models.BooleanField(default=False)
    draining = models.BooleanField(default=False, help_text="Cordoned, and what holds slices of it is moved away.")
    mig_profiles = models.JSONField(default=list, blank=True)
    custom_info = models.JSONField(default=dict, blank=True)
    pair_scores = models.JSONField(default=dict, blank=True)
    missing_since = models.DateTimeField(
        null=True, blank=True, help_text="Its node no longer lists it, but slices of it are held."
    )
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        ordering = ["node", "index"]
        constraints = [models.UniqueConstraint(fields=["node", "uuid"], name="device_unique")]
        indexes = [
            models.Index(fields=["uuid"], name="device_uuid"),
            models.Index(fields=["vendor", "type"], name="device_type"),
        ]

    def __str__(self) -> str:
        return self.uuid


class AllocationSource(models.TextChoices):
    """The source of the knowledge that a slice is held."""

    DECIDED = "decided"
    EXTERNAL = "external"


class DeviceAllocation(models.Model):
    """A slice of a device: decided for a container of a workload's replica, or external, held by a pod that we did not
    place."""

    cluster = models.ForeignKey("accounts.Cluster", on_delete=models.PROTECT, related_name="+", db_index=False)
    node = models.ForeignKey("gpus.Node", on_delete=models.PROTECT, related_name="device_allocations")
    device = models.ForeignKey(
        "gpus.Device",
        on_delete=models.PROTECT,
        null=True,
        blank=True,
        related_name="allocations",
        db_index=False,
        help_text="Empty: the slice names a device that its node does not list.",
    )
    device_uuid = models.CharField(max_length=128, blank=True)
    source = models.CharField(max_length=8, choices=AllocationSource.choices, default=AllocationSource.DECIDED)
    workload = models.ForeignKey(
        "queues.Workload", on_delete=models.PROTECT, null=True, blank=True, related_name="device_allocations"
    )
    pod_set = models.CharField(max_length=63, blank=True)
    replica = models.PositiveIntegerField(default=0)
    container = models.CharField(max_length=253, blank=True)
    container_index = models.PositiveSmallIntegerField(
        default=0, help_text="Init containers first, then app containers, as HAMi counts."
    )
    namespace = models.CharField(max_length=63, blank=True)
    pod_name = models.CharField(max_length=253, blank=True)
    pod_uid = models.CharField(max_length=64, blank=True)
    memory_mib = models.PositiveBigIntegerField()
    cores_percent = models.PositiveIntegerField()
    slots = models.PositiveIntegerField(default=1)
    mig_instance = models.JSONField(null=True, blank=True, help_text="{profile, start, size} of a MIG instance")
    qos_policy = models.CharField(
        max_length=16,
        blank=True,
        default="",
        db_default="",
        help_text="What the device's tenants are promised, where its vendor knows such.",
    )
    app_class = models.CharField(
        max_length=16,
        blank=True,
        default="",
        db_default="",
        help_text="online pods suspend offline ones on their device.",
    )
    malformed = models.TextField(blank=True, help_text="The annotation as found, when it could not be read.")
    created_at = models.DateTimeField()

    class Meta:
        ordering = ["id"]
        constraints = [
            models.CheckConstraint(
                condition=Q(source="external") | Q(workload__isnull=False, device__isnull=False),
                name="device_allocation_decided_is_whole",
            ),
            models.UniqueConstraint(
                fields=["workload", "pod_set", "replica", "container_index", "device"],
                condition=Q(source="decided", mig_instance__isnull=True),
                name="device_allocation_unique",
            ),
            models.UniqueConstraint(
                fields=["workload", "pod_set", "replica", "container_index", "device", "mig_instance"],
                condition=Q(source="decided", mig_instance__isnull=False),
                name="device_allocation_instance_unique",
            ),
        ]
        indexes = [
            models.Index(fields=["device", "source"], name="device_allocation_device"),
            models.Index(fields=["cluster", "namespace"], name="device_allocation_namespace"),
            models.Index(fields=["pod_uid"], name="device_allocation_pod"),
        ]

    def __str__(self) -> str:
        return f"{self.device_uuid}: {self.memory_mib} MiB, {self.cores_percent} %"
