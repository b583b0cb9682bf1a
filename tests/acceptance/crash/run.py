"""One run: the stack, tenants and an admin at work, kills, and the verdict."""

from __future__ import annotations

import contextlib
import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from clusters.jobs.registry import JOB_KINDS
from kueueweb.demo.jobs import PRODUCTION, RESEARCH
from tests.acceptance.crash.rest import Account, Answer
from tests.acceptance.crash.stack import Stack, kill_at_random
from tests.acceptance.crash.tenants import AdminAtWork, TenantAtWork
from tests.acceptance.crash.verdict import faults
from tests.clusters.test_pods_that_wait import RUNTIME, RUNTIMES

TIME_SCALE: Final = 20.0
_REQUEST_PAUSE: Final = 0.7
_EDIT_PAUSE: Final = 5.0


@dataclass(slots=True)
class Report:
    """What a run came to."""

    seed: int
    minutes: float
    kills: Counter[str] = field(default_factory=Counter)
    answers: Counter[str] = field(default_factory=Counter)
    refusals: Counter[str] = field(default_factory=Counter)
    promises: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)

    def text(self) -> str:
        """For a person."""
        counts = f"{self.kills.total()} kills, {self.answers.total()} requests"
        lines = [f"seed {self.seed}, {self.minutes:g} minutes, {counts}"]
        for title, found in (
            ("kills", self.kills), ("answers", self.answers), ("refusals", self.refusals), ("promises", self.promises)
        ):  # fmt: skip
            lines += [f"{title}:", *(f"  {count:6} {name}" for name, count in sorted(found.items()))]
        lines += [f"faults: {len(self.faults)}", *(f"  {fault}" for fault in self.faults)]
        return "\n".join(lines)


def run(
    folder: Path, minutes: float, seed: int, mean_pause: float, say: Callable[[str], None], jobs: int | None = None
) -> Report:
    """Kills for so many minutes; the verdict comes when everything has settled and ended.

    With a number of jobs, they are of every kind, and the kills end when all are there, if that comes first.
    """
    report = Report(seed, minutes)
    with Stack(folder, stamped(say), TIME_SCALE, webhook=jobs is not None) as stack:
        with at_work(stack, seed, jobs) as work:
            kill_at_random(stack, minutes * 60, random.Random(seed), mean_pause, work.stopped)
        say("No more kills: everything settles.")
        report.faults = list(faults(stack, work.admin, work.tenants))
        report.kills = stack.kills
        report.answers += work.admin.answers
        for tenant in work.tenants:
            report.answers += tenant.answers
            report.refusals += tenant.refusals
            report.promises += Counter(promise.fate.name for promise in tenant.promises)
    return report


@dataclass(frozen=True, slots=True)
class Work:
    """Who is at work; `stopped` is set when nobody is to begin anything any more."""

    admin: AdminAtWork
    tenants: list[TenantAtWork]
    stopped: threading.Event


@contextlib.contextmanager
def at_work(stack: Stack, seed: int, jobs: int | None = None) -> Iterator[Work]:
    """Tenants and an admin at work until the block ends; with a number of jobs, until all of these are there."""
    admin = AdminAtWork(Account(stack.server, "admin", "admin"), "research", seed)
    stranger = Account(stack.cluster, "", "")
    if jobs is not None:
        _create_runtime(stack, stranger)
    tenants = [
        TenantAtWork(
            Account(stack.server, tenant.username, tenant.username),
            _creator(stranger),
            tenant,
            1_000 * seed + index,
            jobs and -(-jobs // 2),
        )
        for index, tenant in enumerate((RESEARCH, PRODUCTION))
    ]
    stopped = threading.Event()
    busy = [threading.Thread(target=tenant.work, args=(stopped, _REQUEST_PAUSE)) for tenant in tenants]
    threads = [threading.Thread(target=admin.work, args=(stopped, _EDIT_PAUSE)), *busy]
    threads.append(threading.Thread(target=_stop_after, args=(busy, stopped)))
    for thread in threads:
        thread.start()
    try:
        yield Work(admin, tenants, stopped)
    finally:
        stopped.set()
        for thread in threads:
            thread.join()


def _stop_after(busy: list[threading.Thread], stopped: threading.Event) -> None:
    for thread in busy:
        thread.join()
    stopped.set()


def _create_runtime(stack: Stack, stranger: Account) -> None:
    """What TrainJobs refer to; the watcher has to see it before the first of them comes."""
    stack.wait_until_up()
    answer = stranger.raw("POST", RUNTIMES.path(), RUNTIME)
    if not answer.acknowledged:
        raise RuntimeError(f"the training runtime is not there: {answer}")


def _creator(stranger: Account) -> Callable[[dict[str, Any]], Answer]:
    def create(job: dict[str, Any]) -> Answer:
        return stranger.raw("POST", JOB_KINDS[job["kind"]].resource.path(job["metadata"]["namespace"]), job)

    return create


def stamped(say: Callable[[str], None]) -> Callable[[str], None]:
    began = time.monotonic()
    return lambda text: say(f"{time.monotonic() - began:7.1f} s  {text}")
