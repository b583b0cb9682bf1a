"""Ginkgo's JSON reports as a table of specs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any, Final

_NOT_RUN: Final = ("skipped", "pending")
_AROUND: Final = (*_NOT_RUN, "passed")
_MAX_MESSAGE: Final = 300
_NANOSECONDS: Final = 1_000_000_000


@dataclass(frozen=True, slots=True, order=True)
class SpecResult:
    """How one spec ended. `place` is its file and line; `why` is empty where it passed."""

    file: str
    line: int
    text: str
    state: str
    seconds: int
    why: str = ""

    @property
    def place(self) -> str:
        return f"{self.file}:{self.line}"


def results(reports: Iterable[Mapping[str, Any]]) -> list[SpecResult]:
    """The specs that ran, by file and line."""
    return sorted(result for report in reports for result in _of_report(report))


def table(found: Iterable[SpecResult]) -> str:
    """How many passed, and a Markdown row for each spec."""
    rows = list(found)
    counts = Counter(row.state for row in rows)
    others = ", ".join(f"{count} {state}" for state, count in sorted(counts.items()) if state != "passed")
    heading = f"{counts['passed']} of {len(rows)} specs passed" + (f" ({others})" if others else "")
    lines = [f"| {row.place} | {row.text} | {row.state} | {row.seconds} | {row.why} |" for row in rows]
    return "\n".join((heading, "", "| spec | what | result | s | why |", "|---|---|---|---|---|", *lines, ""))


def _of_report(report: Mapping[str, Any]) -> Iterator[SpecResult]:
    for spec in report.get("SpecReports") or ():
        # A suite that fails before its specs is a failure too, and what has passed around them is no spec.
        if spec["State"] not in (_NOT_RUN if spec["LeafNodeType"] == "It" else _AROUND):
            where = spec["LeafNodeLocation"]
            yield SpecResult(
                file=PurePosixPath(where["FileName"]).name,
                line=where["LineNumber"],
                text=_cell(
                    " / ".join(
                        (*(spec.get("ContainerHierarchyTexts") or ()), spec["LeafNodeText"] or spec["LeafNodeType"])
                    )
                ),
                state=spec["State"],
                seconds=round(spec["RunTime"] / _NANOSECONDS),
                why=_why(spec),
            )


def _why(spec: Mapping[str, Any]) -> str:
    failure = spec.get("Failure")
    if not failure:
        return ""
    where = failure.get("Location") or spec["LeafNodeLocation"]
    steps = [event["Message"] for event in spec.get("SpecEvents") or () if event.get("SpecEventType") == "By"]
    at = f"{PurePosixPath(where['FileName']).name}:{where['LineNumber']}"
    step = f" at step {steps[-1]!r}" if steps else ""
    return _cell(f"{at}{step}: {failure.get('Message', '')}")[:_MAX_MESSAGE]


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "/")
