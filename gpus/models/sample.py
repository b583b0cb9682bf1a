"""Measured use of devices and containers, in addition to their allocations: samples, rolled up as they age."""

from django.db import models

from foundation.time_series import Resolution


class Sample(models.Model):
    """One moment, or the mean and the peak of a longer period. A value that was not reported is NULL, never 0."""

    resolution = models.PositiveSmallIntegerField(choices=Resolution.choices, default=Resolution.RAW)
    at = models.DateTimeField(help_text="The start of the while that it stands for.")
    memory_used_mib = models.FloatField(null=True)
    memory_used_mib_peak = models.FloatField(null=True)
    utilization_percent = models.FloatField(null=True, help_text="May exceed 100 on some vendor's versions.")
    utilization_percent_peak = models.FloatField(null=True)

    class Meta:
        abstract = True


class DeviceSample(Sample):
    """A device as its node's monitor sees it."""

    device = models.ForeignKey("gpus.Device", on_delete=models.CASCADE, related_name="samples", db_index=False)
    temperature_celsius = models.FloatField(null=True)
    power_watts = models.FloatField(null=True)

    class Meta:
        ordering = ["device", "at"]
        constraints = [models.UniqueConstraint(fields=["device", "resolution", "at"], name="device_sample_unique")]
        indexes = [models.Index(fields=["resolution", "at"], name="device_sample_age")]

    def __str__(self) -> str:
        return f"{self.device_id} at {self.at}"


class ContainerSample(Sample):
    """A container on one device. Telemetry, not an inventory: containers that are not measured are absent."""

    device = models.ForeignKey(
        "gpus.Device", on_delete=models.CASCADE, related_name="container_samples", db_index=False
    )
    namespace = models.CharField(max_length=63)
    pod_name = models.CharField(max_length=253)
    container = models.CharField(max_length=253)
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
