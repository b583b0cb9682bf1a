"""Assigns pods of topology-aware workloads to their domains, by rank if they state one.

If devices were assigned too, each replica already has its node. Otherwise the pods wait at our scheduling gate. When
it is removed, they get the labels of their domain as node selector, and the cluster's own scheduler binds them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence

from clusters.api_objects import JsonObject
from clusters.jobs.objects import (
    HOSTNAME_LABEL,
    KUEUE_GATES,
    PLACEMENT_GATE,
    POD_SET_LABEL,
    WORKLOAD_UID_LABEL,
    PodSetAdmission,
    rank_offset,
)
from scheduling.model.topology import TopologyRequest
from scheduling.topology.ungater import Domain, TopologyPod, domains_for_gated_pods, node_selector


class TopologyDomains:
    """Chooses the domain of each waiting pod, given the domains of the others in its pod set."""

    def __init__(self, pods: Sequence[JsonObject]) -> None:
        self._pods: dict[tuple[str, str], list[JsonObject]] = defaultdict(list)
        for pod in pods:
            labels = pod["metadata"].get("labels") or {}
            self._pods[labels.get(WORKLOAD_UID_LABEL, ""), labels.get(POD_SET_LABEL, "")].append(pod)

    def selector(
        self, pod: JsonObject, workload_uid: str, pod_set: PodSetAdmission, failed_nodes: Collection[str] = ()
    ) -> Mapping[str, str] | None:
        """Return the labels of the pod's domain.

        Empty without a topology. None while the assignment has no place for the pod: more pods live than were assigned,
        or the domain is a failed node that has not been replaced yet. Also None, as in Kueue, for a pod whose index
        offset is not a number.
        """
        topology = pod_set.topology
        if topology is None:
            return {}
        name = pod["metadata"]["name"]
        others = [other for other in self._pods[workload_uid, pod_set.name] if other["metadata"]["name"] != name]
        states = [_state(other, topology.levels) for other in (*others, pod)]
        request, offset = pod_set.topology_request or TopologyRequest(), rank_offset(pod, pod_set)
        if offset is None:
            return None
        domain = domains_for_gated_pods(topology, request, states, index_offset=offset).get(name)
        if domain is None or (topology.levels[-1] == HOSTNAME_LABEL and domain[-1] in failed_nodes):
            return None
        return node_selector(topology, domain)


def _state(pod: JsonObject, levels: Sequence[str]) -> TopologyPod:
    metadata, spec = pod["metadata"], pod["spec"]
    gated = any(gate["name"] in (PLACEMENT_GATE, *KUEUE_GATES) for gate in spec.get("schedulingGates") or ())
    selector = spec.get("nodeSelector") or {}
    domain: Domain | None = None if gated else tuple(selector.get(level, "") for level in levels)
    return TopologyPod(metadata["name"], metadata.get("labels") or {}, domain)
