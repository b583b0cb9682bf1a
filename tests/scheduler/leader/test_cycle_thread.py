"""The thread of the cycles in a worker that has other tasks, too."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from scheduler.leader.cycle_thread import CycleThread
from tests.patience import PATIENCE_SECONDS


class Runs:
    """Records runs; each waits until the test lets it go on."""

    def __init__(self) -> None:
        self.seen: list[str | None] = []
        self.threads: set[str] = set()
        self.begun = threading.Semaphore(0)
        self.go_on = threading.Semaphore(0)
        self.ended = threading.Semaphore(0)

    def run(self, cluster: str | None) -> None:
        self.seen.append(cluster)
        self.threads.add(threading.current_thread().name)
        self.begun.release()
        assert self.go_on.acquire(timeout=PATIENCE_SECONDS)
        self.ended.release()
        if cluster == "broken":
            raise ValueError("no such thing")

    def until_begun(self) -> None:
        assert self.begun.acquire(timeout=PATIENCE_SECONDS)

    def let_end(self) -> None:
        self.go_on.release()
        assert self.ended.acquire(timeout=PATIENCE_SECONDS)


@pytest.fixture
def runs() -> Runs:
    return Runs()


@pytest.fixture
def thread(runs: Runs) -> Iterator[CycleThread]:
    thread = CycleThread(runs.run)
    yield thread
    runs.go_on.release()
    thread.stop()


def test_runs_follow_each_other_in_one_thread(runs: Runs, thread: CycleThread) -> None:
    for cluster in ("a", "b", None):
        thread.request(cluster)
    runs.until_begun()
    assert runs.seen == ["a"]
    for _ in range(2):
        runs.let_end()
        runs.until_begun()
    assert runs.seen == ["a", "b", None]
    assert runs.threads == {"cycles"}


def test_a_request_replaces_those_that_are_not_taken_and_no_others(runs: Runs, thread: CycleThread) -> None:
    """A change during a run needs another run."""
    thread.request("a")
    runs.until_begun()
    for _ in range(3):
        thread.request("a")
    runs.let_end()
    runs.until_begun()
    runs.let_end()
    thread.request("b")
    runs.until_begun()
    assert runs.seen == ["a", "a", "b"]


def test_an_error_does_not_end_the_thread(runs: Runs, thread: CycleThread) -> None:
    thread.request("broken")
    runs.until_begun()
    runs.let_end()
    thread.request("a")
    runs.until_begun()
    assert runs.seen == ["broken", "a"]


def test_stopping_waits_for_the_run_and_drops_the_rest(runs: Runs, thread: CycleThread) -> None:
    thread.request("a")
    runs.until_begun()
    thread.request("b")
    stopping = threading.Thread(target=thread.stop)
    stopping.start()
    stopping.join(0.2)
    assert stopping.is_alive()
    runs.let_end()
    stopping.join(PATIENCE_SECONDS)
    assert not stopping.is_alive()
    assert runs.seen == ["a"]
