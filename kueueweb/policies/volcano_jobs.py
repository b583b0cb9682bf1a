"""Recorded lives of Volcano's Jobs, answered by the controller that runs such jobs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from clusters.jobs.volcano.job_controller import JobController
from clusters.jobs.volcano.job_life import JobPod, JobStatus, PodPhase
from clusters.jobs.volcano.job_pods import SSH_KEYS, make_pod, objects_of
from clusters.jobs.volcano.job_spec import JobAction, read_spec
from clusters.jobs.volcano.minimum_resources import least_resources

_NAMESPACE: Final = "ns"
_UID: Final = "uid-1"
_PRIORITIES: Final = {"low": 10, "mid": 100, "high": 1000}


def life_of(scenario: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the state of a job after its creation and after each step."""
    life = _Life(scenario["job"])
    states = [life.state()]
    for step in scenario["steps"]:
        life.take(step)
        states.append(life.state())
    return states


def manifest_of(job: Mapping[str, Any]) -> dict[str, Any]:
    """Return the manifest of a recorded job, as its author would write it."""
    spec: dict[str, Any] = {
        key: job[key] for key in ("minAvailable", "minSuccess", "maxRetry", "plugins") if job.get(key) is not None
    }
    spec["priorityClassName"] = job.get("priorityClass", "")
    spec["policies"] = [_policy(policy) for policy in job.get("policies") or ()]
    spec["tasks"] = [_task(task) for task in job["tasks"]]
    metadata = {"name": job["name"], "namespace": _NAMESPACE, "uid": _UID}
    return {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": metadata, "spec": spec}


def _task(task: Mapping[str, Any]) -> dict[str, Any]:
    container = {"name": "main", "image": "busybox", "resources": {"requests": task.get("request") or {}}}
    pod_spec = {"containers": [container], "priorityClassName": task.get("priorityClass", "")}
    written: dict[str, Any] = {
        **{key: task[key] for key in ("name", "replicas", "minAvailable", "maxRetry") if task.get(key) is not None},
        "policies": [_policy(policy) for policy in task.get("policies") or ()],
        "template": {"spec": pod_spec},
    }
    if task.get("dependsOn"):
        written["dependsOn"] = {"name": task["dependsOn"], "iteration": task.get("iteration", "")}
    if task.get("partitionSize"):
        size = task["partitionSize"]
        written["partitionPolicy"] = {"totalPartitions": task["replicas"] // size, "partitionSize": size}
    return written


def _policy(policy: Mapping[str, Any]) -> dict[str, Any]:
    written = {key: policy[key] for key in ("event", "events", "exitCode", "action") if key in policy}
    return {**written, "timeout": f"{policy['timeout_s']}s"} if policy.get("timeout_s") else written


class _Life:
    """A job in a cluster where everything happens at once."""

    def __init__(self, job: Mapping[str, Any]) -> None:
        self._controller = JobController(read_spec(manifest_of(job)), self)
        self._controller.created()
        self._controller.settle()

    def create(self, pod: JobPod) -> None:
        self._controller.pod_added(pod)

    def delete(self, name: str) -> None:
        self._controller.pod_deleted(name)

    def state(self) -> dict[str, Any]:
        controller = self._controller
        return {
            "phase": str(controller.status.phase),
            "retryCount": controller.status.retry_count,
            "pods": {name: str(pod.phase) for name, pod in sorted(controller.pods.items())},
            "podGroup": controller.has_pod_group,
        }

    def take(self, step: Mapping[str, Any]) -> None:
        controller = self._controller
        match step["op"]:
            case "enqueue":
                controller.may_create = True
                controller.created()
            case "pod":
                self._change_pod(step)
            case "run-all":
                for name in sorted(controller.pods):
                    if name in controller.pods and controller.pods[name].phase is PodPhase.PENDING:
                        self._change_pod({"pod": name, "phase": "Running"})
            case "delete-pod":
                controller.pod_deleted(step["pod"])
            case "command":
                controller.commanded(JobAction(step["action"]))
            case "pg-unknown":
                controller.pod_group_is_unknown()
        controller.settle()

    def _change_pod(self, step: Mapping[str, Any]) -> None:
        pod = self._controller.pods.get(step["pod"])
        if pod is None:
            return
        phase = PodPhase(step["phase"])
        changed = replace(
            pod,
            phase=phase,
            ready=step.get("ready", phase is PodPhase.RUNNING),
            restarts=step.get("restarts", pod.restarts),
            exit_code=step.get("exitCode", 0),
        )
        self._controller.pod_changed(changed)
        self._controller.settle()


def pods_of(scenario: Mapping[str, Any]) -> dict[str, Any]:
    """Return the PodGroup, the pods and the objects of a job that has just got all its pods."""
    job = read_spec(manifest_of(scenario["job"]))
    objects = objects_of(job)
    pods = [JobPod(job.pod_name(task, index), task.name, index) for task in job.tasks for index in range(task.replicas)]
    return {
        "podGroup": {
            "minMember": job.min_available,
            "minTaskMember": {task.name: task.minimum for task in job.tasks},
            "minResources": least_resources(job, _PRIORITIES),
            "queue": job.queue,
            "priorityClass": job.priority_class,
        },
        "pods": {pod.name: _shown_pod(make_pod(job, JobStatus(), pod)) for pod in pods},
        "services": [
            {
                "name": service["metadata"]["name"],
                **{key: service["spec"][key] for key in ("clusterIP", "publishNotReadyAddresses", "selector")},
            }
            for service in objects.services
        ],
        "configMaps": {each["metadata"]["name"]: each["data"] for each in objects.config_maps},
        "secrets": {objects.secret: sorted(SSH_KEYS)} if objects.secret else {},
        "networkPolicies": len(objects.network_policies),
    }


def _shown_pod(pod: Mapping[str, Any]) -> dict[str, Any]:
    metadata, spec = pod["metadata"], pod["spec"]
    container = spec["containers"][0]
    return {
        "hostname": spec.get("hostname", ""),
        "subdomain": spec.get("subdomain", ""),
        "env": {entry["name"]: _value(entry) for entry in container.get("env") or ()},
        "labels": metadata["labels"],
        "annotations": metadata["annotations"],
        "ports": [entry["containerPort"] for entry in container.get("ports") or ()],
        "mountPaths": sorted(entry["mountPath"] for entry in container.get("volumeMounts") or ()),
        "priorityClass": spec.get("priorityClassName", ""),
        "scheduler": spec["schedulerName"],
    }


def _value(entry: Mapping[str, Any]) -> str:
    if "value" in entry:
        return str(entry["value"])
    reference = entry["valueFrom"]["configMapKeyRef"]
    return f"configMap:{reference['name']}/{reference['key']}"
