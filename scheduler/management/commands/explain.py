"""`manage.py explain NAMESPACE/NAME`: why a workload waits, as on its page."""

import json
import time
from argparse import ArgumentParser
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from accounts.exceptions import NotFound
from accounts.services.cluster_settings import cluster_named
from scheduler.store.kept_world import kept_world
from scheduling.advice.explanation import Explanation, FlavorVerdict
from scheduling.model.quantity import format_amount
from scheduling.policies.multifactor import PriorityFactors


class Command(BaseCommand):
    """Prints the explanation as text, or as JSON."""

    help = "Explains why a workload waits: missing quota per flavor, refused nodes and devices, workloads ahead of it."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("workload", metavar="NAMESPACE/NAME")
        parser.add_argument("--cluster", default="default")
        parser.add_argument("--json", action="store_true", help="print the whole explanation as JSON")

    def handle(self, *args: Any, **options: Any) -> None:
        """Explain; an unknown cluster or workload ends with an error."""
        key = options["workload"]
        try:
            cluster = cluster_named(options["cluster"])
        except NotFound as error:
            raise CommandError(str(error)) from error
        with kept_world(cluster, time.time()) as world:
            if world.workload(key) is None:
                raise CommandError(f"No unfinished workload {key} in cluster {cluster.name}.")
            found = world.explain(key)
        text = json.dumps(asdict(found), indent=2) if options["json"] else "\n".join(lines(found))
        self.stdout.write(text)


def lines(found: Explanation) -> Iterator[str]:
    """The explanation as lines of text."""
    yield f"{found.state}, decided by {found.rule}: {found.message}"
    if found.remedy:
        yield found.remedy
    if found.position:
        order = "StrictFIFO" if found.strict else "BestEffortFIFO"
        yield f"Number {found.position} of {found.waiting} in ClusterQueue {found.cluster_queue} ({order})."
    if found.factors is not None:
        yield _factors(found.factors)
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


def _factors(found: PriorityFactors) -> str:
    """The priority with its parts, in the order of Slurm's sprio."""
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
        yield f"  {need.resource}: {asked} requested, {free} free, {lacking} lacking ({used} of {nominal} used)"
    for refused in verdict.nodes.refused if verdict.nodes else ():
        devices = f", {refused.devices} devices" if refused.devices else ""
        yield f"  {refused.reason}: {refused.nodes} nodes{devices}"
    for reason, count in verdict.domains_refused.items():
        yield f"  {reason}: {count} of {verdict.domains} topology domains"
