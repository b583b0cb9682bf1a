"""Replacing a failed node: the pods that ran there get another leaf, all others stay (Kueue's node replacement)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from scheduling.model.topology import (
    PodSetTopologyRequest,
    SliceConstraint,
    TopologyAssignment,
    TopologyDomain,
    TopologyFailure,
    TopologyRequest,
    TopologyUsage,
)
from scheduling.topology.flavor import TopologyFlavor
from scheduling.topology.tree import LeafKey
from scheduling.topology.usage import LeafUsage

MORE_THAN_ANY_NODE_HOLDS = 10**9


def replace_failed_node(
    flavor: TopologyFlavor,
    request: PodSetTopologyRequest,
    assignment: TopologyAssignment,
    hostname: str,
    taken: LeafUsage | None = None,
) -> TopologyAssignment | TopologyFailure:
    """The pod set's assignment with the pods of `hostname` moved elsewhere.

    The flavor's topology must end with the hostname, and the workload's whole usage be charged; `taken` is what other
    pod sets of the workload moved to meanwhile. The pods that move
    keep the promises of the pod set: they stay in its domain of a required level, complete the slice that lost
    pods, or form whole slices of the layers whose sizes divide their number. Other domains that are gone are a failure.
    """
    moving = sum(domain.count for domain in assignment.domains if domain.values == (hostname,))
    staying = {domain.values: domain.count for domain in assignment.domains if domain.values != (hostname,)}
    if not moving:
        return assignment
    gone = [leaf for leaf in staying if leaf not in flavor.leaves.tree.leaf_numbers]
    if gone:
        return TopologyFailure(request.pod_set, f'the domain "{"/".join(gone[0])}" of the assignment is gone too')
    topology = request.topology or TopologyRequest()
    problem = flavor.level_problem(topology)
    if problem:
        return TopologyFailure(request.pod_set, problem)
    group = [replace(request, count=moving, topology=_relaxed(flavor, topology, moving))]
    within = _domain_to_stay_in(flavor, topology, staying, moving)
    # A failed node may still be in the tree, or be back: no pod is to return there, so nothing of it is free.
    taken = taken or LeafUsage()
    failed = TopologyUsage({}, (TopologyDomain((hostname,), MORE_THAN_ANY_NODE_HOLDS),))
    taken.add(failed)
    placed = flavor.place_group(group, taken, within=within)
    taken.remove(failed)
    if isinstance(placed, TopologyFailure):
        return placed
    return _merged(flavor, staying, placed[request.pod_set])


def _relaxed(flavor: TopologyFlavor, topology: TopologyRequest, moving: int) -> TopologyRequest:
    """The request with the slice layers that can still be whole; none at all would change its main level."""
    layers = tuple(layer for layer in topology.slices if moving % layer.size == 0)
    if topology.slices and not layers:
        layers = (SliceConstraint(flavor.topology.levels[-1], 1),)
    return replace(topology, slices=layers, group=None)


def _domain_to_stay_in(
    flavor: TopologyFlavor, topology: TopologyRequest, staying: dict[LeafKey, int], moving: int
) -> tuple[str, ...]:
    """Level values of the domain that the moved pods must be in; empty when they may go anywhere."""
    tree = flavor.leaves.tree
    levels: Sequence[str] = flavor.topology.levels
    places = {tree.values[-1][tree.leaf_numbers[leaf]]: count for leaf, count in staying.items()}
    incomplete: tuple[str, ...] = ()
    if topology.slices and moving % topology.slices[0].size:
        depth = levels.index(topology.slices[0].topology) + 1
        per_domain: Counter[tuple[str, ...]] = Counter()
        for values, count in places.items():
            per_domain[values[:depth]] += count
        incomplete = min((v for v, count in per_domain.items() if count % topology.slices[0].size), default=())
    if incomplete or topology.required is None or not places:
        return incomplete
    return min(places)[: levels.index(topology.required) + 1]


def _merged(flavor: TopologyFlavor, staying: dict[LeafKey, int], moved: TopologyAssignment) -> TopologyAssignment:
    counts = Counter(staying)
    for domain in moved.domains:
        counts[domain.values] += domain.count
    numbers = flavor.leaves.tree.leaf_numbers
    leaves = sorted(counts, key=lambda leaf: numbers[leaf])
    return TopologyAssignment(moved.levels, tuple(TopologyDomain(leaf, counts[leaf]) for leaf in leaves))
