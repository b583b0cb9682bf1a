"""The additions of an admission to the pods of a pod set: merged into a template, and removed again."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from clusters.jobs.framework.context import JobContext
from clusters.jobs.framework.errors import CannotStart, JobError
from clusters.jobs.framework.manifest import JsonObject, annotations_of, labels_of, mapping_at, name_of
from clusters.jobs.framework.pod_sets import canonical
from clusters.jobs.framework.syntax import is_label
from queues.manifests import kueue_keys as keys

_MODES: Final = ("required", "preferred", "unconstrained")


@dataclass(slots=True)
class PodSetInfo:
    """Labels, selectors and the like for the pods of one pod set."""

    name: str
    count: int
    annotations: dict[str, str] = field(default_factory=dict)
    labels: dict[str, str] = field(default_factory=dict)
    node_selector: dict[str, str] = field(default_factory=dict)
    tolerations: list[JsonObject] = field(default_factory=list)
    scheduling_gates: list[JsonObject] = field(default_factory=list)

    def add(
        self,
        *,
        annotations: Mapping[str, str] | None,
        labels: Mapping[str, str] | None,
        node_selector: Mapping[str, str] | None,
        tolerations: Sequence[JsonObject] | None,
        scheduling_gates: Sequence[JsonObject] | None = None,
    ) -> None:
        """Merge further values. Raises CannotStart if a key already has another value."""
        self.annotations = _merged("annotations", self.annotations, annotations)
        self.labels = _merged("labels", self.labels, labels)
        self.node_selector = _merged("nodeSelector", self.node_selector, node_selector)
        self.tolerations = _with_new(self.tolerations, tolerations)
        self.scheduling_gates = _with_new(self.scheduling_gates, scheduling_gates)

    def to_json(self) -> JsonObject:
        return {
            "name": self.name,
            "count": self.count,
            "annotations": self.annotations,
            "labels": self.labels,
            "nodeSelector": self.node_selector,
            "tolerations": self.tolerations,
            "schedulingGates": self.scheduling_gates,
        }


def _merged(what: str, own: Mapping[str, str] | None, added: Mapping[str, str] | None) -> dict[str, str]:
    own, added = own or {}, added or {}
    for key, value in own.items():
        if added.get(key, value) != value:
            conflict = f"conflict for key={key}, value1={value}, value2={added[key]}"
            raise CannotStart(f"invalid admission check PodSetUpdate: conflict for {what}: {conflict}")
    return {**own, **added}


def _with_new(own: Sequence[JsonObject] | None, added: Sequence[JsonObject] | None) -> list[JsonObject]:
    result = list(own or ())
    for entry in added or ():
        if canonical(entry) not in [canonical(existing) for existing in result]:
            result.append(entry)
    return result


def info_of_pod_set(pod_set: JsonObject) -> PodSetInfo:
    """Return the pod set's own values, which a stopped job gets back."""
    template = pod_set["template"]
    spec = template.get("spec") or {}
    return PodSetInfo(
        name=pod_set["name"],
        count=pod_set["count"],
        annotations=dict(annotations_of(template)),
        labels=dict(labels_of(template)),
        node_selector=dict(spec.get("nodeSelector") or {}),
        tolerations=copy.deepcopy(spec.get("tolerations") or []),
        scheduling_gates=copy.deepcopy(spec.get("schedulingGates") or []),
    )


def infos_of_workload(workload: JsonObject | None) -> list[PodSetInfo] | None:
    return None if workload is None else [info_of_pod_set(pod_set) for pod_set in workload["spec"]["podSets"]]


def infos_of_admission(workload: JsonObject, context: JobContext) -> list[PodSetInfo]:
    """Return the additions of the admission to each pod set. Raises CannotStart on a conflict, JobError if a flavor
    does not exist."""
    admission = (workload.get("status") or {}).get("admission") or {}
    pod_sets = workload["spec"]["podSets"]
    assignments = admission.get("podSetAssignments") or ()
    infos = []
    for assignment, pod_set in zip(assignments, pod_sets, strict=False):
        info = _assigned(assignment, pod_set, context)
        info.annotations[keys.WORKLOAD] = name_of(workload)
        annotations = annotations_of(workload)
        if annotations.get(keys.ELASTIC_JOB) == "true":
            info.annotations[keys.SLICE_NAME] = annotations.get(keys.SLICE_NAME, name_of(workload))
        info.labels[keys.POD_SET] = assignment["name"]
        info.labels[keys.LOCAL_QUEUE] = workload["spec"].get("queueName", "")
        if is_label(admission.get("clusterQueue", "")):
            info.labels[keys.CLUSTER_QUEUE] = admission["clusterQueue"]
        _add_updates(info, workload)
        infos.append(info)
    return infos


def _assigned(assignment: JsonObject, pod_set: JsonObject, context: JobContext) -> PodSetInfo:
    count = assignment.get("count")
    info = PodSetInfo(assignment["name"], pod_set["count"] if count is None else count)
    if assignment.get("topologyAssignment") is not None:
        request = pod_set.get("topologyRequest") or {}
        if not any(mode in request for mode in _MODES):
            info.annotations[keys.UNCONSTRAINED_TOPOLOGY] = "true"
        info.scheduling_gates.append({"name": keys.TOPOLOGY_GATE})
    flavors: Mapping[str, str] = assignment.get("flavors") or {}
    for name in dict.fromkeys(flavors[resource] for resource in sorted(flavors)):
        flavor = context.objects.get("ResourceFlavor", "", name)
        if flavor is None:
            raise JobError(f'resourceflavors.kueue.x-k8s.io "{name}" not found')
        spec = flavor.get("spec") or {}
        info.node_selector |= spec.get("nodeLabels") or {}
        info.tolerations += spec.get("tolerations") or []
    return info


def _add_updates(info: PodSetInfo, workload: JsonObject) -> None:
    for check in workload["status"].get("admissionChecks") or ():
        for update in check.get("podSetUpdates") or ():
            if update.get("name") != info.name:
                continue
            try:
                info.add(
                    annotations=update.get("annotations"),
                    labels=update.get("labels"),
                    node_selector=update.get("nodeSelector"),
                    tolerations=update.get("tolerations"),
                )
            except CannotStart as conflict:
                raise CannotStart(f'in admission check "{check["name"]}": {conflict}') from conflict
            break


def merge_into_template(template: JsonObject, info: PodSetInfo) -> None:
    """Adds an admission to a template. Raises CannotStart on a conflict."""
    metadata, spec = mapping_at(template, "metadata"), mapping_at(template, "spec")
    annotations = dict(metadata.get("annotations") or {})
    for key in _replaced_annotations(info):
        annotations.pop(key, None)
    merged: dict[tuple[str, str], Any] = {
        ("metadata", "annotations"): _merged("annotations", annotations, info.annotations),
        ("metadata", "labels"): _merged("labels", metadata.get("labels"), info.labels),
        ("spec", "nodeSelector"): _merged("nodeSelector", spec.get("nodeSelector"), info.node_selector),
        ("spec", "tolerations"): _with_new(spec.get("tolerations"), info.tolerations),
        ("spec", "schedulingGates"): _with_new(spec.get("schedulingGates"), info.scheduling_gates),
    }
    _write(template, merged)


def _replaced_annotations(info: PodSetInfo) -> tuple[str, ...]:
    """Annotations that a new chain of slices may change: they name the workload that started the pods."""
    if keys.SLICE_NAME not in info.annotations:
        return ()
    return tuple(key for key in (keys.SLICE_NAME, keys.WORKLOAD) if key in info.annotations)


def restore_template(template: JsonObject, info: PodSetInfo) -> None:
    """Restore a template from the pod set, and remove later additions."""
    _write(
        template,
        {
            ("metadata", "annotations"): dict(info.annotations),
            ("metadata", "labels"): dict(info.labels),
            ("spec", "nodeSelector"): dict(info.node_selector),
            ("spec", "tolerations"): list(info.tolerations),
            ("spec", "schedulingGates"): list(info.scheduling_gates),
        },
    )


def _write(template: JsonObject, values: Mapping[tuple[str, str], Any]) -> None:
    for (part, name), value in values.items():
        holder = mapping_at(template, part)
        if value:
            holder[name] = value
        else:
            holder.pop(name, None)
