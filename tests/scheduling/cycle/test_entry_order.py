"""The order of heads: the tournament that is updated picks what one replayed from scratch would pick."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from hypothesis import given

from scheduling.cycle.assignment import Mode
from scheduling.cycle.entry_order import classical_order, fair_order
from scheduling.cycle.nomination import Entry
from scheduling.cycle.wiring import CycleParts
from scheduling.quota.cells import CohortNode, QuotaNode, add_usage, remove_usage
from scheduling.quota.fair_sharing import Share, dominant_resource_share
from scheduling.world import World
from tests.scheduling.world_helpers import Builder
from tests.scheduling.worlds import Plan, plans

Key = tuple[bool, Share, tuple[int, float, str, str]]


def heads(world: World) -> list[Entry]:
    """The nominated heads of a world."""
    world.has_active()
    parts: CycleParts = world._parts
    found = [(cq.queue.pop(), cq) for cq in world._state.ready_queues()]
    return [parts._nominator.nominate(info, cq, 1) for info, cq in found if info is not None]


def key(entry: Entry, node: QuotaNode) -> Key:
    """An entry's rank at one child of a cohort, by the definition."""
    usage = entry.net_usage()
    add_usage(usage)
    borrows = any(node.cells[cell.key].usage > node.cells[cell.key].subtree for cell, _ in usage)
    share = dominant_resource_share(node)
    remove_usage(usage)
    return borrows, share, entry.info.order


def below(cohort: CohortNode, node: QuotaNode) -> QuotaNode:
    """The child of a cohort through which a node comes."""
    while node.parent is not cohort:
        assert node.parent is not None
        node = node.parent
    return node


def winner(cohort: CohortNode, entries: list[Entry]) -> Entry | None:
    """The winner of a cohort's tournament, played from scratch."""
    own = [entry for entry in entries if entry.cq.node.parent is cohort]
    candidates = own + [found for child in cohort.cohorts if (found := winner(child, entries)) is not None]
    return min(candidates, key=lambda entry: key(entry, below(cohort, entry.cq.node)), default=None)


def replayed(entries: Iterable[Entry]) -> Iterator[Entry]:
    """The whole order, with a new tournament for each place."""
    left = list(entries)
    yield from sorted((e for e in left if e.cq.node.parent is None), key=lambda entry: entry.info.order)
    left = [entry for entry in left if entry.cq.node.parent is not None]
    while left:
        root = left[0].cq.node.root
        assert isinstance(root, CohortNode)
        chosen = winner(root, left)
        assert chosen is not None
        left.remove(chosen)
        yield chosen


def play(order: Iterator[Entry]) -> list[str]:
    """Go through an order, charging each entry that fits, as the cycle does."""
    names = []
    for entry in order:
        names.append(entry.info.key)
        usage = entry.net_usage()
        if entry.assignment.mode is Mode.FIT and all(amount <= cell.available() for cell, amount in usage):
            add_usage(usage)
    return names


@given(plans(fair=True))
def test_the_updated_tournament_is_the_replayed_one(plan: Plan) -> None:
    fast, slow = heads(plan.build().world), heads(plan.build().world)
    assert play(fair_order(fast)) == play(replayed(slow))


def test_classical_order_is_by_level_then_priority_then_time() -> None:
    builder = Builder().cohort("all", quotas={"default": 9})
    for name in ("a", "b", "c", "d"):
        builder.queue(name, {"default": 2 if name == "d" else 0}, "all")
    builder.pending("late", "a", 1, at=2.0).pending("early", "b", 1, at=1.0).pending(
        "urgent", "c", 1, priority=5, at=9.0
    )
    builder.pending("nominal", "d", 1, at=10.0)
    order = [entry.info.workload.name for entry in classical_order(heads(builder.world))]
    assert order == ["nominal", "urgent", "early", "late"]
