"""Bid prices of requests: the price of each in a device that is cut in the best way for the whole demand.

The linear program of cutting stock (Gilmore and Gomory, "A Linear Programming Approach to the Cutting-Stock
Problem", Operations Research, 1961): patterns are sets of requests that fit one device together; the objective is as
few devices as possible for all requests. The dual values are the prices: no pattern pays more than 1, a whole
device, and each used pattern pays exactly 1. Valuing the rest by such prices is bid-price control (Talluri and van
Ryzin, Management Science, 1998).

Unit of sizes: thousandths of a device, 1 to 1000. Unit of prices and worth: devices.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from scheduling.devices.arrays import Doubles

WHOLE = 1000


_NOTHING = 1e-9
_MAX_PATTERNS = 2_000


def bid_prices(demand: dict[int, float]) -> dict[int, float]:
    """Return size -> price for a demand of size -> amount. Only the proportions matter; no amount may be 0."""
    sizes = sorted(demand)
    prices = _solve(sizes, np.array([demand[size] for size in sizes], dtype=np.float64))
    return dict(zip(sizes, prices.tolist(), strict=True))


@lru_cache(maxsize=256)
def device_worth(demand: tuple[tuple[int, float], ...]) -> Doubles:
    """Return the worth of each possible remainder of a device, shape (1001,): the highest total price of requests that
    fit into it together. `demand` has pairs, as for `bid_prices`. Without demand, a remainder is worth its size."""
    if not demand:
        return np.arange(WHOLE + 1, dtype=np.float64) / WHOLE
    prices = bid_prices(dict(demand))
    worth = _best_payment(list(prices), np.array(list(prices.values())))
    worth.setflags(write=False)
    return worth


def _solve(sizes: list[int], demand: Doubles) -> Doubles:
    """Column generation: start with one pattern per size, and add the pattern that pays most until none pays more
    than 1."""
    patterns = np.diag([float(WHOLE // size) for size in sizes])
    costs = np.ones(len(sizes))
    prices: Doubles = np.linalg.solve(patterns.T, costs).astype(np.float64)
    for _ in range(_MAX_PATTERNS):
        column = _improving(sizes, prices)
        if column is None:
            break
        amounts = np.linalg.solve(patterns, demand)
        slopes = np.linalg.solve(patterns, column)
        falling = slopes > _NOTHING
        ratios = np.full(len(sizes), np.inf)
        ratios[falling] = np.maximum(amounts[falling], 0) / slopes[falling]
        leaving = int(np.argmin(ratios))
        patterns[:, leaving] = column
        costs[leaving] = float(column.min() >= 0)
        prices = np.linalg.solve(patterns.T, costs).astype(np.float64)
    return prices.clip(min=0.0)


def _improving(sizes: list[int], prices: Doubles) -> Doubles | None:
    """Return a column that lowers the number of devices: one that allows a surplus of a request, else the best
    pattern."""
    cheapest = int(np.argmin(prices))
    column = np.zeros(len(sizes))
    if prices[cheapest] < -_NOTHING:
        column[cheapest] = -1.0
        return column
    payment = _best_payment(sizes, prices)
    if payment[WHOLE] <= 1 + _NOTHING:
        return None
    left = WHOLE
    while left:
        for number, size in enumerate(sizes):
            pays = prices[number] > _NOTHING
            if pays and size <= left and payment[left] <= payment[left - size] + prices[number] + _NOTHING / WHOLE:
                column[number] += 1
                left -= size
                break
        else:
            left -= 1
    return column


def _best_payment(sizes: list[int], prices: Doubles) -> Doubles:
    """Return the highest total price of requests that fit into each size up to 1000 (an unbounded knapsack, by
    doubling)."""
    best = np.zeros(WHOLE + 1)
    for size, price in zip(sizes, prices.tolist(), strict=True):
        taken = size
        while price > 0 and taken <= WHOLE:
            best[taken:] = np.maximum(best[taken:], best[:-taken] + price * (taken // size))
            taken *= 2
    return best
