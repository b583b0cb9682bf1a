"""A backlog to choose from, on traces small enough to follow by hand."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from tests.benchmarks.openb.backlog import run_with_backlog
from tests.benchmarks.openb.protocol import MILLI, Outcome, TraceNode, TracePod, arrivals, run

NODES = [TraceNode(f"n{number}", 64_000, 2**20, 1, "G2") for number in range(10)]
LARGE, HALF = TracePod("large", 1000, 1024, 1, 810, ()), TracePod("half", 1000, 1024, 1, 500, ())


def pods(large: int, half: int) -> list[TracePod]:
    numbered = enumerate([LARGE] * large + [HALF] * half)
    return [replace(pod, name=f"{number:03}") for number, pod in numbered]


def facts(outcome: Outcome) -> tuple[float, int, int]:
    return outcome.allocated, outcome.placed, outcome.arrived


def test_with_all_waiting_the_sizes_that_fill_a_device_come_first() -> None:
    """20 halves fill all ten devices; who takes them as they come gives some to pods that leave 190 behind."""
    trace = pods(large=5, half=25)
    assert facts(run_with_backlog(NODES, trace, "bid-price", 1, backlog=100))[:2] == (100.0, 20)
    assert run(NODES, trace, "bid-price", 1).allocated < 100


def test_a_backlog_of_one_is_the_published_order() -> None:
    trace = pods(large=5, half=25)
    chosen, published = run_with_backlog(NODES, trace, "bid-price", 3, backlog=1), run(NODES, trace, "bid-price", 3)
    assert (chosen.placed, chosen.arrived) == (published.placed, published.arrived)


def test_it_is_the_same_each_time() -> None:
    trace = pods(large=8, half=14)
    first, second = (run_with_backlog(NODES, trace, "bid-price", 5, backlog=4) for _ in range(2))
    assert facts(first) == facts(second)


def test_the_longest_waiting_pod_goes_first() -> None:
    """The large pod comes early and wastes most at any time: the patient leave no room for it."""
    trace = pods(large=1, half=24)
    seed = next(seed for seed in range(100) if _arrives_first(trace, seed))
    assert run_with_backlog(NODES, trace, "bid-price", seed, 2, patience=1000).allocated == 100.0
    assert run_with_backlog(NODES, trace, "bid-price", seed, 2).allocated == pytest.approx(98.1)


def _arrives_first(trace: list[TracePod], seed: int) -> bool:
    return arrivals(trace, 10 * MILLI, random.Random(seed))[0].gpu_milli == LARGE.gpu_milli
