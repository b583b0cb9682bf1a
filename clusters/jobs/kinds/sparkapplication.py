"""sparkoperator.k8s.io/v1beta2 SparkApplication: a driver and its executors."""

from __future__ import annotations

import copy
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from clusters.jobs.framework.context import JobContext
from clusters.jobs.framework.errors import FieldErrors, JobError, distinct, invalid
from clusters.jobs.framework.identity import is_elastic, queue_name_of
from clusters.jobs.framework.job_kind import JobKind, Outcome, TemplateSite, expect_infos, integer_at
from clusters.jobs.framework.manifest import JsonObject, dig, mapping_at, name_of
from clusters.jobs.framework.pod_set_info import PodSetInfo
from clusters.jobs.framework.validation import check_changed_job
from scheduling.model.quantity import InvalidQuantity, parse_quantity

_ROLES: Final = ("driver", "executor")
_CONTAINERS: Final = {"driver": "spark-kubernetes-driver", "executor": "spark-kubernetes-executor"}
_LOCAL_DIRECTORY: Final = "spark-local-dir-"
_JVM_MEMORY: Final = re.compile(r".*?(?P<unit>[kmgtp]b?)")
_APP_LABEL: Final = "sparkoperator.k8s.io/app-name"


class SparkApplication(JobKind):
    """The templates of both roles are built from the fields of the application; its own `template` gives labels and
    annotations only."""

    api_version = "sparkoperator.k8s.io/v1beta2"
    kind = "SparkApplication"
    plural = "sparkapplications"
    multikueue = False
    takes_prebuilt_workload = False
    checks_groups = False
    reads_topology_off_pod_sets = True

    def sites(self, job: JsonObject) -> list[TemplateSite]:
        counts = {"driver": 1, "executor": integer_at(job, "spec", "executor", "instances")}
        return [TemplateSite(role, counts[role], _template(job, role), f"spec.{role}") for role in _ROLES]

    def pod_label_selector(self, job: JsonObject) -> str:
        return f"{_APP_LABEL}={name_of(job)}"

    # Start and stop

    def start(self, job: JsonObject, infos: Sequence[PodSetInfo], context: JobContext) -> None:
        expect_infos(len(_ROLES), infos)
        self.resume(job)
        everywhere = mapping_at(job, "spec").pop("nodeSelector", None)
        for role, info in zip(_ROLES, infos, strict=True):
            pods = mapping_at(job, "spec", role)
            template = _own_template(pods, role)
            own = PodSetInfo(role, 0)
            own.add(
                annotations=pods.get("annotations"),
                labels=pods.get("labels"),
                node_selector=pods.get("nodeSelector") if everywhere is None else everywhere,
                tolerations=pods.get("tolerations"),
                scheduling_gates=dig(template, "spec", "schedulingGates"),
            )
            own.add(
                annotations=info.annotations,
                labels=info.labels,
                node_selector=info.node_selector,
                tolerations=info.tolerations,
                scheduling_gates=info.scheduling_gates,
            )
            _write(pods, template, own)

    def restore(self, job: JsonObject, infos: Sequence[PodSetInfo]) -> None:
        if len(infos) != len(_ROLES):
            return
        for role, info in zip(_ROLES, infos, strict=True):
            pods = mapping_at(job, "spec", role)
            _write(pods, _own_template(pods, role), info)
        mapping_at(job, "spec", "executor")["instances"] = infos[1].count
        job["spec"].pop("nodeSelector", None)

    # The status

    def outcome(self, job: JsonObject) -> Outcome:
        state = _state(job)
        finished = state in ("COMPLETED", "FAILED", "SUBMISSION_FAILED")
        message = dig(job, "status", "applicationState", "errorMessage") or ""
        return Outcome(finished, state == "COMPLETED", message)

    def is_active(self, job: JsonObject) -> bool:
        return _state(job) == "RUNNING"

    def pods_ready(self, job: JsonObject, context: JobContext) -> bool:
        if not self.is_active(job):
            return False
        executors = (dig(job, "status", "executorState") or {}).values()
        ready = sum(state in ("RUNNING", "COMPLETED") for state in executors)
        return ready >= integer_at(job, "spec", "executor", "instances")

    # The webhooks

    def check_own(self, job: JsonObject, context: JobContext) -> FieldErrors:
        if not self.is_watched_over(job, context):
            return []
        errors: FieldErrors = []
        mode = dig(job, "spec", "mode")
        if mode != "cluster":
            errors.append(invalid("spec.mode", mode, "only Cluster mode is supported for a kueue managed job"))
        if dig(job, "spec", "dynamicAllocation", "enabled") and not is_elastic(job):
            rule = (
                "a kueue managed job can use dynamicAllocation only when the ElasticJobsViaWorkloadSlices feature gate "
                "is on and the job is an elastic job"
            )
            errors.append(invalid("spec.dynamicAllocation.enabled", True, rule))
        return errors

    def check_update(self, old: JsonObject, new: JsonObject, context: JobContext) -> FieldErrors:
        if not self.is_watched_over(new, context) and not queue_name_of(old):
            return []
        return distinct([*check_changed_job(self, old, new, context), *self.check_create(new, context)])


def _state(job: JsonObject) -> str:
    return str(dig(job, "status", "applicationState", "state") or "")


def _own_template(pods: JsonObject, role: str) -> JsonObject:
    """Return the template of a role, created if it has none, because gates have no other place."""
    if pods.get("template") is None:
        pods["template"] = {"spec": {"containers": [{"name": _CONTAINERS[role]}]}}
    return mapping_at(pods, "template")


def _write(pods: JsonObject, template: JsonObject, info: PodSetInfo) -> None:
    values: dict[str, Any] = {
        "annotations": dict(info.annotations),
        "labels": dict(info.labels),
        "nodeSelector": dict(info.node_selector),
        "tolerations": list(info.tolerations),
    }
    for field, value in values.items():
        _set(pods, field, value)
    _set(mapping_at(template, "spec"), "schedulingGates", list(info.scheduling_gates))


def _set(holder: JsonObject, field: str, value: Any) -> None:
    if value:
        holder[field] = value
    else:
        holder.pop(field, None)


def _template(job: JsonObject, role: str) -> JsonObject:
    """Return the pod of a role, as the Spark operator's webhook would complete it. Raises JobError."""
    pods: JsonObject = dig(job, "spec", role) or {}
    main = _main_container(pods, role)
    spec: JsonObject = {"containers": [main, *_other(pods.get("sidecars"), [main])]}
    mounts, volumes = _volumes(job, pods)
    if mounts:
        main["volumeMounts"], spec["volumes"] = mounts, volumes
    for field in ("nodeSelector", "affinity", "tolerations", "priorityClassName"):
        if pods.get(field):
            spec[field] = copy.deepcopy(pods[field])
    if pods.get("initContainers"):
        spec["initContainers"] = _other(pods["initContainers"], [])
    metadata: JsonObject = copy.deepcopy(dig(pods, "template", "metadata") or {})
    for field in ("labels", "annotations"):
        merged = {**(metadata.get(field) or {}), **(pods.get(field) or {})}
        _set(metadata, field, merged)
    return {"metadata": metadata, "spec": spec}


def _other(containers: Sequence[JsonObject] | None, before: Sequence[JsonObject]) -> list[JsonObject]:
    """Further containers, each name and image once."""
    seen = {(each.get("name"), each.get("image")) for each in before}
    found = []
    for container in containers or ():
        key = (container.get("name"), container.get("image"))
        if key not in seen:
            seen.add(key)
            found.append(copy.deepcopy(container))
    return found


def _main_container(pods: JsonObject, role: str) -> JsonObject:
    requests = {"cpu": _cpu(pods, "coreRequest"), "memory": _memory(pods, "memory")}
    limits = {"cpu": _cpu(pods, "coreLimit"), "memory": _memory(pods, "memoryLimit")}
    gpu = pods.get("gpu") or {}
    if gpu.get("name") and integer_at(gpu, "quantity") > 0:
        limits[gpu["name"]] = str(gpu["quantity"])
    resources = {"requests": requests, "limits": limits}
    return {
        "name": _CONTAINERS[role],
        "resources": {
            field: {name: text for name, text in amounts.items() if text is not None}
            for field, amounts in resources.items()
        },
    }


def _cpu(pods: JsonObject, field: str) -> str | None:
    return _quantity(pods.get(field), pods.get(field), f"CPU {field}")


def _memory(pods: JsonObject, field: str) -> str | None:
    """Return an amount of memory in the JVM's units, which must be in lower case."""
    text = pods.get(field)
    if text is None:
        return None
    jvm = _JVM_MEMORY.fullmatch(text.lower())
    if jvm is None:
        return _quantity(text, text, field)
    if not text.endswith(jvm["unit"]):
        raise JobError(f"failed to parse {field} {text}: its unit must be in lower case")
    return _quantity(f"{text.removesuffix(jvm['unit'])}{jvm['unit'][0].upper()}i", text, field)


def _quantity(text: str | None, written: str | None, what: str) -> str | None:
    if text is None:
        return None
    try:
        parse_quantity(text)
    except InvalidQuantity as mistake:
        raise JobError(f"failed to parse {what} {written}: {mistake}") from mistake
    return text


def _volumes(job: JsonObject, pods: JsonObject) -> tuple[list[JsonObject], list[JsonObject]]:
    """Return the role's mounts of the application's volumes, and these volumes."""
    known: Mapping[str, JsonObject] = {each["name"]: each for each in dig(job, "spec", "volumes") or ()}
    mounts = [
        mount
        for mount in pods.get("volumeMounts") or ()
        if not mount["name"].startswith(_LOCAL_DIRECTORY) and mount["name"] in known
    ]
    used = dict.fromkeys(mount["name"] for mount in mounts)
    return copy.deepcopy(mounts), [copy.deepcopy(known[name]) for name in used]
