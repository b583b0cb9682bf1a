"""The pods of a Volcano Job and the objects beside them, as its plugins make them (pure).

Plugins: env (the index of a pod), svc (a headless Service and the names of all pods), ssh (a key pair), pytorch,
tensorflow and mpi (their own variables). Rules: pkg/controllers/job/plugins of Volcano.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any, Final

from clusters.jobs.volcano.job_life import JobPod, JobStatus
from clusters.jobs.volcano.job_spec import TaskSpec, VolcanoJobSpec

JsonObject = dict[str, Any]

PLUGINS: Final = ("env", "svc", "ssh", "pytorch", "tensorflow", "mpi")
_NEED_NAMES: Final = frozenset({"pytorch", "tensorflow", "mpi"})
"""Plugins whose pods call each other by name, so that svc is added, too."""
_HOSTS_PATH: Final = "/etc/volcano"
_ROOT_HOME: Final = "/root"
SSH_KEYS: Final = ("id_rsa", "id_rsa.pub", "authorized_keys", "config")
_JOB_NAME: Final = "volcano.sh/job-name"
_JOB_NAMESPACE: Final = "volcano.sh/job-namespace"
TASK_LABEL: Final = "volcano.sh/task-spec"
INDEX_LABEL: Final = "volcano.sh/task-index"
VERSION_ANNOTATION: Final = "volcano.sh/job-version"
_PYTORCH_PORT: Final = 23456
_TENSORFLOW_PORT: Final = 2222
_SSH_PORT: Final = 22
_TF_ROLES: Final = ("ps", "worker", "chief", "evaluator")


def plugins_of(job: VolcanoJobSpec) -> dict[str, Sequence[str]]:
    """Return the plugins of a job, with the plugins that Volcano's admission adds."""
    plugins = dict(job.plugins)
    if _NEED_NAMES & plugins.keys():
        plugins.setdefault("svc", ())
    if "mpi" in plugins:
        plugins.setdefault("ssh", ())
    return plugins


def flags_of(arguments: Iterable[str]) -> dict[str, str]:
    """`--port=22` and `--port 22` -> {"port": "22"}; a flag without a value is "true"."""
    flags: dict[str, str] = {}
    last = ""
    for argument in arguments:
        if argument.startswith("-"):
            last, equals, value = argument.lstrip("-").partition("=")
            flags[last] = value if equals else "true"
        elif last:
            flags[last] = argument
    return flags


def _is_set(flags: Mapping[str, str], name: str) -> bool:
    return flags.get(name, "false").lower() in ("true", "1", "t")


# Pods


def make_pod(job: VolcanoJobSpec, status: JobStatus, pod: JobPod) -> JsonObject:
    """Return the manifest of a pod, with its job's labels and its plugins' additions."""
    task = job.task(pod.task)
    if task is None:
        raise KeyError(pod.task)
    template = deepcopy(dict(task.template))
    metadata, spec = template.get("metadata") or {}, template.get("spec") or {}
    spec.setdefault("schedulerName", job.scheduler_name)
    if not spec.get("priorityClassName") and job.priority_class:
        spec["priorityClassName"] = job.priority_class
    made: JsonObject = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": pod.name,
            "namespace": job.namespace,
            "labels": {**(metadata.get("labels") or {}), **_labels(job, task, pod)},
            "annotations": {**(metadata.get("annotations") or {}), **_annotations(job, status, pod)},
        },
        "spec": spec,
    }
    additions = {name: _ADDITIONS[name] for name in _ORDER if name in plugins_of(job)}
    for name, add in additions.items():
        add(_Pod(job, task, pod.index, spec, flags_of(plugins_of(job)[name])))
    return made


def _labels(job: VolcanoJobSpec, task: TaskSpec, pod: JobPod) -> dict[str, str]:
    labels = {
        _JOB_NAME: job.name,
        _JOB_NAMESPACE: job.namespace,
        "volcano.sh/queue-name": job.queue,
        TASK_LABEL: task.name,
        INDEX_LABEL: str(pod.index),
    }
    partition = task.partition_of(pod.index)
    return labels if partition is None else {**labels, "volcano.sh/partition-id": str(partition)}


def _annotations(job: VolcanoJobSpec, status: JobStatus, pod: JobPod) -> dict[str, str]:
    return {
        "scheduling.k8s.io/group-name": pod_group_name(job),
        _JOB_NAME: job.name,
        "volcano.sh/job-retry-count": str(status.retry_count),
        VERSION_ANNOTATION: str(pod.version),
        "volcano.sh/queue-name": job.queue,
        INDEX_LABEL: str(pod.index),
        TASK_LABEL: pod.task,
        "volcano.sh/template-uid": f"{job.name}-{pod.task}",
    }


def pod_group_name(job: VolcanoJobSpec) -> str:
    return f"{job.name}-{job.uid}"


@dataclass(slots=True)
class _Pod:
    """A pod that a plugin completes: its spec is changed in place."""

    job: VolcanoJobSpec
    task: TaskSpec
    index: int
    spec: JsonObject
    flags: Mapping[str, str]

    def set_environment(self, values: Mapping[str, Any]) -> None:
        """Add variables to all containers: a text is the value, a mapping refers to its source."""
        for container in self._containers():
            names = {entry.get("name") for entry in container.get("env") or ()}
            entries = [
                {"name": name, "value": value} if isinstance(value, str) else {"name": name, "valueFrom": value}
                for name, value in values.items()
                if name not in names
            ]
            container["env"] = [*(container.get("env") or ()), *entries]

    def open_port(self, name: str, port: int) -> None:
        for container in self.spec.get("containers") or ():
            ports = container.get("ports") or []
            if all(entry.get("containerPort") != port for entry in ports):
                container["ports"] = [*ports, {"name": name, "containerPort": port}]

    def mount(self, volume: JsonObject, path: str) -> None:
        self.spec["volumes"] = [*(self.spec.get("volumes") or ()), volume]
        for container in self._containers():
            mounts = container.get("volumeMounts") or ()
            container["volumeMounts"] = [*mounts, {"name": volume["name"], "mountPath": path}]

    def _containers(self) -> list[JsonObject]:
        return [*(self.spec.get("initContainers") or ()), *(self.spec.get("containers") or ())]

    def role(self, flag: str, default: str) -> TaskSpec | None:
        """Return the task that has a role of the plugin."""
        return self.job.task(self.flags.get(flag, default))

    def port(self, default: int) -> int:
        return int(self.flags.get("port", default))


def hosts_of(job: VolcanoJobSpec, task: TaskSpec) -> list[str]:
    """Return the names under which the pods of a task find each other: `pod.job`."""
    pod_spec = task.template.get("spec") or {}
    subdomain = pod_spec.get("subdomain") or job.name
    return [f"{job.pod_name(task, index)}.{subdomain}" for index in range(task.replicas)]


def _add_index(pod: _Pod) -> None:
    pod.set_environment({"VK_TASK_INDEX": str(pod.index), "VC_TASK_INDEX": str(pod.index)})


def _add_names(pod: _Pod) -> None:
    job = pod.job
    if not pod.spec.get("hostname"):
        pod.spec["hostname"] = job.pod_name(pod.task, pod.index)
    if not pod.spec.get("subdomain"):
        pod.spec["subdomain"] = job.name
    config = f"{job.name}-svc"
    keys = [key for task in job.tasks for key in (_hosts_variable(task), _number_variable(task))]
    pod.set_environment({key: {"configMapKeyRef": {"name": config, "key": key}} for key in keys})
    pod.mount({"name": config, "configMap": {"name": config}}, _HOSTS_PATH)


def _hosts_variable(task: TaskSpec) -> str:
    return f"VC_{_in_variables(task)}_HOSTS"


def _number_variable(task: TaskSpec) -> str:
    return f"VC_{_in_variables(task)}_NUM"


def _in_variables(task: TaskSpec) -> str:
    return task.name.upper().replace("-", "_")


def _add_keys(pod: _Pod) -> None:
    name = f"{pod.job.name}-ssh"
    path = pod.flags.get("ssh-key-file-path") or f"{_ROOT_HOME}/.ssh"
    secret = {"secretName": name, "defaultMode": 0o600, "items": [{"key": key, "path": key} for key in SSH_KEYS]}
    pod.mount({"name": name, "secret": secret}, path)


def _add_pytorch(pod: _Pod) -> None:
    master, worker = pod.role("master", "master"), pod.role("worker", "worker")
    if master is None:
        return
    values = {
        "MASTER_ADDR": hosts_of(pod.job, master)[0] if master.replicas else "",
        "MASTER_PORT": str(pod.port(_PYTORCH_PORT)),
        "WORLD_SIZE": str(master.replicas + (worker.replicas if worker else 0)),
    }
    if pod.task is master:
        values["RANK"] = "0"
    elif pod.task is worker:
        values["RANK"] = str(pod.index + 1)
    pod.set_environment(values)
    pod.open_port("pytorchjob-port", pod.port(_PYTORCH_PORT))
    if pod.task is not master and _is_set(pod.flags, "wait-master-enabled"):
        _wait_for(pod, values["MASTER_ADDR"])


def _wait_for(pod: _Pod, host: str) -> None:
    """Let the pod begin once the master has a name, and can be called."""
    seconds = pod.flags.get("wait-master-timeout", "300")
    command = f"for i in $(seq {int(seconds)}); do nslookup {host} && exit 0; sleep 1; done; exit 1"
    image = pod.flags.get("wait-master-image", "busybox:1.36.1")
    init = {"name": "wait-for-master", "image": image, "command": ["sh", "-c", command]}
    pod.spec["initContainers"] = [*(pod.spec.get("initContainers") or ()), init]


def _add_tensorflow(pod: _Pod) -> None:
    port = pod.port(_TENSORFLOW_PORT)
    roles = {role: pod.role(role, role) for role in _TF_ROLES}
    cluster = {
        role: [f"{host}:{port}" for host in hosts_of(pod.job, task)] for role, task in roles.items() if task is not None
    }
    own = next((role for role, task in roles.items() if task is pod.task), pod.task.name)
    config = {"cluster": cluster, "task": {"type": own, "index": pod.index}}
    pod.set_environment({"TF_CONFIG": json.dumps(config, separators=(",", ":"))})


def _add_mpi(pod: _Pod) -> None:
    master, worker = pod.role("master", "master"), pod.role("worker", "worker")
    if master is None or worker is None:
        return
    if pod.task is master:
        pod.set_environment({"MPI_HOST": ",".join(hosts_of(pod.job, worker))})
    pod.open_port("mpijob-port", pod.port(_SSH_PORT))


_ADDITIONS: Final[Mapping[str, Callable[[_Pod], None]]] = {
    "env": _add_index,
    "svc": _add_names,
    "ssh": _add_keys,
    "pytorch": _add_pytorch,
    "tensorflow": _add_tensorflow,
    "mpi": _add_mpi,
}
_ORDER: Final = ("svc", "env", "ssh", "pytorch", "tensorflow", "mpi")


# The objects beside the pods


@dataclass(frozen=True, slots=True)
class JobObjects:
    """The objects that a job's plugins keep besides its pods; `secret` is the name of the one for ssh keys, if any."""

    services: list[JsonObject] = field(default_factory=list)
    config_maps: list[JsonObject] = field(default_factory=list)
    network_policies: list[JsonObject] = field(default_factory=list)
    secret: str = ""


def objects_of(job: VolcanoJobSpec) -> JobObjects:
    """Return the additional objects of a job. The caller generates the random keys of its secret."""
    plugins = plugins_of(job)
    secret = f"{job.name}-ssh" if "ssh" in plugins else ""
    if "svc" not in plugins:
        return JobObjects(secret=secret)
    flags = flags_of(plugins["svc"])
    selector = {_JOB_NAME: job.name, _JOB_NAMESPACE: job.namespace}
    service = {
        "clusterIP": "None",
        "selector": selector,
        "publishNotReadyAddresses": _is_set(flags, "publish-not-ready-addresses"),
        "ports": [{"name": "placeholder-volcano", "port": 1, "targetPort": 1}],
    }
    policy = {
        "podSelector": {"matchLabels": selector},
        "ingress": [{"from": [{"podSelector": {"matchLabels": selector}}]}],
        "policyTypes": ["Ingress"],
    }
    policies = [_object("networking.k8s.io/v1", "NetworkPolicy", job, job.name, spec=policy)]
    data = {key: value for task in job.tasks for key, value in _names(job, task).items()}
    return JobObjects(
        [_object("v1", "Service", job, job.name, spec=service)],
        [_object("v1", "ConfigMap", job, f"{job.name}-svc", data=data)],
        [] if _is_set(flags, "disable-network-policy") else policies,
        secret,
    )


def _names(job: VolcanoJobSpec, task: TaskSpec) -> dict[str, str]:
    hosts = hosts_of(job, task)
    return {
        f"{task.name}.host": "\n".join(hosts),
        _hosts_variable(task): ",".join(hosts),
        _number_variable(task): str(len(hosts)),
    }


def _object(api_version: str, kind: str, job: VolcanoJobSpec, name: str, **content: Any) -> JsonObject:
    return {
        "apiVersion": api_version,
        "kind": kind,
        "metadata": {"name": name, "namespace": job.namespace},
        **content,
    }
