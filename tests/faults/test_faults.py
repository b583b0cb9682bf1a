"""The fault matrix: each fault is shown while it lasts, and decisions are made within 30 s of its end; nothing is lost,
given twice or given beyond the quota.

Not part of `make test`: `make test-faults` prints the table of docs/operations.md. Most of a cell is a wait for the
fault to end, so `STACKS=4` cells are tried at once, each on a stack of its own. `ARGS="-k idle"` leaves the floods and
cancellations out. A stack that has failed over has no small disk any more, so that test is the last.
"""

from __future__ import annotations

from typing import Final

import pytest

from tests.faults.happenings import (
    cut_off,
    emptied,
    failed_over,
    full,
    killed,
    refused,
    restarted,
    stopped,
    wrong_clock,
)
from tests.faults.run import FAULT_SECONDS, LIMIT_SECONDS, STOP_SECONDS, Cell, Run

TARGETS: Final = ("web", "leader", "standby", "push", "watcher", "beat", "webhook", "postgres", "valkey")
UNSEEN: Final = ("leader", "standby")
"""While one of two schedulers hangs, the other decides: nothing is wrong that a page could show."""
PAIRS: Final = (
    ("web", "postgres"), ("schedulers", "postgres"), ("push", "postgres"), ("watcher", "postgres"),
    ("webhook", "postgres"), ("web", "valkey"), ("schedulers", "valkey"), ("push", "valkey"), ("watcher", "valkey"),
    ("beat", "valkey"), ("web", "cluster"), ("push", "cluster"), ("watcher", "cluster"), ("webhook", "cluster"),
)  # fmt: skip
SHOWN: Final = (("webhook", "postgres"), ("webhook", "cluster"), ("push", "cluster"))
"""A webhook that can only refuse, and a push that reaches nothing, are seen on the overview or in `/readyz`."""
HOUR: Final = 3600

every_load = pytest.mark.parametrize("load", ["idle", "flood", "mass cancel"])
every_target = pytest.mark.parametrize("target", TARGETS)


def holds(cell: Cell) -> None:
    """Check the promises that hold after every fault."""
    assert cell.faults == ()
    assert cell.in_time, f"decisions after {cell.decided_after:.0f} s, on a machine {cell.slowness:.1f} times slower"


@every_load
@every_target
def test_decisions_go_on_after_kill_9(run: Run, target: str, load: str) -> None:
    holds(run.suffer("kill -9", target, load, killed(run, target)))


@every_load
@every_target
def test_decisions_go_on_after_sigstop(run: Run, target: str, load: str) -> None:
    seconds = STOP_SECONDS if load == "idle" else FAULT_SECONDS
    cell = run.suffer("SIGSTOP", target, load, stopped(run, target), seconds)
    holds(cell)
    assert cell.shown or target in UNSEEN


@every_load
@every_target
def test_decisions_go_on_after_a_restart_loop(run: Run, target: str, load: str) -> None:
    holds(run.suffer("restart loop", target, load, restarted(run, target)))


def test_a_standby_decides_while_the_leader_is_stopped(run: Run) -> None:
    with stopped(run, "leader"):
        assert run.decide() < LIMIT_SECONDS * run.slowness()


@every_load
def test_decisions_go_on_after_valkey_was_emptied(run: Run, load: str) -> None:
    holds(run.suffer("emptied", "valkey", load, emptied(run)))


@every_load
def test_decisions_go_on_after_the_disk_was_full(run: Run, load: str) -> None:
    if not run.disk_is_small:
        pytest.skip("the small disk is a tmpfs, and only root can mount one")
    holds(run.suffer("disk full", "postgres", load, full(run)))


@every_load
@pytest.mark.parametrize("code", [410, 429, 500])
def test_decisions_go_on_after_the_api_server_refused_everything(run: Run, code: int, load: str) -> None:
    holds(run.suffer(f"answers {code}", "API server", load, refused(run, code)))


@every_load
def test_decisions_go_on_after_the_api_server_answered_nothing(run: Run, load: str) -> None:
    cell = run.suffer("answers nothing", "API server", load, stopped(run, "simulated-cluster"))
    holds(cell)
    assert cell.shown


@every_load
@pytest.mark.parametrize("seconds", [HOUR, -HOUR])
def test_decisions_go_on_after_the_clock_was_wrong(run: Run, seconds: int, load: str) -> None:
    if run.clock is None:
        pytest.skip("the wrong clock is a preloaded library, which a C compiler (cc) makes")
    fault = f"clock an hour {'forward' if seconds > 0 else 'back'}, and right again"
    cell = run.suffer(fault, "all processes", load, wrong_clock(run, seconds))
    holds(cell)
    assert cell.shown


@every_load
@pytest.mark.parametrize(("process", "server"), PAIRS)
def test_decisions_go_on_after_the_network_was_cut(run: Run, process: str, server: str, load: str) -> None:
    # A push fails a while after its connection was cut, and 20 s later that is shown.
    seconds = STOP_SECONDS if process == "push" and server == "cluster" else FAULT_SECONDS
    cell = run.suffer("network cut", f"{process} - {server}", load, cut_off(run, process, server), seconds)
    holds(cell)
    assert cell.shown or (process, server) not in SHOWN


def test_decisions_go_on_after_a_failover_to_a_replica(run: Run) -> None:
    holds(run.suffer("failover to a replica", "postgres", "idle", failed_over(run)))
