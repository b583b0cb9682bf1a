"""The objects of jobs as the push writes them (pure), for a creation, a start, a stop or a new size, with all
templates.

The changes of an object follow its kind's rules (`clusters.jobs.kinds`); our labels, and the gate by which we place
pods, are added here.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from clusters.api_objects import JsonObject
from clusters.jobs.framework.context import MULTIKUEUE_CONTROLLER
from clusters.jobs.framework.errors import CannotStart as Conflict
from clusters.jobs.framework.job_kind import JobKind
from clusters.jobs.framework.manifest import assign, dig, mapping_at
from clusters.jobs.framework.pod_set_info import PodSetInfo
from clusters.jobs.framework.scheduling_gates import add_gate
from clusters.jobs.objects import (
    HAMI_KEEPS_AWAY,
    HAMI_WEBHOOK_LABEL,
    HOSTNAME_LABEL,
    PLACEMENT_GATE,
    POD_SET_LABEL,
    AdmittedWorkload,
    CannotStart,
    JobSource,
    PodSetAdmission,
    admission_labels,
    bare_manifest,
    common_labels,
)
from clusters.jobs.owned_keys import WORKLOAD_UID_LABEL, owned_keys
from queues.manifests import kueue_keys as keys
from scheduling.devices.requests.pod_completion import completed_pod
from scheduling.model.quantity import parse_quantity

_NOT_OURS: Final = ("status",)


def new_object(source: JobSource, workload: AdmittedWorkload) -> JsonObject:
    """Return the object to apply so that the job of an admitted workload runs. Raises CannotStart."""
    manifest = own_manifest(source)
    infos = [_info(source, workload, pod_set) for pod_set in workload.pod_sets]
    try:
        source.kind.start(manifest, infos, source.context)
    except Conflict as conflict:
        raise CannotStart(str(conflict)) from conflict
    return manifest


def own_manifest(source: JobSource) -> JsonObject:
    """Return a submitted job, its pods completed."""
    kind, manifest = source.kind, bare_manifest(source)
    manifest["spec"] = _without_owned(copy.deepcopy(manifest["spec"]))
    kind.fill_in(manifest)
    kind.complete(manifest, source.context)
    for _, template in kind.templates(manifest):
        template.update(completed_pod(copy.deepcopy(template), source.vendors))
    return manifest


def _without_owned(value: Any) -> Any:
    """Removes the labels and annotations that tenants may not write, also from pod templates."""
    if isinstance(value, list):
        return [_without_owned(item) for item in value]
    if not isinstance(value, dict):
        return value
    owned = owned_keys(value)
    return {
        key: {name: text for name, text in item.items() if name not in owned[key]}
        if key in owned
        else _without_owned(item)
        for key, item in value.items()
    }


def handed_over_source(source: JobSource) -> JobSource:
    """Return a submitted job that runs in another cluster (MultiKueue): its kind's own controller ignores it here."""
    if not source.kind.managed_by_path or source.found_in_cluster:
        return source
    manifest = copy.deepcopy(dict(source.manifest))
    assign(manifest, source.kind.managed_by_path, MULTIKUEUE_CONTROLLER)
    return replace(source, manifest=manifest)


def gated_pod(source: JobSource) -> JsonObject:
    """Return a pod of ours before it starts: with Kueue's gate and, in a group that names an index label, with that
    label."""
    manifest = own_manifest(source)
    add_gate(manifest, keys.ADMISSION_GATE)
    labels = manifest["metadata"]["labels"]
    index = labels.get((manifest["metadata"].get("annotations") or {}).get(keys.POD_GROUP_POD_INDEX_LABEL, ""))
    if index is not None:
        labels[keys.POD_GROUP_POD_INDEX] = index
    return manifest


def as_made(source: JobSource, there: Mapping[str, Any]) -> JobSource:
    """Return the source with the pods of the existing job, because the requests of containers cannot be changed any
    more."""
    made, mine = (_limits(source.kind, each) for each in (copy.deepcopy(dict(there)), own_manifest(source)))
    return source if made == mine else replace(source, vendors=())


def _limits(kind: JobKind, manifest: JsonObject) -> list[dict[str, int]]:
    """Return the limits of each container, in nano units."""
    containers = [
        container
        for _, template in kind.templates(manifest)
        for field in ("initContainers", "containers")
        for container in dig(template, "spec", field) or ()
    ]
    return [
        {name: parse_quantity(amount) for name, amount in (dig(each, "resources", "limits") or {}).items()}
        for each in containers
    ]


def waiting_object(source: JobSource, there: JsonObject | None) -> JsonObject:
    """Return the job with the gate on all of its pods, which wait for admission in its place. For a found job, return
    it as it exists."""
    manifest = copy.deepcopy(there) if source.found_in_cluster and there is not None else own_manifest(source)
    for name, template in source.kind.templates(manifest):
        labels = mapping_at(template, "metadata", "labels")
        labels |= {**common_labels(source), POD_SET_LABEL: name}
        if not source.hami_binds:
            labels[HAMI_WEBHOOK_LABEL] = HAMI_KEEPS_AWAY
        add_gate(template, PLACEMENT_GATE)
    return manifest


def add_placement(source: JobSource, workload: AdmittedWorkload, infos: Sequence[PodSetInfo]) -> None:
    """Add the missing parts to an admission: the pods' labels, the chosen nodes, and the gate if pods wait for them.
    Raises the framework's CannotStart."""
    for info in infos:
        (pod_set,) = [each for each in workload.pod_sets if each.name == info.name]
        labels = {**common_labels(source), WORKLOAD_UID_LABEL: workload.uid}
        if pod_set.nodes and pod_set.with_devices and not source.hami_binds:
            labels[HAMI_WEBHOOK_LABEL] = HAMI_KEEPS_AWAY
        host = "" if source.elastic else pod_set.tied_to
        gated = source.elastic or (bool(pod_set.nodes) and not host) or pod_set.topology is not None
        info.add(
            annotations=None,
            labels=labels,
            node_selector={HOSTNAME_LABEL: host} if host else None,
            tolerations=None,
            scheduling_gates=[{"name": PLACEMENT_GATE}] if gated else None,
        )


def _info(source: JobSource, workload: AdmittedWorkload, pod_set: PodSetAdmission) -> PodSetInfo:
    """Return the additions to the template of a pod set."""
    info = PodSetInfo(pod_set.name, pod_set.count)
    annotations = {keys.WORKLOAD: workload.name}
    if source.elastic:
        annotations[keys.SLICE_NAME] = workload.slice_name or workload.name
    try:
        info.add(
            annotations=annotations,
            labels=admission_labels(workload, pod_set),
            node_selector=pod_set.node_labels,
            tolerations=[dict(each) for each in pod_set.tolerations],
        )
        add_placement(source, workload, [info])
        for update in pod_set.updates:
            info.add(
                annotations=update.annotations,
                labels=update.labels,
                node_selector=update.node_selector,
                tolerations=[dict(each) for each in update.tolerations],
            )
    except Conflict as conflict:
        raise CannotStart(str(conflict)) from conflict
    return info


def difference(before: Mapping[str, Any], after: Mapping[str, Any]) -> JsonObject | None:
    """Return the merge patch from one object to another, for the object with that uid only; None if they are equal."""
    patch = {key: value for key, value in _changes(before, after).items() if key not in _NOT_OURS}
    if not patch:
        return None
    # Lists are replaced whole: one that changed meanwhile must not be lost.
    version = {"uid": dig(before, "metadata", "uid"), "resourceVersion": dig(before, "metadata", "resourceVersion")}
    return {**patch, "metadata": {**patch.get("metadata", {}), **{key: text for key, text in version.items() if text}}}


def _changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> JsonObject:
    changes: JsonObject = {key: None for key in before if key not in after}
    for key, value in after.items():
        old = before.get(key)
        if old == value or (old is None and value in ({}, [])):
            continue
        changes[key] = _changes(old, value) if isinstance(old, Mapping) and isinstance(value, Mapping) else value
    return changes
