"""S13: each process without a port shows that its loop turns; a probe looks at how old the sign is."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from accounts.heartbeat import touch_heartbeat

CELERY = [sys.executable, "-m", "celery", "--app", "kueueweb"]
PROCESSES = {
    "push": [*CELERY, "worker", "--queues", "nobody", "--pool", "threads", "--concurrency", "1", "--without-mingle"],
    "scheduler": [*CELERY, "worker", "--queues", "no-one", "--pool", "solo", "--without-mingle"],
    "beat": [*CELERY, "beat"],
}


def test_without_a_file_there_is_no_sign(settings: Any, tmp_path: Path) -> None:
    settings.HEARTBEAT_PATH = ""
    touch_heartbeat()
    settings.HEARTBEAT_PATH = str(tmp_path / "alive")
    touch_heartbeat()
    assert (tmp_path / "alive").exists()


@pytest.mark.parametrize("name", PROCESSES)
def test_a_process_touches_its_file_again_and_again(name: str, tmp_path: Path, live_services: None) -> None:
    alive = tmp_path / "alive"
    environment = {**os.environ, "HEARTBEAT_PATH": str(alive)}
    process = subprocess.Popen(PROCESSES[name], env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    try:
        first = _next_touch(process, alive, 0.0)
        assert _next_touch(process, alive, first) > first
    finally:
        process.kill()
        process.wait()


def _next_touch(process: subprocess.Popen[bytes], alive: Path, before: float) -> float:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        assert process.poll() is None, process.stdout.read() if process.stdout else ""
        if alive.exists() and alive.stat().st_mtime > before:
            return alive.stat().st_mtime
        time.sleep(0.2)
    raise AssertionError("no heartbeat within a minute")
