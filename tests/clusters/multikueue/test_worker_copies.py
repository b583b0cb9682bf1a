"""Jobs as a manager creates them in its workers."""

from __future__ import annotations

import copy

from clusters.api_objects import Kind
from clusters.jobs.kinds.job import BatchJob
from clusters.jobs.kinds.trainjob import TrainJob
from clusters.jobs.reading import NO_CLUSTER
from clusters.multikueue.worker_copies import job_copy, workload_copy

MANAGER = "kueue.x-k8s.io/manager"


def test_the_worker_s_webhook_adds_the_only_patch_of_kueue_to_a_train_job() -> None:
    kind = TrainJob()
    of_user = {"manager": "example.com/user", "trainingRuntimeSpec": {"template": {"spec": {"suspend": False}}}}
    job = {
        "apiVersion": kind.api_version,
        "kind": kind.kind,
        "metadata": {"name": "train", "namespace": "team"},
        "spec": {
            "runtimeRef": {"name": "torch"},
            "managedBy": "kueue.x-k8s.io/multikueue",
            "runtimePatches": [of_user],
        },
    }
    kind.complete(job, NO_CLUSTER)
    before = copy.deepcopy(job)
    made = job_copy(job, kind, "uid", "workload", "origin")
    assert made["spec"]["runtimePatches"] == [of_user]
    assert job == before
    kind.complete(made, NO_CLUSTER)
    assert [patch["manager"] for patch in made["spec"]["runtimePatches"]] == ["example.com/user", MANAGER]


def test_a_copy_waits_for_no_job_and_is_deleted_by_its_manager_alone() -> None:
    order = {"kueueweb.io/start-after": "prepare", "kueueweb.io/job-retain-policy": "delete", "team": "blue"}
    metadata = {"name": "train", "namespace": "team", "annotations": order}
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": {}}
    annotations = job_copy(job, BatchJob(), "uid", "workload", "origin")["metadata"]["annotations"]
    workload = workload_copy(
        {"metadata": metadata, "spec": {"podSets": []}},
        "owner",
        "origin",
        ("Job", "train"),
        Kind("kueue.x-k8s.io/v1beta2", "Workload", "workloads"),
    )
    for found in (annotations, workload["metadata"]["annotations"]):
        assert found["team"] == "blue"
        assert order.keys() & found.keys() == {"team"}
