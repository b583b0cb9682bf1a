"""Times and durations as they are written, and in the seconds with which the scheduler computes.

Kubernetes writes times as RFC 3339 in UTC with Z; here they are seconds since 1970. Kueue's Configuration writes
durations as Go does: `30s`, `5m`, `1h30m`.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Final

_SECONDS: Final = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_DURATION: Final = re.compile(r"(?:[0-9]+(?:\.[0-9]+)?(?:ns|us|µs|ms|s|m|h))+|0", re.ASCII)
_DURATION_PART: Final = re.compile(r"([0-9]+(?:\.[0-9]+)?)(ns|us|µs|ms|s|m|h)", re.ASCII)


def rfc3339(moment: datetime | float, *, whole_seconds: bool = False) -> str:
    """`2026-01-31T12:00:00Z`, with the fraction of the second if there is one and `whole_seconds` is off."""
    if not isinstance(moment, datetime):
        moment = datetime.fromtimestamp(moment, UTC)
    text = moment.astimezone(UTC).isoformat(timespec="seconds" if whole_seconds else "auto")
    return text.replace("+00:00", "Z")


def parse_rfc3339(text: str) -> float:
    """Return the moment of an RFC 3339 text. Raises ValueError."""
    return datetime.fromisoformat(text).timestamp()


def duration_seconds(text: str) -> float:
    """Return a duration in seconds. Raises ValueError."""
    if not _DURATION.fullmatch(text):
        raise ValueError(f'"{text}" is not a duration: write it like 30s, 5m or 1h30m')
    return sum(float(number) * _SECONDS[unit] for number, unit in _DURATION_PART.findall(text))
