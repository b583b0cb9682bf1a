"""What one batch writes, as values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from scheduling.model.vocabulary import FinishedReason
from scheduling.model.workload import Workload


@dataclass(frozen=True, slots=True)
class WorkloadWrite:
    """A workload as decided, for the row `id`, which must still be of `generation`.

    `push` says that the cluster must hear of it.
    """

    id: int
    generation: int
    workload: Workload
    cluster_queue: str
    push: bool = False
    reserves_devices: bool = False
    releases_devices: bool = False
    counted_evictions: Sequence[dict[str, Any]] | None = None
    accumulated_seconds: int | None = None
    deactivate: bool = False


@dataclass(frozen=True, slots=True)
class EventRow:
    """A step in a workload's life."""

    workload: Workload
    at: float
    type: str
    reason: str
    message: str
    actor: str = "scheduler"


@dataclass(frozen=True, slots=True)
class DecisionRow:
    """A line of the decision log."""

    workload: Workload
    at: float
    cycle: int
    action: str
    cluster_queue: str
    reason: str
    message: str
    detail: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CycleRow:
    """A cycle that decided something."""

    number: int
    started_at: float
    duration_seconds: float
    heads: int
    admitted: int
    preempted: int
    inadmissible: int


@dataclass(frozen=True, slots=True)
class Attempt:
    """A cycle that had heads. `result`, as Kueue's metrics have it: `success` if it admitted or evicted a workload,
    else `inadmissible`."""

    result: str
    seconds: float


@dataclass(frozen=True, slots=True)
class DeviceRow:
    """Where a device is stored."""

    id: int
    node_id: int


@dataclass(slots=True)
class Batch:
    """All that one transaction writes."""

    cluster_id: int
    cluster_name: str
    epoch: int
    configuration_generation: int
    change_ids: tuple[int, ...] = ()
    workloads: list[WorkloadWrite] = field(default_factory=list)
    released_ids: list[int] = field(default_factory=list)
    """Workloads that hold no slice any more and need no other write: finished or gone."""
    deleted_ids: list[int] = field(default_factory=list)
    """Workloads whose deletion waited for what they held."""
    events: list[EventRow] = field(default_factory=list)
    decisions: list[DecisionRow] = field(default_factory=list)
    cycles: list[CycleRow] = field(default_factory=list)
    attempts: list[Attempt] = field(default_factory=list)
    refusals: int = 0
    """How many batches were refused since the last one that was written."""
    devices: dict[tuple[str, str], DeviceRow] = field(default_factory=dict)
    """(node, uuid) -> the device, for every device that the batch touches."""
    replaced: dict[str, tuple[FinishedReason, str]] = field(default_factory=dict)
    """Workload slices that a newer one took over from, or that made way for it: key -> why they are finished."""
    consumed: list[tuple[int, dict[str, Any]]] = field(default_factory=list)
    """Admission fair sharing: LocalQueue row id -> its decayed usage."""

    def __bool__(self) -> bool:
        return bool(
            self.workloads or self.released_ids or self.deleted_ids or self.events or self.decisions or self.consumed
        )
