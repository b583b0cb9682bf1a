"""Compares kueueweb with a busy Kueue, in mode shadow: `make test-shadow KUEUE=DIR`.

    python -m tests.beside_kueue CHECKOUT [--minutes N] [--rate JOBS_PER_SECOND] [--seed N]

The checkout is a clone of kubernetes-sigs/kueue; Go builds the program from its vendored sources. On a real control
plane, Kueue runs random jobs, and kueueweb's own processes follow it and decide in parallel. Ends with how many
decisions agree and with both reasons of each other one, and with 1 if fewer agree than 99 in 100. Needs root: Kueue's
program finds its certificates under /etc.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import yaml

from clusters.api_objects import NODES, PODS, JsonObject
from clusters.leases import KUEUES_NAMESPACE
from kueueweb.embedded.postgres import Postgres
from tests.acceptance.processes import ROOT, Processes
from tests.beside_kueue import load
from tests.beside_kueue.report import is_enough, pace, table
from tests.beside_kueue.shadow import ShadowSystem
from tests.cluster_kinds import JOBS
from tests.kubernetes.control_plane import ControlPlane
from tests.kubernetes.real_kueue import RealKueue, default_configuration
from tests.kueue_suite.checkout import Checkout

_FOLDER: Final = ROOT / ".run" / "kueue-suite"
"""The folder in which `make test-kueue-suite` builds the same program."""
_LATE_SECONDS: Final = 75.0
"""A decision that Kueue has not made a minute later is a difference."""
_NEWS_SECONDS: Final = 60.0
_KINDS: Final = {kind.kind: kind for kind in (JOBS, PODS)}


def main(arguments: Sequence[str]) -> int:
    """Run Kueue under load for some minutes, and print the comparison."""
    parser = argparse.ArgumentParser(prog="python -m tests.beside_kueue", description="Mode shadow beside Kueue.")
    parser.add_argument("checkout", type=Path, help="a clone of kubernetes-sigs/kueue")
    parser.add_argument("--minutes", type=float, default=10.0, help="how long jobs arrive (default: %(default)s)")
    parser.add_argument("--rate", type=float, default=1.0, help="jobs in a second (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="of the random jobs (default: %(default)s)")
    options = parser.parse_args(arguments)
    _FOLDER.mkdir(parents=True, exist_ok=True)
    checkout = Checkout.of(options.checkout.resolve(), _FOLDER)
    program = checkout.kueue()
    configuration = {
        **default_configuration(checkout.source),
        "integrations": {"frameworks": list(load.FRAMEWORKS)},
        "fairSharing": load.FAIR_SHARING,
    }
    with tempfile.TemporaryDirectory(prefix="beside-") as made:
        folder = Path(made)
        folder.chmod(0o755)  # PostgreSQL runs as another user
        (folder / "plane").mkdir()
        with ControlPlane(folder / "plane") as plane:
            kueue = RealKueue(plane, folder / "kueue", binary=program, source=checkout.source)
            kueue.install()
            kueue.start(configuration)
            try:
                _furnish(plane)
                found = _compare(plane, folder / "ours", configuration, options)
                sys.stdout.write(f"{pace(kueue.metrics().decode())}\n")
                return found
            finally:
                kueue.stop()


def _furnish(plane: ControlPlane) -> None:
    """Make the nodes and queues."""
    plane.kubectl("apply", "--server-side", "-f", "-", manifests=load.surroundings())
    for node in load.nodes():
        status = {"status": {"capacity": load.ROOM, "allocatable": load.ROOM}}
        plane.admin.patch(NODES, "", node, status, subresource="status")


def _compare(plane: ControlPlane, folder: Path, configuration: JsonObject, options: argparse.Namespace) -> int:
    """Submit jobs while kueueweb follows; print what it found."""
    folder.mkdir()
    postgres = Postgres(folder / "postgres")
    postgres.start()
    try:
        with Processes(folder, database=postgres.url()) as processes:
            system = ShadowSystem(plane, processes)
            system.start(yaml.safe_dump(_config_map(configuration)))
            _submit(plane, system, options)
            time.sleep(_LATE_SECONDS)
            system.check()
            counts = system.counts()
            sys.stdout.write(table(counts, system.differences()))
            return int(not is_enough(counts))
    finally:
        postgres.stop()


def _config_map(configuration: JsonObject) -> JsonObject:
    """Return the ConfigMap from which a Kueue in a pod reads its Configuration."""
    metadata = {"namespace": KUEUES_NAMESPACE, "name": "kueue-manager-config"}
    data = {"controller_manager_config.yaml": yaml.safe_dump(configuration)}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def _submit(plane: ControlPlane, system: ShadowSystem, options: argparse.Namespace) -> None:
    """Make the jobs at their rate, and print the counts each minute."""
    began = told = time.monotonic()
    for number, manifests in enumerate(load.arrivals(options.seed)):
        due = began + number / options.rate
        if due - began >= options.minutes * 60:
            return
        time.sleep(max(0.0, due - time.monotonic()))
        for manifest in manifests:
            plane.admin.create(_KINDS[manifest["kind"]], manifest)
        if time.monotonic() - told >= _NEWS_SECONDS:
            told = time.monotonic()
            system.check()
            counts = system.counts()
            sys.stdout.write(f"{number + 1} jobs: {counts['agreed']} decisions agree, {counts['differed']} differ\n")
            sys.stdout.flush()
