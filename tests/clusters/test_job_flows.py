"""A JobFlow in a cluster: its jobs run there one after the other; and a job of kubectl that starts after another."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from clusters.api_objects import NAMESPACES
from queues.models import Job
from queues.services.flows.flow_deletion import delete_completed_flows
from queues.services.flows.job_flows import job_flows
from queues.services.flows.start_gates import open_start_gates
from tests.cluster_kinds import JOBS
from tests.clusters.system import System, gpu_job

pytestmark = pytest.mark.django_db(transaction=True)


def flow(policy: str = "retain", exit_code: int = 0) -> str:
    limits = {"nvidia.com/gpu": 1, "nvidia.com/gpumem": 4000, "nvidia.com/gpucores": 30}
    container = {"name": "main", "image": "app", "resources": {"limits": limits}}
    objects: list[dict[str, Any]] = [
        {
            "kind": "JobFlow",
            "metadata": {"name": "f", "namespace": "team"},
            "spec": {
                "jobRetainPolicy": policy,
                "flows": [{"name": "a"}, {"name": "b", "dependsOn": {"targets": ["a"]}}],
            },
        }
    ]
    for name in "ab":
        noted = {"kueueweb.io/run-seconds": "5", **({"kueueweb.io/fail": "true"} if exit_code else {})}
        template = {"metadata": {"annotations": noted}, "spec": {"containers": [container]}}
        tasks = [{"name": "w", "replicas": 1, "template": template}]
        spec = {"queue": "queue", "policies": [{"event": "PodFailed", "action": "AbortJob"}], "tasks": tasks}
        objects.append({"kind": "JobTemplate", "metadata": {"name": name, "namespace": "team"}, "spec": spec})
    return yaml.safe_dump_all({"apiVersion": "flow.volcano.sh/v1alpha1", **each} for each in objects)


def turns(system: System, number: int = 4) -> None:
    for _ in range(number):
        open_start_gates(system.cluster, system.moment())
        system.turn()


def in_cluster(system: System) -> list[str]:
    return sorted(pod["metadata"]["name"].rpartition("-")[0].rpartition("-")[0] for pod in system.pods())


def phases(system: System) -> dict[str, str]:
    (found,) = job_flows(system.cluster)
    return {job.name: job.phase.value for job in found.jobs} | {"f": found.phase.value}


def test_the_jobs_of_a_flow_run_one_after_the_other_in_the_cluster(system: System) -> None:
    system.apply_text(flow("delete"))
    turns(system, 1)
    assert phases(system) == {"f-a": "Running", "f-b": "Waiting", "f": "Running"}
    assert set(in_cluster(system)) == {"f-a"}
    turns(system)
    assert phases(system)["f-a"] == "Completed"
    turns(system)
    assert phases(system) == {"f-a": "Completed", "f-b": "Completed", "f": "Succeed"}
    assert delete_completed_flows(system.cluster, system.moment()) == 1
    turns(system, 2)
    assert not Job.objects.filter(deletion_requested_at=None).exists()


def test_a_job_of_kubectl_starts_after_another_one(system: System) -> None:
    system.client.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}})
    second = gpu_job("second")
    second["metadata"]["annotations"] = {"kueueweb.io/start-after": "first"}
    for each in (second, gpu_job("first")):
        each["spec"]["suspend"] = True
        each["spec"]["template"]["metadata"]["annotations"]["kueueweb.io/run-seconds"] = "5"
        system.client.create(JOBS, each)
    turns(system, 2)
    assert system.workload("second").waits_for == ["first"]
    turns(system, 4)
    assert system.workload("first").status == "Finished"
    turns(system, 4)
    assert system.workload("second").status == "Finished"


def test_names_are_removed_from_a_job_of_kubectl_and_not_added(system: System) -> None:
    system.client.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}})
    second = gpu_job("second")
    second["metadata"]["annotations"] = {"kueueweb.io/start-after": "first, other"}
    second["spec"]["suspend"] = True
    system.client.create(JOBS, second)
    turns(system, 2)
    for named, left in (("other", ["other"]), ("first, other", ["other"]), (None, [])):
        system.client.patch(JOBS, "team", "second", {"metadata": {"annotations": {"kueueweb.io/start-after": named}}})
        turns(system, 2)
        assert system.workload("second").waits_for == left
    assert system.workload("second").status == "Admitted"
