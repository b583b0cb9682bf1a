"""Advice about devices from a whole world: how fragmented they are, and which moves would let a workload in."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import islice, product

from scheduler.core.decisions import ConditionType
from scheduler.core.device_requests import pod_device_request
from scheduler.core.fragmentation_report import (
    FragmentationReport,
    cluster_report,
    flavor_report,
    node_reports,
)
from scheduler.core.placement_model import PodDeviceRequest, PodSetToPlace
from scheduler.core.placement_moves import MAX_MOVES, MovePlan, plan_moves
from scheduler.core.resources import FlavorResource
from scheduler.core.state import State
from scheduler.core.workload_info import Place, PodSetRequests, WorkloadInfo

_MAX_FLAVOR_CHOICES = 16
_MAX_TRIES = 1000
"""Searches for a place over all flavors: someone waits for the answer."""


@dataclass(frozen=True, slots=True)
class Fragmentation:
    """Reports on all devices, on those that each flavor reaches, and on each node that has any."""

    cluster: FragmentationReport
    flavors: dict[str, FragmentationReport]
    nodes: dict[str, FragmentationReport]


def fragmentation(state: State) -> Fragmentation:
    """Where devices are idle, and how much of that no typical pod could use."""
    fleet = state.fleet
    return Fragmentation(
        cluster_report(fleet),
        {name: flavor_report(fleet, flavor.node_labels) for name, flavor in sorted(state.flavors.items())},
        node_reports(fleet),
    )


class MoveOutcome(StrEnum):
    """What came of asking for moves."""

    MOVES = "Moves"
    FITS_NOW = "FitsNow"
    NO_PLAN = "NoPlan"
    NO_QUOTA = "NoQuota"
    NO_DEVICES_REQUESTED = "NoDevicesRequested"
    TOPOLOGY_REQUESTED = "TopologyRequested"
    HOLDS_QUOTA = "HoldsQuota"
    NOT_QUEUED = "NotQueued"


_MESSAGES = {
    MoveOutcome.MOVES: "After these moves the workload finds its devices.",
    MoveOutcome.FITS_NOW: "The workload finds its devices without any move.",
    MoveOutcome.NO_PLAN: "No plan of few moves gives the workload its devices.",
    MoveOutcome.NO_QUOTA: "No flavor has the quota: moves would not help.",
    MoveOutcome.NO_DEVICES_REQUESTED: "The workload asks for no device.",
    MoveOutcome.TOPOLOGY_REQUESTED: "The workload asks for a topology: no moves are planned for that.",
    MoveOutcome.HOLDS_QUOTA: "The workload is not waiting: it holds quota.",
    MoveOutcome.NOT_QUEUED: "The workload is in no queue: it is held or gated, or its queue is missing or stopped.",
}


@dataclass(frozen=True, slots=True)
class MoveAdvice:
    """Whether moves would let a workload in, in a sentence too, and the plan where there is one."""

    outcome: MoveOutcome
    plan: MovePlan | None = None

    @property
    def message(self) -> str:
        """The outcome in words."""
        return _MESSAGES[self.outcome]


def advise_moves(state: State, key: str, max_moves: int = MAX_MOVES) -> MoveAdvice:
    """The fewest moves of running pods that would give a waiting workload its devices, over the flavors with quota.

    Pods that are being evicted, that are never reclaimed or that a topology assigned stay where they are. Raises
    KeyError for an unknown workload.
    """
    info = state.workloads[key]
    if info.workload.admission is not None:
        return MoveAdvice(MoveOutcome.HOLDS_QUOTA)
    if not _asks_for_devices(state, info):
        return MoveAdvice(MoveOutcome.NO_DEVICES_REQUESTED)
    if info.place not in (Place.ACTIVE, Place.PARKED):
        return MoveAdvice(MoveOutcome.NOT_QUEUED)
    if info.asks_for_topology:
        return MoveAdvice(MoveOutcome.TOPOLOGY_REQUESTED)
    choices = [flavors for flavors in _flavor_choices(state, info) if _has_quota(state, info, flavors)]
    if not choices:
        return MoveAdvice(MoveOutcome.NO_QUOTA)
    movable = _movable(state)
    best: MovePlan | None = None
    for flavors in choices:
        pod_sets = _to_place(state, info, [flavors] * len(info.pod_sets))
        plan = plan_moves(state.fleet, pod_sets, movable, max_moves=max_moves, max_tries=_MAX_TRIES // len(choices))
        if plan is not None and not plan.moves:
            return MoveAdvice(MoveOutcome.FITS_NOW, plan)
        if plan is not None:
            best, max_moves = plan, len(plan.moves) - 1
    return MoveAdvice(MoveOutcome.MOVES if best is not None else MoveOutcome.NO_PLAN, best)


def _movable(state: State) -> dict[str, list[PodSetToPlace]]:
    """The workloads whose pods may be moved, with what they would be placed for."""
    return {
        key: _to_place(state, info, [_flavors_held(info, pod_set.name) for pod_set in info.pod_sets])
        for key, info in state.workloads.items()
        if key in state.fleet.reservations
        and not info.topology_usage
        and not info.workload.never_reclaimed
        and not info.workload.is_true(ConditionType.EVICTED)
    }


def _has_quota(state: State, info: WorkloadInfo, flavors: Sequence[str]) -> bool:
    """Whether the flavors have the quota, borrowing included, devices left out of account."""
    wanted: Counter[FlavorResource] = Counter()
    cq = state.cluster_queues[info.cluster_queue]
    for group, flavor in zip(cq.groups, flavors, strict=True):
        for pod_set in info.pod_sets:
            for resource, amount in pod_set.requests.items():
                if resource in group.covered:
                    wanted[FlavorResource(flavor, resource)] += amount
    cells = {slot.name: slot.cells for group in cq.groups for slot in group.flavors}
    return all(
        key.resource not in cells[key.flavor] or cells[key.flavor][key.resource].available() >= amount
        for key, amount in wanted.items()
    )


def _asks_for_devices(state: State, info: WorkloadInfo) -> bool:
    return any(_devices(state, pod_set).asks_for_devices for pod_set in info.pod_sets)


def _flavor_choices(state: State, info: WorkloadInfo) -> Iterable[tuple[str, ...]]:
    """One flavor of each resource group of the workload's ClusterQueue, in their order."""
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
            )
        )
    return found


def _devices(state: State, pod_set: PodSetRequests) -> PodDeviceRequest:
    if pod_set.devices is None:
        pod_set.devices = pod_device_request(pod_set.pod_set.template.manifest, state.vendors)
    return pod_set.devices
