"""The next slice of an elastic job repeats the marks of running pods, as in Kueue, but none that a tenant made up."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from clusters.api_objects import JsonObject
from clusters.jobs.framework.manifest import annotations_of, labels_of
from clusters.jobs.live_job import own_infos
from clusters.jobs.looks import with_marks
from queues.manifests.workload import PodSetSpec, WorkloadSpec
from queues.models import Workload

_DOMAIN = "kueue.x-k8s.io"
_SLICE = f"{_DOMAIN}/workload-slice-name"
_REPLACED = f"{_DOMAIN}/workload-slice-replacement-for"
MARKS = {f"{_DOMAIN}/podset": "main", f"{_DOMAIN}/cluster-queue-name": "cq", f"{_DOMAIN}/local-queue-name": "queue"}


def admitted(name: str = "job-train-1") -> Workload:
    return Workload(
        name=name, queue_name="queue", cluster_queue_name="cq", admitted_at=datetime(2026, 1, 1, tzinfo=UTC),
        annotations={_SLICE: "job-train-0"},
    )  # fmt: skip


def next_slice(labels: dict[str, str], workload: str, replaces: str = "team/job-train-1") -> JsonObject:
    metadata = {"labels": labels, "annotations": {f"{_DOMAIN}/workload": workload}}
    pod_sets = [{"name": "main", "count": 4, "template": {"metadata": metadata, "spec": {}}}]
    annotations = {_REPLACED: replaces} if replaces else {}
    return {"metadata": {"name": "job-train-2", "annotations": annotations}, "spec": {"podSets": pod_sets}}


def spec() -> WorkloadSpec:
    template = {"metadata": {"labels": {"app": "x"}}, "spec": {}}
    return WorkloadSpec("team", "", "queue", (PodSetSpec("main", 4, template, {}),))


@pytest.mark.parametrize("named", ["job-train-1", "job-train-0"], ids=["the last slice", "the first one"])
def test_the_marks_of_the_admission_are_repeated(named: str) -> None:
    [pod_set] = with_marks(spec(), next_slice(MARKS, named), [admitted()]).pod_sets
    assert labels_of(pod_set.template) == {"app": "x", **MARKS}
    assert annotations_of(pod_set.template) == {f"{_DOMAIN}/workload": named}


def test_values_that_no_admission_gave_and_other_keys_are_not_repeated() -> None:
    forged = {**dict.fromkeys(MARKS, "other"), "kueueweb.io/workload-uid": "1", "queue": "queue"}
    [pod_set] = with_marks(spec(), next_slice(forged, "job-of-another"), [admitted()]).pod_sets
    assert pod_set.template["metadata"] == {"labels": {"app": "x"}}


def test_a_slice_that_replaces_none_and_one_of_a_job_that_never_ran_have_the_jobs_own_templates() -> None:
    waiting = Workload(name="job-train-1", queue_name="queue", cluster_queue_name="cq", annotations={})
    assert with_marks(spec(), next_slice(MARKS, "job-train-1", replaces=""), [admitted()]) == spec()
    assert with_marks(spec(), next_slice(MARKS, "job-train-1"), [waiting]).pod_sets[0].template["metadata"] == {
        "labels": {"app": "x", f"{_DOMAIN}/podset": "main"}
    }


def test_a_stopped_job_gets_its_templates_back_without_the_marks_that_its_slice_repeats() -> None:
    """With another queue's name its next start would be a conflict."""
    shown = next_slice({"app": "x", **MARKS}, "job-train-1")
    [info] = own_infos(shown) or []
    assert (info.labels, info.annotations) == ({"app": "x"}, {})
    shown["metadata"]["annotations"] = {}
    [first] = own_infos(shown) or []
    assert first.labels == {"app": "x", **MARKS}, "only a slice repeats marks"
