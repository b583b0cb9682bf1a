"""Nodes fail for the workloads whose pods can not go on there, by Kueue's rules, and their pods go elsewhere."""

from __future__ import annotations

from typing import Any

import pytest

from accounts.services.cluster_settings import set_placement
from clusters.api_objects import EVENTS, NODES, PODS, JsonObject
from queues.models import ResourceFlavor, Topology
from scheduler.leader.engine import Engine
from scheduling.model.vocabulary import PlacementScope
from tests.clusters.system import System, queued
from tests.factories import START
from tests.simulated_cluster import job, pod

pytestmark = pytest.mark.django_db(transaction=True)

HOST = "kubernetes.io/hostname"
TAINT = {"key": "broken", "value": "yes", "effect": "NoExecute"}
TOLERATION = {"key": "broken", "operator": "Equal", "value": "yes", "effect": "NoExecute"}


@pytest.fixture
def by_host(system: System) -> System:
    """A flavor whose leaves are its nodes."""
    Topology.objects.create(cluster=system.cluster, name="hosts", levels=[HOST], created_at=START)
    ResourceFlavor.objects.filter(cluster=system.cluster).update(topology_name="hosts")
    return system


def topology_job(**spec: Any) -> JsonObject:
    """A job with one pod in a topology."""
    manifest = queued(job("train", requests={"cpu": "2"}, run_seconds=1000))
    template = manifest["spec"]["template"]
    template["metadata"]["annotations"] |= {"kueue.x-k8s.io/podset-required-topology": HOST}
    template["spec"] |= spec
    return manifest


def running(system: System, **spec: Any) -> str:
    """Run that job; return the node of its pod."""
    system.submit(topology_job(**spec))
    for _ in range(2):
        system.turn()
    (only,) = system.pods()
    return str(only["spec"]["nodeName"])


def set_taints(system: System, node: str, *taints: JsonObject) -> None:
    system.client.patch(NODES, "", node, {"spec": {"taints": list(taints)}})
    system.watcher.resync()


def delete_pods(system: System) -> None:
    for each in system.pods():
        system.client.delete(PODS, each["metadata"]["namespace"], each["metadata"]["name"])
    system.watcher.resync()


def assigned_host(system: System) -> str:
    (pod_set,) = system.workload().pod_sets.all()
    assert pod_set.topology_assignment is not None
    (domain,) = pod_set.topology_assignment["domains"]
    return str(domain["values"][0])


@pytest.mark.parametrize("effect", ["NoSchedule", "NoExecute"])
def test_a_taint_that_is_not_tolerated_fails_the_node_once_the_pod_is_gone(by_host: System, effect: str) -> None:
    node = running(by_host)
    set_taints(by_host, node, {**TAINT, "effect": effect})
    assert by_host.workload().unhealthy_nodes == [], "its pod keeps running"
    delete_pods(by_host)
    assert by_host.workload().unhealthy_nodes == [node]
    by_host.turn()
    by_host.turn()
    assert by_host.workload().unhealthy_nodes == []
    assert assigned_host(by_host) != node
    assert {each["spec"]["nodeName"] for each in by_host.pods()} == {assigned_host(by_host)}


@pytest.mark.parametrize(
    ("toleration", "fails"),
    [(TOLERATION, False), ({**TOLERATION, "tolerationSeconds": 0}, True), ({**TOLERATION, "value": "no"}, True)],
)
def test_only_a_lasting_toleration_keeps_a_node(by_host: System, toleration: JsonObject, fails: bool) -> None:
    node = running(by_host, tolerations=[toleration])
    set_taints(by_host, node, TAINT)
    delete_pods(by_host)
    assert by_host.workload().unhealthy_nodes == ([node] if fails else [])


def test_a_flavor_tolerates_for_its_pods(by_host: System) -> None:
    ResourceFlavor.objects.update(tolerations=[TOLERATION])
    node = running(by_host)
    set_taints(by_host, node, TAINT)
    delete_pods(by_host)
    assert by_host.workload().unhealthy_nodes == []


def test_a_preference_against_a_node_does_not_fail_it(by_host: System) -> None:
    node = running(by_host)
    set_taints(by_host, node, {**TAINT, "effect": "PreferNoSchedule"})
    delete_pods(by_host)
    assert by_host.workload().unhealthy_nodes == []


def test_a_node_that_is_not_ready_fails_once_its_pods_are_gone_however_long_it_takes(by_host: System) -> None:
    set_placement(by_host.cluster, PlacementScope.DEVICES)
    by_host.engine = Engine(by_host.cluster, "next", clock=by_host.now)
    node = running(by_host)
    by_host.chaos(nodes={node: "not-ready"})
    by_host.watcher.resync()
    by_host.advance(31)
    by_host.watcher.resync()
    assert by_host.workload().unhealthy_nodes == [], "the cluster chose the node, and its pod may still run"
    delete_pods(by_host)
    assert by_host.workload().unhealthy_nodes == [node]


def test_a_node_that_is_well_again_is_no_longer_noted(by_host: System) -> None:
    node = running(by_host)
    set_taints(by_host, node, TAINT)
    delete_pods(by_host)
    assert by_host.workload().unhealthy_nodes == [node]
    set_taints(by_host, node)
    assert by_host.workload().unhealthy_nodes == []


def test_a_pod_that_was_let_go_to_a_failed_node_fails_and_its_successor_runs_elsewhere(by_host: System) -> None:
    by_host.submit(topology_job())
    by_host.engine.run()
    node = assigned_host(by_host)
    stranger = pod("stranger", nodeName=node, requests={"cpu": "8"})
    by_host.client.create(PODS, stranger)
    by_host.push()
    by_host.push()
    by_host.advance(3)
    by_host.push()
    (tied,) = [each for each in by_host.pods() if each["metadata"]["name"] != "stranger"]
    assert tied["spec"]["nodeSelector"][HOST] == node
    assert not tied["spec"].get("schedulingGates")
    assert not tied["spec"].get("nodeName"), "it has no room there"
    set_taints(by_host, node, TAINT)
    assert by_host.workload().unhealthy_nodes == [node]
    by_host.push()
    left = by_host.client.get(PODS, "team", tied["metadata"]["name"])
    assert left is not None
    assert left["status"]["phase"] == "Failed"
    (condition,) = [each for each in left["status"]["conditions"] if each["type"] == "TerminatedByKueue"]
    assert (condition["status"], condition["reason"]) == ("True", "UnschedulableOnAssignedNode")
    told = [event for event in by_host.client.list(EVENTS).items if event["reason"] == "PodTerminatedByKueue"]
    assert [event["involvedObject"]["name"] for event in told] == [tied["metadata"]["name"]]
    for _ in range(3):
        by_host.turn()
    alive = [each for each in by_host.pods() if each["metadata"]["name"] not in ("stranger", tied["metadata"]["name"])]
    assert [each["spec"]["nodeName"] for each in alive] == [assigned_host(by_host)]
    assert assigned_host(by_host) != node


def test_a_pod_that_waits_at_a_node_that_it_does_not_tolerate_fails_the_node(by_host: System) -> None:
    """The workload was admitted while its flavor's pods tolerated the taint."""
    ResourceFlavor.objects.update(tolerations=[TOLERATION])
    for name in ("node-01", "node-02"):
        set_taints(by_host, name, TAINT)
    by_host.submit(topology_job())
    by_host.engine.run()
    node = assigned_host(by_host)
    ResourceFlavor.objects.update(tolerations=[])
    by_host.push()
    by_host.push()
    by_host.advance(3)
    by_host.push()
    (tied,) = by_host.pods()
    assert (tied["spec"]["nodeSelector"][HOST], tied["spec"].get("nodeName")) == (node, None)
    by_host.watcher.resync()
    assert by_host.workload().unhealthy_nodes == [node]
