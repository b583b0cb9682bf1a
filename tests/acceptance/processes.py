"""The product's own processes, on the test's database or another, and a Valkey of their own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Self
from urllib.parse import quote

from django.db import connection

from kueueweb.embedded import children
from kueueweb.embedded.valkey import Valkey
from tests.patience import PATIENCE_SECONDS

ROOT = Path(__file__).resolve().parents[2]


def database_url() -> str:
    """The test's own database, as libpq takes it."""
    settings = connection.settings_dict
    options = {"host": settings["HOST"], "user": settings["USER"], "password": settings["PASSWORD"]}
    if settings["PORT"]:
        options["port"] = settings["PORT"]
    query = "&".join(f"{name}={quote(str(value), safe='')}" for name, value in options.items() if value)
    return f"postgresql:///{settings['NAME']}?{query}"


class Processes:
    """Starts, kills and stops them; what they say goes to files in `folder`."""

    def __init__(self, folder: Path, *, database: str = "") -> None:
        """`database`: another one than the test's, by its URL."""
        self.folder = folder
        self._database = database
        self.valkey = Valkey(folder / "valkey")
        self.settings: dict[str, str] = {}
        """Further environment variables for those that start from now on."""
        self._running: dict[str, subprocess.Popen[bytes]] = {}

    def __enter__(self) -> Self:
        self.valkey.start()
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is not None:
            for name in self._running:
                sys.stdout.write(f"--- the end of what {name} said:\n{self.log(name)[-3000:]}\n")
        for name in list(self._running):
            self.kill(name)
        self.valkey.stop()

    @property
    def environment(self) -> dict[str, str]:
        """What every process is told."""
        return {
            **os.environ,
            "DATABASE_URL": self._database or database_url(),
            "REDIS_URL": self.valkey.url(),
            "PYTHONUNBUFFERED": "1",
            **self.settings,
        }

    @property
    def pids(self) -> dict[str, int]:
        """The ids of the running processes, by name."""
        return {name: child.pid for name, child in self._running.items()}

    def start(self, name: str, *command: str) -> None:
        """Start a process."""
        with (self.folder / f"{name}.log").open("ab") as output:
            self._running[name] = children.start(
                (sys.executable, *command), output=output, environment=self.environment, directory=ROOT
            )

    def start_scheduler(self, name: str = "scheduler", queue: str = "scheduler") -> None:
        """The worker that decides."""
        self.start(name, "-m", "celery", "--app", "kueueweb", "worker", "--queues", queue, "--pool", "solo",
                   "--hostname", f"{name}@%h", "--without-gossip", "--without-mingle", "--without-heartbeat",
                   "--loglevel", "INFO")  # fmt: skip

    def start_push(self) -> None:
        """The worker that tells clusters."""
        self.start("push", "-m", "celery", "--app", "kueueweb", "worker", "--queues", "push", "--pool", "threads",
                   "--concurrency", "4", "--hostname", "push@%h", "--without-gossip", "--without-mingle",
                   "--without-heartbeat", "--loglevel", "INFO")  # fmt: skip

    def start_beat(self) -> None:
        """The tick."""
        self.start("beat", "-m", "celery", "--app", "kueueweb", "beat", "--loglevel", "INFO")

    def terminate(self, name: str, seconds: float = PATIENCE_SECONDS) -> int:
        """SIGTERM, as every supervisor sends it; how the process ended. Raises TimeoutExpired when it does not."""
        child = self._running[name]
        child.send_signal(signal.SIGTERM)
        status = child.wait(seconds)
        del self._running[name]
        return status

    def stop(self, name: str) -> None:
        """SIGSTOP: the process hangs. It is killed at the end like the others."""
        self._running[name].send_signal(signal.SIGSTOP)

    def kill(self, name: str) -> None:
        """kill -9."""
        child = self._running.pop(name)
        child.send_signal(signal.SIGKILL)
        child.wait()

    def kill_valkey(self) -> None:
        """kill -9, and start a new one on the same socket, which remembers nothing."""
        pid = self.valkey.pid
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        self.valkey.stop()
        self.valkey.start()

    def ended(self, name: str) -> bool:
        """Whether a process that was started has ended by itself."""
        return self._running[name].poll() is not None

    def log(self, name: str) -> str:
        """What a process said."""
        return (self.folder / f"{name}.log").read_text(errors="replace")


def wait_for(what: str, condition: Callable[[], bool], seconds: float = PATIENCE_SECONDS) -> None:
    """Until the condition holds; fails with `what` when it does not in time. Other processes do the work."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"{what} did not happen within {seconds:.0f} s")
        time.sleep(0.02)
