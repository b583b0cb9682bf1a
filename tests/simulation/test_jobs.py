"""Jobs, Deployments and their pods live in time."""

from __future__ import annotations

from pathlib import Path

import pytest

from simulation.clock import VirtualClock
from simulation.cluster import SimulatedCluster
from tests.simulated_cluster import JOBS, NODES, PODS, TWO_NODES, Api, job, make_simulated, pod


@pytest.fixture
def api() -> Api:
    return Api(make_simulated())


def conditions(api: Api, name: str = "train") -> dict[str, str]:
    status = api.get(f"{JOBS}/{name}")["status"]
    return {entry["type"]: entry["status"] for entry in status.get("conditions", ())}


def test_a_job_makes_its_pods_and_completes(api: Api) -> None:
    api.create(JOBS, job(parallelism=2, completions=3, run_seconds=100))
    assert api.phases() == ["Pending", "Pending"]
    api.cluster.advance(3)
    assert api.phases() == ["Running", "Running"]
    assert api.get(f"{JOBS}/train")["status"]["ready"] == 2
    api.cluster.advance(100)
    assert api.phases() == ["Pending", "Succeeded", "Succeeded"]
    api.cluster.advance(110)
    status = api.get(f"{JOBS}/train")["status"]
    assert (status["succeeded"], status["active"], conditions(api)["Complete"]) == (3, 0, "True")
    assert status["completionTime"] == "2023-11-14T22:16:44Z"


def test_a_suspended_job_has_no_pods(api: Api) -> None:
    api.create(JOBS, job(suspend=True))
    api.cluster.advance(10)
    assert api.pods() == []
    assert conditions(api) == {"Suspended": "True"}
    api.patch(f"{JOBS}/train", {"spec": {"suspend": False}})
    api.cluster.advance(10)
    assert (api.phases(), conditions(api)) == (["Running"], {"Suspended": "False"})


def test_suspending_stops_the_pods_and_is_no_failure(api: Api) -> None:
    api.create(JOBS, job(parallelism=2, completions=2))
    api.cluster.advance(10)
    api.patch(f"{JOBS}/train", {"spec": {"suspend": True}})
    assert [bool(item["metadata"].get("deletionTimestamp")) for item in api.pods()] == [True, True]
    api.cluster.advance(5)
    status = api.get(f"{JOBS}/train")["status"]
    assert (api.pods(), status["failed"], status["active"], conditions(api)) == ([], 0, 0, {"Suspended": "True"})


def test_an_indexed_job_runs_each_index_once(api: Api) -> None:
    api.create(JOBS, job(parallelism=2, completions=3, completionMode="Indexed", run_seconds=10))
    api.cluster.advance(60)
    key = "batch.kubernetes.io/job-completion-index"
    assert sorted(item["metadata"]["annotations"][key] for item in api.pods()) == ["0", "1", "2"]
    assert api.get(f"{JOBS}/train")["status"]["completedIndexes"] == "0-2"


def test_failures_are_tried_again_after_a_while_until_the_limit(api: Api) -> None:
    api.create(JOBS, job(backoffLimit=1, run_seconds=10, annotations={"kueueweb.io/fail": "true"}))
    api.cluster.advance(13)
    assert api.phases() == ["Failed"]
    api.cluster.advance(8)
    assert api.phases() == ["Failed"]
    api.cluster.advance(30)
    status = api.get(f"{JOBS}/train")["status"]
    assert (api.phases(), status["failed"], conditions(api)["Failed"]) == (["Failed", "Failed"], 2, "True")
    assert status["conditions"][-1]["reason"] == "BackoffLimitExceeded"


def test_a_rate_fails_the_same_pods_in_every_run() -> None:
    def outcome() -> list[tuple[str, str]]:
        api = Api(make_simulated(fail_rate=0.5))
        for number in range(8):
            api.create(JOBS, job(f"job-{number}", run_seconds=5, backoffLimit=0))
        api.cluster.advance(20)
        return [(item["metadata"]["name"], item["status"]["phase"]) for item in api.pods()]

    first = outcome()
    assert {phase for _, phase in first} == {"Succeeded", "Failed"}
    assert outcome() == first


def test_the_time_scale_shortens_durations(api: Api) -> None:
    fast = Api(make_simulated(time_scale=10))
    fast.create(JOBS, job(run_seconds=100))
    fast.cluster.advance(10.3)
    assert fast.phases() == ["Succeeded"]


def test_the_deadline_ends_a_job(api: Api) -> None:
    api.create(JOBS, job(activeDeadlineSeconds=20, run_seconds=1000))
    api.cluster.advance(19)
    assert api.phases() == ["Running"]
    api.cluster.advance(5)
    assert (conditions(api)["Failed"], api.get(f"{JOBS}/train")["status"]["active"]) == ("True", 0)


def test_a_finished_job_goes_after_its_time_to_live(api: Api) -> None:
    api.create(JOBS, job(run_seconds=10, ttlSecondsAfterFinished=30))
    api.cluster.advance(41)
    assert api.names(JOBS) == ["train"]
    api.cluster.advance(5)
    assert (api.names(JOBS), api.pods()) == ([], [])


def test_a_pod_that_was_deleted_is_replaced(api: Api) -> None:
    api.create(JOBS, job())
    api.cluster.advance(5)
    (name,) = api.names(PODS)
    api.call("DELETE", f"{PODS}/{name}")
    api.cluster.advance(20)
    assert api.phases() == ["Running"]
    assert api.names(PODS) != [name]


def test_what_does_not_fit_waits_and_says_why(api: Api) -> None:
    api.create(PODS, pod("big", requests={"cpu": "9"}))
    condition = api.pods()[0]["status"]["conditions"][0]
    assert (condition["reason"], condition["message"]) == (
        "Unschedulable",
        "0/2 nodes are available: 2 Insufficient cpu.",
    )
    for number in range(3):
        api.create(JOBS, job(f"job-{number}", requests={"cpu": "6"}, run_seconds=10))
    assert [item["spec"].get("nodeName") for item in api.pods()] == [None, "node-01", "node-02", None]
    api.cluster.advance(30)
    assert api.names(PODS, fieldSelector="status.phase=Succeeded") != []
    assert api.names(PODS, fieldSelector="status.phase=Pending") == ["big"]


def test_a_bound_pod_that_does_not_fit_is_refused_by_the_kubelet(api: Api) -> None:
    for name in ("first", "second"):
        api.create(PODS, pod(name, schedulerName="ours", requests={"cpu": "6"}))
        api.call("POST", f"{PODS}/{name}/binding", {"target": {"name": "node-01"}})
    api.cluster.advance(5)
    second = api.get(f"{PODS}/second")["status"]
    assert (second["phase"], second["reason"]) == ("Failed", "OutOfcpu")
    assert api.get(f"{PODS}/first")["status"]["phase"] == "Running"


def test_a_deployment_keeps_its_replicas(api: Api) -> None:
    deployments = "/apis/apps/v1/namespaces/default/deployments"
    labels = {"app": "web"}
    spec = {"containers": [{"name": "main", "image": "web"}]}
    body = {
        "metadata": {"name": "web"},
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": spec},
        },
    }
    api.create(deployments, body)
    api.cluster.advance(5)
    assert api.phases() == ["Running", "Running"]
    assert api.get(f"{deployments}/web")["status"]["availableReplicas"] == 2
    api.call("DELETE", f"{PODS}/{api.names(PODS)[0]}")
    api.cluster.advance(5)
    assert api.phases() == ["Running", "Running"]
    api.patch(f"{deployments}/web", {"spec": {"replicas": 1}})
    api.cluster.advance(5)
    assert api.phases() == ["Running"]
    api.patch(f"{deployments}/web", {"spec": {"template": {"spec": {"containers": [{"name": "main", "image": "v2"}]}}}})
    api.cluster.advance(5)
    assert [item["spec"]["containers"][0]["image"] for item in api.pods()] == ["v2"]


def test_pods_of_a_node_that_is_gone_go_and_are_made_anew_elsewhere(api: Api) -> None:
    api.create(JOBS, job(run_seconds=100))
    api.cluster.advance(5)
    api.cluster.set_node_state("node-01", "gone")
    api.cluster.settle()
    api.cluster.advance(30)
    assert [item["spec"]["nodeName"] for item in api.pods()] == ["node-02"]


def test_a_node_that_is_not_ready_is_tainted_and_loses_its_pods_after_a_while() -> None:
    api = Api(make_simulated(eviction_seconds=60))
    api.create(PODS, pod(annotations={"kueueweb.io/run-seconds": "1000"}))
    api.cluster.advance(5)
    api.cluster.set_node_state("node-01", "not-ready")
    api.cluster.settle()
    taints = api.get(f"{NODES}/node-01")["spec"]["taints"]
    assert {taint["key"] for taint in taints} == {"node.kubernetes.io/not-ready"}
    api.cluster.advance(61)
    assert api.pods()[0]["metadata"]["deletionTimestamp"]
    api.cluster.advance(1000)
    # Nobody can say that a pod stopped on a node that does not answer.
    assert api.names(PODS) == ["worker"]
    api.cluster.set_node_state("node-01", "ready")
    api.cluster.advance(5)
    assert (api.names(PODS), api.get(f"{NODES}/node-01")["spec"]["taints"]) == ([], [])


def test_a_cordoned_node_takes_no_new_pods(api: Api) -> None:
    api.cluster.set_node_state("node-01", "cordoned")
    api.create(PODS, pod())
    assert api.get(f"{PODS}/worker")["spec"]["nodeName"] == "node-02"


def test_the_same_seed_gives_the_same_objects() -> None:
    def run() -> list[dict[str, object]]:
        api = Api(make_simulated())
        api.create(JOBS, job(parallelism=3, completions=3))
        api.cluster.advance(100)
        return [*api.pods(), *api.get(JOBS)["items"]]

    assert run() == run()


def test_a_snapshot_carries_everything_over_a_restart(tmp_path: Path) -> None:
    path = tmp_path / "state.json"
    clock = VirtualClock()
    before = SimulatedCluster(clock, seed="7", snapshot=path)
    for manifest in TWO_NODES.manifests():
        before.add(manifest)
    api = Api(before)
    api.create(JOBS, job(run_seconds=100))
    before.advance(50)
    version = before.store.resource_version
    uid = api.pods()[0]["metadata"]["uid"]
    before.save()

    after = Api(SimulatedCluster(clock, seed="another", snapshot=path))
    assert after.cluster.store.resource_version == version
    assert (after.phases(), after.pods()[0]["metadata"]["uid"]) == (["Running"], uid)
    after.cluster.advance(55)
    assert after.phases() == ["Succeeded"]
    assert after.get(f"{JOBS}/train")["status"]["succeeded"] == 1


def test_a_cluster_that_lost_its_state_does_not_reuse_versions() -> None:
    first = make_simulated()
    later = SimulatedCluster(VirtualClock(first.clock.now() + 60), seed="7")
    assert later.store.resource_version > first.store.resource_version


def test_fewer_pods_at_once_is_no_failure_and_ends_those_that_came_least_far(api: Api) -> None:
    api.create(JOBS, job(parallelism=12, backoffLimit=0, requests={"cpu": "2"}, run_seconds=1_000))
    api.cluster.advance(5)
    running = {pod["metadata"]["name"] for pod in api.pods() if pod["status"]["phase"] == "Running"}
    assert len(running) == 8
    api.patch(f"{JOBS}/train", {"spec": {"parallelism": 8}})
    api.cluster.advance(40)
    assert {pod["metadata"]["name"] for pod in api.pods()} == running
    api.patch(f"{JOBS}/train", {"spec": {"parallelism": 3}})
    assert api.get(f"{JOBS}/train")["status"]["active"] == 3
    assert (api.get(f"{JOBS}/train")["status"]["failed"], conditions(api)) == (0, {})


def test_an_indexed_job_that_shrinks_ends_its_last_indexes(api: Api) -> None:
    api.create(JOBS, job(parallelism=4, completions=4, completionMode="Indexed"))
    api.patch(f"{JOBS}/train", {"spec": {"parallelism": 2, "completions": 2}})
    api.cluster.advance(35)
    indexes = [pod["metadata"]["annotations"]["batch.kubernetes.io/job-completion-index"] for pod in api.pods()]
    assert sorted(indexes) == ["0", "1"]
