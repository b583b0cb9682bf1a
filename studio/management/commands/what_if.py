"""`manage.py what-if FILE`: the effects of changes before they are made, tried with scheduling cycles."""

from __future__ import annotations

import json
import sys
import time
from argparse import ArgumentParser
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from accounts.models import Cluster
from accounts.services.actor import because
from accounts.services.cluster_settings import cluster_named
from foundation.exceptions import KueuewebError
from scheduling.model.quantity import format_amount
from scheduling.studio.hours_ahead import MAX_HOURS
from studio.services.looking_ahead import MAX_SHOWN_QUEUES, Ahead
from studio.services.plan_application import apply_plan
from studio.services.planned_changes import planned_changes
from studio.services.plans import Plan, read_plan
from studio.services.run_histories import RunHistories
from studio.services.trials import try_what_if

_MAX_LISTED = 20


class Command(BaseCommand):
    """Prints the answer as text, or as JSON."""

    help = (
        "Try changes before they are made: the workloads that would start, be evicted (with the lost work) or wait. "
        "FILE is a plan with the sections apply, patch, delete, nodes, end, requeue, priorities and policies, or "
        "manifests to apply; - is standard input."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", metavar="FILE")
        parser.add_argument("--cluster", default="default")
        parser.add_argument("--json", action="store_true", help="print both answers, the first and the whole, as JSON")
        parser.add_argument(
            "--apply",
            action="store_true",
            help="then make the changes, in one transaction, unless what the answer rests on has changed",
        )
        parser.add_argument(
            "--hours",
            type=int,
            default=0,
            help=f"then look ahead so many hours, at most {MAX_HOURS}: starts, ends, waits and device hours by queue",
        )
        parser.add_argument("--seconds", type=float, default=60.0, help="maximum time for the cycles")

    def handle(self, *args: Any, **options: Any) -> None:
        """Try the plan; a mistake in it ends with an error."""
        hours = options["hours"]
        if not 0 <= hours <= MAX_HOURS:
            raise CommandError(f"--hours: Invalid value: {hours}: must be between 0 and {MAX_HOURS}")
        try:
            text = sys.stdin.read() if options["file"] == "-" else Path(options["file"]).read_text(encoding="utf-8")
            cluster = cluster_named(options["cluster"])
            plan = read_plan(text)
            planned = planned_changes(cluster, plan, None, now := time.time())
            ahead = Ahead(hours, RunHistories().of(cluster), cluster.pk) if hours else None
        except (OSError, UnicodeDecodeError, KueuewebError) as error:
            raise CommandError(str(error)) from error
        deadline = time.monotonic() + options["seconds"]
        changes = planned.changes
        tried = try_what_if(planned.world, changes, now, lambda: time.monotonic() < deadline, lambda _: None, ahead)
        answer = dict(tried)
        if options["apply"]:
            _require_complete(answer)
            answer["applied"] = _apply(cluster, plan, planned.basis, now)
        self.stdout.write(json.dumps(answer, indent=2) if options["json"] else "\n".join(as_text(answer)))


def _require_complete(answer: Mapping[str, Any]) -> None:
    """Refuse an answer whose cycles were not idle in time, as the REST API does: its effects are known in part."""
    if not answer["whole"]["effects"]["complete"]:
        raise CommandError(
            "Nothing was stored: time ran out before the cycles were idle, so the effects of the plan are unknown."
            " Raise --seconds."
        )


def _apply(cluster: Cluster, plan: Plan, basis: Mapping[str, Any], now: float) -> list[dict[str, Any]]:
    """Apply the plan, and return the changed objects."""
    try:
        with because("Plan of manage.py what-if"):
            done = apply_plan(cluster, plan, basis, datetime.fromtimestamp(now, UTC))
    except KueuewebError as error:
        raise CommandError(str(error)) from error
    return [asdict(change) for change in done.objects]


def as_text(answer: Mapping[str, Any]) -> Iterator[str]:
    """Yield the whole answer, and the objects that were changed if the plan was applied, as lines of text."""
    whole = answer["whole"]
    effects, evictions = whole["effects"], whole["evictions"]
    yield from _named("would start", effects["starts"])
    yield from _named("would start without the change, but wait with it", effects["waits"])
    yield f"{_workloads(len(evictions))} would be evicted{':' if evictions else '.'}"
    for lost in evictions[:_MAX_LISTED]:
        by = f" by {lost['preemptor']}" if lost["preemptor"] else ""
        hours = lost["ran_seconds"] * lost["devices"] / 3600
        again = "; it starts again" if lost["starts_again"] else ""
        yield f"  {lost['workload']} ({lost['cluster_queue']}): {lost['reason']}{by}, {hours:.1f} device hours{again}"
    end = ":" if whole["waiting"] else "."
    waiting = _workloads(len(whole["waiting"]))
    yield f"{waiting} would wait only with the plan, or for another reason than without it{end}"
    for wait in whole["waiting"][:_MAX_LISTED]:
        yield f"  {wait['workload']} ({wait['cluster_queue']}): {wait['reason']} {wait['message']}".rstrip()
    yield from _figures(whole)
    if answer.get("hours"):
        yield from _hours(answer["hours"])
    if not effects["complete"]:
        yield "The time was over before the cycles were idle: raise --seconds."
    for change in answer.get("applied", ()):
        key = "/".join(filter(None, (change["namespace"], change["name"])))
        yield f"{change['kind']} {key} {change['action']}" + "".join(f"; {each}" for each in change["warnings"])


def _named(verb: str, workloads: Mapping[str, str]) -> Iterator[str]:
    yield f"{_workloads(len(workloads))} {verb}{':' if workloads else '.'}"
    for key in sorted(workloads)[:_MAX_LISTED]:
        yield f"  {key} ({workloads[key]})"


def _workloads(count: int) -> str:
    return f"{count} workload{'' if count == 1 else 's'}"


def _figures(whole: Mapping[str, Any]) -> Iterator[str]:
    for quota in whole["effects"]["quotas"]:
        resource = quota["resource"]
        amounts = [format_amount(resource, quota[name]) for name in ("nominal_before", "nominal", "used", "over")]
        over = f", {amounts[3]} over quota" if quota["over"] else ""
        yield f"{quota['kind']} {quota['name']}: {resource} in {quota['flavor']} {amounts[0]} -> {amounts[1]}{over}"
    for queue in whole["effects"]["inactive"]:
        yield f"ClusterQueue {queue['name']} would admit nothing: {queue['message']}"
    for queue in whole["queues"]:
        yield (
            f"ClusterQueue {queue['name']}: {queue['pending_before']} -> {queue['pending']} pending, "
            f"{queue['reserving_before']} -> {queue['reserving']} with quota"
        )
    before, after = whole["devices_before"], whole["devices"]
    yield f"Devices in use: {before['used']} of {before['count']} -> {after['used']} of {after['count']}"


def _hours(found: Mapping[str, Any]) -> Iterator[str]:
    """Yield the hours ahead: all queues together, then each."""
    if found["unknown"]:
        yield f"The hours ahead are unknown: {found['unknown']} ({found['ended_runs']} runs have ended)."
        return
    hours = "hour" if found["hours"] == 1 else f"{found['hours']} hours"
    yield (
        f"In the next {hours}, means of {found['runs']} forward runs with run times of "
        f"{found['ended_runs']} ended runs, without later arrivals (without the plan -> with it):"
    )
    for queue in (found["total"], *found["queues"][:MAX_SHOWN_QUEUES]):
        name = f"ClusterQueue {queue['name']}" if queue["name"] else "All ClusterQueues"
        before, after = queue["before"], queue["after"]
        if before is None or after is None:
            known = f"run times are known of {queue['with_run_times']} of its {_workloads(queue['workloads'])}"
            yield f"  {name}: unknown, {known}"
            continue
        parts = [
            f"{sum(before[part]):.1f} -> {sum(after[part]):.1f} {word}"
            for part, word in (("ended", "ended"), ("device_hours", "device hours"))
        ]
        waits = [
            f"{word} wait {_wait(before[part])} -> {_wait(after[part])}"
            for part, word in (("all_waits_p50", "median"), ("all_waits_p90", "p90"))
        ]
        yield f"  {name}: {', '.join((*parts, *waits))}, {before['waiting'][-1]:.1f} -> {after['waiting'][-1]:.1f} wait"
    if further := len(found["queues"][MAX_SHOWN_QUEUES:]):
        yield f"  and {further} further ClusterQueue{'s' * (further > 1)} without a larger change"


def _wait(seconds: float | None) -> str:
    return "-" if seconds is None else f"{seconds / 60:.0f} min"
