"""The running state of a ClusterQueue: spec, quota cells, admitted workloads and pending workloads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from scheduling.model.cluster_queue import ClusterQueue
from scheduling.model.cohort import ANYONE, PreemptionProtection, PriorityWeights, UserLimit
from scheduling.model.resource_flavor import ResourceFlavor
from scheduling.model.resources import FlavorResource
from scheduling.model.vocabulary import (
    AdmissionMode,
    ClusterQueueReason,
    QueueingStrategy,
    ReclaimWithinCohortPolicy,
    WithinClusterQueuePolicy,
)
from scheduling.quota.cells import Cell, QuotaNode
from scheduling.quota.tree import set_quotas
from scheduling.state.journal import Journal
from scheduling.state.pending_queue import PendingQueue
from scheduling.state.workload_info import WorkloadInfo

Ranking = tuple[list[WorkloadInfo], list[WorkloadInfo]]


class FlavorSlot:
    """A flavor of a resource group with its cells. A covered resource without a cell is not limited.

    `selective`: the flavor has labels or taints, so that pods must be checked against it.
    """

    __slots__ = ("cells", "flavor", "name", "selective", "topology")

    def __init__(self, name: str, flavor: ResourceFlavor | None, cells: dict[str, Cell]) -> None:
        """`flavor` is None while the ResourceFlavor does not exist."""
        self.name = name
        self.flavor = flavor
        self.cells = cells
        self.topology = flavor is not None and flavor.topology_name is not None
        self.selective = flavor is None or self.topology or bool(flavor.node_labels or flavor.node_taints)


class GroupState:
    """A resource group with its flavors in the order of the spec."""

    __slots__ = ("covered", "flavors", "last")

    def __init__(self, covered: tuple[str, ...], flavors: list[FlavorSlot]) -> None:
        self.covered = covered
        self.flavors = flavors
        self.last = len(flavors) - 1


@dataclass(frozen=True, slots=True)
class LimitedNode:
    """A ClusterQueue or Cohort with limits by user. `name`: "ClusterQueue q" or "Cohort c". `by_user`, `by_group`: the
    limit that names a user, or a group."""

    name: str
    limits: tuple[UserLimit, ...]
    by_user: Mapping[str, UserLimit]
    by_group: Mapping[str, UserLimit]

    @classmethod
    def of(cls, name: str, limits: tuple[UserLimit, ...]) -> LimitedNode:
        """Index the limits by their users and groups. If two limits name the same user or group, the first one
        counts."""
        return cls(
            name,
            limits,
            {user: limit for limit in reversed(limits) for user in limit.users},
            {group: limit for limit in reversed(limits) for group in limit.groups},
        )

    def limits_for(self, user: str, group: str = "") -> tuple[UserLimit, ...]:
        """Return the limits that apply to a user and to a group, at most one each; empty if neither is limited here."""
        found = self.by_user.get(user) or self.by_user.get(ANYONE)
        shared = self.by_group.get(group) if group else None
        return tuple(limit for limit in (found, shared) if limit is not None)


class ClusterQueueState:
    """The running state of one ClusterQueue. `generation` grows with each workload that leaves or arrives and with each
    change of quota in its tree."""

    __slots__ = (
        "_ranking",
        "_rankings",
        "active",
        "backfilled",
        "can_preempt",
        "generation",
        "group_of",
        "groups",
        "inactive_message",
        "inactive_reason",
        "name",
        "node",
        "ordered_across",
        "protections",
        "queue",
        "spec",
        "strict",
        "topology_only",
        "user_limits",
        "weights",
        "workloads",
    )

    def __init__(self, spec: ClusterQueue, journal: Journal) -> None:
        """Start without flavors; `set_spec` adds them."""
        self.name = spec.name
        self.spec = spec
        self.node = QuotaNode(spec.name)
        self.queue = PendingQueue(journal)
        self.workloads: dict[str, WorkloadInfo] = {}
        self._ranking: Ranking | None = None
        self._rankings: dict[frozenset[FlavorResource], Ranking] = {}
        self.generation = 0
        self.active = True
        self.inactive_reason = ClusterQueueReason.READY
        self.inactive_message = ""
        self.groups: list[GroupState] = []
        self.group_of: dict[str, GroupState] = {}
        self.strict = False
        self.topology_only = False
        self.can_preempt = False
        self.protections: tuple[PreemptionProtection, ...] = ()
        self.user_limits: tuple[LimitedNode, ...] = ()
        """Itself and the cohorts above that limit users, from itself up."""
        self.backfilled = spec.backfill is not None
        """Whether its waiting workloads are distinguished by their time limits."""
        self.weights: PriorityWeights | None = None
        """The weights of the multifactor priority that orders its pending workloads; None: their class orders them."""
        self.ordered_across = False
        """Whether the weights are those of the root cohort, so that they order the heads of its queues too."""

    def set_spec(self, spec: ClusterQueue, flavors: Mapping[str, ResourceFlavor]) -> None:
        """Replace the spec and keep the usage. The caller must rebuild the cohort tree afterwards."""
        self.spec = spec
        self.node.weight = spec.fair_weight
        self.strict = spec.queueing_strategy is QueueingStrategy.STRICT_FIFO
        self.can_preempt = (
            spec.preemption.within_cluster_queue is not WithinClusterQueuePolicy.NEVER
            or spec.preemption.reclaim_within_cohort is not ReclaimWithinCohortPolicy.NEVER
        )
        set_quotas(self.node, spec.resource_groups)
        self.groups = [
            GroupState(
                group.covered_resources,
                [
                    FlavorSlot(
                        flavor.name,
                        flavors.get(flavor.name),
                        {name: self.node.cell(FlavorResource(flavor.name, name)) for name in flavor.resources},
                    )
                    for flavor in group.flavors
                ],
            )
            for group in spec.resource_groups
        ]
        self.group_of = {resource: group for group in self.groups for resource in group.covered}
        self.topology_only = all(slot.topology for group in self.groups for slot in group.flavors)

    @property
    def usage_based(self) -> bool:
        """Whether LocalQueues are ordered by past usage (admission fair sharing)."""
        return self.spec.admission_mode is AdmissionMode.USAGE_BASED_ADMISSION_FAIR_SHARING

    def ranking(self) -> Ranking:
        """Return the workloads that hold quota here, in the order in which preemption considers them: stopping
        workloads apart from the others, each sorted by lower priority, later reservation, uid. Cached until
        `forget_ranking`."""
        if self._ranking is None:
            ranked = sorted(self.workloads.values(), key=lambda info: (info.priority, -info.reserved_at, info.uid))
            self._ranking = ([info for info in ranked if info.evicted], [info for info in ranked if not info.evicted])
        return self._ranking

    def ranking_of(self, keys: frozenset[FlavorResource]) -> Ranking:
        """Return the part of `ranking` that uses any of the keys. Cached until `forget_ranking`."""
        found = self._rankings.get(keys)
        if found is None:
            stopping, running = self.ranking()
            found = self._rankings[keys] = (
                [info for info in stopping if not keys.isdisjoint(info.keys)],
                [info for info in running if not keys.isdisjoint(info.keys)],
            )
        return found

    def forget_ranking(self) -> None:
        """Drop the cached rankings: a workload arrived, left, or was asked to stop."""
        self._ranking = None
        self._rankings.clear()

    def snapshot(self) -> int:
        """Return the generation. The pending queue journals its own changes."""
        return self.generation

    def restore(self, generation: int) -> None:
        """Go back to a snapshot."""
        self.generation = generation
        self.forget_ranking()
