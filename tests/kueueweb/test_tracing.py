"""Traces without a receiver, and other packages that a process imports when it needs them; with a receiver:
tests/e2e/test_traces.py.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
_PROGRAM = """
import sys, kueueweb.asgi, scheduler.tasks, clusters.tasks, clusters.sync.watcher
parts = ("opentelemetry.exporter", "opentelemetry.sdk.trace", "opentelemetry.proto", "google.protobuf", "kubernetes")
print(sorted(name for name in sys.modules if name.startswith(parts)))
"""


def test_no_process_imports_the_packages_of_traces_and_clusters_before_it_needs_them() -> None:
    environment = {
        "PATH": os.environ["PATH"], "DEMO": "true", "SECRET_KEY": "x", "DATABASE_URL": "postgresql:///never-asked",
        "DJANGO_SETTINGS_MODULE": "kueueweb.settings",
    }  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout.strip()) == (0, "[]"), done.stderr
