"""Inputs and results of placement: the pod sets to place, the places of their pods, or the refusal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from scheduling.model.device import DeviceRequest, DeviceSlice
from scheduling.model.selectors import RequiredNodeAffinity, Toleration


class DeviceRefusal(StrEnum):
    """The reason why a device (or, without a count, a node) cannot serve a request: HAMi's reasons, in the order of
    its checks."""

    MODE_NOT_FIT = "ModeNotFit"
    """The device or its node is split in a way that cannot serve the request."""
    CARD_NOT_HEALTH = "CardNotHealth"
    """Its plugin reports the device as unhealthy."""
    CARD_UNHEALTHY = "CardUnhealthy"
    """MetaX's form of `CARD_NOT_HEALTH`."""
    CARD_CORDONED = "CardCordoned"
    """Beyond HAMi: an operator has closed the device."""
    CARD_TYPE_MISMATCH = "CardTypeMismatch"
    """The pod asks for, or excludes, models by an annotation."""
    NUMA_NOT_FIT = "NumaNotFit"
    """The devices of one NUMA node, or of one link group, are not enough."""
    CARD_UUID_MISMATCH = "CardUuidMismatch"
    """The pod asks for, or excludes, devices by their identifiers."""
    CARD_TIME_SLICING_EXHAUSTED = "CardTimeSlicingExhausted"
    """All slots of the device are taken, even if memory is free."""
    EXCLUSIVE_DEVICE_ALLOCATE_CONFLICT = "ExclusiveDeviceAllocateConflict"
    """One side wants the whole device, and the other one has part of it."""
    RESOURCE_QUOTA_NOT_FIT = "ResourceQuotaNotFit"
    """The namespace's ResourceQuota of device memory or cores is used up."""
    CARD_INSUFFICIENT_MEMORY = "CardInsufficientMemory"
    """The free memory is smaller than the request."""
    CARD_INSUFFICIENT_CORE = "CardInsufficientCore"
    """The free cores are fewer than the request."""
    CARD_COMPUTE_UNITS_EXHAUSTED = "CardComputeUnitsExhausted"
    """All cores are promised, so that a request without a number of cores has none to use."""
    CARD_QOS_POLICY_MISMATCH = "CardQosPolicyMismatch"
    """The tenants of the device have another QoS policy (MetaX)."""
    CARD_APP_CLASS_MISMATCH = "CardAppClassMismatch"
    """The classes online and offline of the tenants do not go together (MetaX)."""
    CARD_MIG_TOPOLOGY_INFEASIBLE = "CardMigTopologyInfeasible"
    """The instances on the device leave no place for one of the requested profile."""
    CARD_NOT_FOUND_CUSTOM_FILTER_RULE = "CardNotFoundCustomFilterRule"
    """A rule of the vendor excludes the device, such as one device for all of a pod."""
    ALLOCATED_CARDS_INSUFFICIENT_REQUEST = "AllocatedCardsInsufficientRequest"
    """Some devices suit the request, but fewer than it asks for."""
    NODE_INSUFFICIENT_DEVICE = "NodeInsufficientDevice"
    """The node has fewer devices than the request."""
    NODE_UNREGISTERED = "node unregistered"
    """No plugin has registered devices on the node."""


class NodeRefusal(StrEnum):
    """The reason why a node is not a candidate, regardless of its devices."""

    NODE_NOT_READY = "NodeNotReady"
    """It has a condition Ready that is not True."""
    NODE_UNSCHEDULABLE = "NodeUnschedulable"
    """It is cordoned or draining, in the cluster or in kueueweb, and the pod does not tolerate that."""
    NODE_TAINTED = "NodeTainted"
    """It has a taint that the pod does not tolerate."""
    INSUFFICIENT_RESOURCE = "Insufficient"
    """Followed by the resource's name: `Insufficient cpu`."""
    NODE_NOT_SELECTED = "NodeNotSelected"
    """Excluded by the flavor's labels or the pod's selector and affinity, so that HAMi and Kueue never consider it."""
    NODE_RESERVED = "NodeReserved"
    """Beyond HAMi and Kueue: a reservation keeps it free for other workloads, or for maintenance."""


@dataclass(frozen=True, slots=True)
class ScoringWeights:
    """Weights of slots, cores and memory in a device's score (`hami.io/device-scoring-weights`)."""

    slot: int = 1
    core: int = 1
    memory: int = 1


@dataclass(frozen=True, slots=True)
class DeviceConstraints:
    """The requirements of a pod's annotations on one vendor's devices. Types are substrings of the model, ignoring
    case.

    `qos_policy` and `app_class` are the pod's own values, which restrict other tenants of its devices. `zones`: several
    whole devices must be in one zone.
    """

    use_types: tuple[str, ...] = ()
    nouse_types: tuple[str, ...] = ()
    use_uuids: tuple[str, ...] = ()
    nouse_uuids: tuple[str, ...] = ()
    numa_bind: bool = False
    mode: str | None = None
    qos_policy: str = ""
    app_class: str = ""
    zones: bool = False


@dataclass(frozen=True, slots=True)
class DeviceRequestProblem:
    """A device request that HAMi refuses or silently ignores.

    `refused`: HAMi's webhook would reject the pod; otherwise the pod would run without a device.
    """

    container: str
    resource: str
    value: str
    message: str
    refused: bool

    def __str__(self) -> str:
        where = f"Container {self.container}: " if self.container else ""
        return f"{where}{self.resource} is {self.value}: {self.message}."


@dataclass(frozen=True, slots=True)
class PodDeviceRequest:
    """All device requests of one pod, per container in the order of the vendors' words.

    `node_policy` and `device_policy` are the pod's own; None means the fleet's default.
    """

    init_containers: tuple[tuple[DeviceRequest, ...], ...] = ()
    containers: tuple[tuple[DeviceRequest, ...], ...] = ()
    node_policy: str | None = None
    device_policy: str | None = None
    weights: ScoringWeights = ScoringWeights()
    constraints: tuple[tuple[str, DeviceConstraints], ...] = ()
    problems: tuple[DeviceRequestProblem, ...] = ()

    @property
    def asks_for_devices(self) -> bool:
        """Whether any container requests a device."""
        return any(self.init_containers) or any(self.containers)

    def constraints_of(self, vendor: str) -> DeviceConstraints:
        """Return the constraints on one vendor's devices."""
        return next((found for word, found in self.constraints if word == vendor), NO_CONSTRAINTS)


NO_CONSTRAINTS = DeviceConstraints()


@dataclass(frozen=True, slots=True)
class PodSetToPlace:
    """One pod set to place: `count` equal pods, replicas numbered from `first_replica`.

    `requests` are one pod's requests in base units, cpu in milli. Device resources in it are ignored, because
    `devices` has the device requests. `flavor_labels` and `flavor_tolerations` come from the assigned flavors.
    `allowed_nodes` is the topology domain; None for all nodes. `by_room`: the pods request no devices, and go to as
    few nodes as possible, those without devices first. `closed_nodes` are reserved for others.
    """

    name: str
    count: int
    requests: Mapping[str, int] = field(default_factory=dict)
    devices: PodDeviceRequest = PodDeviceRequest()
    node_selector: Mapping[str, str] = field(default_factory=dict)
    affinity: RequiredNodeAffinity | None = None
    tolerations: tuple[Toleration, ...] = ()
    flavor_labels: Mapping[str, str] = field(default_factory=dict)
    flavor_tolerations: tuple[Toleration, ...] = ()
    allowed_nodes: frozenset[str] | None = None
    namespace: str = ""
    first_replica: int = 0
    by_room: bool = False
    closed_nodes: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class PodPlacement:
    """The place of one pod. `containers` holds each container's slices, the `init_container_count` init containers
    first."""

    pod_set: str
    replica: int
    node: str
    containers: tuple[tuple[DeviceSlice, ...], ...] = ()
    init_container_count: int = 0
    requests: Mapping[str, int] = field(default_factory=dict)
    namespace: str = ""

    @property
    def slices(self) -> tuple[DeviceSlice, ...]:
        """The slices of all containers."""
        return tuple(held for container in self.containers for held in container)


@dataclass(frozen=True, slots=True)
class Placement:
    """The node and devices of every pod of a workload."""

    pods: tuple[PodPlacement, ...]

    def pods_of(self, pod_set: str) -> Sequence[PodPlacement]:
        """Return the pods of one pod set by replica."""
        return [pod for pod in self.pods if pod.pod_set == pod_set]


@dataclass(frozen=True, slots=True)
class QuotaShortage:
    """The quota that a pod would exceed. Amounts are MiB of memory or percent points of cores."""

    quota: str
    resource: str
    vendor: str
    limit: int
    used: int
    asked: int
    of_this_workload: int = 0
    """The part of `used` that belongs to pods of the same workload."""

    def __str__(self) -> str:
        used = f"{self.used} are used"
        if self.of_this_workload:
            used += f", {self.of_this_workload} of them by other pods of this workload"
        return (
            f"ResourceQuota {self.quota} allows its namespace {self.limit} of {self.resource}: {used}, "
            f"and the pod requests {self.asked}"
        )


@dataclass(frozen=True, slots=True)
class RefusedBy:
    """The refusals of one filter: how many nodes, and how many devices on them.

    A node counts under each reason of its devices. A filter on nodes counts no devices.
    """

    reason: str
    nodes: int
    devices: int = 0


@dataclass(frozen=True, slots=True)
class NodeFilters:
    """The refusals of a pod on the cluster's nodes, per filter, for the first pod without a place."""

    pod_set: str
    replica: int
    nodes: int
    refused: tuple[RefusedBy, ...]
    nearest_node: str | None
    nearest_reason: str
    message: str
    namespace_quota: bool
    """Whether the namespace's ResourceQuota refuses the pod."""
    by_room: bool = False
    """Whether the pod requests no devices."""

    @property
    def lacks_room(self) -> bool:
        """Whether it waits for cpu, memory or a place for a pod on a node, not for devices."""
        return self.by_room or (not self.namespace_quota and _is_room(self.nearest_reason))


@dataclass(frozen=True, slots=True)
class PlacementRefusal:
    """The reason why a workload cannot be placed: the first pod without a node, and the refusal of each node.

    `reasons` has one entry per candidate node (ready or not) selected by the flavor and the pod: HAMi's reasons with
    counts, such as `3/8 CardInsufficientMemory`, or a `NodeRefusal`. `placed` is the number of pods placed before it.
    `quota` is the namespace's ResourceQuota if that refuses the pod. `by_room`: the pod requests no devices.
    """

    pod_set: str
    replica: int
    placed: int
    wanted: int
    reasons: Mapping[str, str]
    nearest_node: str | None
    message: str
    quota: QuotaShortage | None = None
    by_room: bool = False

    @property
    def nearest_reason(self) -> str:
        """The refusal of the node that comes closest to fitting; empty without candidates."""
        return self.reasons[self.nearest_node] if self.nearest_node is not None else ""

    @property
    def lacks_room(self) -> bool:
        """Whether it waits for cpu, memory or a place for a pod on a node, not for devices."""
        return self.by_room or (self.quota is None and _is_room(self.nearest_reason))


def _is_room(reason: str) -> bool:
    return reason.startswith(NodeRefusal.INSUFFICIENT_RESOURCE)
