"""What is built of a checkout of Kueue, which stays as it is: a copy of it is patched."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_PATCH: Final = Path(__file__).with_name("suite.patch")
_LEFT_OUT: Final = shutil.ignore_patterns(".git", "bin", "node_modules", "artifacts")


@dataclass(frozen=True, slots=True)
class Checkout:
    """A copy of the checkout with `suite.patch` applied, and the programs that are built of it."""

    source: Path
    programs: Path

    @classmethod
    def of(cls, checkout: Path, folder: Path) -> Checkout:
        """Copy and patch, unless the folder has a copy from an earlier run."""
        copy = cls(folder / "kueue", folder / "programs")
        if not copy.source.exists():
            unfinished = folder / "unfinished"
            shutil.rmtree(unfinished, ignore_errors=True)
            shutil.copytree(checkout, unfinished, ignore=_LEFT_OUT, symlinks=True)
            with _PATCH.open("rb") as patch:
                subprocess.run(("patch", "-p1", "--batch"), cwd=unfinished, stdin=patch, check=True)
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

    def configuration(self) -> str:
        """How Kueue's own runs of these suites configure it."""
        return (self.source / "test/e2e/config/default/controller_manager_config.yaml").read_text()

    def nodes(self, shape: str) -> Path:
        """kind's configuration of the cluster that the suites expect: `cluster`, or `cluster-tas`."""
        return self.source / "hack/testing" / f"kind-{shape}.yaml"
