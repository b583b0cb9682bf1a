"""Helm itself on the chart of deploy/helm."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

import yaml

ROOT: Final = Path(__file__).resolve().parents[2]
HELM: Final = ROOT / ".run" / "helm" / "helm"
CHART: Final = ROOT / "deploy" / "helm" / "kueueweb"
Object = dict[str, Any]
Key = tuple[str, str, str]


def helm(*arguments: str, kubeconfig: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run Helm with folders of its own; its output is the caller's to judge."""
    with tempfile.TemporaryDirectory() as folder:
        told = dict.fromkeys(("HELM_CACHE_HOME", "HELM_CONFIG_HOME", "HELM_DATA_HOME", "HOME"), folder)
        told["KUBECONFIG"] = str(kubeconfig or Path(folder) / "none")
        return subprocess.run(
            [str(HELM), *arguments],
            env={**os.environ, **told},
            check=False,
            text=True,
            capture_output=True,
            timeout=180,
        )


def rendered(*arguments: str, namespace: str = "kueueweb", with_tests: bool = False) -> list[Object]:
    """The objects of `helm template`; with the pod of `helm test`, if asked."""
    skipped = () if with_tests else ("--skip-tests",)
    done = helm("template", "kueueweb", str(CHART), "--namespace", namespace, *skipped, *arguments)
    assert done.returncode == 0, done.stderr
    return [item for item in yaml.safe_load_all(done.stdout) if item]


def sets(**values: object) -> list[str]:
    """Arguments for values; `__` stands for a dot."""
    return [f"--set={name.replace('__', '.')}={value}" for name, value in values.items()]


def by_name(objects: Iterable[Object]) -> dict[Key, Object]:
    found: dict[Key, Object] = {}
    for item in objects:
        key = (item["kind"], item["metadata"].get("namespace", ""), item["metadata"]["name"])
        assert key not in found, key
        found[key] = item
    return found


def pods(objects: Iterable[Object]) -> dict[str, Object]:
    """The pod templates of Deployments by name."""
    return {each["metadata"]["name"]: each["spec"]["template"] for each in objects if each["kind"] == "Deployment"}
