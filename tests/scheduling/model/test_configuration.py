"""Kueue's Configuration: the back-off of WaitForPodsReady."""

from __future__ import annotations

import pytest

from scheduling.model.configuration import RequeuingStrategy


@pytest.mark.parametrize(
    ("base", "maximum", "delays"),
    [
        (60, 3600, [60, 120, 240, 480, 960, 1920, 3600, 3600]),
        (100, 40, [100, 40, 40]),  # the first delay is the base even where it exceeds the maximum (C)
        (5, 0, [5, 10, 20]),  # no maximum
        (0, 60, [0, 0, 0]),
    ],
)
def test_the_back_off_doubles_up_to_its_maximum(base: float, maximum: float, delays: list[float]) -> None:
    strategy = RequeuingStrategy(backoff_base_seconds=base, backoff_max_seconds=maximum)
    assert [strategy.backoff_seconds(count) for count in range(1, len(delays) + 1)] == delays
