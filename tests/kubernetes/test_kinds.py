"""A job of every kind on a real Kubernetes: kubectl makes it, our webhook is asked, it is preempted and runs again."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
import yaml

from clusters.client import PODS, JsonObject
from clusters.jobs.framework.job_kind import Stopping
from clusters.jobs.registry import JOB_KINDS
from queues.models import FlavorQuota, Workload
from tests.clusters.every_kind import EVERY_KIND, POD_GROUP, RUN_SECONDS, jobs_of, pods_of, with_values
from tests.clusters.system import gpu_job
from tests.clusters.test_pods_that_wait import RUNTIME, RUNTIMES
from tests.clusters.webhook.served import ServedWebhook
from tests.kubernetes.control_plane import ControlPlane
from tests.kubernetes.operators import Operators, install_definitions
from tests.kubernetes.our_webhook import our_webhook
from tests.kubernetes.system import System

_LONG: Final = 3600
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
SINGLE: Final = ("Pod", POD_GROUP)
"""Whose pods somebody has to make again."""


@pytest.fixture
def operators(system: System) -> Iterator[Operators]:
    """Every operator is installed, and none meets a refusal."""
    install_definitions(system.admin)
    if system.admin.get(RUNTIMES, "", "torch") is None:
        system.admin.create(RUNTIMES, with_values(RUNTIME, {RUN_SECONDS: str(_LONG)}))
    with Operators(system.admin) as running:
        yield running
        for rules in JOB_KINDS.values():
            for item in system.admin.list(rules.resource, "team").items:
                system.admin.delete(rules.resource, "team", item["metadata"]["name"])
    assert running.faults == []


@pytest.fixture
def webhook(system: System, plane: ControlPlane) -> Iterator[ServedWebhook]:
    """It answers with the rights of its own account, and the API server asks it."""
    with our_webhook(plane, system.cluster) as served:
        yield served


def in_team(manifests: list[JsonObject]) -> list[JsonObject]:
    """The same in the namespace `team`, where they have one."""
    return [{**item, "metadata": {**item["metadata"], "namespace": "team"}} for item in manifests if item]


def name_of(kind: str) -> str:
    return "nightly" if kind == "CronJob" else kind.lower()


def make(plane: ControlPlane, kind: str) -> None:
    """As a user does."""
    manifests = jobs_of(kind, name_of(kind), run_seconds=_LONG, cpu="250m")
    if kind == "CronJob":
        manifests[0]["spec"]["suspend"] = True  # until somebody makes a Job of it
    plane.kubectl("create", "-f", "-", manifests=manifests)
    if kind == "CronJob":
        plane.kubectl("create", "job", MADE_BY_CRON, "--from=cronjob/nightly", "--namespace", "team")


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


def end(system: System, job: str = "") -> None:
    """Every pod that runs, of one job or of all, comes to its end; those of kinds that serve don't."""
    for pod in system.pods(job):
        if pod["status"]["phase"] == "Running" and pod["spec"]["restartPolicy"] != "Always":
            ended = {"ready": False, "state": {"running": None, "terminated": {"exitCode": 0, "reason": "Completed"}}}
            containers = [{**container, **ended} for container in pod["status"]["containerStatuses"]]
            status = {"phase": "Succeeded", "containerStatuses": containers}
            system.admin.patch(PODS, "team", pod["metadata"]["name"], {"status": status}, subresource="status")


def high_job() -> JsonObject:
    """All devices, and all the quota of cpu."""
    four = {"parallelism": 4, "completions": 4, "requests": {"cpu": "2250m"}}
    job = gpu_job("high", mib=32_768, cores=100, run_seconds=_LONG, **four)
    job["metadata"]["labels"]["kueue.x-k8s.io/priority-class"] = "high"
    return job


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
    system.turn()  # the webhook knows the training runtimes that the watcher has seen
    system.apply(HIGH)
    FlavorQuota.objects.filter(resource="cpu").update(nominal_quota=9_000)
    wanted = {kind: pods_of(kind) for kind in EVERY_KIND}
    for kind in EVERY_KIND:
        make(plane, kind)
    assert not [pod for pod in system.pods() if not pod["spec"].get("schedulingGates")], "no pod before an admission"

    wait_until_all_run(system, wanted)
    plane.kubectl("create", "-f", "-", manifests=[high_job()])
    system.until("the higher one runs", lambda: system.phases("high") == ["Running"] * 4, _PATIENCE)
    holding = {kind for kind, row in rows().items() if row.quota_reserved_at and row.status != "Finished"}
    assert holding == set()
    assert set(running(system).values()) == {0}

    single = {item["metadata"]["name"] for kind in SINGLE for item in jobs_of(kind, name_of(kind))}
    system.until("pods without an owner are gone", lambda: not single & pod_names(system), _PATIENCE)
    for kind in SINGLE:
        make(plane, kind)
    end(system, "high")
    system.until("it has ended", lambda: system.status("high") == "Finished", _PATIENCE)
    wait_until_all_run(system, wanted)
    serving = {kind for kind, rules in JOB_KINDS.items() if rules.serves or rules.stopping is Stopping.DELETE_PODS}
    ending = set(EVERY_KIND) - serving
    end(system)
    system.until("what ends has ended", lambda: {statuses()[kind] for kind in ending} == {"Finished"}, _PATIENCE)
    assert {kind: rows()[kind].reason for kind in ending} == dict.fromkeys(ending, "Succeeded")
    for kind in serving:
        assert running(system)[kind] == wanted[kind], kind
        plane.kubectl("delete", JOB_KINDS[kind].plural, name_of(kind), "--namespace", "team", "--wait=false")
    system.until("what served has ended", lambda: set(statuses().values()) == {"Finished"}, _PATIENCE)
