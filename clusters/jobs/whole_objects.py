"""Jobs that an operator runs, started and stopped as a whole (pure): all of their templates at once.

Kueue's contract and ours meet here: its labels, annotations and selectors, and the labels and the gate by which we tell
the pods apart and place them.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any, Final

from clusters.client import JsonObject
from clusters.jobs.framework.context import JobContext
from clusters.jobs.framework.errors import CannotStart as Conflict
from clusters.jobs.framework.job_kind import JobKind as JobRules
from clusters.jobs.framework.manifest import dig
from clusters.jobs.framework.pod_set_info import PodSetInfo, info_of_pod_set
from clusters.jobs.objects import (
    HAMI_WEBHOOK_LABEL,
    HOSTNAME_LABEL,
    PLACEMENT_GATE,
    AdmittedWorkload,
    CannotStart,
    JobSource,
    PodSetAdmission,
    admission_labels,
    bare_manifest,
    common_labels,
)
from clusters.jobs.owned_keys import owned_keys
from clusters.jobs.reading import NO_CLUSTER
from queues.manifests import kueue_keys as keys
from scheduling.devices.requests.webhook import completed_pod

_NOT_OURS: Final = ("status",)


def new_object(source: JobSource, workload: AdmittedWorkload, rules: JobRules) -> JsonObject:
    """The object to create for an admitted workload. Raises CannotStart."""
    manifest = bare_manifest(source)
    manifest["spec"] = _without_owned(copy.deepcopy(manifest["spec"]))
    rules.fill_in(manifest)
    for site in rules.sites(manifest):
        completed = completed_pod(copy.deepcopy(site.template), source.vendors)
        site.template.update(completed)
    return _started(manifest, source, workload, rules, NO_CLUSTER)


def _without_owned(value: Any) -> Any:
    """Without labels and annotations that no tenant may write, also where they are no metadata of a pod yet."""
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


def start_patch(
    there: Mapping[str, Any], source: JobSource, workload: AdmittedWorkload, rules: JobRules
) -> JsonObject | None:
    """The merge patch that starts an object that is there; None where it runs already. Raises CannotStart."""
    if not rules.is_suspended(dict(there)):
        return None
    return difference(there, _started(copy.deepcopy(dict(there)), source, workload, rules, NO_CLUSTER))


def stop_patch(there: Mapping[str, Any], pod_sets: list[JsonObject], rules: JobRules) -> JsonObject | None:
    """The merge patch that suspends an object and gives its templates back; None where it is suspended."""
    if rules.is_suspended(dict(there)):
        return None
    stopped: JsonObject = copy.deepcopy(dict(there))
    rules.stop(stopped, [info_of_pod_set(pod_set) for pod_set in pod_sets])
    return difference(there, stopped)


def _started(
    manifest: JsonObject, source: JobSource, workload: AdmittedWorkload, rules: JobRules, context: JobContext
) -> JsonObject:
    infos = [_info(source, workload, pod_set) for pod_set in workload.pod_sets]
    try:
        rules.start(manifest, infos, context)
    except Conflict as conflict:
        raise CannotStart(str(conflict)) from conflict
    return manifest


def _info(source: JobSource, workload: AdmittedWorkload, pod_set: PodSetAdmission) -> PodSetInfo:
    """What is merged into the template of a pod set."""
    info = PodSetInfo(pod_set.name, pod_set.count)
    labels = {**common_labels(source), **admission_labels(workload, pod_set)}
    if pod_set.nodes and pod_set.with_devices:
        labels[HAMI_WEBHOOK_LABEL] = "ignore"
    host = "" if source.elastic else pod_set.tied_to
    gated = (bool(pod_set.nodes) and not host) or pod_set.topology is not None
    try:
        info.add(
            annotations={keys.WORKLOAD: workload.name},
            labels=labels,
            node_selector={**pod_set.node_labels, HOSTNAME_LABEL: host} if host else pod_set.node_labels,
            tolerations=[dict(each) for each in pod_set.tolerations],
            scheduling_gates=[{"name": PLACEMENT_GATE}] if gated else [],
        )
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
    """The merge patch from one object to another, for the object of that uid only; None where they are alike."""
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
        if old == value:
            continue
        changes[key] = _changes(old, value) if isinstance(old, Mapping) and isinstance(value, Mapping) else value
    return changes
