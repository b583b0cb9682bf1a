"""Groups of plain pods: the group's fields on a pod, and the rule for equal pods."""

import copy
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from queues.manifests import kueue_keys as keys
from queues.manifests.role_hash import role_hash as kueue_role_hash
from scheduling.manifest import FieldReader
from scheduling.manifest.syntax import dns_label

POD: Final = "Pod"
POD_GROUP: Final = "PodGroup"
"""The kind of a group's row. No cluster has objects of it."""
"""Each role is a pod set, and a workload has at most that many."""
_DEVICE_DOMAIN: Final = "hami.io"
_TOPOLOGY_KEYS: Final = (
    keys.REQUIRED_TOPOLOGY, keys.PREFERRED_TOPOLOGY, keys.UNCONSTRAINED_TOPOLOGY, keys.SLICE_TOPOLOGY,
    keys.SLICE_SIZE, keys.SLICE_CONSTRAINTS, keys.POD_SET_GROUP,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class PodGroupMember:
    """The fields of a pod's group.

    * total_count: how many pods the group has when it is complete.
    * fast_admission: it may be admitted as a whole as soon as its first pod exists.
    * serving: it serves and does not end by success.
    * retriable: whether the group waits for another pod when this one fails.
    * role: pods of one role are alike, and are a pod set of that name.
    """

    name: str
    total_count: int
    fast_admission: bool = False
    serving: bool = False
    retriable: bool = True
    role: str = ""


def read_pod_group(top: FieldReader, pod: Mapping[str, Any]) -> PodGroupMember | None:
    """Read the group of a pod whose group labels and annotations are valid; None if the pod names no group."""
    metadata = pod["metadata"]
    labels, annotations = metadata.get("labels") or {}, metadata.get("annotations") or {}
    name = annotations.get(keys.POD_GROUP_NAME) or labels.get(keys.POD_GROUP_NAME)
    if not name:
        return None
    return PodGroupMember(
        name=name,
        total_count=int(annotations[keys.POD_GROUP_TOTAL_COUNT]),
        fast_admission=annotations.get(keys.POD_GROUP_FAST_ADMISSION) == "true",
        serving=annotations.get(keys.POD_GROUP_SERVING) == "true",
        retriable=annotations.get(keys.RETRIABLE_IN_GROUP) != "false",
        role=_role(top, annotations, pod),
    )


def states_group(document: Mapping[str, Any]) -> bool:
    """Return whether an unread manifest describes a pod of a group."""
    metadata = document.get("metadata")
    fields = [metadata.get(name) for name in ("labels", "annotations")] if isinstance(metadata, Mapping) else []
    named = any(isinstance(field, Mapping) and field.get(keys.POD_GROUP_NAME) for field in fields)
    return document.get("kind") == POD and named


def role_hash(pod: Mapping[str, Any]) -> str:
    """Return eight hexadecimal digits that are equal for pods of equal shape: the same requests and the same selection
    of nodes. This is Kueue's hash of the pod as an API server would have completed it. Annotations that choose devices
    (those in the domains of the requested resources, and HAMi's) or a topology are part of the hash, too."""
    spec = {key: copy.deepcopy(value) for key, value in _mapping(pod.get("spec")).items() if value}
    for field in ("initContainers", "containers"):
        for container in _containers(spec, field):
            resources = container.get("resources") or {}
            if resources.get("limits"):
                container["resources"] = {**resources, "requests": {**resources["limits"], **_requests(resources)}}
    annotations = _mapping(_mapping(pod.get("metadata")).get("annotations"))
    domains = {_DEVICE_DOMAIN, *_resource_domains(spec)}
    decisive = {
        key: str(value)
        for key, value in annotations.items()
        if key in _TOPOLOGY_KEYS or key.partition("/")[0] in domains
    }
    if "priority" not in spec and spec.get("priorityClassName"):
        decisive["priorityClassName"] = spec["priorityClassName"]
    return kueue_role_hash(spec, decisive)


def _requests(resources: Mapping[str, Any]) -> Mapping[str, Any]:
    return resources.get("requests") or {}


def _mapping(value: Any) -> Mapping[str, Any]:
    """Return the value if it is a mapping, else an empty one: the reader of the template reports the mistake."""
    return value if isinstance(value, Mapping) else {}


def _containers(spec: Mapping[str, Any], field: str) -> list[dict[str, Any]]:
    found = spec.get(field)
    return [container for container in found if isinstance(container, dict)] if isinstance(found, list) else []


def _resource_domains(spec: Mapping[str, Any]) -> Iterable[str]:
    for container in (*_containers(spec, "initContainers"), *_containers(spec, "containers")):
        for amounts in _mapping(container.get("resources")).values():
            for resource in _mapping(amounts):
                domain, slash, _ = str(resource).partition("/")
                if slash:
                    yield domain


def _role(top: FieldReader, annotations: Mapping[str, str], pod: Mapping[str, Any]) -> str:
    stated = annotations.get(keys.ROLE_HASH)
    if stated is None:
        return role_hash(pod)
    broken = dns_label(stated)
    if broken:
        top.report.error(top.at(f"metadata.annotations[{keys.ROLE_HASH}]"), stated, broken)
    return stated
