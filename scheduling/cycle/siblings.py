"""The other variants of a workload that pursues several flavors at once (Kueue's concurrent admission)."""

from __future__ import annotations

from dataclasses import dataclass

from scheduling.state.cluster_queue import ClusterQueueState
from scheduling.state.workload_info import WorkloadInfo


@dataclass(frozen=True, slots=True)
class Siblings:
    """The admitted variants of the same parent, by the order of the ClusterQueue's flavors.

    * preferred, lesser: a variant whose flavor precedes, or follows, that of the variant that is decided.
    * may_migrate: its flavor comes no later than the policy's `lastAcceptableFlavorName`.
    """

    preferred: WorkloadInfo | None
    lesser: WorkloadInfo | None
    may_migrate: bool

    @classmethod
    def of(cls, info: WorkloadInfo, cq: ClusterQueueState) -> Siblings | None:
        """Return the other variants of the same parent; None if the workload is not a variant, or if the ClusterQueue
        lacks its flavor."""
        parent, policy = info.workload.parent, cq.spec.concurrent_admission
        if not parent or policy is None:
            return None
        rank = {name: place for place, name in enumerate(cq.spec.flavor_order)}
        mine = rank.get(info.workload.variant_flavor)
        if mine is None:
            return None
        admitted = {
            rank.get(other.workload.variant_flavor, mine): other
            for other in cq.workloads.values()
            if other.workload.parent == parent and other.admitted
        }
        return cls(
            next((other for place, other in admitted.items() if place < mine), None),
            next((other for place, other in admitted.items() if place > mine), None),
            mine <= rank.get(policy.last_acceptable_flavor, len(rank)),
        )
