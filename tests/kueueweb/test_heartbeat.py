"""Each process without a port shows that its loop turns; a probe looks at how old the sign is."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import datetime, timedelta
from functools import partial
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import pytest
from django.utils import timezone

from accounts.models import Cluster
from foundation.heartbeat import (
    FAILING_SECONDS,
    HEARTBEAT_SECONDS,
    SILENT_SECONDS,
    Role,
    RoleHealth,
    is_alive,
    join_loops,
    note_failure,
    note_life,
    note_progress,
    note_recovery,
    role_health,
    touch_heartbeat,
)
from foundation.redis_client import redis_client
from kueueweb.api import health
from kueueweb.api.health import readiness
from scheduler.models import Lease
from tests.acceptance.processes import wait_for
from tests.patience import PATIENCE_SECONDS

CELERY = [sys.executable, "-m", "celery", "--app", "kueueweb"]
PROCESSES = {
    "push": [*CELERY, "worker", "--queues", "nobody", "--pool", "threads", "--concurrency", "1", "--without-mingle"],
    "scheduler": [*CELERY, "worker", "--queues", "no-one", "--pool", "solo", "--without-mingle"],
    "beat": [*CELERY, "beat"],
    "run": [sys.executable, "manage.py", "run", "--roles", "push,beat"],
    "studio": [sys.executable, "manage.py", "studio"],
}


def test_without_a_file_there_is_no_sign(settings: Any, tmp_path: Path) -> None:
    settings.HEARTBEAT_PATH = ""
    touch_heartbeat(Role.PUSH)
    settings.HEARTBEAT_PATH = str(tmp_path / "alive")
    touch_heartbeat(Role.PUSH)
    assert (tmp_path / "alive").exists()


def test_while_runs_fail_the_file_is_not_touched(settings: Any, tmp_path: Path) -> None:
    settings.HEARTBEAT_PATH = str(tmp_path / "alive")
    note_progress(False)
    try:
        touch_heartbeat(Role.SCHEDULER)
        assert not (tmp_path / "alive").exists()
    finally:
        note_progress(True)
    touch_heartbeat(Role.SCHEDULER)
    assert (tmp_path / "alive").exists()


def test_while_a_loop_hangs_the_others_of_its_process_do_not_touch_the_file(settings: Any, tmp_path: Path) -> None:
    alive = tmp_path / "alive"
    settings.HEARTBEAT_PATH = str(alive)
    now = time.monotonic()
    try:
        join_loops([(Role.PUSH, ""), (Role.WATCHER, "default")], since=now - SILENT_SECONDS - 1)
        touch_heartbeat(Role.PUSH)
        assert not alive.exists()
        touch_heartbeat(Role.WATCHER, "another")
        assert not alive.exists()
        touch_heartbeat(Role.WATCHER, "default")
        assert alive.exists()
    finally:
        join_loops([])


@pytest.fixture
def no_heartbeats() -> None:
    redis_client().delete("kueueweb:heartbeats", "kueueweb:process-clocks", "kueueweb:failing")


@pytest.mark.usefixtures("no_heartbeats")
def test_every_role_that_is_needed_is_known_before_it_was_seen() -> None:
    found = {(each.role, each.cluster): each.alive for each in role_health(["a", "b"], time.time())}
    assert found == dict.fromkeys(
        [(role, "") for role in (Role.SCHEDULER, Role.PUSH, Role.BEAT, Role.STUDIO)]
        + [(Role.WATCHER, cluster) for cluster in "ab"],
        False,
    )


@pytest.mark.usefixtures("no_heartbeats")
def test_a_cluster_with_a_scheduler_of_its_own_needs_that_one(settings: Any) -> None:
    settings.OWN_SCHEDULERS = ["a"]

    def schedulers(*clusters: str) -> set[str]:
        return {each.cluster for each in role_health(clusters, time.time()) if each.role == Role.SCHEDULER}

    assert schedulers("a", "b") == {"a", ""}
    assert schedulers("a") == {"a"}
    assert schedulers("b") == {""}


@pytest.mark.usefixtures("no_heartbeats")
def test_a_role_is_silent_after_its_time_and_a_webhook_is_forgotten_after_a_day() -> None:
    touch_heartbeat(Role.PUSH)
    touch_heartbeat(Role.WEBHOOK, "a")
    touch_heartbeat(Role.WEBHOOK, "elsewhere")

    def after(seconds: float) -> dict[str, bool]:
        return {each.role: each.alive for each in role_health(["a"], time.time() + seconds)}

    assert after(0) == {
        "beat": False,
        "push": True,
        "scheduler": False,
        "studio": False,
        "watcher": False,
        "webhook": True,
    }
    assert after(SILENT_SECONDS + 1)["push"] is False
    assert after(SILENT_SECONDS + 1)["webhook"] is False
    assert "webhook" not in after(2 * 24 * 3600)


@pytest.mark.usefixtures("no_heartbeats")
def test_by_a_wrong_clock_roles_live_and_fall_silent_at_the_same_time(monkeypatch: pytest.MonkeyPatch) -> None:
    right = time.time
    for ahead in (-3600.0, 0.0, 3600.0):
        monkeypatch.setattr(time, "time", lambda ahead=ahead: right() + ahead)
        touch_heartbeat(Role.PUSH)
        assert is_alive(Role.PUSH)
        for reader in (-3600.0, 0.0, 3600.0):
            monkeypatch.setattr(time, "time", lambda ahead=reader: right() + ahead)
            assert [push(after).alive for after in (0, SILENT_SECONDS + 1)] == [True, False]
            assert push().clock_fault == FAULTS[ahead]
            web = [each.clock_fault for each in role_health([], time.time()) if each.role == Role.WEB]
            assert web == [FAULTS[reader]] * (reader != 0)


FAULTS = {
    -3600.0: "its clock is 3600 s behind that of Redis",
    0.0: "",
    3600.0: "its clock is 3600 s ahead of that of Redis",
}


def push(after_seconds: float = 0.0) -> RoleHealth:
    return next(each for each in role_health([], time.time() + after_seconds) if each.role == Role.PUSH)


@pytest.mark.usefixtures("no_heartbeats")
def test_the_clock_of_a_watcher_is_not_that_of_its_api_server(monkeypatch: pytest.MonkeyPatch) -> None:
    right = time.time
    monkeypatch.setattr(time, "time", lambda: right() - 3600.0)
    note_life(Role.API_SERVER, "a")
    [server] = [each for each in role_health(["a"], time.time()) if each.role == Role.API_SERVER]
    assert (server.alive, server.clock_ahead_seconds) == (True, None)


@pytest.mark.usefixtures("no_heartbeats")
def test_a_failure_lasts_since_it_began_and_until_it_recovers() -> None:
    def shown() -> list[bool]:
        return [each.alive for each in role_health(["a"], time.time()) if each.role == Role.CLUSTER_PUSH]

    note_failure(Role.CLUSTER_PUSH, "a", SILENT_SECONDS + 10.0)
    note_failure(Role.CLUSTER_PUSH, "a")
    assert shown() == [False]
    note_recovery(Role.CLUSTER_PUSH, "a")
    assert shown() == []
    note_failure(Role.CLUSTER_PUSH, "a")
    assert shown() == [True]


@pytest.mark.usefixtures("no_heartbeats")
def test_a_failure_of_which_nothing_more_is_said_is_forgotten() -> None:
    """Its cluster may have been deleted, have another mode, or be pushed to by another installation."""
    now = time.time()
    for last, expected in ((now - FAILING_SECONDS + 60.0, 1), (now - FAILING_SECONDS - 1.0, 0)):
        redis_client().hset("kueueweb:failing", f"{Role.CLUSTER_PUSH}/a", f"{now - 3600.0!r} {last!r}")
        assert sum(each.role == Role.CLUSTER_PUSH for each in role_health(["a"], now)) == expected
    note_failure(Role.CLUSTER_PUSH, "a")
    [again] = [each for each in role_health(["a"], now) if each.role == Role.CLUSTER_PUSH]
    assert again.alive, "a new failure"


@pytest.mark.usefixtures("no_heartbeats")
def test_a_wrong_clock_shows_beside_a_right_one_until_its_process_is_silent(monkeypatch: pytest.MonkeyPatch) -> None:
    right = time.time
    for ahead, host in ((0.1, "a"), (-3600.0, "b"), (60.0, "c"), (0.0, "a")):
        monkeypatch.setattr(socket, "gethostname", lambda host=host: host)
        monkeypatch.setattr(time, "time", lambda ahead=ahead: right() + ahead)
        touch_heartbeat(Role.PUSH)
    monkeypatch.undo()
    assert push().clock_fault == FAULTS[-3600.0]
    assert (push(SILENT_SECONDS + 1).alive, push(SILENT_SECONDS + 1).clock_ahead_seconds) == (False, None)
    for field, value in redis_client().hgetall("kueueweb:process-clocks").items():
        if b"/b:" in field:
            ahead_text, at = value.split()
            redis_client().hset("kueueweb:process-clocks", field, f"{float(ahead_text)} {float(at) - SILENT_SECONDS}")
    assert push().clock_fault == "its clock is 60 s ahead of that of Redis"
    assert redis_client().hlen("kueueweb:process-clocks") == 2


@pytest.mark.usefixtures("no_heartbeats")
def test_a_slow_answer_of_redis_makes_no_clock_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    ticks = count(0.0, 14.0)
    monkeypatch.setattr(time, "monotonic", lambda: next(ticks))
    touch_heartbeat(Role.PUSH)
    assert is_alive(Role.PUSH)
    found = role_health([], time.time())
    assert Role.WEB not in {each.role for each in found}
    assert push().clock_ahead_seconds is None


def test_without_redis_no_role_is_known_to_live(settings: Any) -> None:
    settings.REDIS_URL = "redis://127.0.0.1:1/0"
    touch_heartbeat(Role.PUSH)
    assert not any(each.alive for each in role_health(["a"], time.time()))


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("no_heartbeats")
def test_readiness_says_which_roles_are_silent_and_when_a_run_ended_well(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Cluster.objects.create(name="default")
    assert readiness()["roles"] == {
        "beat": "silent", "push": "silent", "scheduler": "silent, some clusters have had no run", "studio": "silent",
        "watcher": "silent",
    }  # fmt: skip
    for role in (Role.BEAT, Role.PUSH, Role.SCHEDULER, Role.STUDIO):
        touch_heartbeat(role)
    touch_heartbeat(Role.WATCHER, "default")
    now = timezone.now()
    Lease.objects.create(cluster=cluster, epoch=1, renewed_at=now - timedelta(seconds=90))
    with monkeypatch.context() as patch:
        patch.setattr(health, "time", SimpleNamespace(time=now.timestamp))
        well = readiness()["roles"]
    assert well == {
        "beat": "ok", "push": "ok", "scheduler": "ok, last successful run 90 s ago", "studio": "ok", "watcher": "ok"
    }  # fmt: skip
    right = time.time
    monkeypatch.setattr(time, "time", lambda: right() - 3600.0)
    touch_heartbeat(Role.PUSH)
    monkeypatch.undo()
    roles = readiness()["roles"]
    assert isinstance(roles, dict)
    assert roles["push"] == FAULTS[-3600.0]
    note_failure(Role.CLUSTER_PUSH, "default", 60.0)
    roles = readiness()["roles"]
    assert isinstance(roles, dict)
    assert re.fullmatch(r"no sweep has ended for \d+ s", roles["cluster-push"])


@pytest.fixture
def start() -> Iterator[Callable[..., subprocess.Popen[bytes]]]:
    """Starts a process by its name; the end of the test kills it."""
    with ExitStack() as stack:

        def start_process(name: str, **environment: str) -> subprocess.Popen[bytes]:
            process = subprocess.Popen(
                PROCESSES[name],
                env={**os.environ, **environment},
                stdout=subprocess.PIPE if environment else subprocess.DEVNULL,
                stderr=subprocess.STDOUT,
            )
            stack.enter_context(process)
            stack.callback(process.kill)
            return process

        yield start_process


@pytest.mark.usefixtures("no_heartbeats", "live_services")
def test_a_process_that_is_stopped_falls_silent(start: Callable[..., subprocess.Popen[bytes]]) -> None:
    """By the time of Redis' entry: it does not move while the process hangs. All at once: they wait for seconds."""
    roles = ("push", "beat")
    processes = [start(role) for role in roles]
    first = [_next_sign(role, None) for role in roles]
    assert all(_next_sign(role, before) > before for role, before in zip(roles, first, strict=True))
    for process in processes:
        process.send_signal(signal.SIGSTOP)
        wait_for("its stop", partial(_is_stopped, process.pid))
    redis_client().ping()  # what they said before is noted
    stopped = [_last_sign(role) for role in roles]
    time.sleep(2 * HEARTBEAT_SECONDS)
    assert [_last_sign(role) for role in roles] == stopped


def _is_stopped(pid: int) -> bool:
    return psutil.Process(pid).status() == psutil.STATUS_STOPPED


def _last_sign(role: str) -> datetime | None:
    return next(each.last_seen_at for each in role_health([], time.time()) if each.role == role)


def _next_sign(role: str, before: datetime | None) -> datetime:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < deadline:
        found = _last_sign(role)
        if found is not None and found != before:
            return found
        time.sleep(0.2)
    raise AssertionError(f"no heartbeat within {PATIENCE_SECONDS:.0f} s")


def test_each_process_touches_its_file_again_and_again(
    start: Callable[..., subprocess.Popen[bytes]], tmp_path: Path, live_services: None
) -> None:
    """All at once: they wait for seconds."""
    files = {name: tmp_path / name for name in PROCESSES}
    processes = {name: start(name, HEARTBEAT_PATH=str(alive)) for name, alive in files.items()}
    first = {name: _next_touch(processes[name], alive, 0.0) for name, alive in files.items()}
    for name, alive in files.items():
        assert _next_touch(processes[name], alive, first[name]) > first[name]


def _next_touch(process: subprocess.Popen[bytes], alive: Path, before: float) -> float:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < deadline:
        assert process.poll() is None, process.stdout.read() if process.stdout else ""
        if alive.exists() and alive.stat().st_mtime > before:
            return alive.stat().st_mtime
        time.sleep(0.2)
    raise AssertionError(f"no heartbeat within {PATIENCE_SECONDS:.0f} s")
