"""Moments as text and as seconds."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from scheduling.model.times import parse_rfc3339, rfc3339


@pytest.mark.parametrize(
    ("moment", "expected"),
    [
        (0.0, "1970-01-01T00:00:00Z"),
        (0.25, "1970-01-01T00:00:00.250000Z"),
        (datetime(2026, 1, 31, 12, tzinfo=UTC), "2026-01-31T12:00:00Z"),
        (datetime(2026, 1, 31, 12, tzinfo=timezone(timedelta(hours=2))), "2026-01-31T10:00:00Z"),
    ],
)
def test_a_moment_is_written_in_utc(moment: datetime | float, expected: str) -> None:
    assert rfc3339(moment) == expected


def test_the_fraction_of_a_second_can_be_cut_off() -> None:
    assert rfc3339(1.75, whole_seconds=True) == "1970-01-01T00:00:01Z"


def test_what_was_written_is_read_again() -> None:
    assert parse_rfc3339(rfc3339(1234.5)) == 1234.5
    with pytest.raises(ValueError, match="yesterday"):
        parse_rfc3339("yesterday")
