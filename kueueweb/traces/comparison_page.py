"""The comparison of two configurations as one page of HTML, without other files: to be sent as it is."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from html import escape
from typing import Any, Final

from scheduling.simulator.trace_run import TraceFigures, WaitFigures

_STYLE: Final = """
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 70rem; padding: 0 1rem }
:root { color-scheme: light dark }
table { border-collapse: collapse; width: 100%; margin: 0 0 2rem }
caption { text-align: left; font-weight: 600; font-size: 1.15rem; padding: .5rem 0 }
th, td { padding: .3rem .6rem; border-bottom: 1px solid #8884; text-align: right }
th:first-child, td:first-child { text-align: left }
"""
_HOUR: Final = 3600.0
_MINUTE: Final = 60.0
_NONE: Final = "-"

Row = tuple[str, ...]
"""A caption, and the figure of each configuration."""


def comparison_json(names: Sequence[str], found: Sequence[TraceFigures]) -> dict[str, Any]:
    """Return both figures as JSON."""
    return {"configurations": [{"name": name, **asdict(figures)} for name, figures in zip(names, found, strict=True)]}


def comparison_page(title: str, names: Sequence[str], found: Sequence[TraceFigures]) -> str:
    """Return the page. The same figures are in it as JSON, in the element `figures`."""
    first, second = found
    figures = json.dumps(comparison_json(names, found)).replace("<", "\\u003c")
    tables = [
        _table("All jobs", names, _totals(first, second)),
        _table("Median wait (p90) for the first start, by size", names, _waits(first, second)),
        _table("Median wait (p90), by ClusterQueue", names, _of_queues(first, second, "waits")),
        _table("Device hours, by ClusterQueue", names, _of_queues(first, second, "used_hours")),
        _table(
            "Device hours below the nominal quota while more was wanted",
            names,
            _of_queues(first, second, "below_hours"),
        ),
        _table("Preemptions, by ClusterQueue", names, _of_queues(first, second, "preemptions")),
    ]
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        f"<style>{_STYLE}</style></head><body><h1>{escape(title)}</h1>"
        f"<p>{first.jobs:,} jobs, submitted within {first.hours:,.1f} hours. Use, fairness and fragmentation are those "
        f"of these hours. Preempted jobs start again from the beginning.</p>{''.join(tables)}"
        f'<script type="application/json" id="figures">{figures}</script></body></html>\n'
    )


def _table(caption: str, names: Sequence[str], rows: Iterable[Row]) -> str:
    head = "".join(f"<th>{escape(name)}</th>" for name in ("", *names))
    body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table><caption>{escape(caption)}</caption><tr>{head}</tr>{body}</table>"


def _totals(first: TraceFigures, second: TraceFigures) -> list[Row]:
    return [
        ("Devices", f"{first.devices:,.0f}", f"{second.devices:,.0f}"),
        ("Started", _started(first), _started(second)),
        ("Finished", f"{first.finished:,}", f"{second.finished:,}"),
        ("Refused: no LocalQueue", f"{first.refused:,}", f"{second.refused:,}"),
        ("Median wait (p90)", *(_wait(each.waits["all"]) for each in (first, second))),
        ("Use of the devices", _percent(first.utilisation), _percent(second.utilisation)),
        ("Fairness (Jain's index, 1: equal)", _plain(first.fairness), _plain(second.fairness)),
        ("Fragmented part of the devices", _percent(first.fragmented), _percent(second.fragmented)),
        ("Preemptions", f"{first.preemptions:,}", f"{second.preemptions:,}"),
        ("Device hours lost by them", f"{first.lost_hours:,.1f}", f"{second.lost_hours:,.1f}"),
    ]


def _started(figures: TraceFigures) -> str:
    return f"{figures.started:,} of {figures.jobs:,}"


def _waits(first: TraceFigures, second: TraceFigures) -> list[Row]:
    return [
        (f"{name} ({waits.jobs:,})", _wait(waits), _wait(second.waits[name]))
        for name, waits in first.waits.items()
        if waits.jobs
    ]


def _of_queues(first: TraceFigures, second: TraceFigures, figure: str) -> list[Row]:
    names = sorted({*first.queues, *second.queues})
    return [(name, *(_cell(each.queues.get(name), figure) for each in (first, second))) for name in names]


def _cell(queue: Any, figure: str) -> str:
    if queue is None:
        return _NONE
    value = getattr(queue, figure)
    return (
        _wait(value)
        if isinstance(value, WaitFigures)
        else f"{value:,.1f}"
        if isinstance(value, float)
        else f"{value:,}"
    )


def _wait(waits: WaitFigures) -> str:
    return f"{_duration(waits.median_seconds)} ({_duration(waits.p90_seconds)})" if waits.jobs else _NONE


def _duration(seconds: float | None) -> str:
    if seconds is None:
        return "never"
    if seconds < _MINUTE:
        return f"{seconds:.0f} s"
    return f"{seconds / _MINUTE:.1f} min" if seconds < _HOUR else f"{seconds / _HOUR:.1f} h"


def _percent(part: float | None) -> str:
    return _NONE if part is None else f"{100 * part:.1f} %"


def _plain(value: float | None) -> str:
    return _NONE if value is None else f"{value:.3f}"
