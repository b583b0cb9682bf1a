"""Which workloads of a ClusterQueue every cycle treats alike: Kueue's scheduling-equivalence hash, as a value.

Kueue compares, per pod set, its name, counts, requests and topology request, and of the pod spec what its `SpecShape`
keeps: the containers' requests and ports, and the fields below; labels, annotations, images and limits do not count.
Pods that ask for devices are told apart by more: their annotations say which cards will do, and in a namespace with a
quota of devices they are equal among themselves only.
"""

from __future__ import annotations

import json
from collections.abc import Hashable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from scheduling.model.pod import Container, PodTemplate
    from scheduling.state.workload_info import PodSetRequests, WorkloadInfo

_FIELDS = (
    "affinity",
    "tolerations",
    "runtimeClassName",
    "priority",
    "topologySpreadConstraints",
    "resourceClaims",
)
"""Fields of a pod spec that are compared as they were written."""


class Shape:
    """A hashable value whose hash is computed once."""

    __slots__ = ("_hash", "_value")

    def __init__(self, value: Hashable) -> None:
        """Wrap the value."""
        self._value = value
        self._hash = hash(value)

    def __hash__(self) -> int:
        """The value's hash."""
        return self._hash

    def __eq__(self, other: object) -> bool:
        """Whether the values are equal."""
        return isinstance(other, Shape) and self._hash == other._hash and self._value == other._value


def shape_of(info: WorkloadInfo) -> Shape:
    """The shape of a workload."""
    workload = info.workload
    pod_sets = tuple(_pod_set_shape(requests) for requests in info.pod_sets)
    namespace = workload.namespace if info.apart else None
    return Shape((info.priority, namespace, workload.allowed_flavors, workload.replaces, pod_sets))


def selection_key(template: PodTemplate) -> Hashable:
    """Equal for templates that select the same nodes."""
    return (tuple(sorted(template.node_selector.items())), template.affinity, template.tolerations)


def _pod_set_shape(requests: PodSetRequests) -> Hashable:
    template = requests.pod_set.template
    containers = (*template.init_containers, *template.containers)
    return (
        requests.name,
        requests.count,
        requests.min_count,
        tuple(sorted(requests.per_pod.items())),
        requests.pod_set.topology_request,
        selection_key(template),
        tuple(tuple(sorted(container.requests.items())) for container in containers),
        len(template.init_containers),
        tuple(sorted(template.overhead.items())),
        _spec_fields(template),
        _device_shape(template, containers),
    )


def _spec_fields(template: PodTemplate) -> str:
    """The fields of the pod spec that the template does not hold in another form, as JSON; "" without any."""
    spec = template.manifest.get("spec") or {}
    fields = {name: spec[name] for name in _FIELDS if spec.get(name)}
    for kind in ("initContainers", "containers"):
        ports = [container.get("ports") for container in spec.get(kind) or ()]
        if any(ports):
            fields[kind] = ports
    return json.dumps(fields, sort_keys=True, default=str) if fields else ""


def _device_shape(template: PodTemplate, containers: tuple[Container, ...]) -> Hashable:
    """What else decides which devices will do; nothing for pods that ask for no extended resource."""
    if not any("/" in resource for container in containers for resource in container.requests):
        return ()
    return (
        tuple(sorted(template.annotations.items())),
        tuple((tuple(sorted(container.limits.items())), container.always_restarts) for container in containers),
    )
