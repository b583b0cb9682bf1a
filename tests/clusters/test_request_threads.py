"""Requests from several threads: their order, their errors, and the processor that they take."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from functools import partial

import pytest
from django.db import connection

from clusters.api_errors import ClusterError, ClusterUnreachable
from clusters.request_threads import THREADS, carry_out, processor_seconds
from tests.patience import PATIENCE_SECONDS


def fail(error: ClusterError) -> str:
    raise error


def test_results_come_in_the_order_of_the_calls() -> None:
    def late(seconds: float) -> float:
        time.sleep(seconds)
        return seconds

    waits = [0.03, 0.0, 0.02, 0.01]
    assert carry_out([partial(late, each) for each in waits]) == waits
    assert carry_out([partial(late, 0.0)]) == [0.0]
    assert carry_out([]) == []


def test_calls_run_at_the_same_time() -> None:
    together = threading.Barrier(THREADS, timeout=PATIENCE_SECONDS)
    assert {*carry_out([together.wait for _ in range(THREADS)])} == {*range(THREADS)}


def test_a_refusal_stops_no_other_call() -> None:
    refusal = ClusterError(409, "Conflict", "changed")
    calls: list[Callable[[], str]] = [partial(fail, refusal), lambda: "written"]
    assert carry_out(calls) == [refusal, "written"]
    assert carry_out([partial(fail, refusal)]) == [refusal]


def test_without_an_answer_no_further_call_begins() -> None:
    silence = ClusterUnreachable("no answer")
    begun: list[int] = []

    def call(number: int) -> str:
        begun.append(number)
        return fail(silence)

    results = carry_out([partial(call, number) for number in range(10 * THREADS)])
    assert results == [silence] * (10 * THREADS)
    assert len(begun) <= THREADS


def test_another_error_is_raised() -> None:
    with pytest.raises(ZeroDivisionError):
        carry_out([lambda: 1 // 0, lambda: 1])


@pytest.mark.django_db(transaction=True)
def test_a_thread_that_sends_requests_opens_no_session() -> None:
    def ask() -> None:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")

    with pytest.raises(RuntimeError, match="uses the database"):
        carry_out([ask, ask])
    ask()  # this thread's own session still works


def test_the_processor_time_of_the_threads_counts_as_the_callers() -> None:
    def work() -> None:
        until = time.thread_time() + 0.02
        while time.thread_time() < until:
            pass

    before, alone = processor_seconds(), time.thread_time()
    carry_out([work, work])
    assert processor_seconds() - before >= 0.04
    assert time.thread_time() - alone < 0.03


def test_no_call_begins_after_the_caller_was_interrupted() -> None:
    begun: list[int] = []
    released = threading.Event()

    def call(number: int) -> None:
        begun.append(number)
        released.wait(PATIENCE_SECONDS)

    def interrupt(_: object) -> None:  # the caller's thread: all calls are submitted, and as many run as can
        threading.Timer(1.0, released.set).start()
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        carry_out([partial(call, number) for number in range(20 * THREADS)], interrupt)
    assert released.is_set(), "the calls that have begun have ended"
    assert len(begun) <= THREADS
    time.sleep(0.1)
    assert len(begun) <= THREADS


def test_results_are_stored_although_another_call_is_slow() -> None:
    stored = threading.Event()
    found: dict[int, str | ClusterError] = {}

    def store(done: Mapping[int, str | ClusterError]) -> None:
        found.update(done)
        if 1 in found:
            stored.set()

    def slow() -> str:
        return "last" if stored.wait(PATIENCE_SECONDS) else "never"

    refusal = ClusterError(409, "Conflict", "changed")
    assert carry_out([slow, lambda: "first", partial(fail, refusal)], store) == ["last", "first", refusal]
    assert found == {0: "last", 1: "first", 2: refusal}
    carry_out([lambda: "alone"], store)
    assert found[0] == "alone"
