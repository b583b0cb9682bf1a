"""Bid prices: the dual values of small cutting-stock problems that are solved by hand, and what makes them prices."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduling.devices.policies.prices import WHOLE, bid_prices, device_worth


def worth(demand: dict[int, float], rest: int) -> float:
    return float(device_worth(tuple(sorted(demand.items())))[rest])


class TestPrices:
    @pytest.mark.parametrize(
        ("demand", "prices"),
        [
            ({500: 1.0}, {500: 1 / 2}),
            ({334: 1.0}, {334: 1 / 2}),  # two to a device, the third of it is waste that they pay for
            ({320: 328.0, 470: 750.0}, {320: 1 / 3, 470: 1 / 2}),  # 3 x 320 and 2 x 470; together they waste more
            ({190: 1.0, 810: 2.0}, {190: 0.0, 810: 1.0}),  # 190 finds more room beside 810 than it needs
            ({190: 2.0, 810: 1.0}, {190: 1 / 5, 810: 4 / 5}),  # and here less: the last 190 have devices of their own
            ({320: 2.0, 650: 1.0}, {320: 1 / 3, 650: 2 / 3}),
        ],
    )
    def test_by_hand(self, demand: dict[int, float], prices: dict[int, float]) -> None:
        assert bid_prices(demand) == pytest.approx(prices)

    def test_only_proportions_matter(self) -> None:
        assert bid_prices({190: 20.0, 810: 10.0}) == pytest.approx(bid_prices({190: 0.2, 810: 0.1}))

    @given(
        st.dictionaries(st.integers(1, WHOLE), st.floats(0.001, 1.0), min_size=1, max_size=12),
        st.lists(st.integers(0, 11), max_size=8),
    )
    def test_no_pattern_pays_more_than_a_device_and_the_best_pays_one(
        self, demand: dict[int, float], picks: list[int]
    ) -> None:
        prices = bid_prices(demand)
        assert min(prices.values()) >= 0
        assert worth(demand, WHOLE) == pytest.approx(1)
        left, paid = WHOLE, 0.0
        for size in (sorted(demand)[pick % len(demand)] for pick in picks):
            if size <= left:
                left, paid = left - size, paid + prices[size]
        assert paid <= 1 + 1e-6
        assert worth(demand, WHOLE - left) >= paid - 1e-6


class TestWorth:
    def test_a_rest_is_worth_what_fits_into_it(self) -> None:
        demand = {320: 328.0, 470: 750.0}
        found = [worth(demand, rest) for rest in (0, 319, 320, 530, 680, 790, 1000)]
        assert found == pytest.approx([0, 0, 1 / 3, 1 / 2, 2 / 3, 5 / 6, 1])

    def test_without_demand_a_rest_is_worth_its_size(self) -> None:
        assert worth({}, 250) == 0.25

    def test_the_result_is_read_only(self) -> None:
        with pytest.raises(ValueError, match="read-only"):
            device_worth(((500, 1.0),))[0] = 1
