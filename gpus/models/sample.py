"""Measured use of devices and containers, in addition to their allocations: samples, rolled up as they age."""

from django.db import models

from foundation.time_series import Resolution


class Sample(models.Model):
    """One moment, or the mean and the peak of a longer period. A value that was not reported is NULL, never 0."""

    resolution = models.PositiveSmallIntegerField(
        choices=Resolution.choices,
        default=Resolution.RAW,
        help_text="The length of the period: a single sample, or a mean over minutes or hours.",
    )
    at = models.DateTimeField(help_text="The start of the while that it stands for.")
    memory_used_mib = models.FloatField(null=True, help_text="The used device memory in MiB.")
    memory_used_mib_peak = models.FloatField(null=True, help_text="The highest use of device memory in the period.")
    utilization_percent = models.FloatField(null=True, help_text="May exceed 100 on some vendor's versions.")
    utilization_percent_peak = models.FloatField(null=True, help_text="The highest utilization in the period.")

    class Meta:
        abstract = True


class DeviceSample(Sample):
    """A device as its node's monitor sees it."""

    device = models.ForeignKey(
        "gpus.Device",
        on_delete=models.CASCADE,
        related_name="samples",
        db_index=False,
        help_text="The measured device.",
    )
    temperature_celsius = models.FloatField(null=True, help_text="The temperature of the device.")
    power_watts = models.FloatField(null=True, help_text="The power that the device draws.")

    class Meta:
        ordering = ["device", "at"]
        constraints = [models.UniqueConstraint(fields=["device", "resolution", "at"], name="device_sample_unique")]
        indexes = [models.Index(fields=["resolution", "at"], name="device_sample_age")]

    def __str__(self) -> str:
        return f"{self.device_id} at {self.at}"


class ContainerSample(Sample):
    """A container on one device. Telemetry, not an inventory: containers that are not measured are absent."""

    device = models.ForeignKey(
        "gpus.Device",
        on_delete=models.CASCADE,
        related_name="container_samples",
        db_index=False,
        help_text="The device on which the container was measured.",
    )
    namespace = models.CharField(max_length=63, help_text="The namespace of the pod.")
    pod_name = models.CharField(max_length=253, help_text="The pod of the container.")
    container = models.CharField(max_length=253, help_text="The name of the container.")
    last_kernel_seconds = models.FloatField(null=True, help_text="Since its last kernel ran: how long it is idle.")

    class Meta:
        ordering = ["device", "at"]
        constraints = [
            models.UniqueConstraint(
                fields=["device", "namespace", "pod_name", "container", "resolution", "at"],
                name="container_sample_unique",
            )
        ]
        indexes = [
            models.Index(fields=["resolution", "at"], name="container_sample_age"),
            models.Index(fields=["namespace", "pod_name", "at"], name="container_sample_pod"),
        ]

    def __str__(self) -> str:
        return f"{self.namespace}/{self.pod_name} at {self.at}"
