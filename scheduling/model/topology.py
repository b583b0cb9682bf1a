"""The vocabulary of topology-aware scheduling: requests, assignments and usage.

A Topology names node labels from the widest level to the narrowest ("block", "rack", "kubernetes.io/hostname").
Nodes with the same label values share a domain. The domains of the last level are the leaves that pods are assigned
to. The package `scheduling.topology` has the tree of a flavor and the algorithm.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from scheduling.model.selectors import HOSTNAME_LABEL, RequiredNodeAffinity, Toleration


@dataclass(frozen=True, slots=True)
class Topology:
    """A Topology object: its name and its levels' node labels, widest first."""

    name: str
    levels: tuple[str, ...]

    @classmethod
    def from_manifest(cls, manifest: Mapping[str, Any]) -> Self:
        """Read a `kueue.x-k8s.io` Topology."""
        return cls(manifest["metadata"]["name"], tuple(level["nodeLabel"] for level in manifest["spec"]["levels"]))

    @property
    def ends_with_hostname(self) -> bool:
        """Whether leaves are single nodes. Then the node itself is checked, and only its name is recorded."""
        return self.levels[-1] == HOSTNAME_LABEL

    @property
    def assigned_levels(self) -> tuple[str, ...]:
        """The levels that an assignment records."""
        return self.levels[-1:] if self.ends_with_hostname else self.levels


@dataclass(frozen=True, slots=True)
class SliceConstraint:
    """Every `size` pods, counted from the first, must share one domain of the level `topology`. A size below 1
    cannot be satisfied."""

    topology: str
    size: int


@dataclass(frozen=True, slots=True)
class TopologyRequest:
    """A pod set's `topologyRequest`; at most one of required, preferred and unconstrained is set."""

    required: str | None = None
    preferred: str | None = None
    unconstrained: bool = False
    slices: tuple[SliceConstraint, ...] = ()
    """The slice layers, outermost first."""
    group: str | None = None
    """`podSetGroupName`: leader and workers that share a domain."""
    pod_index_label: str | None = None
    sub_group_index_label: str | None = None
    sub_group_count: int | None = None

    @classmethod
    def from_manifest(cls, manifest: Mapping[str, Any] | None) -> Self | None:
        """Read a `topologyRequest`, with either form of slice constraints; None stays None."""
        if manifest is None:
            return None
        layers = [
            SliceConstraint(layer["topology"], int(layer["size"]))
            for layer in manifest.get("podsetSliceRequiredTopologyConstraints") or ()
        ]
        slice_level = manifest.get("podSetSliceRequiredTopology")
        if slice_level:
            layers = [SliceConstraint(slice_level, int(manifest.get("podSetSliceSize") or 0))]
        sub_group_count = manifest.get("subGroupCount")
        return cls(
            required=manifest.get("required") or None,
            preferred=manifest.get("preferred") or None,
            unconstrained=bool(manifest.get("unconstrained")),
            slices=tuple(layers),
            group=manifest.get("podSetGroupName") or None,
            pod_index_label=manifest.get("podIndexLabel") or None,
            sub_group_index_label=manifest.get("subGroupIndexLabel") or None,
            sub_group_count=None if sub_group_count is None else int(sub_group_count),
        )

    @property
    def asks_for_topology(self) -> bool:
        """Whether the request is explicit: a level, unconstrained, or slices."""
        return bool(self.required or self.preferred or self.unconstrained or self.slices)

    @property
    def levels(self) -> tuple[str, ...]:
        """Every level that the request names; a flavor's topology must have them all."""
        main = self.required or self.preferred
        return (*((main,) if main else ()), *(layer.topology for layer in self.slices))


@dataclass(frozen=True, slots=True)
class TopologyDomain:
    """`count` pods in one leaf, named by the values of the assignment's levels."""

    values: tuple[str, ...]
    count: int


@dataclass(frozen=True, slots=True)
class TopologyAssignment:
    """The places of a pod set's pods.

    `levels` are all levels of the topology, or the hostname alone if that is the last level. `domains` are in the order
    of their full level values, each once, with positive counts.
    """

    levels: tuple[str, ...]
    domains: tuple[TopologyDomain, ...]

    @property
    def count(self) -> int:
        """The number of pods assigned."""
        return sum(domain.count for domain in self.domains)


@dataclass(frozen=True, slots=True)
class TopologyUsage:
    """The usage of one pod set on one flavor's leaves.

    `requests` are one pod's requests from its spec (not the quota's transformed ones), without `pods`; each pod also
    uses one of `pods`.
    """

    requests: Mapping[str, int]
    domains: tuple[TopologyDomain, ...]


@dataclass(frozen=True, slots=True)
class PodSetTopologyRequest:
    """One pod set to be placed in one flavor.

    `requests` are as in TopologyUsage. `topology` is None if the ClusterQueue implies topology-aware scheduling (placed
    like `unconstrained`). The node selector includes the labels that admission checks added. `room` is an upper bound
    of pods by node name, for reasons outside the topology (devices); nodes left out take none, None is no bound.
    `room_beside_leader` is the same for nodes that seat the leader, if it is known to be lower. For elastic jobs,
    `kept` are the domains of running pods of the set, in addition to the `count` pods to place, and `leaving` those of
    pods that will be removed but still run. `closed_nodes` are reserved for others: their capacity does not count.
    """

    pod_set: str
    count: int
    requests: Mapping[str, int]
    topology: TopologyRequest | None = None
    tolerations: tuple[Toleration, ...] = ()
    node_selector: Mapping[str, str] = field(default_factory=dict)
    affinity: RequiredNodeAffinity | None = None
    room: Mapping[str, int] | None = None
    room_beside_leader: Mapping[str, int] | None = None
    kept: TopologyAssignment | None = None
    leaving: TopologyAssignment | None = None
    closed_nodes: frozenset[str] = frozenset()

    def usage(self, assignment: TopologyAssignment) -> TopologyUsage:
        """Return the usage of this pod set in the flavor with that assignment."""
        return TopologyUsage(self.requests, assignment.domains)


@dataclass(frozen=True, slots=True)
class TopologyFailure:
    """The reason why a pod set could not be placed.

    `message` is the text shown to users. `fitting` of `wanted` units (slices of `slice_size` pods) would have fitted;
    both are 0 if the request itself is invalid (an unknown level, slices wider than the main level).
    """

    pod_set: str
    message: str
    fitting: int = 0
    wanted: int = 0
    slice_size: int = 1
