"""The pending workloads of one ClusterQueue: active ones in order, and inadmissible ones, as in Kueue's queue.

Workloads of one LocalQueue with equal scheduling hashes share one `EqualWorkloads` and change between active and
inadmissible together. So the cost of an event that wakes a queue depends on the number of distinct hashes, not of
workloads.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from heapq import heapify, heappop, heappush, heapreplace
from itertools import count
from typing import Final

from scheduling.model.vocabulary import PendingReason
from scheduling.state.journal import Journal
from scheduling.state.workload_info import QueueItem, QueueOrder, QueueState, SchedulingHash, WorkloadInfo

Verdict = tuple[PendingReason, str]
"""Why workloads with a scheduling hash were inadmissible."""
UsageOf = Callable[[WorkloadInfo], float]
OrderOf = Callable[[WorkloadInfo], QueueOrder]
Place = tuple[float, bool, QueueOrder]
"""The sort key of a workload in its queue."""
BucketKey = tuple[SchedulingHash, str]
Said = tuple[PendingReason | None, dict[str, WorkloadInfo], dict[str, Verdict]]
_OTHER = {QueueState.ACTIVE: QueueState.INADMISSIBLE, QueueState.INADMISSIBLE: QueueState.ACTIVE}
_FEW = 64
"""A heap is not rebuilt for fewer items, or fewer stale ones, than this."""
_TICKETS: Final = count(1)
"""The numbers of heap items, unique across all queues: a workload that moved to another queue leaves a stale item
behind, whose number it must not get again in the new queue.
"""


class EqualWorkloads:
    """Workloads of one LocalQueue with one scheduling hash, all active or all inadmissible.

    `reason` is the pending reason in their status. The status of members in `unsure` may have another reason. Members
    in `untold` do, until their status gets the verdict that an equal workload received.
    """

    __slots__ = ("heap", "queue_key", "reason", "scheduling_hash", "size", "state", "unsure", "untold")

    def __init__(self, scheduling_hash: SchedulingHash, queue_key: str, state: QueueState) -> None:
        self.scheduling_hash = scheduling_hash
        self.queue_key = queue_key
        self.state = state
        self.size = 0
        self.heap: list[QueueItem] = []
        """Members, and stale items of former members. A stale item is dropped when it reaches the top."""
        self.reason: PendingReason | None = None
        self.unsure: dict[str, WorkloadInfo] = {}
        self.untold: dict[str, Verdict] = {}

    def is_member(self, item: QueueItem) -> bool:
        """Return whether an item of the heap belongs to a current member, rather than being stale."""
        info = item[2]
        return info.bucket is self and info.ticket == item[1]

    def members(self) -> Iterator[WorkloadInfo]:
        """Return all members, in no particular order."""
        return (item[2] for item in self.heap if self.is_member(item))

    def first(self) -> QueueItem | None:
        """Return the first member in queue order."""
        heap = self.heap
        if len(heap) > _FEW + 4 * self.size:
            heap = self.heap = list(filter(self.is_member, heap))
            heapify(heap)
        while heap:
            item = heap[0]
            info = item[2]
            if info.bucket is self and info.ticket == item[1]:
                return item
            heappop(heap)
        return None

    def add(self, info: WorkloadInfo, ticket: int) -> QueueItem:
        """Add a member and return its heap item."""
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
        """Remove a member; its heap item becomes stale."""
        info.bucket = None
        self.size -= 1
        self.unsure.pop(info.key, None)
        self.untold.pop(info.key, None)


class PendingQueue:
    """The queue of one ClusterQueue.

    Active workloads are ordered by priority (their class's, or the multifactor one), then queue-order time, then uid;
    the sticky preemptor goes before all of them, and with admission fair sharing LocalQueues with less usage before
    everything. Inadmissible ones wait for an
    event, and the delayed ones among them for the end of their back-off too.
    """

    __slots__ = (
        "_buckets",
        "_delayed",
        "_heaps",
        "_journal",
        "_refused",
        "_sticky",
        "_untold",
        "_usage_of",
        "_waiting",
        "active_count",
    )

    def __init__(self, journal: Journal | None = None) -> None:
        """`journal` records how to undo changes of the queue."""
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
        """The first item of each active bucket; one heap per LocalQueue where LocalQueues are ordered by usage. An
        item is stale once its workload is not active any more, and is dropped when it reaches the top."""
        self.active_count = 0

    # -- reading -----------------------------------------------------------------------------------------------------

    @property
    def inadmissible_count(self) -> int:
        return len(self._waiting) - self.active_count

    def equals(self, state: QueueState) -> list[EqualWorkloads]:
        """Return the groups of equal workloads in that state."""
        return [found for by_queue in self._buckets[state].values() for found in by_queue.values() if found.size]

    @property
    def may_wake(self) -> bool:
        """Whether an event could make any workload active or change the knowledge about inadmissible hashes."""
        return bool(self._refused or self.inadmissible_count)

    @property
    def sticky(self) -> str:
        """The key of the preemptor that comes first, whatever state it is in; "" if there is none."""
        return self._sticky

    @sticky.setter
    def sticky(self, key: str) -> None:
        self._journal.note(self._set_sticky, self._sticky)
        self._sticky = key

    def _set_sticky(self, key: str) -> None:
        self._sticky = key

    def __contains__(self, key: object) -> bool:
        """Return whether the workload is pending."""
        return key in self._waiting

    def keys(self) -> list[str]:
        """Return the keys of all pending workloads."""
        return list(self._waiting)

    def waiting(self) -> Collection[WorkloadInfo]:
        """Return all pending workloads, in no order."""
        return self._waiting.values()

    def in_order(self) -> list[WorkloadInfo]:
        """Return all pending workloads in queue order, inadmissible ones included."""
        return sorted(self._waiting.values(), key=self._place)

    def _place(self, info: WorkloadInfo) -> Place:
        usage = self._usage_of(info) if self._usage_of is not None else 0.0
        return (usage, info.key != self._sticky, info.order)

    def firsts(self, taken: WorkloadInfo | None = None) -> Iterator[WorkloadInfo]:
        """Yield the first of each group of equal workloads in queue order. Workloads that back off are left out.
        `taken` counts too: a workload that was taken from the queue to be decided."""
        return self._sorted([*self._firsts(), *([taken] if taken is not None else [])])

    def firsts_before(self, info: WorkloadInfo) -> Iterator[WorkloadInfo]:
        """Yield the part of `firsts` before a workload, which may have been taken from the queue."""
        place = self._place(info)
        return self._sorted(first for first in self._firsts() if self._place(first) < place)

    def _firsts(self) -> Iterator[WorkloadInfo]:
        items = (bucket.first() for state in self._buckets for bucket in self.equals(state))
        return (item[2] for item in items if item is not None)

    def _sorted(self, infos: Iterable[WorkloadInfo]) -> Iterator[WorkloadInfo]:
        """Yield workloads in queue order. Their number may be large, and most readers want the first few."""
        heap = [(self._place(info), number, info) for number, info in enumerate(infos)]
        heapify(heap)
        while heap:
            yield heappop(heap)[2]

    def active_firsts(self) -> Iterator[WorkloadInfo]:
        """Yield the first of each group of equal active workloads, in no order."""
        items = (bucket.first() for bucket in self.equals(QueueState.ACTIVE))
        return (item[2] for item in items if item is not None)

    def demand(self) -> Iterator[tuple[WorkloadInfo, int]]:
        """Yield one of each group of equal pending workloads, including inadmissible ones, with the size of the
        group."""
        for state in self._buckets:
            for bucket in self.equals(state):
                yield next(bucket.members()), bucket.size
        for info in self._delayed.values():
            yield info, 1

    # -- one workload --------------------------------------------------------------------------------------------------

    def push(self, info: WorkloadInfo) -> None:
        """Make a workload active."""
        self._put(info, QueueState.ACTIVE)
        self._journal.note(self._take, info)

    def push_unless_inadmissible(self, info: WorkloadInfo) -> Verdict | None:
        """Make a workload active, unless an equal one was found inadmissible since the last event. In that case it
        becomes inadmissible, and the verdict on the equal one is returned."""
        verdict = self._refused.get(info.scheduling_hash) if self._refused else None
        if verdict is None:
            self.push(info)
        else:
            self.set_inadmissible(info)
        return verdict

    def set_inadmissible(self, info: WorkloadInfo, *, delayed: bool = False) -> None:
        """Add a workload as inadmissible until an event wakes it. With `delayed`, its back-off must also have ended.
        The workload must not be in the queue yet."""
        if delayed:
            self._delay(info)
        else:
            self._put(info, QueueState.INADMISSIBLE)
        self._journal.note(self._take, info)

    def discard(self, info: WorkloadInfo) -> None:
        """Remove a workload that left the ClusterQueue, whatever state it is in, and forget that it was sticky."""
        if info.key in self._waiting:
            self._remove(info)
        if self._sticky == info.key:
            self.sticky = ""
        info.queue_state = QueueState.NOWHERE

    @property
    def head(self) -> WorkloadInfo | None:
        """The head; None when no workload is active."""
        item = self._first()
        return None if item is None else item[2]

    def pop(self) -> WorkloadInfo | None:
        """Remove and return the head; None when no workload is active."""
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
        """Undo a removal. The reason in its status may be restored after this step, so it must be compared again
        later."""
        self._put(info, state)
        self._unsay(info, untold)

    def _put(self, info: WorkloadInfo, state: QueueState) -> None:
        bucket = self._bucket(info, state)
        item = bucket.add(info, next(_TICKETS))
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
            self._show_first(bucket, instead_of=info)

    # -- equal workloads -----------------------------------------------------------------------------------------------

    def set_hash_inadmissible(self, scheduling_hash: SchedulingHash, verdict: Verdict) -> None:
        """Make all active workloads with a scheduling hash inadmissible, as well as later arrivals until the next
        event. Workloads whose status has another reason become due in `next_untold`."""
        self._journal.note(self._set_refused, scheduling_hash, self._refused.get(scheduling_hash))
        self._refused[scheduling_hash] = verdict
        for bucket in [*self._buckets[QueueState.ACTIVE].get(scheduling_hash, {}).values()]:
            self._refuse(bucket, verdict)
            self._change_state(bucket)

    def wake(self, now: float, selects: Callable[[str], bool]) -> None:
        """Activate the inadmissible workloads whose namespace is selected and whose back-off is over."""
        self._journal.note(self._set_all_refused, self._refused)
        self._refused = {}
        for info in [*self._delayed.values()]:
            if info.backoff_expired(now) and selects(info.workload.namespace):
                self._move(info, QueueState.ACTIVE)
        for bucket in [*self._each(QueueState.INADMISSIBLE)]:
            if selects(bucket.queue_key.partition("/")[0]):
                self._change_state(bucket)

    def next_untold(self) -> tuple[WorkloadInfo, Verdict] | None:
        """Return a workload whose status lacks the verdict on an equal workload, with that verdict; None if the heap is
        empty. Call `said` once its status has the verdict."""
        while self._untold:
            bucket = next(iter(self._untold))
            if bucket.untold:
                key = next(reversed(bucket.untold))
                return self._waiting[key], bucket.untold[key]
            del self._untold[bucket]
        return None

    def outcome(self, info: WorkloadInfo) -> Verdict | None:
        """Return the verdict in a workload's status, or the one that its status is about to get."""
        return self.untold(info) or info.outcome

    def untold(self, info: WorkloadInfo) -> Verdict | None:
        """Return the verdict on an equal workload that a workload's status is about to get."""
        return info.bucket.untold.get(info.key) if info.bucket is not None else None

    def said(self, info: WorkloadInfo) -> None:
        """Note that the reason in a workload's status changed."""
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
        """Activate the bucket, or make it inadmissible. Where equal workloads are in the other state already, the
        smaller group is merged into the larger one."""
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
        """Move equal workloads of one state to the other."""
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
        untold = self.untold(info)
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

    @property
    def usage_of(self) -> UsageOf | None:
        """The usage that orders LocalQueues; None if usage does not order them."""
        return self._usage_of

    def order_by_usage(self, usage_of: UsageOf | None) -> None:
        """Order LocalQueues by their usage (admission fair sharing); None turns this off."""
        if usage_of is None and self._usage_of is None:
            return
        self._usage_of = usage_of
        self._heaps = {}
        for bucket in self._each(QueueState.ACTIVE):
            self._show_first(bucket)

    def reorder(self, order_of: OrderOf) -> None:
        """Compute the order of every pending workload again."""
        for info in self._waiting.values():
            info.order = order_of(info)
        self._heaps = {}
        for state in self._buckets:
            for bucket in self._each(state):
                bucket.heap = [(item[2].order, *item[1:]) for item in bucket.heap if bucket.is_member(item)]
                heapify(bucket.heap)
                self._show_first(bucket)

    def _heap_of(self, bucket: EqualWorkloads) -> list[QueueItem]:
        """Return the heap of the bucket's LocalQueue where LocalQueues are ordered by usage, else the only heap."""
        key = "" if self._usage_of is None else bucket.queue_key
        if key not in self._heaps:
            self._heaps[key] = []
        return self._heaps[key]

    def _show_first(self, bucket: EqualWorkloads, instead_of: WorkloadInfo | None = None) -> None:
        """Put the bucket's first item into the heap; in the place of one that left, where that is on top."""
        item = bucket.first()
        if bucket.state is not QueueState.ACTIVE or item is None:
            return
        heap = self._heap_of(bucket)
        if heap and heap[0][2] is instead_of:
            heapreplace(heap, item)
        else:
            heappush(heap, item)

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
        """Return the first active item of a heap. Empty heaps are removed."""
        heap = self._heaps[key]
        if len(heap) > _FEW and len(heap) > 4 * len(self._buckets[QueueState.ACTIVE]):
            heap = self._heaps[key] = [*{item[1]: item for item in heap if _is_first(item)}.values()]
            heapify(heap)
        while heap:
            item = heap[0]
            info = item[2]
            bucket = info.bucket
            if bucket is not None and info.ticket == item[1] and bucket.state is QueueState.ACTIVE:
                return item
            heappop(heap)
        del self._heaps[key]
        return None


def _is_active(item: QueueItem) -> bool:
    info = item[2]
    return info.bucket is not None and info.ticket == item[1] and info.bucket.state is QueueState.ACTIVE


def _is_first(item: QueueItem) -> bool:
    """Return whether an item is active and the first of its bucket. A heap needs only such items."""
    bucket = item[2].bucket
    return bucket is not None and _is_active(item) and bucket.heap[0][1] == item[1]
