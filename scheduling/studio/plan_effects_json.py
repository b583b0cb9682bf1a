"""Answers to "what if" as JSON, with all names."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from math import isfinite
from typing import Any

from scheduling.outlook import Effects, Eviction
from scheduling.state.status import Usage
from scheduling.studio.hour_figures import HourFigures
from scheduling.studio.hours_ahead import HoursAhead, QueueHours
from scheduling.studio.plan_effects import Devices, FirstAnswer, QueueFigures, WhatIf
from scheduling.studio.remedies_json import affected_json

_NO_QUEUE = QueueFigures(0, 0, 0.0, ())


def first_json(found: FirstAnswer) -> dict[str, Any]:
    """Return the first answer; the whole one is still missing."""
    return {"first": _part(found.effects, found.evictions), "whole": None}


def what_if_json(found: WhatIf, first: Mapping[str, Any]) -> dict[str, Any]:
    """Return both answers. `first` is the result of `first_json`."""
    waits = found.waits
    whole = _part(found.effects, found.evictions) | {
        "cycles": found.cycles,
        "waiting": [
            {
                "workload": key,
                "cluster_queue": wait.cluster_queue,
                "reason": wait.reason,
                "message": wait.message,
                "reason_before": before,
            }
            for key, (before, wait) in sorted(waits.items())
        ],
        "queues": list(_queues(found)),
        "devices_before": _devices(found.before.devices),
        "devices": _devices(found.after.devices),
    }
    return {**first, "whole": whole}


def hours_json(found: HoursAhead) -> dict[str, Any]:
    """Return the hours ahead, with the basis on which they rest."""
    return {
        "unknown": found.unknown or "",
        "asked_hours": found.asked_hours,
        "hours": found.hours,
        "runs": found.runs,
        "ended_runs": found.ended_runs,
        "total": _queue_hours(found.total),
        "queues": [_queue_hours(queue) for queue in found.queues],
    }


def _queue_hours(found: QueueHours) -> dict[str, Any]:
    return {
        "name": found.name,
        "workloads": found.workloads,
        "with_run_times": found.with_run_times,
        "before": None if found.before is None else _hour_figures(found.before),
        "after": None if found.after is None else _hour_figures(found.after),
    }


def _hour_figures(found: HourFigures) -> dict[str, Any]:
    def rounded(values: Iterable[float | None]) -> list[float | None]:
        return [None if value is None else round(value, 2) for value in values]

    return {
        "started": rounded(found.started),
        "ended": rounded(found.ended),
        "waiting": rounded(found.waiting),
        "device_hours": rounded(found.device_hours),
        "wait_p50": rounded(found.median_waits),
        "wait_p90": rounded(found.p90_waits),
        "all_waits_p50": found.median_wait,
        "all_waits_p90": found.p90_wait,
    }


def _part(effects: Effects, evictions: tuple[Eviction, ...]) -> dict[str, Any]:
    return {
        "effects": effects_json(effects),
        "evictions": [
            {
                "workload": lost.workload,
                "cluster_queue": lost.cluster_queue,
                "reason": lost.reason,
                "preemptor": lost.preemptor,
                "preemptor_cluster_queue": lost.preemptor_cluster_queue,
                "ran_seconds": round(lost.ran_seconds),
                "devices": lost.devices,
                "starts_again": lost.workload in effects.starts,
            }
            for lost in evictions
        ],
    }


def effects_json(found: Effects) -> dict[str, Any]:
    """Return the effects; amounts are in base units."""
    return {
        "complete": found.complete,
        **affected_json(found),
        "quotas": [
            {
                "kind": change.place.kind.value,
                "name": change.place.name,
                "flavor": change.place.flavor,
                "resource": change.place.resource,
                "nominal_before": change.nominal_before,
                "nominal": change.load.nominal,
                "used": change.load.used,
                "over": change.load.over,
            }
            for change in found.quotas
        ],
        "inactive": [{"name": name, "message": why} for name, why in sorted(found.inactive.items())],
    }


def _queues(found: WhatIf) -> Iterator[dict[str, Any]]:
    """Yield the ClusterQueues whose figures differ."""
    before, after = found.before.queues, found.after.queues
    for name in sorted({*before, *after}):
        was, is_ = before.get(name, _NO_QUEUE), after.get(name, _NO_QUEUE)
        if was != is_:
            yield {
                "name": name,
                "pending_before": was.pending,
                "pending": is_.pending,
                "reserving_before": was.reserving,
                "reserving": is_.reserving,
                "share_before": _share(was.weighted_share),
                "share": _share(is_.weighted_share),
                "usage": list(_usage(was.usage, is_.usage)),
            }


def _share(value: float) -> float | None:
    """JSON has no infinity."""
    return round(value, 4) if isfinite(value) else None


def _usage(before: tuple[Usage, ...], after: tuple[Usage, ...]) -> Iterator[dict[str, Any]]:
    was = {(row.flavor, row.resource): row for row in before}
    is_ = {(row.flavor, row.resource): row for row in after}
    for key in sorted({*was, *is_}):
        one, other = was.get(key), is_.get(key)
        if one != other:
            yield {
                "flavor": key[0],
                "resource": key[1],
                "nominal_before": one.nominal if one else 0,
                "nominal": other.nominal if other else 0,
                "used_before": one.used if one else 0,
                "used": other.used if other else 0,
            }


def _devices(found: Devices) -> dict[str, Any]:
    fragmented = found.fragmented_milli
    return {
        "count": found.count,
        "used": found.used,
        "fragmented": None if fragmented is None else round(fragmented / 1000, 3),
    }
