"""The decisions of a scheduling cycle, and its result as a whole."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from scheduling.model.placement import Placement
from scheduling.model.vocabulary import DecisionKind, EvictionReason, PendingReason, PreemptionReason
from scheduling.model.workload import PodSetAssignment


@dataclass(frozen=True, slots=True)
class Admit:
    """A workload got its quota (and its topology and devices). `admitted` is False while admission checks are
    pending. `second_pass`: it held the quota already, and got the topology that was delayed until its checks were
    ready."""

    workload: str
    cluster_queue: str
    pod_sets: tuple[PodSetAssignment, ...]
    admitted: bool
    cycle: int
    message: str = ""
    placement: Placement | None = None
    replaces: str | None = None
    second_pass: bool = False
    kind: DecisionKind = field(default=DecisionKind.ADMIT, init=False)


@dataclass(frozen=True, slots=True)
class Preempt:
    """`workload` must stop to make room for `preemptor`. It keeps its quota until the World is notified that it
    stopped.
    """

    workload: str
    cluster_queue: str
    preemptor: str
    preemptor_cluster_queue: str
    reason: PreemptionReason
    cycle: int
    message: str = ""
    kind: DecisionKind = field(default=DecisionKind.PREEMPT, init=False)


@dataclass(frozen=True, slots=True)
class Evict:
    """`workload` must stop for a reason other than preemption (a failed node that could not be replaced)."""

    workload: str
    cluster_queue: str
    reason: EvictionReason
    cycle: int
    message: str = ""
    kind: DecisionKind = field(default=DecisionKind.EVICT, init=False)


@dataclass(frozen=True, slots=True)
class ReplaceNode:
    """The pods of `workload` on the failed `node` got other topology domains; `pod_sets` is its whole new admission.
    Quota does not change."""

    workload: str
    cluster_queue: str
    node: str
    pod_sets: tuple[PodSetAssignment, ...]
    cycle: int
    message: str = ""
    kind: DecisionKind = field(default=DecisionKind.REPLACE_NODE, init=False)


@dataclass(frozen=True, slots=True)
class Outcome:
    """The reason why a workload still waits after a cycle considered it: `kind` INADMISSIBLE (until something
    changes) or SKIP (tried again in the next cycle)."""

    workload: str
    cluster_queue: str
    kind: DecisionKind
    reason: PendingReason
    message: str
    cycle: int


@dataclass(frozen=True, slots=True)
class SecondPassFailed:
    """`workload` keeps the quota that it holds and waits for a place. Reported when the reason is new."""

    workload: str
    cluster_queue: str
    message: str
    cycle: int


Decision = Admit | Preempt | Evict | ReplaceNode | Outcome


@dataclass(frozen=True, slots=True)
class CycleResult:
    """The decisions of one cycle, each list in the order in which they were made.

    `outcomes` holds only workloads whose reason or message changed. `progressed`: the cycle admitted, preempted,
    evicted or moved a workload, so that another cycle may decide more. `read`: how many waiting workloads were read
    again before it. `preemption_skips`: ClusterQueue -> the number of preemptions that were skipped because earlier
    entries of the cycle had taken their victims or quota.
    """

    cycle: int
    admissions: tuple[Admit, ...] = ()
    preemptions: tuple[Preempt, ...] = ()
    evictions: tuple[Evict, ...] = ()
    outcomes: tuple[Outcome, ...] = ()
    heads: int = 0
    progressed: bool = False
    replacements: tuple[ReplaceNode, ...] = ()
    second_pass_failures: tuple[SecondPassFailed, ...] = ()
    preemption_skips: Mapping[str, int] = field(default_factory=dict)
    read: int = 0

    @property
    def decided(self) -> bool:
        """Whether a workload was admitted, preempted, evicted or moved."""
        return bool(self.admissions or self.preemptions or self.evictions or self.replacements)
