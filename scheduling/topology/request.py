"""Normalises the topology request of a group of pod sets, as Kueue does.

Levels become numbers, defaults are filled in, leader and workers are separated. A request that the topology cannot
express is refused with a reason.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from scheduling.model.resources import PODS
from scheduling.model.topology import PodSetTopologyRequest, SliceConstraint, Topology, TopologyRequest
from scheduling.topology.capacities import PodRequests, PodShape, SliceLayers


@dataclass(frozen=True, slots=True)
class PlacementPlan:
    """How to place `count` pods and perhaps one leader.

    `level` is the main level; `required` keeps all pods in one of its domains, otherwise wider levels are tried.
    `least_free` takes the fullest domains first and never climbs (unconstrained requests); without it the tightest
    domain that holds the rest is preferred (best fit).
    """

    count: int
    requests: PodRequests
    leader_requests: PodRequests | None
    level: int
    required: bool
    preferred: bool
    least_free: bool
    slices: SliceLayers

    @property
    def leaders(self) -> int:
        """1 with a leader, else 0."""
        return 0 if self.leader_requests is None else 1

    @property
    def wanted(self) -> int:
        """The number of slices to place; pods beyond the last whole slice are not placed."""
        return self.count // self.slices.size

    def shape(self, ignore_used: bool) -> PodShape:
        """Return the inputs of the capacity counts."""
        return PodShape(self.requests, self.leader_requests, self.slices, ignore_used)


class UnservableRequest(Exception):
    """The topology cannot express the request; the message gives the reason."""


def level_problem(topology: Topology, request: TopologyRequest | None) -> str | None:
    """Return, as a sentence, the first requested level that the topology lacks; None if there is none."""
    for label in request.levels if request else ():
        if label not in topology.levels:
            return f'topology "{topology.name}" has no level "{label}"'
    return None


def slice_problem(request: TopologyRequest) -> str | None:
    """Return the problem of the sizes of the request's slices, as a sentence, or None."""
    for layer in request.slices:
        if layer.size < 1:
            return f'slices of the level "{layer.topology}" need a size'
    return None


def pod_requests(request: PodSetTopologyRequest) -> PodRequests:
    """Return one pod's positive requests, including its request of `pods`."""
    amounts = {resource: amount for resource, amount in request.requests.items() if amount > 0}
    amounts[PODS] = amounts.get(PODS, 0) + 1
    return tuple(sorted(amounts.items()))


def split_leader(
    group: Sequence[PodSetTopologyRequest],
) -> tuple[PodSetTopologyRequest, PodSetTopologyRequest | None]:
    """Return the workers (the larger pod set, or the first of equals) and the leader, if the group has two pod sets;
    raises UnservableRequest for other groups."""
    if len(group) == 1:
        return group[0], None
    workers = max(group, key=lambda request: request.count)
    leaders = [request for request in group if request is not workers]
    if len(leaders) != 1 or leaders[0].count != 1:
        names = ", ".join(f"{request.pod_set} of {request.count}" for request in group)
        raise UnservableRequest(f"a pod set group is one leader and its workers, not {names}")
    return workers, leaders[0]


def make_plan(
    topology: Topology,
    workers: PodSetTopologyRequest,
    leader: PodSetTopologyRequest | None,
) -> PlacementPlan:
    """Build the plan for one group; raises UnservableRequest."""
    asked = workers.topology or TopologyRequest()
    problem = level_problem(topology, asked) or slice_problem(asked)
    if problem:
        raise UnservableRequest(problem)
    named = asked.required or asked.preferred
    if named:
        level = topology.levels.index(named)
    elif asked.slices:
        level = 0
    else:
        level = len(topology.levels) - 1
    slices = _slice_layers(topology, asked.slices)
    if level > slices.level:
        raise UnservableRequest(
            f'the slice level "{topology.levels[slices.level]}" is wider than the level "{topology.levels[level]}"'
        )
    return PlacementPlan(
        count=workers.count,
        requests=pod_requests(workers),
        leader_requests=None if leader is None else pod_requests(leader),
        level=level,
        required=asked.required is not None,
        preferred=asked.required is None and asked.preferred is not None,
        least_free=named is None,
        slices=slices,
    )


def _slice_layers(topology: Topology, layers: Sequence[SliceConstraint]) -> SliceLayers:
    last = len(topology.levels) - 1
    inner_sizes = [1] * len(topology.levels)
    if not layers:
        return SliceLayers(last, 1, tuple(inner_sizes))
    outer_level = topology.levels.index(layers[0].topology)
    level, size = outer_level, layers[0].size
    for layer in layers[1:]:
        inner_level = topology.levels.index(layer.topology)
        if inner_level <= level:
            raise UnservableRequest(f'the slice level "{layer.topology}" is not below "{topology.levels[level]}"')
        if size % layer.size:
            raise UnservableRequest(f"slices of {size} pods cannot be made of slices of {layer.size}")
        inner_sizes[level + 1 : inner_level + 1] = [layer.size] * (inner_level - level)
        level, size = inner_level, layer.size
    return SliceLayers(outer_level, layers[0].size, tuple(inner_sizes))
