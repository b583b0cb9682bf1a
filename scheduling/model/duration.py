"""Durations as Go writes them, and therefore Kueue's Configuration: `30s`, `5m`, `1h30m`."""

from __future__ import annotations

import re
from typing import Final

_SECONDS: Final = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_DURATION: Final = re.compile(r"(?:[0-9]+(?:\.[0-9]+)?(?:ns|us|µs|ms|s|m|h))+|0", re.ASCII)
_DURATION_PART: Final = re.compile(r"([0-9]+(?:\.[0-9]+)?)(ns|us|µs|ms|s|m|h)", re.ASCII)


def duration_seconds(text: str) -> float:
    """A duration in seconds. Raises ValueError."""
    if not _DURATION.fullmatch(text):
        raise ValueError(f'"{text}" is not a duration: write it like 30s, 5m or 1h30m')
    return sum(float(number) * _SECONDS[unit] for number, unit in _DURATION_PART.findall(text))
