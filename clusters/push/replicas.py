"""Assigns live pods to replicas of pod sets."""

from __future__ import annotations

from collections.abc import Sequence

from clusters.api_objects import JsonObject
from clusters.jobs.objects import POD_SET_LABEL, WORKLOAD_UID_LABEL, PodSetAdmission, rank_offset, replica_of, uid_label
from scheduling.model.topology import TopologyRequest
from scheduling.topology.ungater import rank_of


class Replicas:
    """The replica numbers of live pods by their annotations, and the numbers assigned in this pass."""

    def __init__(self, pods: Sequence[JsonObject]) -> None:
        self._taken: dict[tuple[str, str], dict[int, str]] = {}
        self._with_pods: set[str] = set()
        for pod in pods:
            uid, replica = uid_label(pod, WORKLOAD_UID_LABEL), replica_of(pod)
            if uid and replica is not None:
                pod_set = (pod["metadata"].get("labels") or {}).get(POD_SET_LABEL, "")
                self._note(uid, pod_set, replica, pod["metadata"]["uid"])

    def has_pods(self, workload_uid: str) -> bool:
        """Return whether any live pod is a replica of the workload."""
        return workload_uid in self._with_pods

    def assign(self, pod: JsonObject, workload_uid: str, pod_set: PodSetAdmission) -> int | None:
        """Return the pod's replica: its current one, else its rank in the topology if that is free, else the first free
        one of the pod set. None if none is free, or if as many pods live as were admitted."""
        taken = self._taken.get((workload_uid, pod_set.name), {})
        own, numbers = replica_of(pod), pod_set.replicas
        if own is not None and own in numbers and taken.get(own) == pod["metadata"]["uid"]:
            return own
        if len(taken) >= pod_set.count:
            return None
        free = [number for number in numbers if number not in taken]
        rank = _rank(pod, pod_set)
        replica = rank if rank in free else next(iter(free), None)
        if replica is not None:
            self._note(workload_uid, pod_set.name, replica, pod["metadata"]["uid"])
        return replica

    def _note(self, workload_uid: str, pod_set: str, replica: int, pod_uid: str) -> None:
        self._taken.setdefault((workload_uid, pod_set), {}).setdefault(replica, pod_uid)
        self._with_pods.add(workload_uid)


def _rank(pod: JsonObject, pod_set: PodSetAdmission) -> int | None:
    """Return the pod's rank. The nodes of a pod set are in the order of its topology's domains, so neighbours in rank
    get neighbouring nodes."""
    if pod_set.topology is None:
        return None
    request, offset = pod_set.topology_request or TopologyRequest(), rank_offset(pod, pod_set)
    if offset is None:
        return None
    return rank_of(request, pod["metadata"].get("labels") or {}, pod_set.count, offset)
