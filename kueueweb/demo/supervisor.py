"""Starts the demo's processes, keeps them running, and stops them all."""

import contextlib
import subprocess
import threading
import time
from collections import defaultdict, deque
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self

from kueueweb.demo.processes import Process
from kueueweb.embedded import children
from kueueweb.embedded.errors import ServerUnavailable

_RESTARTS = 5  # within _RESTARTS_SECONDS, before a process counts as broken
_RESTARTS_SECONDS = 60.0
_SERVER_SECONDS = 30.0  # for a server that was killed to start again
_LOG_TAIL_BYTES = 3_000


class Server(Protocol):
    """PostgreSQL or Valkey, as the embedded launchers have them."""

    @property
    def running(self) -> bool:
        """Whether it was started and has not ended."""

    def start(self) -> None:
        """Start it on the data that is there. Raises ServerUnavailable."""


class ProcessBroken(Exception):
    """A process does not stay up. The message holds the end of its log."""


class Supervisor:
    """The running processes; leaving the context stops them in reverse order.

    Their output goes to one file each in `logs`. They die with this process, however it ends.
    """

    def __init__(self, directory: Path, environment: Mapping[str, str], logs: Path, say: Callable[[str], None]) -> None:
        self._directory = directory
        self._environment = environment
        self._logs = logs
        self._say = say
        self._running: dict[Process, subprocess.Popen[bytes]] = {}
        self._servers: dict[str, Server] = {}
        self._down_since: dict[str, float] = {}
        self._ends: dict[str, deque[float]] = defaultdict(lambda: deque(maxlen=_RESTARTS))
        logs.mkdir(parents=True, exist_ok=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def run(self, process: Process) -> None:
        """Run a process that ends by itself. Raises ProcessBroken unless it ends well."""
        if self._start(process).wait() != 0:
            raise ProcessBroken(self._last_words(process))

    def start(self, process: Process) -> None:
        """Start a process that is to stay up."""
        self._running[process] = self._start(process)

    def keep(self, name: str, server: Server) -> None:
        """Start a running server again whenever it ends; who opened it stops it."""
        self._servers[name] = server

    def watch(self, stop: threading.Event) -> None:
        """Start again what ends, until `stop`. Raises ProcessBroken for what does not stay up."""
        while not stop.wait(0.5):
            self.revive()

    def revive(self) -> None:
        """Start again what has ended. Raises ProcessBroken for what ends again and again."""
        for name, server in self._servers.items():
            if not server.running:
                self._revive_server(name, server)
        for process, child in self._running.items():
            if child.poll() is None:
                continue
            if self._ends_too_often(process.name):
                raise ProcessBroken(self._last_words(process))
            self._say(f"{process.name} ended with {child.returncode} and is started again ({self._log(process)})")
            self._running[process] = self._start(process)

    def stop(self) -> None:
        """Stop everything, last started first."""
        while self._running:
            _, child = self._running.popitem()
            children.stop(child)

    def _revive_server(self, name: str, server: Server) -> None:
        if name not in self._down_since:
            self._down_since[name] = time.monotonic()
            self._say(f"{name} has ended and is started again")
            if self._ends_too_often(name):
                raise ProcessBroken(f"{name} does not stay up.")
        try:
            server.start()
        except ServerUnavailable as error:  # what is left of the one that was killed may still hold its data
            if time.monotonic() - self._down_since[name] > _SERVER_SECONDS:
                raise ProcessBroken(str(error)) from error
        else:
            del self._down_since[name]

    def _ends_too_often(self, name: str) -> bool:
        """Note an end; whether it is one too many within the time allowed."""
        ends = self._ends[name]
        ends.append(time.monotonic())
        return len(ends) == _RESTARTS and ends[-1] - ends[0] < _RESTARTS_SECONDS

    def _start(self, process: Process) -> subprocess.Popen[bytes]:
        with self._log(process).open("ab") as output:
            return children.start(
                process.command, output=output, environment=self._environment, directory=self._directory
            )

    def _log(self, process: Process) -> Path:
        return self._logs / f"{process.name}.log"

    def _last_words(self, process: Process) -> str:
        log = self._log(process)
        text = ""
        with contextlib.suppress(OSError):
            text = log.read_bytes()[-_LOG_TAIL_BYTES:].decode(errors="replace").strip()
        return f"{process.name} does not run. The end of {log}:\n{text}"
