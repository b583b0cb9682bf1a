"""The life of a Volcano Job: laws that hold of any job, and the rules that the recordings do not reach."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clusters.jobs.volcano.job_controller import JobController
from clusters.jobs.volcano.job_life import FINISHED, JobPhase, JobPod, PodPhase
from clusters.jobs.volcano.job_spec import JobAction, VolcanoJobSpec, read_duration, read_spec


def job(*tasks: dict[str, Any], **spec: Any) -> VolcanoJobSpec:
    return read_spec({"metadata": {"name": "j", "namespace": "ns", "uid": "1"}, "spec": {**spec, "tasks": [*tasks]}})


class Cluster:
    """A cluster that makes and deletes pods at once."""

    def __init__(self, spec: VolcanoJobSpec) -> None:
        self.controller = JobController(spec, self)
        self.controller.created()
        self.controller.may_create = True
        self.controller.settle()

    def create(self, pod: JobPod) -> None:
        self.controller.pod_added(pod)

    def delete(self, name: str) -> None:
        self.controller.pod_deleted(name)

    def change(self, name: str, phase: PodPhase, **fields: Any) -> None:
        self.controller.pod_changed(replace(self.controller.pods[name], phase=phase, **fields))
        self.controller.settle()

    @property
    def phase(self) -> JobPhase:
        return self.controller.status.phase


def test_a_job_runs_with_its_least_pods_and_completes() -> None:
    cluster = Cluster(job({"name": "a", "replicas": 2}, minAvailable=1))
    assert sorted(cluster.controller.pods) == ["j-a-0", "j-a-1"]
    cluster.change("j-a-0", PodPhase.RUNNING, ready=True)
    phases = [cluster.phase]
    for name in ("j-a-0", "j-a-1"):
        cluster.change(name, PodPhase.SUCCEEDED)
        phases.append(cluster.phase)
    assert phases == [JobPhase.RUNNING, JobPhase.RUNNING, JobPhase.COMPLETED]


def test_the_last_retry_fails_the_job() -> None:
    policy = {"event": "PodFailed", "action": "RestartJob"}
    cluster = Cluster(job({"name": "a", "replicas": 1}, maxRetry=2, policies=[policy]))
    phases = []
    for _ in range(2):
        cluster.change("j-a-0", PodPhase.RUNNING, ready=True)
        cluster.change("j-a-0", PodPhase.FAILED)
        phases.append(cluster.phase)
    assert phases == [JobPhase.PENDING, JobPhase.FAILED]
    assert cluster.controller.status.retry_count == 2


@pytest.mark.parametrize("leaves", [True, False], ids=["leaves Pending", "stays Pending"])
def test_a_delayed_action_is_done_unless_its_pod_leaves_pending(leaves: bool) -> None:
    policy = {"event": "PodPending", "action": "AbortJob", "timeout": "1m30s"}
    cluster = Cluster(job({"name": "a", "replicas": 1}, policies=[policy]))
    assert [waiting.due_seconds for waiting in cluster.controller.delayed.values()] == [90]
    if leaves:
        cluster.change("j-a-0", PodPhase.RUNNING, ready=True)
    cluster.controller.run_due(89)
    assert cluster.phase is not JobPhase.ABORTED
    cluster.controller.run_due(90)
    assert cluster.phase is (JobPhase.RUNNING if leaves else JobPhase.ABORTED)


def test_a_smaller_task_loses_its_last_pods() -> None:
    cluster = Cluster(job({"name": "a", "replicas": 3}))
    cluster.controller.spec_changed(job({"name": "a", "replicas": 1}))
    cluster.controller.settle()
    assert sorted(cluster.controller.pods) == ["j-a-0"]


def test_pods_wait_for_the_task_that_they_depend_on() -> None:
    worker = {"name": "b", "replicas": 2, "dependsOn": {"name": ["a"]}}
    cluster = Cluster(job({"name": "a", "replicas": 1}, worker, minAvailable=1))
    assert sorted(cluster.controller.pods) == ["j-a-0"]
    cluster.change("j-a-0", PodPhase.RUNNING, ready=False)
    assert sorted(cluster.controller.pods) == ["j-a-0"]
    cluster.change("j-a-0", PodPhase.RUNNING, ready=True)
    assert sorted(cluster.controller.pods) == ["j-a-0", "j-b-0", "j-b-1"]


ACTIONS = st.sampled_from([action for action in JobAction if action is not JobAction.SYNC_JOB])
CHANGES = st.lists(st.tuples(st.integers(0, 3), st.sampled_from(PodPhase) | ACTIONS), max_size=20)


@given(CHANGES, st.integers(1, 4), st.integers(1, 4))
def test_a_job_that_has_ended_stays_so_and_never_has_more_pods_than_its_tasks(
    changes: list[tuple[int, PodPhase | JobAction]], minimum: int, retries: int
) -> None:
    policy = {"event": "*", "action": "RestartTask"}
    cluster = Cluster(job({"name": "a", "replicas": 4, "policies": [policy]}, minAvailable=minimum, maxRetry=retries))
    ended = None
    for index, change in changes:
        if isinstance(change, JobAction):
            cluster.controller.commanded(change)
            cluster.controller.settle()
        elif f"j-a-{index}" in cluster.controller.pods:
            cluster.change(f"j-a-{index}", change, ready=change is PodPhase.RUNNING)
        assert len(cluster.controller.pods) <= 4
        assert cluster.controller.status.retry_count <= retries or change is JobAction.RESUME_JOB or ended
        if ended is not None:
            assert cluster.phase is ended
        ended = cluster.phase if cluster.phase in FINISHED else None


@pytest.mark.parametrize(("text", "seconds"), [("30s", 30), ("1h30m", 5400), ("0", 0), ("1.5s", 1.5), ("10ms", 0.01)])
def test_durations(text: str, seconds: float) -> None:
    assert read_duration(text) == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["", "10", "s", "1d", "-1s", "1s "])
def test_a_duration_without_a_unit_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="invalid duration"):
        read_duration(text)
