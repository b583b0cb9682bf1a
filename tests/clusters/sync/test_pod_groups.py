"""Plain pods and groups of them: those that we make, and those that others made behind Kueue's gate."""

from __future__ import annotations

import logging
from base64 import b64decode

import orjson
import pytest

from clusters.api_objects import NAMESPACES, NODES, PODS, JsonObject
from clusters.tasks import release_pods
from foundation.redis_client import redis_client
from foundation.wake_ups import RELEASE_TASK
from gpus.models import DeviceAllocation
from queues.models import Job, LocalQueue, PodSet, ResourceFlavor, Topology, Workload, WorkloadEvent
from queues.services.workloads import cancel, delete_workloads, hold, release
from tests.clusters.group_pods import KUEUE, found_pod, gpu_pod
from tests.clusters.system import System, gpu_job, queued
from tests.factories import START
from tests.simulated_cluster import pod

pytestmark = pytest.mark.django_db(transaction=True)

_HOST = "kubernetes.io/hostname"
_LOCK = "hami.io/mutex.lock"
KEPT = f"{KUEUE}/managed"
_PUSH_QUEUE = "kueueweb:celery:push"
_GATES = [{"name": f"{KUEUE}/admission"}]


@pytest.fixture
def found(system: System) -> System:
    """A system whose cluster has the namespace `team`."""
    system.client.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}})
    return system


def phases(system: System) -> dict[str, str]:
    return {item["metadata"]["name"]: item["status"]["phase"] for item in system.pods()}


def apply(system: System, *manifests: JsonObject) -> None:
    for manifest in manifests:
        system.apply(manifest)


def turns(system: System, count: int = 4, seconds: float = 3.0) -> None:
    for _ in range(count):
        system.turn(seconds)


def lock_nodes(system: System, lock: str | None) -> None:
    """As HAMi's scheduler locks a node while it allocates a pod's devices there."""
    for node in system.client.list(NODES).items:
        system.client.patch(NODES, "", node["metadata"]["name"], {"metadata": {"annotations": {_LOCK: lock}}})


def waits() -> tuple[str, str]:
    row = Workload.objects.get()
    found = next(entry for entry in row.conditions if entry["type"] == "WaitingForReplacementPods")
    return found["status"], found["reason"]


class TestOurGroup:
    def test_it_waits_for_its_pods_then_runs_whole_on_the_devices_that_were_decided(self, system: System) -> None:
        apply(system, gpu_pod("a", group="ring", total=2))
        turns(system, 2)
        row = system.workload()
        assert (row.status, row.reason, system.pods()) == ("Pending", "PodGroupIncomplete", [])
        apply(system, gpu_pod("b", group="ring", total=2, mib=8000))
        turns(system)
        row.refresh_from_db()
        assert (row.status, row.pods_ready_at is not None) == ("Admitted", True)
        assert phases(system) == {"a": "Running", "b": "Running"}
        decided = {
            allocation.pod_set: (allocation.node.name, allocation.device_uuid)
            for allocation in DeviceAllocation.objects.select_related("node")
        }
        told = {
            item["metadata"]["labels"][f"{KUEUE}/podset"]: (
                item["spec"]["nodeName"],
                item["metadata"]["annotations"]["hami.io/vgpu-devices-allocated"].split(",")[0],
            )
            for item in system.pods()
        }
        assert told == decided
        assert len(told) == 2

    def test_a_deleted_pod_is_created_again_in_its_place(self, system: System) -> None:
        apply(system, gpu_pod("a", group="ring", total=2), gpu_pod("b", group="ring", total=2))
        turns(system)
        before = {item["metadata"]["name"]: item["metadata"]["uid"] for item in system.pods()}
        system.client.delete(PODS, "team", "a")
        turns(system, 6)
        assert phases(system) == {"a": "Running", "b": "Running"}
        after = {item["metadata"]["name"]: item["metadata"]["uid"] for item in system.pods()}
        assert (after["a"] != before["a"], after["b"] == before["b"]) == (True, True)

    def test_eviction_deletes_its_pods_and_they_come_again(self, system: System) -> None:
        apply(system, gpu_pod("a", group="ring", total=2), gpu_pod("b", group="ring", total=2))
        turns(system)
        hold(system.cluster, [("team", "ring")], actor="alice")
        turns(system)
        row = system.workload()
        assert (row.status, row.quota_reserved_at, system.pods()) == ("Pending", None, [])
        assert not DeviceAllocation.objects.exists()
        release(system.cluster, [("team", "ring")], actor="alice")
        turns(system)
        assert phases(system) == {"a": "Running", "b": "Running"}

    def test_pods_of_the_default_queue_in_a_namespace_that_is_not_managed_start_and_stop(self, system: System) -> None:
        selector = {"matchLabels": {"managed": "true"}}
        system.cluster.configuration = {"managedJobsNamespaceSelector": selector}
        system.cluster.save()
        LocalQueue.objects.create(
            cluster=system.cluster, namespace="team", name="default", cluster_queue_name="main", created_at=START
        )
        for name in ("a", "b"):
            manifest = gpu_pod(name, group="ring", total=2)
            del manifest["metadata"]["labels"][f"{KUEUE}/queue-name"]
            apply(system, manifest)
        turns(system)
        assert (system.workload().queue_name, phases(system)) == ("default", {"a": "Running", "b": "Running"})
        hold(system.cluster, [("team", "ring")], actor="alice")
        turns(system)
        assert (system.workload().quota_reserved_at, system.pods()) == (None, [])

    def test_a_cancelled_group_leaves_the_cluster(self, system: System) -> None:
        apply(system, gpu_pod("a", group="ring", total=2), gpu_pod("b", group="ring", total=2))
        turns(system)
        cancel(system.cluster, [("team", "ring")], actor="alice")
        turns(system)
        assert (system.pods(), system.workload().reason) == ([], "Cancelled")

    def test_pods_that_succeeded_are_not_run_again_after_an_eviction(self, system: System) -> None:
        apply(system, gpu_pod("a", group="ring", total=2, run_seconds=5), gpu_pod("b", group="ring", total=2))
        turns(system, 6)
        assert phases(system) == {"a": "Succeeded", "b": "Running"}
        assert PodSet.objects.get().reclaimable_count == 1
        hold(system.cluster, [("team", "ring")], actor="alice")
        turns(system)
        release(system.cluster, [("team", "ring")], actor="alice")
        turns(system)
        assert phases(system) == {"a": "Succeeded", "b": "Running"}
        assert (system.workload().status, system.workload().pods_ready_at is not None) == ("Admitted", True)

    def test_the_device_of_a_pod_that_succeeded_is_free_for_others(self, system: System) -> None:
        for name, seconds in (("a", 5), ("b", 1000), ("c", 1000)):
            apply(system, gpu_pod(name, group="ring", total=3, run_seconds=seconds, mib=30_000))
        system.engine.run()
        system.submit(gpu_job("next", mib=30_000, cores=0, parallelism=2, completions=2, run_seconds=1000))
        system.engine.run()
        assert (system.workload("ring").status, system.workload("next").reason) == ("Admitted", "WaitingForDevices")
        turns(system, 8)
        assert system.workload("next").status == "Admitted"
        assert WorkloadEvent.objects.filter(workload_name="ring", reason="ReplicasReleased").count() == 1
        live = {item["metadata"]["name"]: item["status"]["phase"] for item in system.pods()}
        assert (live["b"], live["c"], sorted(live.values())) == ("Running", "Running", [*["Running"] * 4, "Succeeded"])

    def test_a_succeeded_pod_counts_after_its_deletion_and_readies_no_group(self, system: System) -> None:
        apply(system, gpu_pod("a", group="ring", total=2, run_seconds=5), gpu_pod("b", group="ring", total=2))
        turns(system, 6)
        hold(system.cluster, [("team", "ring")], actor="alice")
        turns(system)
        release(system.cluster, [("team", "ring")], actor="alice")
        system.engine.run()
        system.push()
        system.watcher.resync()
        assert (phases(system), system.workload().pods_ready_at) == ({"a": "Succeeded", "b": "Pending"}, None)
        system.client.delete(PODS, "team", "a")
        turns(system)
        Workload.objects.update(pushed_sequence=0)
        turns(system)
        assert phases(system) == {"b": "Running"}

    def test_pods_without_devices_get_their_flavors_nodes(self, system: System) -> None:
        manifest = queued(pod("a", annotations={f"{KUEUE}/pod-group-total-count": "1"}))
        manifest["metadata"]["labels"][f"{KUEUE}/pod-group-name"] = "ring"
        manifest["metadata"]["labels"]["rank"] = "7"
        manifest["metadata"]["annotations"][f"{KUEUE}/pod-group-pod-index-label"] = "rank"
        apply(system, manifest)
        system.engine.run()
        system.push()
        (made,) = system.pods()
        assert made["spec"]["nodeSelector"] == {"gpu": "on", "kubernetes.io/hostname": "node-01"}
        assert made["metadata"]["labels"][f"{KUEUE}/pod-group-pod-index"] == "7"

    def test_ranks_of_a_topology_are_indexes_in_the_group_and_a_repeated_push_changes_nothing(
        self, system: System
    ) -> None:
        Topology.objects.create(cluster=system.cluster, name="hosts", levels=[_HOST], created_at=START)
        ResourceFlavor.objects.filter(cluster=system.cluster).update(topology_name="hosts")
        for index in range(3):
            manifest = queued(pod(f"pod-{index}", requests={"cpu": "4"}))
            manifest["metadata"]["labels"] |= {f"{KUEUE}/pod-group-name": "ring", "rank": str(2 - index)}
            manifest["metadata"]["annotations"] |= {
                f"{KUEUE}/pod-group-total-count": "3",
                f"{KUEUE}/pod-group-pod-index-label": "rank",
                f"{KUEUE}/podset-preferred-topology": _HOST,
            }
            apply(system, manifest)
        turns(system)
        hosts = {item["metadata"]["name"]: item["spec"].get("nodeName") for item in system.pods()}
        assert (hosts["pod-2"], hosts["pod-1"], len(set(hosts.values()))) == (hosts["pod-1"], hosts["pod-2"], 2)
        before = [item["metadata"]["resourceVersion"] for item in system.pods()]
        Workload.objects.update(pushed_sequence=0)
        assert (system.push().failed, system.workload().push_error) == (0, "")
        assert [item["metadata"]["resourceVersion"] for item in system.pods()] == before


class TestFoundPods:
    def test_a_gated_pod_becomes_a_workload_and_is_ungated_on_its_devices(self, found: System) -> None:
        found.client.create(PODS, found_pod("a", run_seconds=50))
        found.watcher.resync()
        row = Job.objects.get()
        assert (row.kind, row.found_in_cluster, row.group_id) == ("Pod", True, None)
        turns(found)
        (live,) = found.pods()
        assert (live["status"]["phase"], live["spec"].get("schedulingGates", [])) == ("Running", [])
        assert live["metadata"].get("finalizers", []) == [KEPT], "as in Kueue, until it has ended"
        (held,) = DeviceAllocation.objects.select_related("node")
        assert live["spec"]["nodeName"] == held.node.name
        turns(found, 2, 60)
        assert found.workload().reason == "Succeeded"
        (live,) = found.pods()
        assert live["metadata"].get("finalizers", []) == []

    def test_only_gated_pods_with_a_queue_are_taken(self, found: System) -> None:
        plain = pod("plain", schedulingGates=_GATES)
        plain["metadata"]["namespace"] = "team"
        of_a_job = found_pod("owned")
        owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "train", "uid": "1", "controller": True}
        of_a_job["metadata"]["ownerReferences"] = [owner]
        running = gpu_pod("running")
        for manifest in (plain, of_a_job, running):
            found.client.create(PODS, manifest)
        found.watcher.resync()
        assert not Workload.objects.exists()

    def test_an_evicted_pod_is_deleted_and_so_ends_its_workload(self, found: System) -> None:
        found.client.create(PODS, found_pod("a"))
        turns(found)
        row = found.workload()
        hold(found.cluster, [(row.namespace, row.name)], actor="alice")
        turns(found)
        row.refresh_from_db()
        assert (found.pods(), row.status, row.reason) == ([], "Finished", "OwnerNotFound")

    def test_a_pod_that_is_evicted_before_it_was_bound_waits_again(self, found: System) -> None:
        """It carries its devices already, and was left so: the eviction never ended, and the devices stayed taken."""
        found.client.create(PODS, found_pod("a"))
        made = found.client.get(PODS, "team", "a")
        assert made is not None
        found.client.create(PODS, pod("other", schedulerName="hami-scheduler"))
        lock_nodes(found, f"{found.moment().isoformat()},default,other")
        turns(found, 2, 1)
        row = found.workload()
        live = found.client.get(PODS, "team", "a")
        assert live is not None
        assert (row.status, live["spec"]["schedulingGates"]) == ("Admitted", _GATES)
        assert "hami.io/vgpu-devices-allocated" in live["metadata"]["annotations"]
        hold(found.cluster, [(row.namespace, row.name)], actor="alice")
        turns(found, 3, 1)
        row.refresh_from_db()
        assert (row.quota_reserved_at, DeviceAllocation.objects.count()) == (None, 0)
        live = found.client.get(PODS, "team", "a")
        assert live is not None
        assert live["metadata"]["annotations"] == made["metadata"]["annotations"]
        assert {key for key in live["metadata"]["labels"] if "kueue" in key} == set(made["metadata"]["labels"])
        lock_nodes(found, None)
        release(found.cluster, [(row.namespace, row.name)], actor="alice")
        turns(found)
        row.refresh_from_db()
        assert (row.status, phases(found)["a"]) == ("Admitted", "Running")

    def test_a_waiting_pod_follows_to_another_queue(self, found: System) -> None:
        found.client.create(PODS, found_pod("a", mib=90_000))
        found.watcher.resync()
        found.client.patch(PODS, "team", "a", {"metadata": {"labels": {f"{KUEUE}/queue-name": "other"}}})
        found.watcher.resync()
        assert found.workload().queue_name == "other"

    def test_a_pod_of_the_same_name_is_another_one(self, found: System) -> None:
        found.client.create(PODS, found_pod("a", mib=90_000))
        found.watcher.resync()
        first = Workload.objects.get()
        found.client.delete(PODS, "team", "a")
        turns(found, 2)
        assert found.pods() == []
        found.client.create(PODS, found_pod("a"))
        turns(found)
        first.refresh_from_db()
        second = Workload.objects.exclude(pk=first.pk).get()
        assert (first.status, second.status) == ("Finished", "Admitted")

    def test_a_new_pod_with_the_name_of_a_finished_one_is_a_different_pod(self, found: System) -> None:
        found.client.create(PODS, found_pod("a"))
        turns(found)
        found.client.delete(PODS, "team", "a")
        turns(found, 2)
        found.client.create(PODS, found_pod("a", mib=2000))
        turns(found)
        assert set(Workload.objects.values_list("status", flat=True)) == {"Finished", "Admitted"}

    def test_a_pod_that_can_not_be_read_is_logged_once(self, found: System, caplog: pytest.LogCaptureFixture) -> None:
        found.client.create(PODS, found_pod("a", group="ring", total=0))
        with caplog.at_level(logging.WARNING, logger="clusters.sync.pod_groups"):
            found.watcher.resync()
            found.watcher.resync()
        assert [record.levelname for record in caplog.records] == ["WARNING"]


class TestFoundGroup:
    def test_it_waits_for_all_then_runs_and_ends(self, found: System) -> None:
        found.client.create(PODS, found_pod("a", group="ring", total=2, run_seconds=60))
        turns(found, 2)
        assert (found.workload().reason, waits()) == ("PodGroupIncomplete", ("True", "PodGroupIncomplete"))
        found.client.create(PODS, found_pod("b", group="ring", total=2, run_seconds=60))
        turns(found)
        assert phases(found) == {"a": "Running", "b": "Running"}
        turns(found, 2, 60)
        row = found.workload()
        assert (row.status, row.reason, row.message) == ("Finished", "Succeeded", "Pods succeeded: 2/2.")

    def test_what_is_too_much_is_deleted_the_latest_first(self, found: System) -> None:
        for name in ("a", "b", "c"):
            found.client.create(PODS, found_pod(name, group="ring", total=2))
            found.watcher.resync()
        turns(found)
        assert phases(found) == {"a": "Running", "b": "Running"}
        assert WorkloadEvent.objects.filter(reason="ExcessPodDeleted").count() == 1
        assert set(Job.objects.filter(kind="Pod").values_list("name", flat=True)) == {"a", "b"}

    def test_a_pod_that_is_deleted_before_it_has_a_row_is_let_go(self, found: System) -> None:
        found.client.create(PODS, found_pod("a", group="ring", total=2))
        found.client.delete(PODS, "team", "a")
        redis_client().delete(_PUSH_QUEUE)
        found.watcher.resync()
        assert not Job.objects.filter(kind="Pod").exists()
        messages = [orjson.loads(each) for each in redis_client().lrange(_PUSH_QUEUE, 0, -1)]
        (asked,) = [each for each in messages if each["headers"]["task"] == RELEASE_TASK]
        _, arguments, _ = orjson.loads(b64decode(asked["body"]))
        assert found.client.get(PODS, "team", "a") is not None, "Kueue's finalizer keeps it"
        release_pods(**arguments)
        assert found.client.get(PODS, "team", "a") is None

    def test_a_pod_that_lives_or_has_a_row_keeps_its_finalizer(self, found: System) -> None:
        for name in ("a", "b"):
            found.client.create(PODS, found_pod(name, group="ring", total=3))
        found.watcher.resync()
        found.client.create(PODS, found_pod("c", group="ring", total=3))
        found.client.delete(PODS, "team", "b")
        release_pods(found.cluster.name, [("team", name) for name in ("a", "b", "c")])
        for name in ("a", "b", "c"):
            pod = found.client.get(PODS, "team", name)
            assert pod is not None
            assert "kueue.x-k8s.io/managed" in pod["metadata"]["finalizers"]

    def test_an_evicted_group_waits_for_replacement_pods(self, found: System) -> None:
        for name in ("a", "b"):
            found.client.create(PODS, found_pod(name, group="ring", total=2))
        turns(found)
        hold(found.cluster, [("team", "ring")], actor="alice")
        turns(found)
        release(found.cluster, [("team", "ring")], actor="alice")
        turns(found, 2)
        assert phases(found) == {"a": "Failed", "b": "Failed"}
        assert (found.workload().status, waits()) == ("Pending", ("True", "Deactivated"))
        for name in ("c", "d"):
            found.client.create(PODS, found_pod(name, group="ring", total=2))
        turns(found)
        assert phases(found) == {"c": "Running", "d": "Running"}
        assert (found.workload().status, waits()) == ("Admitted", ("False", "PodsReady"))

    def test_a_pod_that_comes_as_another_goes_takes_its_place(self, found: System) -> None:
        for name in ("a", "b"):
            found.client.create(PODS, found_pod(name, group="ring", total=2))
        turns(found)
        found.client.delete(PODS, "team", "a")
        found.advance(5)
        found.client.create(PODS, found_pod("c", group="ring", total=2))
        turns(found)
        assert (phases(found), found.workload().status) == ({"b": "Running", "c": "Running"}, "Admitted")
        assert not WorkloadEvent.objects.filter(reason="ExcessPodDeleted").exists()

    def test_a_failed_pod_stays_until_another_one_replaces_it(self, found: System) -> None:
        for name in ("a", "b"):
            found.client.create(PODS, found_pod(name, group="ring", total=2))
        turns(found)
        found.client.delete(PODS, "team", "a")
        turns(found)
        assert phases(found) == {"a": "Failed", "b": "Running"}
        assert waits() == ("True", "PodsFailed")
        found.client.create(PODS, found_pod("c", group="ring", total=2))
        turns(found)
        assert phases(found) == {"b": "Running", "c": "Running"}
        assert waits() == ("False", "PodsReady")

    def test_a_pod_that_is_deleted_before_it_had_a_node_is_replaced(self, found: System) -> None:
        lock_nodes(found, f"{found.moment().isoformat()},default,other")
        found.client.create(PODS, pod("other", schedulerName="hami-scheduler"))
        for name in ("a", "b"):
            found.client.create(PODS, found_pod(name, group="ring", total=2))
        turns(found, 2, 1)
        found.client.delete(PODS, "team", "a")
        turns(found, 2, 1)
        assert waits() == ("True", "PodsFailed")
        found.client.create(PODS, found_pod("c", group="ring", total=2))
        lock_nodes(found, None)
        turns(found)
        assert phases(found) == {"b": "Running", "c": "Running", "other": "Pending"}

    def test_its_pods_lose_kueues_finalizer_when_it_ends(self, found: System) -> None:
        for name in ("a", "b"):
            found.client.create(PODS, found_pod(name, group="ring", total=2, run_seconds=60))
        turns(found)
        assert all(KEPT in (live["metadata"].get("finalizers") or ()) for live in found.pods())
        turns(found, 3, 60)
        assert phases(found) == {"a": "Succeeded", "b": "Succeeded"}
        assert all(KEPT not in (live["metadata"].get("finalizers") or ()) for live in found.pods())

    def test_pods_that_could_not_start_are_a_group_again_once_its_workload_is_deleted(self, found: System) -> None:
        """Kueue does the same. The pods' label of another pod set conflicts with the admission."""
        for name in ("a", "b"):
            made = found_pod(name, group="ring", total=2)
            made["metadata"]["labels"][f"{KUEUE}/podset"] = "another"
            found.client.create(PODS, made)
        turns(found)
        failed = found.workload()
        assert (failed.status, failed.reason) == ("Finished", "FailedToStart")
        assert not any(KEPT in (item["metadata"].get("finalizers") or ()) for item in found.pods())
        found.watcher.tick()
        assert found.workload().uid == failed.uid, "a finished workload that is there stays"
        assert delete_workloads(found.cluster, [("team", "ring")], actor="alice")
        found.advance(5)
        found.watcher.tick()
        again = found.workload()
        assert (again.uid != failed.uid, again.status) == (True, "Pending")
        assert sum(pod_set.count for pod_set in again.pod_sets.all()) == 2
        assert {row.name for row in Job.objects.filter(group=again.job)} == {"a", "b"}

    def test_a_group_that_fails_each_time_is_made_again_later_and_later(self, found: System) -> None:
        """It may preempt others each time."""
        made = found_pod("a", group="ring", total=1)
        made["metadata"]["labels"][f"{KUEUE}/podset"] = "another"
        found.client.create(PODS, made)
        waits = []
        for _ in range(3):
            turns(found)
            assert found.workload().reason == "FailedToStart"
            assert delete_workloads(found.cluster, [("team", "ring")], actor="alice")
            waits.append(0)
            while not Workload.objects.exists():
                found.advance(10)
                waits[-1] += 10
                found.watcher.tick()
        assert waits[0] <= 10 < 40 <= waits[1] <= 70 < 100 <= waits[2] <= 130

    def test_it_ends_with_its_namespace(self, found: System) -> None:
        for name in ("a", "b"):
            found.client.create(PODS, found_pod(name, group="ring", total=2))
        turns(found)
        found.client.delete(NAMESPACES, "", "team")
        turns(found, 5)
        assert found.client.get(NAMESPACES, "", "team") is None
        row = found.workload()
        assert row.status == "Finished"

    @pytest.mark.parametrize("watched", [True, False], ids=["seen in the watch", "found by a list"])
    def test_it_ends_when_none_of_its_pods_is_there_whatever_became_of_them(self, found: System, watched: bool) -> None:
        found.client.create(PODS, found_pod("short", group="ring", total=2, run_seconds=30))
        found.client.create(PODS, found_pod("long", group="ring", total=2))
        turns(found, 4)
        turns(found, 1, 60)
        assert phases(found) == {"short": "Succeeded", "long": "Running"}
        assert found.workload().status == "Admitted"
        for name in ("short", "long"):
            found.client.delete(PODS, "team", name)
            found.client.patch(PODS, "team", name, {"metadata": {"finalizers": None}})
            if watched:
                found.watcher.resync()
        found.client.delete(PODS, "team", "long")
        turns(found)
        assert found.pods() == []
        assert (found.workload().status, found.workload().reason) == ("Finished", "OwnerNotFound")

    def test_it_follows_its_first_pod_to_another_queue(self, found: System) -> None:
        for name in ("a", "b"):
            found.client.create(PODS, found_pod(name, group="ring", total=2, mib=90_000))
        turns(found, 2)
        for name, queue in (("b", "queue"), ("a", "other")):
            labels = {f"{KUEUE}/queue-name": "other"}
            found.client.patch(PODS, "team", name, {"metadata": {"labels": labels}})
            found.watcher.resync()
            assert found.workload().queue_name == queue

    def test_a_pod_of_another_shape_does_not_join_a_running_group(self, found: System) -> None:
        found.client.create(PODS, found_pod("a", group="ring", total=1))
        turns(found)
        found.client.create(PODS, found_pod("b", group="ring", total=1, mib=9000))
        turns(found, 2)
        assert phases(found) == {"a": "Running", "b": "Pending"}
        event = WorkloadEvent.objects.get(reason="ErrWorkloadCompose")
        assert "another shape" in event.message

    def test_a_group_without_pods_that_was_not_evicted_is_finished(self, found: System) -> None:
        found.client.create(PODS, found_pod("a", group="ring", total=2))
        turns(found, 2)
        found.client.delete(PODS, "team", "a")
        turns(found, 2)
        row = found.workload()
        assert (row.status, row.reason) == ("Finished", "OwnerNotFound")
        found.client.create(PODS, found_pod("b", group="ring", total=1))
        turns(found)
        assert (found.workload().status, phases(found)) == ("Admitted", {"b": "Running"})

    def test_in_mode_observe_no_workload_is_made_of_pods(self, found: System) -> None:
        found.cluster.mode = "observe"
        found.cluster.save()
        found.client.create(PODS, found_pod("a", group="ring", total=1))
        found.watcher.resync()
        assert not Workload.objects.exists()
