"""`manage.py explain NAMESPACE/NAME`: why a workload waits, and with `--remedies` changes that would start it."""

import json
import time
from argparse import ArgumentParser
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from accounts.models import Cluster
from accounts.services.cluster_settings import cluster_named
from foundation.exceptions import NotFound
from queues.models import WorkloadPriorityClass
from scheduler.store.kept_world import kept_world
from scheduling.advice.explanation import Explanation, FlavorVerdict
from scheduling.cycle.planned_starts import PlannedStart
from scheduling.model.quantity import format_amount
from scheduling.model.times import rfc3339
from scheduling.policies.multifactor import PriorityFactors
from scheduling.studio.remedies import Remedies, find_remedies
from scheduling.studio.remedies_json import remedies_json
from scheduling.studio.remedy import Amount, Remedy, RemedyKind


class Command(BaseCommand):
    """Prints the explanation as text, or as JSON."""

    help = "Explain why a workload waits: missing quota per flavor, refused nodes and devices, workloads ahead of it."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("workload", metavar="NAMESPACE/NAME")
        parser.add_argument("--cluster", default="default")
        parser.add_argument("--json", action="store_true", help="print the whole explanation as JSON")
        parser.add_argument(
            "--remedies", action="store_true", help="try changes that would start it, with scheduling cycles"
        )
        parser.add_argument("--seconds", type=float, default=60.0, help="maximum time for trying remedies")

    def handle(self, *args: Any, **options: Any) -> None:
        """Explain; an unknown cluster or workload ends with an error."""
        key = options["workload"]
        try:
            cluster = cluster_named(options["cluster"])
        except NotFound as error:
            raise CommandError(str(error)) from error
        now, remedies = time.time(), None
        with kept_world(cluster, now) as world:
            if world.workload(key) is None:
                raise CommandError(f"No unfinished workload {key} in cluster {cluster.name}.")
            found = world.explain(key)
            if options["remedies"]:
                deadline = time.monotonic() + options["seconds"]
                remedies = find_remedies(world, key, now, _priorities(cluster), lambda: time.monotonic() < deadline)
        self.stdout.write(as_json(found, remedies) if options["json"] else "\n".join(as_text(found, remedies)))


def _priorities(cluster: Cluster) -> dict[str, int]:
    return dict(WorkloadPriorityClass.objects.filter(cluster=cluster).values_list("name", "value"))


def as_json(found: Explanation, remedies: Remedies | None) -> str:
    """Return the explanation, and the remedies if they were tried, without the changed objects themselves."""
    answer = asdict(found)
    if remedies is not None:
        tried = remedies_json(remedies)
        answer |= {name: tried[name] for name in ("starts_now", "complete", "remedies")}
    return json.dumps(answer, indent=2)


def as_text(found: Explanation, remedies: Remedies | None) -> Iterator[str]:
    """Yield the explanation as lines of text, and the remedies if they were tried."""
    yield from lines(found)
    if remedies is None:
        return
    if remedies.starts_now:
        yield "The workload starts in the next cycles without any change."
    elif not remedies.remedies and remedies.complete:
        yield "None of the remedies that were tried would start the workload."
    for remedy in remedies.remedies:
        yield f"The workload would start at once: {_action(remedy)}{_side_effects(remedy)}."
    if not remedies.complete:
        yield "The time was over before everything was tried: raise --seconds."


def _action(remedy: Remedy) -> str:
    """Return the change in words."""
    if remedy.kind is RemedyKind.OTHERS_END:
        bound = "" if remedy.at_least == len(remedy.workloads) else f" (at least {remedy.at_least} must)"
        return f"if these workloads end{bound}: {', '.join(remedy.workloads)}"
    if remedy.kind is RemedyKind.MOVES:
        return f"if pods of {', '.join(remedy.workloads)} move"
    if remedy.kind is RemedyKind.BACK_IN_SERVICE:
        return f"if node {remedy.subject} and its devices return to service"
    amounts = [
        f"{name or remedy.field_name} {_amount(name, remedy.before[name])} -> {_amount(name, after)}"
        for name, after in remedy.after.items()
    ]
    field = f"{remedy.field_name} " if "" not in remedy.after else ""
    beyond = "" if remedy.monotone else " (more may also help)"
    return f"{remedy.kind}, {remedy.subject}: {field}{', '.join(amounts)}{beyond}"


def _amount(resource: str, amount: Amount) -> str:
    return format_amount(resource, amount) if isinstance(amount, int) else amount


def _side_effects(remedy: Remedy) -> str:
    effects = remedy.effects
    told = [
        f"{verb} {', '.join(sorted(keys))}"
        for verb, keys in (
            ("preempts", effects.preempted),
            ("stops", effects.stopped),
            ("delays", effects.waits),
        )
        if keys
    ]
    others = len(effects.starts) - 1
    if others > 0:
        told.append(f"lets {others} other workloads start")
    return f"; it {', '.join(told)}" if told else ""


def lines(found: Explanation) -> Iterator[str]:
    """Yield the explanation as lines of text."""
    yield f"{found.state}, decided by {found.rule}: {found.message}"
    if found.remedy:
        yield found.remedy
    if found.position:
        order = "StrictFIFO" if found.strict else "BestEffortFIFO"
        yield f"Number {found.position} of {found.waiting} in ClusterQueue {found.cluster_queue} ({order})."
    if found.factors is not None:
        yield _factors(found.factors)
    if found.planned_start is not None:
        yield f"Planned start: {_planned(found.planned_start)}"
    if found.would_delay is not None:
        yield f"Would delay the planned start of {found.would_delay.workload}: {_planned(found.would_delay)}"
    for verdict in found.flavors:
        yield from _flavor(verdict)
    for title, workloads in (
        ("Ahead in its ClusterQueue", [other.workload for other in found.ahead]),
        ("Before it in the cohort", [other.workload for other in found.contenders]),
        ("Would be preempted", [victim.workload for victim in found.victims]),
    ):
        if workloads:
            yield f"{title}: {', '.join(workloads)}"
    for holder in found.workload_holders:
        amount = format_amount(holder.resource, holder.amount)
        yield f"{holder.workload} ({holder.cluster_queue}) holds {amount} of {holder.resource} in {holder.flavor}"


def _planned(found: PlannedStart) -> str:
    """Return the time, and the quota by flavor."""
    quota = (f"{format_amount(need.resource, need.amount)} of {need.resource} in {need.flavor}" for need in found.quota)
    return f"{rfc3339(found.starts_at, whole_seconds=True)}, with {', '.join(quota)}"


def _factors(found: PriorityFactors) -> str:
    """Return the priority with its parts, in the order of Slurm's sprio."""
    parts = {
        "age": found.age,
        "fair share": found.fair_share,
        "job size": found.job_size,
        "queue": found.partition,
        "class": found.qos,
        **found.resources,
        "nice": -found.nice,
    }
    return f"Priority {found.priority}: {', '.join(f'{name} {value:.0f}' for name, value in parts.items())}"


def _flavor(verdict: FlavorVerdict) -> Iterator[str]:
    yield f"Flavor {verdict.flavor} for {', '.join(verdict.pod_sets)}: {verdict.rule} {verdict.message}".rstrip()
    for need in verdict.resources:
        amounts = (need.asked, need.free, need.lacking, need.nominal, need.used)
        asked, free, lacking, nominal, used = (format_amount(need.resource, amount) for amount in amounts)
        if need.deserved is not None:
            deserved = format_amount(need.resource, need.deserved)
            quota = f"{used} used, {deserved} deserved by the cohort's sharing policy"
        else:
            quota = f"{used} of {nominal} used"
        yield f"  {need.resource}: {asked} requested, {free} free, {lacking} lacking ({quota})"
    for refused in verdict.nodes.refused if verdict.nodes else ():
        devices = f", {refused.devices} devices" if refused.devices else ""
        yield f"  {refused.reason}: {refused.nodes} nodes{devices}"
    for reason, count in verdict.domains_refused.items():
        yield f"  {reason}: {count} of {verdict.domains} topology domains"
