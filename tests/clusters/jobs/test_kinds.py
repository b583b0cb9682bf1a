"""What the status of each kind says."""

from __future__ import annotations

from typing import Any

import pytest

from clusters.jobs.running import JOB_KINDS, Progress, Stopping
from scheduling.model.vocabulary import FinishedReason


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        ({}, Progress()),
        ({"active": 2, "terminating": 1, "ready": 1, "succeeded": 3}, Progress(active=3, ready=1, succeeded=3)),
        (
            {"conditions": [{"type": "Complete", "status": "True", "message": "done"}], "succeeded": 1},
            Progress(FinishedReason.SUCCEEDED, "done", succeeded=1),
        ),
        (
            {"conditions": [{"type": "Failed", "status": "True", "message": "limit"}]},
            Progress(FinishedReason.FAILED, "limit"),
        ),
        ({"conditions": [{"type": "Failed", "status": "False"}]}, Progress()),
    ],
)
def test_a_jobs_status(status: dict[str, Any], expected: Progress) -> None:
    assert JOB_KINDS["Job"].progress({"spec": {}, "status": status}) == expected


@pytest.mark.parametrize(
    ("parallelism", "completions", "succeeded", "reclaimable"),
    [(3, 3, 0, 0), (3, 3, 1, 1), (3, 5, 2, 0), (3, 5, 3, 1), (1, 5, 3, 0), (3, None, 2, 0)],
)
def test_pods_that_are_not_needed_again(
    parallelism: int, completions: int | None, succeeded: int, reclaimable: int
) -> None:
    spec = {"parallelism": parallelism, "completions": completions}
    job = {"spec": spec, "status": {"succeeded": succeeded}}
    assert JOB_KINDS["Job"].progress(job).reclaimable == reclaimable


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        ({"phase": "Pending"}, Progress(active=1)),
        ({"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}, Progress(active=1, ready=1)),
        ({"phase": "Succeeded"}, Progress(FinishedReason.SUCCEEDED, "Pod succeeded", succeeded=1)),
        ({"phase": "Failed", "reason": "Evicted"}, Progress(FinishedReason.FAILED, "Evicted")),
    ],
)
def test_a_pods_status(status: dict[str, Any], expected: Progress) -> None:
    assert JOB_KINDS["Pod"].progress({"status": status}) == expected


def test_a_deployment_never_ends_by_itself() -> None:
    status = {"replicas": 3, "readyReplicas": 2}
    assert JOB_KINDS["Deployment"].progress({"status": status}) == Progress(active=3, ready=2)


def test_templates_are_read_and_written_where_the_kind_has_them() -> None:
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": []}}
    for kind, row in JOB_KINDS.items():
        manifest = row.with_template({"metadata": {"name": "x"}, "spec": {"other": 1}}, template)
        assert row.template(manifest)["spec"] == {"containers": []}, kind
        assert manifest["metadata"]["name"] == "x", kind
        assert row.workload_per_pod is (row.stopping is Stopping.DELETE_POD)
