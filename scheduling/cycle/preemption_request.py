"""The input of a preemption search."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from scheduling.model.resources import FlavorResource
from scheduling.quota.cells import Cell
from scheduling.state.cluster_queue import ClusterQueueState
from scheduling.state.workload_info import WorkloadInfo


class PreemptionRequest(NamedTuple):
    """A workload that needs room: its usage per cell of its ClusterQueue, and the (flavor, resource) pairs in which
    other workloads must stop.

    `can_place` is called last, once the quota fits: it tests topology and devices.
    """

    cq: ClusterQueueState
    info: WorkloadInfo
    requests: Mapping[Cell, int]
    needed: frozenset[FlavorResource]
    can_place: Callable[[], bool] | None = None
    now: float = 0.0

    def fits(self, allow_borrowing: bool) -> bool:
        """Return whether the request fits the current usage."""
        allow_borrowing = allow_borrowing and self.info.may_borrow
        for cell, amount in self.requests.items():
            own = cell.subtree if self.info.may_borrow else cell.kept
            if not allow_borrowing and cell.usage + amount > own:
                return False
            if amount > max(0, cell.available()):
                return False
        return self.can_place is None or self.can_place()
