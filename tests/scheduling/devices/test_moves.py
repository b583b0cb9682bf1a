"""Advice on moves: the fewest, in an order in which they can be made."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from scheduling.devices.search.fleet import Fleet
from scheduling.devices.search.moves import MovePlan, MovePlanner, Part
from scheduling.model.placement import Placement, PodSetToPlace
from tests.scheduling.fleet_helpers import ask, device, fleet, node, pod, pod_set


def put(nodes: Fleet, key: str, memory: int, uuid: str) -> PodSetToPlace:
    """Let a pod of that size run on that device; returns its pod set, free to go anywhere."""
    placement = nodes.place([pod_set(pod(ask(1, memory), use_uuids=(uuid,)))])
    assert isinstance(placement, Placement)
    nodes.reserve(key, placement)
    return pod_set(pod(ask(1, memory)))


def holds(nodes: Fleet, plan: MovePlan) -> bool:
    """Whether the moves can be made one after another, and the workload fits then."""
    for move in plan.moves:
        gone = nodes.release(move.workload_key)
        others = tuple(each for each in gone.pods if each != move.source)
        nodes.reserve(move.workload_key, Placement((*others, move.target)))
        if (nodes.table.used > nodes.table.totals).any():
            return False
    nodes.reserve("the workload", plan.placement)
    return bool((nodes.table.used <= nodes.table.totals).all())


def test_no_move_where_there_is_room() -> None:
    nodes = fleet(node("n1", [device("g0")]))
    plan = MovePlanner(nodes, {}).plan([Part(pod_set(pod(ask(1, 1000))))])
    assert plan is not None
    assert plan.moves == ()


def test_one_small_pod_moves() -> None:
    nodes = fleet(node("n1", [device("g0")]), node("n2", [device("h0")]))
    movable = {"big": [put(nodes, "big", 7000, "g0")], "small": [put(nodes, "small", 2000, "h0")]}
    plan = MovePlanner(nodes, movable).plan([Part(pod_set(pod(ask(1, 9000))))])
    assert plan is not None
    assert [(move.workload_key, move.source.node, move.target.node) for move in plan.moves] == [("small", "n2", "n1")]
    assert plan.placement.pods[0].node == "n2"
    assert nodes.decided_usage("n2", "h0") == (1, 2000, 0), "advice only"
    assert holds(nodes, plan)


def test_two_moves_where_one_is_not_enough() -> None:
    nodes = fleet(node("n1", [device("g0")]), node("n2", [device("h0"), device("h1")]))
    movable = {key: [put(nodes, key, 3000, "g0")] for key in ("a", "b")}
    movable |= {"c": [put(nodes, "c", 6000, "h0")], "d": [put(nodes, "d", 6000, "h1")]}
    plan = MovePlanner(nodes, movable).plan([Part(pod_set(pod(ask(1, 10_000))))])
    assert plan is not None
    assert {move.workload_key for move in plan.moves} == {"a", "b"}
    assert holds(nodes, plan)


def test_what_may_not_move_stays() -> None:
    nodes = fleet(node("n1", [device("g0")]), node("n2", [device("h0")]))
    put(nodes, "big", 7000, "g0")
    put(nodes, "small", 2000, "h0")
    assert MovePlanner(nodes, {}).plan([Part(pod_set(pod(ask(1, 9000))))]) is None


def test_two_pods_can_t_swap_places() -> None:
    nodes = fleet(node("n1", [device("g0")]), node("n2", [device("h0")]))
    movable = {"a": [put(nodes, "a", 6000, "g0")], "b": [put(nodes, "b", 6000, "h0")]}
    assert MovePlanner(nodes, movable).plan([Part(pod_set(pod(ask(1, 5000))))]) is None


def test_a_gang_s_moves_add_up() -> None:
    nodes = fleet(*(node(f"n{n}", [device(f"g{n}")]) for n in range(4)))
    movable = {str(n): [put(nodes, str(n), 2000 + n, f"g{n}")] for n in range(4)}
    plan = MovePlanner(nodes, movable).plan([Part(pod_set(pod(ask(1, 9000)), count=2))])
    assert plan is not None
    assert len(plan.moves) == 2
    assert holds(nodes, plan)
    fresh = fleet(*nodes.nodes.values())
    movable = {str(n): [put(fresh, str(n), 2000 + n, f"g{n}")] for n in range(4)}
    assert MovePlanner(fresh, movable).plan([Part(pod_set(pod(ask(1, 9000)), count=2))], max_moves=1) is None


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(1, 6)), max_size=7), st.integers(3, 10))
def test_every_plan_can_be_carried_out(pods: list[tuple[int, int]], size: int) -> None:
    nodes = fleet(*(node(f"n{n}", [device(f"g{n}")]) for n in range(3)))
    movable = {}
    for number, (where, memory) in enumerate(pods):
        pinned = pod(ask(1, 1000 * memory), use_uuids=(f"g{where}",))
        placement = nodes.place([pod_set(pinned)])
        if isinstance(placement, Placement):
            nodes.reserve(str(number), placement)
            movable[str(number)] = [pod_set(pod(ask(1, 1000 * memory)))]
    plan = MovePlanner(nodes, movable).plan([Part(pod_set(pod(ask(1, 1000 * size))))])
    if plan is not None:
        assert holds(nodes, plan)
