"""Converts placements to and from node names on pod sets and slices on devices."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from scheduling.model.device import DeviceSlice, MigInstance, MigPlacement
from scheduling.model.placement import Placement, PodPlacement
from scheduling.model.resources import pod_requests
from scheduling.model.workload import PodSet, Workload


@dataclass(frozen=True, slots=True)
class StoredSlice:
    """A DeviceAllocation row for one of kueueweb's decisions."""

    pod_set: str
    replica: int
    container_index: int
    slice: DeviceSlice


SLICES = """
SELECT a.workload_id, a.pod_set, a.replica, a.container_index, a.device_uuid, n.name, a.memory_mib, a.cores_percent,
    d.index, d.vendor, a.mig_instance::text, a.slots, a.qos_policy, a.app_class
FROM gpus_deviceallocation a JOIN gpus_node n ON n.id = a.node_id JOIN gpus_device d ON d.id = a.device_id
WHERE a.source = 'decided' AND a.workload_id = ANY(%s)
ORDER BY a.id
"""


def stored_slice(fields: Sequence[Any], mig: Mapping[str, Any] | None) -> StoredSlice:
    """Decode a row of `SLICES` without its first column; `mig` is the decoded MIG instance."""
    pod_set, replica, container_index, uuid, node, memory_mib, cores_percent, index, vendor, _, *rest = fields
    instance = MigInstance(mig["profile"], MigPlacement(mig["start"], mig["size"])) if mig else None
    held = DeviceSlice(uuid, node, memory_mib, cores_percent, index, vendor, instance, *rest)
    return StoredSlice(pod_set, replica, container_index, held)


def read_placement(
    namespace: str,
    pod_sets: Sequence[PodSet],
    nodes: Mapping[str, Sequence[str | None]],
    slices: Sequence[StoredSlice],
) -> Placement | None:
    """Read the placement as decided, without removed replicas (their node is null; `left_over` returns their stored
    slices). None for a workload that was admitted on quota alone."""
    held: dict[tuple[str, int, int], list[DeviceSlice]] = {}
    for stored in slices:
        held.setdefault((stored.pod_set, stored.replica, stored.container_index), []).append(stored.slice)
    pods: list[PodPlacement] = []
    for pod_set in pod_sets:
        containers = len(pod_set.template.init_containers) + len(pod_set.template.containers)
        requests = pod_requests(pod_set.template)
        for replica, node in enumerate(nodes.get(pod_set.name, ())):
            if node is None:
                continue
            pods.append(
                PodPlacement(
                    pod_set=pod_set.name,
                    replica=replica,
                    node=node,
                    containers=tuple(
                        tuple(held.get((pod_set.name, replica, index), ())) for index in range(containers)
                    ),
                    init_container_count=len(pod_set.template.init_containers),
                    requests=requests,
                    namespace=namespace,
                )
            )
    return Placement(tuple(pods)) if pods else None


def left_over(nodes: Mapping[str, Sequence[str | None]], slices: Sequence[StoredSlice]) -> tuple[PodPlacement, ...]:
    """Return removed replicas whose slices are still stored."""

    def replica_of(stored: StoredSlice) -> tuple[str, int]:
        return stored.pod_set, stored.replica

    found: list[PodPlacement] = []
    for (pod_set, replica), held in groupby(sorted(slices, key=replica_of), key=replica_of):
        known = nodes.get(pod_set, ())
        if replica >= len(known) or known[replica] is None:
            parts = tuple(stored.slice for stored in held)
            found.append(PodPlacement(pod_set, replica, parts[0].node, (parts,)))
    return tuple(found)


def placed_nodes(workload: Workload, pod_set: str) -> list[str | None]:
    """Return the node of each replica by number, None for removed replicas of an elastic job; empty for a pod set that
    was admitted on quota alone."""
    if workload.placement is None:
        return []
    nodes = {pod.replica: pod.node for pod in workload.placement.pods_of(pod_set)}
    return [nodes.get(replica) for replica in range(max(nodes, default=-1) + 1)]


@dataclass(frozen=True, slots=True)
class HeldSlice:
    """A slice with the container that holds it."""

    pod_set: str
    replica: int
    container_index: int
    container: str
    slice: DeviceSlice


def held_slices(workload: Workload) -> Iterator[HeldSlice]:
    """Yield every slice that the workload holds; containers count as HAMi counts them, init containers first."""
    if workload.placement is None or workload.admission is None:
        return
    names = {
        pod_set.name: [
            container.name for container in (*pod_set.template.init_containers, *pod_set.template.containers)
        ]
        for pod_set in workload.pod_sets
    }
    for pod in workload.placement.pods:
        for index, slices in enumerate(pod.containers):
            for held in slices:
                yield HeldSlice(pod.pod_set, pod.replica, index, names[pod.pod_set][index], held)
