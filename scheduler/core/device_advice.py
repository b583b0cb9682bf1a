"""Advice about devices from a whole world: how fragmented they are, and which moves would let a workload in."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice, product

from scheduler.core.device_requests import pod_device_request
from scheduler.core.fragmentation_report import (
    FragmentationReport,
    cluster_report,
    flavor_report,
    node_reports,
)
from scheduler.core.placement_model import PodDeviceRequest, PodSetToPlace
from scheduler.core.placement_moves import MAX_MOVES, MovePlan, plan_moves
from scheduler.core.state import State
from scheduler.core.workload_info import PodSetRequests, WorkloadInfo

_MAX_FLAVOR_CHOICES = 16


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


def plan_moves_for(state: State, key: str, max_moves: int = MAX_MOVES) -> MovePlan | None:
    """The fewest moves of running pods that would give a waiting workload its devices, over all flavors it may get.

    None where no plan is known, for an unknown workload, and for one that holds a place or asks for no device.
    """
    info = state.workloads.get(key)
    if info is None or key in state.fleet.reservations or not _asks_for_devices(state, info):
        return None
    movable = {
        other: _to_place(state, held, [_flavors_held(held, pod_set.name) for pod_set in held.pod_sets])
        for other, held in state.workloads.items()
        if other in state.fleet.reservations and not held.topology_usage
    }
    best: MovePlan | None = None
    for flavors in _flavor_choices(state, info):
        pod_sets = _to_place(state, info, [flavors] * len(info.pod_sets))
        plan = plan_moves(state.fleet, pod_sets, movable, max_moves=max_moves)
        if plan is not None and (best is None or len(plan.moves) < len(best.moves)):
            best, max_moves = plan, len(plan.moves) - 1
        if best is not None and not best.moves:
            break
    return best


def _asks_for_devices(state: State, info: WorkloadInfo) -> bool:
    return any(_devices(state, pod_set).asks_for_devices for pod_set in info.pod_sets)


def _flavor_choices(state: State, info: WorkloadInfo) -> Iterable[tuple[str, ...]]:
    """One flavor of each resource group of the workload's ClusterQueue, in their order."""
    cq = state.cluster_queues.get(info.cluster_queue)
    groups = [[slot.name for slot in group.flavors] for group in cq.groups] if cq is not None else []
    return islice(product(*groups), _MAX_FLAVOR_CHOICES)


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
