"""A cluster that we schedule, shadow or observe."""

from enum import StrEnum
from typing import Final

from django.db import models

from scheduling.model.vocabulary import PlacementScope


class ClusterMode(StrEnum):
    """The mode of a cluster: whether we observe it, shadow it or schedule it."""

    OBSERVE = "observe"
    """Another Kueue decides. The cluster's objects are shown; nothing is written to it."""
    SHADOW = "shadow"
    """Like `observe`; besides, our scheduler decides the same workloads, and the differences are shown."""
    SCHEDULE = "schedule"
    """We decide."""


class DeviceBinding(StrEnum):
    """The scheduler that binds pods with devices from us."""

    BIND = "bind"
    """kueueweb binds, as HAMi's scheduler would; HAMi's webhook is told to ignore these pods."""
    PIN = "pin"
    """HAMi's scheduler does, on the node and the devices that we chose."""


MIRRORED_MODES: Final = (ClusterMode.OBSERVE, ClusterMode.SHADOW)
"""Our rows mirror the cluster's objects, and only the watcher writes them."""


class Cluster(models.Model):
    """A Kubernetes cluster; every quota, queue, workload and node belongs to exactly one."""

    name = models.SlugField(max_length=63, unique=True, help_text="The name, as in addresses, manifests and metrics.")
    mode = models.CharField(
        max_length=16,
        choices=[(mode.value, mode.value) for mode in ClusterMode],
        default=ClusterMode.SCHEDULE,
        help_text="schedule: kueueweb decides. observe: another Kueue decides. shadow: the same, and decisions "
        "are compared.",
    )
    serves_kueue_objects = models.BooleanField(
        default=False,
        db_default=False,
        help_text="In mode schedule Kueue's objects in the cluster are ours: edits there and here are one, "
        "and their status is written by us. The cluster needs Kueue's CRDs.",
    )
    device_binding = models.CharField(
        max_length=16,
        choices=[(binding.value, binding.value) for binding in DeviceBinding],
        default=DeviceBinding.BIND,
        db_default=DeviceBinding.BIND.value,
        help_text="Who binds pods with devices: we, or HAMi's scheduler on the node and devices that we chose.",
    )
    placement = models.CharField(
        max_length=16,
        choices=[(scope.value, scope.value) for scope in PlacementScope],
        default=PlacementScope.DEVICES,
        db_default=PlacementScope.DEVICES.value,
        help_text="Which pods we place on nodes: those of workloads with devices, also those in flavors with a "
        "topology, or all. The cluster's own scheduler places the others.",
    )
    accepts_workloads_from = models.JSONField(
        default=list,
        db_default=models.Value([], models.JSONField()),
        blank=True,
        help_text="[cluster, ...]: clusters whose MultiKueue may run workloads here.",
    )
    simulated = models.BooleanField(
        default=False, editable=False, db_default=False, help_text="The demo's own cluster, which it may fill again."
    )
    server_url = models.CharField(
        max_length=255, blank=True, help_text="The API server; empty: from the process's own configuration."
    )
    configuration = models.JSONField(
        default=dict,
        blank=True,
        help_text="Kueue's Configuration as applied: fair sharing, resource transformations, pods-ready ...",
    )
    configuration_applied_set = models.CharField(
        max_length=253, blank=True, help_text="The set that applied the configuration last; pruning that set resets it."
    )
    configuration_generation = models.BigIntegerField(
        default=1,
        help_text="Goes up with each edit of a quota, queue, node or device; "
        "a batch of decisions stands only if it did not move.",
    )
    device_plugin_configuration = models.JSONField(
        default=dict,
        blank=True,
        help_text="HAMi's device-plugin settings: split count, memory and core scaling, resource names.",
    )
    telemetry_urls = models.JSONField(
        default=list,
        blank=True,
        help_text="[URL, ...] of Prometheus text endpoints in HAMi's exporter format: "
        "one monitor per node, or one for all.",
    )
    served_kinds = models.JSONField(
        default=list,
        db_default=models.Value([], models.JSONField()),
        blank=True,
        help_text="[kind, ...]: kinds of operators that the cluster serves, as the watcher found.",
    )
    missing_kinds = models.JSONField(
        default=list,
        db_default=models.Value([], models.JSONField()),
        blank=True,
        help_text="[kind, ...]: kinds that it does not serve, because what brings them is not installed.",
    )
    kueue_renewed_at = models.DateTimeField(
        null=True,
        blank=True,
        editable=False,
        help_text="When a Kueue that decides in the cluster last said so.",
    )
    kueue_holder = models.CharField(
        max_length=253,
        blank=True,
        default="",
        db_default="",
        editable=False,
        help_text="The process of that Kueue, as its lease names it.",
    )
    kueue_is_alive = models.BooleanField(
        default=False, db_default=False, editable=False, help_text="Whether its lease was seen to change lately."
    )
    lease_holder = models.CharField(
        max_length=253,
        blank=True,
        default="",
        db_default="",
        editable=False,
        help_text="Another installation of kueueweb that pushes to the cluster, by its lease there; empty: none does.",
    )
    created_at = models.DateTimeField(auto_now_add=True, help_text="When the cluster was added.")

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name

    @property
    def is_mirrored(self) -> bool:
        """Whether another scheduler manages the cluster, so that our rows only mirror its objects."""
        return self.mode in MIRRORED_MODES

    @property
    def hami_binds(self) -> bool:
        """Whether HAMi's scheduler binds pods with devices."""
        return self.device_binding == DeviceBinding.PIN

    @property
    def serves_kueue(self) -> bool:
        """Whether our rows and Kueue's objects in the cluster are kept in sync, in both directions."""
        return self.serves_kueue_objects and not self.is_mirrored
