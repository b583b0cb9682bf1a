"""Joins quota and nodes in one decision: a flavor with quota but no place for the pods does not fit.

Workloads whose pods request devices are placed as soon as some node has registered devices. Once nodes are known, the
cluster's `placement` adds pods without devices: in flavors with a topology (`topology`), or in all flavors (`all`). For
other workloads quota alone decides. Either all pods of all pod sets are placed, or none.

Pods without devices in flavors where quota alone decides (`quota_only`) are left to the cluster's own scheduler. Pods
with scheduling rules that kueueweb does not read (`PodTemplate.has_unread_rules`) must find a place but do not reserve
it, because they may have to run elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from scheduling.cycle.assignment import Assignment, Mode, PodSetResult, Refusal, RefusalKind
from scheduling.cycle.closed_nodes import closed_nodes, closing_windows_in
from scheduling.cycle.flavor_topology import Room
from scheduling.cycle.reservation_refusals import describe_windows, is_held_back, refuse_for_reservation
from scheduling.devices.requests.requests import pod_device_request
from scheduling.devices.search.answers import Unplaced
from scheduling.devices.search.upper_bound import MOST
from scheduling.lifecycle.elastic import free_numbers
from scheduling.model.admission_check import added_selection
from scheduling.model.placement import (
    NodeFilters,
    Placement,
    PlacementRefusal,
    PodDeviceRequest,
    PodPlacement,
    PodSetToPlace,
)
from scheduling.model.topology import TopologyAssignment
from scheduling.model.vocabulary import PendingReason
from scheduling.state.cluster_queue import ClusterQueueState, FlavorSlot
from scheduling.state.second_pass import is_delayed_in
from scheduling.state.state import State
from scheduling.state.workload_info import PodSetRequests, QueueState, WorkloadInfo

_REASONS: Final = {
    RefusalKind.NODES: PendingReason.WAITING_FOR_NODES,
    RefusalKind.RESERVATION: PendingReason.WAITING_FOR_RESERVATION,
}


class NoPlace(NamedTuple):
    """The reason why pods cannot be placed: a message and its subject."""

    text: str
    kind: RefusalKind = RefusalKind.DEVICES

    def refusal(self, flavor: str = "") -> Refusal:
        """Return the refusal of a flavor, or of the whole assignment."""
        text = f"flavor {flavor}: {self.text}" if flavor else self.text
        return Refusal(self.kind, _REASONS.get(self.kind, PendingReason.WAITING_FOR_DEVICES), flavor, text=text)


class DeviceAssigner:
    """Finds nodes and devices for the pods of an assignment, against current reservations."""

    def __init__(self, state: State) -> None:
        self._state = state

    def concerns(self, info: WorkloadInfo) -> bool:
        """Return whether some of the workload's pods must be placed."""
        return any(self.concerns_pod_set(pod_set) for pod_set in info.pod_sets)

    def concerns_pod_set(self, pod_set: PodSetRequests) -> bool:
        """Return whether the pods must be placed: on devices, or on nodes with room for them."""
        if self._state.places_by_room:
            return pod_set.count > 0
        return self._asks(pod_set)

    @property
    def places_by_room(self) -> bool:
        """Return whether pods without devices are also placed on nodes, at least in some flavors."""
        return self._state.places_by_room

    def _asks(self, pod_set: PodSetRequests) -> bool:
        return self._state.has_devices and self._request(pod_set).asks_for_devices

    def _by_room(self, pod_set: PodSetRequests) -> bool:
        """Return whether the pods are placed although they request no devices."""
        return self._state.places_by_room and not self._asks(pod_set)

    def _is_left_alone(self, info: WorkloadInfo, pod_set: PodSetRequests, flavors: Iterable[str]) -> bool:
        """Return whether the cluster's own scheduler places the pods, so that quota alone decides here. A workload that
        requests devices is placed whole, except for its pods in flavors where quota alone decides.
        """
        if not self._by_room(pod_set):
            return False
        specs = [self._state.flavors[name] for name in flavors if name in self._state.flavors]
        if any(spec.quota_only for spec in specs):
            return True
        in_scope = self._state.places_all_pods or any(spec.topology_name is not None for spec in specs)
        return not in_scope and not any(self._asks(each) for each in info.pod_sets)

    def waits_for_checks(self, info: WorkloadInfo, cq: ClusterQueueState, flavor: str) -> bool:
        """Return whether pods in the flavor are placed in a second pass, after the admission checks. A growing
        elastic job is placed at once, because its other pods already run."""
        if not cq.spec.admission_checks or info.queue_state is QueueState.RESERVING:
            return False
        return is_delayed_in(cq.spec, self._state.checks, flavor) and self._state.replaced_slice(info, cq) is None

    def problem(self, info: WorkloadInfo) -> str | None:
        """Return the fault of a device request, or None. Pods with a faulty request would be rejected, or run
        without devices."""
        if not self._state.has_devices:
            return None
        problems = (problem for ps in info.pod_sets for problem in self._request(ps).problems)
        return next((str(problem) for problem in problems), None)

    def unplaceable_claims(self, info: WorkloadInfo) -> str:
        """Return why the pods' claims find no place on any node, even if all nodes were empty. Empty if they may find
        one, or if the cluster's own scheduler places the pods."""
        if not self._state.places_all_pods:
            return ""
        return next((f"pod set {ps.name}: {why}" for ps in info.pod_sets if (why := ps.claimed.not_placeable)), "")

    def has_place(
        self,
        info: WorkloadInfo,
        cq: ClusterQueueState,
        assignment: Assignment,
        members: Sequence[PodSetResult],
        slot: FlavorSlot,
    ) -> bool:
        """Return whether these pod sets, together with those before them, find a place on the nodes of a flavor.
        Pods that wait for admission checks are placed later."""
        if self.waits_for_checks(info, cq, slot.name):
            return True
        found = self._state.fleet.find(self._tried(info, assignment, members, slot), without=self._gone())
        return isinstance(found, Placement)

    def refusal_of(
        self,
        info: WorkloadInfo,
        cq: ClusterQueueState,
        assignment: Assignment,
        members: Sequence[PodSetResult],
        slot: FlavorSlot,
    ) -> NoPlace:
        """Return why these pod sets, for which `has_place` is false, find no place on the nodes of a flavor."""
        if closed_nodes(self._state, info) and is_held_back(
            self._state,
            lambda: self.has_place(info, cq, assignment, members, slot),
            lambda: all(map(self._state.fleet.fits_when_empty, self._tried(info, assignment, members, slot))),
        ):
            windows = closing_windows_in(self._state, info, (slot.name,))
            return NoPlace(describe_windows(windows), RefusalKind.RESERVATION)
        return self._why_unplaced(self._tried(info, assignment, members, slot))

    def _tried(
        self, info: WorkloadInfo, assignment: Assignment, members: Sequence[PodSetResult], slot: FlavorSlot
    ) -> list[PodSetToPlace]:
        """Return these pod sets in a flavor, together with those before them in theirs."""
        pod_sets: list[PodSetToPlace] = []
        for result in assignment.pod_sets:
            flavors = [choice.flavor for choice in result.flavors.values()]
            if result in members:
                flavors.append(slot.name)
            pod_sets += self._pod_sets_of(info, result, flavors)
        return pod_sets

    def filters(self, info: WorkloadInfo, flavors: Sequence[str]) -> NodeFilters | None:
        """Return the constraints, topology aside, that keep the workload's pods off the nodes of these flavors; None if
        every pod has a place."""
        pod_sets = [
            self.to_place(info, pod_set, flavors, pod_set.count, None)
            for pod_set in info.pod_sets
            if pod_set.count and not self._is_left_alone(info, pod_set, flavors)
        ]
        return self._state.fleet.filters(pod_sets)

    def fits_empty_nodes(self, info: WorkloadInfo, pod_set: PodSetRequests, flavors: Sequence[str]) -> bool:
        """Return whether empty nodes of these flavors would take the fewest pods with which the pod set may start. True
        for pods that are not placed here."""
        if not pod_set.count or not self.concerns_pod_set(pod_set) or self._is_left_alone(info, pod_set, flavors):
            return True
        least = pod_set.count if pod_set.min_count is None else pod_set.min_count
        return self._state.fleet.fits_when_empty(self.to_place(info, pod_set, flavors, least, None))

    def device_room(self, assignment: Assignment) -> Room:
        """Return the upper bound of pods per node, by pod set, for pods that request devices."""
        return {
            result.name: self._most_pods(result.pod_set, assignment.closed_nodes)
            for result in assignment.pod_sets
            if self._asks(result.pod_set)
        }

    def _most_pods(self, pod_set: PodSetRequests, closed: frozenset[str]) -> dict[str, int]:
        room = self._state.fleet.most_pods(self._request(pod_set), without=list(self._state.simulation.removed))
        return {name: most for name, most in room.items() if name not in closed} if closed else room

    def closed_nodes(self, info: WorkloadInfo) -> frozenset[str]:
        """Return the nodes that reservations close to the workload now."""
        return closed_nodes(self._state, info)

    def is_held_back(self, fits: Callable[[], bool], fits_empty: Callable[[], bool]) -> bool:
        """Return whether reservations are the reason why a workload has no place (`reservation_refusals`)."""
        return is_held_back(self._state, fits, fits_empty)

    def refuse_for_reservation(self, info: WorkloadInfo, assignment: Assignment) -> None:
        """Name the reservations as the reason why an assignment has no place."""
        refuse_for_reservation(self._state, info, assignment)

    def fits_when_empty(self, info: WorkloadInfo, assignment: Assignment) -> bool:
        """Return whether the open nodes of the assigned flavors would take each pod set if they were empty."""
        return all(
            self.fits_empty_nodes(info, result.pod_set, [choice.flavor for choice in result.flavors.values()])
            for result in assignment.pod_sets
        )

    def room_for(self, info: WorkloadInfo, pod_set: PodSetRequests, flavors: Collection[str]) -> dict[str, int] | None:
        """Return the upper bound of the pod set's pods per node; None for pods that are not placed here."""
        if self._asks(pod_set):
            return self._most_pods(pod_set, closed_nodes(self._state, info))
        if not self._by_room(pod_set) or self._is_left_alone(info, pod_set, flavors):
            return None
        without = list(self._state.simulation.removed)
        return self._state.fleet.room(self.to_place(info, pod_set, flavors, 1, None), without=without)

    def room(self, info: WorkloadInfo, assignment: Assignment) -> Room:
        """Return the upper bound of pods per node, by pod set, for pods that are placed here."""
        rooms = {
            result.name: self.room_for(info, result.pod_set, [choice.flavor for choice in result.flavors.values()])
            for result in assignment.pod_sets
        }
        return {name: room for name, room in rooms.items() if room is not None}

    def unlimited_room(self) -> dict[str, int]:
        """Return a bound without a limit on any node."""
        return dict.fromkeys(self._state.fleet.nodes, MOST)

    def refuse(self, cq: ClusterQueueState, assignment: Assignment, found: NoPlace) -> None:
        """Record that the assignment has no place: it needs preemption if the ClusterQueue allows it for devices,
        otherwise it does not fit."""
        assignment.refusals.append([found.refusal()])
        if not cq.spec.preempt_for_devices:
            assignment.mode = Mode.NO_FIT
            return
        assignment.mode = Mode.PREEMPT
        for result in assignment.pod_sets:
            result.fits = False
            for choice in result.flavors.values():
                choice.mode = Mode.PREEMPT

    def can_place(self, info: WorkloadInfo, assignment: Assignment) -> Callable[[], bool] | None:
        """Return a function that tests whether the pods have a place; None if no pod is placed here. When called, it
        leaves out the workloads that the simulation has removed by then."""
        if assignment.delayed or not self.concerns(info):
            return None
        return lambda: isinstance(self.find(info, assignment), Placement)

    def still_fits(self, info: WorkloadInfo, assignment: Assignment) -> bool:
        """Return whether the pods still have a place. If the place found before is taken, search another one."""
        if assignment.delayed or not self.concerns(info):
            return True
        placement = assignment.placement
        if placement is not None and not info.asks_for_devices and self._state.fleet.still_takes(placement):
            return True
        found = self.find(info, assignment)
        assignment.placement = self.kept_of(info, found) if isinstance(found, Placement) else None
        return isinstance(found, Placement)

    def kept_of(self, info: WorkloadInfo, found: Placement) -> Placement | None:
        """Return the part of a placement that is reserved: it excludes pods without devices that may have to run
        elsewhere."""
        free = {ps.name for ps in info.pod_sets if ps.pod_set.template.has_unread_rules and self._by_room(ps)}
        pods = tuple(pod for pod in found.pods if pod.pod_set not in free) if free else found.pods
        return (found if len(pods) == len(found.pods) else Placement(pods)) if pods else None

    def find(self, info: WorkloadInfo, assignment: Assignment) -> Placement | Unplaced:
        """Return a place for every pod, or the first pod that has none. Workloads that the simulation has removed do
        not count. Pods of a slice that this workload replaces keep their places, and only the other pods are placed."""
        kept = self._kept_pods(info)
        gone = self._gone(keep=info.workload.replaces if kept else None)
        found = self._state.fleet.find(self._to_place(info, assignment, kept), without=gone)
        return _beside(kept, found) if kept and isinstance(found, Placement) else found

    def refusal(self, info: WorkloadInfo, assignment: Assignment) -> NoPlace:
        """Return why `find` finds no place."""
        kept = self._kept_pods(info)
        return self._why_unplaced(self._to_place(info, assignment, kept), keep=info.workload.replaces if kept else None)

    def _to_place(
        self, info: WorkloadInfo, assignment: Assignment, kept: Sequence[PodPlacement]
    ) -> list[PodSetToPlace]:
        pod_sets: list[PodSetToPlace] = []
        for result in assignment.pod_sets:
            flavors = [choice.flavor for choice in result.flavors.values()]
            first = sum(pod.pod_set == result.name for pod in kept)
            pod_sets += self._pod_sets_of(info, result, flavors, first)
        return pod_sets

    def _why_unplaced(self, pod_sets: Sequence[PodSetToPlace], *, keep: str | None = None) -> NoPlace:
        found = self._state.fleet.place(pod_sets, without=self._gone(keep=keep))
        assert isinstance(found, PlacementRefusal)  # the same search has just failed
        return describe(found)

    def _gone(self, *, keep: str | None = None) -> list[str]:
        return [key for key in self._state.simulation.removed if key != keep]

    def _kept_pods(self, info: WorkloadInfo) -> tuple[PodPlacement, ...]:
        cq = self._state.cluster_queues.get(info.cluster_queue)
        replaced = self._state.replaced_slice(info, cq) if cq is not None else None
        return replaced.placement.pods if replaced is not None and replaced.placement is not None else ()

    def _request(self, pod_set: PodSetRequests) -> PodDeviceRequest:
        if pod_set.devices is None:
            pod_set.devices = pod_device_request(pod_set.pod_set.template.manifest, self._state.vendors)
        return pod_set.devices

    def _pod_sets_of(
        self, info: WorkloadInfo, result: PodSetResult, flavors: Sequence[str], first: int = 0
    ) -> list[PodSetToPlace]:
        """Return the pods of a pod set from number `first`: as one group, or as one group per topology domain."""
        if self._is_left_alone(info, result.pod_set, flavors):
            return []
        found: list[PodSetToPlace] = []
        for count, nodes in self._shares(result, result.gained, dict.fromkeys(flavors), first):
            found.append(self.to_place(info, result.pod_set, flavors, count, nodes, first))
            first += count
        return found

    def _shares(
        self, result: PodSetResult, topology: TopologyAssignment | None, flavors: dict[str, None], first: int
    ) -> list[tuple[int, frozenset[str] | None]]:
        tree = next((self._state.topology_flavors[f] for f in flavors if f in self._state.topology_flavors), None)
        if tree is None or (topology is None and result.kept is None):
            return [(result.pod_set.count - first, None)] if result.pod_set.count > first else []
        return [(domain.count, tree.node_names(domain)) for domain in topology.domains] if topology is not None else []

    def to_place(
        self,
        info: WorkloadInfo,
        pod_set: PodSetRequests,
        flavors: Iterable[str],
        count: int,
        nodes: frozenset[str] | None,
        first: int = 0,
    ) -> PodSetToPlace:
        """Return `count` pods of a pod set, numbered from `first`, to be placed on nodes of its flavors. `nodes`
        restricts the nodes."""
        specs = [self._state.flavors[name] for name in dict.fromkeys(flavors) if name in self._state.flavors]
        labels = {key: value for spec in specs for key, value in spec.node_labels.items()}
        tolerations = tuple(toleration for spec in specs for toleration in spec.tolerations)
        template = pod_set.pod_set.template
        checks = info.workload.admission_checks
        selector, added = added_selection(checks, pod_set.name) if checks else ({}, ())
        by_room = self._by_room(pod_set)
        return PodSetToPlace(
            name=pod_set.name,
            count=count,
            requests=pod_set.node_requests,
            devices=_without_devices(self._request(pod_set)) if by_room else self._request(pod_set),
            node_selector={**template.node_selector, **selector},
            affinity=template.affinity,
            tolerations=(*template.tolerations, *added),
            flavor_labels=labels,
            flavor_tolerations=tolerations,
            allowed_nodes=nodes,
            namespace=info.workload.namespace,
            first_replica=first,
            by_room=by_room,
            closed_nodes=closed_nodes(self._state, info),
        )


def _without_devices(request: PodDeviceRequest) -> PodDeviceRequest:
    """Return the same containers without device requests. Used while no node has registered devices: device
    resources then count like any other resource."""
    if not request.asks_for_devices:
        return request
    init, containers = len(request.init_containers), len(request.containers)
    return replace(request, init_containers=((),) * init, containers=((),) * containers)


def _beside(kept: Sequence[PodPlacement], found: Placement) -> Placement:
    """Return the staying pods, and the new pods with the lowest free numbers."""
    numbered: list[PodPlacement] = []
    for name in dict.fromkeys(pod.pod_set for pod in found.pods):
        pods = found.pods_of(name)
        numbers = free_numbers((pod.replica for pod in kept if pod.pod_set == name), len(pods))
        numbered += [replace(pod, replica=number) for pod, number in zip(pods, numbers, strict=True)]
    return Placement((*kept, *numbered))


def describe(refusal: PlacementRefusal) -> NoPlace:
    """Describe the refusal in a sentence, with the reason of the node that comes closest to fitting."""
    kind = RefusalKind.DEVICES if refusal.quota is None else RefusalKind.NAMESPACE_QUOTA
    if refusal.lacks_room:
        kind = RefusalKind.NODES
    if refusal.nearest_node is None or refusal.nearest_reason in refusal.message:
        return NoPlace(refusal.message, kind)
    return NoPlace(f"{refusal.message} ({refusal.nearest_node}: {refusal.nearest_reason})", kind)
