"""Advice about devices for a whole world: fragmentation, and moves that would admit a workload."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import islice, product

from scheduling.advice.move_bounds import MoveBounds, Nodes
from scheduling.advice.move_check import MoveCheck, Nominate
from scheduling.cycle.assignment import Assignment, Mode, RefusalKind
from scheduling.cycle.closed_nodes import closed_nodes
from scheduling.cycle.explain import describe_refusals
from scheduling.devices.requests.requests import pod_device_request
from scheduling.devices.search.fragmentation_report import (
    FragmentationReport,
    cluster_report,
    flavor_report,
    node_reports,
)
from scheduling.devices.search.moves import MAX_MOVES, MovePlan, MovePlanner, Part
from scheduling.model.placement import PodDeviceRequest, PodSetToPlace
from scheduling.model.resources import FlavorResource
from scheduling.model.vocabulary import ConditionType
from scheduling.state.cluster_queue import FlavorSlot, GroupState
from scheduling.state.state import State
from scheduling.state.workload_info import PodSetRequests, QueueState, WorkloadInfo

_MAX_FLAVOR_CHOICES = 16
_MAX_TRIES, _MIN_TRIES = 1000, 50
"""Limits on placement searches, over all flavors and domains and for each of them: a person waits for the answer."""


@dataclass(frozen=True, slots=True)
class Fragmentation:
    """Reports on all devices, on each flavor's devices, and on each node with devices."""

    cluster: FragmentationReport
    flavors: dict[str, FragmentationReport]
    nodes: dict[str, FragmentationReport]


def fragmentation(state: State) -> Fragmentation:
    """Report the idle devices, and the idle part that no typical pod could use."""
    fleet = state.fleet
    return Fragmentation(
        cluster_report(fleet),
        {name: flavor_report(fleet, flavor.node_labels) for name, flavor in sorted(state.flavors.items())},
        node_reports(fleet),
    )


class MoveOutcome(StrEnum):
    """The result of a request for moves."""

    MOVES = "Moves"
    """There is a plan."""
    FITS_NOW = "FitsNow"
    """It fits without a move."""
    NO_PLAN = "NoPlan"
    """Few moves do not help. A plan with many would disturb more workloads than it starts."""
    NO_QUOTA = "NoQuota"
    """No flavor that the workload may use has enough quota, and moves free devices only."""
    NO_DEVICES_REQUESTED = "NoDevicesRequested"
    """Moves free devices, and its pods request none."""
    NOT_ADMISSIBLE = "NotAdmissible"
    """Something other than devices keeps it waiting, which no move changes."""
    HOLDS_QUOTA = "HoldsQuota"
    """It has been decided already."""
    NOT_QUEUED = "NotQueued"
    """It has ended, or no queue has it."""


_MESSAGES = {
    MoveOutcome.MOVES: "After these moves, the workload fits.",
    MoveOutcome.FITS_NOW: "The workload fits without any move.",
    MoveOutcome.NO_PLAN: "No plan with few moves frees enough devices for the workload.",
    MoveOutcome.NO_QUOTA: "No flavor that the workload may use has enough quota: moves would not help.",
    MoveOutcome.NO_DEVICES_REQUESTED: "The workload requests no device.",
    MoveOutcome.NOT_ADMISSIBLE: "The workload cannot be admitted, whatever is free",
    MoveOutcome.HOLDS_QUOTA: "The workload is not waiting: it holds quota.",
    MoveOutcome.NOT_QUEUED: "The workload is in no queue: it is on hold or gated, or its queue is missing or stopped.",
}


@dataclass(frozen=True, slots=True)
class MoveAdvice:
    """The result, also as a sentence, with the plan if there is one; `detail` is the reason why the workload is
    inadmissible."""

    outcome: MoveOutcome
    plan: MovePlan | None = None
    detail: str = ""

    @property
    def message(self) -> str:
        return f"{_MESSAGES[self.outcome]}: {self.detail}." if self.detail else _MESSAGES[self.outcome]


def advise_moves(state: State, key: str, nominate: Nominate, max_moves: int = MAX_MOVES) -> MoveAdvice:
    """Return the fewest moves of running pods that would give a pending workload its devices, over the flavors with
    quota.

    Pods that are being evicted or are never reclaimed are not moved. Pods with a topology stay within their topology
    request. Every plan was tried on the state (which is unchanged afterwards): after its moves the scheduler admits the
    workload. Raises KeyError for an unknown workload.
    """
    info = state.workloads[key]
    if info.workload.admission is not None:
        return MoveAdvice(MoveOutcome.HOLDS_QUOTA)
    if not _asks_for_devices(state, info):
        return MoveAdvice(MoveOutcome.NO_DEVICES_REQUESTED)
    if info.queue_state not in (QueueState.ACTIVE, QueueState.INADMISSIBLE):
        return MoveAdvice(MoveOutcome.NOT_QUEUED)
    cq = state.cluster_queues[info.cluster_queue]
    if not cq.active:
        return MoveAdvice(MoveOutcome.NOT_ADMISSIBLE, detail=f"ClusterQueue {cq.name}: {cq.inactive_message}")
    now = nominate(info, cq)
    if now.refused:
        return MoveAdvice(MoveOutcome.NOT_ADMISSIBLE, detail=now.message)
    if now.assignment.mode is Mode.FIT:
        placement = now.assignment.placement
        return MoveAdvice(MoveOutcome.FITS_NOW, MovePlan((), placement) if placement is not None else None)
    if _stands_alone(RefusalKind.NAMESPACE_QUOTA, now.assignment):
        return MoveAdvice(MoveOutcome.NOT_ADMISSIBLE, detail=describe_refusals(now.assignment))
    bounds = MoveBounds(state)
    candidates = [
        (flavors, nodes)
        for flavors in _flavor_choices(state, info)
        if _has_quota(state, info, flavors)
        for nodes in bounds.of_workload(info, flavors)
    ]
    if not candidates:
        return MoveAdvice(MoveOutcome.NO_QUOTA)
    best = _fewest(state, info, candidates, MoveCheck(state, nominate, bounds), bounds, max_moves)
    return MoveAdvice(MoveOutcome.MOVES if best is not None else MoveOutcome.NO_PLAN, best)


def _stands_alone(kind: RefusalKind, assignment: Assignment) -> bool:
    return {refusal.kind for refusals in assignment.refusals for refusal in refusals} == {kind}


def _fewest(
    state: State,
    info: WorkloadInfo,
    candidates: Sequence[tuple[tuple[str, ...], Nodes]],
    check: MoveCheck,
    bounds: MoveBounds,
    max_moves: int,
) -> MovePlan | None:
    """Return the confirmed plan with the fewest moves over flavors and domains."""
    planner = MovePlanner(state.fleet, _movable(state), lambda key, pod: bounds.of_pod(state.workloads[key], pod))
    tries = max(_MIN_TRIES, _MAX_TRIES // len(candidates))
    best: MovePlan | None = None
    for flavors, nodes in candidates:
        parts = _parts(state, info, flavors, nodes, bounds)
        plan = planner.plan(parts, max_moves=max_moves, max_tries=tries)
        confirmed = check.confirmed(info, plan) if plan is not None and plan.moves else None
        if confirmed is not None:
            best, max_moves = confirmed, len(confirmed.moves) - 1
        if max_moves == 0:
            break
    return best


def _parts(state: State, info: WorkloadInfo, flavors: Sequence[str], nodes: Nodes, bounds: MoveBounds) -> list[Part]:
    """Return the units to place: whole pod sets or their slices, without the pods of an elastic job's replaced
    slice."""
    replaced = state.workloads.get(info.workload.replaces or "")
    kept = replaced.placement.pods if replaced is not None and replaced.placement is not None else ()
    parts: list[Part] = []
    for pods in _to_place(state, info, [flavors] * len(info.pod_sets)):
        there = sum(pod.pod_set == pods.name for pod in kept)
        choices = tuple(bounds.of_slices(info, pods.name, flavors, nodes))
        size = bounds.slice_size(info, pods.name) or pods.count
        for first in range(there, pods.count, size):
            count = min(size, pods.count - first)
            parts.append(Part(replace(pods, count=count, first_replica=first), choices))
    return parts


def _movable(state: State) -> dict[str, list[PodSetToPlace]]:
    """Return the workloads whose pods may be moved, with their pod sets."""
    return {
        key: _to_place(state, info, [_flavors_held(info, pod_set.name) for pod_set in info.pod_sets])
        for key, info in state.workloads.items()
        if key in state.fleet.reservations
        and not info.workload.never_reclaimed
        and not info.workload.is_true(ConditionType.EVICTED)
    }


def _has_quota(state: State, info: WorkloadInfo, flavors: Sequence[str]) -> bool:
    """Return whether the workload may use the flavors, and their quota, including borrowing, suffices."""
    wanted: Counter[FlavorResource] = Counter()
    cq = state.cluster_queues[info.cluster_queue]
    replaced = state.replaced_slice(info, cq)
    held = {cell.key: amount for cell, amount in replaced.usage} if replaced is not None else {}
    for group, flavor in zip(cq.groups, flavors, strict=True):
        slot = next(slot for slot in group.flavors if slot.name == flavor)
        for pod_set in info.pod_sets:
            covered = [resource for resource in pod_set.requests if resource in group.covered]
            if covered and not _may_use(state, info, pod_set, group, slot):
                return False
            for resource in covered:
                wanted[FlavorResource(flavor, resource)] += pod_set.requests[resource]
    cells = {slot.name: slot.cells for group in cq.groups for slot in group.flavors}
    return all(
        key.resource not in cells[key.flavor]
        or cells[key.flavor][key.resource].room(borrowing=info.may_borrow) >= amount - held.get(key, 0)
        for key, amount in wanted.items()
    )


def _may_use(state: State, info: WorkloadInfo, pod_set: PodSetRequests, group: GroupState, slot: FlavorSlot) -> bool:
    allowed = info.workload.allowed_flavors
    if allowed and slot.name not in allowed:
        return False
    return state.matcher.mismatch(state.cluster_queues[info.cluster_queue], pod_set, group, slot) is None


def _asks_for_devices(state: State, info: WorkloadInfo) -> bool:
    return any(_devices(state, pod_set).asks_for_devices for pod_set in info.pod_sets)


def _flavor_choices(state: State, info: WorkloadInfo) -> Iterable[tuple[str, ...]]:
    """Return one flavor of each resource group of the workload's ClusterQueue, in their order."""
    cq = state.cluster_queues[info.cluster_queue]
    return islice(product(*([slot.name for slot in group.flavors] for group in cq.groups)), _MAX_FLAVOR_CHOICES)


def _flavors_held(info: WorkloadInfo, pod_set: str) -> Sequence[str]:
    admission = info.workload.admission
    assignments = admission.pod_set_assignments if admission is not None else ()
    return [flavor for each in assignments if each.name == pod_set for flavor in each.flavors.values()]


def _to_place(state: State, info: WorkloadInfo, flavors: Sequence[Sequence[str]]) -> list[PodSetToPlace]:
    found = []
    for pod_set, names in zip(info.pod_sets, flavors, strict=True):
        specs = [state.flavors[name] for name in dict.fromkeys(names) if name in state.flavors]
        template = pod_set.pod_set.template
        found.append(
            PodSetToPlace(
                pod_set.name,
                pod_set.count,
                pod_set.node_requests,
                _devices(state, pod_set),
                template.node_selector,
                template.affinity,
                template.tolerations,
                {key: value for spec in specs for key, value in spec.node_labels.items()},
                tuple(toleration for spec in specs for toleration in spec.tolerations),
                namespace=info.workload.namespace,
                closed_nodes=closed_nodes(state, info),
            )
        )
    return found


def _devices(state: State, pod_set: PodSetRequests) -> PodDeviceRequest:
    if pod_set.devices is None:
        pod_set.devices = pod_device_request(pod_set.pod_set.template.manifest, state.vendors)
    return pod_set.devices
