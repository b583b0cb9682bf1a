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
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, Self
from urllib.error import URLError
from urllib.request import urlopen

import psycopg

from kueueweb.demo.processes import Process, environment, processes, seed
from kueueweb.demo.supervisor import Supervisor
from kueueweb.embedded.postgres import Postgres
from kueueweb.embedded.sockets import free_port
from kueueweb.embedded.valkey import Valkey

ROOT: Final = Path(__file__).resolve().parents[3]
VICTIMS: Final = ("web", "scheduler", "push", "watcher", "beat", "postgres", "postgres-backend", "valkey")
"""The simulated cluster is not among them: it stands for a cluster whose own store is somebody else's to keep."""


class Stack:
    """Every process; `kill` ends one by kill -9, and the supervisor starts it again."""

    def __init__(
        self,
        folder: Path,
        say: Callable[[str], None],
        time_scale: float,
        *,
        webhook: bool = False,
        standby: bool = False,
        root: Path = ROOT,
        variables: Callable[[str], Mapping[str, str]] = lambda process: {},
        patience_seconds: float = 90.0,
    ) -> None:
        """With `webhook` the simulated cluster asks ours, and it is killed like the others. With `standby` a second
        scheduler waits for its turn. `root` holds the release that runs. `variables` are those of one process. It may
        take `patience_seconds` until everything runs."""
        folder.chmod(0o711)  # started by root, PostgreSQL runs as another user and has to reach its own folder
        self._folder = folder
        self._say = say
        self._time_scale = time_scale
        self._open = contextlib.ExitStack()
        self._root = root
        self._variables = variables
        self._patience_seconds = patience_seconds
        self._standby = standby
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
            self._supervisor = stack.enter_context(self._new_supervisor())
            self._supervisor.run(seed())
            for process in self._processes():
                self._supervisor.start(process)
            self._watch()
            stack.callback(self._stop_watching)
            self.wait_until_up()
            self._open = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def upgrade(self) -> None:
        """Replace the processes by those of this release, one after the other, the web last. The simulated cluster
        stays: it stands for one that is not upgraded with us."""
        self._stop_watching()
        before, self._root = self._supervisor, ROOT
        self._supervisor = self._open.enter_context(self._new_supervisor())
        for process in sorted(self._processes(), key=lambda found: found.name == "web"):
            if process.name != "simulated-cluster":
                self._say(f"{process.name} is replaced")
                before.end(process.name)
                self._supervisor.start(process)
        self._watch()
        self._open.callback(self._stop_watching)
        self.wait_until_up()

    def _new_supervisor(self) -> Supervisor:
        supervisor = Supervisor(self._root, self._told(), self.logs, self._say)
        supervisor.keep("postgres", self.postgres)
        supervisor.keep("valkey", self.valkey)
        return supervisor

    def _processes(self) -> list[Process]:
        found = processes(
            host="127.0.0.1",
            port=self._port,
            cluster_port=self._cluster_port,
            time_scale=self._time_scale,
            snapshot=self._folder / "cluster.json",
            webhook_port=self._webhook_port,
        )
        found = [process for process in found if process.name != "jobs"]
        scheduler = next(process for process in found if process.name == "scheduler")
        command = tuple("standby@%h" if part == "scheduler@%h" else part for part in scheduler.command)
        found += [Process("standby", command)] if self._standby else []
        return [Process(process.name, (*self._own(process.name), *process.command)) for process in found]

    def _own(self, process: str) -> tuple[str, ...]:
        """The beginning of a command that gives a process the variables of its own."""
        variables = self._variables(process)
        return ("env", *(f"{name}={value}" for name, value in variables.items())) if variables else ()

    def fail_over(self, replica: Postgres) -> None:
        """Have another server take the place of PostgreSQL, which is not started again."""
        replaced, self.postgres = self.postgres, replica
        self._supervisor.keep("postgres", replica)
        self._open.callback(replica.stop)
        if replaced.running and replaced.pid:
            os.kill(replaced.pid, signal.SIGKILL)

    def _watch(self) -> None:
        self._stopped.clear()
        self._watching = threading.Thread(target=self._supervisor.watch, args=(self._stopped,), name="supervisor")
        self._watching.start()

    def _stop_watching(self) -> None:
        self._stopped.set()
        self._watching.join()

    def _told(self) -> dict[str, str]:
        return environment(
            os.environ,
            database_url=self.postgres.url(),
            redis_url=self.valkey.url(),
            secret_key="random-kills-of-a-private-stack-0123456789",
            cluster_port=self._cluster_port,
        )

    def wait_until_up(self) -> None:
        """Until every process runs and the server says that it is ready."""
        self._wait(lambda: self._supervisor.all_running() and _answers(f"{self.server}/readyz"))

    def wait_until_running(self) -> None:
        """Until the supervisor, which pauses longer each time, has started every process again."""
        self._wait(self._supervisor.all_running)

    def _wait(self, condition: Callable[[], bool]) -> None:
        deadline = time.monotonic() + self._patience_seconds
        while not condition():
            if time.monotonic() > deadline:
                raise TimeoutError(f"not everything runs after {self._patience_seconds:.0f} s")
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

    def pids(self, target: str) -> list[int]:
        """The processes of a target: PostgreSQL's are many, and the leader is whichever scheduler leads."""
        match target:
            case "postgres":
                return [
                    *([self.postgres.pid] if self.postgres.running and self.postgres.pid else []),
                    *self._backends(),
                ]
            case "valkey":
                return [self.valkey.pid] if self.valkey.running and self.valkey.pid else []
            case "leader" | "standby":
                schedulers = [self._supervisor.pid(name) for name in ("scheduler", "standby")]
                leads = self._leader()
                return [pid for pid in schedulers if pid is not None and (pid == leads) is (target == "leader")]
        pid = self._supervisor.pid(target)
        return [] if pid is None else [pid]

    def _leader(self) -> int | None:
        with psycopg.connect(self.postgres.url(), autocommit=True) as session:
            row = session.execute("SELECT holder FROM scheduler_lease ORDER BY renewed_at DESC LIMIT 1").fetchone()
        return int(row[0].rpartition(":")[2]) if row else None

    def manage(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """A command of this release on this stack."""
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
