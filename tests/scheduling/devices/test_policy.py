"""The order of trying devices: the closed form against HAMi's own way, which sorts and walks from the end."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cmp_to_key
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduling.devices.requests.policy import device_policy, device_scores
from scheduling.model.placement import ScoringWeights


@dataclass
class Ranked:
    used_slots: int
    numa: int
    index: int
    position: int
    score: float


DEVICES = st.lists(
    st.tuples(st.integers(0, 2), st.integers(0, 1), st.sampled_from([0.0, 2.5, 4.0])), min_size=1, max_size=8
).flatmap(
    lambda rows: st.permutations(range(len(rows))).map(
        lambda indexes: [
            Ranked(used, numa, indexes[position], position, score) for position, (used, numa, score) in enumerate(rows)
        ]
    )
)
POLICIES = [
    "binpack",
    "spread",
    "pack",
    "mutex",
    "topology-aware",
    "numa",
    "binpack,numa",
    "numa,binpack",
    "numa,spread",
]
POLICIES += ["spread,numa", "mutex,binpack", "nothing,else", "spread,spread,numa"]


def sorted_and_walked_backwards(devices: list[Ranked], policy: str, numa_bind: bool) -> list[int]:
    """Sort ascending, stable, by HAMi's comparisons; then walk from the end."""

    def compare(left: Ranked, right: Ranked) -> int:
        for key, descending in sort_keys(policy, numa_bind):
            a, b = key(left), key(right)
            if a != b:
                return (1 if a > b else -1) * (-1 if descending else 1)
        return 0

    ascending = sorted(devices, key=cmp_to_key(compare))
    return [device.position for device in ascending[::-1]]


def sort_keys(policy: str, numa_bind: bool) -> list[tuple[Any, bool]]:
    score, numa, used, index = (
        lambda device: device.score,
        lambda device: device.numa,
        lambda device: device.used_slots,
        lambda device: device.index,
    )
    if "," in policy or policy == "numa":
        named = {"binpack": (score, False), "spread": (score, True), "numa": (numa, False)}
        words = [word for word in dict.fromkeys(policy.split(",")) if word in named] or ["spread"]
        if numa_bind:
            words = ["numa", *(word for word in words if word != "numa")]
        return [*(named[word] for word in words), (index, False)]
    if policy == "mutex":
        return [(used, True), (numa, False)]
    if policy == "binpack":
        return [(numa, True), (score, False)] if numa_bind else [(score, False), (numa, False)]
    return [(numa, False), (score, True)] if numa_bind else [(score, True), (numa, False)]


@given(DEVICES, st.sampled_from(POLICIES), st.booleans())
def test_the_closed_form_is_hami_s_order(devices: list[Ranked], policy: str, numa_bind: bool) -> None:
    ordered = sorted(devices, key=device_policy(policy).sort_key(numa_bind))
    assert [device.position for device in ordered] == sorted_and_walked_backwards(devices, policy, numa_bind)


@pytest.mark.parametrize(
    ("policy", "mutex", "topology_aware"),
    [
        ("mutex", True, False),
        ("binpack,mutex", True, False),
        ("topology-aware", False, True),
        ("topology-aware,numa", False, True),
        ("spread", False, False),
    ],
)
def test_filters_among_the_words(policy: str, mutex: bool, topology_aware: bool) -> None:
    resolved = device_policy(policy)
    assert (resolved.mutex, resolved.topology_aware) == (mutex, topology_aware)


@pytest.mark.parametrize(
    ("used", "weights", "score"),
    [
        ((1, 30, 3000), (1, 1, 1), 7.0),
        ((1, 60, 2000), (1, 1, 1), 9.0),
        ((1, 60, 2000), (0, 0, 1), 2.0),
        ((1, 60, 2000), (1, 1, 3), 13.0),
        ((0, 0, 0), (1, 1, 1), 0.0),
    ],
)
def test_scores(used: tuple[int, int, int], weights: tuple[int, int, int], score: float) -> None:
    assert device_scores([used], [(10, 100, 10_000)], ScoringWeights(*weights)) == [pytest.approx(score)]


def test_a_device_without_a_total_scores_nothing() -> None:
    assert device_scores([(5, 50, 500)] * 2, [(10, 0, 1000), (0, 100, 1000)], ScoringWeights()) == [0.0, 0.0]
    assert device_scores([], [], ScoringWeights()) == []
