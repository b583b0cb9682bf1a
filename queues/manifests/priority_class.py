"""WorkloadPriorityClass (Kueue's) and PriorityClass (Kubernetes')."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from scheduling.manifest import Fields, ObjectMeta, read_metadata, write_metadata
from scheduling.manifest.fields import INT32_MIN

WORKLOAD_PRIORITY_CLASS_GROUP: Final = "kueue.x-k8s.io"
PRIORITY_CLASS_GROUP: Final = "scheduling.k8s.io"

_LONGEST_DESCRIPTION: Final = 2048
_HIGHEST_USER_PRIORITY: Final = 10**9


class PreemptionPolicy(StrEnum):
    """Kubernetes' PriorityClass: whether pods of the class preempt others."""

    PREEMPT_LOWER_PRIORITY = "PreemptLowerPriority"
    NEVER = "Never"


@dataclass(frozen=True, slots=True)
class WorkloadPriorityClassSpec:
    """Columns of WorkloadPriorityClass."""

    meta: ObjectMeta
    value: int = 0
    description: str = ""


@dataclass(frozen=True, slots=True)
class PriorityClassSpec:
    """Columns of PriorityClass."""

    meta: ObjectMeta
    value: int = 0
    description: str = ""
    global_default: bool = False
    preemption_policy: str = ""


def read_workload_priority_class(top: Fields, version: str) -> WorkloadPriorityClassSpec:
    """Read a WorkloadPriorityClass; `value` must be there, as in Kueue."""
    meta = read_metadata(top, namespaced=False)
    top.require("value")
    value = top.integer("value", 0, minimum=INT32_MIN)
    description = top.text("description", longest=_LONGEST_DESCRIPTION)
    return WorkloadPriorityClassSpec(meta, value, description)


def write_workload_priority_class(spec: WorkloadPriorityClassSpec) -> dict[str, Any]:
    """The manifest of a WorkloadPriorityClass."""
    written: dict[str, Any] = {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "WorkloadPriorityClass",
        "metadata": write_metadata(spec.meta),
        "value": spec.value,
    }
    if spec.description:
        written["description"] = spec.description
    return written


def read_priority_class(top: Fields, version: str) -> PriorityClassSpec:
    """Read a scheduling.k8s.io/v1 PriorityClass; values above a billion are Kubernetes' own."""
    meta = read_metadata(top, namespaced=False)
    value = top.integer("value", 0, minimum=INT32_MIN)
    if value > _HIGHEST_USER_PRIORITY and not meta.name.startswith("system-"):
        top.error("value", f"must be at most {_HIGHEST_USER_PRIORITY}: higher ones are reserved for the system")
    policy = top.optional_choice("preemptionPolicy", list(PreemptionPolicy))
    return PriorityClassSpec(
        meta,
        value,
        top.text("description", longest=_LONGEST_DESCRIPTION),
        top.boolean("globalDefault"),
        policy.value if policy else "",
    )


def write_priority_class(spec: PriorityClassSpec) -> dict[str, Any]:
    """The manifest of a PriorityClass."""
    written: dict[str, Any] = {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": write_metadata(spec.meta),
        "value": spec.value,
        "globalDefault": spec.global_default,
    }
    if spec.description:
        written["description"] = spec.description
    if spec.preemption_policy:
        written["preemptionPolicy"] = spec.preemption_policy
    return written
