"""`manage.py simulated_cluster`: a cluster that speaks Kubernetes' API and lives in scaled time."""

from __future__ import annotations

import time
from argparse import ArgumentParser, ArgumentTypeError
from pathlib import Path
from typing import Any

import yaml
from django.core.management.base import BaseCommand, CommandError

from simulation.api.errors import ApiError
from simulation.clock import VirtualClock, WallClock
from simulation.cluster import SimulatedCluster
from simulation.environment import Options
from simulation.fleet import FLEETS, WEST, fleet, read_manifests
from simulation.server import address, listen, serve


class Command(BaseCommand):
    """Serves until it is interrupted. It needs no database and shares nothing with one."""

    help = "Serve a simulated Kubernetes cluster whose nodes, jobs and pods live in scaled time."
    requires_system_checks = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: %(default)s)")
        parser.add_argument(
            "--port", type=int, default=8001, help="port to listen on, 0: a free one (default: %(default)s)"
        )
        parser.add_argument("--uds", help="unix socket to listen on instead")
        parser.add_argument("--nodes", type=Path, help="YAML of the objects to start with (default: those of --fleet)")
        parser.add_argument(
            "--fleet", choices=(*FLEETS, WEST), default=FLEETS[0], help="nodes to start with (default: %(default)s)"
        )
        parser.add_argument("--kueue-kinds", action="store_true", help="serve Kueue's kinds")
        parser.add_argument("--time-scale", type=_positive, default=1.0, help="how much faster than real time pods run")
        parser.add_argument("--fail-rate", type=_rate, default=0.0, help="share of the pods of jobs that fail, 0 to 1")
        parser.add_argument(
            "--run-seconds", type=_positive, default=60.0, help="run time of pods whose jobs do not set one"
        )
        parser.add_argument("--seed", default=None, help="seed of names, uids and failures")
        parser.add_argument("--snapshot", type=Path, help="file that keeps the state across restarts")
        parser.add_argument("--virtual-clock", action="store_true", help="time advances only by POST /_clock")

    def handle(self, *args: Any, **options: Any) -> None:
        clock = VirtualClock() if options["virtual_clock"] else WallClock()
        living = Options(
            time_scale=options["time_scale"], fail_rate=options["fail_rate"], default_run_seconds=options["run_seconds"]
        )
        seed = options["seed"] if options["seed"] is not None else str(time.time_ns())
        snapshot: Path | None = options["snapshot"]
        restarted = snapshot is not None and snapshot.exists()
        cluster = SimulatedCluster(clock, living, seed=seed, snapshot=snapshot)
        if not restarted:
            cluster.install_operators()
            if options["kueue_kinds"]:
                cluster.install_kueue_kinds()
            self._fill(cluster, options["nodes"], options["fleet"])
        nodes = cluster.store.count("nodes")
        try:
            listening = listen(options["host"], options["port"], options["uds"])
        except OSError as error:
            raise CommandError(f"can't listen on {options['uds'] or options['port']}: {error}") from error
        where = address(listening)
        self.stdout.write(f"simulated cluster: {nodes} nodes, time x{living.time_scale:g}, on {where}")
        self.stdout.flush()
        serve(cluster, listening)

    def _fill(self, cluster: SimulatedCluster, path: Path | None, name: str) -> None:
        try:
            manifests = fleet(name) if path is None else read_manifests(path)
            for manifest in manifests:
                cluster.add(manifest)
        except (OSError, ValueError, yaml.YAMLError, ApiError) as error:
            raise CommandError(f"--nodes {path}: {error}") from error


def _positive(text: str) -> float:
    value = _number(text)
    if value <= 0:
        raise ArgumentTypeError(f"{text} is not greater than 0")
    return value


def _rate(text: str) -> float:
    value = _number(text)
    if not 0 <= value <= 1:
        raise ArgumentTypeError(f"{text} is not between 0 and 1")
    return value


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError as error:
        raise ArgumentTypeError(f"{text!r} is not a number") from error
