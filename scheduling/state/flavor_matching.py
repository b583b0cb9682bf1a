"""Checks whether the pods of a pod set may run on the nodes of a flavor."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping

from scheduling.model.pod import PodTemplate
from scheduling.model.selectors import matches_flavor, untolerated_taint
from scheduling.state.cluster_queue import ClusterQueueState, FlavorSlot, GroupState
from scheduling.state.workload_info import PodSetRequests
from scheduling.topology.flavor import TopologyFlavor


class FlavorMatcher:
    """Checks pod sets against flavors. Results that depend on labels and taints are cached; call `clear` when a
    flavor changes."""

    def __init__(self, topologies: Mapping[str, TopologyFlavor]) -> None:
        """`topologies` is a live view of the flavors that have a topology."""
        self._topologies = topologies
        self._answers: dict[tuple[str, Hashable], str | None] = {}

    def clear(self) -> None:
        self._answers.clear()

    def needs_topology(self, cq: ClusterQueueState, pod_set: PodSetRequests) -> bool:
        """Return whether the pods must be placed in a topology: they request one, or all flavors of the ClusterQueue
        have one.
        """
        request = pod_set.pod_set.topology_request
        return cq.topology_only or (request is not None and request.asks_for_topology)

    def with_topology(self, flavors: Iterable[str]) -> list[str]:
        """Return the flavors of the list that have a topology, without duplicates."""
        return [name for name in dict.fromkeys(flavors) if name in self._topologies]

    def mismatch(
        self, cq: ClusterQueueState, pod_set: PodSetRequests, group: GroupState, slot: FlavorSlot
    ) -> str | None:
        """Return why the flavor's nodes do not accept these pods (topology, taint, selector or affinity), or None."""
        if slot.flavor is None:
            return f"flavor {slot.name} does not exist"
        problem = self._topology_mismatch(cq, pod_set, group, slot)
        if problem is not None:
            return problem
        template = pod_set.pod_set.template
        key = (slot.name, template.node_selection)
        try:
            return self._answers[key]
        except KeyError:
            answer = self._answers[key] = _node_mismatch(template, slot)
            return answer

    def _topology_mismatch(
        self, cq: ClusterQueueState, pod_set: PodSetRequests, group: GroupState, slot: FlavorSlot
    ) -> str | None:
        request = pod_set.pod_set.topology_request
        if request is None or not request.asks_for_topology:
            if slot.topology and not cq.topology_only:
                return f"flavor {slot.name} is only for workloads that request a topology"
            return None
        if not slot.topology:
            if pod_set.own_resources.isdisjoint(group.covered):
                return None
            return f"flavor {slot.name} has no topology"
        topology = self._topologies.get(slot.name)
        if topology is None:
            return f"the topology of flavor {slot.name} does not exist"
        return topology.level_problem(request)


def _node_mismatch(template: PodTemplate, slot: FlavorSlot) -> str | None:
    flavor = slot.flavor
    if flavor is None:
        return None
    taint = untolerated_taint(flavor.node_taints, (*template.tolerations, *flavor.tolerations))
    if taint is not None:
        value = f"={taint.value}" if taint.value else ""
        return f"untolerated taint {taint.key}{value}:{taint.effect} in flavor {slot.name}"
    if not matches_flavor(template.node_selector, template.affinity, flavor.node_labels):
        return f"flavor {slot.name} does not match the node selector or affinity"
    return None
