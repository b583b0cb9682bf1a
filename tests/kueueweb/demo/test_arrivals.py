"""What somebody sees who watches the demo for some hours of its cluster's time: its own jobs, decided by our rules on a
virtual clock."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

from gpus.annotations import node_devices
from gpus.services import observed_node
from gpus.vendors import VENDORS
from kueueweb import demo
from kueueweb.demo.arrivals import FIRST_JOBS, MAX_WAITING, Arrivals, is_arrival
from kueueweb.demo.jobs import OVERFLOW, TENANTS, Tenant
from kueueweb.demo.past_run import pod_set
from scheduling.model.node import Node
from scheduling.model.quantity import parse_amount
from scheduling.model.topology import Topology
from scheduling.model.workload import Workload
from scheduling.simulator.scenario import (
    read_cluster_queue,
    read_cohort,
    read_configuration,
    read_local_queue,
    read_resource_flavor,
)
from scheduling.simulator.simulator import EPOCH, Simulator
from scheduling.world import World
from simulation.environment import RUN_SECONDS
from simulation.fleet import MIXED, SEVERAL, fleet

QUEUES = ("configuration.yaml", "accelerators.yaml", "racks.yaml")
HOUR = 3600.0
WARM_UP = HOUR / 2
WATCHED = 2 * HOUR


def documents() -> list[dict[str, Any]]:
    folder = Path(demo.__file__).parent
    texts = [(folder / name).read_text(encoding="utf-8") for name in QUEUES]
    return [document for text in texts for document in yaml.safe_load_all(text)]


def of_kind(kind: str) -> list[dict[str, Any]]:
    return [document for document in documents() if document["kind"] == kind]


def nodes() -> Iterator[Node]:
    for manifest in fleet(SEVERAL):
        node = observed_node(manifest)
        devices = node_devices(node.name, node.annotations, node.capacity, {}, VENDORS, 0, node.labels).devices
        allocatable = {name: parse_amount(name, text) for name, text in manifest["status"]["allocatable"].items()}
        yield Node(node.name, labels=node.labels, allocatable=allocatable, devices=devices)


def demo_world() -> World:
    (configuration,) = of_kind("Configuration")
    scenario = {
        "fairSharing": configuration["fairSharing"],
        "transformations": configuration["resources"]["transformations"],
        "placement": "all",
    }
    world = World(read_configuration(scenario), VENDORS)
    for namespace in of_kind("Namespace"):
        world.set_namespace(namespace["metadata"]["name"], namespace["metadata"]["labels"])
    for node in nodes():
        world.set_node(node)
    for flavor in of_kind("ResourceFlavor"):
        world.set_resource_flavor(read_resource_flavor(flavor))
    for topology in of_kind("Topology"):
        world.set_topology(Topology.from_manifest(topology))
    for cohort in of_kind("Cohort"):
        world.set_cohort(read_cohort(cohort))
    for queue in of_kind("ClusterQueue"):
        spec = {**queue["spec"], "cohortName": queue["spec"].get("cohort")}  # v1beta1's name for it
        world.set_cluster_queue(read_cluster_queue({**queue, "spec": spec}))
    for queue in of_kind("LocalQueue"):
        world.set_local_queue(read_local_queue(queue))
    return world


@dataclass(slots=True)
class Watched:
    """Averages over time, as shares of all there is, and what was preempted."""

    held: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))
    waiting: float = 0.0
    seconds: float = 0.0
    preempted: int = 0
    admitted: int = 0

    def see(self, seconds: float, shares: dict[str, float], waiting: int) -> None:
        for name, share in shares.items():
            self.held[name] += share * seconds
        self.waiting += waiting * seconds
        self.seconds += seconds

    def share(self, name: str) -> float:
        return self.held[name] / self.seconds


class Watch:
    """The demo on a virtual clock, with the limit on waiting jobs that its submission has."""

    def __init__(self, seed: int) -> None:
        self.world = demo_world()
        self._runtimes: dict[str, float] = {}
        self._simulator = Simulator(self.world, self._runtimes, horizon=0.0, batch=0.001)
        self._arrivals = Arrivals(SEVERAL, random.Random(seed))
        self._priorities = {row["metadata"]["name"]: row["value"] for row in of_kind("WorkloadPriorityClass")}
        self._cluster_queues = {row["metadata"]["name"]: row["spec"]["clusterQueue"] for row in of_kind("LocalQueue")}
        self._nodes = list(nodes())

    def run(self) -> Watched:
        seen, now, due = Watched(), 0.0, FIRST_JOBS
        while now < WARM_UP + WATCHED:
            self._come_to(now)
            self._submit([self._arrivals.job(now) for _ in range(due)], now, limited=due == 1)
            self._come_to(now)
            due, pause = 1, self._arrivals.pause_seconds()
            if now >= WARM_UP:
                seen.see(pause, self._shares(), self._waiting())
            now += pause
        later = [cycle for cycle in self._simulator.cycles if cycle["atSeconds"] >= WARM_UP]
        seen.preempted = sum(len(cycle["preempted"]) for cycle in later)
        seen.admitted = sum(len(cycle["admitted"]) for cycle in later)
        return seen

    def _come_to(self, now: float) -> None:
        self._simulator.horizon = now
        self._simulator.run()

    def _submit(self, jobs: Iterable[tuple[Tenant, dict[str, Any]]], now: float, *, limited: bool) -> None:
        for tenant, job in jobs:
            if tenant is OVERFLOW:
                continue  # it runs in another cluster
            if limited and len(self.world.pending(self._cluster_queues[tenant.queue])) >= MAX_WAITING:
                continue
            metadata, template = job["metadata"], job["spec"]["template"]
            workload = Workload(
                namespace=metadata["namespace"],
                name=metadata["name"],
                uid=metadata["name"],
                queue_name=metadata["labels"]["kueue.x-k8s.io/queue-name"],
                pod_sets=(pod_set(job["spec"]),),
                priority=self._priorities[metadata["labels"]["kueue.x-k8s.io/priority-class"]],
                created_at=EPOCH + now,
            )
            self._runtimes[workload.key] = float(template["metadata"]["annotations"][RUN_SECONDS])
            self._simulator.submit(workload)

    def _waiting(self) -> int:
        return sum(len(self.world.pending(name)) for name in self.world.cluster_queue_names())

    def _shares(self) -> dict[str, float]:
        held, there = Counter[str](), Counter[str]()
        for node in self._nodes:
            kind = node.devices[0].type
            for device in node.devices:
                slots, _, cores = self.world.device_usage(node.name, device.uuid)
                for name in ("devices", kind):
                    held[name] += slots > 0
                    there[name] += 1
                if node.name.startswith("gpu-"):
                    held["GPU cores"] += cores
                    there["GPU cores"] += device.cores_percent
            for name in ("cpu", "memory"):
                there[name] += node.allocatable[name]
        for queue in self.world.cluster_queue_names():
            for row in self.world.cluster_queue_status(queue).usage:
                if row.resource in ("cpu", "memory"):
                    held[row.resource] += row.used
        return {name: held[name] / there[name] for name in there}


@pytest.fixture(scope="module")
def seen() -> Watched:
    return Watch(seed=1).run()


def test_gpus_are_what_runs_out_and_cpu_and_memory_are_not(seen: Watched) -> None:
    assert 0.80 <= seen.share("GPU cores") <= 0.95
    assert seen.share("cpu") < 0.6
    assert seen.share("memory") < 0.4


def test_devices_of_every_kind_are_in_use(seen: Watched) -> None:
    kinds = {node.devices[0].type for node in nodes()}
    assert len(kinds) == 5
    assert {kind: round(seen.share(kind), 2) for kind in kinds if seen.share(kind) < 0.6} == {}


@pytest.mark.parametrize("fleet", [SEVERAL, MIXED])
def test_its_jobs_are_told_from_those_of_people_who_try_the_demo(fleet: str) -> None:
    arrivals = Arrivals(fleet, random.Random(1))
    assert all(is_arrival(arrivals.job(at)[1]["metadata"]["name"]) for at in range(200))
    assert not any(map(is_arrival, ("notebook", "notebook-1", "train-0123abcd", "my-notebook-0123abcd")))


def test_some_wait_and_few(seen: Watched) -> None:
    assert 1 <= seen.waiting / seen.seconds <= MAX_WAITING * len(TENANTS)


def test_preemption_is_an_event(seen: Watched) -> None:
    """One to ten an hour of the cluster's time, and so few of those that run."""
    per_hour = seen.preempted / (seen.seconds / HOUR)
    assert 1 <= per_hour <= 10
    assert seen.preempted < seen.admitted / 20
