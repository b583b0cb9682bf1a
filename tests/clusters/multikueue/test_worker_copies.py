"""Jobs as a manager creates them in its workers."""

from __future__ import annotations

import copy

from clusters.jobs.kinds.trainjob import TrainJob
from clusters.jobs.reading import NO_CLUSTER
from clusters.multikueue.worker_copies import job_copy

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
