"""KAI's fair shares: the worked example of the documentation, and what holds of any division."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from scheduling.policies.fair_share import QueueClaim, fair_shares


def claim(
    name: str, quota: float, weight: float, request: float, *, priority: int = 0, limit: float = math.inf
) -> QueueClaim:
    return QueueClaim(name, priority, 0.0, quota, limit, weight, request)


def test_the_rest_goes_by_weight_in_whole_units() -> None:
    assert fair_shares(10, [claim("a", 2, 1, 8), claim("b", 2, 3, 8)]) == {"a": 4, "b": 6}


def test_a_higher_priority_is_served_first() -> None:
    assert fair_shares(10, [claim("a", 2, 9, 8), claim("b", 2, 1, 8, priority=1)]) == {"a": 2, "b": 8}


def test_quotas_are_given_even_where_they_sum_to_more_than_the_total() -> None:
    assert fair_shares(4, [claim("a", 3, 1, 8), claim("b", 3, 1, 8)]) == {"a": 3, "b": 3}


CLAIMS = st.lists(
    st.tuples(st.integers(0, 5), st.integers(0, 4), st.integers(0, 20), st.integers(0, 2)), min_size=1, max_size=5
)


@given(CLAIMS, st.integers(0, 60))
def test_no_queue_gets_more_than_it_requests_nor_all_more_than_there_is(
    stated: list[tuple[int, int, int, int]], total: int
) -> None:
    claims = [
        claim(str(n), quota, weight, request, priority=priority)
        for n, (quota, weight, request, priority) in enumerate(stated)
    ]
    found = fair_shares(total, claims)
    granted = sum(min(each.quota, each.request) for each in claims)
    assert sum(found.values()) <= max(total, granted)
    assert all(found[each.name] <= each.request for each in claims)
