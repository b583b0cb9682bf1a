"""How long one topology-aware placement takes on 640 nodes, warm and cold, with a hundred workloads running.

    python tests/benchmarks/benchmark_topology.py

Prints, per request, the mean CPU time of a placement and of adding its usage and removing another's, and the ratio of
the placement to counting all leaves anew, which is what a scheduler without kept counts would pay each time.
"""

from __future__ import annotations

import random
import sys
import time
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from scheduling.model.node import Node
from scheduling.model.selectors import HOSTNAME_LABEL
from scheduling.model.topology import (
    PodSetTopologyRequest,
    SliceConstraint,
    Topology,
    TopologyRequest,
    TopologyUsage,
)
from scheduling.topology.flavor import TopologyFlavor

RACKS, NODES_PER_RACK, ROUNDS, RUNNING = 10, 64, 300, 100
TOPOLOGY = Topology("default", ("block", "rack", HOSTNAME_LABEL))
SLICES = (SliceConstraint(HOSTNAME_LABEL, 4),)
REQUESTS = {
    "required rack, 2 pods": (2, 500, TopologyRequest(required="rack")),
    "preferred rack, 8 pods": (8, 2500, TopologyRequest(preferred="rack")),
    "preferred rack, 8 pods in slices of 4": (8, 2500, TopologyRequest(preferred="rack", slices=SLICES)),
    "preferred host, 8 large pods": (8, 48000, TopologyRequest(preferred=HOSTNAME_LABEL)),
    "unconstrained, 2 pods": (2, 500, TopologyRequest(unconstrained=True)),
    "unconstrained, 40 pods": (40, 9600, TopologyRequest(unconstrained=True)),
}


def cluster(balanced: bool) -> TopologyFlavor:
    """The nodes of Kueue's scalability test for topology-aware scheduling."""
    flavor = TopologyFlavor(TOPOLOGY, {}, balanced_placement=balanced)
    for rack in range(RACKS):
        for number in range(NODES_PER_RACK):
            name = f"node-{rack}-{number:02}"
            labels = {"block": "block-0", "rack": f"rack-{rack}", HOSTNAME_LABEL: name}
            allocatable = {"cpu": 96_000, "memory": 256 << 30, "pods": 110}
            flavor.leaves.set_node(Node(name, labels, allocatable=allocatable))
    return flavor


def measure(flavor: TopologyFlavor, request: PodSetTopologyRequest) -> tuple[float, float]:
    """Mean seconds of a placement, and of charging it and releasing another one."""
    chance = random.Random(1)
    running: list[TopologyUsage] = []
    placing = charging = 0.0
    for _ in range(ROUNDS):
        start = time.process_time()
        found = flavor.find_topology_assignments([request])
        placed = time.process_time()
        if isinstance(found, dict):
            running.append(request.usage(found[request.pod_set]))
            flavor.add_usage(running[-1])
        if len(running) > RUNNING or not isinstance(found, dict):
            flavor.remove_usage(running.pop(chance.randrange(len(running))))
        placing += placed - start
        charging += time.process_time() - placed
    for usage in running:
        flavor.remove_usage(usage)
    return placing / ROUNDS, charging / ROUNDS


def cold(flavor: TopologyFlavor, request: PodSetTopologyRequest) -> float:
    """Mean seconds of a placement that counts all leaves anew."""
    total = 0.0
    for number in range(20):
        another = replace(request, requests={"cpu": request.requests["cpu"] + number + 1})
        start = time.process_time()
        flavor.find_topology_assignments([another])
        total += time.process_time() - start
    return total / 20


def main() -> None:
    for balanced in (False, True):
        flavor = cluster(balanced)
        flavor.find_topology_assignments([PodSetTopologyRequest("main", 1, {"cpu": 1})])
        print(f"{RACKS * NODES_PER_RACK} nodes, balanced placement {'on' if balanced else 'off'}")
        for name, (count, cpu, topology) in REQUESTS.items():
            request = PodSetTopologyRequest("main", count, {"cpu": cpu}, topology)
            placing, charging = measure(flavor, request)
            anew = cold(flavor, request)
            print(
                f"  {name:40} {placing * 1e6:7.0f} us   charge {charging * 1e6:5.0f} us"
                f"   anew {anew * 1e6:6.0f} us   ratio {placing / anew:5.2f}"
            )


if __name__ == "__main__":
    main()
