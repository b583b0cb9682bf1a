"""The costs of a Job for a scheduler on a real control plane, Kueue's and kueueweb's: `make measure-jobs KUEUE=DIR`.

    python -m tests.beside_kueue.costs CHECKOUT [--rates 4,20,100] [--seconds N] [--deciders NAME,...] [--life]

Each decider gets a control plane and stores of its own for each rate. Jobs arrive evenly in 30 ClusterQueues that have
room for all, through `manage.py loadtest --cluster`'s own runner; without `--life` no pod runs, and a Job is done when
it has started. Requests are those of the decider's accounts, by the API server's audit log. The processor of kueueweb
includes PostgreSQL and Valkey. Needs root: Kueue's program finds its certificates under /etc.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import django

if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "kueueweb.settings")
    django.setup()

from clusters.api_errors import ClusterError
from clusters.api_objects import NODES, JsonObject
from kueueweb.loadtest.cluster_run import prepared, queues_client, run_in_cluster
from kueueweb.loadtest.shape import Shape, WorkloadSet
from tests.acceptance.processes import ROOT
from tests.beside_kueue.audited import AuditedPlane, AuditedServer
from tests.beside_kueue.deciders import DECIDERS, Decider, DeciderContext
from tests.kueue_suite.checkout import Checkout

_FOLDER: Final = ROOT / ".run" / "kueue-suite"
_COHORTS, _QUEUES = 5, 6
_SETTLED_SECONDS: Final = 8.0
"""After the last start: what a decider still writes belongs to the Jobs."""
_QUIET_SECONDS: Final = 20.0
_NODES: Final = 1_500
_HEARTBEATS: Final = 5
"""Statuses of nodes that change in a second at rest: one of each node in five minutes, as kubelets report them."""


@dataclass(frozen=True, slots=True)
class Measured:
    """The costs of a decider at one rate; `rate` 0 is at rest, where the processor is in milliseconds a second."""

    decider: str
    rate: float
    jobs: int = 0
    starts_per_second: float | None = None
    median_seconds: float | None = None
    late_seconds: float | None = None
    requests: Mapping[str, float] = field(default_factory=dict)
    processor: Mapping[str, float] = field(default_factory=dict)
    memory_mib: Mapping[str, int] = field(default_factory=dict)


def main(arguments: Sequence[str]) -> int:
    """Measure each decider at each rate and at rest, and print a table and the figures as JSON."""
    parser = argparse.ArgumentParser(prog="python -m tests.beside_kueue.costs", description="The costs of a Job.")
    parser.add_argument("checkout", type=Path, help="a clone of kubernetes-sigs/kueue")
    parser.add_argument(
        "--rates", default="4,20,100", help="Jobs a second, separated by commas; '': at rest alone (%(default)s)"
    )
    parser.add_argument("--seconds", type=float, default=25.0, help="how long Jobs arrive (default: %(default)s)")
    parser.add_argument("--deciders", default=",".join(DECIDERS), help="separated by commas (default: %(default)s)")
    parser.add_argument("--rest", type=float, default=60.0, help="seconds at rest; 0: none (default: %(default)s)")
    parser.add_argument("--life", action="store_true", help="let pods run and end, and measure to the end of each Job")
    parser.add_argument("--output", type=Path, help="write the figures to this file, too")
    options = parser.parse_args(arguments)
    if unknown := set(options.deciders.split(",")) - DECIDERS.keys():
        parser.error(f"--deciders: Unsupported value {min(unknown)!r}: supported values: {', '.join(DECIDERS)}")
    _FOLDER.mkdir(parents=True, exist_ok=True)
    checkout = Checkout.of(options.checkout.resolve(), _FOLDER)
    program = checkout.kueue()
    found: list[Measured] = []
    for name in options.deciders.split(","):
        for rate in [*map(float, filter(None, options.rates.split(","))), *([0.0] if options.rest else [])]:
            with _decider(name, checkout.source, program, life=options.life) as decider:
                measured = _at_rest(name, decider, options.rest) if not rate else _at_rate(name, decider, rate, options)
            found.append(measured)
            sys.stdout.write(f"{json.dumps(_as_json(measured))}\n")
            sys.stdout.flush()
    sys.stdout.write(table(found))
    if options.output:
        options.output.write_text(json.dumps([_as_json(each) for each in found], indent=1) + "\n")
    return 0


@contextlib.contextmanager
def _decider(name: str, source: Path, program: Path, *, life: bool) -> Iterator[Decider]:
    with tempfile.TemporaryDirectory(prefix="costs-") as made:
        folder = Path(made)
        folder.chmod(0o755)  # PostgreSQL runs as another user
        (folder / "plane").mkdir()
        with (AuditedPlane if life else AuditedServer)(folder / "plane") as plane:
            context = DeciderContext(plane, folder / "decider", source=source, program=program)
            with DECIDERS[name](context) as decider:
                yield decider


def _at_rate(name: str, decider: Decider, rate: float, options: argparse.Namespace) -> Measured:
    shape = shape_of(rate, max(1, round(rate * options.seconds / (_COHORTS * _QUEUES))))
    plane = decider.plane
    queues = queues_client(*decider.account) if decider.account else plane.admin
    with prepared(plane.admin, queues, shape, node_count=20 if options.life else 0, keep=True):
        time.sleep(_SETTLED_SECONDS)
        before, audited = decider.processor_seconds(), plane.audited()
        _, figures = run_in_cluster(
            plane.admin, shape, _say, dict, image="app", until_started=not options.life, patience_seconds=120.0
        )
        time.sleep(_SETTLED_SECONDS)
        taken, requests = _difference(decider.processor_seconds(), before), plane.audited() - audited
    jobs = figures.jobs
    return Measured(
        name,
        rate,
        jobs=jobs,
        starts_per_second=figures.starts_per_second,
        median_seconds=figures.wait(0.5),
        late_seconds=figures.wait(0.95),
        requests=requests_of(requests, decider.accounts, jobs),
        processor={process: 1000 * seconds / jobs for process, seconds in taken.items()},
        memory_mib=decider.memory_mib(),
    )


def _at_rest(name: str, decider: Decider, seconds: float) -> Measured:
    """Measure beside nodes whose kubelets report, and without any Job."""
    plane = decider.plane
    for number in range(_NODES):
        plane.admin.create(NODES, _node(number))
    time.sleep(_QUIET_SECONDS)
    stopped = threading.Event()
    kubelets = threading.Thread(target=_report, args=(plane.admin, stopped), daemon=True)
    kubelets.start()
    time.sleep(_QUIET_SECONDS)
    before, audited = decider.processor_seconds(), plane.audited()
    time.sleep(seconds)
    taken, requests = _difference(decider.processor_seconds(), before), plane.audited() - audited
    memory = decider.memory_mib()
    stopped.set()
    kubelets.join()
    return Measured(
        name,
        0.0,
        requests=requests_of(requests, decider.accounts, seconds),
        processor={process: 1000 * each / seconds for process, each in taken.items()},
        memory_mib=memory,
    )


def shape_of(rate: float, count: int) -> Shape:
    """Return the shape in which so many Jobs arrive in each of 30 queues, in turns, at the rate a second in sum."""
    return Shape(
        cohorts=_COHORTS,
        cluster_queues_per_cohort=_QUEUES,
        resource="cpu",
        nominal_quota=100_000,
        borrowing_limit=100,
        preemption={},
        sets=(WorkloadSet("small", count, _COHORTS * _QUEUES / rate, 5.0, 0, 1, "100m"),),
        topology={},
        floor_seconds=0.0,
        kueue={},
        staggered=True,
    )


def table(found: Sequence[Measured]) -> str:
    """Return the figures as a table of Markdown, a line for each decider and rate."""
    lines = [
        (
            "| decider | Jobs a second | started a second | to start, median, 95 %, s | requests | processor, ms "
            "| of which | MiB |"
        ),
        "|---|---|---|---|---|---|---|---|",
    ]
    for each in found:
        parts = ", ".join(f"{name} {taken:.1f}" for name, taken in each.processor.items())
        waits = f"{_number(each.median_seconds)}, {_number(each.late_seconds)}"
        lines.append(
            f"| {each.decider} | {f'{each.rate:g}' if each.rate else 'at rest, a second'} | "
            f"{_number(each.starts_per_second)} | {waits} | {sum(each.requests.values()):.2f} | "
            f"{sum(each.processor.values()):.1f} | {parts} | {sum(each.memory_mib.values())} |"
        )
    return "\n".join(lines) + "\n"


def requests_of(audited: Counter[tuple[str, str, str]], accounts: Sequence[str], jobs: float) -> dict[str, float]:
    """Return the requests a Job of these accounts, whose names begin so, by verb and resource; watches are left out."""
    found: Counter[str] = Counter()
    for (user, verb, resource), count in audited.items():
        if verb != "watch" and any(user.startswith(account) for account in accounts):
            found[f"{verb} {resource}"] += count
    return {kind: count / jobs for kind, count in found.most_common()}


def _report(admin: Any, stopped: threading.Event) -> None:
    """Write the statuses of nodes as their kubelets do."""
    number = 0
    while not stopped.wait(1.0 / _HEARTBEATS):
        number += 1
        condition = {
            "type": "Ready",
            "status": "True",
            "lastHeartbeatTime": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        }
        with contextlib.suppress(ClusterError):
            admin.patch(
                NODES, "", f"node-{number % _NODES}", {"status": {"conditions": [condition]}}, subresource="status"
            )


def _node(number: int) -> JsonObject:
    room = {"cpu": "64", "memory": "256Gi", "pods": "110"}
    status = {"capacity": room, "allocatable": room, "conditions": [{"type": "Ready", "status": "True"}]}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": f"node-{number}"}, "status": status}


def _difference(after: Mapping[str, float], before: Mapping[str, float]) -> dict[str, float]:
    return {name: seconds - before.get(name, 0.0) for name, seconds in after.items()}


def _as_json(measured: Measured) -> JsonObject:
    return {
        "decider": measured.decider,
        "rate": measured.rate,
        "jobs": measured.jobs,
        "startsPerSecond": measured.starts_per_second,
        "medianSecondsToStart": measured.median_seconds,
        "lateSecondsToStart": measured.late_seconds,
        "requests": {kind: round(count, 3) for kind, count in measured.requests.items()},
        "processorMilliseconds": {name: round(taken, 2) for name, taken in measured.processor.items()},
        "memoryMib": dict(measured.memory_mib),
    }


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
