"""The queue of one ClusterQueue: order, inadmissible workloads, and what is remembered."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from scheduling.model.configuration import Configuration
from scheduling.model.vocabulary import PendingReason
from scheduling.state.journal import Journal
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


def test_a_workload_that_moved_is_in_the_order_of_its_new_queue_only() -> None:
    queue, other = PendingQueue(), PendingQueue()
    moved, first, last = info("moved", cpu=1, at=1.0), info("first", cpu=2, at=0.0), info("last", cpu=3, at=2.0)
    for each in (moved, first, last):
        queue.push(each)
    queue.discard(moved)
    other.push(moved)
    assert drain(queue) == ["first", "last"]
    assert drain(other) == ["moved"]


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
    queue.wake(0.0, lambda _: True)
    assert drain(queue) == ["low", "high"]


def test_equal_workloads_are_inadmissible_together_and_those_that_come_later() -> None:
    queue = PendingQueue()
    equal, other = [info(f"e{n}", cpu=2) for n in range(3)], info("other", cpu=1)
    for each in (*equal, other):
        queue.push(each)
    queue.set_hash_inadmissible(equal[0].scheduling_hash, WAITING)
    assert [each.queue_state for each in (*equal, other)] == [QueueState.INADMISSIBLE] * 3 + [QueueState.ACTIVE]
    assert (queue.active_count, queue.inadmissible_count) == (1, 3)
    late, delayed = info("late", cpu=2, queue="other"), info("delayed", cpu=2)
    delayed.requeue_at = 5.0
    assert queue.push_unless_inadmissible(late) == WAITING
    assert queue.push_unless_inadmissible(info("another", cpu=1)) is None
    queue.set_inadmissible(delayed, delayed=True)
    queue.wake(4.0, lambda namespace: namespace == "team")
    assert drain(queue) == ["another", "e0", "e1", "e2", "late", "other"]
    assert queue.push_unless_inadmissible(info("after", cpu=2)) is None
    queue.wake(5.0, lambda namespace: namespace == "another team")
    assert delayed.queue_state is QueueState.INADMISSIBLE
    queue.wake(5.0, lambda namespace: namespace == "team")
    assert drain(queue) == ["after", "delayed"]


def test_who_waits_for_another_reason_is_told_the_verdict_on_an_equal_one_once() -> None:
    queue = PendingQueue()
    equal = [info(f"e{n}") for n in range(3)]
    for each in equal:
        queue.push(each)
    equal[1].outcome = WAITING
    queue.said(equal[1])
    queue.set_hash_inadmissible(equal[0].scheduling_hash, WAITING)
    assert queue.outcome(equal[0]) == WAITING
    told = []
    while (found := queue.next_untold()) is not None:
        found[0].outcome = found[1]
        queue.said(found[0])
        told.append(found[0].workload.name)
    assert sorted(told) == ["e0", "e2"]
    queue.wake(0.0, lambda _: True)
    queue.set_hash_inadmissible(equal[0].scheduling_hash, WAITING)
    assert queue.next_untold() is None
    queue.wake(0.0, lambda _: True)
    queue.set_hash_inadmissible(equal[0].scheduling_hash, (PendingReason.WAITING_FOR_DEVICES, "no card"))
    assert queue.next_untold() is not None


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


OPERATIONS = ("push", "push unless", "inadmissible", "delayed", "discard", "pop", "refuse", "wake", "stick", "tell")


def act(queue: PendingQueue, operation: str, each: WorkloadInfo) -> None:
    """One step that is possible now."""
    is_here = each.key in set(queue.keys())
    if operation in ("push", "push unless", "inadmissible", "delayed") and not is_here:
        if operation == "push":
            queue.push(each)
        elif operation == "push unless":
            queue.push_unless_inadmissible(each)
        else:
            queue.set_inadmissible(each, delayed=operation == "delayed")
    elif operation == "discard":
        queue.discard(each)
    elif operation == "pop":
        queue.pop()
    elif operation == "refuse":
        reason = PendingReason.WAITING_FOR_DEVICES if each.key < "team/w3" else PendingReason.WAITING_FOR_QUOTA
        queue.set_hash_inadmissible(each.scheduling_hash, (reason, "no room"))
    elif operation == "wake":
        queue.wake(3.0, lambda namespace: namespace == each.workload.namespace)
    elif operation == "stick":
        queue.sticky = each.key
    elif operation == "tell" and (found := queue.next_untold()) is not None:
        found[0].outcome = found[1]
        queue.said(found[0])


def seen(queue: PendingQueue, infos: list[WorkloadInfo]) -> tuple[object, ...]:
    """All that can be asked of a queue."""
    refused = {each.key: queue._refused.get(each.scheduling_hash) for each in infos}
    return (
        [(each.key, each.queue_state, queue.outcome(each)) for each in queue.in_order()],
        [each.queue_state for each in infos],
        (queue.active_count, queue.inadmissible_count, queue.sticky, refused),
    )


STEPS = st.lists(st.tuples(st.sampled_from(OPERATIONS), st.integers(0, 7)), max_size=30)


@given(STEPS, STEPS, STEPS)
def test_undo_is_whole(
    before: list[tuple[str, int]], undone: list[tuple[str, int]], after: list[tuple[str, int]]
) -> None:
    journal = Journal()
    queue, like = PendingQueue(journal), PendingQueue()

    def made() -> list[WorkloadInfo]:
        return [info(f"w{n}", cpu=n % 2, queue="qr"[n % 3 == 0], at=float(n % 4)) for n in range(8)]

    infos, likes = made(), made()
    for each in (*infos[4:6], *likes[4:6]):
        each.requeue_at = 5.0 - n_of(each)
    for operation, number in before:
        act(queue, operation, infos[number])
        act(like, operation, likes[number])
    assert seen(queue, infos) == seen(like, likes)
    outcomes = [each.outcome for each in infos]
    journal.open()
    for operation, number in undone:
        act(queue, operation, infos[number])
    journal.close(undo=True)
    for each, outcome in zip(infos, outcomes, strict=True):
        each.outcome = outcome
    assert seen(queue, infos) == seen(like, likes)
    for operation, number in after:
        if operation != "tell":  # in which order they are told is left open
            act(queue, operation, infos[number])
            act(like, operation, likes[number])
    assert seen(queue, infos) == seen(like, likes)
    assert drain(queue) == drain(like)


def n_of(each: WorkloadInfo) -> int:
    """The number in a workload's name."""
    return int(each.workload.name[1:])
