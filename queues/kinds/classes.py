"""Classes that workloads and pods refer to: the source of a priority, and the overhead of running a pod."""

from enum import StrEnum
from typing import Any, Final

from kinds import openapi
from kinds.declaration import Field, Kind, Reading
from kinds.field_types import Boolean, Choice, Integer, Quantities, Structure, Text
from queues.kinds.tolerations import TOLERATIONS_SCHEMA
from queues.models import PriorityClass, RuntimeClass, WorkloadPriorityClass
from scheduling.manifest import FieldReader
from scheduling.manifest.syntax import dns_label, label_value, qualified_name
from scheduling.manifest.taints import read_tolerations
from scheduling.model import pod_defaults

_MAX_DESCRIPTION: Final = 2048
_MAX_USER_PRIORITY: Final = 10**9


class PreemptionPolicy(StrEnum):
    """Kubernetes' PriorityClass: whether pods of the class preempt others."""

    PREEMPT_LOWER_PRIORITY = "PreemptLowerPriority"
    NEVER = "Never"


WORKLOAD_PRIORITY_CLASS: Final = Kind(
    "WorkloadPriorityClass",
    ("kueue.x-k8s.io/v1beta2", "kueue.x-k8s.io/v1beta1"),
    "workload-priority-classes",
    ("wpc",),
    description="A WorkloadPriorityClass: a priority for scheduling, independent of the pods' priority.",
    model=WorkloadPriorityClass,
    fields=(
        Field(
            "value",
            "value",
            Integer(0),
            required=True,
            always=True,
            help="The priority. Workloads of a higher priority are ordered first and may preempt.",
        ),
        Field("description", "description", Text(max_length=_MAX_DESCRIPTION), help="A note for users."),
    ),
)


def _check_priority(reading: Reading) -> None:
    if reading.values["value"] > _MAX_USER_PRIORITY and not reading.name.startswith("system-"):
        reading.error("value", f"must be at most {_MAX_USER_PRIORITY}: higher ones are reserved for the system")


PRIORITY_CLASS: Final = Kind(
    "PriorityClass",
    ("scheduling.k8s.io/v1",),
    "priority-classes",
    ("pc",),
    description="A PriorityClass.",
    model=PriorityClass,
    fields=(
        Field(
            "value",
            "value",
            Integer(0),
            always=True,
            frozen=True,
            help="The priority. Workloads of a higher priority are ordered first and may preempt.",
        ),
        Field("description", "description", Text(max_length=_MAX_DESCRIPTION), help="A note for users."),
        Field(
            "global_default",
            "globalDefault",
            Boolean(),
            always=True,
            help="The class of pods that name no class; at most one class is the default.",
        ),
        Field(
            "preemption_policy",
            "preemptionPolicy",
            Choice(PreemptionPolicy),
            frozen=True,
            help="Never: pods of the class wait for free quota instead of preempting.",
        ),
    ),
    check=_check_priority,
)


def _read_scheduling(holder: FieldReader, key: str) -> dict[str, Any]:
    scheduling = holder.fields(key)
    if scheduling is None:
        return {}
    found = {
        "nodeSelector": scheduling.text_map("nodeSelector", key_syntax=qualified_name, value_syntax=label_value),
        "tolerations": read_tolerations(scheduling, "tolerations"),
    }
    scheduling.close()
    return {key: value for key, value in found.items() if value}


_SCHEDULING_SCHEMA: Final = openapi.tree(
    {
        "nodeSelector": openapi.mapping(openapi.text(), "Labels of the nodes that have the runtime."),
        "tolerations": {**TOLERATIONS_SCHEMA, "description": "Tolerations that pods of the class get."},
    }
)

RUNTIME_CLASS: Final = Kind(
    "RuntimeClass",
    ("node.k8s.io/v1",),
    "runtime-classes",
    description="A RuntimeClass.",
    model=RuntimeClass,
    parts={"overhead": "The resources that running a pod takes in addition to its containers."},
    fields=(
        Field(
            "handler",
            "handler",
            Text(syntax=dns_label),
            required=True,
            always=True,
            frozen=True,
            core=None,
            help="The container runtime's name of the configuration that runs the pods.",
        ),
        Field(
            "pod_overhead",
            "overhead.podFixed",
            Quantities(),
            help="{resource: quantity} that each pod requests in addition to its containers.",
        ),
        Field(
            "scheduling",
            "scheduling",
            Structure(_read_scheduling, dict, shape=_SCHEDULING_SCHEMA),
            core=None,
            help="Kubernetes' scheduling rules of the RuntimeClass.",
        ),
    ),
    core=lambda row, known: pod_defaults.RuntimeClass(row.name, **known),
)
