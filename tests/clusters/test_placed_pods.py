"""Pods without devices get a node that has room for them, or wait and say why; the node is held and told."""

from __future__ import annotations

from typing import Any

import pytest

from accounts.models import Cluster
from accounts.services.cluster_settings import set_placement
from clusters.api_objects import PODS, JsonObject
from clusters.audit.auditor import audit
from queues.models import PodSet, ResourceFlavor
from scheduler.leader.engine import Engine
from scheduling.model.vocabulary import PlacementScope
from tests.clusters.system import System, queued
from tests.simulated_cluster import job, pod

pytestmark = pytest.mark.django_db(transaction=True)

HOST = "kubernetes.io/hostname"


def cpu_job(name: str, cpu: str, spec: JsonObject | None = None, **fields: Any) -> JsonObject:
    manifest = queued(job(name, requests={"cpu": cpu}, **fields))
    manifest["spec"]["template"]["spec"] |= spec or {}
    return manifest


def hosts(system: System, name: str) -> dict[str, int]:
    """How many pods of a job run on which node, each of them tied to it."""
    found: dict[str, int] = {}
    for each in system.pods():
        if each["metadata"]["name"].startswith(f"{name}-"):
            node = each["spec"]["nodeName"]
            assert each["spec"]["nodeSelector"][HOST] == node
            assert each["spec"].get("schedulerName", "default-scheduler") == "default-scheduler"
            found[node] = found.get(node, 0) + 1
    return found


def test_what_no_node_takes_is_not_admitted_and_says_why(system: System) -> None:
    system.submit(cpu_job("large", "50"))
    system.submit(cpu_job("picky", "1", {"nodeSelector": {"disk": "none"}}))
    system.turn()
    large, picky = system.workload("large"), system.workload("picky")
    assert (large.status, large.reason) == ("Pending", "WaitingForNodes")
    assert "2 have too little cpu (50 requested, 8 on the largest)" in large.message
    assert (picky.status, picky.reason) == ("Pending", "WaitingForNodes")
    assert "2 are not selected by its flavor, node selector and affinity" in picky.message


def test_a_node_is_held_told_and_given_back(system: System) -> None:
    for name in ("one", "two", "three"):
        system.submit(cpu_job(name, "6", run_seconds=100))
        system.advance(1)
    system.turn()
    assert hosts(system, "one") == {"node-01": 1}
    assert hosts(system, "two") == {"node-02": 1}
    waiting = system.workload("three")
    assert (waiting.status, waiting.reason) == ("Pending", "WaitingForNodes")
    assert "2 have too little cpu (6 requested, at most 2 free on a node)" in waiting.message
    system.engine = Engine(system.cluster, "next", clock=system.now)  # what is held survives a restart
    system.advance(30)
    system.turn()
    assert system.workload("three").status == "Pending"
    assert {violation.check.value for violation in audit(system.cluster, system.client, system.moment())} == set()
    PodSet.objects.filter(workload__job__name="one").update(requests={"cpu": 9_000})
    overfull = audit(system.cluster, system.client, system.moment())
    assert [(found.check.value, found.subject) for found in overfull] == [("nodes", "node-01/cpu")]
    PodSet.objects.filter(workload__job__name="one").update(requests={"cpu": 6_000})
    for _ in range(3):
        system.turn(60)
    assert system.workload("three").status in ("Admitted", "Finished")


def test_pods_of_a_gang_on_several_nodes_are_tied_one_by_one(system: System) -> None:
    system.submit(cpu_job("gang", "3", parallelism=3, completions=3, run_seconds=1000))
    for _ in range(2):
        system.turn()
    assert sorted(hosts(system, "gang").values()) == [1, 2]


def test_room_that_pods_of_others_take_is_not_given_away(system: System) -> None:
    for number in range(2):
        stranger = pod(f"stranger-{number}", nodeName=f"node-0{number + 1}")
        stranger["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "5"}}
        system.client.create(PODS, stranger)
    system.watcher.resync()
    system.submit(cpu_job("late", "4"))
    system.turn()
    assert system.workload("late").reason == "WaitingForNodes"


@pytest.mark.parametrize("setting", ["cluster", "flavor"])
def test_quota_alone_decides_where_the_cluster_or_the_flavor_says_so(system: System, setting: str) -> None:
    if setting == "cluster":
        Cluster.objects.update(placement="devices")
    else:
        ResourceFlavor.objects.update(quota_only=True)
    system.cluster.refresh_from_db()
    system.engine = Engine(system.cluster, "next", clock=system.now)
    system.submit(cpu_job("picky", "1", {"nodeSelector": {"disk": "none"}}))
    system.advance(30)
    system.turn()
    assert system.workload("picky").status == "Admitted"
    assert PodSet.objects.get().nodes == []


def test_a_cluster_that_places_devices_only_ties_no_other_pod_to_a_host(system: System) -> None:
    system.submit(cpu_job("picky", "1", {"nodeSelector": {"disk": "none"}}))
    system.submit(cpu_job("before", "1", run_seconds=1000))
    system.turn()
    assert system.workload("picky").reason == "WaitingForNodes"
    set_placement(system.cluster, PlacementScope.DEVICES)
    system.submit(cpu_job("gang", "1", parallelism=3, completions=3, run_seconds=1000))
    for _ in range(2):
        system.turn()
    assert {system.workload(name).status for name in ("picky", "before", "gang")} == {"Admitted"}
    assert PodSet.objects.get(workload__job__name="before").nodes == ["node-01"]  # what is admitted stays
    specs = [each["spec"] for each in system.pods() if each["metadata"]["name"].startswith("gang-")]
    assert [spec["nodeSelector"] for spec in specs] == [{"gpu": "on"}] * 3
    assert not any(spec.get("schedulingGates") for spec in specs)
