"""Builds the suites of a checkout of Kueue, which stays as it is, from a copy that asks the program in its place."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_HELPERS: Final = "test/util/e2e.go"
_STAND_IN: Final = Path(__file__).with_name("stand_in.go")
_ANSWERS: Final = {
    "RestartKueueController": "configureStandIn(ctx, kindClusterName); return",
    "WaitForActivePodsAndTerminate": (
        "terminateInStandIn(ctx, k8sClient, namespace, activePodsCount, exitCode, opts...); return"
    ),
    "waitForKueueAvailability": "awaitStandIn(ctx, k8sClient); return",
    "waitForDeploymentAvailability": "return",
    "GetKueueMetrics": "return metricsOfStandIn(ctx)",
    "GetClusterServerAddress": "return serverOfContext(clusterName)",
}
"""Helpers of the suites that act on Kueue's Deployment, run a program in a pod or reach another cluster by a name of
Docker's, and the call that replaces each."""
_ANSWERS_OF_SOME: Final = {"WaitForKubeSystemControllersAvailability": "return"}
"""The same of helpers that some versions of the suites do not have."""
_LEFT_OUT: Final = shutil.ignore_patterns(".git", "bin", "node_modules", "artifacts")


@dataclass(frozen=True, slots=True)
class Checkout:
    """A copy of the checkout with the helpers replaced, and the programs that are built of it."""

    source: Path
    programs: Path

    @classmethod
    def of(cls, checkout: Path, folder: Path) -> Checkout:
        """Copy and change, unless the folder has a copy from an earlier run.

        Raises ValueError for a checkout that lacks one of the helpers.
        """
        copy = cls(folder / "kueue", folder / "programs")
        if not copy.source.exists():
            unfinished = folder / "unfinished"
            shutil.rmtree(unfinished, ignore_errors=True)
            shutil.copytree(checkout, unfinished, ignore=_LEFT_OUT, symlinks=True)
            helpers = unfinished / _HELPERS
            helpers.write_text(replaced(helpers.read_text()))
            shutil.copy(_STAND_IN, helpers.parent)
            unfinished.rename(copy.source)
        copy.programs.mkdir(exist_ok=True)
        return copy

    def suite(self, name: str) -> Path:
        """The program of a suite such as singlecluster/baseline, and kubectl-kueue where the suites look for it."""
        self._build(self.source / "bin" / "kubectl-kueue", "build", "./cmd/kueuectl")
        target = self.programs / f"{name.replace('/', '-')}.test"
        return self._build(target, "test", f"./test/e2e/{name}", "-c", "-vet=off")

    def kueue(self) -> Path:
        """Kueue's own program."""
        return self._build(self.programs / "kueue", "build", "./cmd/kueue")

    def _build(self, target: Path, verb: str, package: str, *flags: str) -> Path:
        if not target.exists():
            command = ("go", verb, "-mod=vendor", "-buildvcs=false", "-trimpath", *flags, "-o", str(target), package)
            subprocess.run(command, cwd=self.source, check=True, env={**os.environ, "GOFLAGS": ""})
        return target

    def configuration(self, suite: str) -> str:
        """How Kueue's own runs of a suite configure it."""
        config = self.source / "test/e2e/config"
        last = suite.rpartition("/")[2]
        places = (config / suite, config / last, config / last / "whole-device", config / "default")
        files = [place / "controller_manager_config.yaml" for place in places]
        return next(file for file in files if file.exists()).read_text()

    def nodes(self, shape: str) -> Path:
        """kind's configuration of a cluster that the suites expect, such as `kind-cluster-tas`."""
        return self.source / "hack/testing" / f"{shape}.yaml"


def replaced(helpers: str) -> str:
    """The source of the helpers, which begin with the call that replaces them where the suite runs with a stand-in."""
    for name, answer in (_ANSWERS | _ANSWERS_OF_SOME).items():
        head = re.compile(rf"^func {name}\([^{{]*\{{$", re.MULTILINE)
        helpers, count = head.subn(rf"\g<0>\n\tif standsIn() {{ {answer} }}", helpers)
        if count != 1 and name not in _ANSWERS_OF_SOME:
            raise ValueError(f"{_HELPERS}: the suites of this version have no helper {name}")
    return helpers
