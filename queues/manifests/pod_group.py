"""Groups of plain pods: what a pod says of its group, and which pods are alike."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from queues.manifests import kueue_keys as keys
from scheduling.manifest import Fields, MistakeReason, ObjectMeta
from scheduling.manifest.fields import INT32_MAX
from scheduling.manifest.syntax import dns_label, dns_subdomain

"""Each role is a pod set, and a workload has at most that many."""
_ROLE_HASH_LENGTH: Final = 8
_SHAPE_FIELDS: Final = (
    "affinity", "nodeSelector", "overhead", "priority", "priorityClassName", "resourceClaims", "resources",
    "runtimeClassName", "tolerations", "topologySpreadConstraints",
)  # fmt: skip
_DEVICE_DOMAIN: Final = "hami.io"
_TOPOLOGY_KEYS: Final = (
    keys.REQUIRED_TOPOLOGY, keys.PREFERRED_TOPOLOGY, keys.UNCONSTRAINED_TOPOLOGY, keys.SLICE_TOPOLOGY,
    keys.SLICE_SIZE, keys.SLICE_CONSTRAINTS, keys.POD_SET_GROUP,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class PodGroupMember:
    """What a pod says of its group.

    * total_count: how many pods the group has when it is complete.
    * fast_admission: it may be admitted whole as soon as its first pod is there.
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


def read_pod_group(top: Fields, meta: ObjectMeta, template: Mapping[str, Any]) -> PodGroupMember | None:
    """Read the group of a pod from its labels and annotations; None where it states none, or a wrong one.

    `template` is the pod as {metadata, spec}.
    """
    name, where = _group_name(meta)
    total = meta.annotations.get(keys.POD_GROUP_TOTAL_COUNT)
    if not name:
        if total is not None:
            _error(top, "labels", keys.POD_GROUP_NAME, None, f"Required value: {keys.POD_GROUP_TOTAL_COUNT} needs it")
        return None
    mistakes = len(top.report.errors)
    broken = dns_subdomain(name)
    if broken:
        top.report.error(top.at(f"metadata.{where}[{keys.POD_GROUP_NAME}]"), name, broken)
    if total is None:
        _error(top, "annotations", keys.POD_GROUP_TOTAL_COUNT, None, f"Required value: {keys.POD_GROUP_NAME} needs it")
    elif not _is_count(total):
        place = top.at(f"metadata.annotations[{keys.POD_GROUP_TOTAL_COUNT}]")
        top.report.error(place, total, "must be a whole number of pods of at least 1, in quotes")
    member = PodGroupMember(
        name=name,
        total_count=int(total) if total is not None and _is_count(total) else 1,
        fast_admission=_flag(top, meta, keys.POD_GROUP_FAST_ADMISSION, default=False),
        serving=_flag(top, meta, keys.POD_GROUP_SERVING, default=False),
        retriable=_flag(top, meta, keys.RETRIABLE_IN_GROUP, default=True),
        role=_role(top, meta, template),
    )
    return member if len(top.report.errors) == mistakes else None


def states_group(document: Mapping[str, Any]) -> bool:
    """Whether a manifest that nobody has read yet is that of a pod of a group."""
    metadata = document.get("metadata")
    fields = [metadata.get(name) for name in ("labels", "annotations")] if isinstance(metadata, Mapping) else []
    named = any(isinstance(field, Mapping) and field.get(keys.POD_GROUP_NAME) for field in fields)
    return document.get("kind") == "Pod" and named


def role_hash(template: Mapping[str, Any]) -> str:
    """Eight hexadecimal digits that are equal for pods of equal shape: the same needs and the same choice of nodes.

    The fields are those of Kueue's hash, with what we decide too: the annotations that choose devices (those of the
    domains of the resources that are asked for, and HAMi's) and the topology that is asked for.
    """
    spec = _mapping(template.get("spec"))
    annotations = _mapping(_mapping(template.get("metadata")).get("annotations"))
    shape = {name: spec[name] for name in _SHAPE_FIELDS if spec.get(name)}
    for name in ("initContainers", "containers"):
        shape[name] = [_container_shape(container) for container in _containers(spec, name)]
    domains = {_DEVICE_DOMAIN, *_resource_domains(spec)}
    shape["annotations"] = {
        key: value for key, value in annotations.items() if key in _TOPOLOGY_KEYS or key.partition("/")[0] in domains
    }
    content = json.dumps(shape, sort_keys=True, default=str)
    return hashlib.sha256(content.encode()).hexdigest()[:_ROLE_HASH_LENGTH]


def _mapping(value: Any) -> Mapping[str, Any]:
    """The value where it is a mapping, else an empty one: whoever reads the template tells its mistakes."""
    return value if isinstance(value, Mapping) else {}


def _containers(spec: Mapping[str, Any], field: str) -> list[Mapping[str, Any]]:
    found = spec.get(field)
    return [_mapping(container) for container in found] if isinstance(found, list) else []


def _container_shape(container: Mapping[str, Any]) -> dict[str, Any]:
    resources = _mapping(container.get("resources"))
    limits = _mapping(resources.get("limits"))
    return {
        # A request that is left out is the limit: an API server writes it there, a manifest need not.
        "requests": {**limits, **_mapping(resources.get("requests"))},
        "limits": limits,
        "ports": container.get("ports") or [],
        "restartPolicy": container.get("restartPolicy") or "",
    }


def _resource_domains(spec: Mapping[str, Any]) -> Iterable[str]:
    for container in (*_containers(spec, "initContainers"), *_containers(spec, "containers")):
        for amounts in _mapping(container.get("resources")).values():
            for resource in _mapping(amounts):
                domain, slash, _ = str(resource).partition("/")
                if slash:
                    yield domain


def _group_name(meta: ObjectMeta) -> tuple[str, str]:
    """The group's name and where it stands: a name that is too long for a label is an annotation."""
    label = meta.labels.get(keys.POD_GROUP_NAME, "")
    return (label, "labels") if label else (meta.annotations.get(keys.POD_GROUP_NAME, ""), "annotations")


def _role(top: Fields, meta: ObjectMeta, template: Mapping[str, Any]) -> str:
    stated = meta.annotations.get(keys.ROLE_HASH)
    if stated is None:
        return role_hash(template)
    broken = dns_label(stated)
    if broken:
        top.report.error(top.at(f"metadata.annotations[{keys.ROLE_HASH}]"), stated, broken)
    return stated


def _flag(top: Fields, meta: ObjectMeta, key: str, *, default: bool) -> bool:
    text = meta.annotations.get(key)
    if text is None:
        return default
    if text not in ("true", "false"):
        top.report.error(top.at(f"metadata.annotations[{key}]"), text, 'must be "true" or "false", in quotes')
        return default
    return text == "true"


def _is_count(text: str) -> bool:
    return text.isascii() and text.isdigit() and 0 < int(text) <= INT32_MAX


def _error(top: Fields, where: str, key: str, value: str | None, rule: str) -> None:
    remedy = "A pod of a group has both." if where == "annotations" else "Name the group, or leave the count out."
    top.report.error(top.at(f"metadata.{where}[{key}]"), value, rule, remedy, MistakeReason.REQUIRED)
