"""A node of the cluster, as far as deciding needs it: its resources, taints and devices."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from scheduling.model.device import Device, DeviceSlice
from scheduling.model.selectors import HOSTNAME_LABEL, Taint

CPU = "cpu"
MEMORY = "memory"
PODS = "pods"


@dataclass(frozen=True, slots=True)
class CountScores:
    """A node's own tables of what it means for the links among its devices to take so many of them (MetaX GPU); None
    where it has none."""

    losses: Mapping[int, int] | None = None
    scores: Mapping[int, int] | None = None


@dataclass(frozen=True, slots=True)
class Node:
    """One node; a change makes a new one.

    `allocatable` and `foreign_usage` are integers in base units by resource name: cpu in milli, memory in bytes, pods
    in pods. `foreign_usage` is what runs there and is not a reservation of ours: the requests of all other pods that
    are neither Succeeded nor Failed, and their number under `pods`. A node that states no amount of cpu, memory or
    pods is not limited by it; a resource of another name that it does not state is not there.

    `found` are slices of its devices that we did not decide, as found in the cluster; they may exceed a device and so
    close it, and what can't be read is given as a slice of the whole device. Their pods' requests are in
    `foreign_usage`. `external_usage` is what could be read of them as (namespace, vendor) -> (MiB, cores): it counts in
    ResourceQuotas. `unhealthy_vendors` holds the vendor words whose device plugin stopped answering: their devices are
    refused. `count_scores` has the tables of vendors, by their words, whose nodes score the taking of devices
    themselves.
    """

    name: str
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Taint, ...] = ()
    allocatable: Mapping[str, int] = field(default_factory=dict)
    foreign_usage: Mapping[str, int] = field(default_factory=dict)
    ready: bool = True
    unschedulable: bool = False
    devices: tuple[Device, ...] = ()
    found: tuple[DeviceSlice, ...] = ()
    external_usage: Mapping[tuple[str, str], tuple[int, int]] = field(default_factory=dict)
    unhealthy_vendors: frozenset[str] = frozenset()
    count_scores: Mapping[str, CountScores] = field(default_factory=dict)

    @property
    def selectable_labels(self) -> Mapping[str, str]:
        """The labels that selectors see; the host name is a label of every node."""
        if HOSTNAME_LABEL in self.labels:
            return self.labels
        return {**self.labels, HOSTNAME_LABEL: self.name}

    def offers_more_than(self, before: Node) -> bool:
        """Whether the change from `before` may let a workload in: any change except less room for the same pods."""
        if replace(self, allocatable=before.allocatable, foreign_usage=before.foreign_usage) != before:
            return True
        names = {*before.allocatable, *self.allocatable, *before.foreign_usage, *self.foreign_usage}
        return any(self._free(name) > before._free(name) for name in names)

    def _free(self, resource: str) -> int:
        return self.allocatable.get(resource, 0) - self.foreign_usage.get(resource, 0)
