"""The engine's record of a workload: integer requests, queue state, last flavor assignment."""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from enum import Enum, auto
from operator import attrgetter
from typing import TYPE_CHECKING, Final, NamedTuple

from scheduling.devices.claims.charges import NOTHING, ClaimCharge, ClaimRefusal, ClaimRules
from scheduling.devices.claims.evaluations import DeviceKind
from scheduling.model.configuration import Configuration
from scheduling.model.placement import Placement, PodDeviceRequest
from scheduling.model.pod import Container, PodTemplate
from scheduling.model.pod_defaults import PodDefaults
from scheduling.model.quantity import NANOS, UNLIMITED, to_amount
from scheduling.model.resources import FlavorResource, pod_requests
from scheduling.model.topology import TopologyUsage
from scheduling.model.vocabulary import (
    ConditionStatus,
    ConditionType,
    EvictionReason,
    PendingReason,
    PreemptionReason,
    RequeuingTimestamp,
)
from scheduling.model.workload import Admission, PodSet, Workload
from scheduling.quota.cells import CellAmounts

if TYPE_CHECKING:
    from scheduling.state.pending_queue import EqualWorkloads

_COMPARED_FIELDS = (
    "affinity",
    "tolerations",
    "runtimeClassName",
    "priority",
    "topologySpreadConstraints",
    "resourceClaims",
)
"""Fields of a pod spec that the scheduling hash compares in their original form."""
_PENDING_REASONS = frozenset(reason.value for reason in PendingReason)


class QueueState(Enum):
    """The place where a workload is tracked."""

    NOWHERE = auto()
    """Cannot be queued now: gated, deactivated, finished, or without a LocalQueue or ClusterQueue."""
    ACTIVE = auto()
    """In the heap of its ClusterQueue: the next cycles consider it."""
    INADMISSIBLE = auto()
    """Outside the heap of its ClusterQueue, until a change in its cohort tree or on its nodes could help, or its
    back-off ends."""
    RESERVING = auto()
    """Holds quota, so it is counted in usage and in no queue."""


class TopologyCharge(NamedTuple):
    """The usage of a pod set in a flavor's topology."""

    flavor: str
    usage: TopologyUsage


class PodSetRequests:
    """A pod set with its requests.

    `count` leaves out reclaimable pods. `per_pod` are quota amounts of one pod after resource transformations;
    `requests` are those of all pods. `claimed` are the resources that the pod's claims add.
    """

    __slots__ = ("_node_requests", "claimed", "count", "devices", "min_count", "name", "per_pod", "pod_set", "requests")

    def __init__(self, pod_set: PodSet, count: int, per_pod: dict[str, int], claimed: ClaimCharge = NOTHING) -> None:
        self.pod_set = pod_set
        self.claimed = claimed
        self.name = pod_set.name
        self.count = count
        self.min_count = pod_set.min_count
        self.per_pod = per_pod
        self.requests = per_pod if count == 1 else {name: value * count for name, value in per_pod.items()}
        self._node_requests: dict[str, int] | None = None
        self.devices: PodDeviceRequest | None = None

    @property
    def node_requests(self) -> dict[str, int]:
        """Return the requests of one pod to its node, in base units: from the pod's spec, without resource
        transformations; and the devices of its claims."""
        if self._node_requests is None:
            self._node_requests = {**self._of_spec(), **self.claimed.devices}
        return self._node_requests

    def _of_spec(self) -> dict[str, int]:
        effective = self.pod_set.template.effective_requests()
        replaced = self.claimed.replaced
        return {name: to_amount(name, value) for name, value in effective.items() if name not in replaced}

    @property
    def own_resources(self) -> AbstractSet[str]:
        """The resources that the pod's spec names."""
        return self.pod_set.template.effective_requests().keys()

    def scaled_to(self, count: int) -> PodSetRequests:
        """Return the same pod set with `count` pods (partial admission)."""
        if count == self.count:
            return self
        scaled = PodSetRequests(self.pod_set, count, self.per_pod, self.claimed)
        scaled.devices = self.devices
        return scaled


class LastAssignment:
    """Kueue's LastAssignment: where the flavor search stopped, so that the next attempt continues from there.

    `tried` holds per pod set and resource the index of the last flavor tried; -1 if it was the last of its group.
    """

    __slots__ = ("cycle", "generation", "tried")

    def __init__(self, cycle: int, generation: int, tried: list[dict[str, int]]) -> None:
        self.cycle = cycle
        self.generation = generation
        self.tried = tried

    def is_outdated(self, cycle: int, generation: int) -> bool:
        """Return whether the flavor search must start over. (A workload with another hash has no last assignment.)"""
        return cycle - self.cycle > 1 and generation > self.generation

    @property
    def has_flavors_left(self) -> bool:
        """Whether the search stopped before the last flavor of some group."""
        return any(index != -1 for resources in self.tried for index in resources.values())


class SchedulingHash:
    """Kueue's scheduling-equivalence hash: equal for workloads of one ClusterQueue that every cycle treats alike. It
    is kept as a value whose hash is computed once.

    As in Kueue it covers, per pod set, the name, counts, requests and topology request, and the fields of the pod spec
    that `SpecShape` keeps: the containers' requests and ports, and `_COMPARED_FIELDS`. Labels, annotations, images and
    limits do not count.

    Beyond Kueue: pods that request devices also compare their annotations, which select devices. In a namespace with a
    quota of devices they equal only pods of the same namespace.
    """

    __slots__ = ("_hash", "_time", "_untimed", "_value")

    def __init__(self, value: Hashable, time: int | None = None) -> None:
        """`time`: the seconds that the workload may still run, where they count."""
        self._value, self._time = value, time
        self._untimed = hash(value)
        self._hash = hash((self._untimed, time))

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, SchedulingHash)
            and self._hash == other._hash
            and self._time == other._time
            and self._value == other._value
        )

    def differs_in_time(self, other: SchedulingHash) -> bool:
        """Return whether only the time differs."""
        return self._untimed == other._untimed and self._time != other._time and self._value == other._value


QueueOrder = tuple[int, float, str, str]
QueueItem = tuple[QueueOrder, int, "WorkloadInfo"]
"""An item of a queue: its order, its ticket, the workload."""


_NO_KINDS: Final[frozenset[DeviceKind]] = frozenset()


class WorkloadInfo:
    """The engine's record of a workload. Fields that `__init__` does not set change with its queue state."""

    __slots__ = (
        "_exceeded",
        "_place",
        "_scheduling_hash",
        "admission",
        "admitted",
        "asks_for_topology",
        "barred_by",
        "bucket",
        "changes",
        "claim_refusal",
        "claims_devices",
        "cluster_queue",
        "device_kinds",
        "evicted",
        "groups",
        "has_namespace_device_quota",
        "key",
        "keys",
        "last_assignment",
        "limited_submitter",
        "limited_time",
        "may_borrow",
        "order",
        "outcome",
        "placement",
        "pod_sets",
        "preempted_at",
        "priority",
        "queue_key",
        "requeue_at",
        "requeued_false",
        "reserved_at",
        "ticket",
        "timestamp",
        "topology_usage",
        "uid",
        "usage",
        "workload",
    )

    def __init__(
        self,
        workload: Workload,
        configuration: Configuration,
        pod_defaults: PodDefaults | None = None,
        claims: ClaimRules | None = None,
        *,
        has_namespace_device_quota: bool = False,
        has_fixed_nodes: bool = False,
    ) -> None:
        """`pod_defaults` completes the pod sets, `claims` charges their claims. `has_namespace_device_quota`: equal
        workloads of other namespaces may be decided differently. `has_fixed_nodes`: nodes must not change now.
        """
        self.workload = workload
        self.key = workload.key
        self.uid = workload.uid
        self.queue_key = workload.queue_key
        self.cluster_queue = ""
        self.bucket: EqualWorkloads | None = None
        """The group of equal pending workloads that it belongs to. The queue sets this and `ticket`."""
        self.ticket = 0
        self._place = QueueState.NOWHERE
        self.priority = workload.effective_priority
        self.timestamp = queue_order_timestamp(workload, configuration)
        self.order = self.class_order
        pod_sets = _completed(workload, pod_defaults)
        charges: Mapping[str, ClaimCharge] = {}
        self.claim_refusal: ClaimRefusal | None = None
        """Why its claims keep it out of every queue."""
        self.claims_devices = claims is not None and claims.concerns(pod_sets)
        """Whether its pods claim devices of drivers."""
        if claims is not None and self.claims_devices:
            try:
                charges = claims.charges(
                    workload.namespace, pod_sets, holds=workload.holds_quota, fixed=has_fixed_nodes
                )
            except ClaimRefusal as refusal:
                self.claim_refusal = refusal
        self.device_kinds = _NO_KINDS.union(*(charge.kinds for charge in charges.values()))
        """The kinds of devices with selectors that its claims request."""
        self.pod_sets = _pod_sets(workload, configuration, pod_sets, charges)
        self.groups = _groups(workload)
        self.asks_for_topology = any(
            ps.topology_request is not None and ps.topology_request.asks_for_topology for ps in workload.pod_sets
        )
        self.has_namespace_device_quota = has_namespace_device_quota
        self._scheduling_hash: SchedulingHash | None = None
        self.limited_submitter: tuple[str, tuple[str, ...]] | None = None
        """Its user and their groups, while its ClusterQueue or a cohort above limits users: workloads of others are not
        equal."""
        self.limited_time: int | None = None
        """Its declared time that is left, while its ClusterQueue backfills or reservations bar it: only workloads with
        the same are equal."""
        self.barred_by: frozenset[str] = frozenset()
        """The reservations that do not allow it: only workloads that the same ones bar are equal."""
        self._exceeded: str | None = None
        self.may_borrow = not workload.never_reclaimed
        """Whether it may use more than the quota of its ClusterQueue. A workload that is never reclaimed may not:
        borrowed quota would never be returned."""
        self.last_assignment: LastAssignment | None = None
        self.changes: tuple[Callable[[Workload], Workload], ...] = ()
        self.outcome = _last_outcome(workload)
        self.usage: CellAmounts = ()
        self.keys: frozenset[FlavorResource] = frozenset()
        """The (flavor, resource) pairs of which it holds quota."""
        self.topology_usage: tuple[TopologyCharge, ...] = ()
        self.placement: Placement | None = None
        self.admission: Admission | None = None
        self.admitted = False
        self.evicted = False
        self.reserved_at = 0.0
        self.preempted_at: float | None = workload.last_preempted_at
        state = workload.requeue_state
        self.requeue_at = state.requeue_at if state else None
        self.requeued_false = workload.is_false(ConditionType.REQUEUED)

    @property
    def queue_state(self) -> QueueState:
        """The state in which the queue tracks the workload."""
        return self._place if self.bucket is None else self.bucket.state

    @queue_state.setter
    def queue_state(self, place: QueueState) -> None:
        self._place = place

    @property
    def class_order(self) -> QueueOrder:
        """Kueue's order in a queue: by the priority of its class, then by time. `order` differs if the ClusterQueue
        selects another order."""
        return (-self.priority, self.timestamp, self.uid, self.key)

    def set_status(self, workload: Workload, configuration: Configuration) -> None:
        """Replace the status of a workload that holds quota."""
        self.workload = workload
        self.priority = workload.effective_priority
        self.timestamp = queue_order_timestamp(workload, configuration)
        self.order = self.class_order
        reserved = workload.condition(ConditionType.QUOTA_RESERVED)
        self.reserved_at = reserved.last_transition_time if reserved is not None else 0.0
        self.admitted = workload.is_true(ConditionType.ADMITTED)
        self.evicted = workload.is_true(ConditionType.EVICTED)

    def set_limits(
        self, submitter: tuple[str, tuple[str, ...]] | None, time: int | None, barred_by: frozenset[str]
    ) -> None:
        """Set `limited_submitter`, `limited_time` and `barred_by`. The workload must not be in a queue, because queues
        group equal workloads."""
        self.limited_submitter, self.limited_time, self.barred_by = submitter, time, barred_by
        self._scheduling_hash = None

    def leave_eviction_behind(self) -> None:
        """Forget an earlier eviction, because the workload holds quota again: its creation time then decides its place
        in queue order."""
        self.timestamp = self.workload.created_at
        self.order = self.class_order

    def change(self, change: Callable[[Workload], Workload]) -> None:
        """Add a status change. It is applied when the workload is read."""
        self.changes += (change,)

    def current(self) -> Workload:
        """Return the workload with all decided status changes applied."""
        if self.changes:
            for change in self.changes:
                self.workload = change(self.workload)
            self.changes = ()
        return self.workload

    def snapshot(self) -> tuple[object, ...]:
        """Return a copy of the fields in `_NOTED`."""
        return _SNAPSHOT(self)

    def restore(self, values: tuple[object, ...]) -> None:
        """Go back to a snapshot."""
        for name, value in zip(_NOTED, values, strict=True):
            setattr(self, name, value)

    def backoff_expired(self, now: float) -> bool:
        """Return whether it may be queued: Requeued is not False, and `requeueAt` has passed."""
        return not self.requeued_false and (self.requeue_at is None or now >= self.requeue_at)

    def exceeded_limit(self) -> str | None:
        """Return the first request of a pod that exceeds its limit, or None; computed once."""
        if self._exceeded is None:
            found = (ps.pod_set.template.exceeded_limit() for ps in self.pod_sets)
            self._exceeded = next(filter(None, found), "")
        return self._exceeded or None

    def place_as_stated(self) -> None:
        """Take the placement from the status, and complete it with the pods' requests to their nodes."""
        stated = self.workload.placement
        pairs = zip(self.pod_sets, self.workload.pod_sets, strict=True)
        requests = {
            ps.name: ps.node_requests
            for ps, as_written in pairs
            if ps.pod_set is not as_written or ps.claimed is not NOTHING
        }
        if stated is not None and requests:
            pods = (replace(pod, requests=requests.get(pod.pod_set, pod.requests)) for pod in stated.pods)
            stated = Placement(tuple(pods))
        self.placement = stated

    def can_be_reduced(self) -> bool:
        """Return whether some pod set may be admitted with fewer pods (partial admission)."""
        return any(ps.min_count is not None and ps.min_count < ps.count for ps in self.pod_sets)

    @property
    def asks_for_devices(self) -> bool:
        """Whether its pods are known to request devices; False until they have been checked."""
        return any(ps.devices is not None and ps.devices.asks_for_devices for ps in self.pod_sets)

    @property
    def scheduling_hash(self) -> SchedulingHash:
        """The scheduling hash, computed once."""
        if self._scheduling_hash is None:
            pod_sets = tuple(_pod_set_hash(requests) for requests in self.pod_sets)
            workload = self.workload
            namespace = workload.namespace if self.has_namespace_device_quota else None
            value = (
                self.priority, namespace, workload.allowed_flavors, workload.replaces, self.may_borrow, pod_sets,
                self.limited_submitter, self.barred_by,
            )  # fmt: skip
            self._scheduling_hash = SchedulingHash(value, self.limited_time)
        return self._scheduling_hash


_AFTER_ITS_PREEMPTOR: Final = 0.001
_NOTED = tuple(name for name in WorkloadInfo.__slots__ if name not in ("bucket", "ticket"))
"""The fields that a snapshot holds. The queue journals its own fields."""
_SNAPSHOT = attrgetter(*_NOTED)


def owner_fields(workload: Workload) -> tuple[object, ...]:
    """Return the fields set by the workload's owner or the cluster that may change a decision about it."""
    return (
        workload.pod_sets,
        workload.queue_name,
        workload.priority,
        workload.priority_boost,
        workload.active,
        workload.reclaimable_pods,
        workload.closed_preemption_gates,
        workload.allowed_flavors,
        workload.never_reclaimed,
        workload.nice,
        workload.submitted_by,
        workload.user_groups,
        workload.maximum_execution_time_seconds,
    )


def queue_order_timestamp(workload: Workload, configuration: Configuration) -> float:
    """Return the time that orders a workload in its queue: its creation, or its eviction after a pods-ready timeout or
    a failed admission check. A preempted workload keeps its place; without priority sorting, it is placed behind the
    borrower that preempted it."""
    evicted = workload.condition(ConditionType.EVICTED)
    if evicted is not None and workload.is_true(ConditionType.EVICTED):
        if evicted.reason == EvictionReason.ADMISSION_CHECK:
            return evicted.last_transition_time
        ready = configuration.wait_for_pods_ready
        by_eviction = ready is None or ready.requeuing_strategy.timestamp is RequeuingTimestamp.EVICTION
        if evicted.reason == EvictionReason.PODS_READY_TIMEOUT and by_eviction:
            return evicted.last_transition_time
    preempted = workload.condition(ConditionType.PREEMPTED)
    if (
        not configuration.features.priority_sorting
        and preempted is not None
        and preempted.status is ConditionStatus.TRUE
        and preempted.reason == PreemptionReason.IN_COHORT_RECLAIM_WHILE_BORROWING
    ):
        return preempted.last_transition_time + _AFTER_ITS_PREEMPTOR
    return workload.created_at


def _last_outcome(workload: Workload) -> tuple[PendingReason, str] | None:
    """Return the pending reason and message in its status."""
    verdict = workload.condition(ConditionType.QUOTA_RESERVED)
    if verdict is None or verdict.status is not ConditionStatus.FALSE or verdict.reason not in _PENDING_REASONS:
        return None
    return PendingReason(verdict.reason), verdict.message


def _pod_sets(
    workload: Workload, configuration: Configuration, pod_sets: Sequence[PodSet], charges: Mapping[str, ClaimCharge]
) -> tuple[PodSetRequests, ...]:
    found: list[PodSetRequests] = []
    for pod_set in pod_sets:
        per_pod = pod_requests(pod_set.template, configuration.transformations, configuration.exclude_resource_prefixes)
        claimed = charges.get(pod_set.name, NOTHING)
        if claimed is not NOTHING:
            per_pod = _with_claims(per_pod, claimed)
        count = max(0, pod_set.count - workload.reclaimable_pods.get(pod_set.name, 0))
        found.append(PodSetRequests(pod_set, count, per_pod, claimed))
    return tuple(found)


def _completed(workload: Workload, pod_defaults: PodDefaults | None) -> tuple[PodSet, ...]:
    if pod_defaults is None:
        return workload.pod_sets
    return tuple(pod_defaults.completed(workload.namespace, stated) for stated in workload.pod_sets)


def _with_claims(per_pod: Mapping[str, int], claimed: ClaimCharge) -> dict[str, int]:
    """Add the claims after exclusions and transformations, as Kueue does."""
    found = {name: amount for name, amount in per_pod.items() if name not in claimed.replaced}
    for name, count in claimed.quota.items():
        found[name] = min(found.get(name, 0) + to_amount(name, count * NANOS), UNLIMITED)
    return found


def _groups(workload: Workload) -> tuple[tuple[int, ...], ...]:
    """Indexes of pod sets that must share their flavors, in order of first appearance."""
    if len(workload.pod_sets) == 1:
        return ((0,),)
    groups: dict[str, list[int]] = {}
    for index, pod_set in enumerate(workload.pod_sets):
        request = pod_set.topology_request
        name = f"group {request.group}" if request is not None and request.group else f"pod set {index}"
        groups.setdefault(name, []).append(index)
    return tuple(tuple(members) for members in groups.values())


def _pod_set_hash(requests: PodSetRequests) -> Hashable:
    template = requests.pod_set.template
    containers = (*template.init_containers, *template.containers)
    return (
        requests.name,
        requests.count,
        requests.min_count,
        tuple(sorted(requests.per_pod.items())),
        requests.pod_set.topology_request,
        template.node_selection,
        tuple(tuple(sorted(container.requests.items())) for container in containers),
        len(template.init_containers),
        tuple(sorted(template.overhead.items())),
        _spec_fields(template),
        _device_hash(template, containers),
        tuple(sorted(requests.claimed.devices.items())),
    )


def _spec_fields(template: PodTemplate) -> str:
    """Return the fields of the pod spec that the template does not hold in another form, as JSON; "" without any."""
    spec = template.manifest.get("spec") or {}
    fields = {name: spec[name] for name in _COMPARED_FIELDS if spec.get(name)}
    for kind in ("initContainers", "containers"):
        ports = [container.get("ports") for container in spec.get(kind) or ()]
        if any(ports):
            fields[kind] = ports
    return json.dumps(fields, sort_keys=True, default=str) if fields else ""


def _device_hash(template: PodTemplate, containers: tuple[Container, ...]) -> Hashable:
    """Return the other fields that select devices; empty for pods that request no extended resource."""
    if not any("/" in resource for container in containers for resource in container.requests):
        return ()
    return (
        tuple(sorted(template.annotations.items())),
        tuple((tuple(sorted(container.limits.items())), container.always_restarts) for container in containers),
    )
