"""Jobs in the cluster become what the controller's pass writes of them, and nothing else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from kubernetes.client import Configuration

from clusters.api_objects import NAMESPACES, JsonObject, Kind
from clusters.client import ClusterClient, Listing
from clusters.jobs.cluster_objects import OneLook, RowsAndCluster
from clusters.jobs.framework.pod_set_info import PodSetInfo
from clusters.jobs.integrations import job_context
from clusters.jobs.live_job import look_at
from clusters.jobs.registry import JOB_KINDS
from clusters.jobs.whole_objects import add_placement
from clusters.push.desired_state import admitted_workload, flavors_of, job_source, places_of
from clusters.push.jobs import pushed_objects, suspendable_jobs
from clusters.push.sweep import push_pending
from queues.models import Job, Workload
from queues.services.workloads import hold, release
from tests.cluster_kinds import JOBS
from tests.clusters.system import System, gpu_job, queued
from tests.simulated_cluster import job

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def found(system: System) -> System:
    """A system whose cluster has the namespace `team`."""
    system.client.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}})
    return system


def live(system: System) -> JsonObject:
    there = system.client.get(JOBS, "team", "train")
    assert there is not None
    return there


def written(obj: Mapping[str, Any]) -> tuple[Any, Any]:
    """What a pass writes of a job."""
    return obj["spec"], obj["metadata"].get("annotations") or {}


def wanted(system: System) -> JsonObject | None:
    """The job as a pass over it writes it now; None where it leaves it as it is."""
    row = Job.objects.get()
    workloads = list(Workload.objects.exclude(status="Finished").prefetch_related("pod_sets").select_related("job"))
    source, flavors = job_source(row), flavors_of(system.cluster)
    assert source is not None

    def place(name: str, infos: Sequence[PodSetInfo]) -> None:
        (workload,) = [each for each in workloads if each.name == name]
        add_placement(source, admitted_workload(workload, flavors, places_of(system.cluster, workloads)), infos)

    objects = OneLook(system.cluster, RowsAndCluster(system.cluster, system.client))
    context = job_context(system.cluster.configuration, objects)
    return look_at(JOB_KINDS["Job"], live(system), row, workloads, context, place).job


def pushed_as_written(system: System) -> JsonObject:
    """Pushes, and the job that is there then: what the pass wrote before, and would write again."""
    expected = wanted(system)
    assert expected is not None
    system.push()
    there = live(system)
    assert written(there) == written(expected)
    assert wanted(system) is None
    return there


@pytest.mark.parametrize(
    "manifest",
    [gpu_job(suspend=True, run_seconds=1000), queued(job("train", suspend=True, parallelism=2, run_seconds=1000))],
    ids=["with devices", "without devices"],
)
def test_a_job_starts_and_stops_as_the_pass_writes_it(found: System, manifest: JsonObject) -> None:
    found.client.create(JOBS, manifest)
    found.watcher.resync()
    own = written(live(found))
    assert wanted(found) is None, "it waits for quota"
    found.engine.run()
    assert pushed_as_written(found)["spec"]["suspend"] is False
    found.advance(3)
    found.watcher.resync()
    hold(found.cluster, [("team", found.workload().name)], actor="alice")
    found.engine.run()
    assert written(pushed_as_written(found)) == own


class _BusyCluster(ClusterClient):
    """A cluster in which another controller changes the job between our read and our first write."""

    def __init__(self, system: System, change: Mapping[str, Any]) -> None:
        super().__init__(Configuration(host=system.cluster.server_url))
        self._system = system
        self._changes = [change]

    def patch(
        self, kind: Kind, namespace: str, name: str, patch: Mapping[str, Any], *, subresource: str = ""
    ) -> JsonObject:
        if self._changes:
            self._system.client.patch(JOBS, "team", "train", self._changes.pop())
        return super().patch(kind, namespace, name, patch, subresource=subresource)


def test_a_change_between_the_read_and_the_write_is_kept(found: System) -> None:
    found.client.create(JOBS, gpu_job(suspend=True, run_seconds=1000))
    found.watcher.resync()
    found.engine.run()
    theirs = {"metadata": {"annotations": {"example.com/seen": "yes"}}, "spec": {"backoffLimit": 3}}
    push_pending(found.cluster, _BusyCluster(found, theirs), found.now)
    spec, annotations = written(live(found))
    assert (spec["suspend"], spec["backoffLimit"], annotations["example.com/seen"]) == (False, 3, "yes")
    assert wanted(found) is None


STARTED = {"status": {"startTime": "2026-01-31T12:00:00Z"}}
"""The status of a stopped job that ran before: the API server accepts other templates once it says nothing of that."""


def test_a_change_before_the_status_is_written_is_kept(found: System) -> None:
    found.client.create(JOBS, gpu_job(suspend=True, run_seconds=1000))
    found.client.patch(JOBS, "team", "train", STARTED, subresource="status")
    found.watcher.resync()
    found.engine.run()
    push_pending(found.cluster, _BusyCluster(found, {"spec": {"backoffLimit": 3}}), found.now)
    spec, _ = written(live(found))
    assert (spec["suspend"], spec["backoffLimit"]) == (False, 3)
    assert wanted(found) is None


def test_a_submitted_job_that_changes_before_its_status_is_written_starts_with_the_next_sweep(found: System) -> None:
    found.apply(gpu_job(run_seconds=1000))
    found.turn()
    workload = found.workload()
    key = [(workload.namespace, workload.name)]
    hold(found.cluster, key, actor="alice")
    found.turn(3)
    release(found.cluster, key, actor="alice")
    found.engine.run()
    assert live(found)["spec"]["suspend"] is True
    found.client.patch(JOBS, "team", "train", STARTED, subresource="status")
    busy = _BusyCluster(found, {"metadata": {"annotations": {"example.com/seen": "yes"}}})
    push_pending(found.cluster, busy, found.now)
    assert live(found)["spec"]["suspend"] is True
    found.push()
    there = live(found)
    assert (there["spec"]["suspend"], there["metadata"]["annotations"]["example.com/seen"]) == (False, "yes")


class _SlowCluster(ClusterClient):
    """A cluster whose list of jobs takes so long that a user holds the workload meanwhile."""

    def __init__(self, system: System) -> None:
        super().__init__(Configuration(host=system.cluster.server_url))
        self._system = system
        self.lists = 0

    def list(self, kind: Kind, *arguments: Any, **options: Any) -> Listing:
        found = super().list(kind, *arguments, **options)
        if kind == JOBS:
            self.lists += 1
            hold(self._system.cluster, [("team", self._system.workload().name)], actor="alice")
            self._system.engine.run()
        return found


def test_a_job_whose_workload_is_held_while_jobs_are_listed_does_not_start(
    found: System, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pushed_objects, "_LIST_FROM", 1)
    monkeypatch.setattr(suspendable_jobs, "seen_jobs", lambda *_: {})
    found.client.create(JOBS, queued(job("train", suspend=True, run_seconds=1000)))
    found.watcher.resync()
    found.engine.run()
    assert found.workload().status == "Admitted"
    slow = _SlowCluster(found)
    push_pending(found.cluster, slow, found.now)
    assert slow.lists == 1
    assert live(found)["spec"]["suspend"] is True


def test_a_job_submitted_here_grows_only_when_its_next_slice_is_admitted(found: System) -> None:
    manifest = queued(job("train", parallelism=2, run_seconds=1000))
    manifest["metadata"]["annotations"] = {"kueue.x-k8s.io/elastic-job": "true"}
    found.apply(manifest)
    for _ in range(3):
        found.turn()
    found.apply({**manifest, "spec": {**manifest["spec"], "parallelism": 101}})  # its queue has 100 cpus
    for _ in range(3):
        found.turn()
    assert sorted(Workload.objects.values_list("status", flat=True)) == ["Admitted", "Pending"]
    assert (live(found)["spec"]["parallelism"], len(found.pods())) == (2, 2)
    found.apply({**manifest, "spec": {**manifest["spec"], "parallelism": 3}})
    for _ in range(3):
        found.turn()
    assert sorted(Workload.objects.values_list("status", flat=True)) == ["Admitted", "Finished"]
    assert (live(found)["spec"]["parallelism"], len(found.pods())) == (3, 3)
