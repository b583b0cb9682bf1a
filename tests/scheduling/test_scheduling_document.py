"""docs/scheduling.md names tests that exist, and every trap."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
ROWS = re.findall(r"^\| T(\d+) \| (.+?) \| (.+?) \|$", (ROOT / "docs/scheduling.md").read_text(), re.MULTILINE)


def source(name: str) -> str:
    """The text of a test file, given as the document gives it."""
    here = Path(__file__).parent / name
    return (here if here.exists() else ROOT / "tests" / name).read_text()


def test_every_trap_has_its_row() -> None:
    assert [int(number) for number, _, _ in ROWS] == list(range(1, 81))


def test_the_tests_are_there() -> None:
    for number, _, where in ROWS:
        files = re.findall(r"`([a-z_/0-9]+\.py)`", where)
        assert files or number == "70", f"T{number} has no test"
        text = "".join(source(name) for name in files)
        for pattern in re.findall(r"`(test_t\d\d_)\*`", where):
            assert re.search(rf"def {pattern[:-1]}b?_", text), f"T{number}: no {pattern}*"
        for name in re.findall(r"`((?:Test|test_)[A-Za-z0-9_]+)` in", where):
            assert name in text, f"T{number}: no {name}"
