"""One line for each check, and what the lines come to."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest

from kueueweb.checkup.finding import Status, as_json, as_lines, clock, fail, ok, warn, worst

NOW = datetime(2026, 1, 1, tzinfo=UTC)
FINDINGS = [
    ok("redis", "Valkey 8.1"),
    warn("database-tls", "not\nencrypted", "Add sslmode."),
    fail("x", "gone", "Mend."),
]


def test_each_finding_is_one_line_with_its_remedy() -> None:
    assert as_lines(FINDINGS).splitlines() == [
        "ok    redis         Valkey 8.1",
        "warn  database-tls  not encrypted  -> Add sslmode.",
        "fail  x             gone  -> Mend.",
        "1 ok, 1 warn, 1 fail",
    ]


def test_json_has_the_worst_status_and_every_finding() -> None:
    answer = json.loads(as_json(FINDINGS))
    assert answer["status"] == "fail"
    assert answer["checks"][1] == {
        "check": "database-tls", "status": "warn", "message": "not\nencrypted", "remedy": "Add sslmode.",
    }  # fmt: skip


def test_the_worst_of_nothing_is_ok() -> None:
    assert worst([]) is worst(FINDINGS[:1]) is Status.OK
    assert worst(FINDINGS[:2]) is Status.WARN


@pytest.mark.parametrize(
    ("seconds", "precision", "status"),
    [
        (0, 0, "ok"),
        (5, 0, "ok"),
        (-6, 0, "warn"),
        (-6, 2, "ok"),
        (299, 0, "warn"),
        (3600, 1, "fail"),
        (-3600, 1, "fail"),
    ],
)
def test_a_clock_is_judged_by_its_distance(seconds: int, precision: float, status: str) -> None:
    found = clock("c", NOW + timedelta(seconds=seconds), NOW, precision_seconds=precision)
    assert found.status == status
    assert (found.remedy == "") is (status == "ok")
    if status != "ok":
        assert ("ahead" if seconds > 0 else "behind") in found.message
