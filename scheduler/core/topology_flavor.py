"""Flavors with a topology: which nodes their trees are made of, what is free there and what is used.

`TopologyFlavors` is the part of the world that topology-aware scheduling reads; it routes nodes to the flavors that
they match. Usage is added and removed by exact inverses, so that a caller can simulate and undo.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from scheduler.core.node_selection import Toleration
from scheduler.core.topology import (
    PodSetTopologyRequest,
    Topology,
    TopologyAssignment,
    TopologyFailure,
    TopologyNode,
    TopologyRequest,
    TopologyUsage,
)


class TopologyFlavor:
    """One ResourceFlavor with a `topologyName`: the tree of its nodes' domains, with capacity and usage."""

    def level_problem(self, request: TopologyRequest | None) -> str | None:
        """Why the flavor's topology cannot serve the request (a level that it lacks), or None."""
        raise NotImplementedError

    def add_usage(self, usage: TopologyUsage) -> None:
        """Charge the leaves with requests x count, and `pods` with count. Leaves without nodes are remembered."""
        raise NotImplementedError

    def remove_usage(self, usage: TopologyUsage) -> None:
        """The exact inverse of `add_usage`."""
        raise NotImplementedError

    def fits(self, usages: Iterable[TopologyUsage]) -> bool:
        """Whether each (pod set, domain) entry, on its own and without `pods`, has room in its leaf."""
        raise NotImplementedError

    def find_topology_assignments(
        self,
        requests: Sequence[PodSetTopologyRequest],
        *,
        simulate_empty: bool = False,
        assumed: Iterable[TopologyUsage] = (),
    ) -> dict[str, TopologyAssignment] | TopologyFailure:
        """Place the pod sets of one workload (those that use this flavor, in the workload's order).

        Groups are placed one after the other, each seeing what the earlier ones took; pod sets with count 0 are
        left out. `simulate_empty` ignores the usage of other workloads. Nothing is charged: call `add_usage`.
        """
        raise NotImplementedError


class TopologyFlavors(Mapping[str, TopologyFlavor]):
    """The flavors with a topology, by name, and the nodes that they are built from.

    Flavors whose topologies end with the hostname share the usage of the nodes that they share.
    """

    def __init__(self, *, balanced_placement: bool = False) -> None:
        raise NotImplementedError

    def set_flavor(
        self, name: str, topology: Topology, node_labels: Mapping[str, str], tolerations: Sequence[Toleration] = ()
    ) -> None:
        """Add or change a flavor. A change of its topology's levels forgets its usage: add it again."""
        raise NotImplementedError

    def delete_flavor(self, name: str) -> None:
        """Remove a flavor; unknown names are ignored."""
        raise NotImplementedError

    def set_nodes(self, nodes: Iterable[TopologyNode]) -> None:
        """Replace all nodes."""
        raise NotImplementedError

    def set_node(self, node: TopologyNode) -> None:
        """Add or change one node. A node that is not ready, unschedulable or lacks a level's label has no leaf."""
        raise NotImplementedError

    def delete_node(self, name: str) -> None:
        """Remove a node; unknown names are ignored."""
        raise NotImplementedError

    def set_non_tas_usage(self, node_name: str, amounts: Mapping[str, int]) -> None:
        """What pods outside topology-aware scheduling use of a node, `pods` included (replaces what was there)."""
        raise NotImplementedError

    def __getitem__(self, name: str) -> TopologyFlavor:
        raise NotImplementedError

    def __iter__(self) -> Iterator[str]:
        raise NotImplementedError

    def __len__(self) -> int:
        raise NotImplementedError
