"""The whole product, and faults that happen to it one after the other."""

from __future__ import annotations

import contextlib
import os
import shutil
import struct
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from foundation.heartbeat import WRONG_CLOCK_SECONDS
from kueueweb.embedded.postgres import Postgres, find_binaries
from tests.acceptance.crash.rest import Account
from tests.acceptance.crash.run import TIME_SCALE, Work, at_work
from tests.acceptance.crash.stack import Stack
from tests.acceptance.crash.verdict import faults
from tests.faults.loads import MANIFESTS, NAMESPACE, POD_SETS, Load
from tests.faults.network import Network

STOP_SECONDS: Final = float(os.environ.get("STOP_SECONDS", "120"))
"""How long a process is stopped while nothing else happens."""
FAULT_SECONDS: Final = float(os.environ.get("FAULT_SECONDS", "30"))
"""How long other faults last."""
LIMIT_SECONDS: Final = 30.0
"""Decisions are made again so soon after a fault has ended, where each process has a core's time."""
_JOBS: Final = 40
"""Jobs of every kind that run beside the faults."""
_PATIENCE_SECONDS: Final = 600.0
_DISK_MIB: Final = 1024
_POLL_SECONDS: Final = 0.5
_BURN_SECONDS: Final = 0.3


@dataclass(frozen=True, slots=True)
class Cell:
    """The outcome of a fault under a load."""

    fault: str
    target: str
    load: str
    decided_after: float
    """Seconds from the end of the fault to the next admission."""
    slowness: float
    """By how much this machine was slower then than a free one."""
    shown: bool
    faults: tuple[str, ...]
    test: str

    @property
    def in_time(self) -> bool:
        """Whether decisions were made again soon enough."""
        return self.decided_after < LIMIT_SECONDS * self.slowness


@dataclass(slots=True)
class Run:
    """A stack with tenants at work, to which faults happen one after the other."""

    stack: Stack
    work: Work
    admin: Account
    network: Network
    folder: Path
    disk_is_small: bool
    clock: Path | None
    """The file with the offset of the processes' clocks, if they have such clocks."""
    cells: list[Cell] = field(default_factory=list)
    _close: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)

    def suffer(
        self,
        fault: str,
        target: str,
        load: str,
        happening: contextlib.AbstractContextManager[object],
        seconds: float = FAULT_SECONDS,
    ) -> Cell:
        """Let a fault happen and end; how long decisions took then, and whether it was shown while it lasted."""
        self.stack.wait_until_up()
        self._wait_until_well()
        self.decide()
        work = Load(load, self.admin, len(self.cells))
        work.prepare()
        with happening:
            work.start()
            shown = self._is_shown(seconds)
        decided_after, slowness = self.decide(), self.slowness()
        work.join()
        self.stack.wait_until_up()
        found = tuple(self._lasting_faults(work))
        work.end(self.stack.postgres.url())
        test = os.environ.get("PYTEST_CURRENT_TEST", "").rpartition("::")[2].removesuffix(" (call)")
        cell = Cell(fault, target, load, decided_after, slowness, shown, found, test)
        self.cells.append(cell)
        return cell

    def _lasting_faults(self, work: Load) -> list[str]:
        """List the problems that are left when all processes had time to settle."""
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while (found := list(work.faults(self.stack.postgres.url()))) and time.monotonic() < deadline:
            time.sleep(1.0)
        return found

    def decide(self) -> float:
        """Submit a workload that fits; after how many seconds it is admitted."""
        began = time.monotonic()
        name = f"probe-{len(self.cells)}-{time.monotonic_ns()}"
        body = {"namespace": NAMESPACE, "name": name, "local_queue": "probe", "pod_sets": POD_SETS}
        path = f"workloads/{NAMESPACE}/{name}/"
        while not _is_admitted(self.admin.call("GET", path).body):
            self.admin.call("POST", "workloads/", body)
            if time.monotonic() - began > _PATIENCE_SECONDS:
                raise TimeoutError(f"{name} was not admitted in {_PATIENCE_SECONDS:.0f} s")
            time.sleep(_POLL_SECONDS)
        seconds = time.monotonic() - began
        self.admin.patiently("POST", f"{path}cancel/", seconds=_PATIENCE_SECONDS)
        return seconds

    @staticmethod
    def slowness() -> float:
        """How many times longer a computation takes than it would with a core of its own."""
        began, used = time.monotonic(), time.thread_time()
        while time.thread_time() - used < _BURN_SECONDS:
            pass
        return max(1.0, (time.monotonic() - began) / _BURN_SECONDS)

    def _is_shown(self, seconds: float) -> bool:
        """Whether `/readyz` or the overview shows that something is wrong, at some time while the fault lasts."""
        deadline, shown = time.monotonic() + seconds, False
        while time.monotonic() < deadline:
            shown = shown or self._shows_a_fault()
            time.sleep(_POLL_SECONDS)
        return shown

    def _shows_a_fault(self) -> bool:
        ready = self.admin.raw("GET", "/readyz?verbose")
        overview = self.admin.call("GET", "overview/")
        return ready.status != 200 or overview.status != 200 or _shows_one(overview.body["health"])

    def _wait_until_well(self) -> None:
        """Until no page shows a fault any more."""
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while self._shows_a_fault():
            if time.monotonic() > deadline:
                raise TimeoutError(f"a fault is still shown after {_PATIENCE_SECONDS:.0f} s")
            time.sleep(_POLL_SECONDS)

    def set_clock(self, seconds: int) -> None:
        """Have the clocks of all processes be wrong by so much."""
        assert self.clock is not None
        with self.clock.open("r+b") as file:
            file.write(struct.pack("l", seconds))

    def verdict(self) -> list[str]:
        """End the work, and say what was lost or is wrong."""
        self._close.close()
        return list(faults(self.stack, self.work.admin, self.work.tenants))

    def replica(self) -> Postgres:
        """A running copy of the database's server, which is told each commit before its client is."""
        folder = self.folder / "replica"
        copy = Postgres(folder, durable=True)
        primary = self.stack.postgres
        folder.mkdir()
        shutil.chown(folder, primary.directory.owner())
        command = (find_binaries() / "pg_basebackup", "-h", primary.directory, "-U", "kueueweb", "-D", copy.data, "-R")
        subprocess.run(command, check=True, capture_output=True, user=primary.directory.owner())
        copy.start()
        return copy


def _is_admitted(found: Any) -> bool:
    return isinstance(found, dict) and found.get("status") == "Admitted"


def _shows_one(health: Mapping[str, Any]) -> bool:
    """Whether a process of ours is not alive, or has a wrong clock."""
    parts = [health["scheduler"], health["watcher"], *health["roles"]]
    clocks = [role["clock_ahead_seconds"] or 0.0 for role in health["roles"]]
    return not all(part["alive"] for part in parts) or any(abs(ahead) > WRONG_CLOCK_SECONDS for ahead in clocks)


@contextlib.contextmanager
def running(folder: Path, say: Callable[[str], None]) -> Iterator[Run]:
    """The whole product with a standby, and tenants at work. Between it and its servers is a network that can be
    cut."""
    disk = folder / "postgres"
    disk.mkdir()
    with contextlib.ExitStack() as whole:
        small = _mount(disk)
        if small:
            whole.callback(subprocess.run, ("umount", "--lazy", str(disk)), check=False)
        network = whole.enter_context(Network())
        preload = _clock(folder)
        clock = folder / "clock" if preload else None
        stacks: list[Stack] = []

        def variables(process: str) -> Mapping[str, str]:
            if process == "simulated-cluster":
                return {}
            return {**_addresses(network, stacks[0], folder / process, process), **preload}

        stack = Stack(
            folder, say, TIME_SCALE, webhook=True, standby=True, variables=variables, patience_seconds=_PATIENCE_SECONDS
        )
        stacks.append(stack)
        whole.enter_context(stack)
        working = contextlib.ExitStack()
        whole.enter_context(working)
        work = working.enter_context(at_work(stack, seed=1, jobs=_JOBS))
        admin = Account(stack.server, "admin", "admin")
        while not admin.call("POST", "manifests/", MANIFESTS.encode(), "application/yaml").acknowledged:
            time.sleep(_POLL_SECONDS)
        yield Run(stack, work, admin, network, folder, small, clock, _close=working)


def _addresses(network: Network, stack: Stack, folder: Path, process: str) -> dict[str, str]:
    """The servers as a process reaches them."""
    socket = ".s.PGSQL.5432"
    database = network.relay_socket(
        process, "postgres", folder / socket, lambda: stack.postgres.directory / socket
    ).parent
    valkey = network.relay_socket(process, "valkey", folder / "valkey.sock", lambda: stack.valkey.socket)
    port = network.relay_port(process, "cluster", lambda: int(stack.cluster.rpartition(":")[2]))
    return {
        "DATABASE_URL": f"postgresql:///kueueweb?host={quote(str(database), safe='')}&user=kueueweb",
        "REDIS_URL": f"unix://{valkey}?db=0",
        "KUBERNETES_API_URL": f"http://127.0.0.1:{port}",
    }


def _clock(folder: Path) -> dict[str, str]:
    """The variables that give a process a clock that can be wrong; none where there is no compiler."""
    compiler = shutil.which("cc")
    if compiler is None:
        return {}
    library = folder / "clock.so"
    source = Path(__file__).with_name("clock.c")
    subprocess.run((compiler, "-shared", "-fPIC", "-O2", "-o", library, source), check=True)
    (folder / "clock").write_bytes(struct.pack("l", 0))
    return {"LD_PRELOAD": str(library), "CLOCK_OFFSET": str(folder / "clock")}


def _mount(disk: Path) -> bool:
    """Give the database a small disk of its own; only root can."""
    command = ("mount", "-t", "tmpfs", "-o", f"size={_DISK_MIB}m", "tmpfs", str(disk))
    return os.geteuid() == 0 and subprocess.run(command, check=False, capture_output=True).returncode == 0
