"""The whole product with the simulated cluster, on servers that keep what they were told, under its supervisor."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final, Self
from urllib.error import URLError
from urllib.request import urlopen

from kueueweb.demo.processes import environment, processes, seed
from kueueweb.demo.supervisor import Supervisor
from kueueweb.embedded.postgres import Postgres
from kueueweb.embedded.sockets import free_port
from kueueweb.embedded.valkey import Valkey

ROOT: Final = Path(__file__).resolve().parents[3]
VICTIMS: Final = ("web", "scheduler", "push", "watcher", "beat", "postgres", "postgres-backend", "valkey")
"""The simulated cluster is not among them: it stands for a cluster whose own store is somebody else's to keep."""


class Stack:
    """Every process; `kill` ends one by kill -9, and the supervisor starts it again."""

    def __init__(self, folder: Path, say: Callable[[str], None], time_scale: float, *, webhook: bool = False) -> None:
        """With `webhook` the simulated cluster asks ours, and it is killed like the others."""
        folder.chmod(0o711)  # started by root, PostgreSQL runs as another user and has to reach its own folder
        self._folder = folder
        self._say = say
        self._time_scale = time_scale
        self._open = contextlib.ExitStack()
        self._stopped = threading.Event()
        self._port, self._cluster_port = free_port(), free_port()
        self._webhook_port = free_port() if webhook else None
        self.victims = (*VICTIMS, "webhook") if webhook else VICTIMS
        self.postgres = Postgres(folder / "postgres", durable=True)
        self.valkey = Valkey(folder / "valkey")
        self.logs = folder / "logs"
        self.kills: Counter[str] = Counter()
        self.server = f"http://127.0.0.1:{self._port}"
        self.cluster = f"http://127.0.0.1:{self._cluster_port}"

    def __enter__(self) -> Self:
        with contextlib.ExitStack() as stack:
            for server in (self.valkey, self.postgres):
                stack.callback(server.stop)
                server.start()
            self._supervisor = stack.enter_context(Supervisor(ROOT, self._told(), self.logs, self._say))
            self._supervisor.run(seed())
            self._supervisor.keep("postgres", self.postgres)
            self._supervisor.keep("valkey", self.valkey)
            for process in processes(
                host="127.0.0.1",
                port=self._port,
                cluster_port=self._cluster_port,
                time_scale=self._time_scale,
                snapshot=self._folder / "cluster.json",
                webhook_port=self._webhook_port,
            ):
                if process.name != "jobs":
                    self._supervisor.start(process)
            thread = threading.Thread(target=self._supervisor.watch, args=(self._stopped,), name="supervisor")
            thread.start()
            stack.callback(thread.join)
            stack.callback(self._stopped.set)
            self.wait_until_up()
            self._open = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def _told(self) -> dict[str, str]:
        return environment(
            os.environ,
            database_url=self.postgres.url(),
            redis_url=self.valkey.url(),
            secret_key="random-kills-of-a-private-stack-0123456789",
            cluster_port=self._cluster_port,
        )

    def wait_until_up(self, seconds: float = 90.0) -> None:
        """Until every process runs and the server says that it is ready."""
        deadline = time.monotonic() + seconds
        while not (self._supervisor.all_running() and _answers(f"{self.server}/readyz")):
            if time.monotonic() > deadline:
                raise TimeoutError(f"not everything runs after {seconds:.0f} s")
            time.sleep(0.2)

    def kill(self, victim: str, chance: random.Random) -> bool:
        """kill -9; whether the victim was there to be killed."""
        pid = self._pid(victim, chance)
        if pid is None:
            return False
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
            self.kills[victim] += 1
            self._say(f"kill -9 {victim}")
            return True
        return False

    def _pid(self, victim: str, chance: random.Random) -> int | None:
        match victim:
            case "postgres":
                return self.postgres.pid if self.postgres.running else None
            case "valkey":
                return self.valkey.pid if self.valkey.running else None
            case "postgres-backend":
                found = self._backends()
                return chance.choice(found) if found else None
        return self._supervisor.pid(victim)

    def _backends(self) -> list[int]:
        """The processes of PostgreSQL other than the first; the death of any of them makes it recover."""
        parent = self.postgres.pid if self.postgres.running else None
        children = Path(f"/proc/{parent}/task/{parent}/children")
        if parent is None or not children.exists():
            return []
        return [int(pid) for pid in children.read_text().split()]

    def manage(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """A command of the product on this stack."""
        command = (sys.executable, "manage.py", *arguments)
        return subprocess.run(command, cwd=ROOT, env=self._told(), capture_output=True, text=True, check=False)


def _answers(url: str) -> bool:
    try:
        with urlopen(url, timeout=5):
            return True
    except (URLError, OSError):
        return False


def kill_at_random(
    stack: Stack, seconds: float, chance: random.Random, mean_pause: float, stopped: threading.Event
) -> None:
    """Kills one after the other, each as often as any other, with pauses of half to one and a half of the mean."""
    deadline = time.monotonic() + seconds
    for victim in _shuffled(stack.victims, chance):
        if stopped.wait(mean_pause * chance.uniform(0.5, 1.5)) or time.monotonic() > deadline:
            return
        stack.kill(victim, chance)


def _shuffled(victims: Sequence[str], chance: random.Random) -> Iterator[str]:
    while True:
        yield from chance.sample(victims, len(victims))
