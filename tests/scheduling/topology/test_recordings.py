"""Recorded placements of Kueue, reproduced one by one from the admissions recorded before them.

Only the choice of leaves is under test: who is admitted when is taken from the recording. Cycles in which another
ClusterQueue's workload may have taken or reserved leaves first are charged but not compared.
"""

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from scheduling.model.node import Node
from scheduling.model.pod import PodTemplate
from scheduling.model.quantity import parse_amount
from scheduling.model.resources import pod_requests
from scheduling.model.selectors import Taint, Toleration
from scheduling.model.topology import (
    PodSetTopologyRequest,
    Topology,
    TopologyDomain,
    TopologyFailure,
    TopologyRequest,
    TopologyUsage,
)
from scheduling.topology.flavor import TopologyFlavors

RECORDINGS = Path(__file__).parents[2] / "conformance" / "kueue"
FAMILIES = ("tas", "tas-slices", "tas-group", "tas-preempt", "tas-nodes")
Domains = dict[str, tuple[TopologyDomain, ...]]


class Replay:
    """One scenario: the usage of what is recorded as running, and the placement that our code would choose."""

    def __init__(self, scenario: dict[str, Any]) -> None:
        self.flavors = TopologyFlavors()
        self.runtimes: dict[str, int] = scenario.get("runtimeSeconds", {})
        self.workloads = {f"team/{w['metadata']['name']}": w for w in scenario["workloads"]}
        self.cluster_queues = {q["metadata"]["name"]: q["spec"]["clusterQueue"] for q in scenario["localQueues"]}
        self.running: dict[str, tuple[int, list[tuple[str, TopologyUsage]]]] = {}
        self.started: set[str] = set()
        topologies = [Topology.from_manifest(manifest) for manifest in scenario["topologies"]]
        by_name = {topology.name: topology for topology in topologies}
        for manifest in scenario["resourceFlavors"]:
            spec = manifest["spec"]
            tolerations = [Toleration.from_manifest(toleration) for toleration in spec.get("tolerations", ())]
            if "topologyName" in spec:
                topology = by_name[spec["topologyName"]]
                self.flavors.set_flavor(manifest["metadata"]["name"], topology, spec.get("nodeLabels", {}), tolerations)
        self.flavors.set_nodes(read_node(manifest) for manifest in scenario["nodes"])

    def requests(self, admitted: dict[str, Any]) -> Iterator[tuple[str, PodSetTopologyRequest]]:
        """(flavor, request) per pod set of a recorded admission."""
        recorded = {pod_set["name"]: pod_set for pod_set in admitted["podSets"]}
        for pod_set in self.workloads[admitted["workload"]]["spec"]["podSets"]:
            name = pod_set.get("name", "main")
            template = PodTemplate.from_manifest(pod_set["template"])
            request = PodSetTopologyRequest(
                name,
                recorded[name]["count"],
                pod_requests(template),
                TopologyRequest.from_manifest(pod_set.get("topologyRequest")),
                template.tolerations,
                template.node_selector,
                template.affinity,
            )
            (flavor,) = set(recorded[name]["flavors"].values())
            yield flavor, request

    def place(self, admitted: dict[str, Any]) -> Domains | str:
        """The leaves that our code chooses for a recorded admission."""
        chosen: Domains = {}
        requests = list(self.requests(admitted))
        for flavor in self.flavors:
            found = self.flavors[flavor].find_topology_assignments([r for name, r in requests if name == flavor])
            if isinstance(found, TopologyFailure):
                return found.message
            chosen |= {name: assignment.domains for name, assignment in found.items()}
        return chosen

    def charge(self, at: int, admitted: dict[str, Any]) -> None:
        domains = recorded_domains(admitted)
        usages = [
            (flavor, TopologyUsage(request.requests, domains[request.pod_set]))
            for flavor, request in self.requests(admitted)
            if flavor in self.flavors
        ]
        for flavor, usage in usages:
            self.flavors[flavor].add_usage(usage)
        self.running[admitted["workload"]] = (at, usages)
        self.started.add(admitted["workload"])

    def release(self, workload: str) -> None:
        _, usages = self.running.pop(workload)
        for flavor, usage in usages:
            self.flavors[flavor].remove_usage(usage)

    def finish_until(self, at: int) -> None:
        for workload, (since, _) in list(self.running.items()):
            if since + self.runtimes.get(workload, at + 1) <= at:
                self.release(workload)

    def is_alone(self, at: int, admitted: dict[str, Any]) -> bool:
        """Whether no workload of another ClusterQueue can have been considered in the same cycle."""
        for key, manifest in self.workloads.items():
            visible = seconds(manifest["metadata"]["creationTimestamp"]) <= at
            elsewhere = self.cluster_queues[manifest["spec"]["queueName"]] != admitted["clusterQueue"]
            if visible and elsewhere and key not in self.started:
                return False
        return True


def seconds(timestamp: str) -> int:
    hours, minutes, whole = timestamp.removesuffix("Z").split("T")[1].split(":")
    return int(hours) * 3600 + int(minutes) * 60 + int(whole)


def read_node(manifest: dict[str, Any]) -> Node:
    spec, status = manifest.get("spec") or {}, manifest["status"]
    ready = {"type": "Ready", "status": "True"}
    return Node(
        manifest["metadata"]["name"],
        manifest["metadata"]["labels"],
        tuple(Taint.from_manifest(taint) for taint in spec.get("taints", ())),
        {resource: parse_amount(resource, amount) for resource, amount in status["allocatable"].items()},
        ready=any({**condition, **ready} == condition for condition in status.get("conditions", ())),
        unschedulable=bool(spec.get("unschedulable")),
    )


def recorded_domains(admitted: dict[str, Any]) -> Domains:
    return {
        pod_set["name"]: tuple(
            TopologyDomain(tuple(domain["values"]), domain["count"]) for domain in pod_set.get("topologyAssignment", ())
        )
        for pod_set in admitted["podSets"]
    }


@pytest.mark.parametrize("family", FAMILIES)
def test_recorded_placements(family: str) -> None:
    with gzip.open(RECORDINGS / f"{family}.json.gz", "rt") as file:
        recordings = json.load(file)
    compared, different = 0, []
    for recording in recordings:
        replay = Replay(recording["scenario"])
        for cycle in recording["expect"]["cycles"]:
            at, admissions = cycle["atSeconds"], cycle.get("admitted", ())
            replay.finish_until(at)
            for admitted in admissions:
                if len(admissions) == 1 and replay.is_alone(at, admitted):
                    compared += 1
                    placed, expected = replay.place(admitted), recorded_domains(admitted)
                    if placed != expected:
                        different.append((recording["name"], admitted["workload"], placed, expected))
            for admitted in admissions:
                replay.charge(at, admitted)
            for preempted in cycle.get("preempted", ()):
                replay.release(preempted["workload"])
                replay.started.discard(preempted["workload"])
    assert different == []
    assert compared >= 50
