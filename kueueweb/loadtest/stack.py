"""A stack for one load test: the product's own processes on separate servers, without a cluster."""

from __future__ import annotations

import contextlib
import json
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

from kueueweb.demo.processes import Process, environment, processes
from kueueweb.demo.supervisor import Supervisor
from kueueweb.embedded.postgres import Postgres
from kueueweb.embedded.sockets import free_port
from kueueweb.embedded.valkey import Valkey
from kueueweb.loadtest.processor import seconds_taken
from kueueweb.loadtest.shape import NAMESPACE

_LIMITS = (
    "MAX_UNFINISHED_PER_NAMESPACE",
    "MAX_UNFINISHED_PER_LOCAL_QUEUE",
    "MAX_UNFINISHED_PER_USER",
    "MAX_SUBMISSIONS_PER_MINUTE",
)
_NEEDED = ("web", "scheduler", "beat")
_START_SECONDS = 300.0
"""On a machine that is busy with other work, a process may need more than a minute to start."""

_FAILURES = 3
"""A process that ends this often before the server answers will not start at all."""


@dataclass(frozen=True, slots=True)
class Stack:
    """The running processes of a load test, and the URL of their server."""

    server: str
    supervisor: Supervisor
    postgres: Postgres
    valkey: Valkey

    def processor_seconds(self) -> Mapping[str, float]:
        """Seconds of processor taken so far, by the name of the process."""
        pids = {name: self.supervisor.pid(name) for name in _NEEDED}
        pids |= {"postgresql": self.postgres.pid, "valkey": self.valkey.pid}
        return {name: seconds_taken(pid) for name, pid in pids.items() if pid is not None}


@contextlib.contextmanager
def private_stack(folder: Path, directory: Path, password: str, say: Callable[[str], None]) -> Iterator[Stack]:
    """Run PostgreSQL, Valkey, web, scheduler worker and beat in `folder`; the end of the context stops all of them."""
    port, cluster_port = free_port(), free_port()
    folder.chmod(0o711)  # if root starts it, PostgreSQL runs as another user and must reach its own folder
    with contextlib.ExitStack() as stack:
        valkey = Valkey(folder / "valkey")
        stack.callback(valkey.stop)
        valkey.start()
        postgres = Postgres(folder / "postgres")
        stack.callback(postgres.stop)
        postgres.start()
        told = environment(
            os.environ,
            database_url=postgres.url(),
            redis_url=valkey.url(),
            secret_key=password,
            cluster_port=cluster_port,
        )
        told |= {"DEMO": "false", "DJANGO_SUPERUSER_PASSWORD": password}
        told |= dict.fromkeys(_LIMITS, "0")  # one user acts for all tenants in the load test
        supervisor = stack.enter_context(Supervisor(directory, told, folder / "logs", say))
        for step in _preparation(folder):
            supervisor.run(step)
        for process in processes(
            host="127.0.0.1", port=port, cluster_port=cluster_port, time_scale=1, snapshot=folder / "cluster.json"
        ):
            if process.name in _NEEDED:
                supervisor.start(process)
        server = f"http://127.0.0.1:{port}"
        wait_for(server, partial(supervisor.revive_until, _FAILURES))
        yield Stack(server, supervisor, postgres, valkey)


def _preparation(folder: Path) -> Iterator[Process]:
    namespace = folder / "namespace.json"
    namespace.write_text(json.dumps({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}))
    manage = (sys.executable, "-m", "kueueweb")
    user = ("--noinput", "--username", "admin", "--email", "admin@localhost")
    yield Process("migrate", (*manage, "migrate", "--verbosity", "0"))
    yield Process("cluster", (*manage, "apply", "-f", str(namespace)))  # the first apply creates the cluster
    yield Process("account", (*manage, "createsuperuser", *user))


def wait_for(server: str, revive: Callable[[], object]) -> None:
    """Wait until the server answers; `revive` restarts ended processes, or raises. Raises TimeoutError."""
    deadline = time.monotonic() + _START_SECONDS
    while True:
        with contextlib.suppress(URLError, OSError), urlopen(f"{server}/healthz", timeout=5):  # noqa: S310 (our own server, by http)
            return
        revive()
        if time.monotonic() > deadline:
            raise TimeoutError(f"{server} did not answer within {_START_SECONDS:.0f} s")
        time.sleep(0.1)
