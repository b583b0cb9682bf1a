"""`manage.py demo`: the whole product on a simulated cluster, in one terminal, leaving nothing behind but its data."""

import contextlib
import fcntl
import os
import secrets
import shutil
import signal
import socket
import sys
import threading
import time
from argparse import ArgumentParser
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any
from urllib.error import URLError
from urllib.request import urlopen

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from kueueweb.demo.processes import environment, past, processes, second_cluster, seed
from kueueweb.demo.supervisor import ProcessBroken, Supervisor
from kueueweb.embedded.errors import ServerUnavailable
from kueueweb.embedded.postgres import Postgres
from kueueweb.embedded.sockets import free_port, state_directory
from kueueweb.embedded.valkey import Valkey
from simulation.fleet import FLEETS, SEVERAL

_FIRST_PAGE_SECONDS = 60.0


class Command(BaseCommand):
    """Supervises; everything that works is a child."""

    help = "Run kueueweb with a simulated cluster of GPUs and a stream of jobs. Ctrl-C stops it."
    requires_system_checks = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: %(default)s)")
        parser.add_argument("--port", type=int, help="port to listen on (default: 8000, or the next that is free)")
        parser.add_argument("--time-scale", type=float, default=10.0, help="how fast jobs run (default: %(default)s)")
        parser.add_argument("--fleet", choices=FLEETS, default=SEVERAL, help="fleet of nodes (default: %(default)s)")
        parser.add_argument(
            "--empty", action="store_true", help="submit no jobs: tenants have queues and wait for yours (try --fresh)"
        )
        parser.add_argument("--fresh", action="store_true", help="start without the data of earlier runs")

    def handle(self, *args: Any, **options: Any) -> None:
        began = time.monotonic()
        if not (settings.FRONTEND_DIST / "index.html").is_file():
            raise CommandError(
                "The front end is not built. Run `make demo`, which builds it, or `make frontend` first."
            )
        state = state_directory(settings.BASE_DIR)
        with _only_one(state):
            if options["fresh"] or _other_fleet(state, options["fleet"]):
                _forget(state)
            stop = threading.Event()
            for wish in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                signal.signal(wish, lambda *_: stop.set())
            try:
                self._run(state, options, stop, began)
            except (ServerUnavailable, ProcessBroken) as error:
                raise CommandError(str(error)) from error
            self._say("Stopped.")

    def _run(self, state: Path, options: dict[str, Any], stop: threading.Event, began: float) -> None:
        host, port = options["host"], _port(options["host"], options["port"])
        cluster_port = free_port()
        with contextlib.ExitStack() as stack:
            servers: dict[str, Postgres | Valkey] = {}
            database_url, redis_url = self._servers(state, stack, servers)
            told = environment(
                {"CHECKPOINT_CHANGES": "true", **os.environ},
                database_url=database_url,
                redis_url=redis_url,
                secret_key=_secret_key(state),
                cluster_port=cluster_port,
            )
            shell = _write_environment(state, told)
            supervisor = stack.enter_context(Supervisor(settings.BASE_DIR, told, _fresh_logs(state), self._say))
            west_port = free_port() if options["fleet"] != FLEETS[0] else None
            supervisor.run(seed(options["fleet"], west_port))
            for name, server in servers.items():
                supervisor.keep(name, server)
            *lasting, jobs = processes(
                host=host,
                port=port,
                cluster_port=cluster_port,
                time_scale=options["time_scale"],
                snapshot=state / "simulated-cluster.json",
                fleet=options["fleet"],
                webhook_port=free_port(),
                together=True,
            )
            for process in lasting:
                supervisor.start(process)
            if west_port is not None:
                for process in second_cluster(west_port, options["time_scale"], state / "west-cluster.json"):
                    supervisor.start(process)
            if _wait_for_page(port, supervisor, stop):
                self._welcome(f"http://{host}:{port}", state, shell, time.monotonic() - began)
                if not options["empty"]:
                    supervisor.start_once(past(options["fleet"], options["time_scale"]))
                    supervisor.start(jobs)
            supervisor.watch(stop)
            self._say("Stopping ...")

    def _servers(
        self, state: Path, stack: contextlib.ExitStack, started: dict[str, Postgres | Valkey]
    ) -> tuple[str, str]:
        """Return the addresses of PostgreSQL and Redis: those we were given, else of servers that we start and note."""
        redis_url, database_url = os.environ.get("REDIS_URL", ""), os.environ.get("DATABASE_URL", "")
        if not redis_url:
            valkey = Valkey(state / "valkey")
            stack.callback(valkey.stop)
            valkey.start()
            redis_url = valkey.url()
            started["valkey"] = valkey
        if not database_url:
            postgres = Postgres(state / "postgres")
            stack.callback(postgres.stop)
            postgres.start()
            database_url = postgres.url()
            started["postgres"] = postgres
        return database_url, redis_url

    def _welcome(self, url: str, state: Path, shell: Path, seconds: float) -> None:
        self._say(f"\nkueueweb is at {url} (after {seconds:.1f} s)")
        self._say("")
        self._say(f"  Begin with the larger cluster: {url}/?cluster=default (the user's menu has a tour)")
        self._say("")
        self._say("  admin / admin             sees and changes everything, also under /admin/")
        self._say("  researcher / researcher   submits in the namespace ai-research")
        self._say("  operator / operator       submits in the namespace ai-production")
        self._say("  student / student         submits in the namespace ai-research, for other devices")
        self._say("")
        self._say(f"  Other commands on this demo:  set -a; . {shell}; {sys.executable} -m kueueweb get workloads")
        self._say(f"  Logs of the processes:        {state / 'logs'}")
        self._say("  Ctrl-C stops everything.")

    def _say(self, text: str) -> None:
        self.stdout.write(text)
        self.stdout.flush()


@contextlib.contextmanager
def _only_one(state: Path) -> Iterator[IO[str]]:
    """One demo for each copy of the project: a second one would share its data."""
    with (state / "lock").open("a+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise CommandError("The demo of this copy of the project is already running.") from None
        yield file


def _forget(state: Path) -> None:
    for name in ("postgres", "valkey", "logs"):
        shutil.rmtree(state / name, ignore_errors=True)
    for name in ("simulated-cluster.json", "west-cluster.json"):
        (state / name).unlink(missing_ok=True)


def _other_fleet(state: Path, name: str) -> bool:
    """Store the fleet. Returns whether an earlier run, whose nodes are still stored, had another fleet."""
    path = state / "fleet"
    before = path.read_text() if path.exists() else SEVERAL
    path.write_text(name)
    return before != name


def _fresh_logs(state: Path) -> Path:
    logs = state / "logs"
    shutil.rmtree(logs, ignore_errors=True)
    logs.mkdir(mode=0o700)
    return logs


def _port(host: str, wanted: int | None) -> int:
    """Return the port that was asked for, which must be free, or the first free one from 8000."""
    for port in (wanted,) if wanted else range(8000, 8100):
        with socket.socket() as candidate:
            candidate.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            with contextlib.suppress(OSError):
                candidate.bind((host, port))
                return port
    raise CommandError(f"Port {wanted or '8000 to 8099'} of {host} is in use. Choose another with --port.")


def _secret_key(state: Path) -> str:
    """Return the same key after restarts, so that users stay logged in."""
    path = state / "secret-key"
    if not path.exists():
        path.touch(mode=0o600)
        path.write_text(secrets.token_urlsafe(48))
    return path.read_text()


def _write_environment(state: Path, told: dict[str, str]) -> Path:
    """Write a file for other shells: `manage.py` on the demo's own database."""
    path = state / "environment"
    path.touch(mode=0o600)
    names = ("DATABASE_URL", "REDIS_URL", "SECRET_KEY", "KUBERNETES_API_URL", "DEMO")
    path.write_text("".join(f"{name}='{told[name]}'\n" for name in names))
    return path


def _wait_for_page(port: int, supervisor: Supervisor, stop: threading.Event) -> bool:
    """Return whether the first page came before the user stopped the demo.

    Raises ProcessBroken, and after a minute CommandError with the last answer of the web process.
    """
    deadline = time.monotonic() + _FIRST_PAGE_SECONDS
    while not stop.wait(0.05):
        try:
            with urlopen(f"http://127.0.0.1:{port}/", timeout=5):
                return True
        except (URLError, TimeoutError, ConnectionError) as error:
            last = error
        supervisor.revive()
        if time.monotonic() > deadline:
            raise CommandError(f"No page after {_FIRST_PAGE_SECONDS:.0f} s. The last answer was: {last}.")
    return False
