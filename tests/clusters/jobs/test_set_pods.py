"""The pods of a LeaderWorkerSet are members of their group's workload, at the cost of that group alone."""

from __future__ import annotations

import copy as copying

from clusters.api_objects import JsonObject
from clusters.jobs.framework.store import ObjectStore
from clusters.jobs.kinds.leaderworkerset import LeaderWorkerSet
from clusters.jobs.kinds.pod import group_name_of
from clusters.jobs.reading import NO_CLUSTER
from tests.clusters.test_pods_that_wait import leader_worker_set

_NAME = "leaderworkerset.sigs.k8s.io/name"


def set_object(kind: str, name: str) -> JsonObject:
    metadata = {"namespace": "team", "name": name, "uid": f"{kind}-{name}", "labels": {_NAME: "llm"}}
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": metadata}


def test_pods_are_marked_though_no_workload_can_be_made_for_other_groups() -> None:
    """The priority class is gone, which keeps a workload from being made and must not keep pods from being stopped."""
    job = leader_worker_set(1000)
    job["metadata"] |= {"namespace": "team", "uid": "8a532403-a76a-4ada-a56e-d900841158d8"}
    job["metadata"]["labels"]["kueue.x-k8s.io/priority-class"] = "gone"
    store = store_of(job)
    LeaderWorkerSet().reconcile_pods("team", "llm", NO_CLUSTER, store)
    marked = store.get("Pod", "team", "llm-0")
    assert marked is not None
    assert group_name_of(marked).startswith("leaderworkerset-llm-0-")
    assert store.list("Workload") == []


def test_pods_of_a_managers_set_join_the_workload_that_the_manager_made() -> None:
    """A worker cluster of MultiKueue gives the set another uid than the one that the workload is named after."""
    there = leader_worker_set(1)
    there["metadata"] |= {"namespace": "team", "uid": "8a532403-a76a-4ada-a56e-d900841158d8"}
    copy = copying.deepcopy(there)
    copy["metadata"] |= {"uid": "0c1f3a86-3a4f-4f0e-8d0e-2d8f0e6b7a11"}
    copy["metadata"]["annotations"] = {"kueue.x-k8s.io/multikueue-origin-uid": there["metadata"]["uid"]}
    names = {group_of_pod(there), group_of_pod(copy)}
    assert len(names) == 2
    copy["metadata"]["labels"]["kueue.x-k8s.io/multikueue-origin"] = "multikueue"
    assert group_of_pod(copy) == group_of_pod(there)


def test_pods_of_a_set_that_was_submitted_before_it_had_a_uid_join_its_workload() -> None:
    """They are not given the name that follows from the cluster's uid, unless a workload has it."""
    job = leader_worker_set(1)
    job["metadata"] |= {"namespace": "team", "uid": "8a532403-a76a-4ada-a56e-d900841158d8"}
    own = group_of_pod(job)
    ended = workload_of(job, "ended", 0)
    ended["status"] = {"conditions": [{"type": "Finished", "status": "True"}]}
    others = [workload_of(job, "second", 1), workload_of({"metadata": {"uid": "another"}}, "foreign", 0), ended]
    assert group_of_pod(job, *others) == own
    assert group_of_pod(job, *others, workload_of(job, "first", 0)) == "first"
    assert group_of_pod(job, workload_of(job, "first", 0), workload_of(job, own, 0)) == own


def test_a_pod_that_names_no_workload_that_is_there_is_given_the_one_of_its_group() -> None:
    """Earlier versions marked the pods of a submitted set with a name of which there is no workload."""
    job = leader_worker_set(1)
    job["metadata"] |= {"namespace": "team", "uid": "8a532403-a76a-4ada-a56e-d900841158d8"}
    store = store_of(job)
    LeaderWorkerSet().reconcile_pods("team", "llm", NO_CLUSTER, store)
    before = store.get("Pod", "team", "llm-0")
    assert before is not None
    store.write(workload_of(job, "first", 0))
    LeaderWorkerSet().reconcile_pods("team", "llm", NO_CLUSTER, store)
    after = store.get("Pod", "team", "llm-0")
    assert after is not None
    assert group_name_of(after) == "first" != group_name_of(before)
    store.write(workload_of(job, group_name_of(before), 0))
    LeaderWorkerSet().reconcile_pods("team", "llm", NO_CLUSTER, store)
    assert store.get("Pod", "team", "llm-0") == after, "its workload is there"


def workload_of(job: JsonObject, name: str, index: int) -> JsonObject:
    metadata = {
        "namespace": "team",
        "name": name,
        "annotations": {"kueue.x-k8s.io/component-workload-index": str(index)},
        "ownerReferences": [{"kind": "LeaderWorkerSet", "name": "llm", "uid": job["metadata"]["uid"]}],
    }
    return {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "Workload", "metadata": metadata}


def group_of_pod(job: JsonObject, *workloads: JsonObject) -> str:
    store = store_of(job)
    for workload in workloads:
        store.write(workload)
    LeaderWorkerSet().reconcile_pods("team", "llm", NO_CLUSTER, store)
    marked = store.get("Pod", "team", "llm-0")
    assert marked is not None
    return group_name_of(marked)


def store_of(job: JsonObject) -> ObjectStore:
    """The job with a StatefulSet and a pod of its first group."""
    owner = {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "name": "llm",
        "uid": "StatefulSet-llm",
        "controller": True,
    }
    pod = set_object("Pod", "llm-0") | {"apiVersion": "v1", "spec": {}, "status": {}}
    pod["metadata"] |= {"ownerReferences": [owner]}
    pod["metadata"]["labels"] |= {"leaderworkerset.sigs.k8s.io/group-index": "0"}
    return ObjectStore([copying.deepcopy(job), set_object("StatefulSet", "llm"), pod])
