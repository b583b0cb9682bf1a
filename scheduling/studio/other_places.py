"""Remedies of the kinds Elsewhere, Moves and BackInService."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from scheduling.advice.moves import MoveOutcome
from scheduling.devices.search.moves import Move
from scheduling.model.placement import Placement, PodPlacement
from scheduling.model.topology import TopologyRequest
from scheduling.model.workload import PodSet, Workload
from scheduling.studio.node_changes import in_service
from scheduling.studio.remedy import Remedy, RemedyKind, tried
from scheduling.studio.trials import Trials
from scheduling.studio.world_changes import Change, EndWorkload, SetObject

MAX_NODES_TRIED = 32
"""How many nodes out of service are tried, in the order of their names."""


def other_places(trials: Trials, workload: Workload, priorities: Mapping[str, int]) -> Iterator[Remedy]:
    """Find another LocalQueue of the namespace, another flavor, a milder topology request, or the lowest priority class
    that starts the workload. `priorities` are the classes that the workload may use, by name."""
    yield from _other_queues(trials, workload)
    yield from _other_flavors(trials, workload)
    yield from _milder_topologies(trials, workload)
    yield from _lowest_priority(trials, workload, priorities)


def _elsewhere(trials: Trials, changed: Workload, field: str, before: str, after: str) -> Iterator[Remedy]:
    remedy = None
    if trials.has_time():
        changes = (SetObject(changed),)
        remedy = tried(
            trials, RemedyKind.ELSEWHERE, field, changed.name, changes, before={"": before}, after={"": after}
        )
    if remedy is not None:
        yield remedy


def _other_queues(trials: Trials, workload: Workload) -> Iterator[Remedy]:
    for queue in sorted(trials.world.objects.local_queues.values(), key=lambda queue: queue.key):
        if queue.namespace == workload.namespace and queue.name != workload.queue_name:
            changed = replace(workload, queue_name=queue.name)
            yield from _elsewhere(trials, changed, "queueName", workload.queue_name, queue.name)


def _other_flavors(trials: Trials, workload: Workload) -> Iterator[Remedy]:
    queue = trials.world.objects.local_queues.get(workload.queue_key)
    spec = trials.world.objects.cluster_queue(queue.cluster_queue) if queue is not None else None
    if not workload.allowed_flavors or spec is None:
        return
    for name in dict.fromkeys(flavor.name for group in spec.resource_groups for flavor in group.flavors):
        if name not in workload.allowed_flavors:
            changed = replace(workload, allowed_flavors=(*workload.allowed_flavors, name))
            yield from _elsewhere(trials, changed, "allowedFlavors", ", ".join(workload.allowed_flavors), name)


def _milder_topologies(trials: Trials, workload: Workload) -> Iterator[Remedy]:
    for before, after in (("required", "preferred"), ("required", "unconstrained"), ("preferred", "unconstrained")):
        pod_sets = tuple(_milder(pod_set, before, after) for pod_set in workload.pod_sets)
        if pod_sets != workload.pod_sets:
            yield from _elsewhere(trials, replace(workload, pod_sets=pod_sets), "topologyRequest", before, after)


def _milder(pod_set: PodSet, before: str, after: str) -> PodSet:
    request = pod_set.topology_request
    level = getattr(request, before) if request is not None else None
    if request is None or level is None:
        return pod_set
    cleared: TopologyRequest = replace(request, required=None, preferred=None)
    milder = replace(cleared, preferred=level) if after == "preferred" else replace(cleared, unconstrained=True)
    return replace(pod_set, topology_request=milder)


def _lowest_priority(trials: Trials, workload: Workload, priorities: Mapping[str, int]) -> Iterator[Remedy]:
    higher = sorted((value, name) for name, value in priorities.items() if value > workload.priority)
    for value, name in higher:
        found = list(
            _elsewhere(trials, replace(workload, priority=value), "priorityClass", str(workload.priority), name)
        )
        if found:
            yield from found
            return


def back_in_service(trials: Trials) -> Iterator[Remedy]:
    """Find each node that would start the workload if it were back in service: a node that is not ready, is cordoned,
    or has devices out of service."""
    out = [node for _, node in sorted(trials.world.objects.nodes.items()) if in_service(node) != node]
    for node in out[:MAX_NODES_TRIED]:
        if trials.has_time():
            remedy = tried(trials, RemedyKind.BACK_IN_SERVICE, "node", node.name, (SetObject(in_service(node)),))
            if remedy is not None:
                yield remedy


def moves(trials: Trials) -> Iterator[Remedy]:
    """Find the fewest moves of running pods that free devices for the workload, tried with cycles."""
    advice = trials.world.advise_moves(trials.key)
    if advice.outcome is not MoveOutcome.MOVES or advice.plan is None:
        return
    changes = _moved(trials, advice.plan.moves)
    keys = tuple(dict.fromkeys(move.workload_key for move in advice.plan.moves))
    remedy = tried(trials, RemedyKind.MOVES, "pods", "", changes, workloads=keys)
    if remedy is not None:
        yield remedy


def _moved(trials: Trials, plan: Sequence[Move]) -> list[Change]:
    """Remove each moved workload, and add it again with its new placement, because a placement never changes from
    outside."""
    changes: list[Change] = []
    returning: list[Change] = []
    for key in dict.fromkeys(move.workload_key for move in plan):
        found = trials.world.workload(key)
        assert found is not None  # it holds the devices
        targets = {_pod(move.source): move.target for move in plan if move.workload_key == key}
        pods = found.placement.pods if found.placement is not None else ()
        placement = Placement(tuple(targets.get(_pod(pod), pod) for pod in pods))
        changes.append(EndWorkload(key))
        returning.append(SetObject(replace(found, placement=placement)))
    return [*changes, *returning]


def _pod(place: PodPlacement) -> tuple[str, int]:
    return place.pod_set, place.replica
