"""workload.codeflare.dev/v1beta2 AppWrapper: jobs and other objects that start together.

Wrapped objects are no jobs of their own: the wrapper is the job, and its controller merges the admission into the
templates.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from clusters.jobs.framework.conditions import is_true
from clusters.jobs.framework.context import JobContext
from clusters.jobs.framework.errors import CannotStart, FieldErrors
from clusters.jobs.framework.job_kind import JobKind, Outcome, TemplateSite
from clusters.jobs.framework.manifest import JsonObject, dig, name_of
from clusters.jobs.framework.pod_set_info import PodSetInfo
from clusters.jobs.framework.pod_sets import make_pod_set
from clusters.jobs.framework.topology import NO_LABELS, PodLabels
from queues.manifests import kueue_keys as keys
from scheduling.model.quantity import parse_quantity

_JOB_INDEX_LABEL: Final = "jobset.sigs.k8s.io/job-index"
_REPLICA_INDEX_LABEL: Final = "training.kubeflow.org/replica-index"
_POD_INDEX: Final = "workload.codeflare.dev.appwrapper/tas-pod-index-label"
_SUBGROUP_INDEX: Final = "workload.codeflare.dev.appwrapper/tas-sub-group-index-label"
_SUBGROUP_COUNT: Final = "workload.codeflare.dev.appwrapper/tas-sub-group-count"
_STEP: Final = re.compile(r"\.(?P<field>[^.\[]+)|\[(?P<index>\d+)\]")
_MILLI: Final = 10**6


@dataclass(frozen=True, slots=True)
class _Part:
    """A pod set of a component: where its template is within the component, and how many pods it has."""

    path: str
    replicas: int = 1
    labels: PodLabels = NO_LABELS


class AppWrapper(JobKind):
    """The pod sets of all components, numbered."""

    api_version = "workload.codeflare.dev/v1beta2"
    kind = "AppWrapper"
    plural = "appwrappers"
    managed_by_path = ("spec", "managedBy")
    own_manager = "workload.codeflare.dev/appwrapper-controller"
    kept_texts = frozenset({"message"})
    repeats_checks = False

    def sites(self, job: JsonObject) -> list[TemplateSite]:
        found: list[TemplateSite] = []
        for component, parts in zip(_components(job), _parts(job), strict=False):
            for part in parts:
                template = _value_at(component, part.path)
                if isinstance(template, dict) and isinstance(template.get("spec"), dict):
                    name = f"{name_of(job)}-{len(found)}"
                    found.append(TemplateSite(name, part.replicas, template, "", part.labels))
        return found

    def pod_sets(self, job: JsonObject, context: JobContext) -> list[JsonObject]:
        return [
            make_pod_set(site.name, site.count, _as_completed(site.template), site.labels) for site in self.sites(job)
        ]

    def start(self, job: JsonObject, infos: Sequence[PodSetInfo], context: JobContext) -> None:
        parts = _parts(job)
        expected = sum(len(of_component) for of_component in parts)
        if expected != len(infos):
            raise CannotStart(f"invalid podset infos: expecting {expected} podsets, got {len(infos)}")
        given = iter(infos)
        for component, of_component in zip(_components(job), parts, strict=False):
            component["podSetInfos"] = [_as_injected(next(given)) for _ in of_component]
        self.resume(job)

    def restore(self, job: JsonObject, infos: Sequence[PodSetInfo]) -> None:
        for component in _components(job):
            component.pop("podSetInfos", None)

    def check_topology(self, job: JsonObject, context: JobContext) -> FieldErrors:
        return []  # an invalid annotation is reported when the workload is created

    # The status

    def outcome(self, job: JsonObject) -> Outcome:
        phase = dig(job, "status", "phase")
        if phase == "Succeeded":
            return Outcome(True, True, "AppWrapper finished successfully")
        if phase != "Failed":
            return Outcome(False, False)
        if is_true(job, "ResourcesDeployed"):
            return Outcome(False, False, "Still deleting resources for failed AppWrapper")
        return Outcome(True, False, "AppWrapper failed")

    def is_active(self, job: JsonObject) -> bool:
        return is_true(job, "QuotaReserved")

    def pods_ready(self, job: JsonObject, context: JobContext) -> bool:
        return is_true(job, "PodsReady")


def _components(job: JsonObject) -> list[JsonObject]:
    return dig(job, "spec", "components") or []


def _parts(job: JsonObject) -> list[list[_Part]]:
    """Return the pod sets per component: as its controller recorded them, as they are declared, or from the wrapped
    object."""
    noted = dig(job, "status", "componentStatus") or []
    components = _components(job)
    if len(noted) == len(components):
        return [_declared(component.get("podSets") or ()) for component in noted]
    return [
        _declared(component["podSets"]) if component.get("podSets") else list(_inferred(component))
        for component in components
    ]


def _declared(pod_sets: Sequence[JsonObject]) -> list[_Part]:
    return [
        _Part(each["path"], 1 if each.get("replicas") is None else int(each["replicas"]), _noted_labels(each))
        for each in pod_sets
    ]


def _noted_labels(pod_set: JsonObject) -> PodLabels:
    annotations = pod_set.get("annotations") or {}
    count = annotations.get(_SUBGROUP_COUNT, "")
    subgroups = int(count) if re.fullmatch(r"[+-]?\d+", count, re.ASCII) else None
    return PodLabels(annotations.get(_POD_INDEX, ""), annotations.get(_SUBGROUP_INDEX, ""), subgroups)


def _inferred(component: JsonObject) -> Iterator[_Part]:
    wrapped = component.get("template") or {}
    infer = _KINDS.get((wrapped.get("apiVersion", ""), wrapped.get("kind", "")))
    return infer(component) if infer is not None else iter(())


def _value_at(component: Mapping[str, Any], path: str) -> Any:
    """Return the value at a path like `template.spec.extra[0].template`; None if there is none."""
    here: Any = component.get("template")
    rest = path.removeprefix("template")
    while rest:
        step = _STEP.match(rest)
        if step is None:
            return None
        if step["field"] is not None:
            here = here.get(step["field"]) if isinstance(here, Mapping) else None
        else:
            index = int(step["index"])
            here = here[index] if isinstance(here, list) and index < len(here) else None
        rest = rest[step.end() :]
    return here


def _number_at(component: Mapping[str, Any], path: str, default: int = 1) -> int:
    value = _value_at(component, path)
    return value if isinstance(value, int) and not isinstance(value, bool) else default


def _pods_of_job(component: JsonObject, prefix: str) -> int:
    parallelism = _number_at(component, f"{prefix}.parallelism")
    return min(parallelism, _number_at(component, f"{prefix}.completions", parallelism))


def _of_job(component: JsonObject) -> Iterator[_Part]:
    count = _pods_of_job(component, "template.spec")
    yield _Part("template.spec.template", count, PodLabels(keys.JOB_COMPLETION_INDEX))


def _of_jobset(component: JsonObject) -> Iterator[_Part]:
    for index, replicated in enumerate(_value_at(component, "template.spec.replicatedJobs") or ()):
        prefix = f"template.spec.replicatedJobs[{index}]"
        if "template" in replicated:
            replicas = _number_at(component, f"{prefix}.replicas")
            labels = PodLabels(keys.JOB_COMPLETION_INDEX, _JOB_INDEX_LABEL, replicas)
            count = replicas * _pods_of_job(component, f"{prefix}.template.spec")
            yield _Part(f"{prefix}.template.spec.template", count, labels)


def _of_pytorch_job(component: JsonObject) -> Iterator[_Part]:
    for role in ("Master", "Worker"):
        prefix = f"template.spec.pytorchReplicaSpecs.{role}"
        if _value_at(component, f"{prefix}.template") is not None:
            replicas = _number_at(component, f"{prefix}.replicas")
            yield _Part(f"{prefix}.template", replicas, PodLabels(_REPLICA_INDEX_LABEL))


def _of_ray(prefix: str) -> Callable[[JsonObject], Iterator[_Part]]:
    def infer(component: JsonObject) -> Iterator[_Part]:
        yield _Part(f"{prefix}.headGroupSpec.template")
        for index, group in enumerate(_value_at(component, f"{prefix}.workerGroupSpecs") or ()):
            path = f"{prefix}.workerGroupSpecs[{index}]"
            if "template" in group:
                yield _Part(f"{path}.template", _number_at(component, f"{path}.replicas"))

    return infer


def _of_pod(component: JsonObject) -> Iterator[_Part]:
    yield _Part("template")


def _of_replicas(component: JsonObject) -> Iterator[_Part]:
    if _value_at(component, "template.spec.template") is not None:
        yield _Part("template.spec.template", _number_at(component, "template.spec.replicas"))


_KINDS: Final[Mapping[tuple[str, str], Callable[[JsonObject], Iterator[_Part]]]] = {
    ("batch/v1", "Job"): _of_job,
    ("jobset.x-k8s.io/v1alpha2", "JobSet"): _of_jobset,
    ("kubeflow.org/v1", "PyTorchJob"): _of_pytorch_job,
    ("ray.io/v1", "RayCluster"): _of_ray("template.spec"),
    ("ray.io/v1", "RayJob"): _of_ray("template.spec.rayClusterSpec"),
    ("v1", "Pod"): _of_pod,
    ("apps/v1", "Deployment"): _of_replicas,
    ("apps/v1", "StatefulSet"): _of_replicas,
}
"""Kinds that can be wrapped without naming the places of their pods. Counts are those of AppWrapper, not those of
the kinds' own integrations: hosts and submitters of Ray are not counted."""


def _as_injected(info: PodSetInfo) -> JsonObject:
    injected = info.to_json()
    return {key: value for key, value in injected.items() if key not in ("name", "count") and value}


def _as_completed(template: JsonObject) -> JsonObject:
    """Return the part of a template that AppWrapper reads, with the API server's defaults filled in."""
    metadata = template.get("metadata") or {}
    spec = template["spec"]
    completed: JsonObject = {
        "containers": [_container(each) for each in spec.get("containers") or ()],
        "restartPolicy": spec.get("restartPolicy") or "Always",
        "dnsPolicy": spec.get("dnsPolicy") or "ClusterFirst",
        "schedulerName": spec.get("schedulerName") or "default-scheduler",
        "preemptionPolicy": spec.get("preemptionPolicy") or "PreemptLowerPriority",
        "securityContext": spec.get("securityContext") or {},
    }
    if spec.get("initContainers"):
        completed["initContainers"] = [_container(each) for each in spec["initContainers"]]
    if spec.get("terminationGracePeriodSeconds") is None:
        completed["terminationGracePeriodSeconds"] = 30
    for field in ("nodeSelector", "nodeName", "affinity", "tolerations", "priorityClassName",
                  "topologySpreadConstraints"):  # fmt: skip
        if spec.get(field):
            completed[field] = copy.deepcopy(spec[field])
    if spec.get("overhead"):
        completed["overhead"] = _rounded(spec["overhead"])
    kept = {field: dict(metadata[field]) for field in ("labels", "annotations") if metadata.get(field)}
    return {"metadata": kept, "spec": completed}


def _container(container: JsonObject) -> JsonObject:
    resources = container.get("resources") or {}
    completed: JsonObject = {
        field: copy.deepcopy(container[field])
        for field in ("name", "image", "command", "args", "securityContext")
        if container.get(field) is not None
    }
    completed["resources"] = {
        field: _rounded(resources[field]) for field in ("requests", "limits") if resources.get(field)
    }
    pulled = "Always" if _is_latest(container.get("image", "")) else "IfNotPresent"
    return completed | {
        "terminationMessagePath": container.get("terminationMessagePath") or "/dev/termination-log",
        "terminationMessagePolicy": container.get("terminationMessagePolicy") or "File",
        "imagePullPolicy": container.get("imagePullPolicy") or pulled,
    }


def _rounded(amounts: Mapping[str, Any]) -> JsonObject:
    """Quantities rounded up to thousandths."""
    rounded = {}
    for name, text in amounts.items():
        nanos = parse_quantity(text)
        rounded[name] = text if nanos % _MILLI == 0 else f"{-(-nanos // _MILLI)}m"
    return rounded


def _is_latest(image: str) -> bool:
    """Return whether an image is named with the tag latest, or with neither tag nor digest."""
    name, _, digest = image.partition("@")
    _, colon, tag = name.rpartition("/")[2].partition(":")
    return tag == "latest" if colon else bool(name) and not digest
