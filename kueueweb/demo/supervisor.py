"""Starts the demo's processes, keeps them running, and stops them all."""

import contextlib
import subprocess
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self

from kueueweb.demo.processes import Process
from kueueweb.embedded import children
from kueueweb.embedded.errors import ServerUnavailable

_MAX_DELAY_SECONDS = 30.0
_STAYED_UP_SECONDS = 60.0  # a process that ran for at least this long restarts at once
_LOG_TAIL_BYTES = 3_000


class Server(Protocol):
    """PostgreSQL or Valkey, as the embedded launchers have them."""

    @property
    def running(self) -> bool:
        """Whether the server was started and has not ended."""

    def start(self) -> None:
        """Start the server on its existing data. Raises ServerUnavailable."""


class ProcessBroken(Exception):
    """A step did not end well. The message holds the end of its log."""


class BackOff:
    """When an ended process starts again: at once, and then after twice as long each time that it does not stay up."""

    def __init__(self) -> None:
        self.failures = 0
        """How often the process has ended in a row without staying up."""
        self._started_at = time.monotonic()
        self.due_at: float | None = None
        """The time of the next start; None while the process runs."""

    def ended(self) -> float:
        """Record the end; return the seconds until the next start."""
        now = time.monotonic()
        self.failures = 0 if now - self._started_at >= _STAYED_UP_SECONDS else self.failures + 1
        delay = min(2.0 ** (self.failures - 2), _MAX_DELAY_SECONDS) if self.failures > 1 else 0.0
        self.due_at = now + delay
        return delay

    @property
    def is_due(self) -> bool:
        """Return whether it is time to start."""
        return self.due_at is not None and time.monotonic() >= self.due_at

    def started(self) -> None:
        self._started_at, self.due_at = time.monotonic(), None


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
        self._ending: dict[Process, subprocess.Popen[bytes]] = {}
        self._servers: dict[str, Server] = {}
        self._back_offs: dict[str, BackOff] = defaultdict(BackOff)
        logs.mkdir(parents=True, exist_ok=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def run(self, process: Process) -> None:
        """Run a process that ends by itself. Raises ProcessBroken if it fails."""
        if self._start(process).wait() != 0:
            raise ProcessBroken(self._last_words(process))

    def start(self, process: Process) -> None:
        """Start a process that is restarted when it ends."""
        self._running[process] = self._start(process)

    def start_once(self, process: Process) -> None:
        """Start a process that ends by itself while the others run. It is never started again."""
        self._ending[process] = self._start(process)

    def keep(self, name: str, server: Server) -> None:
        """Restart a running server whenever it ends. The code that started it stops it."""
        self._servers[name] = server

    def watch(self, stop: threading.Event) -> None:
        """Restart processes that end, until `stop`."""
        while not stop.wait(0.5):
            self.revive()

    def revive(self) -> None:
        """Restart ended processes, with a growing delay for a process that keeps ending. A process that was started
        once and failed is only reported."""
        for process in [found for found, child in self._ending.items() if child.poll() is not None]:
            code = self._ending.pop(process).returncode
            if code:
                self._say(f"{process.name} ended with {code} ({self._log(process)})")
        for name, server in self._servers.items():
            if not server.running and self._is_due(name, "has ended"):
                self._start_server(name, server)
        for process, child in self._running.items():
            if child.poll() is not None and self._is_due(process.name, f"ended with {child.returncode}"):
                self._running[process] = self._start(process)
                self._back_offs[process.name].started()

    def revive_until(self, failures: int) -> None:
        """Restart ended processes. Raises ProcessBroken once a process has ended this often without staying up."""
        self.revive()
        for process in self._running:
            back_off = self._back_offs.get(process.name)
            if back_off is not None and back_off.failures >= failures:
                raise ProcessBroken(self._last_words(process))

    def pid(self, name: str) -> int | None:
        """Return the process of that name, while it runs."""
        children_of_name = (child for process, child in self._running.items() if process.name == name)
        return next((child.pid for child in children_of_name if child.poll() is None), None)

    def end(self, name: str) -> None:
        """Stop the process with that name for good. `watch` must not run meanwhile."""
        for process in [found for found in self._running if found.name == name]:
            children.stop(self._running.pop(process))

    def all_running(self) -> bool:
        """Return whether no process waits for a restart."""
        servers = all(server.running for server in self._servers.values())
        return servers and all(child.poll() is None for child in self._running.values())

    def stop(self) -> None:
        """Stop everything, last started first."""
        while self._ending:
            children.stop(self._ending.popitem()[1])
        while self._running:
            _, child = self._running.popitem()
            children.stop(child)

    def _is_due(self, name: str, what: str) -> bool:
        back_off = self._back_offs[name]
        if back_off.due_at is None:
            delay = back_off.ended()
            when = f"in {delay:g} s" if delay else "now"
            self._say(f"{name} {what} and is restarted {when} ({self._logs / name}.log)")
        return back_off.is_due

    def _start_server(self, name: str, server: Server) -> None:
        back_off = self._back_offs[name]
        try:
            server.start()
        except ServerUnavailable:  # a remnant of the killed server may still hold its data
            back_off.ended()
        else:
            back_off.started()

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
        return f"{process.name} is not running. The end of {log}:\n{text}"
