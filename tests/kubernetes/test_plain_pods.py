"""Plain pods and groups of them on a real Kubernetes: what its API server lets be done to pods."""

from __future__ import annotations

from clusters.api_objects import PODS
from gpus.models import DeviceAllocation
from queues.models import Workload
from queues.services.workloads import hold, release
from tests.clusters.group_pods import KUEUE, found_pod, gpu_pod
from tests.kubernetes.device_plugin import slices_of
from tests.kubernetes.system import System

KEPT = f"{KUEUE}/managed"


def ring() -> Workload:
    """The group's workload."""
    return Workload.objects.get(name="ring")


def names(system: System) -> set[str]:
    return {pod["metadata"]["name"] for pod in system.pods()}


def test_a_group_of_ours_runs_is_evicted_runs_again_and_ends(system: System) -> None:
    for name in ("a", "b"):
        system.apply(gpu_pod(name, group="ring", total=2, run_seconds=12))
    system.until("both run", lambda: system.phases() == ["Running", "Running"])
    assert len({item for pod in system.pods() for item in slices_of(pod)}) == 2
    hold(system.cluster, [("team", "ring")], actor="alice")
    system.until("its pods are gone", lambda: not system.pods() and not DeviceAllocation.objects.exists())
    release(system.cluster, [("team", "ring")], actor="alice")
    system.until("it is finished", lambda: ring().reason == "Succeeded")
    assert ring().message == "Pods succeeded: 2/2."


def test_a_gated_group_that_someone_else_made_is_taken_over(system: System) -> None:
    system.admin.create(PODS, found_pod("a", group="ring", total=2, run_seconds=12))
    system.until("it waits for the other", lambda: ring().reason == "PodGroupIncomplete")
    system.admin.create(PODS, found_pod("b", group="ring", total=2, run_seconds=12, mib=8000))
    system.until("both run", lambda: system.phases() == ["Running", "Running"])
    for pod in system.pods():
        assert (pod["spec"].get("schedulingGates"), pod["metadata"].get("finalizers")) == (None, [KEPT])
        assert slices_of(pod)
    system.until("it is finished", lambda: ring().reason == "Succeeded")
    system.until("its pods are let go", lambda: not any(pod["metadata"].get("finalizers") for pod in system.pods()))


def test_an_evicted_group_that_was_found_goes_on_with_other_pods(system: System) -> None:
    for name in ("a", "b", "c"):
        system.admin.create(PODS, found_pod(name, group="ring", total=2))
        system.turn()
    system.until("two run and the third is gone", lambda: system.phases() == ["Running", "Running"])
    assert names(system) == {"a", "b"}
    hold(system.cluster, [("team", "ring")], actor="alice")
    system.until("its pods are stopped", lambda: system.phases() == ["Failed", "Failed"])
    assert names(system) == {"a", "b"}, "they keep their place until others have it"
    release(system.cluster, [("team", "ring")], actor="alice")
    for name in ("d", "e"):
        system.admin.create(PODS, found_pod(name, group="ring", total=2))
    system.until("the others run", lambda: system.phases() == ["Running", "Running"])
    assert names(system) == {"d", "e"}


def test_a_gated_pod_is_taken_over_and_a_deleted_one_is_let_go(system: System) -> None:
    system.admin.create(PODS, found_pod("large", mib=40_000))
    system.admin.create(PODS, found_pod("small", run_seconds=2))
    system.until("the small one has run", lambda: system.status("small") == "Finished")
    system.admin.patch(PODS, "team", "large", {"metadata": {"labels": {f"{KUEUE}/queue-name": "other"}}})
    system.until("its workload follows", lambda: system.workload("large").queue_name == "other")
    system.admin.delete(PODS, "team", "large")
    system.until("it is gone", lambda: "large" not in names(system))
    system.until("so is its workload", lambda: system.status("large") == "Finished")
