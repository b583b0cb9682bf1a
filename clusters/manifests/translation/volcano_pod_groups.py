"""PodGroups of Volcano as groups of plain pods (pure): the pods of the same request say the group's name and size."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from clusters.manifests.translation.translated import JsonObject, Translation
from clusters.manifests.translation.volcano_field_types import pod_group_type_mistakes
from queues.manifests import kueue_keys as keys

_GROUP_NAMES: Final = ("scheduling.k8s.io/group-name", "scheduling.volcano.sh/group-name")
_LOST: Final = {
    "minResources": "the requests of its pods are counted",
    "minTaskMember": "all pods of the group start together",
    "networkTopology": f"annotate the pods with {keys.REQUIRED_TOPOLOGY} and a level of a Topology",
    "subGroupPolicy": "a pod group cannot contain other groups",
}


def group_of(pod: Mapping[str, Any]) -> str:
    """Return the name of the PodGroup that a pod names; "" without one."""
    annotations = (pod.get("metadata") or {}).get("annotations") or {}
    return next((str(annotations[key]) for key in _GROUP_NAMES if annotations.get(key)), "")


def translate_pod_group(group: Mapping[str, Any], pods: Sequence[Mapping[str, Any]]) -> Translation:
    """Return the pods of a group, which start together or not at all.

    `pods`: the pods of the request that name this group.
    """
    made = Translation(f"{group['apiVersion']} PodGroup")
    if made.refuse_all(pod_group_type_mistakes(group)):
        return made
    spec = group.get("spec") or {}
    total = max(int(spec.get("minMember") or 1), len(pods))
    made.keep("spec.minMember", f"{keys.POD_GROUP_TOTAL_COUNT}: {total}")
    if total > int(spec.get("minMember") or 1):
        made.lose("spec.minMember", f"all {total} pods of the request start together")
    for name, text in _LOST.items():
        if spec.get(name):
            made.lose(f"spec.{name}", text)
    made.manifests += [made.annotated(_member(pod, str(group["metadata"]["name"]), total, spec)) for pod in pods]
    return made


def _member(pod: Mapping[str, Any], name: str, total: int, spec: Mapping[str, Any]) -> JsonObject:
    metadata, pod_spec = dict(pod["metadata"]), dict(pod["spec"])
    labels = {**(metadata.get("labels") or {}), keys.POD_GROUP_NAME: name}
    labels.setdefault(keys.QUEUE_NAME, str(spec.get("queue") or "default"))
    annotations = {key: value for key, value in (metadata.get("annotations") or {}).items() if key not in _GROUP_NAMES}
    metadata |= {"labels": labels, "annotations": {**annotations, keys.POD_GROUP_TOTAL_COUNT: str(total)}}
    if spec.get("priorityClassName"):
        pod_spec.setdefault("priorityClassName", spec["priorityClassName"])
    if pod_spec.get("schedulerName") == "volcano":
        del pod_spec["schedulerName"]
    return {**pod, "metadata": metadata, "spec": pod_spec}
