"""One stack for the faults of a test process, and the table of what became of them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.faults.run import Cell, Run, running
from tests.services_plugin import short_temporary_folder

_PROPERTY: Final = "cell"
_HEAD: Final = "| fault | of | load | shown | decisions after | this machine | test |"
_rows: list[str] = []


@pytest.fixture(scope="session")
def run() -> Iterator[Run]:
    """A stack with tenants at work. After its last fault, all that it answered is there, quota and slices agree, and
    everything ends; else the last test of the process has an error."""
    with short_temporary_folder() as folder, running(Path(folder), lambda text: None) as started:
        yield started
        lost = started.verdict()
        assert lost == [], "\n".join(lost)


@pytest.fixture(autouse=True)
def _tell(request: pytest.FixtureRequest, run: Run) -> Iterator[None]:
    """Put the cells of a test into its report, which reaches the process that prints."""
    before = len(run.cells)
    yield
    request.node.user_properties += [(_PROPERTY, _row(cell)) for cell in run.cells[before:]]


@pytest.hookimpl(trylast=True)
def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Keep the rows of a test that has ended."""
    if report.when == "teardown":
        _rows.extend(str(row) for name, row in report.user_properties if name == _PROPERTY)


def pytest_report_teststatus(report: pytest.TestReport) -> tuple[str, str, str] | None:
    """Print each cell as it ends: a run takes hours."""
    rows = [row for name, row in report.user_properties if name == _PROPERTY]
    return ("", f"\n{rows[0]}\n", "") if report.when == "teardown" and report.passed and rows else None


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the table for docs/operations.md."""
    if _rows:
        terminalreporter.write_line(_HEAD)
        terminalreporter.write_line("|" + "---|" * 7)
        for row in _rows:
            terminalreporter.write_line(row)


def _row(cell: Cell) -> str:
    shown = "yes" if cell.shown else "no"
    said = "; ".join(cell.faults)
    after = f"{cell.decided_after:.1f} s{f': {said}' if said else ''}"
    return f"| {cell.fault} | {cell.target} | {cell.load} | {shown} | {after} | {cell.slowness:.1f} x | `{cell.test}` |"
