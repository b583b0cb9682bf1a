"""trainer.kubeflow.org/v1alpha1 TrainJob: its templates are in the training runtime that it names.

The pod sets are those of the JobSet that Kubeflow's Trainer would make. What Kueue injects goes into an entry of its
own among the job's patches of the runtime.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from clusters.api_objects import Kind
from clusters.jobs.framework.context import JobContext
from clusters.jobs.framework.errors import FieldErrors, JobError
from clusters.jobs.framework.job_kind import JobKind, Outcome, TemplateSite, expect_infos, integer_at
from clusters.jobs.framework.manifest import JsonObject, dig, mapping_at, name_of, namespace_of
from clusters.jobs.framework.pod_set_info import PodSetInfo
from clusters.jobs.framework.topology import check_slice_bound, check_topology
from clusters.jobs.kinds.jobset import (
    JOBSET_NAME_LABEL,
    JobSet,
    all_ready,
    any_active,
    completed_or_failed,
    reclaimable,
)

_GROUP: Final = "trainer.kubeflow.org"
_RUNTIMES: Final = {"TrainingRuntime": True, "ClusterTrainingRuntime": False}
"""The kinds of runtimes, and whether they have a namespace."""
_STEP_LABEL: Final = "trainer.kubeflow.org/trainjob-ancestor-step"
_TRAINER: Final = "trainer"
_NODE: Final = "node"
"""The container that trains; with MPI also the replicated job of the workers."""
_INITIALIZERS: Final = {"dataset-initializer": "dataset", "model-initializer": "model"}
_TRAINER_PORT: Final = 29500
_MANAGER: Final = "kueue.x-k8s.io/manager"
_REMEDY: Final = (
    '. Adjust either the "TrainJob.spec.runtimePatches" or the "TrainingRuntime.Template" annotations '
    "for the corresponding Job"
)
_MERGE_KEYS: Final[Mapping[str, str]] = {
    "replicatedJobs": "name",
    "containers": "name",
    "initContainers": "name",
    "ephemeralContainers": "name",
    "volumes": "name",
    "volumeMounts": "mountPath",
    "env": "name",
    "ports": "containerPort",
    "imagePullSecrets": "name",
    "schedulingGates": "name",
    "resourceClaims": "name",
    "claims": "name",
    "topologySpreadConstraints": "topologyKey",
    "hostAliases": "ip",
}
"""Lists whose entries are merged by a key field, with that field; other lists are replaced."""


class TrainJob(JobKind):
    """Suspended and started by itself; everything else follows from the JobSet."""

    api_version = f"{_GROUP}/v1alpha1"
    kind = "TrainJob"
    plural = "trainjobs"
    managed_by_path = ("spec", "managedBy")
    own_manager = "trainer.kubeflow.org/trainjob-controller"
    refers_to = (
        Kind(f"{_GROUP}/v1alpha1", "TrainingRuntime", "trainingruntimes"),
        Kind(f"{_GROUP}/v1alpha1", "ClusterTrainingRuntime", "clustertrainingruntimes", namespaced=False),
    )
    remedy = "Create the training runtime in the cluster first, or name an existing one."
    kept_texts = frozenset({"message"})

    def sites(self, job: JsonObject) -> list[TemplateSite]:
        return []  # the training runtime has them

    def run_sites(self, job: JsonObject, context: JobContext) -> list[TemplateSite]:
        return JobSet().sites(_jobset_of(job, context))

    def pod_sets(self, job: JsonObject, context: JobContext) -> list[JsonObject]:
        return JobSet().pod_sets(_jobset_of(job, context), context)

    def pod_label_selector(self, job: JsonObject) -> str:
        return f"{JOBSET_NAME_LABEL}={name_of(job)}"

    # Start and stop

    def start(self, job: JsonObject, infos: Sequence[PodSetInfo], context: JobContext) -> None:
        expect_infos(len(_jobset_of(job, context)["spec"]["replicatedJobs"]), infos)
        _kueue_patch(job)["replicatedJobs"] = [_as_patch(info) for info in infos]
        self.resume(job)

    def stop(self, job: JsonObject, infos: Sequence[PodSetInfo] | None) -> None:
        self.suspend(job)
        if self.is_active(job):
            raise JobError("jobs are still active")
        _kueue_patch(job).pop("replicatedJobs", None)

    def restore(self, job: JsonObject, infos: Sequence[PodSetInfo]) -> None:
        """Restore the job by removing its one patch of merged additions: its templates belong to the runtime."""
        if any(patch.get("manager") == _MANAGER for patch in dig(job, "spec", "runtimePatches") or ()):
            _kueue_patch(job).pop("replicatedJobs", None)

    # The status

    def outcome(self, job: JsonObject) -> Outcome:
        return completed_or_failed(job, "Complete")

    def is_active(self, job: JsonObject) -> bool:
        return any_active(dig(job, "status", "jobsStatus") or ())

    def pods_ready(self, job: JsonObject, context: JobContext) -> bool:
        try:
            jobset = _jobset_of(job, context)
        except JobError:
            return False
        return all_ready(jobset["spec"]["replicatedJobs"], dig(job, "status", "jobsStatus") or ())

    def reclaimable_pods(self, job: JsonObject, context: JobContext) -> list[JsonObject]:
        statuses = dig(job, "status", "jobsStatus") or ()
        return reclaimable(_jobset_of(job, context)["spec"]["replicatedJobs"], statuses) if statuses else []

    # The webhooks

    def prepare_for_worker(self, job: JsonObject) -> None:
        # The worker's webhook adds its own entry, and the API server refuses two entries of one manager.
        patches = dig(job, "spec", "runtimePatches")
        if patches:
            job["spec"]["runtimePatches"] = [patch for patch in patches if patch.get("manager") != _MANAGER]

    def complete(self, job: JsonObject, context: JobContext) -> None:
        spec = mapping_at(job, "spec")
        patch = {"manager": _MANAGER, "trainingRuntimeSpec": {"template": {"spec": {}}}}
        spec["runtimePatches"] = [*(spec.get("runtimePatches") or ()), patch]

    def check_topology(self, job: JsonObject, context: JobContext) -> FieldErrors:
        errors: FieldErrors = []
        for pod_set in self.pod_sets(job, context):
            path = f"job[{pod_set['name']}]"
            errors += check_topology(path, pod_set["template"])
            errors += check_slice_bound(path, pod_set["template"], pod_set["count"])
        return [replace(error, detail=error.detail + _REMEDY) for error in errors]


def _kueue_patch(job: JsonObject) -> JsonObject:
    """Return the spec of the JobSet in the entry that the webhook created. Raises JobError if the webhook was
    bypassed."""
    for patch in dig(job, "spec", "runtimePatches") or ():
        if patch.get("manager") == _MANAGER:
            return mapping_at(patch, "trainingRuntimeSpec", "template", "spec")
    raise JobError("kueue runtime patch not found")


def _as_patch(info: PodSetInfo) -> JsonObject:
    metadata = {"annotations": info.annotations, "labels": info.labels}
    spec = {
        "nodeSelector": info.node_selector,
        "tolerations": info.tolerations,
        "schedulingGates": info.scheduling_gates,
    }
    template = {
        "metadata": {key: value for key, value in metadata.items() if value},
        "spec": {key: value for key, value in spec.items() if value},
    }
    return {"name": info.name, "template": {"spec": {"template": template}}}


def _jobset_of(job: JsonObject, context: JobContext) -> JsonObject:
    """Return the part of Trainer's JobSet that determines the pods' requests. Raises JobError."""
    runtime = _runtime_of(job, context)
    spec = _patched(dig(runtime, "spec", "template", "spec") or {}, job)
    policy: JsonObject | None = dig(runtime, "spec", "mlPolicy")
    replicated_jobs = spec.setdefault("replicatedJobs", [])
    _scale(replicated_jobs, job, policy)
    for replicated in replicated_jobs:
        _initialize(replicated, job)
        _train(replicated, job, policy)
    return {
        "apiVersion": JobSet.api_version,
        "kind": JobSet.kind,
        "metadata": {"name": name_of(job), "namespace": namespace_of(job)},
        "spec": spec,
    }


def _runtime_of(job: JsonObject, context: JobContext) -> JsonObject:
    reference = dig(job, "spec", "runtimeRef") or {}
    kind, group, name = (reference.get(key) or "" for key in ("kind", "apiGroup", "name"))
    if kind not in _RUNTIMES or group != _GROUP:
        raise JobError(f"unsupported runtime: {kind}.{group}")
    runtime = context.objects.get(kind, namespace_of(job) if _RUNTIMES[kind] else "", name)
    if runtime is None:
        raise JobError(f"runtime '{name}' not found")
    return runtime


def _patched(spec: JsonObject, job: JsonObject) -> JsonObject:
    """Return the runtime's JobSet with the job's patches, its replicated jobs in the runtime's order."""
    order = [replicated["name"] for replicated in spec.get("replicatedJobs") or ()]
    result: JsonObject = copy.deepcopy(spec)
    for patch in dig(job, "spec", "runtimePatches") or ():
        result = _merged(result, dig(patch, "trainingRuntimeSpec", "template", "spec") or {})
    result["replicatedJobs"] = sorted(
        result.get("replicatedJobs") or (),
        key=lambda replicated: order.index(replicated["name"]) if replicated["name"] in order else 0,
    )
    return result


def _merged(target: Any, patch: Any, field: str = "") -> Any:
    """Return a strategic merge patch applied to a value."""
    if isinstance(patch, dict) and isinstance(target, dict):
        result = dict(target)
        for key, value in patch.items():
            if value is None:
                result.pop(key, None)
            else:
                result[key] = _merged(result.get(key), value, key)
        return result
    if isinstance(patch, list) and isinstance(target, list) and field in _MERGE_KEYS:
        return _merged_entries(target, patch, _MERGE_KEYS[field])
    return copy.deepcopy(patch)


def _merged_entries(target: list[JsonObject], patch: list[JsonObject], key: str) -> list[JsonObject]:
    found = {entry.get(key): entry for entry in target}
    for entry in patch:
        found[entry.get(key)] = _merged(found.get(entry.get(key), {}), entry)
    return list(found.values())


def _is_trainer(replicated: JsonObject) -> bool:
    return _step_of(replicated) == _TRAINER


def _step_of(replicated: JsonObject) -> str:
    return str(dig(replicated, "template", "metadata", "labels", _STEP_LABEL) or "")


def _scale(replicated_jobs: list[JsonObject], job: JsonObject, policy: JsonObject | None) -> None:
    """Assign each replicated job its pods; the job's number of nodes applies to the trainer, with MPI to the nodes."""
    wanted = dig(job, "spec", "trainer", "numNodes")
    scaled = next((each for each in replicated_jobs if _is_scaled(each, policy)), None)
    for replicated in replicated_jobs:
        spec = mapping_at(replicated, "template", "spec")
        count = integer_at(spec, "parallelism", default=1)
        if _is_trainer(replicated) and policy is not None:
            count = integer_at(policy, "numNodes", default=1)
        count = max(count, 1)
        if wanted is not None and replicated is scaled:
            count = max(wanted - 1, 1) if _launcher_is_node(policy) else wanted
        spec["parallelism"] = spec["completions"] = count


def _is_scaled(replicated: JsonObject, policy: JsonObject | None) -> bool:
    return replicated["name"] == _NODE if dig(policy or {}, "mpi") is not None else _is_trainer(replicated)


def _launcher_is_node(policy: JsonObject | None) -> bool:
    return bool(dig(policy or {}, "mpi", "runLauncherAsNode"))


def _containers(replicated: JsonObject, name: str) -> list[JsonObject]:
    containers = dig(replicated, "template", "spec", "template", "spec", "containers") or ()
    return [container for container in containers if container.get("name") == name]


def _initialize(replicated: JsonObject, job: JsonObject) -> None:
    """Set up the step that fetches data and model: one pod with their addresses."""
    step = _step_of(replicated)
    if step not in _INITIALIZERS:
        return
    replicated["replicas"] = 1
    source = dig(job, "spec", "initializer", _INITIALIZERS[step])
    for container in _containers(replicated, step) if source is not None else ():
        if source.get("storageUri") is not None:
            _set_variables(container, [{"name": "STORAGE_URI", "value": source["storageUri"]}])
        _set_variables(container, source.get("env") or ())
        if source.get("secretRef") is not None:
            secret = {"secretRef": {"name": source["secretRef"].get("name", "")}}
            container["envFrom"] = [*(container.get("envFrom") or ()), secret]


def _train(replicated: JsonObject, job: JsonObject, policy: JsonObject | None) -> None:
    """Set up the step that trains as the job asks; with MPI the nodes get environment and resources too."""
    trainer = dig(job, "spec", "trainer") or {}
    is_node = _launcher_is_node(policy) and replicated["name"] == _NODE
    if _is_trainer(replicated):
        replicated["replicas"] = 1
    elif not is_node:
        return
    containers = _containers(replicated, _NODE)
    if trainer.get("resourcesPerNode") is not None and policy is not None and containers:
        resources = containers[0].get("resources") or {}
        containers[0]["resources"] = _merged(resources, trainer["resourcesPerNode"])
    for container in containers:
        if _is_trainer(replicated):
            container.update({key: trainer[key] for key in ("image", "command", "args") if trainer.get(key)})
        _set_variables(container, trainer.get("env") or ())
    if _is_trainer(replicated) and containers and dig(job, "spec", "trainer") is not None:
        _set_torch_port(containers[0], policy)


def _set_variables(container: JsonObject, variables: Sequence[JsonObject]) -> None:
    if variables:
        named = {variable["name"]: variable for variable in container.get("env") or ()}
        container["env"] = list((named | {variable["name"]: variable for variable in variables}).values())


def _set_torch_port(container: JsonObject, policy: JsonObject | None) -> None:
    """Trainer writes the port of torch over the first one that has no name. (One that it adds is not seen here.)"""
    if dig(policy or {}, "torch") is None:
        return
    ports = container.get("ports") or []
    for index, port in enumerate(ports):
        if port.get("containerPort") == _TRAINER_PORT or not port.get("name"):
            ports[index] = {"containerPort": _TRAINER_PORT}
            return
