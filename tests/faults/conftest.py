"""One stack for all faults, and the table of what became of them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.run import Cell, Run, running
from tests.services_plugin import short_temporary_folder

_cells: list[Cell] = []
_HEAD = "| fault | of | load | shown | decisions after | this machine | test |"


@pytest.fixture(scope="session")
def run(request: pytest.FixtureRequest) -> Iterator[Run]:
    """A stack with tenants at work."""
    with short_temporary_folder() as folder, running(Path(folder), lambda text: None) as started:
        started.cells = _cells
        yield started


def pytest_runtest_teardown(item: pytest.Item) -> None:
    """Print each cell as it ends: a run takes hours."""
    plugins = item.config.pluginmanager
    reporter, capture = plugins.get_plugin("terminalreporter"), plugins.get_plugin("capturemanager")
    if reporter is not None and capture is not None and _cells and _cells[-1].test == item.name:
        with capture.global_and_fixture_disabled():  # else the line is shown only if the test fails
            reporter.write_line(f"\n{_row(_cells[-1])}")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """The table for docs/operations.md."""
    if _cells:
        terminalreporter.write_line(_HEAD)
        terminalreporter.write_line("|" + "---|" * 7)
        for cell in _cells:
            terminalreporter.write_line(_row(cell))


def _row(cell: Cell) -> str:
    shown = "yes" if cell.shown else "no"
    said = "; ".join(cell.faults)
    after = f"{cell.decided_after:.1f} s{f': {said}' if said else ''}"
    return f"| {cell.fault} | {cell.target} | {cell.load} | {shown} | {after} | {cell.slowness:.1f} x | `{cell.test}` |"
