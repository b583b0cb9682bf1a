"""The queue of one ClusterQueue: order, inadmissible workloads, and what is remembered."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from scheduling.model.configuration import Configuration
from scheduling.model.vocabulary import PendingReason
from scheduling.state.pending_queue import PendingQueue
from scheduling.state.workload_info import QueueState, WorkloadInfo
from tests.scheduling.world_helpers import workload

WAITING = (PendingReason.WAITING_FOR_QUOTA, "no room")


def info(name: str, cpu: int = 1, queue: str = "q", **fields: float) -> WorkloadInfo:
    """A waiting workload."""
    return WorkloadInfo(workload(name, queue, cpu, **fields), Configuration())


def drain(queue: PendingQueue) -> list[str]:
    """Everyone active, in order."""
    names = []
    while (found := queue.pop()) is not None:
        names.append(found.workload.name)
    return names


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 3)), max_size=20), st.data())
def test_the_heap_keeps_the_order_whatever_comes_and_goes(
    workloads: list[tuple[int, int]], data: st.DataObject
) -> None:
    queue = PendingQueue()
    infos = [info(f"w{n:02}", priority=p, at=float(t)) for n, (p, t) in enumerate(workloads)]
    for each in infos:
        queue.push(each)
    gone = data.draw(st.sets(st.sampled_from(infos))) if infos else set()
    for each in gone:
        queue.discard(each)
    back = data.draw(st.sets(st.sampled_from(sorted(gone, key=lambda i: i.key)))) if gone else set()
    for each in back:
        queue.push(each)
    left = [each for each in infos if each not in gone or each in back]
    assert drain(queue) == [each.workload.name for each in sorted(left, key=lambda each: each.order)]


def test_the_sticky_one_goes_first_until_it_leaves() -> None:
    queue = PendingQueue()
    low, high = info("low"), info("high", priority=9)
    queue.push(low)
    queue.push(high)
    queue.sticky = low.key
    assert [each.workload.name for each in queue.in_order()] == ["low", "high"]
    assert queue.pop() is low
    queue.discard(low)
    queue.push(low)
    assert drain(queue) == ["high", "low"]


def test_the_sticky_one_stays_sticky_while_it_is_inadmissible() -> None:
    queue = PendingQueue()
    low, high = info("low"), info("high", priority=9)
    queue.push(high)
    queue.sticky = low.key
    queue.set_inadmissible(low)
    queue.wake(lambda _: True)
    assert drain(queue) == ["low", "high"]


def test_equal_workloads_are_inadmissible_together_and_those_that_come_later() -> None:
    queue = PendingQueue()
    equal, other = [info(f"e{n}", cpu=2) for n in range(3)], info("other", cpu=1)
    for each in (*equal, other):
        queue.push(each)
    assert queue.set_hash_inadmissible(equal[0].scheduling_hash, WAITING) == equal
    assert [each.queue_state for each in (*equal, other)] == [QueueState.INADMISSIBLE] * 3 + [QueueState.ACTIVE]
    late = info("late", cpu=2)
    assert queue.push_unless_inadmissible(late) == WAITING
    assert queue.push_unless_inadmissible(info("another", cpu=1)) is None
    assert {each.workload.name for each in queue.wake(lambda each: each is not late)} == {"e0", "e1", "e2"}
    assert queue.push_unless_inadmissible(info("after", cpu=2)) is None
    assert set(queue.inadmissible) == {"team/late"}


def test_what_tells_workloads_apart() -> None:
    assert info("a").scheduling_hash == info("b", at=5.0).scheduling_hash
    assert info("a").scheduling_hash != info("b", cpu=2).scheduling_hash
    assert info("a").scheduling_hash != info("b", priority=1).scheduling_hash
    assert info("a").scheduling_hash != info("b", count=2).scheduling_hash


def test_local_queues_with_less_usage_go_first_even_before_the_sticky_one() -> None:
    queue = PendingQueue()
    usage = {"team/x": 5.0, "team/y": 1.0}
    queue.push(info("x1", queue="x", priority=9))
    queue.order_by_usage(lambda each: usage[each.queue_key])
    for name in ("x2", "y1", "y2"):
        queue.push(info(name, queue=name[0]))
    queue.sticky = "team/x2"
    assert [each.workload.name for each in queue.in_order()] == ["y1", "y2", "x2", "x1"]
    first = queue.pop()
    assert first is not None
    assert first.workload.name == "y1"
    usage["team/y"] = 9.0
    assert drain(queue) == ["x2", "x1", "y2"]
    queue.order_by_usage(None)


def test_undo_by_snapshot() -> None:
    queue = PendingQueue()
    first, second = info("first"), info("second", at=1.0)
    queue.push(first)
    queue.set_inadmissible(second)
    state = queue.snapshot()
    queue.discard(first)
    queue.wake(lambda _: True)
    queue.sticky = second.key
    queue.restore(state)
    assert (first.queue_state, second.queue_state, queue.sticky) == (QueueState.ACTIVE, QueueState.INADMISSIBLE, "")
    assert drain(queue) == ["first"]
