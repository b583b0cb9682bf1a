"""HAMi's handshake from the scheduler's side: the lock of a node, its holder, and what goes wrong in between."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from clusters.api_objects import NODES, PODS, JsonObject
from gpus.models import DeviceAllocation
from tests.clusters.system import System, gpu_job
from tests.simulated_cluster import pod

pytestmark = pytest.mark.django_db(transaction=True)

LOCK = "hami.io/mutex.lock"


@pytest.fixture
def decided(system: System) -> System:
    """A system with one admitted job of which the cluster has not heard yet."""
    system.submit(gpu_job(run_seconds=1000))
    system.engine.run()
    return system


def node_of(system: System) -> str:
    return DeviceAllocation.objects.get().node.name


def lock(system: System, text: str | None) -> None:
    system.client.patch(NODES, "", node_of(system), {"metadata": {"annotations": {LOCK: text}}})


def held(system: System, owner: str, seconds_ago: float = 10) -> str:
    return f"{datetime.fromtimestamp(system.now() - seconds_ago, UTC).isoformat()},default,{owner}"


def the_pod(system: System) -> JsonObject:
    (found,) = [found for found in system.pods() if found["metadata"]["namespace"] == "team"]
    return found


def noted(system: System) -> dict[str, str]:
    found: dict[str, str] = the_pod(system)["metadata"]["annotations"]
    return found


def test_a_node_that_another_pod_has_locked_is_waited_for(decided: System) -> None:
    decided.client.create(PODS, pod("other", schedulerName="hami-scheduler"))
    lock(decided, held(decided, "other"))
    decided.push()
    decided.push()
    waiting = the_pod(decided)
    assert "nodeName" not in waiting["spec"]
    # The decision is written, the device plugin has not been told to act on it.
    assert noted(decided)["hami.io/vgpu-node"] == node_of(decided)
    assert "hami.io/bind-phase" not in noted(decided)
    lock(decided, None)
    assert decided.push().bound == 1


@pytest.mark.parametrize("seconds_ago", [301, 10])
def test_a_lock_that_is_old_or_whose_holder_is_gone_is_taken(decided: System, seconds_ago: float) -> None:
    if seconds_ago > 300:
        decided.client.create(PODS, pod("other", schedulerName="hami-scheduler"))
    lock(decided, held(decided, "other", seconds_ago))
    decided.push()
    assert the_pod(decided)["spec"]["nodeName"] == node_of(decided)


def test_an_unreadable_lock_blocks_until_it_is_removed(decided: System) -> None:
    lock(decided, "a,b")
    decided.push()
    assert "nodeName" not in the_pod(decided)["spec"]
    lock(decided, None)
    assert decided.push().bound == 1


def test_a_sweep_that_was_cut_off_after_its_lock_is_finished_by_the_next(decided: System) -> None:
    lock(decided, held(decided, "other"))
    decided.client.create(PODS, pod("other", schedulerName="hami-scheduler"))
    decided.push()
    name = the_pod(decided)["metadata"]["name"]
    ours = f"{datetime.fromtimestamp(decided.now(), UTC).isoformat()},team,{name}"
    lock(decided, ours)
    phase = {"hami.io/bind-phase": "allocating", "hami.io/bind-time": "1"}
    decided.client.patch(PODS, "team", name, {"metadata": {"annotations": phase}})
    assert decided.push().bound == 1
    decided.advance(3)
    assert noted(decided)["hami.io/bind-phase"] == "success"


def test_a_sweep_that_was_cut_off_before_the_binding_is_finished_by_the_next(decided: System) -> None:
    """Such a pod has no gate any more, and no other scheduler can bind it."""
    decided.client.create(PODS, pod("other", schedulerName="hami-scheduler"))
    lock(decided, held(decided, "other"))
    decided.push()
    decided.push()
    name, node = the_pod(decided)["metadata"]["name"], node_of(decided)
    opened = {"schedulingGates": [], "nodeSelector": {"kubernetes.io/hostname": node}}
    phase = {"hami.io/bind-phase": "allocating", "hami.io/bind-time": "1"}
    decided.client.patch(PODS, "team", name, {"metadata": {"annotations": phase}, "spec": opened})
    lock(decided, None)
    assert decided.push().bound == 1
    assert the_pod(decided)["spec"]["nodeName"] == node


def test_a_node_that_is_gone_leaves_its_pod_unbound_and_no_lock_behind(decided: System) -> None:
    node = node_of(decided)
    decided.chaos(nodes={node: "gone"})
    report = decided.push()
    assert (report.bound, report.failed) == (0, 0)
    assert "nodeName" not in the_pod(decided)["spec"]


def test_a_pod_that_the_plugin_refused_is_replaced_and_bound_anew(decided: System) -> None:
    decided.push()
    name = the_pod(decided)["metadata"]["name"]
    decided.client.patch(PODS, "team", name, {"metadata": {"annotations": {"hami.io/bind-phase": "odd"}}})
    decided.advance(2)
    assert decided.client.get(PODS, "team", name) is not None
    for _ in range(8):
        decided.turn(5)
    phases = {found["metadata"]["name"]: found["status"]["phase"] for found in decided.pods()}
    assert phases.pop(name) == "Failed"
    assert list(phases.values()) == ["Running"]


def test_the_annotations_come_in_hamis_order(decided: System) -> None:
    decided.push()
    (found,) = decided.pods()
    written = found["metadata"]["annotations"]
    uuid = DeviceAllocation.objects.get().device_uuid
    assert written["hami.io/vgpu-devices-allocated"] == f"{uuid},NVIDIA,4000,30:;"
    assert written["hami.io/vgpu-devices-to-allocate"] == f"{uuid},NVIDIA,4000,30:;"
    assert written["hami.io/vgpu-time"] == written["hami.io/bind-time"] == str(int(decided.now()))
    assert written["hami.io/bind-phase"] == "allocating"
    node = decided.client.get(NODES, "", node_of(decided))
    assert node is not None
    assert node["metadata"]["annotations"][LOCK].endswith(f",team,{found['metadata']['name']}")
