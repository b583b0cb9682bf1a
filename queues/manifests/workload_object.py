"""Kueue's Workload object: manifest -> WorkloadSpec and back."""

from collections.abc import Sequence
from enum import StrEnum
from typing import Any, Final

from queues.manifests import kueue_keys as keys
from queues.manifests.nice import check_nice
from queues.manifests.pod_template import read_pod_template
from queues.manifests.protection import read_never_preempt, with_never_preempt, without_never_preempt
from queues.manifests.start_order import check_start_after
from queues.manifests.topology_request import read_topology_request
from queues.manifests.workload import MAX_POD_SETS, PodSetSpec, WorkloadSpec
from scheduling.manifest import FieldReader, MistakeReason, ObjectMeta, read_metadata, write_metadata
from scheduling.manifest.field_reader import INT32_MAX, INT32_MIN
from scheduling.manifest.syntax import dns_label, dns_subdomain

_MAX_GATES: Final = 8
_GROUP_SIZE: Final = 2
PRIORITY_CLASS_GROUPS: Final = {
    "WorkloadPriorityClass": "kueue.x-k8s.io",
    "PriorityClass": "scheduling.k8s.io",
}


class PriorityClassSource(StrEnum):
    """v1beta1's `priorityClassSource`."""

    WORKLOAD_PRIORITY_CLASS = "kueue.x-k8s.io/workloadpriorityclass"
    POD_PRIORITY_CLASS = "scheduling.k8s.io/priorityclass"


def read_workload(top: FieldReader, version: str) -> WorkloadSpec:
    """Read a Workload. Its status is the scheduler's: it is skipped."""
    top.ignore("status")
    meta = read_metadata(top, namespaced=True)
    boost = meta.annotations.get(keys.PRIORITY_BOOST)
    if boost is not None and not _is_int32(boost):
        place = top.at(f"metadata.annotations[{keys.PRIORITY_BOOST}]")
        top.report.error(place, boost, "must be a whole number of 32 bits, in quotes")
    check_nice(top, meta)
    check_start_after(top, meta)
    spec = top.required_fields("spec")
    kind, class_name = _read_priority_class(spec, version)
    stored = without_never_preempt(meta)
    workload = WorkloadSpec(
        namespace=meta.namespace,
        name=meta.name,
        generate_name=meta.generate_name,
        queue_name=spec.text("queueName", syntax=dns_subdomain),
        pod_sets=_read_pod_sets(spec),
        priority=spec.optional_integer("priority", minimum=INT32_MIN),
        priority_class_kind=kind,
        priority_class_name=class_name,
        active=spec.boolean("active", default=True),
        never_preempt=read_never_preempt(top, meta),
        maximum_execution_seconds=spec.optional_integer("maximumExecutionTimeSeconds", minimum=1),
        preemption_gates=_read_gates(spec) if version == "v1beta2" else (),
        labels=stored.labels,
        annotations=stored.annotations,
        document=top.report.document,
    )
    spec.close()
    if class_name and workload.priority is None:
        spec.error(
            "priority", "Required value: a priority class needs it", "Add the class's value.", MistakeReason.REQUIRED
        )
    return workload


def _is_int32(text: str) -> bool:
    digits = text.removeprefix("-")
    return digits.isascii() and digits.isdigit() and INT32_MIN <= int(text) <= INT32_MAX


def _read_priority_class(spec: FieldReader, version: str) -> tuple[str, str]:
    if version == "v1beta1":
        return _read_old_priority_class(spec)
    reference = spec.fields("priorityClassRef")
    if reference is None:
        return "", ""
    group = reference.text("group", required=True)
    kind = reference.text("kind", required=True)
    name = reference.text("name", required=True, syntax=dns_subdomain)
    reference.close()
    if kind and PRIORITY_CLASS_GROUPS.get(kind) != group:
        pairs = " or ".join(f"{kind} of {group}" for kind, group in PRIORITY_CLASS_GROUPS.items())
        spec.error("priorityClassRef", f"must be {pairs}", "", MistakeReason.NOT_SUPPORTED)
        return "", ""
    return (kind, name) if name else ("", "")


def _read_old_priority_class(spec: FieldReader) -> tuple[str, str]:
    name = spec.text("priorityClassName", syntax=dns_subdomain)
    source = spec.optional_choice("priorityClassSource", list(PriorityClassSource))
    if name and source is None:
        spec.require("priorityClassSource", f"Use {PriorityClassSource.WORKLOAD_PRIORITY_CLASS}.")
    if not name or source is None:
        return "", ""
    if source is PriorityClassSource.WORKLOAD_PRIORITY_CLASS:
        return "WorkloadPriorityClass", name
    return "PriorityClass", name


def _read_gates(spec: FieldReader) -> tuple[str, ...]:
    gates = []
    for item in spec.items("preemptionGates", max_items=_MAX_GATES):
        gates.append(item.text("name", required=True))
        item.close()
    return tuple(gates)


def _read_pod_sets(spec: FieldReader) -> tuple[PodSetSpec, ...]:
    found: list[PodSetSpec] = []
    items = spec.items("podSets", min_items=1, max_items=MAX_POD_SETS)
    for item in items:
        pod_set = _read_pod_set(item)
        if any(other.name == pod_set.name for other in found):
            item.error("name", "Duplicate value", "Rename one.", MistakeReason.DUPLICATE)
        if pod_set.min_count is not None and any(other.min_count is not None for other in found):
            item.error("minCount", "may be set on one pod set only", "Remove it.", MistakeReason.FORBIDDEN)
        found.append(pod_set)
    _check_groups(spec, found)
    return tuple(found)


def _read_pod_set(item: FieldReader) -> PodSetSpec:
    count = item.integer("count", 1)
    if item.take("replicas") is not None:
        item.warn("replicas", "is not a field of Kueue's; it is used as count")
        if not item.has("count"):
            count = item.integer("replicas", 1)
    least = item.optional_integer("minCount", minimum=1)
    if least is not None and least > count:
        item.error("minCount", f"must be at most count ({count})")
    name = item.text("name", "main", syntax=dns_label)
    template = read_pod_template(item.required_fields("template"), limits_hold=False)
    pod_set = PodSetSpec(name, count, template.manifest, template.requests, least, read_topology_request(item))
    item.close()
    return pod_set


def _check_groups(spec: FieldReader, pod_sets: Sequence[PodSetSpec]) -> None:
    for group, rule in pod_set_group_mistakes(pod_sets):
        spec.report.error(spec.at("podSets"), group, rule)


def pod_set_group_mistakes(pod_sets: Sequence[PodSetSpec]) -> list[tuple[str, str]]:
    """Yield the pod set groups that cannot be placed together, each with the rule that it violates."""
    groups: dict[str, list[PodSetSpec]] = {}
    for pod_set in pod_sets:
        group = pod_set.topology_request.get("podSetGroupName")
        if group:
            groups.setdefault(group, []).append(pod_set)
    found = [(group, _group_mistake(group, members)) for group, members in groups.items()]
    return [(group, rule) for group, rule in found if rule]


def _group_mistake(group: str, members: Sequence[PodSetSpec]) -> str:
    if len(members) != _GROUP_SIZE:
        return f"pod set group {group} must have exactly 2 pod sets, has {len(members)}"
    if all(member.count != 1 for member in members):
        return f"one pod set of group {group} must have count 1"
    if len({_main_level(member) for member in members}) > 1:
        return f"the pod sets of group {group} must request the same topology"
    return ""


def _main_level(pod_set: PodSetSpec) -> tuple[str | None, str | None]:
    return pod_set.topology_request.get("required"), pod_set.topology_request.get("preferred")


def write_workload(spec: WorkloadSpec) -> dict[str, Any]:
    """Write the manifest of a Workload, without its status."""
    body: dict[str, Any] = {"podSets": [_write_pod_set(pod_set) for pod_set in spec.pod_sets]}
    if spec.queue_name:
        body["queueName"] = spec.queue_name
    if spec.priority_class_name:
        group = PRIORITY_CLASS_GROUPS[spec.priority_class_kind]
        reference = {"group": group, "kind": spec.priority_class_kind, "name": spec.priority_class_name}
        body["priorityClassRef"] = reference
    if spec.priority is not None:
        body["priority"] = spec.priority
    if not spec.active:
        body["active"] = False
    if spec.maximum_execution_seconds is not None:
        body["maximumExecutionTimeSeconds"] = spec.maximum_execution_seconds
    if spec.preemption_gates:
        body["preemptionGates"] = [{"name": name} for name in spec.preemption_gates]
    meta = ObjectMeta(spec.name, spec.namespace, spec.labels, spec.annotations)
    return {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "Workload",
        "metadata": write_metadata(with_never_preempt(meta, spec.never_preempt)),
        "spec": body,
    }


def _write_pod_set(pod_set: PodSetSpec) -> dict[str, Any]:
    written: dict[str, Any] = {"name": pod_set.name, "count": pod_set.count}
    if pod_set.min_count is not None:
        written["minCount"] = pod_set.min_count
    if pod_set.topology_request:
        written["topologyRequest"] = dict(pod_set.topology_request)
    return {**written, "template": dict(pod_set.template)}
