"""The values that one batch writes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from scheduling.model.vocabulary import FinishedReason
from scheduling.model.workload import Workload


@dataclass(frozen=True, slots=True)
class WorkloadWrite:
    """The decided state of a workload, for the row `id`, which must still have `generation`. `push` requests a push to
    the cluster.
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
    """An event in a workload's life."""

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
    """A cycle that had heads. `result` is Kueue's metric label: `success` if it admitted or evicted a workload, else
    `inadmissible`."""

    result: str
    seconds: float


@dataclass(frozen=True, slots=True)
class DeviceRow:
    """The row of a device."""

    id: int
    node_id: int


@dataclass(slots=True)
class Batch:
    """The rows that one transaction writes."""

    cluster_id: int
    cluster_name: str
    epoch: int
    configuration_generation: int
    change_ids: tuple[int, ...] = ()
    workloads: list[WorkloadWrite] = field(default_factory=list)
    released_ids: list[int] = field(default_factory=list)
    """Ended workloads whose rows of slices must be deleted, without any other write."""
    deleted_ids: list[int] = field(default_factory=list)
    """Workloads whose deletion waited for resources that they held."""
    events: list[EventRow] = field(default_factory=list)
    decisions: list[DecisionRow] = field(default_factory=list)
    cycles: list[CycleRow] = field(default_factory=list)
    attempts: list[Attempt] = field(default_factory=list)
    refusals: int = 0
    """How many batches were refused since the last one that was written."""
    devices: dict[tuple[str, str], DeviceRow] = field(default_factory=dict)
    """(node, uuid) -> the device, for every device that the batch touches."""
    replaced: dict[str, tuple[FinishedReason, str]] = field(default_factory=dict)
    """Workload slices replaced by a newer one: key -> the reason why it is finished."""
    consumed: list[tuple[int, dict[str, Any]]] = field(default_factory=list)
    """Admission fair sharing: LocalQueue row id -> its decayed usage."""

    def __bool__(self) -> bool:
        return bool(
            self.workloads or self.released_ids or self.deleted_ids or self.events or self.decisions or self.consumed
        )
