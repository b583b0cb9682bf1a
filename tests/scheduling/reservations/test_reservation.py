"""Windows of reservations, and the workloads and nodes that they concern."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduling.model.node import Node
from scheduling.model.selectors import Taint, TaintEffect
from scheduling.reservations.reservation import (
    PERIOD_SECONDS,
    Admittance,
    BusyPolicy,
    Recurrence,
    Reservation,
    Window,
)
from scheduling.reservations.reserved_nodes import Claimant, ReservedNodes, ReservedWindow

DAY = 86_400.0
TEAM = Claimant("team", "team/q", "cq", "ann")


def window(name: str = "r", start: float = 100.0, end: float = 200.0, **fields: object) -> Reservation:
    fields.setdefault("node_names", frozenset({"a"}))
    return Reservation(name, start, end, **fields)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("recurrence", "now", "expected"),
    [
        (Recurrence.NONE, 0.0, Window(100, 200)),
        (Recurrence.NONE, 199.9, Window(100, 200)),
        (Recurrence.NONE, 200.0, None),
        (Recurrence.DAILY, 0.0, Window(100, 200)),
        (Recurrence.DAILY, 150.0, Window(100, 200)),
        (Recurrence.DAILY, 200.0, Window(DAY + 100, DAY + 200)),
        (Recurrence.DAILY, 3 * DAY + 199, Window(3 * DAY + 100, 3 * DAY + 200)),
        (Recurrence.WEEKLY, 200.0, Window(7 * DAY + 100, 7 * DAY + 200)),
    ],
)
def test_the_present_or_next_window(recurrence: Recurrence, now: float, expected: Window | None) -> None:
    assert window(recurrence=recurrence).window(now) == expected


@given(st.sampled_from(list(Recurrence)), st.integers(0, 10**9), st.integers(1, 86_400), st.integers(0, 2 * 10**9))
def test_the_next_window_is_the_first_that_has_not_ended(
    recurrence: Recurrence, start: int, length: int, now: int
) -> None:
    found = window(start=start, end=start + length, recurrence=recurrence).window(now)
    period = PERIOD_SECONDS.get(recurrence)
    if found is None:
        assert period is None
        assert now >= start + length
        return
    assert found.ends_at > now
    assert found.ends_at - found.starts_at == length
    if period is not None and found.starts_at > start:
        assert found.ends_at - period <= now, "an earlier window has not ended either"


def test_the_windows_of_a_calendar_overlap_its_time() -> None:
    daily = window(recurrence=Recurrence.DAILY)
    assert list(daily.windows(150, 2 * DAY + 100)) == [Window(100, 200), Window(DAY + 100, DAY + 200)]
    assert list(window().windows(200, 10 * DAY)) == []
    assert list(window().windows(0, 10 * DAY)) == [Window(100, 200)]


@pytest.mark.parametrize(
    ("allowed", "is_allowed"),
    [
        (Admittance(), False),
        (Admittance(namespaces=frozenset({"team"})), True),
        (Admittance(namespaces=frozenset({"other"})), False),
        (Admittance(local_queues=frozenset({"team/q"})), True),
        (Admittance(local_queues=frozenset({"other/q"})), False),
        (Admittance(cluster_queues=frozenset({"cq"})), True),
        (Admittance(users=frozenset({"ann"})), True),
        (Admittance(users=frozenset({"bob"}), cluster_queues=frozenset({"cq"})), True),
    ],
)
def test_any_entry_that_matches_allows_a_workload(allowed: Admittance, is_allowed: bool) -> None:
    assert TEAM.is_allowed_by(window(allowed=allowed)) is is_allowed


def test_a_workload_without_a_user_is_no_user() -> None:
    nameless = Claimant("team", "team/q", "cq", "")
    assert not nameless.is_allowed_by(window(allowed=Admittance(users=frozenset({""}))))


def test_nodes_are_selected_by_name_or_by_all_labels() -> None:
    by_labels = window(node_names=frozenset({"a"}), node_labels={"rack": "1", "kind": "gpu"})
    assert by_labels.covers("a", {})
    assert by_labels.covers("b", {"rack": "1", "kind": "gpu", "more": "x"})
    assert not by_labels.covers("b", {"rack": "1"})
    assert not window(node_labels={}).covers("b", {}), "no labels select no node"


def claimant(ends_at: float | None) -> Claimant:
    return Claimant("team", "team/q", "cq", "ann", ends_at)


@pytest.mark.parametrize(
    ("now", "ends_at", "closed"),
    [
        (0.0, 100.0, False),
        (0.0, 100.5, True),
        (0.0, None, True),
        (99.0, 99.5, False),
        (100.0, 100.0, True),
        (150.0, 151.0, True),
        (199.0, None, True),
        (200.0, None, False),
    ],
)
def test_a_node_is_closed_to_a_workload_that_may_run_into_the_window(
    now: float, ends_at: float | None, closed: bool
) -> None:
    reserved = ReservedNodes({"a": Node("a"), "b": Node("b")})
    reserved.set(window())
    assert reserved.closed_to(claimant(ends_at), now) == (frozenset({"a"}) if closed else frozenset())


def test_windows_that_lend_without_a_limit_are_no_shorter_list_of_others() -> None:
    reserved = ReservedNodes({"a": Node("a"), "b": Node("b")})
    reserved.set(window("returns", 50, 60, recurrence=Recurrence.DAILY, if_busy=BusyPolicy.EVICT))
    reserved.set(window("once", 100, 200))
    unlimited = replace(claimant(None), is_unlimited=True)
    assert [each.reservation for each in reserved.closing(unlimited, 0.0)] == ["once"]
    assert [each.reservation for each in reserved.closing(claimant(60.0), 0.0)] == ["returns"]
    assert reserved.count_closing(unlimited, 0.0) != reserved.count_closing(claimant(60.0), 0.0)
    assert reserved.barring(unlimited, 0.0) == reserved.barring(TEAM, 0.0)
    assert {each.reservation for each in reserved.closing(unlimited, 50.0)} == {"returns", "once"}
    assert [each.reservation for each in reserved.closing(claimant(None), 0.0)] == ["returns", "once"], (
        "checks to wait for"
    )


def test_the_first_window_that_evicts() -> None:
    reserved = ReservedNodes({"a": Node("a"), "b": Node("b")})
    reserved.set(window("waits", 50, 60))
    reserved.set(window("late", 300, 400, if_busy=BusyPolicy.EVICT))
    reserved.set(window("early", 200, 250, if_busy=BusyPolicy.EVICT))
    reserved.set(window("ours", 100, 150, if_busy=BusyPolicy.EVICT, allowed=Admittance(users=frozenset({"ann"}))))
    nodes = frozenset({"a"})
    assert reserved.evicting(TEAM, nodes, 0.0) == ReservedWindow("early", 200, 250)
    assert reserved.evicting(TEAM, nodes, 250.0) == ReservedWindow("late", 300, 400)
    assert reserved.evicting(TEAM, frozenset({"b"}), 0.0) is None
    assert reserved.changes_after(0.0) == 50
    assert reserved.changes_after(50.0) == 60


def test_spans_change_where_nodes_close_and_open() -> None:
    reserved = ReservedNodes({"a": Node("a")})
    reserved.set(window())
    assert reserved.spans(TEAM, 30, 0.0) == [(0.0, 70.0), (70.0, 200.0), (200.0, float("inf"))]
    assert reserved.spans(TEAM, None, 0.0) == [(0.0, 200.0), (200.0, float("inf"))]
    reserved.set(window(recurrence=Recurrence.DAILY, if_busy=BusyPolicy.EVICT))
    assert reserved.spans(replace(TEAM, is_unlimited=True), None, 0.0) == [
        (0.0, 100.0),
        (100.0, 200.0),
        (200.0, DAY + 100),
    ]
    reserved.set(window(recurrence=Recurrence.DAILY))
    assert reserved.spans(TEAM, 30, 0.0) == [(0.0, 70.0), (70.0, 200.0), (200.0, DAY + 70)]


def test_no_window_starts_at_the_end_of_a_recurrence_or_later() -> None:
    daily = window(recurrence=Recurrence.DAILY, until=2 * DAY + 100)
    assert list(daily.windows(0, 10 * DAY)) == [Window(100, 200), Window(DAY + 100, DAY + 200)]
    assert daily.window(DAY + 150) == Window(DAY + 100, DAY + 200)
    assert daily.window(DAY + 200) is None
    assert window(recurrence=Recurrence.DAILY, until=DAY + 150).window(DAY + 150) == Window(DAY + 100, DAY + 200)


@pytest.mark.parametrize(
    ("fields", "chosen"),
    [
        ({"node_names": frozenset(), "node_count": 2}, {"a", "c"}),
        ({"node_names": frozenset("bcd"), "node_count": 2}, {"c", "d"}),
        ({"node_names": frozenset(), "node_labels": {"rack": "1"}, "node_count": 1}, {"c"}),
        ({"node_names": frozenset("b"), "node_count": 9}, {"b"}),
    ],
)
def test_a_count_takes_the_first_nodes_that_are_ready(fields: dict[str, Any], chosen: set[str]) -> None:
    nodes = {name: Node(name, {"rack": "1"} if name in "bc" else {}, ready=name != "b") for name in "dcba"}
    reserved = ReservedNodes(nodes)
    reserved.set(window(**fields))
    assert reserved.nodes_of("r") == chosen


def test_a_count_takes_tainted_nodes_after_all_open_ones_and_cordoned_ones_last() -> None:
    nodes = {
        "a": Node("a", taints=(Taint("node-role.kubernetes.io/control-plane"),)),
        "b": Node("b", unschedulable=True),
        "c": Node("c", taints=(Taint("slow", effect=TaintEffect.PREFER_NO_SCHEDULE),)),
        "d": Node("d", taints=(Taint("old", effect=TaintEffect.NO_EXECUTE),)),
        "e": Node("e"),
    }
    reserved = ReservedNodes(nodes)
    for count, chosen in enumerate(("c", "ce", "ace", "acde", "abcde"), start=1):
        reserved.set(window(node_names=frozenset(), node_count=count))
        assert reserved.nodes_of("r") == set(chosen)
    reserved.set(window(node_names=frozenset(), node_count=1))
    assert reserved.nodes_of("r") == {"c"}
    before, nodes["c"] = nodes["c"], replace(nodes["c"], taints=nodes["a"].taints)
    assert reserved.node_changed(before, nodes["c"])
    assert reserved.nodes_of("r") == {"e"}


def test_another_node_takes_the_place_of_one_that_fails_is_cordoned_or_leaves() -> None:
    nodes = {name: Node(name) for name in "abc"}
    reserved = ReservedNodes(nodes)
    reserved.set(window(node_names=frozenset(), node_count=2))
    assert reserved.closed_to(TEAM, 150) == {"a", "b"}
    for change, expected in (
        (replace(nodes["a"], ready=False), {"b", "c"}),
        (replace(nodes["a"]), {"a", "b"}),
        (replace(nodes["b"], unschedulable=True), {"a", "c"}),
        (None, {"b", "c"}),
    ):
        name = change.name if change is not None else "a"
        before = nodes.pop(name)
        if change is not None:
            nodes[name] = change
        reserved.node_changed(before, change)
        assert reserved.closed_to(TEAM, 150) == expected
