"""Sends requests of one sweep at a time from several threads: most of a request is spent waiting for the server."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from functools import partial
from typing import Final, TypeVar

from django.db import connections

from clusters.api_errors import ClusterError, ClusterUnreachable

_Value = TypeVar("_Value")

THREADS: Final = 8
"""Requests at a time: fewer than the connections that a client keeps open."""
_STORE_SECONDS: Final = 0.05
"""Results wait this long to be stored with others."""


class _Helpers(threading.local):
    """The threads that send the requests of one thread, and their processor time: a sweep over a cluster that does not
    answer delays no other."""

    def __init__(self) -> None:
        self.threads = ThreadPoolExecutor(THREADS, "requests", _refuse_sessions)
        self.seconds = 0.0


def carry_out(
    calls: Sequence[Callable[[], _Value]], store: Callable[[Mapping[int, _Value | ClusterError]], None] | None = None
) -> list[_Value | ClusterError]:
    """Call each function in one of a few threads; return the results, or the ClusterErrors, in their order.

    Without an answer to one call, no further one begins: each of these results is that ClusterUnreachable. The
    functions must not use the database, because each thread would open a session of its own.

    * store: called in this thread with the results by the positions of their calls, soon after these calls: it does not
      wait for a slow one.
    """
    if len(calls) < 2:
        found = [_tried(call) for call in calls]
        if store is not None:
            store(dict(enumerate(found)))
        return found
    unreachable: list[ClusterUnreachable] = []

    def one(call: Callable[[], _Value]) -> tuple[_Value | ClusterError, float]:
        if unreachable:
            return unreachable[0], 0.0
        before = time.thread_time()
        found = _tried(call)
        if isinstance(found, ClusterUnreachable):
            unreachable.append(found)
        return found, time.thread_time() - before

    running = _ended([partial(one, call) for call in calls], store)
    done = [each.result() for each in running]
    _helpers.seconds += sum(seconds for _, seconds in done)
    return [found for found, _ in done]


def _ended(
    calls: Sequence[Callable[[], tuple[_Value | ClusterError, float]]],
    store: Callable[[Mapping[int, _Value | ClusterError]], None] | None,
) -> Collection[Future[tuple[_Value | ClusterError, float]]]:
    """Return the calls in their order, once all of them have ended."""
    running: dict[Future[tuple[_Value | ClusterError, float]], int] = {}
    try:
        for number, call in enumerate(calls):
            running[_helpers.threads.submit(call)] = number
        left = {*running}
        while left:  # also if one raises: the requests of the others are on their way
            ended, left = wait(left, None if store is None else _STORE_SECONDS)
            if store is not None:
                store({running[each]: each.result()[0] for each in ended if each.exception() is None})
    except BaseException:  # as when the process ends: others may sweep as soon as the caller returns
        for each in running:
            each.cancel()
        wait(running)
        raise
    return running


def processor_seconds() -> float:
    """Return the processor time that this thread, and the threads that sent its requests, have taken so far."""
    return time.thread_time() + _helpers.seconds


def _tried(call: Callable[[], _Value]) -> _Value | ClusterError:
    try:
        return call()
    except ClusterError as error:
        return error


def _refuse_sessions() -> None:
    """Have a statement in this thread raise: its session would stay open."""
    for connection in connections.all():
        setattr(connection, "connect", _refuse)  # noqa: B010 (a method)


def _refuse() -> None:
    raise RuntimeError("A thread that sends requests uses the database: read the rows before, and store results after.")


_helpers: Final = _Helpers()
