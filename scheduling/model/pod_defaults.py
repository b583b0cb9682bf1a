"""The cluster's defaults for new pods, and the bounds that it enforces: RuntimeClasses and the LimitRanges of
namespaces.

Requests are counted with these defaults, as the pods will have them (Kueue's AdjustResources). The workload's own row
is unchanged.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from scheduling.model.limit_range import LimitRange, Limits, LimitType, summarize, violations
from scheduling.model.pod import PodTemplate
from scheduling.model.workload import PodSet


@dataclass(frozen=True, slots=True)
class RuntimeClass:
    """A Kubernetes RuntimeClass; `pod_overhead` are quantities as written, by resource."""

    name: str
    pod_overhead: Mapping[str, Any] = field(default_factory=dict)


_Known = tuple[dict[str, dict[str, LimitRange]], dict[str, dict[str, Limits]], dict[str, RuntimeClass]]
"""LimitRanges and their limits by namespace, and RuntimeClasses."""


class PodDefaults:
    """LimitRanges and RuntimeClasses, and their effects on a pod."""

    def __init__(self) -> None:
        self._ranges: dict[str, dict[str, LimitRange]] = {}
        self._limits: dict[str, dict[str, Limits]] = {}
        self._classes: dict[str, RuntimeClass] = {}

    def snapshot(self) -> _Known:
        """Return a copy of the objects and of their totals."""
        ranges = {namespace: dict(found) for namespace, found in self._ranges.items()}
        return ranges, dict(self._limits), dict(self._classes)

    def restore(self, values: _Known) -> None:
        """Go back to a snapshot."""
        self._ranges, self._limits, self._classes = values

    def set_limit_range(self, limit_range: LimitRange) -> bool:
        """Add or replace a LimitRange. Returns whether anything changed."""
        ranges = self._ranges.setdefault(limit_range.namespace, {})
        if ranges.get(limit_range.name) == limit_range:
            return False
        ranges[limit_range.name] = limit_range
        self._limits[limit_range.namespace] = summarize(ranges.values())
        return True

    def delete_limit_range(self, namespace: str, name: str) -> bool:
        """Delete a LimitRange. Returns whether it existed."""
        ranges = self._ranges.get(namespace, {})
        if ranges.pop(name, None) is None:
            return False
        self._limits[namespace] = summarize(ranges.values())
        if not ranges:
            del self._ranges[namespace], self._limits[namespace]
        return True

    def set_runtime_class(self, runtime_class: RuntimeClass) -> bool:
        """Add or replace a RuntimeClass. Returns whether anything changed."""
        if self._classes.get(runtime_class.name) == runtime_class:
            return False
        self._classes[runtime_class.name] = runtime_class
        return True

    def delete_runtime_class(self, name: str) -> bool:
        """Delete a RuntimeClass. Returns whether it existed."""
        return self._classes.pop(name, None) is not None

    def completed(self, namespace: str, pod_set: PodSet) -> PodSet:
        """Return the pod set as its pods will be; the same object if no default applies."""
        limits = self._limits.get(namespace, {})
        manifest = pod_set.template.manifest
        spec = manifest.get("spec") or {}
        if not limits and not spec.get("runtimeClassName"):
            return pod_set
        added = {**self._overhead(spec), **_containers(spec, limits.get(LimitType.CONTAINER))}
        added |= _pod_level(spec, limits.get(LimitType.POD))
        if all(spec.get(key) == value for key, value in added.items()):
            return pod_set
        template = PodTemplate.from_manifest({**manifest, "spec": {**spec, **added}})
        return PodSet(pod_set.name, pod_set.count, template, pod_set.min_count, pod_set.topology_request)

    def violation(self, namespace: str, pod_sets: Iterable[PodSet]) -> str:
        """Return the violations of completed pod sets as a message; empty if there are none."""
        limits = self._limits.get(namespace)
        if not limits:
            return ""
        found = (
            f"pod set {pod_set.name}: {text}" for pod_set in pod_sets for text in violations(limits, pod_set.template)
        )
        return "; ".join(found)

    def _overhead(self, spec: Mapping[str, Any]) -> dict[str, Any]:
        runtime_class = self._classes.get(spec.get("runtimeClassName") or "")
        if runtime_class is None or not runtime_class.pod_overhead or spec.get("overhead"):
            return {}
        return {"overhead": dict(runtime_class.pod_overhead)}


def names_runtime_class(pod_set: PodSet, name: str) -> bool:
    """Return whether the pods use this RuntimeClass."""
    return (pod_set.template.manifest.get("spec") or {}).get("runtimeClassName") == name


def _containers(spec: Mapping[str, Any], limits: Limits | None) -> dict[str, Any]:
    if limits is None or not (limits.default or limits.default_request):
        return {}
    return {
        key: [{**container, "resources": _completed(container.get("resources"), limits)} for container in spec[key]]
        for key in ("initContainers", "containers")
        if spec.get(key)
    }


def _pod_level(spec: Mapping[str, Any], limits: Limits | None) -> dict[str, Any]:
    """Return the defaults of pod-level resources, which apply only to pods that state some."""
    if limits is None or not spec.get("resources"):
        return {}
    return {"resources": _completed(spec["resources"], limits)}


def _completed(resources: Mapping[str, Any] | None, limits: Limits) -> dict[str, Any]:
    given = resources or {}
    return {
        **given,
        "limits": {**limits.default, **(given.get("limits") or {})},
        "requests": {**limits.default_request, **(given.get("requests") or {})},
    }
