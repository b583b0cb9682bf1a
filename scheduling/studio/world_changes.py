"""Changes of a World as values: an object set or deleted, a setting changed, a workload ended, requeued or given
another priority."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from scheduling.devices.claims.objects import DeviceObjects
from scheduling.devices.search.namespace_quota import NamespaceQuota
from scheduling.lifecycle.conditions import evict
from scheduling.model.admission_check import AdmissionCheck
from scheduling.model.cluster_queue import ClusterQueue
from scheduling.model.cohort import Cohort
from scheduling.model.configuration import Configuration
from scheduling.model.limit_range import LimitRange
from scheduling.model.local_queue import LocalQueue
from scheduling.model.node import Node
from scheduling.model.pod_defaults import RuntimeClass
from scheduling.model.resource_flavor import ResourceFlavor
from scheduling.model.topology import Topology
from scheduling.model.vocabulary import EvictionReason
from scheduling.model.workload import Workload
from scheduling.reservations.reservation import Reservation
from scheduling.state.workload_info import QueueState
from scheduling.world import World


@dataclass(frozen=True, slots=True)
class Namespace:
    """A namespace and its labels, which ClusterQueues select."""

    name: str
    labels: Mapping[str, str] = field(default_factory=dict)


Settable = (
    ClusterQueue
    | Cohort
    | LocalQueue
    | ResourceFlavor
    | Topology
    | AdmissionCheck
    | Node
    | Workload
    | Namespace
    | RuntimeClass
    | LimitRange
    | NamespaceQuota
    | Reservation
)


@dataclass(frozen=True, slots=True)
class SetObject:
    """An object is added or replaced."""

    value: Settable

    def apply(self, world: World, now: float) -> None:
        """Apply the change."""
        value = self.value
        if isinstance(value, Workload):
            world.set_workload(value, now)
        elif isinstance(value, Namespace):
            world.set_namespace(value.name, value.labels)
        else:
            setters: dict[type[Settable], Callable[[Any], None]] = {
                ClusterQueue: world.set_cluster_queue,
                Cohort: world.set_cohort,
                LocalQueue: world.set_local_queue,
                ResourceFlavor: world.set_resource_flavor,
                Topology: world.set_topology,
                AdmissionCheck: world.set_admission_check,
                Node: world.set_node,
                RuntimeClass: world.set_runtime_class,
                LimitRange: world.set_limit_range,
                NamespaceQuota: world.set_resource_quota,
                Reservation: world.set_reservation,
            }
            setters[type(value)](value)


@dataclass(frozen=True, slots=True)
class DeleteObject:
    """An object is deleted. `kind` is its class; `key` is its name, preceded by its namespace if it has one."""

    kind: type[Settable]
    key: str

    def apply(self, world: World, now: float) -> None:
        """Apply the change."""
        deletions: dict[type[Settable], Callable[[str], None]] = {
            ClusterQueue: world.delete_cluster_queue,
            Cohort: world.delete_cohort,
            LocalQueue: world.delete_local_queue,
            ResourceFlavor: world.delete_resource_flavor,
            Topology: world.delete_topology,
            AdmissionCheck: world.delete_admission_check,
            Node: world.delete_node,
            Workload: world.delete_workload,
            Namespace: world.delete_namespace,
            RuntimeClass: world.delete_runtime_class,
            LimitRange: world.delete_limit_range,
            NamespaceQuota: world.delete_resource_quota,
            Reservation: world.delete_reservation,
        }
        deletions[self.kind](self.key)


@dataclass(frozen=True, slots=True)
class EndWorkload:
    """A workload ends: its quota and devices are free at once."""

    key: str

    def apply(self, world: World, now: float) -> None:
        """Apply the change."""
        world.finish_workload(self.key, now)


@dataclass(frozen=True, slots=True)
class RequeueWorkload:
    """A workload that holds quota is evicted and waits again; its pods stop immediately. A waiting workload does not
    change. Raises KeyError if the World lacks that workload."""

    key: str

    def apply(self, world: World, now: float) -> None:
        """Apply the change."""
        if world.queue_state(self.key) is QueueState.RESERVING:
            evict_and_requeue(world, self.key, EvictionReason.REQUEUE_REQUESTED, "Requeued by the plan", now)


@dataclass(frozen=True, slots=True)
class SetPriority:
    """A workload gets another priority. Raises KeyError if the World lacks that workload."""

    key: str
    priority: int

    def apply(self, world: World, now: float) -> None:
        """Apply the change."""
        workload = world.workload(self.key)
        if workload is None:
            raise KeyError(self.key)
        world.set_workload(replace(workload, priority=self.priority), now)


@dataclass(frozen=True, slots=True)
class SetConfiguration:
    """The scheduler has another configuration."""

    configuration: Configuration

    def apply(self, world: World, now: float) -> None:
        """Apply the change."""
        world.set_configuration(self.configuration)


@dataclass(frozen=True, slots=True)
class SetPlacementPolicies:
    """Pods without their own policies are placed by other policies."""

    node_policy: str
    device_policy: str

    def apply(self, world: World, now: float) -> None:
        """Apply the change."""
        world.set_placement_policies(self.node_policy, self.device_policy)


@dataclass(frozen=True, slots=True)
class SetDeviceObjects:
    """The device classes, published devices and claim templates are replaced."""

    objects: DeviceObjects

    def apply(self, world: World, now: float) -> None:
        """Apply the change."""
        world.set_device_objects(self.objects)


class Change(Protocol):
    """A change of a World: the values of this module, and of `node_changes`."""

    def apply(self, world: World, now: float) -> None:
        """Apply the change."""


def evict_and_requeue(world: World, key: str, reason: EvictionReason, message: str, now: float) -> None:
    """Evict a workload that holds quota. Its pods stop immediately, its quota is free, and it waits again."""
    workload = world.workload(key)
    assert workload is not None  # it holds quota
    world.set_workload(evict(workload, reason, message, now), now)
    world.release_workload(key, now)


def apply_changes(world: World, changes: Iterable[Change], now: float) -> None:
    """Apply the changes in their order."""
    for change in changes:
        change.apply(world, now)
