"""Kueue's node replacement: the pods of a failed node get other leaves, all others stay."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import islice

from scheduling.model.topology import (
    PodSetTopologyRequest,
    SliceConstraint,
    TopologyAssignment,
    TopologyDomain,
    TopologyFailure,
    TopologyRequest,
)
from scheduling.topology.flavor import TopologyFlavor
from scheduling.topology.request import slice_problem
from scheduling.topology.tree import LeafKey
from scheduling.topology.usage import LeafUsage


@dataclass(frozen=True, slots=True)
class Replacement:
    """A pod set's assignment without its failed node: `whole` is the complete assignment, `moved` the part that left
    the node."""

    whole: TopologyAssignment
    moved: TopologyAssignment


def replace_failed_node(
    flavor: TopologyFlavor,
    request: PodSetTopologyRequest,
    assignment: TopologyAssignment,
    hostname: str,
    taken: LeafUsage | None = None,
) -> Replacement | TopologyFailure:
    """Find other leaves for the pods that the assignment has on `hostname`.

    The flavor's topology must end with the hostname, and the workload's whole usage must be charged. `taken` is where
    other pod sets of the workload have already moved. A node that is Ready again takes its pods back if it has room in
    addition to the charged pods. The moved pods complete the slice that they leave, or stay in the pod set's domain of
    a required level. The replacement fails if other domains of the assignment no longer exist.
    """
    moving = sum(domain.count for domain in assignment.domains if domain.values == (hostname,))
    staying = {domain.values: domain.count for domain in assignment.domains if domain.values != (hostname,)}
    gone = [leaf for leaf in staying if leaf not in flavor.leaves.tree.leaf_numbers]
    if gone:
        return TopologyFailure(request.pod_set, f'the domain "{"/".join(gone[0])}" of the assignment no longer exists')
    topology = request.topology or TopologyRequest()
    problem = flavor.level_problem(topology) or slice_problem(topology)
    if problem:
        return TopologyFailure(request.pod_set, problem)
    within, kept = _promise(flavor, topology, staying, moving)
    alone = replace(request, count=moving, topology=replace(kept, group=None))
    placed = flavor.place_group([alone], taken or LeafUsage(), within=within)
    if isinstance(placed, TopologyFailure):
        return placed
    moved = placed[request.pod_set]
    if moved.count < moving:
        return TopologyFailure(request.pod_set, f"{moving} pods are not whole slices", moved.count, moving)
    return Replacement(_merged(flavor, staying, moved), moved)


def _promise(
    flavor: TopologyFlavor, topology: TopologyRequest, staying: Mapping[LeafKey, int], moving: int
) -> tuple[tuple[str, ...], TopologyRequest]:
    """Return the domain in which the pods must stay (empty: anywhere), and their topology request there.

    Pods that do not form whole slices of the outermost layer complete the slice of the innermost layer that they
    break. In that slice's domain only layers whose slices they can fill matter, and of these the innermost.
    """
    layers = topology.slices
    if not layers or moving % layers[0].size == 0:
        return _required_domain(flavor, topology, staying), topology
    broken = next(layer for layer in reversed(layers) if moving % layer.size)
    within = _domain_to_complete(flavor, broken, staying, moving)
    if not within:
        return within, topology
    whole = (layer for layer in reversed(layers) if moving % layer.size == 0)
    return within, replace(topology, slices=tuple(islice(whole, 1)))


def _domain_to_complete(
    flavor: TopologyFlavor, layer: SliceConstraint, staying: Mapping[LeafKey, int], moving: int
) -> tuple[str, ...]:
    """Return the domain of the layer's level in which staying and moved pods together form whole slices; empty if there
    is none."""
    depth = flavor.topology.levels.index(layer.topology) + 1
    per_domain: Counter[tuple[str, ...]] = Counter()
    for values, count in _by_values(flavor, staying).items():
        per_domain[values[:depth]] += count
    return min((values for values, count in per_domain.items() if (count + moving) % layer.size == 0), default=())


def _required_domain(
    flavor: TopologyFlavor, topology: TopologyRequest, staying: Mapping[LeafKey, int]
) -> tuple[str, ...]:
    """Return the domain of the required level that the pods are in; empty if none is required or no pod stays."""
    if topology.required is None or not staying:
        return ()
    return min(_by_values(flavor, staying))[: flavor.topology.levels.index(topology.required) + 1]


def _by_values(flavor: TopologyFlavor, leaves: Mapping[LeafKey, int]) -> dict[tuple[str, ...], int]:
    """Counts of leaves by the values of all their levels."""
    tree = flavor.leaves.tree
    return {tree.values[-1][tree.leaf_numbers[leaf]]: count for leaf, count in leaves.items()}


def _merged(flavor: TopologyFlavor, staying: Mapping[LeafKey, int], moved: TopologyAssignment) -> TopologyAssignment:
    counts = Counter(staying)
    for domain in moved.domains:
        counts[domain.values] += domain.count
    numbers = flavor.leaves.tree.leaf_numbers
    leaves = sorted(counts, key=lambda leaf: numbers[leaf])
    return TopologyAssignment(moved.levels, tuple(TopologyDomain(leaf, counts[leaf]) for leaf in leaves))
