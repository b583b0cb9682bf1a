"""`manage.py demo` from start to end, however it ends: nothing stays behind, and it starts again on what is there."""

import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.request import urlopen

import psutil
import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from pytest_django import Settings

from kueueweb.embedded.sockets import free_port
from tests.patience import PATIENCE_SECONDS
from tests.services_plugin import short_temporary_folder

ROOT = Path(__file__).resolve().parents[3]
GIVEN = ("DATABASE_URL", "REDIS_URL", "SECRET_KEY", "DJANGO_SETTINGS_MODULE")  # the tests' own; the demo brings its own


class Demo:
    """The command as a shell would run it, with its state in a folder of the test's."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        environment = {name: value for name, value in os.environ.items() if name not in GIVEN}
        self.process = subprocess.Popen(
            [sys.executable, "manage.py", "demo", "--port", str(free_port()), *arguments],
            cwd=ROOT,
            env={**environment, "TMPDIR": str(folder), "PYTHONUNBUFFERED": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self.said = ""

    def address(self) -> str:
        """Where it says that it is, once it is there."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.said += line
            if found := re.search(r"kueueweb is at (\S+)", line):
                return found[1]
        raise AssertionError(f"the demo ended without a page:\n{self.said}")

    def family(self) -> list[psutil.Process]:
        """All that it has started, and what those have."""
        return psutil.Process(self.process.pid).children(recursive=True)

    def end(self, wish: signal.Signals) -> int:
        """Its exit code."""
        self.process.send_signal(wish)
        self.said += self.process.communicate(timeout=60)[0]
        return self.process.returncode


@pytest.fixture
def folder() -> Iterator[Path]:
    with short_temporary_folder() as path:
        yield path


def test_it_ends_cleanly_and_starts_again(folder: Path) -> None:
    first = Demo(folder)
    with urlopen(f"{first.address()}/readyz") as answer:
        assert answer.status == 200
    family = first.family()
    assert len(family) >= 8  # PostgreSQL and its own, Valkey, web, simulated cluster, run, studio, webhook
    assert first.end(signal.SIGINT) == 0, first.said
    assert [process for process in family if process.is_running()] == []

    second = Demo(folder, "--empty")
    second.address()
    family = second.family()
    assert "demo_jobs" not in str([process.cmdline() for process in family]), "it submits no jobs of its own"
    second.end(signal.SIGKILL)
    _, left = psutil.wait_procs(family, timeout=PATIENCE_SECONDS)
    assert left == []


def test_a_second_one_is_refused(folder: Path) -> None:
    first = Demo(folder, "--empty")  # the second one looks at the folder's lock, not at the content
    first.address()
    second = Demo(folder)
    assert second.process.wait(timeout=60) != 0
    assert second.process.stdout is not None
    assert "already running" in second.process.stdout.read()
    assert first.end(signal.SIGTERM) == 0, first.said


def test_a_port_in_use_is_reported(folder: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        demo = Demo(folder, "--port", str(port))
        assert demo.process.wait(timeout=60) != 0
        assert demo.process.stdout is not None
        assert f"Port {port}" in demo.process.stdout.read()


def test_a_front_end_that_is_not_built_is_reported_before_anything_starts(tmp_path: Path, settings: Settings) -> None:
    settings.FRONTEND_DIST = tmp_path
    with pytest.raises(CommandError, match=r"The front end is not built\. Run `make demo`"):
        call_command("demo")
