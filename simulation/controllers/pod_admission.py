"""Kubernetes' admission of new pods: RuntimeClasses add their overhead, LimitRanges defaults and bounds."""

from __future__ import annotations

from scheduling.model.limit_range import LimitRange, LimitRangeItem
from scheduling.model.pod import PodTemplate
from scheduling.model.pod_defaults import PodDefaults, RuntimeClass
from scheduling.model.workload import PodSet
from simulation.api.errors import forbidden
from simulation.api.objects import JsonObject, name_of, namespace_of
from simulation.api.store import ObjectStore


def admitted_pod(store: ObjectStore, pod: JsonObject) -> JsonObject:
    """Return the pod as it is stored. Raises ApiError (403) for a missing RuntimeClass, and for a pod outside of its
    limits."""
    namespace = namespace_of(pod)
    ranges = list(store.items("limitranges", namespace))
    class_name = pod["spec"].get("runtimeClassName")
    if not ranges and not class_name:
        return pod
    defaults = PodDefaults()
    if class_name:
        defaults.set_runtime_class(_runtime_class(store, pod, class_name))
    for manifest in ranges:
        limits = tuple(LimitRangeItem.from_manifest(item) for item in manifest["spec"]["limits"])
        defaults.set_limit_range(LimitRange(namespace, name_of(manifest), limits))
    completed = defaults.completed(namespace, PodSet(template=PodTemplate.from_manifest(pod)))
    violation = defaults.violation(namespace, [completed])
    if violation:
        raise forbidden("pods", name_of(pod), violation)
    return {**pod, "spec": dict(completed.template.manifest["spec"])}


def _runtime_class(store: ObjectStore, pod: JsonObject, name: str) -> RuntimeClass:
    found = store.get("runtimeclasses", "", name)
    if found is None:
        raise forbidden("pods", name_of(pod), f'pod rejected: RuntimeClass "{name}" not found')
    return RuntimeClass(name, (found.get("overhead") or {}).get("podFixed") or {})
