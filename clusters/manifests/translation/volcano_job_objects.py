"""Jobs of Volcano (batch.volcano.sh) as jobs that clusters run without Volcano (pure).

A job of the plugins pytorch, tensorflow or mpi whose tasks are that framework's roles becomes a PyTorchJob, TFJob or
MPIJob; any other one with one task a Job, with several tasks, or whose pods call each other by name, a JobSet.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from copy import deepcopy
from typing import Any, Final, NamedTuple

from clusters.jobs.volcano.job_pods import flags_of, plugins_of
from clusters.jobs.volcano.job_rules import JobMistake, policy_mistakes, spec_mistakes
from clusters.jobs.volcano.job_spec import JobAction, JobEvent, Policy, TaskSpec, VolcanoJobSpec, read_spec
from clusters.manifests.translation.translated import JsonObject, Translation, metadata_of
from clusters.manifests.translation.volcano_field_types import job_type_mistakes, without_nulls
from queues.manifests import kueue_keys as keys
from queues.manifests.bounds import MAX_OBJECT_BYTES, MAX_REPLICAS
from queues.manifests.workload import MAX_POD_SETS
from scheduling.manifest import MistakeReason
from scheduling.manifest.field_reader import INT32_MAX

_INDEX: Final = f"metadata.labels['{keys.JOB_COMPLETION_INDEX}']"
_REPLICA_INDEX: Final = "metadata.labels['training.kubeflow.org/replica-index']"
_VOLCANO: Final = "volcano"
_SPEC_FIELDS: Final = frozenset(
    {
        "schedulerName", "minAvailable", "volumes", "tasks", "policies", "plugins", "runningEstimate", "queue",
        "maxRetry", "ttlSecondsAfterFinished", "priorityClassName", "minSuccess", "networkTopology",
    }
)  # fmt: skip
_TASK_FIELDS: Final = frozenset(
    {
        "name", "replicas", "minAvailable", "template", "policies", "topologyPolicy", "maxRetry", "dependsOn",
        "partitionPolicy",
    }
)  # fmt: skip
_MAX_NAMES: Final = 2**16
"""Characters of the names of all pods: Linux starts no process with a variable of 128 KiB."""
_REASONS: Final = {
    "Required value": MistakeReason.REQUIRED,
    "Duplicate value": MistakeReason.DUPLICATE,
    "Unsupported value": MistakeReason.NOT_SUPPORTED,
}
_RESTARTS: Final = frozenset(
    {JobAction.RESTART_JOB, JobAction.RESTART_TASK, JobAction.RESTART_POD, JobAction.RESTART_PARTITION}
)
_ENDS: Final = frozenset({JobAction.ABORT_JOB, JobAction.TERMINATE_JOB})


class _Framework(NamedTuple):
    """A kind of the training operators: where its roles are, and which of the plugin's flags names the task of each."""

    api_version: str
    kind: str
    replica_specs: str
    roles: Mapping[str, str]
    container: str


_FRAMEWORKS: Final[Mapping[str, _Framework]] = {
    "pytorch": _Framework(
        "kubeflow.org/v1", "PyTorchJob", "pytorchReplicaSpecs", {"master": "Master", "worker": "Worker"}, "pytorch"
    ),
    "tensorflow": _Framework(
        "kubeflow.org/v1",
        "TFJob",
        "tfReplicaSpecs",
        {"ps": "PS", "worker": "Worker", "chief": "Chief", "evaluator": "Evaluator"},
        "tensorflow",
    ),
    "mpi": _Framework(
        "kubeflow.org/v2beta1", "MPIJob", "mpiReplicaSpecs", {"master": "Launcher", "worker": "Worker"}, ""
    ),
}


def translate_job(content: Mapping[str, Any]) -> Translation:
    """Return a job's translation; its refusals name the fields of another type, too."""
    content = without_nulls(content)
    made = Translation(f"{content['apiVersion']} Job")
    if made.refuse_all(job_type_mistakes(content)):
        return made
    _check_fields(content, made)
    _note_mistakes(policy_mistakes(content), made)
    if made.refusals:
        return made
    job = read_spec(content)
    if job.replicas > MAX_REPLICAS:
        made.refuse("spec.tasks", job.replicas, f"must have at most {MAX_REPLICAS} pods", "Split the job.")
        return made
    _note_mistakes(spec_mistakes(job), made)
    if not made.refusals:
        made.manifests.append(made.annotated(_Job(content, job, made).manifest()))
    return made


def _check_fields(content: Mapping[str, Any], made: Translation) -> None:
    spec = content["spec"]
    if len(spec.get("tasks") or ()) > MAX_POD_SETS:
        rule = f"must have at most {MAX_POD_SETS} tasks: each is a pod set of the workload"
        made.refuse("spec.tasks", len(spec["tasks"]), rule, "Split the job.", MistakeReason.TOO_MANY)
        return
    for name in sorted(spec.keys() - _SPEC_FIELDS):
        made.refuse(f"spec.{name}", None, "unknown field", reason=MistakeReason.UNKNOWN_FIELD)
    for number, task in enumerate(spec.get("tasks") or ()):
        path = f"spec.tasks[{number}]"
        for name in sorted(task.keys() - _TASK_FIELDS):
            made.refuse(f"{path}.{name}", None, "unknown field", reason=MistakeReason.UNKNOWN_FIELD)
        made.refuse_fractions(f"{path}.template.spec", (task.get("template") or {}).get("spec") or {})
    for number, volume in enumerate(spec.get("volumes") or ()):
        if volume.get("volumeClaim") or not volume.get("volumeClaimName"):
            rule = "has no effect: the translation creates no PersistentVolumeClaims"
            remedy = "Make a PersistentVolumeClaim, and name it in volumeClaimName."
            made.refuse(f"spec.volumes[{number}]", None, rule, remedy, MistakeReason.NOT_SUPPORTED)


def _note_mistakes(mistakes: Iterable[JobMistake], made: Translation) -> None:
    for mistake in mistakes:
        reason = _REASONS.get(mistake.rule, MistakeReason.INVALID)
        made.refuse(mistake.path, mistake.value, mistake.rule, mistake.remedy, reason)


class _Job:
    """One job on its way."""

    def __init__(self, content: Mapping[str, Any], job: VolcanoJobSpec, made: Translation) -> None:
        self._content, self._spec, self._job, self._made = content, content["spec"], job, made
        self._plugins = plugins_of(job)
        self._tells_names = "svc" in self._plugins and self._names_fit()

    def _names_fit(self) -> bool:
        """Return whether the names of all pods fit into the variables of all containers, and are known."""
        containers = sum(len(_containers(task.template.get("spec") or {})) for task in self._job.tasks)
        characters = sum(task.replicas * (2 * len(self._job.name) + len(task.name) + 16) for task in self._job.tasks)
        small = characters <= _MAX_NAMES and containers * characters <= MAX_OBJECT_BYTES
        fits = small and bool(self._content["metadata"].get("name"))
        if not fits:
            self._made.lose("spec.plugins[svc]:variables", "too many pods, or no name yet: no variables name the pods")
        return fits

    def manifest(self) -> JsonObject:
        self._report()
        framework = self._framework()
        if framework is not None:
            return self._with_roles(*framework)
        if len(self._job.tasks) == 1 and "svc" not in self._plugins:
            return self._as_job()
        return self._as_job_set()

    def _object(self, api_version: str, kind: str, spec: JsonObject, **annotations: str) -> JsonObject:
        metadata = metadata_of(self._content)
        labels = metadata.get("labels") or {}
        metadata["labels"] = {**labels, keys.QUEUE_NAME: labels.get(keys.QUEUE_NAME) or self._job.queue}
        if annotations := {**(metadata.get("annotations") or {}), **annotations}:
            metadata["annotations"] = annotations
        return {"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": spec}

    # The three forms

    def _as_job(self) -> JsonObject:
        (task,) = self._job.tasks
        policies = [*task.policies, *self._job.policies]
        spec = self._child_spec(task, policies, "spec")
        if _action_on(policies, JobEvent.POD_FAILED) is JobAction.RESTART_JOB:
            spec["backoffLimit"] = self._allowed_restarts()
            self._made.lose("spec.policies:RestartJob", "a Job recreates only the failed pod, not all pods")
        if self._job.min_success is not None:
            spec["successPolicy"] = {"rules": [{"succeededCount": self._job.min_success}]}
            self._made.keep("spec.minSuccess", "successPolicy.rules[0].succeededCount")
        if self._job.ttl_seconds is not None:
            spec["ttlSecondsAfterFinished"] = self._job.ttl_seconds
        annotations = {}
        if self._job.min_available < task.replicas:
            annotations[keys.MINIMUM_PARALLELISM] = str(self._job.min_available)
            self._made.keep(
                "spec.minAvailable", f"{keys.MINIMUM_PARALLELISM}: fewer pods at a time, and all in the end"
            )
        self._template_into(spec, task, _INDEX, [])
        return self._object("batch/v1", "Job", spec, **annotations)

    def _as_job_set(self) -> JsonObject:
        made, job = self._made, self._job
        self._lose_partial_gang("a JobSet starts with all its pods")
        self._lose_min_success("a JobSet ends when all its tasks have ended")
        hosts = [
            (task, [f"{job.name}-{task.name}-0-{index}.{job.name}" for index in range(task.replicas)])
            for task in job.tasks
        ]
        replicated = []
        for number, task in enumerate(job.tasks):
            child = self._child_spec(task, [*task.policies, *job.policies], f"spec.tasks[{number}]")
            self._template_into(child, task, _INDEX, hosts)
            entry: JsonObject = {"name": task.name, "replicas": 1, "template": {"spec": child}}
            if task.depends_on:
                entry["dependsOn"] = [{"name": name, "status": "Ready"} for name in task.depends_on]
                made.keep(f"spec.tasks[{number}].dependsOn", "replicatedJobs[].dependsOn, with quota for all tasks")
            if task.any_of and len(task.depends_on) > 1:
                made.lose(f"spec.tasks[{number}].dependsOn.iteration", "a JobSet waits for all the tasks that it names")
            replicated.append(entry)
        spec: JsonObject = {"replicatedJobs": replicated, **self._job_set_policies()}
        if "svc" in self._plugins:
            publishes = flags_of(self._plugins["svc"]).get("publish-not-ready-addresses") == "true"
            spec["network"] = {"enableDNSHostnames": True, "publishNotReadyAddresses": publishes}
        if job.ttl_seconds is not None:
            spec["ttlSecondsAfterFinished"] = job.ttl_seconds
        return self._object("jobset.x-k8s.io/v1alpha2", "JobSet", spec)

    def _with_roles(self, plugin: str, tasks: Mapping[str, TaskSpec]) -> JsonObject:
        made, job, framework = self._made, self._job, _FRAMEWORKS[plugin]
        self._lose_partial_gang(f"a {framework.kind} starts with all its pods")
        self._lose_min_success(f"a {framework.kind} ends by its own rule")
        made.keep(f"spec.plugins[{plugin}]", f"{framework.kind}, whose operator sets the variables")
        specs: JsonObject = {}
        hosts = [
            (task, [f"{job.name}-{role.lower()}-{index}" for index in range(task.replicas)])
            for role, task in tasks.items()
        ]
        for role, task in tasks.items():
            holder: JsonObject = {"replicas": task.replicas, "restartPolicy": "Never"}
            self._template_into(holder, task, _REPLICA_INDEX, hosts)
            holder["restartPolicy"] = holder["template"]["spec"].pop("restartPolicy")
            if framework.container:  # the operator completes the container of this name
                holder["template"]["spec"]["containers"][0]["name"] = framework.container
            specs[role] = holder
        self._report_policies_of(framework.kind)
        self._lose_dependencies(f"a {framework.kind} starts all its pods at once")
        run_policy: JsonObject = {"suspend": True, "backoffLimit": self._allowed_restarts()}
        if job.ttl_seconds is not None:
            run_policy["ttlSecondsAfterFinished"] = job.ttl_seconds
        return self._object(
            framework.api_version, framework.kind, {"runPolicy": run_policy, framework.replica_specs: specs}
        )

    def _framework(self) -> tuple[str, dict[str, TaskSpec]] | None:
        """Return the plugin whose roles all tasks have, and the task of each role."""
        for plugin, framework in _FRAMEWORKS.items():
            if plugin not in self._job.plugins:
                continue
            flags = flags_of(self._job.plugins[plugin])
            found = {role: self._job.task(flags.get(flag, flag)) for flag, role in framework.roles.items()}
            tasks = {role: task for role, task in found.items() if task is not None}
            if len(tasks) == len(self._job.tasks):
                return plugin, tasks
            self._made.lose(
                f"spec.plugins[{plugin}]", f"tasks beyond the roles of a {framework.kind}: no variables are set"
            )
        return None

    # Pods

    def _template_into(
        self, holder: JsonObject, task: TaskSpec, index_path: str, hosts: list[tuple[TaskSpec, list[str]]]
    ) -> None:
        template = deepcopy(dict(task.template))
        spec = template.setdefault("spec", {})
        if spec.get("restartPolicy") not in ("Never", "OnFailure"):
            spec["restartPolicy"] = "Never"
        if self._job.priority_class and not spec.get("priorityClassName"):
            spec["priorityClassName"] = self._job.priority_class
        scheduler = self._spec.get("schedulerName")
        if spec.get("schedulerName") == _VOLCANO:
            del spec["schedulerName"]
        elif scheduler not in (None, "", _VOLCANO):
            spec.setdefault("schedulerName", scheduler)
        self._mount_volumes(spec)
        self._set_variables(spec, index_path, hosts)
        metadata = template.get("metadata") or {}
        metadata.pop("name", None)
        holder["template"] = {"metadata": metadata, "spec": spec} if metadata else {"spec": spec}

    def _mount_volumes(self, spec: JsonObject) -> None:
        for volume in self._spec.get("volumes") or ():
            claim = volume["volumeClaimName"]
            added = {"name": claim, "persistentVolumeClaim": {"claimName": claim}}
            spec["volumes"] = [
                *(spec.get("volumes") or ()),
                *([added] if added not in (spec.get("volumes") or ()) else []),
            ]
            for container in spec.get("containers") or ():
                mount = {"name": claim, "mountPath": volume["mountPath"]}
                container["volumeMounts"] = [*(container.get("volumeMounts") or ()), mount]

    def _set_variables(self, spec: JsonObject, index_path: str, hosts: list[tuple[TaskSpec, list[str]]]) -> None:
        values: list[JsonObject] = []
        if "env" in self._plugins:
            reference = {"fieldRef": {"fieldPath": index_path}}
            values += [{"name": name, "valueFrom": reference} for name in ("VK_TASK_INDEX", "VC_TASK_INDEX")]
        for task, names in hosts if self._tells_names else ():
            prefix = f"VC_{task.name.upper().replace('-', '_')}"
            values += [{"name": f"{prefix}_HOSTS", "value": ",".join(names)}]
            values += [{"name": f"{prefix}_NUM", "value": str(len(names))}]
        for container in _containers(spec) if values else ():
            there = {entry.get("name") for entry in container.get("env") or ()}
            container["env"] = [*(container.get("env") or ()), *(each for each in values if each["name"] not in there)]

    # Restarts

    def _child_spec(self, task: TaskSpec, policies: list[Policy], path: str) -> JsonObject:
        """Return the spec of a Job with one task: the number of pods, and the effect of a failed pod."""
        spec: JsonObject = {"parallelism": task.replicas, "completions": task.replicas, "completionMode": "Indexed"}
        failed = _action_on(policies, JobEvent.POD_FAILED)
        in_place = (task.template.get("spec") or {}).get("restartPolicy") == "OnFailure"
        if failed is None and in_place:  # as in Volcano, containers are started again any number of times
            spec["backoffLimit"] = INT32_MAX
        elif failed is None:  # as in Volcano, a failed pod stays so, and the others continue
            spec["backoffLimitPerIndex"] = 0
        elif failed in _ENDS or failed is JobAction.RESTART_JOB:
            spec["backoffLimit"] = 0
        else:
            spec["backoffLimit"] = self._allowed_restarts()
        codes = [policy for policy in policies if policy.exit_code is not None and policy.action in _ENDS]
        if codes and in_place:
            self._made.lose(f"{path}.policies:exitCode", "containers with restartPolicy OnFailure are started again")
        elif codes:
            values = sorted({policy.exit_code for policy in codes if policy.exit_code is not None})
            rule = {"action": "FailJob", "onExitCodes": {"operator": "In", "values": values}}
            spec["podFailurePolicy"] = {"rules": [rule]}
        return spec

    def _allowed_restarts(self) -> int:
        """Return the restarts that do not fail the job: the last of `maxRetry` does."""
        return max(0, self._job.max_retry - 1)

    def _job_set_policies(self) -> JsonObject:
        job = self._job
        found: JsonObject = {}
        everything = [*job.policies, *(policy for task in job.tasks for policy in task.policies)]
        if _action_on(everything, JobEvent.POD_FAILED) is JobAction.RESTART_JOB:
            found["failurePolicy"] = {"maxRestarts": self._allowed_restarts()}
        enders = [
            task.name
            for task in job.tasks
            if _action_on(task.policies, JobEvent.TASK_COMPLETED) is JobAction.COMPLETE_JOB
        ]
        if enders:
            found["successPolicy"] = {"operator": "Any", "targetReplicatedJobs": enders}
        elif _action_on(job.policies, JobEvent.TASK_COMPLETED) is JobAction.COMPLETE_JOB:
            found["successPolicy"] = {"operator": "Any", "targetReplicatedJobs": [task.name for task in job.tasks]}
        return found

    # The report

    def _report(self) -> None:
        spec, made = self._spec, self._made
        made.keep("spec.queue", f"label {keys.QUEUE_NAME}: a LocalQueue of the namespace, which names the ClusterQueue")
        if spec.get("schedulerName") == _VOLCANO:
            made.keep(
                "spec.schedulerName", "left out: kueueweb admits the job, and the cluster's scheduler binds its pods"
            )
        if spec.get("priorityClassName"):
            made.keep("spec.priorityClassName", "priorityClassName of the pods that name none")
        if spec.get("networkTopology"):
            made.lose(
                "spec.networkTopology", f"annotate the pods with {keys.REQUIRED_TOPOLOGY} and a level of a Topology"
            )
        if spec.get("runningEstimate"):
            made.lose("spec.runningEstimate", f"label the job with {keys.MAXIMUM_EXECUTION_SECONDS}")
        for number, task in enumerate(self._content["spec"]["tasks"]):
            self._report_task(f"spec.tasks[{number}]", task)
        self._report_plugins()
        self._report_policies()

    def _report_task(self, path: str, task: Mapping[str, Any]) -> None:
        made = self._made
        if task.get("partitionPolicy"):
            made.lose(
                f"{path}.partitionPolicy", "no partitions: use a LeaderWorkerSet, whose groups are admitted one by one"
            )
        if task.get("topologyPolicy"):
            made.lose(f"{path}.topologyPolicy", "NUMA nodes are left to the kubelet's topology manager")
        if task.get("maxRetry"):
            made.lose(f"{path}.maxRetry", "restarts of containers do not fail the task")
        if (task.get("template") or {}).get("spec", {}).get("restartPolicy") == "Always":
            made.lose(f"{path}.template.spec.restartPolicy", "Never: a job's pods end")

    def _report_plugins(self) -> None:
        made, plugins = self._made, self._job.plugins
        if "svc" in self._plugins:
            made.lose("spec.plugins[svc]", "no files in /etc/volcano: read VC_<TASK>_HOSTS, which has the new names")
            if "disable-network-policy" not in flags_of(self._plugins["svc"]):
                made.lose("spec.plugins[svc]:NetworkPolicy", "no NetworkPolicy is created")
        if "ssh" in plugins and "mpi" not in plugins:
            made.lose("spec.plugins[ssh]", "no keys are created: use an MPIJob, which creates its own, or a Secret")

    def _report_policies(self) -> None:
        holders = [("spec", self._job.policies)]
        holders += [(f"spec.tasks[{number}]", task.policies) for number, task in enumerate(self._job.tasks)]
        for path, policies in holders:
            for number, policy in enumerate(policies):
                place = f"{path}.policies[{number}]"
                text = _kept_policy(policy)
                if text:
                    self._made.keep(place, text)
                else:
                    what = ", ".join(sorted(policy.events)) or f"exit code {policy.exit_code}"
                    self._made.lose(place, f"no counterpart of {what} -> {policy.action}")

    def _report_policies_of(self, kind: str) -> None:
        if any(policy.action is JobAction.RESTART_JOB for policy in self._job.policies):
            self._made.lose("spec.policies:RestartJob", f"a {kind} restarts the pod that failed, not all of them")

    def _lose_partial_gang(self, why: str) -> None:
        if self._job.min_available < self._job.replicas:
            self._made.lose("spec.minAvailable", why)

    def _lose_min_success(self, why: str) -> None:
        if self._job.min_success is not None:
            self._made.lose("spec.minSuccess", why)

    def _lose_dependencies(self, why: str) -> None:
        for number, task in enumerate(self._job.tasks):
            if task.depends_on:
                self._made.lose(f"spec.tasks[{number}].dependsOn", why)


def _containers(spec: Mapping[str, Any]) -> list[JsonObject]:
    return [*(spec.get("initContainers") or ()), *(spec.get("containers") or ())]


def _action_on(policies: Iterable[Policy], event: JobEvent) -> JobAction | None:
    """Return the action of the first policy that an event matches, without a delay."""
    for policy in policies:
        if (event in policy.events or JobEvent.ANY in policy.events) and not policy.timeout_seconds:
            return policy.action
    return None


def _kept_policy(policy: Policy) -> str:
    """Return in words which field of our jobs has the effect of a policy; "" if it is lost."""
    if policy.timeout_seconds:
        return ""
    if policy.exit_code is not None:
        return "podFailurePolicy: FailJob on this exit code" if policy.action in _ENDS else ""
    events = policy.events
    if events == {JobEvent.TASK_COMPLETED} and policy.action is JobAction.COMPLETE_JOB:
        return "the job completes with its task: successPolicy"
    if not events <= {JobEvent.POD_FAILED, JobEvent.POD_EVICTED}:
        return ""
    if policy.action in _RESTARTS and JobEvent.POD_FAILED in events:
        return "backoffLimit, or failurePolicy.maxRestarts of a JobSet: maxRetry less one"
    if policy.action in _RESTARTS:
        return "a deleted pod is created again"
    if policy.action in _ENDS and events == {JobEvent.POD_FAILED}:
        return "backoffLimit 0: the job fails with its first failed pod, and is not resumed"
    return ""
