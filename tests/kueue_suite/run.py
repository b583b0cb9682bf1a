"""Runs suites of Kueue's own end-to-end tests with kueueweb in Kueue's place: `make test-kueue-suite KUEUE=DIR`.

    python -m tests.kueue_suite CHECKOUT [--suite NAME ...] [--control] [--parallel N] [--spec FILE[:LINE] ...]

The checkout is a clone of kubernetes-sigs/kueue; Go builds the suites from its vendored sources. Ends with a table of
specs, and with 1 if one failed. With `--control` Kueue's own program decides instead, on the same control plane. Needs
root: the visibility API is served on port 443, and Kueue's program finds its certificates under /etc. Suites that
end in `/extended` run beside the operators of `tests/operators`, without the specs of other kinds of jobs.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

import yaml

from tests.acceptance.processes import ROOT
from tests.kubernetes.control_plane import ADMIN_TOKEN
from tests.kubernetes.real_kueue import definitions_and_roles, install
from tests.kueue_suite.checkout import Checkout
from tests.kueue_suite.control import kueue
from tests.kueue_suite.device_driver import DeviceDriver
from tests.kueue_suite.kueueweb import kueueweb
from tests.kueue_suite.machines import Machines, install_docker
from tests.kueue_suite.plane import AggregatedPlane
from tests.kueue_suite.report import SpecResult, results, table
from tests.kueue_suite.stand_in import Decider, served
from tests.kueue_suite.training_runtime import install_runtime
from tests.operators.released import RELEASES, Release, ReleasedOperator

_FOLDER: Final = ROOT / ".run" / "kueue-suite"
_SUITES: Final = ("singlecluster/baseline",)
_TOPOLOGY_SUITES: Final = "tas/"
_MULTIKUEUE_SUITES: Final = "multikueue/"
_CLUSTER: Final = {"kind": "kind-cluster"}
_CLUSTERS_OF_MULTIKUEUE: Final = {
    "kind-manager": "multikueue/manager-cluster.kind",
    "kind-worker1": "multikueue/worker-cluster.kind",
    "kind-worker2": "multikueue/worker-cluster.kind",
}
"""Names of clusters, as the suites know them -> kind's configurations of them."""
_SIDE_BY_SIDE: Final = "singlecluster/"
"""Specs of other suites share names of objects, or configure Kueue anew."""
_DRIVERS: Final[Mapping[str, DeviceDriver]] = {
    "dra/whole-device": DeviceDriver(),
    "dra/counter": DeviceDriver(partitions=4),
    "dra/capacity": DeviceDriver(is_shared=True),
    "multikueue/dra": DeviceDriver(),
}
"""Suites with devices of a driver."""
_LABELS: Final = "!feature:prometheus"
_WITH_OPERATORS: Final = "/extended"
_TRAINER: Final = "trainer"
_SPEC: Final = re.compile(r"ginkgo\.(?:It|DescribeTable)\(")
_TIMEOUT: Final = "3h"


def main(arguments: Sequence[str]) -> int:
    """Run the suites one after the other, each on a control plane of its own."""
    parser = argparse.ArgumentParser(prog="python -m tests.kueue_suite", description="Kueue's own suites.")
    parser.add_argument("checkout", type=Path, help="a clone of kubernetes-sigs/kueue")
    parser.add_argument("--suite", action="append", help=f"below test/e2e (default: {', '.join(_SUITES)})")
    parser.add_argument("--control", action="store_true", help="with Kueue's own program instead of kueueweb")
    parser.add_argument(
        "--parallel", type=int, default=2, help=f"specs at a time in {_SIDE_BY_SIDE} (default: %(default)s)"
    )
    parser.add_argument("--spec", action="append", help="a file of specs, or one spec by its line")
    options = parser.parse_args(arguments)
    if options.control and any(suite.startswith(_MULTIKUEUE_SUITES) for suite in options.suite or ()):
        parser.error(f"{_MULTIKUEUE_SUITES}: Kueue's own program has one place for its certificates: one runs here")
    _FOLDER.mkdir(parents=True, exist_ok=True)
    checkout = Checkout.of(options.checkout.resolve(), _FOLDER)
    found: list[SpecResult] = []
    for suite in options.suite or _SUITES:
        program = checkout.suite(suite)
        directory = checkout.source / "test/e2e" / suite
        runs = [(spec,) for spec in _specs(directory) if _is_wanted(spec, options.spec)]
        if not suite.startswith(_SIDE_BY_SIDE):
            runs = [tuple(options.spec or ())]
        with _clusters(checkout, suite, control=options.control) as environment:
            found += _run(program, directory, runs, environment, options.parallel, _labels(suite))
        sys.stdout.write(table(found))
    return int(any(result.state != "passed" for result in found))


@contextlib.contextmanager
def _clusters(checkout: Checkout, suite: str, *, control: bool) -> Iterator[Mapping[str, str]]:
    """The clusters of a suite, and in each the program that decides; the environment of specs."""
    program = checkout.kueue() if control else None
    clusters = _CLUSTERS_OF_MULTIKUEUE if suite.startswith(_MULTIKUEUE_SUITES) else _CLUSTER
    if suite.startswith(_TOPOLOGY_SUITES):
        clusters = dict.fromkeys(clusters, "kind-cluster-tas")
    with tempfile.TemporaryDirectory(prefix="suite-") as made, contextlib.ExitStack() as stack:
        folder = Path(made)
        folder.chmod(0o755)  # PostgreSQL runs as another user
        planes = {name: stack.enter_context(_plane(checkout, suite, folder / name)) for name in clusters}
        for name, plane in planes.items():
            plane.add_nodes(checkout.nodes(clusters[name]))
            if suite in _DRIVERS:
                _DRIVERS[suite].install(plane.admin)
        for name, plane in planes.items():
            for release in _releases(suite):
                stack.enter_context(ReleasedOperator(release, plane, folder / name))
                if release.program == _TRAINER:
                    install_runtime(plane.admin)
        (folder / "kubeconfig").write_text(yaml.safe_dump(_kubeconfig(planes)))
        stack.callback(_keep_logs, folder)
        deciders: dict[str, Decider] = {}
        for name, plane in planes.items():
            place = folder / name / "decider"
            if program:
                deciders[name] = stack.enter_context(kueue(plane, checkout.source, program, place))
            else:
                deciders[name] = stack.enter_context(kueueweb(plane, place, is_alone=len(planes) == 1))
        url = stack.enter_context(served(deciders, Machines(planes)))
        yield {
            **os.environ,
            "PATH": f"{install_docker(folder)}:{os.environ['PATH']}",
            "KUBECONFIG": str(folder / "kubeconfig"),
            "KIND_CLUSTER_NAME": next(iter(planes)),
            "KUEUE_STAND_IN": url,
        }


def _releases(suite: str) -> Sequence[Release]:
    """The operators beside which a suite runs in each of its clusters."""
    if not suite.endswith(_WITH_OPERATORS):
        return ()
    return [each for each in RELEASES if not (each.is_alone and suite.startswith(_MULTIKUEUE_SUITES))]


def _labels(suite: str) -> str:
    """The filter of specs: of a suite with operators those of kinds that they run."""
    kinds = [kind for release in _releases(suite) for kind in release.kinds]
    return f"{_LABELS} && ({' || '.join(f'feature:{kind.lower()}' for kind in kinds)})" if kinds else _LABELS


@contextlib.contextmanager
def _plane(checkout: Checkout, suite: str, folder: Path) -> Iterator[AggregatedPlane]:
    """A control plane with Kueue's definitions, roles and Configuration."""
    for name in ("plane", "decider"):
        (folder / name).mkdir(parents=True)
    with AggregatedPlane(folder / "plane") as plane:
        install(plane, definitions_and_roles(checkout.source))
        plane.store_configuration(checkout.configuration(suite))
        yield plane


def _kubeconfig(planes: Mapping[str, AggregatedPlane]) -> dict[str, Any]:
    """The contexts that kind makes, the first of which is the current one."""
    found: dict[str, Any] = {"apiVersion": "v1", "kind": "Config", "clusters": [], "users": [], "contexts": []}
    for name, plane in planes.items():
        context, one = f"kind-{name}", plane.kubeconfig(ADMIN_TOKEN)
        found["clusters"].append({**one["clusters"][0], "name": context})
        found["users"].append({**one["users"][0], "name": context})
        found["contexts"].append({"name": context, "context": {"cluster": context, "user": context}})
    return {**found, "current-context": found["contexts"][0]["name"]}


def _keep_logs(folder: Path) -> None:
    logs = _FOLDER / "logs"
    shutil.rmtree(logs, ignore_errors=True)
    logs.mkdir()
    for log in folder.glob("*/*/*.log"):
        shutil.copy(log, logs / f"{log.parent.parent.name}-{log.name}")


def _specs(directory: Path) -> Iterator[str]:
    """FILE:LINE of each spec of a suite."""
    for file in sorted(directory.glob("*_test.go")):
        for number, line in enumerate(file.read_text().splitlines(), 1):
            if _SPEC.search(line):
                yield f"{file.name}:{number}"


def _is_wanted(spec: str, wanted: Sequence[str] | None) -> bool:
    return not wanted or any(spec == each or spec.startswith(f"{each}:") for each in wanted)


def _run(
    program: Path,
    directory: Path,
    runs: Sequence[Sequence[str]],
    environment: Mapping[str, str],
    parallel: int,
    labels: str,
) -> list[SpecResult]:
    """A process for each run, which mostly waits: of these specs, or of all that the labels choose."""
    reports = _FOLDER / "reports" / directory.parent.name / directory.name
    reports.mkdir(parents=True, exist_ok=True)

    def run(specs: Sequence[str]) -> list[SpecResult]:
        name = specs[0] if len(specs) == 1 else "specs"
        report = reports / f"{name}.json"
        report.unlink(missing_ok=True)
        command: Sequence[str | Path] = (
            program, "--ginkgo.v", "--ginkgo.no-color", f"--ginkgo.timeout={_TIMEOUT}",
            f"--ginkgo.json-report={report}", f"--ginkgo.label-filter={labels}",
            *(f"--ginkgo.focus-file={spec}" for spec in specs),
        )  # fmt: skip
        with (reports / f"{name}.log").open("wb") as output:
            subprocess.run(command, cwd=directory, env=environment, stdout=output, stderr=output, check=False)
        found = results(json.loads(report.read_text()))
        for result in found:
            sys.stdout.write(f"{result.place} {result.state} in {result.seconds} s\n")
            sys.stdout.flush()
        return found

    with ThreadPoolExecutor(parallel) as pool:
        return [result for each in pool.map(run, runs) for result in each]
