"""The fault matrix of docs/operations.md has a row for each test of tests/faults, and names no other."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any, Final

import pytest

from tests.faults import test_faults

PAGE: Final = Path(__file__).resolve().parent.parent / "docs" / "operations.md"
LOADS: Final = ("idle", "flood", "mass cancel")
_ROW: Final = re.compile(
    r"^\| [^|]+ \| [^|]+ \| `(?P<test>test_\w+)(?:\[(?P<values>[^]]*)\])?` \| (?P<passed>[^|]*) \|$", re.MULTILINE
)


def cells() -> set[str]:
    """The tests by their names and parameters, with LOAD in place of a load."""
    named = {name: value for name, value in vars(test_faults).items() if name.startswith("test_")}
    return {each for name, function in named.items() for each in _with_values(name, function)}


def _with_values(name: str, function: Any) -> Iterator[str]:
    marks = [mark for mark in getattr(function, "pytestmark", ()) if mark.name == "parametrize"]
    choices = [
        ["-".join(map(str, each)) if isinstance(each, tuple) else str(each) for each in mark.args[1]] for mark in marks
    ]
    for values in product(*choices):
        told = ["LOAD" if value in LOADS else value for value in values]
        yield f"{name}[{'-'.join(told)}]" if told else name


def rows() -> list[tuple[str, str]]:
    """The tests of the page's table, and the loads in which each passed."""
    found = _ROW.finditer(PAGE.read_text())
    return [
        (match["test"] + (f"[{match['values']}]" if match["values"] else ""), match["passed"].strip())
        for match in found
    ]


def test_the_table_has_each_test_once() -> None:
    named = [test for test, _ in rows()]
    assert sorted(named) == sorted(cells())


@pytest.mark.parametrize(("test", "passed"), rows())
def test_the_loads_of_a_row_are_loads(test: str, passed: str) -> None:
    words = {word.strip() for word in passed.split(",")} - {""}
    assert words <= ({*LOADS} if "LOAD" in test else {"passed"}), "of the loads with which it was run"
