"""The pod template of a pod set: the fields that the scheduler reads, and the effective request of one pod."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any, Self

from scheduling.model.quantity import parse_quantity
from scheduling.model.selectors import RequiredNodeAffinity, Toleration, required_node_affinity

DEFAULT_SCHEDULER = "default-scheduler"

Quantities = Mapping[str, int]
"""Resource name -> nano units (see `scheduling.model.quantity`)."""

_POD_LEVEL_PREFIXES = ("hugepages-",)
_POD_LEVEL_RESOURCES = ("cpu", "memory")


def read_quantities(manifest: Mapping[str, Any] | None) -> dict[str, int]:
    """Read a `v1.ResourceList` in nano units. Raises `InvalidQuantity`."""
    return {name: parse_quantity(text) for name, text in (manifest or {}).items()}


@dataclass(frozen=True, slots=True)
class Container:
    """A container; requests and limits in nano units. `always_restarts` marks a sidecar among the init containers."""

    name: str = ""
    requests: Quantities = field(default_factory=dict)
    limits: Quantities = field(default_factory=dict)
    always_restarts: bool = False

    @classmethod
    def from_manifest(cls, manifest: Mapping[str, Any]) -> Self:
        """Read a `v1.Container`. A missing request defaults to the limit, as in Kubernetes."""
        resources = manifest.get("resources") or {}
        limits = read_quantities(resources.get("limits"))
        return cls(
            manifest.get("name") or "",
            {**limits, **read_quantities(resources.get("requests"))},
            limits,
            manifest.get("restartPolicy") == "Always",
        )


@dataclass(frozen=True, slots=True)
class PodTemplate:
    """Kubernetes' PodTemplateSpec, reduced to the fields that decide where and whether the pod may run.

    `affinity` is requiredDuringSchedulingIgnoredDuringExecution; None if there is none. `requests` and `limits` are
    the pod-level resources. `has_unread_rules`: the choice of node also depends on fields that are not read here:
    other pods, host ports, volumes, or another scheduler name. `manifest` is the whole template; device
    placement reads containers, annotations and security context from it.
    """

    containers: tuple[Container, ...] = ()
    init_containers: tuple[Container, ...] = ()
    overhead: Quantities = field(default_factory=dict)
    requests: Quantities = field(default_factory=dict)
    limits: Quantities = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    node_selector: Mapping[str, str] = field(default_factory=dict)
    affinity: RequiredNodeAffinity | None = None
    tolerations: tuple[Toleration, ...] = ()
    manifest: Mapping[str, Any] = field(default_factory=dict, compare=False)
    has_unread_rules: bool = field(default=False, compare=False)

    @property
    def node_selection(self) -> Hashable:
        """A key that is equal for templates that select the same nodes."""
        return (tuple(sorted(self.node_selector.items())), self.affinity, self.tolerations)

    @classmethod
    def from_manifest(cls, manifest: Mapping[str, Any]) -> Self:
        """Read a `v1.PodTemplateSpec`. Raises KeyError, ValueError or `InvalidQuantity` for a malformed one."""
        metadata = manifest.get("metadata") or {}
        spec = manifest.get("spec") or {}
        resources = spec.get("resources") or {}
        limits = read_quantities(resources.get("limits"))
        return cls(
            containers=tuple(Container.from_manifest(c) for c in spec.get("containers") or ()),
            init_containers=tuple(Container.from_manifest(c) for c in spec.get("initContainers") or ()),
            overhead=read_quantities(spec.get("overhead")),
            requests={**limits, **read_quantities(resources.get("requests"))},
            limits=limits,
            labels=dict(metadata.get("labels") or {}),
            annotations=dict(metadata.get("annotations") or {}),
            node_selector=dict(spec.get("nodeSelector") or {}),
            affinity=required_node_affinity(spec),
            tolerations=tuple(Toleration.from_manifest(t) for t in spec.get("tolerations") or ()),
            manifest=manifest,
            has_unread_rules=_has_unread_rules(spec),
        )

    def effective_requests(self) -> dict[str, int]:
        """Return the requests of one pod in nano units, by Kubernetes' formula.

        Containers and sidecars add up. Each init container counts together with the sidecars started before it, and the
        largest of these sums wins. Pod-level requests replace the result for cpu, memory and huge pages. Overhead is
        added.
        """
        total: dict[str, int] = {}
        for container in self.containers:
            _add(total, container.requests)
        _merge_init_containers(total, self.init_containers, attrgetter("requests"))
        total |= {name: value for name, value in self.requests.items() if _is_pod_level(name)}
        _add(total, self.overhead)
        return total

    def effective_limits(self) -> dict[str, int]:
        """Return the limits of one pod by the same formula, in nano units. For a resource that only some containers
        limit, the limits of those containers count."""
        total: dict[str, int] = {}
        for container in self.containers:
            _add(total, container.limits)
        _merge_init_containers(total, self.init_containers, attrgetter("limits"))
        return total | {name: value for name, value in self.limits.items() if _is_pod_level(name)}

    def exceeded_limit(self) -> str | None:
        """Return the first resource whose request is above its limit, as `container c: cpu`; None if there is none."""
        for container in (*self.init_containers, *self.containers):
            name = _first_above(container.requests, container.limits)
            if name:
                return f"container {container.name}: {name}"
        name = _first_above(self.requests, self.limits)
        return f"pod: {name}" if name else None


def _has_unread_rules(spec: Mapping[str, Any]) -> bool:
    scheduler = spec.get("schedulerName") or DEFAULT_SCHEDULER
    if scheduler != DEFAULT_SCHEDULER:
        return True
    return _is_bound_to_other_pods(spec) or _has_volumes(spec) or _has_host_ports(spec)


def _is_bound_to_other_pods(spec: Mapping[str, Any]) -> bool:
    affinity = _mapping(spec.get("affinity"))
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    spread = _mappings(spec.get("topologySpreadConstraints"))
    return any(_mapping(affinity.get(kind)).get(required) for kind in ("podAffinity", "podAntiAffinity")) or any(
        rule.get("whenUnsatisfiable", "DoNotSchedule") == "DoNotSchedule" for rule in spread
    )


def _has_volumes(spec: Mapping[str, Any]) -> bool:
    """Return whether volumes may restrict the pod to some nodes."""
    volumes = _mappings(spec.get("volumes"))
    return any(volume.get(kind) for volume in volumes for kind in ("persistentVolumeClaim", "ephemeral"))


def _has_host_ports(spec: Mapping[str, Any]) -> bool:
    containers = [*_mappings(spec.get("initContainers")), *_mappings(spec.get("containers"))]
    ports = [port for container in containers for port in _mappings(container.get("ports"))]
    return any(port.get("hostPort") for port in ports) or bool(spec.get("hostNetwork") and ports)


def _mapping(value: Any) -> Mapping[str, Any]:
    """Return the value if it is a mapping, else an empty one. The reader of the field reports the mistake."""
    return value if isinstance(value, Mapping) else {}


def _mappings(value: Any) -> list[Mapping[str, Any]]:
    return [each for each in value if isinstance(each, Mapping)] if isinstance(value, list | tuple) else []


def _is_pod_level(resource: str) -> bool:
    return resource in _POD_LEVEL_RESOURCES or resource.startswith(_POD_LEVEL_PREFIXES)


def _merge_init_containers(
    total: dict[str, int], init_containers: Iterable[Container], amounts_of: Callable[[Container], Quantities]
) -> None:
    sidecars: dict[str, int] = {}
    peak: dict[str, int] = {}
    for container in init_containers:
        amounts = amounts_of(container)
        if container.always_restarts:
            _add(total, amounts)
            _add(sidecars, amounts)
            running = sidecars
        else:
            running = dict(sidecars)
            _add(running, amounts)
        for name, value in running.items():
            peak[name] = max(peak.get(name, 0), value)
    for name, value in peak.items():
        total[name] = max(total.get(name, 0), value)


def _add(total: dict[str, int], amounts: Quantities) -> None:
    for name, value in amounts.items():
        total[name] = total.get(name, 0) + value


def _first_above(requests: Quantities, limits: Quantities) -> str | None:
    return next((name for name, value in requests.items() if name in limits and value > limits[name]), None)
