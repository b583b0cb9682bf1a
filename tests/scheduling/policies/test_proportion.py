"""Shares by weight and demand: the worked examples of the documentation, and what holds of any division."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduling.policies.proportion import WeightedQueue, proportion

TOTAL = {"cpu": 10_000.0}
QUEUES = {
    "a": WeightedQueue(1, {"cpu": 6000.0}),
    "b": WeightedQueue(2, {"cpu": 1000.0}),
    "c": WeightedQueue(1, {"cpu": 10_000.0}),
}


def test_what_a_queue_does_not_need_goes_to_the_others() -> None:
    found = proportion(TOTAL, QUEUES, {})
    assert {key: amounts["cpu"] for key, amounts in found.items()} == {"a": 4500, "b": 1000, "c": 4500}


def test_a_guarantee_is_deserved_without_demand() -> None:
    queues = {**QUEUES, "b": WeightedQueue(2, {"cpu": 1000.0}, guarantee={"cpu": 3000.0})}
    found = proportion(TOTAL, queues, {"cpu": 3000.0})
    assert {key: amounts["cpu"] for key, amounts in found.items()} == {"a": 3500, "b": 3000, "c": 3500}


@given(
    st.lists(st.tuples(st.integers(1, 9), st.integers(0, 50)), min_size=1, max_size=6),
    st.integers(0, 100),
)
def test_all_is_divided_that_is_asked_for(demands: list[tuple[int, int]], total: int) -> None:
    queues = {str(n): WeightedQueue(weight, {"cpu": 1000.0 * cpu}) for n, (weight, cpu) in enumerate(demands)}
    found = proportion({"cpu": 1000.0 * total}, queues, {})
    given_away = sum(amounts["cpu"] for amounts in found.values())
    assert given_away == pytest.approx(1000 * min(total, sum(cpu for _, cpu in demands)), abs=1)
    assert all(found[key]["cpu"] <= queue.request["cpu"] for key, queue in queues.items())
