"""Devices: the devices of a node and the usage of each."""

from django.db import models
from django.db.models import Q


class Device(models.Model):
    """A device, as its node's register annotation describes it.

    `used_*` is the decided use, which a trigger refuses to raise above the device. `external_*` is the use by pods
    without a present decision of ours: it is always stored, may exceed the device, and then shows as drift.
    """

    node = models.ForeignKey(
        "gpus.Node",
        on_delete=models.CASCADE,
        related_name="devices",
        db_index=False,
        help_text="The node that has the device.",
    )
    uuid = models.CharField(max_length=128, help_text="The identifier that the device plugin registered.")
    index = models.PositiveIntegerField(help_text="The number of the device on its node.")
    vendor = models.CharField(max_length=32, default="NVIDIA", help_text="The vendor, as HAMi names it.")
    type = models.CharField(max_length=128, blank=True, help_text="The model, as its vendor's plugin names it.")
    slots = models.PositiveIntegerField(help_text="How many slices it may hold at once.")
    memory_mib = models.PositiveBigIntegerField(
        help_text="The device memory in MiB, after the plugin's memory scaling."
    )
    cores_percent = models.PositiveIntegerField(
        default=100, help_text="The cores in percent: 100 for a whole device, more with the plugin's core scaling."
    )
    used_slots = models.PositiveIntegerField(default=0, help_text="The slots of slices that the scheduler decided.")
    used_memory_mib = models.PositiveBigIntegerField(
        default=0, help_text="The memory of slices that the scheduler decided."
    )
    used_cores_percent = models.PositiveIntegerField(
        default=0, help_text="The cores of slices that the scheduler decided."
    )
    external_slots = models.PositiveIntegerField(
        default=0, help_text="The slots of slices that pods hold without a decision of ours."
    )
    external_memory_mib = models.PositiveBigIntegerField(
        default=0, help_text="The memory of slices that pods hold without a decision of ours."
    )
    external_cores_percent = models.PositiveIntegerField(
        default=0, help_text="The cores of slices that pods hold without a decision of ours."
    )
    numa = models.IntegerField(default=0, help_text="The NUMA node of the device.")
    mode = models.CharField(
        max_length=32, blank=True, help_text="The mode of sharing that the plugin registered, such as hami-core or mig."
    )
    healthy = models.BooleanField(default=True, help_text="Whether the device plugin reports the device as healthy.")
    cordoned = models.BooleanField(default=False, help_text="Closed to new slices by an operator of kueueweb.")
    draining = models.BooleanField(default=False, help_text="Cordoned, and what holds slices of it is moved away.")
    mig_profiles = models.JSONField(
        default=list, blank=True, help_text="[{core, memory, count}, ...]: the MIG geometries that the device offers."
    )
    custom_info = models.JSONField(
        default=dict, blank=True, help_text="Further facts that the vendor's plugin registered."
    )
    pair_scores = models.JSONField(
        default=dict, blank=True, help_text="{uuid: score}: how fast the link to each other device of the node is."
    )
    missing_since = models.DateTimeField(
        null=True, blank=True, help_text="Its node no longer lists it, but slices of it are held."
    )
    updated_at = models.DateTimeField(auto_now=True, help_text="When the row was last written.")

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

    cluster = models.ForeignKey(
        "accounts.Cluster",
        on_delete=models.PROTECT,
        related_name="+",
        db_index=False,
        help_text="The cluster of the device.",
    )
    node = models.ForeignKey(
        "gpus.Node", on_delete=models.PROTECT, related_name="device_allocations", help_text="The node of the device."
    )
    device = models.ForeignKey(
        "gpus.Device",
        on_delete=models.PROTECT,
        null=True,
        blank=True,
        related_name="allocations",
        db_index=False,
        help_text="Empty: the slice names a device that its node does not list.",
    )
    device_uuid = models.CharField(
        max_length=128,
        blank=True,
        help_text="The identifier of the device, as the decision or the pod's annotation names it.",
    )
    source = models.CharField(
        max_length=8,
        choices=AllocationSource.choices,
        default=AllocationSource.DECIDED,
        help_text="decided: by the scheduler. external: found on a pod that kueueweb did not place.",
    )
    workload = models.ForeignKey(
        "queues.Workload",
        on_delete=models.PROTECT,
        null=True,
        blank=True,
        related_name="device_allocations",
        help_text="The workload that holds the slice; empty if the pod belongs to none.",
    )
    pod_set = models.CharField(max_length=63, blank=True, help_text="The pod set of the workload.")
    replica = models.PositiveIntegerField(default=0, help_text="The number of the pod in its pod set.")
    container = models.CharField(max_length=253, blank=True, help_text="The container that uses the slice.")
    container_index = models.PositiveSmallIntegerField(
        default=0, help_text="Init containers first, then app containers, as HAMi counts."
    )
    namespace = models.CharField(max_length=63, blank=True, help_text="The namespace of the pod.")
    pod_name = models.CharField(
        max_length=253, blank=True, help_text="The pod; empty until a pod takes the decided slice."
    )
    pod_uid = models.CharField(
        max_length=64, blank=True, help_text="The identifier of the pod; empty until a pod takes the decided slice."
    )
    memory_mib = models.PositiveBigIntegerField(help_text="The device memory of the slice in MiB.")
    cores_percent = models.PositiveIntegerField(help_text="The cores of the slice in percent of a device.")
    slots = models.PositiveIntegerField(default=1, help_text="The slots that the slice takes of the device.")
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
    created_at = models.DateTimeField(help_text="When the slice was decided or found.")

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
