"""A waiting job starts by one request: the push sends back what the watcher saw, unless it has changed since."""

from __future__ import annotations

import pytest
from django.conf import LazySettings

from clusters.api_objects import NAMESPACES, JsonObject
from clusters.jobs.seen_jobs import keep_seen, seen_jobs
from tests.cluster_kinds import JOBS
from tests.clusters.system import System, gpu_job

pytestmark = pytest.mark.django_db(transaction=True)

READ = "GET /apis/batch/v1/namespaces/team/jobs/train"
WRITTEN = "PATCH /apis/batch/v1/namespaces/team/jobs/train"


@pytest.fixture
def waiting(system: System) -> System:
    """A system whose cluster has a job that waits and is admitted, but not told so yet."""
    system.client.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}})
    system.client.create(JOBS, gpu_job(suspend=True, run_seconds=1000))
    system.watcher.resync()
    system.engine.run()
    return system


def pushed(system: System) -> list[str]:
    """The requests about the job with the next sweep."""
    system.guard.requests.clear()
    system.push()
    return [request for request in system.guard.requests if "/jobs/" in request]


def live(system: System) -> JsonObject:
    job = system.client.get(JOBS, "team", "train")
    assert job is not None
    return job


def test_a_waiting_job_is_started_by_one_request(waiting: System) -> None:
    assert pushed(waiting) == [WRITTEN]
    assert live(waiting)["spec"]["suspend"] is False
    row = waiting.workload()
    assert (row.pushed_sequence, row.push_error) == (row.push_sequence, "")


def test_a_job_that_has_changed_since_is_read_and_keeps_the_change(waiting: System) -> None:
    waiting.client.patch(JOBS, "team", "train", {"metadata": {"annotations": {"owner": "alice"}}})
    assert pushed(waiting) == [WRITTEN, READ, WRITTEN]
    job = live(waiting)
    assert (job["spec"]["suspend"], job["metadata"]["annotations"]["owner"]) == (False, "alice")


def test_a_job_that_was_deleted_since_is_not_created_again(waiting: System) -> None:
    waiting.client.delete(JOBS, "team", "train")
    assert pushed(waiting) == [WRITTEN, READ]
    assert waiting.client.get(JOBS, "team", "train") is None
    assert waiting.workload().push_error == ""


def test_a_job_of_the_same_name_made_since_is_not_started_in_its_place(waiting: System) -> None:
    waiting.client.delete(JOBS, "team", "train")
    waiting.client.create(JOBS, gpu_job(suspend=True, run_seconds=1000))
    pushed(waiting)
    assert live(waiting)["spec"]["suspend"] is True


def test_a_job_that_stopped_and_starts_again_is_read(waiting: System) -> None:
    """Its status must be reset before its templates change, which is a write without a version."""
    pushed(waiting)
    waiting.advance(3)
    waiting.client.patch(JOBS, "team", "train", {"spec": {"suspend": True}})
    waiting.advance(3)
    waiting.watcher.resync()
    assert pushed(waiting)[0] == READ


def test_a_large_job_is_not_kept_but_read(system: System) -> None:
    system.client.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}})
    manifest = gpu_job(suspend=True, run_seconds=1000)
    manifest["metadata"]["annotations"] = {"notes": "x" * 40_000}
    system.client.create(JOBS, manifest)
    system.watcher.resync()
    system.engine.run()
    assert pushed(system) == [READ, WRITTEN]


def test_a_job_that_is_too_deep_for_the_encoder_is_not_kept_and_the_others_are(system: System) -> None:
    deep: object = "end"
    for _ in range(300):
        deep = {"more": deep}
    jobs = [gpu_job("plain", suspend=True), {**gpu_job("deep", suspend=True), "spec": {"template": deep}}]
    for number, job in enumerate(jobs):
        job["metadata"] |= {"uid": f"uid-{number}", "resourceVersion": "1"}
    keep_seen(system.cluster, jobs)
    assert [*seen_jobs(system.cluster, ["uid-0", "uid-1"])] == ["uid-0"]


def test_without_redis_a_waiting_job_is_read(system: System, settings: LazySettings) -> None:
    settings.REDIS_URL = "redis://127.0.0.1:1/0"
    system.client.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}})
    system.client.create(JOBS, gpu_job(suspend=True, run_seconds=1000))
    system.watcher.resync()
    system.engine.run()
    assert pushed(system) == [READ, WRITTEN]
    assert live(system)["spec"]["suspend"] is False
