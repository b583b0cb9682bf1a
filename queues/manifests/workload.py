"""Submitted workloads: the common result of every reader (our JSON, a Job manifest, a Workload manifest)."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from uuid import UUID, uuid4

MAX_POD_SETS: Final = 18
"""The pod sets of a workload, as Kueue bounds them; a group of pods has as many roles."""


@dataclass(frozen=True, slots=True)
class PodSetSpec:
    """A group of identical pods. `requests` is per pod, in base units (milli for cpu), before Kueue's transformations.

    `template` is the pod template as submitted ({metadata, spec}); `requests` follows from it by Kubernetes' rules.
    """

    name: str
    count: int
    template: Mapping[str, Any]
    requests: Mapping[str, int]
    min_count: int | None = None
    topology_request: Mapping[str, Any] = field(default_factory=dict)


HandedOver = tuple[Mapping[str, str], Mapping[str, str]]
"""The labels and annotations of a job. Its new workload takes over the ones named in the Configuration."""


@dataclass(frozen=True, slots=True)
class JobSpec:
    """The job to which workloads belong, stored as submitted; `manifest` has apiVersion, kind, metadata and spec."""

    kind: str
    name: str
    namespace: str
    manifest: Mapping[str, Any]
    managed: bool = True
    suspended: bool = True
    found_in_cluster: bool = False
    uid: UUID = field(default_factory=uuid4)
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    api_version: str = ""
    applied_set: str = ""
    scales: bool = False
    """Whether it may change its size while it runs."""
    row_id: int | None = None
    """The primary key of its row, where it is stored already."""
    handed_over: HandedOver = ({}, {})


@dataclass(frozen=True, slots=True)
class WorkloadSpec:
    """A workload to store. `generate_name`, or a name that ends in `-`, gets five random characters appended.

    `priority` None: taken from the class that is named, else from the cluster's global default PriorityClass, else 0.
    `priority_class_kind` is `WorkloadPriorityClass`, `PriorityClass` or empty. `document` is the index in its call:
    errors that only show when it is stored name it.
    """

    namespace: str
    name: str
    queue_name: str
    pod_sets: tuple[PodSetSpec, ...]
    generate_name: bool = False
    priority: int | None = None
    priority_class_kind: str = ""
    priority_class_name: str = ""
    active: bool = True
    never_preempt: bool = False
    maximum_execution_seconds: int | None = None
    preemption_gates: tuple[str, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    api_version: str = ""
    applied_set: str = ""
    job: JobSpec | None = None
    document: int = 0
