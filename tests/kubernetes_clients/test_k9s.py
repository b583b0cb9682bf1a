"""k9s in a terminal, against the web process."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import termios
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Final

import pytest

from tests.kubernetes.test_kubectl import Kubectl, start_pod
from tests.kubernetes_clients.conftest import surroundings

pytestmark = pytest.mark.django_db(transaction=True)

_PATIENCE_SECONDS: Final = 120
_ROWS_AND_COLUMNS: Final = (50, 200)
_CONTROL: Final = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]|\x1b[()][A-Z0-9]|\x1b[=>]")


class Terminal:
    """A terminal in which a program runs."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._written = b""

    def press(self, key: str) -> None:
        """Press a key. Earlier output is forgotten."""
        self._written = b""
        os.write(self._descriptor, key.encode())

    def shows(self, text: str) -> None:
        """Wait until the program has written a text. It draws changed letters only: ask for new words."""
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while text not in self.output():
            assert time.monotonic() < deadline, f"{text!r} is not in {self.output()!r}"
            if select.select([self._descriptor], [], [], 0.2)[0]:
                self._written += os.read(self._descriptor, 65_536)

    def output(self) -> str:
        """The output since the last key, with one space between its words."""
        return re.sub(r"\s+", " ", _CONTROL.sub(" ", self._written.decode(errors="replace")))


@contextmanager
def terminal(command: list[str], environment: dict[str, str]) -> Iterator[Terminal]:
    """A program in a terminal of 200 columns; the end of the context kills it."""
    child, descriptor = pty.fork()
    if child == 0:
        os.execve(command[0], command, environment)
    try:
        fcntl.ioctl(descriptor, termios.TIOCSWINSZ, struct.pack("HHHH", *_ROWS_AND_COLUMNS, 0, 0))
        yield Terminal(descriptor)
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        os.close(descriptor)


Start = Callable[..., AbstractContextManager[Terminal]]


@pytest.fixture
def k9s(kubectl: Kubectl, program: Callable[[str], str], tmp_path: Path) -> Start:
    """Starts k9s as a user with a view."""
    environment = {**surroundings(tmp_path), "K9S_CONFIG_DIR": str(tmp_path / "k9s"), "K9S_LOGS_DIR": str(tmp_path)}

    def start(user: str, view: str, *options: str) -> AbstractContextManager[Terminal]:
        config = ["--kubeconfig", str(tmp_path / "kubeconfig"), "--context", user]
        return terminal([program("k9s"), *config, "--command", view, *options], environment)

    return start


def test_views(k9s: Start) -> None:
    for view, options, texts in (
        ("kwl", ("-A",), ("workloads( all )[ 3 ]", "RESERVED IN", "job-third-")),
        ("clusterqueues", (), ("research company BestEffortFIFO 1 2",)),
        ("jobs", ("-n", "team-a"), ("jobs( team-a )[ 3 ]", "second 0/2")),
        ("namespaces", (), ("team-a", "team-b")),
    ):
        with k9s("alice", view, *options) as screen:
            for text in texts:
                screen.shows(text)


def test_pods(k9s: Start) -> None:
    start_pod("first")
    with k9s("bob", "pods", "-n", "team-a") as screen:
        screen.shows("first-0")
        screen.shows("Running")


def test_describe(k9s: Start) -> None:
    with k9s("bob", "clusterqueues") as screen:
        screen.shows("research company")
        screen.press("d")
        screen.shows("Queueing Strategy : BestEffortFIFO")
