"""Starts the demo's processes, keeps them running, and stops them all."""

import contextlib
import subprocess
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from kueueweb.demo.processes import Process
from kueueweb.embedded import children

_RESTARTS = 5  # within _RESTARTS_SECONDS, before a process counts as broken
_RESTARTS_SECONDS = 60.0
_LOG_TAIL_BYTES = 3_000


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
        self._ends: dict[Process, deque[float]] = {}
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
        self._ends[process] = deque(maxlen=_RESTARTS)

    def watch(self, stop: threading.Event) -> None:
        """Start again what ends, until `stop`. Raises ProcessBroken for what does not stay up."""
        while not stop.wait(0.5):
            self.revive()

    def revive(self) -> None:
        """Start again what has ended. Raises ProcessBroken for what ends again and again."""
        for process, child in self._running.items():
            if child.poll() is None:
                continue
            ends = self._ends[process]
            ends.append(time.monotonic())
            if len(ends) == _RESTARTS and ends[-1] - ends[0] < _RESTARTS_SECONDS:
                raise ProcessBroken(self._last_words(process))
            self._say(f"{process.name} ended with {child.returncode} and is started again ({self._log(process)})")
            self._running[process] = self._start(process)

    def stop(self) -> None:
        """Stop everything, last started first."""
        while self._running:
            _, child = self._running.popitem()
            children.stop(child)

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
