"""A small job of every kind that there is, and what has to be in the cluster for it."""

from __future__ import annotations

import copy
from typing import Any, Final

from clusters.api_objects import JsonObject
from clusters.jobs.registry import JOB_KINDS
from tests.clusters.group_pods import gpu_pod
from tests.clusters.operated_jobs import KINDS as OPERATED
from tests.clusters.operated_jobs import operated_job, template
from tests.clusters.system import queued
from tests.clusters.test_pods_that_wait import cron_job, leader_worker_set, stateful_set, train_job

POD_GROUP: Final = "PodGroup"
"""Not a kind of the API: several pods that are one workload."""
RUN_SECONDS: Final = "kueueweb.io/run-seconds"
EVERY_KIND: Final = (*JOB_KINDS, POD_GROUP)


def jobs_of(kind: str, name: str, *, run_seconds: int = 20, cpu: str = "1", mib: int = 0) -> list[JsonObject]:
    """The manifests of one job: in namespace `team`, labelled for its LocalQueue.

    Their pods run so long, or forever where the kind serves; each asks for so much cpu, and for so much memory of a
    device.
    """
    if kind == POD_GROUP:
        made = [gpu_pod(f"{name}-{number}", group=name, total=2) for number in range(2)]
    else:
        manifest = copy.deepcopy(_example(kind, name))
        manifest["metadata"]["name"] = name
        made = [manifest]
    told: JsonObject = {RUN_SECONDS: str(run_seconds), "cpu": cpu, "coreRequest": cpu}
    if mib:
        told["limits"] = {"nvidia.com/gpu": "1", "nvidia.com/gpumem": str(mib)}
    return [with_values(manifest, told) for manifest in made]


def pods_of(kind: str) -> int:
    """How many pods its job has."""
    several = {POD_GROUP: 2, "LeaderWorkerSet": 3, "TrainJob": 2, "JAXJob": 1, "AppWrapper": 1}
    return several.get(kind, 2 if kind in OPERATED else 1)


def _example(kind: str, name: str) -> JsonObject:
    match kind:
        case "Job":
            job = {"apiVersion": "batch/v1", "kind": kind, "metadata": {"name": name}, "spec": {"template": template()}}
            return queued(job)
        case "Pod":
            return gpu_pod(name)
        case "Deployment":
            return _deployment(name)
        case "StatefulSet":
            return stateful_set(1)
        case "LeaderWorkerSet":
            return leader_worker_set(1)
        case "TrainJob":
            return train_job(trainer={"numNodes": 2, "resourcesPerNode": {"requests": {"cpu": "1"}}})
        case "CronJob":
            return cron_job()
    return operated_job(kind, name)


def _deployment(name: str) -> JsonObject:
    labels = {"app": name}
    made = template()
    pod_template = {"metadata": {"labels": labels}, "spec": {**made["spec"], "restartPolicy": "Always"}}
    spec = {"replicas": 1, "selector": {"matchLabels": labels}, "template": pod_template}
    return queued({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": spec})


def with_values(content: Any, told: JsonObject) -> Any:
    """The same, with these in the place of its own values. Every container may have limits."""
    if isinstance(content, list):
        return [with_values(item, told) for item in content]
    if not isinstance(content, dict):
        return content
    there = {**content, "limits": {}} if "requests" in content and "limits" in told else content
    return {key: told[key] if key in told else with_values(value, told) for key, value in there.items()}
