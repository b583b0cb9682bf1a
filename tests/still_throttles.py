"""A clock that stands still for what is counted by the minute: a slow machine counts what a quick one counts."""

import pytest
from rest_framework.throttling import SimpleRateThrottle


def stand_still(patch: pytest.MonkeyPatch) -> None:
    """Let all requests of a test be of the same minute for every throttle."""
    patch.setattr(SimpleRateThrottle, "timer", staticmethod(lambda: 1_800_000_000.0))
