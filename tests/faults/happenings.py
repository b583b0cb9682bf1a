"""Faults, each for as long as its block lasts."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Iterator

import orjson
import psycopg
from redis import Redis

from tests.acceptance.crash.rest import Account
from tests.faults.run import Run


@contextlib.contextmanager
def killed(run: Run, target: str) -> Iterator[None]:
    """Kill -9 at the beginning."""
    _signal(run, target, signal.SIGKILL)
    yield


@contextlib.contextmanager
def stopped(run: Run, target: str) -> Iterator[None]:
    """SIGSTOP until the end: a process that hangs, swaps or is debugged looks like that."""
    pids = _signal(run, target, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)


@contextlib.contextmanager
def restarted(run: Run, target: str) -> Iterator[None]:
    """Kill -9 whenever it has been started again."""
    ended = threading.Event()

    def kill() -> None:
        while not ended.wait(2.0):
            _signal(run, target, signal.SIGKILL)

    thread = threading.Thread(target=kill)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
        run.stack.wait_until_running()


@contextlib.contextmanager
def emptied(run: Run) -> Iterator[None]:
    """Valkey forgets everything."""
    with Redis.from_url(run.stack.valkey.url()) as client:
        client.flushall()
    yield


@contextlib.contextmanager
def full(run: Run) -> Iterator[None]:
    """The database's disk has no room."""
    ballast = run.stack.postgres.directory / "ballast"
    try:
        with ballast.open("wb") as file, contextlib.suppress(OSError):
            while True:
                file.write(bytes(1 << 20))
                file.flush()
        yield
    finally:
        ballast.unlink()


@contextlib.contextmanager
def refused(run: Run, code: int) -> Iterator[None]:
    """The API server answers every request with this status, and its watches end."""
    cluster = Account(run.stack.cluster, "", "")

    def change(refusal: int, rate: float) -> None:
        body = orjson.dumps({"refusal": refusal, "watch": {"disconnect_rate": rate}})
        assert cluster.raw("POST", "/_chaos", body).acknowledged

    change(code, 1.0)
    try:
        yield
    finally:
        change(0, 0.0)


@contextlib.contextmanager
def wrong_clock(run: Run, seconds: int) -> Iterator[None]:
    """The clocks of all processes but the servers' are set, and set back at the end."""
    run.set_clock(seconds)
    try:
        yield
    finally:
        run.set_clock(0)


@contextlib.contextmanager
def cut_off(run: Run, process: str, server: str) -> Iterator[None]:
    """No byte passes between a process and a server."""
    processes = ("scheduler", "standby") if process == "schedulers" else (process,)
    with run.network.cut(processes, server):
        yield


@contextlib.contextmanager
def failed_over(run: Run) -> Iterator[None]:
    """The database's server is gone for good, and its replica takes over at the end."""
    replica = run.replica()
    with psycopg.connect(run.stack.postgres.url("postgres"), autocommit=True) as session:
        session.execute("ALTER SYSTEM SET synchronous_standby_names = '*'")
        session.execute("SELECT pg_reload_conf()")
    run.decide()
    run.stack.fail_over(replica)
    yield
    with psycopg.connect(replica.url("postgres"), autocommit=True) as session:
        session.execute("SELECT pg_promote()")
    run.network.reset("postgres")


def _signal(run: Run, target: str, wanted: signal.Signals) -> list[int]:
    pids = run.stack.pids(target)
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, wanted)
    return pids
