"""Pods of topology-aware workloads: gated until their domain is known, then tied to it."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from clusters.api_objects import NODES, JsonObject
from clusters.jobs.objects import AdmittedWorkload, JobSource, PodSetAdmission, ungated_pod
from clusters.jobs.registry import JOB_KINDS
from clusters.jobs.whole_objects import new_object
from clusters.push.topology_domains import TopologyDomains
from gpus.models import DeviceAllocation
from queues.models import ResourceFlavor, Topology
from scheduling.model.topology import TopologyAssignment, TopologyDomain, TopologyRequest
from tests.clusters.system import System, gpu_job, queued
from tests.factories import START
from tests.simulated_cluster import job

HOST = "kubernetes.io/hostname"
INDEX = "batch.kubernetes.io/job-completion-index"
GATE = "kueueweb.io/placement"
TWO_HOSTS = TopologyAssignment((HOST,), (TopologyDomain(("a",), 2), TopologyDomain(("b",), 1)))
WORKERS = PodSetAdmission("main", 3, {"gpu": "on"}, topology=TWO_HOSTS)


def pod(name: str, *, index: int | None = None, host: str = "") -> JsonObject:
    """A live pod of the workload; it waits at the gate unless it has its host."""
    labels = {"kueueweb.io/workload-uid": "w", "kueue.x-k8s.io/podset": "main"}
    if index is not None:
        labels[INDEX] = str(index)
    spec: dict[str, Any] = {"nodeSelector": {HOST: host}} if host else {"schedulingGates": [{"name": GATE}]}
    return {"metadata": {"name": name, "uid": name, "labels": labels}, "spec": spec}


def selectors(pod_set: PodSetAdmission, *pods: JsonObject) -> dict[str, str | None]:
    """Waiting pod -> its host."""
    domains = TopologyDomains(pods)
    found = {each["metadata"]["name"]: domains.selector(each, "w", pod_set) for each in pods}
    return {
        name: None if chosen is None else chosen[HOST]
        for name, chosen in found.items()
        if name in {each["metadata"]["name"] for each in pods if "schedulingGates" in each["spec"]}
    }


def test_waiting_pods_fill_the_domains_beside_those_that_are_there() -> None:
    assert selectors(WORKERS, pod("x"), pod("y"), pod("z")) == {"x": "a", "y": "a", "z": "b"}
    assert selectors(WORKERS, pod("run-1", host="a"), pod("x"), pod("y")) == {"x": "a", "y": "b"}


def test_pods_with_ranks_are_neighbours() -> None:
    by_rank = PodSetAdmission("main", 3, {}, (), (), TWO_HOSTS, TopologyRequest(pod_index_label=INDEX))
    pods = [pod("x", index=2), pod("y", index=0), pod("z", index=1)]
    assert selectors(by_rank, *pods) == {"x": "b", "y": "a", "z": "a"}


def test_ranks_of_workers_begin_after_those_of_the_launcher() -> None:
    by_rank = PodSetAdmission("main", 3, {}, (), (), TWO_HOSTS, TopologyRequest(pod_index_label=INDEX))
    pods = [pod("x", index=3), pod("y", index=1), pod("z", index=2)]
    in_rank = {"x": "b", "y": "a", "z": "a"}
    assert selectors(replace(by_rank, rank_offset=1), *pods) == in_rank
    for each in pods:
        each["metadata"]["annotations"] = {"kueue.x-k8s.io/pod-index-offset": "1"}
    assert selectors(by_rank, *pods) == in_rank
    for each in pods:
        each["metadata"]["annotations"] = {"kueue.x-k8s.io/pod-index-offset": "one"}
    assert selectors(by_rank, *pods) == {"x": None, "y": None, "z": None}


def test_after_a_node_was_replaced_new_pods_go_where_pods_are_missing() -> None:
    """Ranks no longer match the domains of the pods that stayed: what is free decides."""
    moved = TopologyAssignment((HOST,), (TopologyDomain(("b",), 1), TopologyDomain(("c",), 2)))
    by_rank = PodSetAdmission("main", 3, {}, (), (), moved, TopologyRequest(pod_index_label=INDEX))
    pods = [pod("stayed", index=2, host="b"), pod("x", index=0), pod("y", index=1)]
    assert selectors(by_rank, *pods) == {"x": "c", "y": "c"}


def test_pods_beyond_the_assignment_wait() -> None:
    full = [pod("1", host="a"), pod("2", host="a"), pod("3", host="b")]
    assert selectors(WORKERS, *full, pod("4")) == {"4": None}


def test_pods_wait_while_their_domain_is_a_failed_node() -> None:
    waiting = pod("x")
    domains = TopologyDomains((waiting,))
    assert domains.selector(waiting, "w", WORKERS, ["b"]) == {HOST: "a"}
    assert domains.selector(waiting, "w", WORKERS, ["a"]) is None


def test_without_a_topology_there_is_nothing_to_select() -> None:
    assert TopologyDomains(()).selector(pod("x"), "w", PodSetAdmission("main", 1, {})) == {}


def test_the_gate_is_set_and_opens_with_flavor_and_domain() -> None:
    source = JobSource(JOB_KINDS["Job"], job(), "0b0e7a52-0000-4000-8000-000000000001")
    told = new_object(source, AdmittedWorkload("job-train-1", "w", "queue", "main", (WORKERS,)))
    spec = told["spec"]["template"]["spec"]
    assert spec["schedulingGates"] == [{"name": GATE}]
    assert "schedulerName" not in spec
    opened = ungated_pod(pod("x"), WORKERS, "", {HOST: "a"})
    assert opened is not None
    assert opened["spec"] == {"schedulingGates": [], "nodeSelector": {"gpu": "on", HOST: "a"}}


@pytest.fixture
def by_host(system: System) -> System:
    """The flavor's leaves are its nodes."""
    Topology.objects.create(cluster=system.cluster, name="hosts", levels=[HOST], created_at=START)
    ResourceFlavor.objects.filter(cluster=system.cluster).update(topology_name="hosts")
    return system


def cpu_job(name: str, pods: int, cpu: int, **annotations: str) -> JsonObject:
    """A job that runs all its pods at once."""
    manifest = queued(job(name, requests={"cpu": str(cpu)}, run_seconds=1000, parallelism=pods, completions=pods))
    manifest["spec"]["template"]["metadata"]["annotations"] |= annotations
    return manifest


@pytest.mark.django_db(transaction=True)
def test_pods_run_in_the_domains_that_were_assigned(by_host: System) -> None:
    preferred = {"kueue.x-k8s.io/podset-preferred-topology": HOST}
    by_host.submit(cpu_job("train", 5, 2, **preferred))
    by_host.turn()
    by_host.turn()
    (pod_set,) = by_host.workload("train").pod_sets.all()
    assert pod_set.topology_assignment is not None
    assigned = {domain["values"][0]: domain["count"] for domain in pod_set.topology_assignment["domains"]}
    assert sorted(assigned.values()) == [1, 4]
    pods = by_host.pods()
    assert Counter(each["spec"]["nodeName"] for each in pods) == assigned
    assert all(each["spec"]["nodeSelector"][HOST] == each["spec"]["nodeName"] for each in pods)


@pytest.mark.django_db(transaction=True)
def test_pods_in_a_topology_are_counted_once(by_host: System) -> None:
    """They are on the scheduler's books: what the watcher sees of them is no foreign usage beside it."""
    required = {"kueue.x-k8s.io/podset-required-topology": HOST}
    by_host.submit(cpu_job("first", 2, 2, **required))
    by_host.turn()
    by_host.turn()
    (first,) = {each["spec"]["nodeName"] for each in by_host.pods()}
    by_host.submit(cpu_job("second", 2, 2, **required))
    by_host.turn()
    by_host.turn()
    hosts = {each["spec"]["nodeName"] for each in by_host.pods()}
    assert hosts == {first}
    assert by_host.client.get(NODES, "", first) is not None


@pytest.mark.django_db(transaction=True)
def test_pods_of_a_failed_node_run_elsewhere(by_host: System) -> None:
    required = {"kueue.x-k8s.io/podset-required-topology": HOST}
    by_host.submit(cpu_job("train", 2, 2, **required))
    by_host.turn()
    by_host.turn()
    (failed,) = {each["spec"]["nodeName"] for each in by_host.pods()}
    by_host.chaos(nodes={failed: "gone"})
    by_host.watcher.resync()
    assert by_host.workload("train").unhealthy_nodes == [failed]
    by_host.turn()
    by_host.turn()
    row = by_host.workload("train")
    assert (row.status, row.unhealthy_nodes) == ("Admitted", [])
    (pod_set,) = row.pod_sets.all()
    assert pod_set.topology_assignment is not None
    (domain,) = pod_set.topology_assignment["domains"]
    (host,) = domain["values"]
    assert host != failed
    running = [each for each in by_host.pods() if each["status"]["phase"] == "Running"]
    assert Counter(each["spec"]["nodeName"] for each in running) == {host: 2}


@pytest.mark.django_db(transaction=True)
def test_pods_with_devices_of_a_failed_node_run_elsewhere(by_host: System) -> None:
    manifest = gpu_job(run_seconds=1000, parallelism=2, completions=2)
    manifest["spec"]["template"]["metadata"]["annotations"] |= {"kueue.x-k8s.io/podset-required-topology": HOST}
    by_host.submit(manifest)
    by_host.turn()
    by_host.turn()
    (failed,) = {each["spec"]["nodeName"] for each in by_host.pods()}
    by_host.chaos(nodes={failed: "gone"})
    by_host.watcher.resync()
    for _ in range(3):
        by_host.turn()
    row = by_host.workload("train")
    assert (row.status, row.unhealthy_nodes) == ("Admitted", [])
    hosts = {node for pod_set in row.pod_sets.all() for node in pod_set.nodes}
    assert len(hosts) == 1
    assert failed not in hosts
    assert {a.node.name for a in DeviceAllocation.objects.filter(workload=row).select_related("node")} == hosts
    running = [each for each in by_host.pods() if each["status"]["phase"] == "Running"]
    assert Counter(each["spec"]["nodeName"] for each in running) == {hosts.pop(): 2}
