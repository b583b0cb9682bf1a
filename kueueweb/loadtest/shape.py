"""The shape of a load: cohorts, ClusterQueues, and sets of workloads that arrive in each of them."""

from __future__ import annotations

import heapq
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

NAMESPACE = "load"
FLAVOR = "load"


class InvalidShape(Exception):
    """A shape file with settings that the load test does not support. The message names the field."""


@dataclass(frozen=True, slots=True)
class WorkloadSet:
    """`count` workloads of one class, created at this interval in each ClusterQueue, each with this run time."""

    name: str
    count: int
    interval_seconds: float
    runtime_seconds: float
    priority: int
    pods: int
    request: str
    topology: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Shape:
    """A file of Kueue's scheduler performance test, with Kueue's results."""

    cohorts: int
    cluster_queues_per_cohort: int
    resource: str
    nominal_quota: int
    borrowing_limit: int | None
    preemption: Mapping[str, str]
    sets: tuple[WorkloadSet, ...]
    topology: Mapping[str, Any]
    floor_seconds: float
    kueue: Mapping[str, Any]
    staggered: bool = False
    """Whether the queues take turns: each begins a part of the interval later than the one before it."""

    @property
    def cluster_queues(self) -> list[tuple[str, str]]:
        """(cohort, ClusterQueue) names."""
        return [
            (f"cohort-{cohort}", f"cohort-{cohort}-queue-{queue}")
            for cohort in range(self.cohorts)
            for queue in range(self.cluster_queues_per_cohort)
        ]

    @property
    def workload_count(self) -> int:
        """The number of all workloads."""
        return len(self.cluster_queues) * sum(workload_set.count for workload_set in self.sets)

    @property
    def nominal_total(self) -> float:
        """Nominal quota of all ClusterQueues."""
        return float(self.nominal_quota * len(self.cluster_queues))


@dataclass(frozen=True, slots=True, order=True)
class Arrival:
    """One workload: its creation time, in seconds from the start, and its class."""

    at_seconds: float
    cluster_queue: str
    set_index: int
    number: int

    @property
    def name(self) -> str:
        """Its name within the namespace."""
        return f"{self.cluster_queue}-{self.set_index}-{self.number}"


def read_shape(path: Path) -> Shape:
    """Read a shape file. Raises `InvalidShape`, OSError or json.JSONDecodeError."""
    fields = json.loads(path.read_text())
    try:
        return Shape(
            cohorts=int(fields["cohorts"]),
            cluster_queues_per_cohort=int(fields["clusterQueuesPerCohort"]),
            resource=fields["resource"],
            nominal_quota=int(fields["nominalQuota"]),
            borrowing_limit=fields.get("borrowingLimit"),
            preemption=fields.get("preemption") or {},
            sets=tuple(_workload_set(entry) for entry in fields["sets"]),
            topology=fields.get("topology") or {},
            floor_seconds=float(fields.get("floorSeconds", 0)),
            kueue=fields.get("kueue") or {},
            staggered=bool(fields.get("staggered")),
        )
    except KeyError as missing:
        raise InvalidShape(f"{path}: the field {missing} is missing") from missing


def _workload_set(fields: Mapping[str, Any]) -> WorkloadSet:
    return WorkloadSet(
        name=fields["class"],
        count=int(fields["count"]),
        interval_seconds=fields["intervalMs"] / 1000,
        runtime_seconds=fields["runtimeMs"] / 1000,
        priority=int(fields["priority"]),
        pods=int(fields.get("pods", 1)),
        request=str(fields["request"]),
        topology=fields.get("topology") or {},
    )


def arrivals(shape: Shape) -> Iterator[Arrival]:
    """Yield every workload in the order of creation: each set of each queue one by one, all side by side."""
    queues = shape.cluster_queues
    series = [
        [Arrival((number + turn) * entry.interval_seconds, queue, index, number) for number in range(entry.count)]
        for turn, queue in (
            (place / len(queues) if shape.staggered else 0, name) for place, (_, name) in enumerate(queues)
        )
        for index, entry in enumerate(shape.sets)
    ]
    return heapq.merge(*series)


def workload_json(shape: Shape, arrival: Arrival) -> dict[str, Any]:
    """Return the workload as our REST API accepts it."""
    entry = shape.sets[arrival.set_index]
    pod_set: dict[str, Any] = {"count": entry.pods, "requests": {shape.resource: entry.request}}
    if entry.topology:
        pod_set["topology_request"] = _topology_request(entry.topology)
    return {
        "namespace": NAMESPACE,
        "name": arrival.name,
        "local_queue": arrival.cluster_queue,
        "priority": entry.priority,
        "pod_sets": [pod_set],
    }


def _topology_request(topology: Mapping[str, str]) -> dict[str, Any]:
    mode = topology["mode"]
    if mode == "unconstrained":
        return {"unconstrained": True}
    # Balanced placement is Kueue's gate on top of `preferred`.
    return {"required" if mode == "required" else "preferred": topology["level"]}


def manifest_text(shape: Shape) -> str:
    """Return the objects that a run needs before its first workload, as YAML."""
    import yaml  # imported here: only this command writes YAML

    return str(yaml.dump_all(manifests(shape), Dumper=getattr(yaml, "CSafeDumper", yaml.SafeDumper)))


def manifests(shape: Shape) -> Sequence[Mapping[str, Any]]:
    """Namespace, flavor, ClusterQueues, LocalQueues, and topology and nodes if the shape has them."""
    objects: list[dict[str, Any]] = [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}},
        _kueue(
            "ResourceFlavor", FLAVOR, {"nodeLabels": {"load": "true"}, "topologyName": FLAVOR} if shape.topology else {}
        ),
    ]
    if shape.topology:
        objects.append(
            _kueue("Topology", FLAVOR, {"levels": [{"nodeLabel": name} for name in shape.topology["levels"]]})
        )
        objects += _nodes(shape.topology)
    cell: dict[str, Any] = {"name": shape.resource, "nominalQuota": str(shape.nominal_quota)}
    if shape.borrowing_limit is not None:
        cell["borrowingLimit"] = str(shape.borrowing_limit)
    for cohort, queue in shape.cluster_queues:
        objects.append(
            _kueue(
                "ClusterQueue",
                queue,
                {
                    "cohortName": cohort,
                    "namespaceSelector": {},
                    "preemption": dict(shape.preemption),
                    "resourceGroups": [
                        {"coveredResources": [shape.resource], "flavors": [{"name": FLAVOR, "resources": [cell]}]}
                    ],
                },
            )
        )
        local_queue = _kueue("LocalQueue", queue, {"clusterQueue": queue})
        local_queue["metadata"]["namespace"] = NAMESPACE
        objects.append(local_queue)
    return objects


def _kueue(kind: str, name: str, spec: Mapping[str, Any]) -> dict[str, Any]:
    return {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": kind, "metadata": {"name": name}, "spec": dict(spec)}


def _nodes(topology: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    levels = topology["levels"]
    for block in range(topology["blocks"]):
        for rack in range(topology["racksPerBlock"]):
            for number in range(topology["nodesPerRack"]):
                name = f"node-{block}-{rack}-{number}"
                values = (f"block-{block}", f"rack-{block}-{rack}", name)
                amounts = {**topology["node"], "pods": "110"}
                yield {
                    "apiVersion": "v1",
                    "kind": "Node",
                    "metadata": {"name": name, "labels": {"load": "true", **dict(zip(levels, values, strict=True))}},
                    "status": {
                        "allocatable": amounts,
                        "capacity": dict(amounts),  # the same object twice would become an alias in YAML
                        "conditions": [{"type": "Ready", "status": "True"}],
                    },
                }
