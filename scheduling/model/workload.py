"""Workload: pod sets that start together or not at all, and their status."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from scheduling.model.admission_check import AdmissionCheckState
from scheduling.model.placement import Placement
from scheduling.model.pod import PodTemplate
from scheduling.model.resources import Amounts
from scheduling.model.topology import TopologyAssignment, TopologyRequest
from scheduling.model.vocabulary import ConditionStatus, ConditionType, WorkloadStatus

_EMPTY_TEMPLATE = PodTemplate()


@dataclass(frozen=True, slots=True)
class PodSet:
    """Pods of one template. `min_count` allows partial admission."""

    name: str = "main"
    count: int = 1
    template: PodTemplate = _EMPTY_TEMPLATE
    min_count: int | None = None
    topology_request: TopologyRequest | None = None


@dataclass(frozen=True, slots=True)
class PodSetAssignment:
    """The assignment of a pod set: a flavor per resource, the usage of all its pods in base units, the number of
    pods, and their topology domains if it has a topology."""

    name: str
    count: int
    flavors: Mapping[str, str] = field(default_factory=dict)
    resource_usage: Amounts = field(default_factory=dict)
    topology_assignment: TopologyAssignment | None = None
    delayed_topology_request: str = ""


@dataclass(frozen=True, slots=True)
class Admission:
    """`status.admission`: present from the quota reservation on."""

    cluster_queue: str
    pod_set_assignments: tuple[PodSetAssignment, ...] = ()


@dataclass(frozen=True, slots=True)
class Condition:
    """One condition; the time is in seconds since the epoch."""

    type: ConditionType
    status: ConditionStatus
    reason: str = ""
    message: str = ""
    last_transition_time: float = 0.0


JOB_GATE: Final = "job.kueueweb.io/"
"""The beginning of the admission gate of a workload that starts after a job; the job's name follows."""


@dataclass(frozen=True, slots=True)
class RequeueState:
    """The number of times WaitForPodsReady requeued the workload, and the time when it may be queued again."""

    count: int = 0
    requeue_at: float | None = None


@dataclass(frozen=True, slots=True)
class Workload:
    """Kueue's Workload. Times are seconds since the epoch.

    `replaces` is the key of the workload slice that this one replaces (elastic jobs). `admission_gates` is the
    admission-gated-by annotation, and a gate for each job that must succeed before; `closed_preemption_gates` are the
    names of closed gates. `never_reclaimed`: only workloads of its own ClusterQueue may preempt it. `placement` is
    where its pods and devices are. `single_pod`: the workload is one pod that no controller recreates
    (SkipReassignmentForPodOwnedWorkloads), so it keeps its topology when its node fails and is not requeued after an
    eviction. `nice` lowers a multifactor priority. `submitted_by` is the user in whose limits it counts; empty if the
    user is not known; `user_groups` are the groups of that user at the submission. `parent`: the key of the workload of
    which it is a variant (concurrent admission), whose gate for preemption was opened at `gate_opened_at`.
    `executed_seconds`: how long it ran before its evictions, which counts in its maximum execution time.
    """

    namespace: str
    name: str
    uid: str
    queue_name: str
    pod_sets: tuple[PodSet, ...] = (PodSet(),)
    priority: int = 0
    priority_boost: int = 0
    active: bool = True
    created_at: float = 0.0
    conditions: Mapping[ConditionType, Condition] = field(default_factory=dict)
    admission: Admission | None = None
    requeue_state: RequeueState | None = None
    reclaimable_pods: Mapping[str, int] = field(default_factory=dict)
    admission_checks: tuple[AdmissionCheckState, ...] = ()
    maximum_execution_time_seconds: int | None = None
    admission_gates: tuple[str, ...] = ()
    closed_preemption_gates: tuple[str, ...] = ()
    unhealthy_nodes: tuple[str, ...] = ()
    replaces: str | None = None
    allowed_flavors: tuple[str, ...] = ()
    never_reclaimed: bool = False
    last_preempted_at: float | None = None
    placement: Placement | None = None
    single_pod: bool = False
    nice: int = 0
    submitted_by: str = ""
    user_groups: tuple[str, ...] = ()
    parent: str = ""
    gate_opened_at: float | None = None
    executed_seconds: int = 0

    @property
    def time_left_seconds(self) -> int | None:
        """Return how long the workload may run from its next admission, or from its current one; None without a
        declared limit."""
        limit = self.maximum_execution_time_seconds
        return None if limit is None else limit - self.executed_seconds

    @property
    def key(self) -> str:
        """`namespace/name`, its identity in the World."""
        return f"{self.namespace}/{self.name}"

    @property
    def queue_key(self) -> str:
        """The key of its LocalQueue."""
        return f"{self.namespace}/{self.queue_name}"

    @property
    def variant_flavor(self) -> str:
        """The flavor that a variant pursues."""
        return self.allowed_flavors[0] if self.allowed_flavors else ""

    @property
    def is_charged(self) -> bool:
        """Whether the workload itself is charged for its quota. The parent of variants has an admission without
        usage."""
        return self.admission is not None and any(each.resource_usage for each in self.admission.pod_set_assignments)

    @property
    def effective_priority(self) -> int:
        """Priority plus boost."""
        return self.priority + self.priority_boost

    def condition(self, type_: ConditionType) -> Condition | None:
        """Return the condition of this type, or None."""
        return self.conditions.get(type_)

    def is_true(self, type_: ConditionType) -> bool:
        """Return whether the condition exists and is True."""
        condition = self.conditions.get(type_)
        return condition is not None and condition.status is ConditionStatus.TRUE

    def is_false(self, type_: ConditionType) -> bool:
        """Return whether the condition exists and is False (an absent one is neither)."""
        condition = self.conditions.get(type_)
        return condition is not None and condition.status is ConditionStatus.FALSE

    @property
    def holds_quota(self) -> bool:
        """Whether its admission is charged: reserved, and neither finished nor deactivated (T56b)."""
        return (
            self.active
            and self.admission is not None
            and self.is_true(ConditionType.QUOTA_RESERVED)
            and not self.is_true(ConditionType.FINISHED)
        )

    @property
    def status(self) -> WorkloadStatus:
        """The stage of the workload's life."""
        if self.is_true(ConditionType.FINISHED):
            return WorkloadStatus.FINISHED
        if self.is_true(ConditionType.EVICTED) and self.is_true(ConditionType.QUOTA_RESERVED):
            return WorkloadStatus.EVICTED
        if self.is_true(ConditionType.ADMITTED):
            return WorkloadStatus.ADMITTED
        if self.is_true(ConditionType.QUOTA_RESERVED):
            return WorkloadStatus.QUOTA_RESERVED
        return WorkloadStatus.PENDING
