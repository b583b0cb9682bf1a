"""A small job of every kind that an operator runs: two templates where the kind has two, one pod of each."""

from __future__ import annotations

from typing import Any

from clusters.api_objects import JsonObject


def template(run_seconds: int = 20, *, container: str = "main", **limits: str) -> JsonObject:
    """A pod of one cpu that runs for a while."""
    resources: JsonObject = {"requests": {"cpu": "1"}}
    if limits:
        resources["limits"] = {f"nvidia.com/{name}": amount for name, amount in limits.items()}
    made = {"name": container, "image": "app", "resources": resources}
    return {
        "metadata": {"annotations": {"kueueweb.io/run-seconds": str(run_seconds)}, "labels": {"app": "train"}},
        "spec": {"containers": [made], "restartPolicy": "Never"},
    }


def _replicas(field: str, container: str, *roles: str) -> JsonObject:
    """Of Kubeflow's training operator: its webhook asks for a container of that name."""
    made = {"replicas": 1, "restartPolicy": "Never"}
    return {field: {role: {**made, "template": template(container=container)} for role in roles}}


def _ray_cluster() -> JsonObject:
    workers = {"groupName": "workers", "replicas": 1, "rayStartParams": {}, "template": template()}
    return {"headGroupSpec": {"rayStartParams": {}, "template": template()}, "workerGroupSpecs": [workers]}


def _jobset() -> JsonObject:
    def replicated(name: str) -> JsonObject:
        return {"name": name, "replicas": 1, "template": {"spec": {"template": template()}}}

    return {"replicatedJobs": [replicated("driver"), replicated("workers")]}


def _app_wrapper() -> JsonObject:
    wrapped: JsonObject = {
        "apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "inner"}, "spec": {"template": template()},
    }  # fmt: skip
    return {"components": [{"template": wrapped}]}


def _spark() -> JsonObject:
    annotations = {"kueueweb.io/run-seconds": "20"}
    role: dict[str, Any] = {"coreRequest": "1", "annotations": annotations, "labels": {"app": "train"}}
    executor = {**role, "instances": 1}
    program = {"sparkVersion": "4", "image": "spark:4", "mainApplicationFile": "local:///opt/app.jar"}
    return {"mode": "cluster", "type": "Scala", **program, "driver": role, "executor": executor}


_SPECS: dict[tuple[str, str], JsonObject] = {
    ("jobset.x-k8s.io/v1alpha2", "JobSet"): _jobset(),
    ("kubeflow.org/v1", "PyTorchJob"): _replicas("pytorchReplicaSpecs", "pytorch", "Master", "Worker"),
    ("kubeflow.org/v1", "TFJob"): _replicas("tfReplicaSpecs", "tensorflow", "Chief", "Worker"),
    ("kubeflow.org/v1", "XGBoostJob"): _replicas("xgbReplicaSpecs", "xgboost", "Master", "Worker"),
    ("kubeflow.org/v1", "PaddleJob"): _replicas("paddleReplicaSpecs", "paddle", "Master", "Worker"),
    ("kubeflow.org/v1", "JAXJob"): _replicas("jaxReplicaSpecs", "jax", "Worker"),
    ("kubeflow.org/v2beta1", "MPIJob"): _replicas("mpiReplicaSpecs", "mpi", "Launcher", "Worker"),
    ("ray.io/v1", "RayCluster"): _ray_cluster(),
    ("ray.io/v1", "RayJob"): {
        "entrypoint": "python main.py", "shutdownAfterJobFinishes": True, "submissionMode": "HTTPMode",
        "rayClusterSpec": _ray_cluster(),
    },
    ("ray.io/v1", "RayService"): {"serveConfigV2": "", "rayClusterConfig": _ray_cluster()},
    ("workload.codeflare.dev/v1beta2", "AppWrapper"): _app_wrapper(),
    ("sparkoperator.k8s.io/v1beta2", "SparkApplication"): _spark(),
}  # fmt: skip

KINDS = [kind for _, kind in _SPECS]


def operated_job(kind: str, name: str = "train") -> JsonObject:
    """In namespace `team`, labelled for its LocalQueue."""
    (api_version,) = [version for version, known in _SPECS if known == kind]
    metadata = {"name": name, "namespace": "team", "labels": {"kueue.x-k8s.io/queue-name": "queue"}}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": _SPECS[api_version, kind]}
