"""A node of the cluster: its resources, taints and devices."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from scheduling.model.device import Device, DeviceSlice
from scheduling.model.selectors import HOSTNAME_LABEL, Taint

CPU = "cpu"
MEMORY = "memory"
PODS = "pods"
_STATE_TAINTS = "node.kubernetes.io/"


@dataclass(frozen=True, slots=True)
class CountScores:
    """A node's own link scores for each number of its devices (MetaX GPU); None if the node has none."""

    losses: Mapping[int, int] | None = None
    scores: Mapping[int, int] | None = None


@dataclass(frozen=True, slots=True)
class Node:
    """One node, immutable.

    `allocatable` and `foreign_usage` are integers in base units by resource name: cpu in milli, memory in bytes, pods
    in pods. `foreign_usage` is the usage of pods without a reservation by kueueweb: the requests of all other pods that
    are neither Succeeded nor Failed, and their number under `pods`. A node that does not state cpu, memory or pods has
    no limit of that resource; it has no other resources than those that it reports.

    `found` are slices of its devices that other schedulers decided, as seen in the cluster. They may exceed a device
    and so close it; an unreadable slice counts as the whole device. The requests of their pods are in `foreign_usage`.
    `external_usage` is their readable part as (namespace, vendor) -> (MiB, cores), which counts in ResourceQuotas.

    `unhealthy_vendors` are the vendors whose device plugin stopped answering; their devices are refused. `count_scores`
    are tables by vendor, for vendors whose nodes score combinations of devices themselves.
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
        """The labels that selectors see. The host name is a label of every node."""
        if HOSTNAME_LABEL in self.labels:
            return self.labels
        return {**self.labels, HOSTNAME_LABEL: self.name}

    def emptied(self) -> Node:
        """Return the node as it would be without any pod, ready, uncordoned and with healthy devices. Taints that
        Kubernetes itself sets for the state of a node are removed, too.
        """
        return replace(
            self,
            taints=tuple(taint for taint in self.taints if not taint.key.startswith(_STATE_TAINTS)),
            foreign_usage={},
            ready=True,
            unschedulable=False,
            devices=tuple(replace(device, health=True, cordoned=False) for device in self.devices),
            found=(),
            external_usage={},
            unhealthy_vendors=frozenset(),
        )

    def offers_more_than(self, before: Node) -> bool:
        """Return whether the change from `before` may admit a workload: any change except less room for the same
        pods."""
        if replace(self, allocatable=before.allocatable, foreign_usage=before.foreign_usage) != before:
            return True
        names = {*before.allocatable, *self.allocatable, *before.foreign_usage, *self.foreign_usage}
        return any(self._free(name) > before._free(name) for name in names)

    def _free(self, resource: str) -> int:
        return self.allocatable.get(resource, 0) - self.foreign_usage.get(resource, 0)
