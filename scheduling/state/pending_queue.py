"""The workloads that wait in one ClusterQueue, active ones in order and inadmissible ones, as in Kueue's queue.

Equal workloads of one LocalQueue (by their scheduling hash) are one `EqualWorkloads`, and change between active and
inadmissible as one, whatever their number: an event that wakes a queue costs what its kinds of workloads cost, not what
its workloads do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from heapq import heapify, heappop, heappush

from scheduling.model.vocabulary import PendingReason
from scheduling.state.journal import Journal
from scheduling.state.workload_info import QueueItem, QueueState, SchedulingHash, WorkloadInfo

Verdict = tuple[PendingReason, str]
"""Why workloads with a scheduling hash were inadmissible."""
UsageOf = Callable[[WorkloadInfo], float]
BucketKey = tuple[SchedulingHash, str]
Said = tuple[PendingReason | None, dict[str, WorkloadInfo], dict[str, Verdict]]
_OTHER = {QueueState.ACTIVE: QueueState.INADMISSIBLE, QueueState.INADMISSIBLE: QueueState.ACTIVE}
_FEW = 64
"""Left-over items of a heap that are not worth a rebuild."""


class EqualWorkloads:
    """Workloads of one LocalQueue with one scheduling hash, all active or all inadmissible.

    `reason` is why they wait, as their status says; those in `unsure` may say another, and those in `untold` do, until
    somebody tells them the verdict on an equal one.
    """

    __slots__ = ("heap", "queue_key", "reason", "scheduling_hash", "size", "state", "unsure", "untold")

    def __init__(self, scheduling_hash: SchedulingHash, queue_key: str, state: QueueState) -> None:
        """None yet."""
        self.scheduling_hash = scheduling_hash
        self.queue_key = queue_key
        self.state = state
        self.size = 0
        self.heap: list[QueueItem] = []
        """Its members and what is left of those that went; these stay until they surface."""
        self.reason: PendingReason | None = None
        self.unsure: dict[str, WorkloadInfo] = {}
        self.untold: dict[str, Verdict] = {}

    def is_member(self, item: QueueItem) -> bool:
        """Whether an item of the heap still stands for a member."""
        info = item[2]
        return info.bucket is self and info.ticket == item[1]

    def members(self) -> Iterator[WorkloadInfo]:
        """All of them, in no order."""
        return (item[2] for item in self.heap if self.is_member(item))

    def first(self) -> QueueItem | None:
        """The first in order."""
        heap = self.heap
        if len(heap) > _FEW and len(heap) > 4 * self.size:
            heap = self.heap = list(filter(self.is_member, heap))
            heapify(heap)
        while heap and not self.is_member(heap[0]):
            heappop(heap)
        return heap[0] if heap else None

    def add(self, info: WorkloadInfo, ticket: int) -> QueueItem:
        """One more."""
        item = (info.order, ticket, info)
        heappush(self.heap, item)
        info.bucket, info.ticket = self, ticket
        self.size += 1
        said = None if info.outcome is None else info.outcome[0]
        if self.size == 1:
            self.reason = said
        elif said is not self.reason:
            self.unsure[info.key] = info
        return item

    def remove(self, info: WorkloadInfo) -> None:
        """One fewer."""
        info.bucket = None
        self.size -= 1
        self.unsure.pop(info.key, None)
        self.untold.pop(info.key, None)


class PendingQueue:
    """The queue of one ClusterQueue.

    Active workloads are ordered by priority, then queue-order time, then uid; the sticky preemptor goes before all of
    them, and with admission fair sharing LocalQueues with less usage before everything. Inadmissible ones wait for an
    event, and the delayed ones among them for the end of their back-off too.
    """

    __slots__ = (
        "_buckets",
        "_delayed",
        "_heaps",
        "_journal",
        "_refused",
        "_sticky",
        "_ticket",
        "_untold",
        "_usage_of",
        "_waiting",
        "active_count",
    )

    def __init__(self, journal: Journal | None = None) -> None:
        """An empty queue; `journal` notes how to take its changes back."""
        self._journal = journal or Journal()
        self._waiting: dict[str, WorkloadInfo] = {}
        self._buckets: dict[QueueState, dict[SchedulingHash, dict[str, EqualWorkloads]]] = {
            QueueState.ACTIVE: {},
            QueueState.INADMISSIBLE: {},
        }
        self._delayed: dict[str, WorkloadInfo] = {}
        self._refused: dict[SchedulingHash, Verdict] = {}
        self._untold: dict[EqualWorkloads, None] = {}
        self._sticky = ""
        self._usage_of: UsageOf | None = None
        self._heaps: dict[str, list[QueueItem]] = {}
        """The first of each bucket that is active, per LocalQueue where these are told apart. An item is void once its
        workload is not active any more; it stays until it surfaces."""
        self._ticket = 0
        self.active_count = 0

    # -- who is here ---------------------------------------------------------------------------------------------------

    @property
    def inadmissible_count(self) -> int:
        """How many are inadmissible."""
        return len(self._waiting) - self.active_count

    def equals(self, state: QueueState) -> list[EqualWorkloads]:
        """Those of that state, equal ones together."""
        return [found for by_queue in self._buckets[state].values() for found in by_queue.values() if found.size]

    @property
    def may_wake(self) -> bool:
        """Whether an event could change anything."""
        return bool(self._refused or self.inadmissible_count)

    @property
    def sticky(self) -> str:
        """The key of the preemptor that goes first, wherever it is; "" without one."""
        return self._sticky

    @sticky.setter
    def sticky(self, key: str) -> None:
        self._journal.note(self._set_sticky, self._sticky)
        self._sticky = key

    def _set_sticky(self, key: str) -> None:
        self._sticky = key

    def keys(self) -> list[str]:
        """Everyone who waits."""
        return list(self._waiting)

    def in_order(self) -> list[WorkloadInfo]:
        """The waiting workloads, inadmissible ones included, in the order of the queue."""
        usage_of = self._usage_of
        return sorted(
            self._waiting.values(),
            key=lambda info: (usage_of(info) if usage_of else 0.0, info.key != self._sticky, info.order),
        )

    # -- one workload --------------------------------------------------------------------------------------------------

    def push(self, info: WorkloadInfo) -> None:
        """Make it active."""
        self._put(info, QueueState.ACTIVE)
        self._journal.note(self._take, info)

    def push_unless_inadmissible(self, info: WorkloadInfo) -> Verdict | None:
        """Make it active, unless a workload with its scheduling hash was found inadmissible since the last event: then
        it is inadmissible at once, and the verdict on that one is returned."""
        verdict = self._refused.get(info.scheduling_hash) if self._refused else None
        if verdict is None:
            self.push(info)
        else:
            self.set_inadmissible(info)
        return verdict

    def set_inadmissible(self, info: WorkloadInfo, *, delayed: bool = False) -> None:
        """Set it aside until an event wakes it; `delayed`: and until its back-off is over. It must not be here yet."""
        if delayed:
            self._delay(info)
        else:
            self._put(info, QueueState.INADMISSIBLE)
        self._journal.note(self._take, info)

    def discard(self, info: WorkloadInfo) -> None:
        """Take it out, wherever it is, and forget that it was sticky: it left the ClusterQueue."""
        if info.key in self._waiting:
            self._remove(info)
        if self._sticky == info.key:
            self.sticky = ""
        info.queue_state = QueueState.NOWHERE

    def pop(self) -> WorkloadInfo | None:
        """Take out the head; None when no workload is active."""
        item = self._first()
        if item is None:
            return None
        self._remove(item[2])
        return item[2]

    def _remove(self, info: WorkloadInfo) -> None:
        bucket = info.bucket
        if bucket is None:
            self._journal.note(self._delay, info)
        else:
            self._journal.note(self._put_back, info, bucket.state, bucket.untold.get(info.key))
        self._take(info)

    def _put_back(self, info: WorkloadInfo, state: QueueState, untold: Verdict | None) -> None:
        """Undo that it was taken. What its status says is put back later, so that it has to be asked again."""
        self._put(info, state)
        self._unsay(info, untold)

    def _put(self, info: WorkloadInfo, state: QueueState) -> None:
        bucket = self._bucket(info, state)
        self._ticket += 1
        item = bucket.add(info, self._ticket)
        self._waiting[info.key] = info
        if state is QueueState.ACTIVE:
            self.active_count += 1
            if bucket.heap[0] is item:
                heappush(self._heap_of(bucket), item)

    def _delay(self, info: WorkloadInfo) -> None:
        info.queue_state = QueueState.INADMISSIBLE
        self._waiting[info.key] = self._delayed[info.key] = info

    def _take(self, info: WorkloadInfo) -> None:
        del self._waiting[info.key]
        info.queue_state = QueueState.NOWHERE
        bucket = info.bucket
        if bucket is None:
            del self._delayed[info.key]
            return
        was_first = bucket.heap[0][2] is info
        bucket.remove(info)
        if bucket.state is QueueState.ACTIVE:
            self.active_count -= 1
        if not bucket.size:
            self._drop(bucket)
        elif was_first:
            self._show_first(bucket)

    # -- equal workloads -----------------------------------------------------------------------------------------------

    def set_hash_inadmissible(self, scheduling_hash: SchedulingHash, verdict: Verdict) -> None:
        """Make every active workload with a scheduling hash inadmissible, and those that come until the next event.
        Those whose status says another reason are to be told the verdict (`next_untold`)."""
        self._journal.note(self._set_refused, scheduling_hash, self._refused.get(scheduling_hash))
        self._refused[scheduling_hash] = verdict
        for bucket in [*self._buckets[QueueState.ACTIVE].get(scheduling_hash, {}).values()]:
            self._refuse(bucket, verdict)
            self._change_state(bucket)

    def wake(self, now: float, selects: Callable[[str], bool]) -> None:
        """Make the inadmissible workloads active whose namespace is selected and whose back-off is over."""
        self._journal.note(self._set_all_refused, self._refused)
        self._refused = {}
        for info in [*self._delayed.values()]:
            if info.backoff_expired(now) and selects(info.workload.namespace):
                self._move(info, QueueState.ACTIVE)
        for bucket in [*self._each(QueueState.INADMISSIBLE)]:
            if selects(bucket.queue_key.partition("/")[0]):
                self._change_state(bucket)

    def next_untold(self) -> tuple[WorkloadInfo, Verdict] | None:
        """A workload that is to be told the verdict on an equal one; it was, once `said` is called."""
        while self._untold:
            bucket = next(iter(self._untold))
            if bucket.untold:
                key = next(reversed(bucket.untold))
                return self._waiting[key], bucket.untold[key]
            del self._untold[bucket]
        return None

    def outcome(self, info: WorkloadInfo) -> Verdict | None:
        """Why a workload waits, as its status says or is about to."""
        untold = info.bucket.untold.get(info.key) if info.bucket is not None else None
        return untold or info.outcome

    def said(self, info: WorkloadInfo) -> None:
        """The status of a workload says another reason now."""
        bucket = info.bucket
        if bucket is None:
            return
        self._journal.note(self._unsay, info, bucket.untold.pop(info.key, None))
        if info.outcome is not None and info.outcome[0] is bucket.reason:
            bucket.unsure.pop(info.key, None)
        else:
            bucket.unsure[info.key] = info

    def _unsay(self, info: WorkloadInfo, untold: Verdict | None) -> None:
        bucket = info.bucket
        if bucket is None:
            return
        bucket.unsure[info.key] = info
        if untold is not None:
            bucket.untold[info.key] = untold
            self._untold[bucket] = None

    def _refuse(self, bucket: EqualWorkloads, verdict: Verdict) -> None:
        reason = verdict[0]
        key, said = (bucket.scheduling_hash, bucket.queue_key), (bucket.reason, bucket.unsure, bucket.untold)
        self._journal.note(self._unrefuse, key, said)
        asked = bucket.unsure.values() if bucket.reason is reason else bucket.members()
        news = {info.key: verdict for info in asked if info.outcome is None or info.outcome[0] is not reason}
        bucket.untold = {**bucket.untold, **news} if bucket.reason is reason else news
        bucket.reason, bucket.unsure = reason, {}
        if bucket.untold:
            self._untold[bucket] = None

    def _unrefuse(self, key: BucketKey, said: Said) -> None:
        bucket = self._buckets[QueueState.ACTIVE][key[0]][key[1]]
        bucket.reason, bucket.unsure, bucket.untold = said
        if bucket.untold:
            self._untold[bucket] = None

    def _change_state(self, bucket: EqualWorkloads) -> None:
        """Make all of them active if they are inadmissible, and the other way round: as one, or, where some are so
        already, by moving the fewer."""
        state = _OTHER[bucket.state]
        there = self._buckets[state].get(bucket.scheduling_hash, {}).get(bucket.queue_key)
        if there is not None and there.size >= bucket.size:
            for info in [*bucket.members()]:
                self._move(info, state)
            return
        for info in [*there.members()] if there is not None else ():
            self._move(info, bucket.state)
        self._journal.note(self._turn, bucket.scheduling_hash, bucket.queue_key, state)
        self._turn(bucket.scheduling_hash, bucket.queue_key, bucket.state)

    def _turn(self, scheduling_hash: SchedulingHash, queue_key: str, state: QueueState) -> None:
        """Let equal workloads of one state be of the other."""
        bucket = self._buckets[state][scheduling_hash][queue_key]
        self._drop(bucket)
        bucket.state = _OTHER[state]
        self._buckets[bucket.state].setdefault(scheduling_hash, {})[queue_key] = bucket
        if bucket.untold:
            self._untold[bucket] = None
        if bucket.state is QueueState.ACTIVE:
            self.active_count += bucket.size
            self._show_first(bucket)
        else:
            self.active_count -= bucket.size

    def _move(self, info: WorkloadInfo, state: QueueState) -> None:
        untold = info.bucket.untold.get(info.key) if info.bucket is not None else None
        self._remove(info)
        self._put(info, state)
        self._journal.note(self._take, info)
        if untold is not None and info.bucket is not None:
            info.bucket.untold[info.key] = untold
            self._untold[info.bucket] = None

    def _set_refused(self, scheduling_hash: SchedulingHash, verdict: Verdict | None) -> None:
        if verdict is None:
            del self._refused[scheduling_hash]
        else:
            self._refused[scheduling_hash] = verdict

    def _set_all_refused(self, refused: dict[SchedulingHash, Verdict]) -> None:
        self._refused = refused

    def _bucket(self, info: WorkloadInfo, state: QueueState) -> EqualWorkloads:
        by_queue = self._buckets[state].setdefault(info.scheduling_hash, {})
        bucket = by_queue.get(info.queue_key)
        if bucket is None:
            bucket = by_queue[info.queue_key] = EqualWorkloads(info.scheduling_hash, info.queue_key, state)
        return bucket

    def _drop(self, bucket: EqualWorkloads) -> None:
        by_queue = self._buckets[bucket.state][bucket.scheduling_hash]
        del by_queue[bucket.queue_key]
        if not by_queue:
            del self._buckets[bucket.state][bucket.scheduling_hash]
        self._untold.pop(bucket, None)

    def _each(self, state: QueueState) -> Iterator[EqualWorkloads]:
        return (bucket for by_queue in self._buckets[state].values() for bucket in by_queue.values())

    # -- the order -----------------------------------------------------------------------------------------------------

    def order_by_usage(self, usage_of: UsageOf | None) -> None:
        """Order LocalQueues by their usage from now on (admission fair sharing), or, with None, not any more."""
        if usage_of is None and self._usage_of is None:
            return
        self._usage_of = usage_of
        self._heaps = {}
        for bucket in self._each(QueueState.ACTIVE):
            self._show_first(bucket)

    def _heap_of(self, bucket: EqualWorkloads) -> list[QueueItem]:
        """The heap of its LocalQueue where these are told apart, else the only one."""
        return self._heaps.setdefault(bucket.queue_key if self._usage_of is not None else "", [])

    def _show_first(self, bucket: EqualWorkloads) -> None:
        item = bucket.first()
        if bucket.state is QueueState.ACTIVE and item is not None:
            heappush(self._heap_of(bucket), item)

    def _first(self) -> QueueItem | None:
        if not self.active_count:
            self._heaps.clear()
            return None
        usage_of = self._usage_of
        info = self._waiting.get(self._sticky)
        sticky = (info.order, info.ticket, info) if info and info.queue_state is QueueState.ACTIVE else None
        if usage_of is None:
            return sticky or self._first_of("")
        firsts = [sticky] if sticky is not None else []
        firsts += [item for item in map(self._first_of, list(self._heaps)) if item is not None]
        return min(firsts, key=lambda item: (usage_of(item[2]), item[2].key != self._sticky, item))

    def _first_of(self, key: str) -> QueueItem | None:
        """The first active item of a heap; an empty heap is dropped."""
        heap = self._heaps[key]
        if len(heap) > _FEW and len(heap) > 4 * len(self._buckets[QueueState.ACTIVE]):
            heap = self._heaps[key] = [*{item[1]: item for item in heap if _is_first(item)}.values()]
            heapify(heap)
        while heap:
            if _is_active(heap[0]):
                return heap[0]
            heappop(heap)
        del self._heaps[key]
        return None


def _is_active(item: QueueItem) -> bool:
    info = item[2]
    return info.bucket is not None and info.ticket == item[1] and info.bucket.state is QueueState.ACTIVE


def _is_first(item: QueueItem) -> bool:
    """Whether it is active and the first of its equals: no other is needed in a heap."""
    bucket = item[2].bucket
    return bucket is not None and _is_active(item) and bucket.heap[0][1] == item[1]
