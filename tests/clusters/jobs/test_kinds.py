"""What the status of each kind says, where the product asks more than the recordings of Kueue show."""

from __future__ import annotations

from typing import Any

import pytest

from clusters.jobs.framework.job_kind import Stopping
from clusters.jobs.reading import NO_CLUSTER
from clusters.jobs.registry import JOB_KINDS, ending_of
from scheduling.model.vocabulary import FinishedReason


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        ({}, None),
        (
            {"conditions": [{"type": "Complete", "status": "True", "message": "done"}], "succeeded": 1},
            (FinishedReason.SUCCEEDED, "done"),
        ),
        (
            {"conditions": [{"type": "Failed", "status": "True", "message": "limit"}]},
            (FinishedReason.FAILED, "limit"),
        ),
        ({"conditions": [{"type": "Failed", "status": "False"}]}, None),
    ],
)
def test_how_a_job_ended(status: dict[str, Any], expected: Any) -> None:
    assert ending_of(JOB_KINDS["Job"], {"spec": {}, "status": status}) == expected


SUSPENDED = {"type": "Suspended", "status": "True"}


@pytest.mark.parametrize(
    ("status", "stopped"),
    [
        ({"conditions": [SUSPENDED]}, True),
        ({}, False),
        ({"conditions": [SUSPENDED], "active": 1}, False),
        ({"conditions": [SUSPENDED], "terminating": 1}, False),
    ],
)
def test_a_suspended_job_has_stopped_when_its_controller_has_seen_it(status: dict[str, Any], stopped: bool) -> None:
    job = {"metadata": {"generation": 2}, "spec": {"suspend": True}, "status": status}
    assert JOB_KINDS["Job"].is_stopped(job) is stopped


@pytest.mark.parametrize(
    ("suspend", "status", "stopped"),
    [(True, {}, True), (False, {}, False), (True, {"active": 1}, False), (True, {"terminating": 1}, False)],
)
def test_a_job_that_was_created_suspended_need_not_wait_for_its_controller(
    suspend: bool, status: dict[str, Any], stopped: bool
) -> None:
    job = {"metadata": {"generation": 1}, "spec": {"suspend": suspend}, "status": status}
    assert JOB_KINDS["Job"].is_stopped(job) is stopped


@pytest.mark.parametrize(
    ("parallelism", "completions", "succeeded", "reclaimable"),
    [(3, 3, 0, 0), (3, 3, 1, 1), (3, 5, 2, 0), (3, 5, 3, 1), (1, 5, 3, 0), (3, None, 2, 2)],
)
def test_pods_that_are_not_needed_again(
    parallelism: int, completions: int | None, succeeded: int, reclaimable: int
) -> None:
    spec = {"parallelism": parallelism, "completions": completions}
    found = JOB_KINDS["Job"].reclaimable_pods({"spec": spec, "status": {"succeeded": succeeded}}, NO_CLUSTER) or []
    assert sum(each["count"] for each in found) == reclaimable


def test_templates_are_where_errors_say_that_they_are() -> None:
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": []}}
    for kind in JOB_KINDS.values():
        if kind.pod_template_path and kind.has_workload:
            ((name, found),) = kind.templates({"metadata": {"name": "x"}, "spec": {"template": template}})
            assert (name, found) == ("main", template), kind.kind


def test_what_is_stopped_pod_by_pod_says_how_to_find_its_pods() -> None:
    job = {"metadata": {"name": "x"}, "spec": {"selector": {"matchLabels": {"app": "web", "tier": "front"}}}}
    for kind in JOB_KINDS.values():
        assert bool(kind.selector_of_pods(job)) is (kind.stopping is Stopping.DELETE_PODS), kind.kind
    assert JOB_KINDS["StatefulSet"].selector_of_pods(job) == "app=web,tier=front"
