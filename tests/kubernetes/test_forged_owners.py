"""Jobs that name an owner to which they do not belong, beside the watcher's process with its own account's rights."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import pytest
import yaml
from django.contrib.auth.models import User

from clusters.api_objects import NAMESPACES, JsonObject, Kind
from clusters.jobs.registry import JOB_KINDS
from clusters.push.sweep import push_pending
from queues.manifests.workload import PodSetSpec, WorkloadSpec
from queues.models import Workload
from queues.services.submission import create_workloads
from tests.acceptance.processes import Processes, wait_for
from tests.cluster_kinds import DEPLOYMENTS, JOBS
from tests.clusters.every_kind import jobs_of
from tests.clusters.system import gpu_job
from tests.kubernetes.control_plane import ControlPlane
from tests.kubernetes.operators import install_definitions
from tests.kubernetes.system import System
from tests.services_plugin import short_temporary_folder
from tests.simulated_cluster import job

_LONG = 3600
_MORE_CPU_THAN_THE_QUEUE_HAS = "101"
_JOB_SETS = JOB_KINDS["JobSet"].resource
_CONFIG_MAPS = Kind("v1", "ConfigMap", "configmaps")
_SECONDS_OF_PEACE = 4.0
"""How long nothing may start: the watcher lists everything again each second."""


@pytest.fixture
def watched(system: System, plane: ControlPlane) -> Iterator[System]:
    """The system, whose jobs are followed by `manage.py watch_cluster` alone."""
    install_definitions(system.admin)
    with short_temporary_folder() as folder, Processes(folder) as processes:
        kubeconfig = folder / "watcher.kubeconfig"
        kubeconfig.write_text(yaml.safe_dump(plane.kubeconfig(plane.token_of("kueueweb", "kueueweb-watcher"))))
        processes.settings["KUBECONFIG"] = str(kubeconfig)
        processes.start("watcher", "manage.py", "watch_cluster", "--relist-seconds", "1")
        yield system
        assert not processes.ended("watcher"), processes.log("watcher")
        assert "is forbidden" not in processes.log("watcher")
    for item in system.admin.list(_JOB_SETS, "team").items:
        system.admin.delete(_JOB_SETS, "team", item["metadata"]["name"])


def _decide(system: System) -> None:
    """The scheduler and the push do their parts once."""
    system.engine.run()
    push_pending(system.cluster, system.client, time.time)


def _until(system: System, what: str, condition: Callable[[], object]) -> None:
    def holds() -> bool:
        _decide(system)
        return bool(condition())

    wait_for(what, holds, 60)


def _job_set(system: System, name: str, *, cpu: str, namespace: str = "team") -> JsonObject:
    [manifest] = jobs_of("JobSet", name, run_seconds=_LONG, cpu=cpu)
    manifest["metadata"]["namespace"] = namespace
    manifest["spec"]["suspend"] = True
    return system.admin.create(_JOB_SETS, manifest)


def _owned(name: str, owner: JsonObject, *, labels: dict[str, str] | None = None) -> JsonObject:
    """A Job that says that it belongs to the owner."""
    made = job(name, parallelism=2, completions=2, run_seconds=_LONG, requests={"cpu": "1"})
    reference = {key: owner[key] for key in ("apiVersion", "kind")}
    reference |= {key: owner["metadata"][key] for key in ("name", "uid")}
    made["metadata"] |= {"namespace": "team", "labels": labels or {}}
    made["metadata"]["ownerReferences"] = [{**reference, "controller": True}]
    return made


def _is_suspended(system: System, name: str) -> bool:
    return system.job(name)["spec"].get("suspend") is True and not system.pods(name)


def _stays_suspended(system: System, name: str) -> None:
    """It is suspended, and again when a user starts it."""
    _until(system, f"{name} to be suspended", lambda: _is_suspended(system, name))
    system.admin.patch(JOBS, "team", name, {"spec": {"suspend": False}})
    _until(system, f"{name} to be suspended again", lambda: _is_suspended(system, name))
    end = time.monotonic() + _SECONDS_OF_PEACE
    while time.monotonic() < end:
        _decide(system)
        assert _is_suspended(system, name), system.job(name)
        time.sleep(0.1)


@pytest.fixture
def pending(watched: System) -> JsonObject:
    """A JobSet that waits: its queue has less."""
    made = _job_set(watched, "waits", cpu=_MORE_CPU_THAN_THE_QUEUE_HAS)
    _until(watched, "the workload of the JobSet", lambda: watched.status("waits") == "Pending")
    return made


@pytest.mark.parametrize("labels", [{}, {"kueue.x-k8s.io/queue-name": "queue"}], ids=["unlabelled", "queued"])
def test_a_job_that_says_that_it_belongs_to_a_waiting_job_does_not_run(
    watched: System, pending: JsonObject, labels: dict[str, str]
) -> None:
    watched.admin.create(JOBS, _owned("forged", pending, labels=labels))
    _stays_suspended(watched, "forged")
    assert [row.name for row in Workload.objects.all()] == [watched.workload("waits").name]


def test_a_job_below_a_job_of_a_waiting_job_does_not_run(watched: System, pending: JsonObject) -> None:
    between = _owned("between", pending)
    between["spec"]["suspend"] = True
    watched.admin.create(JOBS, _owned("forged", watched.admin.create(JOBS, between)))
    _stays_suspended(watched, "forged")


def test_a_job_that_says_that_it_belongs_to_a_deployment_does_not_run(watched: System) -> None:
    """No workload is the Deployment's: each of its pods has one, and here it has no pods."""
    [manifest] = jobs_of("Deployment", "empty", run_seconds=_LONG)
    manifest["spec"]["replicas"] = 0
    watched.admin.create(JOBS, _owned("forged", watched.admin.create(DEPLOYMENTS, manifest)))
    _stays_suspended(watched, "forged")


def test_a_job_of_an_object_that_is_no_job_waits_for_its_own_quota(watched: System) -> None:
    metadata = {"name": "notes", "namespace": "team", "labels": {"kueue.x-k8s.io/queue-name": "queue"}}
    notes = watched.admin.create(_CONFIG_MAPS, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})
    forged = _owned("forged", notes, labels={"kueue.x-k8s.io/queue-name": "queue"})
    forged["spec"]["template"]["spec"]["containers"][0]["resources"] = {
        "requests": {"cpu": _MORE_CPU_THAN_THE_QUEUE_HAS}
    }
    watched.admin.create(JOBS, forged)
    _stays_suspended(watched, "forged")
    assert watched.status("forged") == "Pending"


def test_a_job_that_says_that_it_belongs_to_an_admitted_job_of_another_namespace_is_deleted(watched: System) -> None:
    """Kubernetes finds no such owner in its namespace."""
    for name in ("team", "rich"):
        watched.admin.apply(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    elsewhere = _job_set(watched, "theirs", cpu="1", namespace="rich")
    watched.admin.create(JOBS, _owned("forged", elsewhere))
    wait_for("its deletion", lambda: watched.admin.get(JOBS, "team", "forged") is None and not watched.pods(), 60)
    watched.admin.delete(_JOB_SETS, "rich", "theirs")


def test_a_job_does_not_run_on_the_quota_of_another_users_workload(watched: System) -> None:
    template = job("of-the-researcher", requests={"cpu": "1"})["spec"]["template"]
    theirs = WorkloadSpec("team", "theirs", "queue", (PodSetSpec("main", 1, template, {"cpu": 1000}),))
    User.objects.create_user("researcher")
    create_workloads(watched.cluster, [theirs], actor="researcher", submitted_by="researcher")
    _until(watched, "quota for it", lambda: Workload.objects.get(name="theirs").quota_reserved_at)
    forged = gpu_job("forged", run_seconds=_LONG)
    forged["metadata"]["labels"]["kueue.x-k8s.io/prebuilt-workload-name"] = "theirs"
    watched.admin.create(JOBS, forged)
    _stays_suspended(watched, "forged")
    row = Workload.objects.get()
    assert (row.name, row.job) == ("theirs", None)
