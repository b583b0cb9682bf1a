"""Changes of a World as values: an object set, an object deleted, a workload ended."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import assert_never

from scheduling.model.admission_check import AdmissionCheck
from scheduling.model.cluster_queue import ClusterQueue
from scheduling.model.cohort import Cohort
from scheduling.model.local_queue import LocalQueue
from scheduling.model.node import Node
from scheduling.model.resource_flavor import ResourceFlavor
from scheduling.model.topology import Topology
from scheduling.model.workload import Workload
from scheduling.world import World

Settable = ClusterQueue | Cohort | LocalQueue | ResourceFlavor | Topology | AdmissionCheck | Node | Workload


@dataclass(frozen=True, slots=True)
class SetObject:
    """An object is added or replaced."""

    value: Settable

    def apply(self, world: World, now: float) -> None:
        """Apply the change."""
        value = self.value
        match value:
            case ClusterQueue():
                world.set_cluster_queue(value)
            case Cohort():
                world.set_cohort(value)
            case LocalQueue():
                world.set_local_queue(value)
            case ResourceFlavor():
                world.set_resource_flavor(value)
            case Topology():
                world.set_topology(value)
            case AdmissionCheck():
                world.set_admission_check(value)
            case Node():
                world.set_node(value)
            case Workload():
                world.set_workload(value, now)
            case _:
                assert_never(value)


@dataclass(frozen=True, slots=True)
class DeleteObject:
    """An object is deleted. `kind` is its class; `key` is its name, with the namespace before it where it has one."""

    kind: type[Settable]
    key: str

    def apply(self, world: World, now: float) -> None:
        """Make the change. Raises ValueError for a kind that is not deleted by name."""
        deletions = {
            ClusterQueue: world.delete_cluster_queue,
            Cohort: world.delete_cohort,
            LocalQueue: world.delete_local_queue,
            ResourceFlavor: world.delete_resource_flavor,
            Topology: world.delete_topology,
            AdmissionCheck: world.delete_admission_check,
            Node: world.delete_node,
            Workload: world.delete_workload,
        }
        deletions[self.kind](self.key)


@dataclass(frozen=True, slots=True)
class EndWorkload:
    """A workload ends: its quota and devices are free at once."""

    key: str

    def apply(self, world: World, now: float) -> None:
        """Apply the change."""
        world.finish_workload(self.key, now)


Change = SetObject | DeleteObject | EndWorkload


def apply_changes(world: World, changes: Iterable[Change], now: float) -> None:
    """Apply the changes in their order."""
    for change in changes:
        change.apply(world, now)
