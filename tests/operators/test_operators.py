"""Jobs that operators of real releases run: they wait, start, are preempted, run again, are resized, fail and end."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Sequence
from functools import partial

import pytest

from clusters.api_objects import PODS, JsonObject
from clusters.jobs.registry import JOB_KINDS
from queues.manifests.kueue_keys import ELASTIC_JOB
from queues.models import Workload
from tests.clusters.every_kind import RUN_SECONDS, pods_of, with_values
from tests.clusters.test_pods_that_wait import RUNTIME, RUNTIMES
from tests.clusters.webhook.served import ServedWebhook
from tests.kubernetes.control_plane import ControlPlane
from tests.kubernetes.operators import install_definitions
from tests.kubernetes.system import System
from tests.kubernetes.test_kinds import (
    LONG,
    end,
    end_all,
    end_the_higher_one,
    long_jobs_of,
    make,
    make_all,
    name_of,
    preempt_all,
    rows,
    running,
    serves,
)
from tests.operators.ray_dashboard import RayDashboard
from tests.operators.released import KINDS, RELEASES, ReleasedOperator

_PATIENCE = 240.0
_ENDING = tuple(kind for kind in KINDS if not serves(kind))
_SERVING = tuple(kind for kind in KINDS if serves(kind))


@pytest.fixture(scope="session")
def dashboard() -> Iterator[RayDashboard]:
    """It answers for the heads of all Ray clusters."""
    with RayDashboard() as served:
        yield served


@pytest.fixture(scope="session")
def released(
    plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory, dashboard: RayDashboard
) -> Iterator[list[ReleasedOperator]]:
    """All of them at work."""
    folder = tmp_path_factory.mktemp("operators")
    with contextlib.ExitStack() as ending:
        yield [
            ending.enter_context(
                ReleasedOperator(release, plane, folder, dashboard.url if release.asking_kinds else "")
            )
            for release in RELEASES
        ]


@pytest.fixture
def operators(system: System, released: list[ReleasedOperator]) -> Iterator[list[ReleasedOperator]]:
    """None has ended when the test has, and no job is left."""
    install_definitions(system.admin)
    if system.admin.get(RUNTIMES, "", "torch") is None:
        system.admin.create(RUNTIMES, _runtime())
    yield released
    for kind in KINDS:
        for item in system.admin.list(JOB_KINDS[kind].resource, "team").items:
            system.admin.delete(JOB_KINDS[kind].resource, "team", item["metadata"]["name"])
    for each in released:
        each.check()


def _runtime() -> JsonObject:
    """The runtime of TrainJobs, whose pods are not tried again."""
    made: JsonObject = with_values(RUNTIME, {RUN_SECONDS: str(LONG)})
    for replicated in made["spec"]["template"]["spec"]["replicatedJobs"]:
        replicated["template"]["spec"]["backoffLimit"] = 0
    return made


def _tried_once(kind: str) -> list[JsonObject]:
    """The manifests of a job whose pods are not tried again."""
    [job] = long_jobs_of(kind)
    for replicated in job["spec"].get("replicatedJobs") or ():
        replicated["template"]["spec"]["backoffLimit"] = 0
    if kind == "MPIJob":
        job["spec"]["runPolicy"] = {"backoffLimit": 0}
    return [job]


def until_running(system: System, operators: list[ReleasedOperator], wanted: dict[str, int]) -> None:
    try:
        system.until(f"running: {wanted}", lambda: running(system) == wanted, _PATIENCE)
    except AssertionError as late:
        said = "\n".join(each.said() for each in operators)
        raise AssertionError(f"running: {running(system)} instead of {wanted}\n{late}\n{said}") from late


def test_jobs_of_released_operators_are_preempted_run_again_and_end(
    system: System,
    plane: ControlPlane,
    operators: list[ReleasedOperator],
    webhook: ServedWebhook,
    dashboard: RayDashboard,
) -> None:
    wanted = make_all(system, plane, KINDS)
    until_running(system, operators, wanted)
    preempt_all(system, plane)
    end_the_higher_one(system)
    until_running(system, operators, wanted)
    assert dashboard.end("SUCCEEDED") > 0
    end_all(system, plane, wanted)


def test_a_job_that_fails_finishes_its_workload_as_failed(
    system: System,
    plane: ControlPlane,
    operators: list[ReleasedOperator],
    webhook: ServedWebhook,
    dashboard: RayDashboard,
) -> None:
    system.turn()
    for kind in _ENDING:
        plane.kubectl("create", "-f", "-", manifests=_tried_once(kind))
    until_running(system, operators, {kind: pods_of(kind) for kind in _ENDING})
    assert dashboard.end("FAILED") > 0
    end(system, phase="Failed")
    wanted = dict.fromkeys(_ENDING, ("Finished", "Failed"))

    def outcomes() -> dict[str, tuple[str, str]]:
        return {kind: (str(row.status), row.reason) for kind, row in rows().items()}

    system.until(f"all of them have failed: {wanted}", lambda: outcomes() == wanted, _PATIENCE)


def test_a_failed_pod_of_a_serving_kind_is_replaced(
    system: System, plane: ControlPlane, operators: list[ReleasedOperator], webhook: ServedWebhook
) -> None:
    """The workload keeps its quota, and the pod in the failed one's place runs on it."""
    for kind in _SERVING:
        make(plane, kind)
    wanted = {kind: pods_of(kind) for kind in _SERVING}
    until_running(system, operators, wanted)
    admitted = {kind: row.uid for kind, row in rows().items()}
    before = {pod["metadata"]["uid"] for pod in system.pods()}
    for kind in _SERVING:
        _fail_one(system, kind)
    system.until("other pods have been made", lambda: {pod["metadata"]["uid"] for pod in system.pods()} - before)
    until_running(system, operators, wanted)
    assert {kind: row.uid for kind, row in rows().items()} == admitted


def _fail_one(system: System, kind: str) -> None:
    """The last pod of a kind's job fails."""
    last = max(pod["metadata"]["name"] for pod in system.pods() if pod["metadata"]["name"].startswith(name_of(kind)))
    status = {"status": {"phase": "Failed"}}
    system.admin.patch(PODS, "team", last, status, subresource="status")


def test_a_leader_worker_set_is_scaled(
    system: System, plane: ControlPlane, operators: list[ReleasedOperator], webhook: ServedWebhook
) -> None:
    """Each group is a workload: one more is admitted by itself, and one less gives its quota back."""
    make(plane, "LeaderWorkerSet")
    per_group = pods_of("LeaderWorkerSet")
    until_running(system, operators, {"LeaderWorkerSet": per_group})
    scale = ("scale", "leaderworkerset", name_of("LeaderWorkerSet"), "--namespace", "team")
    plane.kubectl(*scale, "--replicas=2")
    system.until("two groups run", lambda: system.phases() == ["Running"] * 2 * per_group, _PATIENCE)
    plane.kubectl(*scale, "--replicas=1")
    system.until("one group runs", lambda: system.phases() == ["Running"] * per_group, _PATIENCE)


def test_an_elastic_ray_cluster_is_resized(
    system: System, plane: ControlPlane, operators: list[ReleasedOperator], webhook: ServedWebhook
) -> None:
    """More workers are admitted while the others run, and fewer give their quota back."""
    plane.kubectl("create", "-f", "-", manifests=[_elastic("RayCluster")])
    system.until("two pods run", partial(_run, system, 2), _PATIENCE)
    first = {pod["metadata"]["uid"] for pod in system.pods()}
    for workers in (3, 1):
        _scale_workers(plane, "raycluster", name_of("RayCluster"), workers)
        system.until(f"{workers} workers run", partial(_run, system, 1 + workers), _PATIENCE)
        system.until("they have their quota", partial(_reserve, 1 + workers), _PATIENCE)
    assert len(first & {pod["metadata"]["uid"] for pod in system.pods()}) >= 1, "the head was not stopped"


def test_an_elastic_ray_job_follows_its_autoscaler(
    system: System,
    plane: ControlPlane,
    operators: list[ReleasedOperator],
    webhook: ServedWebhook,
    dashboard: RayDashboard,
) -> None:
    """Ray's autoscaler, a program in the head pod, changes the RayCluster: the job's workload gets that size."""
    job = _elastic("RayJob")
    cluster = job["spec"]["rayClusterSpec"]
    # The queue has no quota for memory, which the autoscaler's container requests by default.
    cluster |= {"enableInTreeAutoscaling": True, "autoscalerOptions": {"resources": {"requests": {"cpu": "250m"}}}}
    cluster["workerGroupSpecs"][0] |= {"minReplicas": 1, "maxReplicas": 5}
    plane.kubectl("create", "-f", "-", manifests=[job])
    system.until("two pods run", partial(_run, system, 2), _PATIENCE)
    first = {pod["metadata"]["uid"] for pod in system.pods()}
    cluster_name = _ray_cluster_of_the_job(system)
    _scale_workers(plane, "raycluster", cluster_name, 3)
    system.until("three workers run", partial(_run, system, 4), _PATIENCE)
    system.until("they have their quota", partial(_reserve, 4), _PATIENCE)
    # KubeRay deletes the workers that the autoscaler names, and no others.
    idle = [pod["metadata"]["name"] for pod in system.pods() if "-worker-" in pod["metadata"]["name"]][:2]
    _scale_workers(plane, "raycluster", cluster_name, 1, idle=idle)
    system.until("one worker runs", partial(_run, system, 2), _PATIENCE)
    system.until("its quota alone is held", partial(_reserve, 2), _PATIENCE)
    assert len(first & {pod["metadata"]["uid"] for pod in system.pods()}) >= 1, "the head was not stopped"
    assert dashboard.end("SUCCEEDED") == 1
    system.until("it has ended", lambda: rows()["RayJob"].status == "Finished", _PATIENCE)


def test_an_elastic_ray_job_without_an_autoscaler_holds_the_quota_of_its_own_spec(
    system: System, plane: ControlPlane, operators: list[ReleasedOperator], webhook: ServedWebhook
) -> None:
    """As in Kueue, which counts the workers of the job's spec. KubeRay copies that spec once, into the RayCluster."""
    plane.kubectl("create", "-f", "-", manifests=[_elastic("RayJob")])
    system.until("two pods run", partial(_run, system, 2), _PATIENCE)
    _scale_workers(plane, "rayjob", name_of("RayJob"), 3, within="/spec/rayClusterSpec")
    system.until("quota for three workers", partial(_reserve, 4), _PATIENCE)
    cluster = system.admin.get(JOB_KINDS["RayCluster"].resource, "team", _ray_cluster_of_the_job(system))
    assert cluster is not None
    assert cluster["spec"]["workerGroupSpecs"][0]["replicas"] == 1
    assert _run(system, 2)


def _elastic(kind: str) -> JsonObject:
    [job] = long_jobs_of(kind)
    job["metadata"]["annotations"] = {ELASTIC_JOB: "true"}
    return job


def _ray_cluster_of_the_job(system: System) -> str:
    [cluster] = system.admin.list(JOB_KINDS["RayCluster"].resource, "team").items
    name: str = cluster["metadata"]["name"]
    return name


def _scale_workers(
    plane: ControlPlane, plural: str, name: str, workers: int, *, within: str = "/spec", idle: Sequence[str] = ()
) -> None:
    """`idle`: the workers that leave, where Ray's autoscaler chooses them."""
    group = f"{within}/workerGroupSpecs/0"
    change: list[JsonObject] = [{"op": "replace", "path": f"{group}/replicas", "value": workers}]
    if idle:
        change.append({"op": "add", "path": f"{group}/scaleStrategy", "value": {"workersToDelete": list(idle)}})
    plane.kubectl("patch", plural, name, "--namespace", "team", "--type=json", "-p", json.dumps(change))


def _run(system: System, number: int) -> bool:
    """Whether there are so many pods, and all of them run."""
    return system.phases() == ["Running"] * number


def _reserve(pods: int) -> bool:
    """Whether one workload has quota, for so many pods."""
    reserved = [row for row in Workload.objects.exclude(status="Finished") if row.quota_reserved_at]
    return [sum(pod_set.count for pod_set in row.pod_sets.all()) for row in reserved] == [pods]
