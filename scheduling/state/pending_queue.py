"""The workloads that wait in one ClusterQueue, active ones in order and inadmissible ones, as in Kueue's queue."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from heapq import heapify, heappop, heappush

from scheduling.model.vocabulary import PendingReason
from scheduling.state.workload_info import QueueState, SchedulingHash, WorkloadInfo

HeapItem = tuple[int, float, str, str, int, WorkloadInfo]
Verdict = tuple[PendingReason, str]
"""Why workloads with a scheduling hash were inadmissible."""
UsageOf = Callable[[WorkloadInfo], float]
QueueSnapshot = tuple[
    dict[str, HeapItem],
    dict[str, WorkloadInfo],
    dict[SchedulingHash, Verdict],
    dict[str, list[HeapItem]],
    str,
    dict[SchedulingHash, dict[str, None]] | None,
]


class PendingQueue:
    """The queue of one ClusterQueue.

    `active` is ordered by priority, then queue-order time, then uid; the sticky preemptor goes before all of them, and
    with admission fair sharing LocalQueues with less usage before everything. `inadmissible` waits for an event.
    """

    __slots__ = (
        "_by_hash",
        "_heaps",
        "_serial",
        "_usage_of",
        "active",
        "inadmissible",
        "inadmissible_hashes",
        "sticky",
    )

    def __init__(self) -> None:
        """An empty queue."""
        self.active: dict[str, HeapItem] = {}
        self.inadmissible: dict[str, WorkloadInfo] = {}
        self.inadmissible_hashes: dict[SchedulingHash, Verdict] = {}
        self.sticky = ""
        self._usage_of: UsageOf | None = None
        self._heaps: dict[str, list[HeapItem]] = {}
        self._serial = 0
        self._by_hash: dict[SchedulingHash, dict[str, None]] | None = None

    def order_by_usage(self, usage_of: UsageOf | None) -> None:
        """Order LocalQueues by their usage from now on (admission fair sharing), or, with None, not any more."""
        if usage_of is None and self._usage_of is None:
            return
        self._usage_of = usage_of
        self._heaps = {}
        for item in self.active.values():
            heappush(self._heap_of(item[5]), item)

    def _heap_of(self, info: WorkloadInfo) -> list[HeapItem]:
        """The heap of its LocalQueue where these are told apart, else the only one. Left items stay until they
        surface."""
        key = info.queue_key if self._usage_of is not None else ""
        heap = self._heaps.get(key)
        if heap is None:
            heap = self._heaps[key] = []
        return heap

    def push(self, info: WorkloadInfo) -> None:
        """Make it active."""
        self._serial += 1
        item = (*info.order, self._serial, info)
        self.active[info.key] = item
        info.queue_state = QueueState.ACTIVE
        heappush(self._heap_of(info), item)
        if self._by_hash is not None:
            self._by_hash.setdefault(info.scheduling_hash, {})[info.key] = None

    def push_unless_inadmissible(self, info: WorkloadInfo) -> Verdict | None:
        """Make it active, unless a workload with its scheduling hash was found inadmissible since the last event: then
        it is inadmissible at once, and the verdict on that one is returned."""
        verdict = self.inadmissible_hashes.get(info.scheduling_hash) if self.inadmissible_hashes else None
        if verdict is None:
            self.push(info)
        else:
            self.set_inadmissible(info)
        return verdict

    def set_inadmissible(self, info: WorkloadInfo) -> None:
        """Set it aside until an event wakes it. It must not be active."""
        self.inadmissible[info.key] = info
        info.queue_state = QueueState.INADMISSIBLE

    def set_hash_inadmissible(self, scheduling_hash: SchedulingHash, verdict: Verdict) -> list[WorkloadInfo]:
        """Set aside every active workload of this hash, and those that come until the next event. Returns them."""
        if self._by_hash is None:
            self._by_hash = {}
            for key, item in self.active.items():
                self._by_hash.setdefault(item[5].scheduling_hash, {})[key] = None
        self.inadmissible_hashes[scheduling_hash] = verdict
        moved = [self.active.pop(key)[5] for key in self._by_hash.pop(scheduling_hash, ())]
        for info in moved:
            self.set_inadmissible(info)
        return moved

    def wake(self, may_wake: Callable[[WorkloadInfo], bool]) -> list[WorkloadInfo]:
        """Make the inadmissible workloads active that may be; returns them."""
        self.inadmissible_hashes.clear()
        woken = [info for info in self.inadmissible.values() if may_wake(info)]
        for info in woken:
            del self.inadmissible[info.key]
            self.push(info)
        return woken

    def discard(self, info: WorkloadInfo) -> None:
        """Take it out, wherever it is, and forget that it was sticky: it left the ClusterQueue."""
        key = info.key
        if self.active.pop(key, None) is not None and self._by_hash is not None:
            self._by_hash.get(info.scheduling_hash, {}).pop(key, None)
        self.inadmissible.pop(key, None)
        if self.sticky == key:
            self.sticky = ""
        info.queue_state = QueueState.NOWHERE

    def pop(self) -> WorkloadInfo | None:
        """Take out the head; None when nobody is active."""
        item = self._first()
        if item is None:
            return None
        info = item[5]
        del self.active[info.key]
        if self._by_hash is not None:
            self._by_hash.get(info.scheduling_hash, {}).pop(info.key, None)
        info.queue_state = QueueState.NOWHERE
        return info

    def _first(self) -> HeapItem | None:
        if not self.active:
            self._heaps.clear()
            return None
        usage_of = self._usage_of
        if usage_of is None:
            return self.active.get(self.sticky) or self._first_of("")
        sticky = self.active.get(self.sticky)
        firsts = [sticky] if sticky is not None else []
        firsts += [item for item in map(self._first_of, list(self._heaps)) if item is not None]
        return min(firsts, key=lambda item: (usage_of(item[5]), item[3] != self.sticky, item))

    def _first_of(self, key: str) -> HeapItem | None:
        """The first active item of a heap; an empty heap is dropped."""
        heap, active = self._heaps[key], self.active
        if len(heap) > 64 and len(heap) > 4 * len(active):
            heap = self._heaps[key] = [item for item in heap if active.get(item[3]) is item]
            heapify(heap)
        while heap:
            item = heap[0]
            if active.get(item[3]) is item:
                return item
            heappop(heap)
        del self._heaps[key]
        return None

    def in_order(self) -> list[WorkloadInfo]:
        """Everyone who waits, inadmissible or not, in the order of the queue."""
        waiting: Iterable[WorkloadInfo] = (*(item[5] for item in self.active.values()), *self.inadmissible.values())
        usage_of = self._usage_of
        return sorted(
            waiting, key=lambda info: (usage_of(info) if usage_of else 0.0, info.key != self.sticky, info.order)
        )

    def snapshot(self) -> QueueSnapshot:
        """A copy of the state, to undo to."""
        hashes = None if self._by_hash is None else {key: dict(keys) for key, keys in self._by_hash.items()}
        heaps = {key: list(heap) for key, heap in self._heaps.items()}
        return (dict(self.active), dict(self.inadmissible), dict(self.inadmissible_hashes), heaps, self.sticky, hashes)

    def restore(self, state: QueueSnapshot) -> None:
        """Go back to a snapshot. The places of the workloads follow."""
        self.active, self.inadmissible, self.inadmissible_hashes, self._heaps, self.sticky, self._by_hash = state
        for item in self.active.values():
            item[5].queue_state = QueueState.ACTIVE
        for info in self.inadmissible.values():
            info.queue_state = QueueState.INADMISSIBLE
