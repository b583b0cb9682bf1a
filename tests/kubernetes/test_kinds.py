"""A job of every kind on a real Kubernetes: kubectl makes it, our webhook is asked, it is preempted and runs again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

import pytest
import yaml

from clusters.api_objects import PODS, JsonObject
from clusters.jobs.framework.job_kind import Stopping
from clusters.jobs.registry import JOB_KINDS
from queues.models import FlavorQuota, Workload
from tests.clusters.every_kind import EVERY_KIND, POD_GROUP, RUN_SECONDS, jobs_of, pods_of, with_values
from tests.clusters.system import gpu_job
from tests.clusters.test_pods_that_wait import RUNTIME, RUNTIMES
from tests.clusters.webhook.served import ServedWebhook
from tests.kubernetes.control_plane import ControlPlane
from tests.kubernetes.operators import Operators, install_definitions
from tests.kubernetes.system import System

LONG: Final = 3600
"""Seconds that pods run, unless the test ends them."""
_PATIENCE: Final = 240.0
HIGH: Final[JsonObject] = {
    "apiVersion": "kueue.x-k8s.io/v1beta2",
    "kind": "WorkloadPriorityClass",
    "metadata": {"name": "high"},
    "value": 1000,
}
EXAMPLES: Final = sorted((Path(__file__).resolve().parents[2] / "docs" / "examples").glob("*.yaml"))
MADE_BY_CRON: Final = "made-by-cron"
"""What `kubectl create job --from` makes of the CronJob."""


@pytest.fixture
def operators(system: System) -> Iterator[Operators]:
    """Every operator is installed, and none meets a refusal."""
    install_definitions(system.admin)
    if system.admin.get(RUNTIMES, "", "torch") is None:
        system.admin.create(RUNTIMES, with_values(RUNTIME, {RUN_SECONDS: str(LONG)}))
    with Operators(system.admin) as running:
        yield running
        for rules in JOB_KINDS.values():
            for item in system.admin.list(rules.resource, "team").items:
                system.admin.delete(rules.resource, "team", item["metadata"]["name"])
    assert running.faults == []


def in_team(manifests: list[JsonObject]) -> list[JsonObject]:
    """The same in the namespace `team`, where they have one."""
    return [{**item, "metadata": {**item["metadata"], "namespace": "team"}} for item in manifests if item]


def name_of(kind: str) -> str:
    return "nightly" if kind == "CronJob" else kind.lower()


def long_jobs_of(kind: str) -> list[JsonObject]:
    """The manifests of a job whose pods run until the test ends them."""
    return jobs_of(kind, name_of(kind), run_seconds=LONG, cpu="250m")


def make(plane: ControlPlane, kind: str) -> None:
    """As a user does."""
    manifests = long_jobs_of(kind)
    if kind == "CronJob":
        manifests[0]["spec"]["suspend"] = True  # until somebody makes a Job of it
    plane.kubectl("create", "-f", "-", manifests=manifests)
    if kind == "CronJob":
        plane.kubectl("create", "job", MADE_BY_CRON, "--from=cronjob/nightly", "--namespace", "team")


def replacements() -> list[JsonObject]:
    """Other pods for the pod group, whose stopped pods keep their names until then, as under Kueue."""
    pods = jobs_of(POD_GROUP, name_of(POD_GROUP), run_seconds=LONG, cpu="250m")
    for pod in pods:
        pod["metadata"]["name"] += "-again"
    return pods


def rows() -> dict[str, Workload]:
    """The latest workload of each kind."""
    found: dict[str, Workload] = {}
    for row in Workload.objects.exclude(job__name="high").order_by("pk").select_related("job"):
        kind, name = (row.job.kind, row.job.name) if row.job else (POD_GROUP, row.name)
        if name == MADE_BY_CRON:
            kind = "CronJob"
        elif kind == "Pod" and name.startswith("deployment-"):
            kind = "Deployment"  # each of its pods is a workload
        found[kind] = row
    return found


def statuses() -> dict[str, str]:
    return {kind: str(row.status) for kind, row in rows().items()}


def running(system: System) -> dict[str, int]:
    """How many pods of each workload run."""
    counts: dict[str, int] = {}
    for pod in system.pods():
        if pod["status"]["phase"] == "Running" and "deletionTimestamp" not in pod["metadata"]:
            uid = pod["metadata"]["labels"].get("kueueweb.io/workload-uid", "")
            counts[uid] = counts.get(uid, 0) + 1
    return {kind: counts.get(str(row.uid), 0) for kind, row in rows().items()}


def pod_names(system: System) -> set[str]:
    return {pod["metadata"]["name"] for pod in system.pods()}


def wait_until_all_run(system: System, wanted: dict[str, int]) -> None:
    counts: dict[str, int] = {}

    def all_run() -> bool:
        counts.clear()
        counts.update(running(system))
        return counts == wanted

    try:
        system.until("all of them run", all_run, _PATIENCE)
    except AssertionError as late:
        lacking = {kind: counts.get(kind) for kind in counts.keys() | wanted if counts.get(kind) != wanted.get(kind)}
        raise AssertionError(f"running, where another number should: {lacking}") from late


def end(system: System, job: str = "", *, phase: str = "Succeeded") -> None:
    """Every pod that runs, of one job or of all, comes to its end; those of kinds that serve don't."""
    terminated = {"exitCode": int(phase == "Failed"), "reason": "Error" if phase == "Failed" else "Completed"}
    for pod in system.pods(job):
        if pod["status"]["phase"] == "Running" and pod["spec"]["restartPolicy"] != "Always":
            ended = {"ready": False, "state": {"running": None, "terminated": terminated}}
            containers = [{**container, **ended} for container in pod["status"]["containerStatuses"]]
            status = {"phase": phase, "containerStatuses": containers}
            system.admin.patch(PODS, "team", pod["metadata"]["name"], {"status": status}, subresource="status")


def high_job() -> JsonObject:
    """All devices, and all the quota of cpu."""
    four = {"parallelism": 4, "completions": 4, "requests": {"cpu": "2250m"}}
    job = gpu_job("high", mib=32_768, cores=100, run_seconds=LONG, **four)
    job["metadata"]["labels"]["kueue.x-k8s.io/priority-class"] = "high"
    return job


def make_all(system: System, plane: ControlPlane, kinds: Iterable[str]) -> dict[str, int]:
    """Make a job of each kind, whose pods wait; return how many pods of each are to run."""
    system.turn()  # the webhook knows the training runtimes that the watcher has seen
    system.apply(HIGH)
    FlavorQuota.objects.filter(resource="cpu").update(nominal_quota=9_000)
    for kind in kinds:
        make(plane, kind)
    assert not [pod for pod in system.pods() if not pod["spec"].get("schedulingGates")], "no pod before an admission"
    return {kind: pods_of(kind) for kind in kinds}


def preempt_all(system: System, plane: ControlPlane) -> None:
    """Make a job of a higher priority that needs all devices: it runs, and no other one does."""
    plane.kubectl("create", "-f", "-", manifests=[high_job()])
    system.until("the higher one runs", lambda: system.phases("high") == ["Running"] * 4, _PATIENCE)
    assert not {kind for kind, row in rows().items() if row.quota_reserved_at and row.status != "Finished"}
    assert set(running(system).values()) == {0}


def end_the_higher_one(system: System) -> None:
    """Have the job of the higher priority end."""
    end(system, "high")
    system.until("it has ended", lambda: system.status("high") == "Finished", _PATIENCE)


def end_all(system: System, plane: ControlPlane, wanted: Mapping[str, int]) -> None:
    """Have all pods end, and delete the jobs of kinds that serve, whose pods run until then: all workloads finish."""
    serving = {kind for kind in wanted if kind in JOB_KINDS and serves(kind)}
    ending = wanted.keys() - serving
    end(system)
    system.until("what ends has ended", lambda: {statuses()[kind] for kind in ending} == {"Finished"}, _PATIENCE)
    assert {kind: rows()[kind].reason for kind in ending} == dict.fromkeys(ending, "Succeeded")
    for kind in serving:
        assert running(system)[kind] == wanted[kind], kind
        plane.kubectl("delete", JOB_KINDS[kind].plural, name_of(kind), "--namespace", "team", "--wait=false")
    system.until("what served has ended", lambda: set(statuses().values()) == {"Finished"}, _PATIENCE)


def serves(kind: str) -> bool:
    """Whether the pods of a kind run until its job is deleted."""
    return JOB_KINDS[kind].serves or JOB_KINDS[kind].stopping is Stopping.DELETE_PODS


def test_our_examples_are_valid_by_the_published_definitions(plane: ControlPlane, operators: Operators) -> None:
    refused = {}
    examples = {path.name: [*yaml.safe_load_all(path.read_text())] for path in EXAMPLES}
    for name, manifests in (examples | {kind: jobs_of(kind, "valid") for kind in EVERY_KIND}).items():
        try:
            plane.kubectl("create", "--dry-run=server", "--namespace", "team", "-f", "-", manifests=in_team(manifests))
        except AssertionError as refusal:
            refused[name] = str(refusal)
    assert refused == {}


def test_one_job_of_every_kind_is_preempted_runs_again_and_ends(
    system: System, plane: ControlPlane, operators: Operators, webhook: ServedWebhook
) -> None:
    wanted = make_all(system, plane, EVERY_KIND)
    wait_until_all_run(system, wanted)
    preempt_all(system, plane)
    system.until("the pod without an owner is gone", lambda: name_of("Pod") not in pod_names(system), _PATIENCE)
    make(plane, "Pod")
    plane.kubectl("create", "-f", "-", manifests=replacements())
    end_the_higher_one(system)
    wait_until_all_run(system, wanted)
    end_all(system, plane, wanted)
